/*
 * Viaduct: uDAPL 2.0, how a provider registers. Programs do not need this file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef VIADUCT_DAT2_DAT_REGISTRY_H_
#define VIADUCT_DAT2_DAT_REGISTRY_H_

#include <dat2/udat_redirection.h>

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

typedef enum dat_ha_relationship {
  DAT_HA_FALSE = 0,
  DAT_HA_TRUE = 1,
  DAT_HA_UNKNOWN = 2,     /* one of the adapters cannot be asked */
  DAT_HA_CONFLICTING = 3, /* the adapters contradict each other */
  DAT_HA_EXTENSION_BASE = 4
} DAT_HA_RELATIONSHIP;

/* Tells whether two adapters, which are given by their names, can stand in for each other. Codes:
 * PROVIDER_NOT_FOUND, INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_registry_providers_related(IN const DAT_NAME_PTR provider,
                                                         IN const DAT_NAME_PTR related,
                                                         OUT DAT_HA_RELATIONSHIP* answer);

#ifdef __cplusplus
}
#endif

#endif /* VIADUCT_DAT2_DAT_REGISTRY_H_ */
