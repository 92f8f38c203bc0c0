/* One end of the conversations of this folder, as a VIPL program: a NIC, one region, a VI. Any
 * failure ends the program with a line that says what has failed. */
#ifndef TESTS_LAB_VIA_END_H
#define TESTS_LAB_VIA_END_H

#include <stddef.h>
#include <stdint.h>
#include <vipl.h>

enum { kPatience = 20000 };

extern VIP_NIC_HANDLE nic;
extern VIP_MEM_HANDLE memory_handle; /* of the region */

void must(VIP_RETURN code, const char *what);
VIP_VI_STATE state_of(VIP_VI_HANDLE vi);
/* The names of what an attempt to connect may end with. */
const char *name_of_return(VIP_RETURN code);
const char *name_of_state(VIP_VI_HANDLE vi);

/* Opens the NIC, and a region that allows everything to both sides. */
void open_nic(const char *device, void *memory, size_t bytes);
VIP_VI_HANDLE make_vi(VIP_RELIABILITY_LEVEL level, uint32_t largest);

/* Wait for the next request for this port, and request a connection to a port of a host. A port is
 * eight bytes, the most significant first. */
VIP_CONN_HANDLE await_request(uint64_t port);
VIP_RETURN next_request(uint64_t port, VIP_ULONG patience, VIP_CONN_HANDLE *connection);
VIP_RETURN request(VIP_VI_HANDLE vi, const char *host, uint64_t port, VIP_ULONG patience,
                   VIP_VI_ATTRIBUTES *theirs);

/* Makes a descriptor of one segment. */
void fill(VIP_DESCRIPTOR *descriptor, void *data, uint32_t size);
/* The same, for an RDMA between `data` and the peer's memory. */
void fill_rdma(VIP_DESCRIPTOR *descriptor, VIP_UINT16 operation, void *data, uint32_t size,
               uint64_t there, uint32_t key);
/* Posts the descriptor and returns when it is done. */
void complete(VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor, const char *what);

#endif
