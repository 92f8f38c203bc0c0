/*
 * Viaduct: uDAPL 2.0, the basic types on Linux.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef VIADUCT_DAT2_DAT_PLATFORM_SPECIFIC_H_
#define VIADUCT_DAT2_DAT_PLATFORM_SPECIFIC_H_

/* Programs rely on all of these headers. */
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef INOUT
#define INOUT
#endif

#define DAT_API
#define DAT_EXPORT extern

/* Before C++11, UINT64_C need not exist in C++. */
#ifndef UINT64_C
#define UINT64_C(c) c##ULL
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t DAT_UINT32;
typedef uint64_t DAT_UINT64;
#if defined(__GNUC__)
/* g++ ignores __extension__ before a typedef. */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wlong-long"
#endif
__extension__ typedef unsigned long long DAT_UVERYLONG;
#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif
#else
typedef unsigned long long DAT_UVERYLONG;
#endif
typedef void* DAT_PVOID;
typedef int DAT_COUNT;
typedef DAT_UINT64 DAT_PADDR;

/* Addresses are the operating system's socket addresses. */
typedef struct sockaddr DAT_SOCK_ADDR;
typedef struct sockaddr_in6 DAT_SOCK_ADDR6;

#define DAT_AF_INET AF_INET
#define DAT_AF_INET6 AF_INET6

/* The arguments of socket(2). */
typedef struct dat_comm {
  int domain;
  int type;
  int protocol;
} DAT_COMM;

typedef int DAT_FD;

#define DAT_IA_HANDLE_TO_UL(a) ((unsigned long)(a))
#define DAT_UL_TO_IA_HANDLE(a) ((DAT_IA_HANDLE)(a))

#ifdef __cplusplus
}
#endif

#endif /* VIADUCT_DAT2_DAT_PLATFORM_SPECIFIC_H_ */
