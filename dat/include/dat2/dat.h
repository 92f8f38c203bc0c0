/*
 * Viaduct: uDAPL 2.0, the part of the API that does not depend on user space. Programs include
 * <dat2/udat.h>.
 *
 * This file has the types and values, and dat_functions.h has the functions that use them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef VIADUCT_DAT2_DAT_H_
#define VIADUCT_DAT2_DAT_H_

#include <dat2/dat_error.h>
#include <dat2/dat_platform_specific.h>
#include <dat2/dat_vendor_specific.h>
#include <dat2/udat_config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ==== Basic types ==== */

typedef char* DAT_NAME_PTR;

#define DAT_NAME_MAX_LENGTH 256 /* bytes, with the final NUL */

typedef struct dat_named_attr {
  const char* name;
  const char* value;
} DAT_NAMED_ATTR;

typedef enum dat_boolean { DAT_FALSE = 0, DAT_TRUE = 1 } DAT_BOOLEAN;

/* A value of the program's own: the library only keeps it and returns it. */
typedef union dat_context {
  DAT_PVOID as_ptr;
  DAT_UINT64 as_64;
  DAT_UVERYLONG as_index;
} DAT_CONTEXT;

typedef DAT_CONTEXT DAT_DTO_COOKIE;
typedef DAT_CONTEXT DAT_RMR_COOKIE;

typedef DAT_UINT32 DAT_TIMEOUT; /* microseconds */

#define DAT_TIMEOUT_INFINITE ((DAT_TIMEOUT)~0)

typedef DAT_UINT64 DAT_CONN_QUAL; /* from 1024 to 65535: the TCP port of that number */
typedef DAT_UINT64 DAT_PORT_QUAL;

typedef DAT_SOCK_ADDR* DAT_IA_ADDRESS_PTR;

typedef DAT_UINT64 DAT_VLEN;
typedef DAT_UINT64 DAT_VADDR;
typedef DAT_UINT32 DAT_SEG_LENGTH;
typedef DAT_UINT32 DAT_LMR_CONTEXT;
typedef DAT_UINT32 DAT_RMR_CONTEXT;

#define DAT_OPTIMAL_ALIGNMENT 256

#define DAT_VALUE_UNKNOWN (((DAT_COUNT)~0) - 1)
#define DAT_WATERMARK_INFINITE ((DAT_COUNT)~0)
#define DAT_HW_DEFAULT DAT_WATERMARK_INFINITE
#define DAT_SRQ_LW_DEFAULT 0x0

typedef DAT_UINT32 DAT_HA_LB;

#define DAT_HA_LB_NONE ((DAT_HA_LB)0)
#define DAT_HA_LB_INTERCOMM ((DAT_HA_LB)1)
#define DAT_HA_LB_INTRACOMM ((DAT_HA_LB)2)

/* ==== Handles ==== */

typedef DAT_PVOID DAT_HANDLE;
typedef DAT_HANDLE DAT_CNO_HANDLE;
typedef DAT_HANDLE DAT_CR_HANDLE;
typedef DAT_HANDLE DAT_CSP_HANDLE;
typedef DAT_HANDLE DAT_EP_HANDLE;
typedef DAT_HANDLE DAT_EVD_HANDLE;
typedef DAT_HANDLE DAT_IA_HANDLE;
typedef DAT_HANDLE DAT_LMR_HANDLE;
typedef DAT_HANDLE DAT_PSP_HANDLE;
typedef DAT_HANDLE DAT_PZ_HANDLE;
typedef DAT_HANDLE DAT_RMR_HANDLE;
typedef DAT_HANDLE DAT_RSP_HANDLE;
typedef DAT_HANDLE DAT_SRQ_HANDLE;

#define DAT_HANDLE_NULL ((DAT_HANDLE)NULL)

typedef enum dat_handle_type {
  DAT_HANDLE_TYPE_CR = 0,
  DAT_HANDLE_TYPE_EP = 1,
  DAT_HANDLE_TYPE_EVD = 2,
  DAT_HANDLE_TYPE_IA = 3,
  DAT_HANDLE_TYPE_LMR = 4,
  DAT_HANDLE_TYPE_PSP = 5,
  DAT_HANDLE_TYPE_PZ = 6,
  DAT_HANDLE_TYPE_RMR = 7,
  DAT_HANDLE_TYPE_RSP = 8,
  DAT_HANDLE_TYPE_CNO = 9,
  DAT_HANDLE_TYPE_SRQ = 10,
  DAT_HANDLE_TYPE_CSP = 11,
  DAT_HANDLE_TYPE_EXTENSION_BASE = 12
} DAT_HANDLE_TYPE;

/* ==== Flags ==== */

/* Flags of a post; in DAT_EP_ATTR, one for all receives or all requests of an endpoint. */
typedef enum dat_completion_flags {
  DAT_COMPLETION_DEFAULT_FLAG = 0x00,
  DAT_COMPLETION_SUPPRESS_FLAG = 0x01,            /* a success has no event */
  DAT_COMPLETION_SOLICITED_WAIT_FLAG = 0x02,      /* wakes a peer that waits only for these */
  DAT_COMPLETION_UNSIGNALLED_FLAG = 0x04,         /* the event of a success wakes nobody */
  DAT_COMPLETION_BARRIER_FENCE_FLAG = 0x08,       /* begin after the RDMA reads posted before */
  DAT_COMPLETION_EVD_THRESHOLD_FLAG = 0x10,       /* like the default */
  DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG = 0x20 /* not supported */
} DAT_COMPLETION_FLAGS;

typedef enum dat_connect_flags {
  DAT_CONNECT_DEFAULT_FLAG = 0,
  DAT_CONNECT_MULTIPATH_REQUESTED_FLAG = 1, /* not supported */
  DAT_CONNECT_MULTIPATH_REQUIRED_FLAG = 2   /* not supported */
} DAT_CONNECT_FLAGS;

/* The name of DAT_CONNECT_MULTIPATH_REQUESTED_FLAG in 1.2. */
#define DAT_CONNECT_MULTIPATH_FLAG DAT_CONNECT_MULTIPATH_REQUESTED_FLAG

/* dat_ep_disconnect: at once, or after the posted requests. dat_ia_close: whatever was made with
 * the adapter, or only if the program has freed everything. */
typedef enum dat_close_flags {
  DAT_CLOSE_ABRUPT_FLAG = 0,
  DAT_CLOSE_GRACEFUL_FLAG = 1
} DAT_CLOSE_FLAGS;

#define DAT_CLOSE_DEFAULT DAT_CLOSE_ABRUPT_FLAG
#define DAT_OPEN_EXTENSION_BASE 0x1000
#define DAT_CLOSE_EXTENSION_BASE 0x2000

/* The streams of events that may feed a dispatcher, in any combination. */
typedef enum dat_evd_flags {
  DAT_EVD_SOFTWARE_FLAG = 0x001,   /* what dat_evd_post_se posts */
  DAT_EVD_CR_FLAG = 0x010,         /* connection requests */
  DAT_EVD_DTO_FLAG = 0x020,        /* completions of posts */
  DAT_EVD_CONNECTION_FLAG = 0x040, /* DAT_CONNECTION_EVENT_* */
  DAT_EVD_RMR_BIND_FLAG = 0x080,   /* completions of dat_rmr_bind */
  DAT_EVD_ASYNC_FLAG = 0x100,      /* DAT_ASYNC_ERROR_* */
  DAT_EVD_DEFAULT_FLAG = 0x1F0,    /* every stream but software events */
  DAT_EVD_EXTENSION_BASE = 0x200
} DAT_EVD_FLAGS;

typedef enum dat_psp_flags {
  DAT_PSP_CONSUMER_FLAG = 0, /* the program passes an endpoint to dat_cr_accept */
  DAT_PSP_PROVIDER_FLAG = 1  /* the library makes an endpoint for each request */
} DAT_PSP_FLAGS;

typedef enum dat_qos {
  DAT_QOS_BEST_EFFORT = 0, /* the only one that is supported */
  DAT_QOS_HIGH_THROUGHPUT = 1,
  DAT_QOS_LOW_LATENCY = 2,
  DAT_QOS_ECONOMY = 4,
  DAT_QOS_PREMIUM = 8
} DAT_QOS;

/* The operation that a completion belongs to. */
typedef enum dat_dtos {
  DAT_DTO_SEND = 0,
  DAT_DTO_RDMA_WRITE = 1,
  DAT_DTO_RDMA_READ = 2,
  DAT_DTO_RECEIVE = 3,
  DAT_DTO_RECEIVE_WITH_INVALIDATE = 4,
  DAT_DTO_BIND_MW = 5,
  DAT_DTO_LMR_FMR = 6,
  DAT_DTO_LMR_INVALIDATE = 7,
  DAT_DTO_EXTENSION_BASE = 8
} DAT_DTOS;

/* ==== Memory ==== */

typedef enum dat_mem_priv_flags {
  DAT_MEM_PRIV_NONE_FLAG = 0x00,
  DAT_MEM_PRIV_LOCAL_READ_FLAG = 0x01,
  DAT_MEM_PRIV_REMOTE_READ_FLAG = 0x02,
  DAT_MEM_PRIV_LOCAL_WRITE_FLAG = 0x10,
  DAT_MEM_PRIV_REMOTE_WRITE_FLAG = 0x20,
  DAT_MEM_PRIV_ALL_FLAG = 0x33,
  DAT_MEM_PRIV_EXTENSION_BASE = 0x40
} DAT_MEM_PRIV_FLAGS;

#define DAT_MEM_PRIV_READ_FLAG (DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG)
#define DAT_MEM_PRIV_WRITE_FLAG (DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

typedef enum dat_va_type {
  DAT_VA_TYPE_VA = 0, /* addresses are virtual addresses */
  DAT_VA_TYPE_ZB = 1  /* addresses count from the beginning of the memory */
} DAT_VA_TYPE;

/* A piece of the local memory that lmr_context names. */
typedef struct dat_lmr_triplet {
  DAT_VADDR virtual_address;
  DAT_SEG_LENGTH segment_length; /* bytes */
  DAT_LMR_CONTEXT lmr_context;
} DAT_LMR_TRIPLET;

/* A piece of the peer's memory that rmr_context names. */
typedef struct dat_rmr_triplet {
  DAT_VADDR virtual_address;
  DAT_SEG_LENGTH segment_length; /* bytes */
  DAT_RMR_CONTEXT rmr_context;
} DAT_RMR_TRIPLET;

typedef enum dat_rmr_scope {
  DAT_RMR_SCOPE_EP = 0, /* a window for the endpoint that binds it */
  DAT_RMR_SCOPE_PZ = 1, /* a window for every endpoint of the zone */
  DAT_RMR_SCOPE_ANY = 2 /* rmr_scope_supported: windows of both kinds */
} DAT_RMR_SCOPE;

typedef struct dat_rmr_param {
  DAT_IA_HANDLE ia_handle;
  DAT_PZ_HANDLE pz_handle;
  DAT_LMR_TRIPLET lmr_triplet;
  DAT_MEM_PRIV_FLAGS mem_priv;
  DAT_RMR_CONTEXT rmr_context;
  DAT_RMR_SCOPE rmr_scope;
  DAT_VA_TYPE va_type;
} DAT_RMR_PARAM;

typedef enum dat_rmr_param_mask {
  DAT_RMR_FIELD_IA_HANDLE = 0x01,
  DAT_RMR_FIELD_PZ_HANDLE = 0x02,
  DAT_RMR_FIELD_LMR_TRIPLET = 0x04,
  DAT_RMR_FIELD_MEM_PRIV = 0x08,
  DAT_RMR_FIELD_RMR_CONTEXT = 0x10,
  DAT_RMR_FIELD_RMR_SCOPE = 0x20,
  DAT_RMR_FIELD_VA_TYPE = 0x40,
  DAT_RMR_FIELD_ALL = 0x7F
} DAT_RMR_PARAM_MASK;

/* ==== Interface adapter (udat.h has its attributes) ==== */

/* To whom the array of a post's segments belongs after the post. Here it is always the consumer,
 * since the library copies the array. */
typedef enum dat_iov_ownership {
  DAT_IOV_CONSUMER = 0,
  DAT_IOV_PROVIDER_NOMOD = 1,
  DAT_IOV_PROVIDER_MOD = 2
} DAT_IOV_OWNERSHIP;

/* Whether public service points make endpoints. Here they do so if they are asked. */
typedef enum dat_ep_creator_for_psp {
  DAT_PSP_CREATES_EP_NEVER = 0,
  DAT_PSP_CREATES_EP_IFASKED = 1,
  DAT_PSP_CREATES_EP_ALWAYS = 2
} DAT_EP_CREATOR_FOR_PSP;

typedef enum dat_extension {
  DAT_EXTENSION_NONE = 0,
  DAT_EXTENSION_IB = 1,
  DAT_EXTENSION_IW = 2
} DAT_EXTENSION;

typedef struct dat_ia_attr DAT_IA_ATTR;
typedef struct dat_provider_attr DAT_PROVIDER_ATTR;

typedef DAT_UINT64 DAT_IA_ATTR_MASK;
typedef DAT_UINT64 DAT_PROVIDER_ATTR_MASK;

#define DAT_IA_FIELD_IA_ADAPTER_NAME UINT64_C(0x0000000001)
#define DAT_IA_FIELD_IA_VENDOR_NAME UINT64_C(0x0000000002)
#define DAT_IA_FIELD_IA_HARDWARE_MAJOR_VERSION UINT64_C(0x0000000004)
#define DAT_IA_FIELD_IA_HARDWARE_MINOR_VERSION UINT64_C(0x0000000008)
#define DAT_IA_FIELD_IA_FIRMWARE_MAJOR_VERSION UINT64_C(0x0000000010)
#define DAT_IA_FIELD_IA_FIRMWARE_MINOR_VERSION UINT64_C(0x0000000020)
#define DAT_IA_FIELD_IA_ADDRESS_PTR UINT64_C(0x0000000040)
#define DAT_IA_FIELD_IA_MAX_EPS UINT64_C(0x0000000080)
#define DAT_IA_FIELD_IA_MAX_DTO_PER_EP UINT64_C(0x0000000100)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN UINT64_C(0x0000000200)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT UINT64_C(0x0000000400)
#define DAT_IA_FIELD_IA_MAX_EVDS UINT64_C(0x0000000800)
#define DAT_IA_FIELD_IA_MAX_EVD_QLEN UINT64_C(0x0000001000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_DTO UINT64_C(0x0000002000)
#define DAT_IA_FIELD_IA_MAX_LMRS UINT64_C(0x0000004000)
#define DAT_IA_FIELD_IA_MAX_LMR_BLOCK_SIZE UINT64_C(0x0000008000)
#define DAT_IA_FIELD_IA_MAX_LMR_VIRTUAL_ADDRESS UINT64_C(0x0000010000)
#define DAT_IA_FIELD_IA_MAX_PZS UINT64_C(0x0000020000)
#define DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE UINT64_C(0x0000040000)
#define DAT_IA_FIELD_IA_MAX_RDMA_SIZE UINT64_C(0x0000080000)
#define DAT_IA_FIELD_IA_MAX_RMRS UINT64_C(0x0000100000)
#define DAT_IA_FIELD_IA_MAX_RMR_TARGET_ADDRESS UINT64_C(0x0000200000)
#define DAT_IA_FIELD_IA_MAX_SRQS UINT64_C(0x0000400000)
#define DAT_IA_FIELD_IA_MAX_EP_PER_SRQ UINT64_C(0x0000800000)
#define DAT_IA_FIELD_IA_MAX_RECV_PER_SRQ UINT64_C(0x0001000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_READ UINT64_C(0x0002000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_WRITE UINT64_C(0x0004000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_IN UINT64_C(0x0008000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_OUT UINT64_C(0x0010000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN_GUARANTEED UINT64_C(0x0020000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT_GUARANTEED UINT64_C(0x0040000000)
#define DAT_IA_FIELD_IA_ZB_SUPPORTED UINT64_C(0x0080000000)
#define DAT_IA_FIELD_IA_EXTENSION UINT64_C(0x0100000000)
#define DAT_IA_FIELD_IA_EXTENSION_VERSION UINT64_C(0x0200000000)
#define DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR UINT64_C(0x0400000000)
#define DAT_IA_FIELD_IA_TRANSPORT_ATTR UINT64_C(0x0800000000)
#define DAT_IA_FIELD_IA_NUM_VENDOR_ATTR UINT64_C(0x1000000000)
#define DAT_IA_FIELD_IA_VENDOR_ATTR UINT64_C(0x2000000000)
#define DAT_IA_FIELD_ALL UINT64_C(0x3FFFFFFFFF)
#define DAT_IA_FIELD_NONE UINT64_C(0x0000000000)

#define DAT_IA_ALL DAT_IA_FIELD_ALL
#define DAT_IA_FIELD_IA_MAX_MTU_SIZE DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE
#define DAT_IA_FIELD_IA_MAX_DTO_PER_OP DAT_IA_FIELD_IA_MAX_DTO_PER_EP
#define DAT_IA_FIELD_IA_EXTENSIONS_SUPPORTED DAT_IA_FIELD_IA_EXTENSION

/* Former names of two members of DAT_IA_ATTR; the first is a former name in DAT_EP_ATTR, too. */
#define max_mtu_size max_message_size
#define max_rdma_read_per_ep max_rdma_read_per_ep_in

/* ==== Endpoints ==== */

typedef enum dat_service_type {
  DAT_SERVICE_TYPE_RC = 0,
  DAT_SERVICE_TYPE_EXTENSION_BASE = 1
} DAT_SERVICE_TYPE;

/* Sizes are in bytes. A size or number of 0 asks for the default. */
typedef struct dat_ep_attr {
  DAT_SERVICE_TYPE service_type;
  DAT_SEG_LENGTH max_message_size;
  DAT_SEG_LENGTH max_rdma_size;
  DAT_QOS qos;
  DAT_COMPLETION_FLAGS recv_completion_flags;
  DAT_COMPLETION_FLAGS request_completion_flags;
  DAT_COUNT max_recv_dtos;     /* receives that may be outstanding */
  DAT_COUNT max_request_dtos;  /* requests that may be outstanding */
  DAT_COUNT max_recv_iov;      /* segments of a receive */
  DAT_COUNT max_request_iov;   /* segments of a request */
  DAT_COUNT max_rdma_read_in;  /* RDMA reads of the peer at a time */
  DAT_COUNT max_rdma_read_out; /* RDMA reads of this side at a time */
  DAT_COUNT srq_soft_hw; /* the soft watermark of dat_ep_set_watermark; dat_ep_create ignores it */
  DAT_COUNT max_rdma_read_iov;
  DAT_COUNT max_rdma_write_iov;
  DAT_COUNT ep_transport_specific_count; /* this member and those that follow are ignored */
  DAT_NAMED_ATTR* ep_transport_specific;
  DAT_COUNT ep_provider_specific_count;
  DAT_NAMED_ATTR* ep_provider_specific;
} DAT_EP_ATTR;

typedef enum dat_ep_state {
  DAT_EP_STATE_UNCONNECTED = 0,
  DAT_EP_STATE_UNCONFIGURED_UNCONNECTED = 1,
  DAT_EP_STATE_RESERVED = 2,
  DAT_EP_STATE_UNCONFIGURED_RESERVED = 3,
  DAT_EP_STATE_PASSIVE_CONNECTION_PENDING = 4,
  DAT_EP_STATE_UNCONFIGURED_PASSIVE = 5,
  DAT_EP_STATE_ACTIVE_CONNECTION_PENDING = 6,
  DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING = 7,
  DAT_EP_STATE_UNCONFIGURED_TENTATIVE = 8,
  DAT_EP_STATE_CONNECTED = 9,
  DAT_EP_STATE_DISCONNECT_PENDING = 10,
  DAT_EP_STATE_DISCONNECTED = 11,
  DAT_EP_STATE_COMPLETION_PENDING = 12,
  DAT_EP_STATE_CONNECTED_SINGLE_PATH = 13,
  DAT_EP_STATE_CONNECTED_MULTI_PATH = 14
} DAT_EP_STATE;

#define DAT_EP_STATE_ERROR DAT_EP_STATE_DISCONNECTED

typedef struct dat_ep_param {
  DAT_IA_HANDLE ia_handle;
  DAT_EP_STATE ep_state;
  DAT_COMM comm;
  DAT_IA_ADDRESS_PTR local_ia_address_ptr; /* valid while the adapter is open */
  DAT_PORT_QUAL local_port_qual;
  DAT_IA_ADDRESS_PTR remote_ia_address_ptr; /* the endpoint's memory; NULL without a peer */
  DAT_PORT_QUAL remote_port_qual;
  DAT_PZ_HANDLE pz_handle;
  DAT_EVD_HANDLE recv_evd_handle;
  DAT_EVD_HANDLE request_evd_handle;
  DAT_EVD_HANDLE connect_evd_handle;
  DAT_SRQ_HANDLE srq_handle;
  DAT_EP_ATTR ep_attr;
} DAT_EP_PARAM;

typedef DAT_UINT64 DAT_EP_PARAM_MASK;

#define DAT_EP_FIELD_IA_HANDLE UINT64_C(0x00000001)
#define DAT_EP_FIELD_EP_STATE UINT64_C(0x00000002)
#define DAT_EP_FIELD_COMM UINT64_C(0x00000004)
#define DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR UINT64_C(0x00000008)
#define DAT_EP_FIELD_LOCAL_PORT_QUAL UINT64_C(0x00000010)
#define DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR UINT64_C(0x00000020)
#define DAT_EP_FIELD_REMOTE_PORT_QUAL UINT64_C(0x00000040)
#define DAT_EP_FIELD_PZ_HANDLE UINT64_C(0x00000080)
#define DAT_EP_FIELD_RECV_EVD_HANDLE UINT64_C(0x00000100)
#define DAT_EP_FIELD_REQUEST_EVD_HANDLE UINT64_C(0x00000200)
#define DAT_EP_FIELD_CONNECT_EVD_HANDLE UINT64_C(0x00000400)
#define DAT_EP_FIELD_SRQ_HANDLE UINT64_C(0x00000800)
#define DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE UINT64_C(0x00001000)
#define DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE UINT64_C(0x00002000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE UINT64_C(0x00004000)
#define DAT_EP_FIELD_EP_ATTR_QOS UINT64_C(0x00008000)
#define DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS UINT64_C(0x00010000)
#define DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS UINT64_C(0x00020000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS UINT64_C(0x00040000)
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS UINT64_C(0x00080000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV UINT64_C(0x00100000)
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV UINT64_C(0x00200000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN UINT64_C(0x00400000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT UINT64_C(0x00800000)
#define DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW UINT64_C(0x01000000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV UINT64_C(0x02000000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV UINT64_C(0x04000000)
#define DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR UINT64_C(0x08000000)
#define DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR UINT64_C(0x10000000)
#define DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR UINT64_C(0x20000000)
#define DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR UINT64_C(0x40000000)
#define DAT_EP_FIELD_EP_ATTR_ALL UINT64_C(0x7FFFF000)
#define DAT_EP_FIELD_ALL UINT64_C(0x7FFFFFFF)

/* ==== Shared receive queues ==== */

typedef enum dat_srq_state {
  DAT_SRQ_STATE_ERROR = 0,
  DAT_SRQ_STATE_OPERATIONAL = 1,
  DAT_SRQ_STATE_SHUTDOWN = 2
} DAT_SRQ_STATE;

typedef struct dat_srq_attr {
  DAT_COUNT max_recv_dtos; /* receives that may be outstanding */
  DAT_COUNT max_recv_iov;  /* segments of a receive; 0 means 1 */
  DAT_COUNT low_watermark; /* must be DAT_SRQ_LW_DEFAULT; dat_srq_set_lw changes it */
} DAT_SRQ_ATTR;

typedef struct dat_srq_param {
  DAT_IA_HANDLE ia_handle;
  DAT_SRQ_STATE srq_state;
  DAT_PZ_HANDLE pz_handle;
  DAT_COUNT max_recv_dtos;
  DAT_COUNT max_recv_iov;
  DAT_COUNT low_watermark;
  DAT_COUNT available_dto_count;   /* posted receives that no message has taken */
  DAT_COUNT outstanding_dto_count; /* posted receives whose events the program has not taken */
} DAT_SRQ_PARAM;

typedef enum dat_srq_param_mask {
  DAT_SRQ_FIELD_IA_HANDLE = 0x01,
  DAT_SRQ_FIELD_SRQ_STATE = 0x02,
  DAT_SRQ_FIELD_PZ_HANDLE = 0x04,
  DAT_SRQ_FIELD_MAX_RECV_DTO = 0x08,
  DAT_SRQ_FIELD_MAX_RECV_IOV = 0x10,
  DAT_SRQ_FIELD_LOW_WATERMARK = 0x20,
  DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT = 0x40,
  DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT = 0x80,
  DAT_SRQ_FIELD_ALL = 0xFF
} DAT_SRQ_PARAM_MASK;

/* ==== Protection zones ==== */

typedef struct dat_pz_param {
  DAT_IA_HANDLE ia_handle;
} DAT_PZ_PARAM;

typedef enum dat_pz_param_mask {
  DAT_PZ_FIELD_IA_HANDLE = 1,
  DAT_PZ_FIELD_ALL = 1
} DAT_PZ_PARAM_MASK;

/* ==== Service points and connection requests ==== */

typedef struct dat_psp_param {
  DAT_IA_HANDLE ia_handle;
  DAT_CONN_QUAL conn_qual;
  DAT_EVD_HANDLE evd_handle;
  DAT_PSP_FLAGS psp_flags;
} DAT_PSP_PARAM;

typedef enum dat_psp_param_mask {
  DAT_PSP_FIELD_IA_HANDLE = 1,
  DAT_PSP_FIELD_CONN_QUAL = 2,
  DAT_PSP_FIELD_EVD_HANDLE = 4,
  DAT_PSP_FIELD_PSP_FLAGS = 8,
  DAT_PSP_FIELD_ALL = 15
} DAT_PSP_PARAM_MASK;

typedef struct dat_rsp_param {
  DAT_IA_HANDLE ia_handle;
  DAT_CONN_QUAL conn_qual;
  DAT_EVD_HANDLE evd_handle;
  DAT_EP_HANDLE ep_handle;
} DAT_RSP_PARAM;

typedef enum dat_rsp_param_mask {
  DAT_RSP_FIELD_IA_HANDLE = 1,
  DAT_RSP_FIELD_CONN_QUAL = 2,
  DAT_RSP_FIELD_EVD_HANDLE = 4,
  DAT_RSP_FIELD_EP_HANDLE = 8,
  DAT_RSP_FIELD_ALL = 15
} DAT_RSP_PARAM_MASK;

/* The pointers are valid as long as the service point. */
typedef struct dat_csp_param {
  DAT_IA_HANDLE ia_handle;
  DAT_COMM* comm;
  DAT_IA_ADDRESS_PTR address_ptr;
  DAT_EVD_HANDLE evd_handle;
} DAT_CSP_PARAM;

typedef enum dat_csp_param_mask {
  DAT_CSP_FIELD_IA_HANDLE = 1,
  DAT_CSP_FIELD_COMM = 2,
  DAT_CSP_FIELD_IA_ADDRESS = 4,
  DAT_CSP_FIELD_EVD_HANDLE = 8,
  DAT_CSP_FIELD_ALL = 15
} DAT_CSP_PARAM_MASK;

/* The pointers are valid as long as the request. */
typedef struct dat_cr_param {
  DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
  DAT_PORT_QUAL remote_port_qual;
  DAT_COUNT private_data_size;
  DAT_PVOID private_data;
  DAT_EP_HANDLE local_ep_handle; /* the request's own endpoint, or DAT_HANDLE_NULL */
} DAT_CR_PARAM;

typedef enum dat_cr_param_mask {
  DAT_CR_FIELD_REMOTE_IA_ADDRESS_PTR = 0x01,
  DAT_CR_FIELD_REMOTE_PORT_QUAL = 0x02,
  DAT_CR_FIELD_PRIVATE_DATA_SIZE = 0x04,
  DAT_CR_FIELD_PRIVATE_DATA = 0x08,
  DAT_CR_FIELD_LOCAL_EP_HANDLE = 0x10,
  DAT_CR_FIELD_ALL = 0x1F
} DAT_CR_PARAM_MASK;

/* ==== Events ==== */

typedef enum dat_event_number {
  DAT_DTO_COMPLETION_EVENT = 0x00001,
  DAT_RMR_BIND_COMPLETION_EVENT = 0x01001,
  DAT_CONNECTION_REQUEST_EVENT = 0x02001,
  DAT_CONNECTION_EVENT_ESTABLISHED = 0x04001,
  DAT_CONNECTION_EVENT_PEER_REJECTED = 0x04002,           /* the program there refused */
  DAT_CONNECTION_EVENT_NON_PEER_REJECTED = 0x04003,       /* nobody there can take the request */
  DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR = 0x04004, /* the requester has gone */
  DAT_CONNECTION_EVENT_DISCONNECTED = 0x04005,
  DAT_CONNECTION_EVENT_BROKEN = 0x04006,      /* after an error or the peer's death */
  DAT_CONNECTION_EVENT_TIMED_OUT = 0x04007,   /* no answer came in time */
  DAT_CONNECTION_EVENT_UNREACHABLE = 0x04008, /* the attempt did not reach the host */
  DAT_ASYNC_ERROR_EVD_OVERFLOW = 0x08001,     /* a dispatcher has more events than its length */
  DAT_ASYNC_ERROR_IA_CATASTROPHIC = 0x08002,  /* the adapter's RDMA device has failed */
  DAT_ASYNC_ERROR_EP_BROKEN = 0x08003,        /* see DAT_EP_ASYNC_ERROR_REASON */
  DAT_ASYNC_ERROR_TIMED_OUT = 0x08004,        /* the library never reports it */
  DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR = 0x08005, /* DAT_SRQ_LOW_WATERMARK_EVENT */
  DAT_HA_DOWN_TO_1 = 0x08101,
  DAT_HA_UP_TO_MULTI_PATH = 0x08102,
  DAT_SOFTWARE_EVENT = 0x10001,
  DAT_EXTENSION_EVENT = 0x20000,
  DAT_IB_EXTENSION_RANGE_BASE = 0x40000,
  DAT_IW_EXTENSION_RANGE_BASE = 0x80000
} DAT_EVENT_NUMBER;

typedef enum dat_dto_completion_status {
  DAT_DTO_SUCCESS = 0,
  DAT_DTO_ERR_FLUSHED = 1,            /* not processed: the connection had ended */
  DAT_DTO_ERR_LOCAL_LENGTH = 2,       /* longer than the receive or the device's limit */
  DAT_DTO_ERR_LOCAL_EP = 3,           /* the library never reports it */
  DAT_DTO_ERR_LOCAL_PROTECTION = 4,   /* a local context, range, zone or privilege is wrong */
  DAT_DTO_ERR_BAD_RESPONSE = 5,       /* the library never reports it */
  DAT_DTO_ERR_REMOTE_ACCESS = 6,      /* the peer's memory does not allow the access */
  DAT_DTO_ERR_REMOTE_RESPONDER = 7,   /* the peer could not process the request */
  DAT_DTO_ERR_TRANSPORT = 8,          /* the connection was lost during the request */
  DAT_DTO_ERR_RECEIVER_NOT_READY = 9, /* the peer had no receive */
  DAT_DTO_ERR_PARTIAL_PACKET = 10,    /* the library never reports it */
  DAT_RMR_OPERATION_FAILED = 11,      /* the bind failed */
  DAT_DTO_ERR_LOCAL_MM_ERROR = 12     /* the library never reports it */
} DAT_DTO_COMPLETION_STATUS;

typedef DAT_DTO_COMPLETION_STATUS DAT_RMR_BIND_COMPLETION_STATUS;

/* Former names. */
#define DAT_DTO_LENGTH_ERROR DAT_DTO_ERR_LOCAL_LENGTH
#define DAT_DTO_FAILURE DAT_DTO_ERR_FLUSHED
#define DAT_RMR_BIND_SUCCESS DAT_DTO_SUCCESS
#define DAT_RMR_BIND_FAILURE DAT_DTO_ERR_FLUSHED

/* Of DAT_DTO_COMPLETION_EVENT. transfered_length, in bytes, is defined only for a success. */
typedef struct dat_dto_completion_event_data {
  DAT_EP_HANDLE ep_handle;
  DAT_DTO_COOKIE user_cookie;
  DAT_DTO_COMPLETION_STATUS status;
  DAT_SEG_LENGTH transfered_length;
  DAT_DTOS operation;          /* or a DAT_IB_DTOS */
  DAT_RMR_CONTEXT rmr_context; /* DAT_DTO_RECEIVE_WITH_INVALIDATE: of the window that has ended */
} DAT_DTO_COMPLETION_EVENT_DATA;

/* Of DAT_RMR_BIND_COMPLETION_EVENT. */
typedef struct dat_rmr_bind_completion_event_data {
  DAT_RMR_HANDLE rmr_handle;
  DAT_RMR_COOKIE user_cookie;
  DAT_RMR_BIND_COMPLETION_STATUS status;
} DAT_RMR_BIND_COMPLETION_EVENT_DATA;

typedef union dat_sp_handle {
  DAT_RSP_HANDLE rsp_handle;
  DAT_PSP_HANDLE psp_handle;
  DAT_CSP_HANDLE csp_handle;
} DAT_SP_HANDLE;

/* Of DAT_CONNECTION_REQUEST_EVENT. A reserved service point ends when its request comes, so its
 * sp_handle is DAT_HANDLE_NULL. The address is valid while the adapter is open. */
typedef struct dat_cr_arrival_event_data {
  DAT_SP_HANDLE sp_handle;
  DAT_IA_ADDRESS_PTR local_ia_address_ptr;
  DAT_CONN_QUAL conn_qual;
  DAT_CR_HANDLE cr_handle;
  DAT_BOOLEAN truncate_flag; /* always DAT_FALSE: private data is never cut off */
} DAT_CR_ARRIVAL_EVENT_DATA;

/* Of DAT_CONNECTION_EVENT_*. private_data is what the peer passed to dat_cr_accept or
 * dat_cr_reject, or NULL; it is valid until the endpoint is reset or freed. */
typedef struct dat_connection_event_data {
  DAT_EP_HANDLE ep_handle;
  DAT_COUNT private_data_size;
  DAT_PVOID private_data;
} DAT_CONNECTION_EVENT_DATA;

/* Of DAT_ASYNC_ERROR_*. dat_handle is the object that the error concerns, and reason is a value of
 * the enumeration below that belongs to the object's type. */
typedef struct dat_asynch_error_event_data {
  DAT_HANDLE dat_handle;
  DAT_COUNT reason;
} DAT_ASYNCH_ERROR_EVENT_DATA;

typedef enum ia_async_error_reason {
  DAT_IA_CATASTROPHIC_ERROR = 0,
  DAT_IA_OTHER_ERROR = 1
} DAT_IA_ASYNC_ERROR_REASON;

typedef enum ep_async_error_reason {
  DAT_EP_TRANSFER_TO_ERROR = 0,
  DAT_EP_OTHER_ERROR = 1,
  DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT = 2 /* see dat_ep_set_watermark */
} DAT_EP_ASYNC_ERROR_REASON;

typedef enum evd_async_error_reason {
  DAT_EVD_OVERFLOW_ERROR = 0,
  DAT_EVD_OTHER_ERROR = 1
} DAT_EVD_ASYNC_ERROR_REASON;

typedef enum srq_async_error_reason {
  DAT_SRQ_TRANSFER_TO_ERROR = 0,
  DAT_SRQ_OTHER_ERROR = 1,
  DAT_SRQ_LOW_WATERMARK_EVENT = 2 /* see dat_srq_set_lw */
} DAT_SRQ_ASYNC_ERROR_REASON;

typedef enum lmr_async_error_reason { DAT_LMR_OTHER_ERROR = 0 } DAT_LMR_ASYNC_ERROR_REASON;

typedef enum rmr_async_error_reason { DAT_RMR_OTHER_ERROR = 0 } DAT_RMR_ASYNC_ERROR_REASON;

typedef enum pz_async_error_reason { DAT_PZ_OTHER_ERROR = 0 } DAT_PZ_ASYNC_ERROR_REASON;

/* Of DAT_SOFTWARE_EVENT. The pointer is the program's own. */
typedef struct dat_software_event_data {
  DAT_PVOID pointer;
} DAT_SOFTWARE_EVENT_DATA;

typedef union dat_event_data {
  DAT_DTO_COMPLETION_EVENT_DATA dto_completion_event_data;
  DAT_RMR_BIND_COMPLETION_EVENT_DATA rmr_completion_event_data;
  DAT_CR_ARRIVAL_EVENT_DATA cr_arrival_event_data;
  DAT_CONNECTION_EVENT_DATA connect_event_data;
  DAT_ASYNCH_ERROR_EVENT_DATA asynch_error_event_data;
  DAT_SOFTWARE_EVENT_DATA software_event_data;
} DAT_EVENT_DATA;

typedef struct dat_event {
  DAT_EVENT_NUMBER event_number;
  DAT_EVD_HANDLE evd_handle;
  DAT_EVENT_DATA event_data;
  DAT_UINT64 event_extension_data[8]; /* a DAT_IB_EXTENSION_EVENT_DATA, with DAT_IB_DTO_EVENT */
} DAT_EVENT;

/* Defined in udat.h. */
typedef struct dat_evd_param DAT_EVD_PARAM;

typedef enum dat_evd_param_mask {
  DAT_EVD_FIELD_IA_HANDLE = 0x01,
  DAT_EVD_FIELD_EVD_QLEN = 0x02,
  DAT_EVD_FIELD_EVD_STATE = 0x04,
  DAT_EVD_FIELD_CNO = 0x08,
  DAT_EVD_FIELD_EVD_FLAGS = 0x10,
  DAT_EVD_FIELD_ALL = 0x1F
} DAT_EVD_PARAM_MASK;

/* ==== Providers ==== */

typedef struct dat_provider_info {
  char ia_name[DAT_NAME_MAX_LENGTH];
  DAT_UINT32 dapl_version_major;
  DAT_UINT32 dapl_version_minor;
  DAT_BOOLEAN is_thread_safe;
} DAT_PROVIDER_INFO;

typedef int DAT_EXTENDED_OP; /* a DAT_IB_OP of dat_ib_extensions.h */

#ifdef __cplusplus
}
#endif

#include <dat2/dat_functions.h>

#endif /* VIADUCT_DAT2_DAT_H_ */
