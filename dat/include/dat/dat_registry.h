/*
 * Viaduct: uDAPL 1.2, how a provider registers; programs do not need it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef VIADUCT_DAT_DAT_REGISTRY_H_
#define VIADUCT_DAT_DAT_REGISTRY_H_

#include <dat/udat_redirection.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A provider library exports these two; the registry calls them by name. */
#define DAT_PROVIDER_INIT_FUNC_NAME dat_provider_init
#define DAT_PROVIDER_FINI_FUNC_NAME dat_provider_fini
#define DAT_PROVIDER_INIT_FUNC_STR "dat_provider_init"
#define DAT_PROVIDER_FINI_FUNC_STR "dat_provider_fini"

typedef void(DAT_API* DAT_PROVIDER_INIT_FUNC)(const DAT_PROVIDER_INFO* provider_info,
                                              const char* instance_data);
typedef void(DAT_API* DAT_PROVIDER_FINI_FUNC)(const DAT_PROVIDER_INFO* provider_info);

/* Makes a provider known. PROVIDER_ALREADY_REGISTERED, INSUFFICIENT_RESOURCES,
 * INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_registry_add_provider(IN const DAT_PROVIDER* provider,
                                                    IN const DAT_PROVIDER_INFO* provider_info);

/* Forgets it. PROVIDER_NOT_FOUND, PROVIDER_IN_USE, INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_registry_remove_provider(IN const DAT_PROVIDER* provider,
                                                       IN const DAT_PROVIDER_INFO* provider_info);

/* Converts an adapter's handle between the consumer's form and the provider's. */
extern DAT_RETURN DAT_API dats_get_ia_handle(IN DAT_IA_HANDLE handle, OUT DAT_IA_HANDLE* ia_handle);

#ifdef __cplusplus
}
#endif

#endif /* VIADUCT_DAT_DAT_REGISTRY_H_ */
