/*
 * Viaduct: uDAPL 2.0, the version that a program is compiled for.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef VIADUCT_DAT2_UDAT_CONFIG_H_
#define VIADUCT_DAT2_UDAT_CONFIG_H_

#if defined(VIADUCT_DAT_UDAT_CONFIG_H_)
#error "uDAPL 2.0 (dat2/) and 1.2 (dat/) give one name two meanings: include one of them"
#endif

#define VIADUCT_VERSION "0.1.0"

#define DAT_VERSION_MAJOR 2
#define DAT_VERSION_MINOR 0

/* The thread safety that dat_ia_open asks for. A program may define it as DAT_TRUE before it
 * includes the headers. */
#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE DAT_FALSE
#endif

/* The types of dat.h always have the extensions, because these change sizes. */
#ifndef DAT_EXTENSIONS
#define DAT_EXTENSIONS 1
#endif
#define DAT_IB_EXTENSION 1
#define DAT_IW_EXTENSION 2

#endif /* VIADUCT_DAT2_UDAT_CONFIG_H_ */
