/*
 * Viaduct: uDAPL 1.2, how a provider registers. Programs do not need this file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef VIADUCT_DAT_DAT_REGISTRY_H_
#define VIADUCT_DAT_DAT_REGISTRY_H_

#include <dat/udat_redirection.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A provider's library exports two functions of these names, which must not open adapters. The
 * registry calls dat_provider_init when it has loaded the library, with the name and the parameters
 * of an adapter from dat.conf(5), and dat_provider_fini before it unloads the library. */
#define DAT_PROVIDER_INIT_FUNC_NAME dat_provider_init
#define DAT_PROVIDER_FINI_FUNC_NAME dat_provider_fini
#define DAT_PROVIDER_INIT_FUNC_STR "dat_provider_init"
#define DAT_PROVIDER_FINI_FUNC_STR "dat_provider_fini"

typedef void(DAT_API* DAT_PROVIDER_INIT_FUNC)(const DAT_PROVIDER_INFO* provider_info,
                                              const char* instance_data);
typedef void(DAT_API* DAT_PROVIDER_FINI_FUNC)(const DAT_PROVIDER_INFO* provider_info);

/* Adds an adapter of a provider; the table must stay valid, and provider_info is copied. Codes:
 * PROVIDER_ALREADY_REGISTERED, INVALID_PARAMETER, INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_registry_add_provider(IN const DAT_PROVIDER* provider,
                                                    IN const DAT_PROVIDER_INFO* provider_info);

/* Removes what dat_registry_add_provider has added. Codes: PROVIDER_NOT_FOUND, PROVIDER_IN_USE (an
 * adapter of the provider is open), INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_registry_remove_provider(IN const DAT_PROVIDER* provider,
                                                       IN const DAT_PROVIDER_INFO* provider_info);

/* Returns the handle by which programs know an adapter; in this library it is the same handle. */
extern DAT_RETURN DAT_API dats_get_ia_handle(IN DAT_IA_HANDLE handle, OUT DAT_IA_HANDLE* ia_handle);

#ifdef __cplusplus
}
#endif

#endif /* VIADUCT_DAT_DAT_REGISTRY_H_ */
