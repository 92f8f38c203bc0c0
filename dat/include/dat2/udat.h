/*
 * Viaduct: uDAPL 2.0 (User Direct Access Programming Library), the header that programs include.
 *
 * dat.h has what every DAT consumer shares, and this file has what belongs to user space: the
 * memory of the process, waiting, the attributes of adapter and provider. Both are valid C89 (with
 * a 64-bit integer) and valid C++ up to C++23. dat_functions.h says what holds for all functions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef VIADUCT_DAT2_UDAT_H_
#define VIADUCT_DAT2_UDAT_H_

/* Headers of providers test for the guard of OFED's header. */
#ifndef _UDAT_H_
#define _UDAT_H_
#endif

#include <dat2/dat.h>
#include <dat2/dat_platform_specific.h>
#include <dat2/udat_config.h>
#include <dat2/udat_vendor_specific.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ==== Memory regions ==== */

typedef enum dat_mem_type {
  DAT_MEM_TYPE_VIRTUAL = 0,       /* memory of the process */
  DAT_MEM_TYPE_LMR = 1,           /* the memory of another registration, once more */
  DAT_MEM_TYPE_SHARED_VIRTUAL = 2 /* a shared mapping */
} DAT_MEM_TYPE;

#define DAT_LMR_COOKIE_SIZE 40
typedef char (*DAT_LMR_COOKIE)[DAT_LMR_COOKIE_SIZE];

/* For DAT_MEM_TYPE_SHARED_VIRTUAL. All processes that share the memory give it the same name of 40
 * bytes, which the library copies and shows in dat_lmr_query. */
typedef struct dat_shared_memory {
  DAT_PVOID virtual_address;
  DAT_LMR_COOKIE shared_memory_id;
} DAT_SHARED_MEMORY;

typedef union dat_region_description {
  DAT_PVOID for_va;                    /* DAT_MEM_TYPE_VIRTUAL */
  DAT_LMR_HANDLE for_lmr_handle;       /* DAT_MEM_TYPE_LMR */
  DAT_SHARED_MEMORY for_shared_memory; /* DAT_MEM_TYPE_SHARED_VIRTUAL */
} DAT_REGION_DESCRIPTION;

/* Sizes are in bytes. A name of shared memory is valid as long as the registration. */
typedef struct dat_lmr_param {
  DAT_IA_HANDLE ia_handle;
  DAT_MEM_TYPE mem_type;
  DAT_REGION_DESCRIPTION region_desc;
  DAT_VLEN length;
  DAT_PZ_HANDLE pz_handle;
  DAT_MEM_PRIV_FLAGS mem_priv;
  DAT_VA_TYPE va_type;
  DAT_LMR_CONTEXT lmr_context;
  DAT_RMR_CONTEXT rmr_context;
  DAT_VLEN registered_size;
  DAT_VADDR registered_address;
} DAT_LMR_PARAM;

typedef enum dat_lmr_param_mask {
  DAT_LMR_FIELD_IA_HANDLE = 0x001,
  DAT_LMR_FIELD_MEM_TYPE = 0x002,
  DAT_LMR_FIELD_REGION_DESC = 0x004,
  DAT_LMR_FIELD_LENGTH = 0x008,
  DAT_LMR_FIELD_PZ_HANDLE = 0x010,
  DAT_LMR_FIELD_MEM_PRIV = 0x020,
  DAT_LMR_FIELD_VA_TYPE = 0x040,
  DAT_LMR_FIELD_LMR_CONTEXT = 0x080,
  DAT_LMR_FIELD_RMR_CONTEXT = 0x100,
  DAT_LMR_FIELD_REGISTERED_SIZE = 0x200,
  DAT_LMR_FIELD_REGISTERED_ADDRESS = 0x400,
  DAT_LMR_FIELD_ALL = 0x7FF
} DAT_LMR_PARAM_MASK;

/* ==== Event dispatchers and notifiers ==== */

/* What dat_evd_query reports: enabled or disabled, waitable or unwaitable, and the flag of
 * DAT_EP_ATTR by which a stream completes if that is not the default one. */
typedef enum dat_evd_state {
  DAT_EVD_STATE_ENABLED = 0x01,
  DAT_EVD_STATE_DISABLED = 0x02,
  DAT_EVD_STATE_WAITABLE = 0x04,
  DAT_EVD_STATE_UNWAITABLE = 0x08,
  DAT_EVD_STATE_CONFIG_NOTIFY = 0x10,    /* DAT_COMPLETION_UNSIGNALLED_FLAG */
  DAT_EVD_STATE_CONFIG_SOLICITED = 0x20, /* DAT_COMPLETION_SOLICITED_WAIT_FLAG */
  DAT_EVD_STATE_CONFIG_THRESHOLD = 0x30  /* DAT_COMPLETION_EVD_THRESHOLD_FLAG */
} DAT_EVD_STATE;

struct dat_evd_param {
  DAT_IA_HANDLE ia_handle;
  DAT_COUNT evd_qlen; /* events */
  DAT_EVD_STATE evd_state;
  DAT_CNO_HANDLE cno_handle; /* the notifier, or DAT_HANDLE_NULL */
  DAT_EVD_FLAGS evd_flags;
};

/* Passed to dat_ia_open if there is a dispatcher for asynchronous errors elsewhere. */
#define DAT_EVD_ASYNC_EXISTS ((DAT_EVD_HANDLE)0x1)
/* What dat_ia_open then returns, and dat_ia_query reports: the adapter has no such dispatcher, and
 * its asynchronous errors are not reported. */
#define DAT_EVD_OUT_OF_SCOPE ((DAT_EVD_HANDLE)0x2)

/* Called on a thread of the library with the dispatcher that triggered the notifier, or with
 * DAT_HANDLE_NULL if the notifier's last dispatcher was freed or the adapter is closed. */
typedef void(DAT_API* DAT_AGENT_FUNC)(DAT_PVOID instance_data, DAT_EVD_HANDLE evd_handle);

typedef struct dat_os_wait_proxy_agent {
  DAT_PVOID instance_data;
  DAT_AGENT_FUNC proxy_agent_func;
} DAT_OS_WAIT_PROXY_AGENT;

/* The value that means no agent. */
#ifdef __cplusplus
#define DAT_OS_WAIT_PROXY_AGENT_NULL DAT_OS_WAIT_PROXY_AGENT()
#else
#define DAT_OS_WAIT_PROXY_AGENT_NULL \
  (DAT_OS_WAIT_PROXY_AGENT) { (DAT_PVOID) NULL, (DAT_AGENT_FUNC)NULL }
#endif

typedef enum dat_proxy_type {
  DAT_PROXY_TYPE_NONE = 0,
  DAT_PROXY_TYPE_AGENT = 1,
  DAT_PROXY_TYPE_FD = 2
} DAT_PROXY_TYPE;

/* The member of proxy is the one that proxy_type names. */
typedef struct dat_cno_param {
  DAT_IA_HANDLE ia_handle;
  DAT_PROXY_TYPE proxy_type;
  union {
    DAT_OS_WAIT_PROXY_AGENT agent;
    DAT_FD fd;
    DAT_PVOID none;
  } proxy;
} DAT_CNO_PARAM;

typedef enum dat_cno_param_mask {
  DAT_CNO_FIELD_IA_HANDLE = 1,
  DAT_CNO_FIELD_PROXY_TYPE = 2,
  DAT_CNO_FIELD_PROXY = 3,
  DAT_CNO_FIELD_ALL = 4
} DAT_CNO_PARAM_MASK;

/* ==== Attributes of an interface adapter ==== */

/* Sizes are in bytes; max_ is a limit. The address belongs to the library and is valid while the
 * adapter is open. */
struct dat_ia_attr {
  char adapter_name[DAT_NAME_MAX_LENGTH];
  char vendor_name[DAT_NAME_MAX_LENGTH];
  DAT_UINT32 hardware_version_major;
  DAT_UINT32 hardware_version_minor;
  DAT_UINT32 firmware_version_major;
  DAT_UINT32 firmware_version_minor;
  DAT_IA_ADDRESS_PTR ia_address_ptr;
  DAT_COUNT max_eps;
  DAT_COUNT max_dto_per_ep;
  DAT_COUNT max_rdma_read_per_ep_in;  /* RDMA reads of the peer at a time */
  DAT_COUNT max_rdma_read_per_ep_out; /* RDMA reads of this side at a time */
  DAT_COUNT max_evds;
  DAT_COUNT max_evd_qlen;
  DAT_COUNT max_iov_segments_per_dto;
  DAT_COUNT max_lmrs;
  DAT_SEG_LENGTH max_lmr_block_size;
  DAT_VADDR max_lmr_virtual_address;
  DAT_COUNT max_pzs;
  DAT_SEG_LENGTH max_message_size;
  DAT_SEG_LENGTH max_rdma_size;
  DAT_COUNT max_rmrs;
  DAT_VADDR max_rmr_target_address;
  DAT_COUNT max_srqs;
  DAT_COUNT max_ep_per_srq;
  DAT_COUNT max_recv_per_srq;
  DAT_COUNT max_iov_segments_per_rdma_read;
  DAT_COUNT max_iov_segments_per_rdma_write;
  DAT_COUNT max_rdma_read_in;
  DAT_COUNT max_rdma_read_out;
  DAT_BOOLEAN max_rdma_read_per_ep_in_guaranteed;
  DAT_BOOLEAN max_rdma_read_per_ep_out_guaranteed;
  DAT_BOOLEAN zb_supported;
  DAT_EXTENSION extension_supported;
  DAT_COUNT extension_version;
  DAT_COUNT num_transport_attr;
  DAT_NAMED_ATTR* transport_attr;
  DAT_COUNT num_vendor_attr;
  DAT_NAMED_ATTR* vendor_attr;
};

/* ==== Attributes of a provider ==== */

typedef enum dat_pz_support { DAT_PZ_UNIQUE = 0, DAT_PZ_SHAREABLE = 1 } DAT_PZ_SUPPORT;

struct dat_provider_attr {
  char provider_name[DAT_NAME_MAX_LENGTH];
  DAT_UINT32 provider_version_major;
  DAT_UINT32 provider_version_minor;
  DAT_UINT32 dapl_version_major;
  DAT_UINT32 dapl_version_minor;
  DAT_MEM_TYPE lmr_mem_types_supported; /* a set; VIRTUAL, which is 0, is always in it */
  DAT_IOV_OWNERSHIP iov_ownership_on_return;
  DAT_QOS dat_qos_supported;
  DAT_COMPLETION_FLAGS completion_flags_supported;
  DAT_BOOLEAN is_thread_safe;
  DAT_COUNT max_private_data_size; /* bytes */
  DAT_BOOLEAN supports_multipath;
  DAT_EP_CREATOR_FOR_PSP ep_creator;
  DAT_PZ_SUPPORT pz_support;
  DAT_UINT32 optimal_buffer_alignment; /* bytes */
  /* Whether two streams may feed one dispatcher. Their order is: software, CR, DTO, connection, RMR
   * bind, async. */
  DAT_BOOLEAN evd_stream_merging_supported[6][6];
  DAT_BOOLEAN srq_supported;
  DAT_COUNT srq_watermarks_supported;
  DAT_BOOLEAN srq_ep_pz_difference_supported;
  DAT_COUNT srq_info_supported;
  DAT_COUNT ep_recv_info_supported;
  DAT_BOOLEAN lmr_sync_req;
  DAT_BOOLEAN dto_async_return_guaranteed;
  DAT_BOOLEAN rdma_write_for_rdma_read_req;
  DAT_BOOLEAN rdma_read_lmr_rmr_context_exposure;
  DAT_RMR_SCOPE rmr_scope_supported;
  DAT_BOOLEAN is_signal_safe;
  DAT_BOOLEAN ha_supported;
  DAT_HA_LB ha_loadbalancing;
  DAT_COUNT num_provider_specific_attr;
  DAT_NAMED_ATTR* provider_specific_attr; /* the library's; valid even when the adapter is closed */
};

#define DAT_PROVIDER_FIELD_PROVIDER_NAME UINT64_C(0x00000001)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MAJOR UINT64_C(0x00000002)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MINOR UINT64_C(0x00000004)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MAJOR UINT64_C(0x00000008)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MINOR UINT64_C(0x00000010)
#define DAT_PROVIDER_FIELD_LMR_MEM_TYPE_SUPPORTED UINT64_C(0x00000020)
#define DAT_PROVIDER_FIELD_IOV_OWNERSHIP UINT64_C(0x00000040)
#define DAT_PROVIDER_FIELD_DAT_QOS_SUPPORTED UINT64_C(0x00000080)
#define DAT_PROVIDER_FIELD_COMPLETION_FLAGS_SUPPORTED UINT64_C(0x00000100)
#define DAT_PROVIDER_FIELD_IS_THREAD_SAFE UINT64_C(0x00000200)
#define DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE UINT64_C(0x00000400)
#define DAT_PROVIDER_FIELD_SUPPORTS_MULTIPATH UINT64_C(0x00000800)
#define DAT_PROVIDER_FIELD_EP_CREATOR UINT64_C(0x00001000)
#define DAT_PROVIDER_FIELD_PZ_SUPPORT UINT64_C(0x00002000)
#define DAT_PROVIDER_FIELD_OPTIMAL_BUFFER_ALIGNMENT UINT64_C(0x00004000)
#define DAT_PROVIDER_FIELD_EVD_STREAM_MERGING_SUPPORTED UINT64_C(0x00008000)
#define DAT_PROVIDER_FIELD_SRQ_SUPPORTED UINT64_C(0x00010000)
#define DAT_PROVIDER_FIELD_SRQ_WATERMARKS_SUPPORTED UINT64_C(0x00020000)
#define DAT_PROVIDER_FIELD_SRQ_EP_PZ_DIFFERENCE_SUPPORTED UINT64_C(0x00040000)
#define DAT_PROVIDER_FIELD_SRQ_INFO_SUPPORTED UINT64_C(0x00080000)
#define DAT_PROVIDER_FIELD_EP_RECV_INFO_SUPPORTED UINT64_C(0x00100000)
#define DAT_PROVIDER_FIELD_LMR_SYNC_REQ UINT64_C(0x00200000)
#define DAT_PROVIDER_FIELD_DTO_ASYNC_RETURN_GUARANTEED UINT64_C(0x00400000)
#define DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ UINT64_C(0x00800000)
#define DAT_PROVIDER_FIELD_RDMA_READ_LMR_RMR_CONTEXT_EXPOSURE UINT64_C(0x01000000)
#define DAT_PROVIDER_FIELD_RMR_SCOPE_SUPPORTED UINT64_C(0x02000000)
#define DAT_PROVIDER_FIELD_IS_SIGNAL_SAFE UINT64_C(0x04000000)
#define DAT_PROVIDER_FIELD_HA_SUPPORTED UINT64_C(0x08000000)
#define DAT_PROVIDER_FIELD_HA_LB UINT64_C(0x10000000)
#define DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR UINT64_C(0x20000000)
#define DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR UINT64_C(0x40000000)
#define DAT_PROVIDER_FIELD_ALL UINT64_C(0x7FFFFFFF)
#define DAT_PROVIDER_FIELD_NONE UINT64_C(0x00000000)

/* ==== Event dispatchers ==== */

/* Makes a dispatcher of at least evd_min_qlen events for the streams in evd_flags. cno_handle is
 * the notifier that it triggers, or DAT_HANDLE_NULL. Codes: INVALID_PARAMETER,
 * INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_evd_create(IN DAT_IA_HANDLE ia_handle, IN DAT_COUNT evd_min_qlen,
                                         IN DAT_CNO_HANDLE cno_handle, IN DAT_EVD_FLAGS evd_flags,
                                         OUT DAT_EVD_HANDLE* evd_handle);

/* Sets the notifier that a dispatcher triggers, or none (DAT_HANDLE_NULL). If the dispatcher had
 * none and has events, the notifier is triggered at once. */
extern DAT_RETURN DAT_API dat_evd_modify_cno(IN DAT_EVD_HANDLE evd_handle,
                                             IN DAT_CNO_HANDLE cno_handle);

/* Lets a dispatcher trigger its notifier again. */
extern DAT_RETURN DAT_API dat_evd_enable(IN DAT_EVD_HANDLE evd_handle);

/* Stops a dispatcher from triggering its notifier; waiting and dequeuing do not depend on this. */
extern DAT_RETURN DAT_API dat_evd_disable(IN DAT_EVD_HANDLE evd_handle);

/* Waits until threshold events are queued and takes the oldest; with a timeout of 0 it only looks.
 * *nmore receives the number of events that are left; nmore may be NULL. Codes: TIMEOUT_EXPIRED,
 * INTERRUPTED_CALL (by a signal), ABORT (the adapter was closed), INVALID_STATE (the dispatcher is
 * or becomes unwaitable; another thread waits on it; threshold is above 1 although a stream
 * completes by DAT_COMPLETION_UNSIGNALLED_FLAG or DAT_COMPLETION_SOLICITED_WAIT_FLAG),
 * INVALID_PARAMETER (also if threshold is above the dispatcher's length). */
extern DAT_RETURN DAT_API dat_evd_wait(IN DAT_EVD_HANDLE evd_handle, IN DAT_TIMEOUT timeout,
                                       IN DAT_COUNT threshold, OUT DAT_EVENT* event,
                                       OUT DAT_COUNT* nmore);

/* Ends the wait of a thread, and makes waits fail until dat_evd_clear_unwaitable. dat_evd_dequeue
 * still works. */
extern DAT_RETURN DAT_API dat_evd_set_unwaitable(IN DAT_EVD_HANDLE evd_handle);

/* Allows waits again. */
extern DAT_RETURN DAT_API dat_evd_clear_unwaitable(IN DAT_EVD_HANDLE evd_handle);

/* ==== Notifiers (CNO) ==== */

/* Makes a notifier. The agent, if there is one, is called once, at the next trigger. Codes:
 * INVALID_PARAMETER, INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_cno_create(IN DAT_IA_HANDLE ia_handle,
                                         IN DAT_OS_WAIT_PROXY_AGENT agent,
                                         OUT DAT_CNO_HANDLE* cno_handle);

/* Sets another agent or none; the agent is called once, at the next trigger. Code: INVALID_STATE
 * (in 2.0 the notifier has a file descriptor). */
extern DAT_RETURN DAT_API dat_cno_modify_agent(IN DAT_CNO_HANDLE cno_handle,
                                               IN DAT_OS_WAIT_PROXY_AGENT agent);

/* Reports the parameters of a notifier. Code: INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_cno_query(IN DAT_CNO_HANDLE cno_handle,
                                        IN DAT_CNO_PARAM_MASK cno_param_mask,
                                        OUT DAT_CNO_PARAM* cno_param);

/* Takes a trigger of a notifier, or waits for one. *evd_handle receives the dispatcher that may
 * have events, or DAT_HANDLE_NULL if the last dispatcher was freed or the adapter was closed.
 * Codes: QUEUE_EMPTY (no trigger came in time), INTERRUPTED_CALL (by a signal). */
extern DAT_RETURN DAT_API dat_cno_wait(IN DAT_CNO_HANDLE cno_handle, IN DAT_TIMEOUT timeout,
                                       OUT DAT_EVD_HANDLE* evd_handle);

/* Destroys a notifier. Code: INVALID_STATE (a dispatcher refers to it, or a thread waits on it). */
extern DAT_RETURN DAT_API dat_cno_free(IN DAT_CNO_HANDLE cno_handle);

/* Makes a notifier with a file descriptor, which is readable while a trigger is remembered. The
 * descriptor belongs to the notifier and must not be closed. Code: INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_cno_fd_create(IN DAT_IA_HANDLE ia_handle, OUT DAT_FD* file_descriptor,
                                            OUT DAT_CNO_HANDLE* cno_handle);

/* Takes the trigger that a notifier remembers; never blocks. *evd_handle is as for dat_cno_wait.
 * Code: QUEUE_EMPTY. */
extern DAT_RETURN DAT_API dat_cno_trigger(IN DAT_CNO_HANDLE cno_handle,
                                          OUT DAT_EVD_HANDLE* evd_handle);

/* ==== Memory regions ==== */

/* Registers memory for the endpoints of a zone. The length is in bytes and must not be 0; it is
 * ignored for DAT_MEM_TYPE_LMR. The memory stays the program's and must stay mapped until
 * dat_lmr_free. *lmr_context is for segments of posts and *rmr_context, 0 without a remote
 * privilege, for the peer. All result pointers but lmr_handle may be NULL. Codes:
 * INVALID_PARAMETER, INVALID_STATE (the memory for DAT_MEM_TYPE_SHARED_VIRTUAL is private),
 * INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_lmr_create(
    IN DAT_IA_HANDLE ia_handle, IN DAT_MEM_TYPE mem_type,
    IN DAT_REGION_DESCRIPTION region_description, IN DAT_VLEN length, IN DAT_PZ_HANDLE pz_handle,
    IN DAT_MEM_PRIV_FLAGS mem_privileges, IN DAT_VA_TYPE va_type, OUT DAT_LMR_HANDLE* lmr_handle,
    OUT DAT_LMR_CONTEXT* lmr_context, OUT DAT_RMR_CONTEXT* rmr_context,
    OUT DAT_VLEN* registered_length, OUT DAT_VADDR* registered_address);

/* Reports the parameters of registered memory. Code: INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_lmr_query(IN DAT_LMR_HANDLE lmr_handle,
                                        IN DAT_LMR_PARAM_MASK lmr_param_mask,
                                        OUT DAT_LMR_PARAM* lmr_param);

#ifdef __cplusplus
}
#endif

#endif /* VIADUCT_DAT2_UDAT_H_ */
