/*
 * Viaduct: uDAPL 2.0 (User Direct Access Programming Library), the header that programs include.
 *
 * dat.h has what every DAT consumer shares, this file what belongs to user space: memory of the
 * process, waiting, adapter and provider attributes. Valid as C89 (with a 64-bit integer) up to
 * C++23.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef VIADUCT_DAT2_UDAT_H_
#define VIADUCT_DAT2_UDAT_H_

/* What provider headers test for: the guard of OFED's. */
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
  DAT_MEM_TYPE_VIRTUAL = 0,
  DAT_MEM_TYPE_LMR = 1,
  DAT_MEM_TYPE_SHARED_VIRTUAL = 2
} DAT_MEM_TYPE;

#define DAT_LMR_COOKIE_SIZE 40
typedef char (*DAT_LMR_COOKIE)[DAT_LMR_COOKIE_SIZE];

/* DAT_MEM_TYPE_SHARED_VIRTUAL: all who share the memory give the same 40 bytes. */
typedef struct dat_shared_memory {
  DAT_PVOID virtual_address;
  DAT_LMR_COOKIE shared_memory_id;
} DAT_SHARED_MEMORY;

typedef union dat_region_description {
  DAT_PVOID for_va;
  DAT_LMR_HANDLE for_lmr_handle;
  DAT_SHARED_MEMORY for_shared_memory;
} DAT_REGION_DESCRIPTION;

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

/* ==== Event dispatchers and notification objects ==== */

/* One bit of each pair, and a configuration. */
typedef enum dat_evd_state {
  DAT_EVD_STATE_ENABLED = 0x01,
  DAT_EVD_STATE_DISABLED = 0x02,
  DAT_EVD_STATE_WAITABLE = 0x04,
  DAT_EVD_STATE_UNWAITABLE = 0x08,
  DAT_EVD_STATE_CONFIG_NOTIFY = 0x10, /* of UNSIGNALLED streams; the default mode shows none */
  DAT_EVD_STATE_CONFIG_SOLICITED = 0x20,
  DAT_EVD_STATE_CONFIG_THRESHOLD = 0x30
} DAT_EVD_STATE;

struct dat_evd_param {
  DAT_IA_HANDLE ia_handle;
  DAT_COUNT evd_qlen;
  DAT_EVD_STATE evd_state;
  DAT_CNO_HANDLE cno_handle;
  DAT_EVD_FLAGS evd_flags;
};

/* dat_ia_open: another instance of the adapter has the async dispatcher. */
#define DAT_EVD_ASYNC_EXISTS ((DAT_EVD_HANDLE)0x1)
/* dat_ia_query: this instance has none. */
#define DAT_EVD_OUT_OF_SCOPE ((DAT_EVD_HANDLE)0x2)

typedef void(DAT_API* DAT_AGENT_FUNC)(DAT_PVOID instance_data, DAT_EVD_HANDLE evd_handle);

typedef struct dat_os_wait_proxy_agent {
  DAT_PVOID instance_data;
  DAT_AGENT_FUNC proxy_agent_func;
} DAT_OS_WAIT_PROXY_AGENT;

/* No agent. */
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
  DAT_COUNT max_rdma_read_per_ep_in;
  DAT_COUNT max_rdma_read_per_ep_out;
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
  DAT_MEM_TYPE lmr_mem_types_supported;
  DAT_IOV_OWNERSHIP iov_ownership_on_return;
  DAT_QOS dat_qos_supported;
  DAT_COMPLETION_FLAGS completion_flags_supported;
  DAT_BOOLEAN is_thread_safe;
  DAT_COUNT max_private_data_size;
  DAT_BOOLEAN supports_multipath;
  DAT_EP_CREATOR_FOR_PSP ep_creator;
  DAT_PZ_SUPPORT pz_support;
  DAT_UINT32 optimal_buffer_alignment;
  /* May two streams feed one dispatcher? Order: software, CR, DTO, connection, RMR bind, async. */
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
  DAT_NAMED_ATTR* provider_specific_attr;
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

/* Makes a dispatcher for the streams in evd_flags, at least that long. INSUFFICIENT_RESOURCES,
 * INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_evd_create(IN DAT_IA_HANDLE ia_handle, IN DAT_COUNT evd_min_qlen,
                                         IN DAT_CNO_HANDLE cno_handle, IN DAT_EVD_FLAGS evd_flags,
                                         OUT DAT_EVD_HANDLE* evd_handle);

/* Attaches another notification object, or none (DAT_HANDLE_NULL). */
extern DAT_RETURN DAT_API dat_evd_modify_cno(IN DAT_EVD_HANDLE evd_handle,
                                             IN DAT_CNO_HANDLE cno_handle);

/* Lets events trigger the notification object again. */
extern DAT_RETURN DAT_API dat_evd_enable(IN DAT_EVD_HANDLE evd_handle);

/* Stops events from triggering the notification object; waiters are not affected. */
extern DAT_RETURN DAT_API dat_evd_disable(IN DAT_EVD_HANDLE evd_handle);

/* Waits (microseconds) for threshold events and takes the oldest; nmore: how many are left.
 * TIMEOUT_EXPIRED, INTERRUPTED_CALL, ABORT (the adapter was closed), INVALID_STATE (unwaitable, or
 * another waiter), INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_evd_wait(IN DAT_EVD_HANDLE evd_handle, IN DAT_TIMEOUT timeout,
                                       IN DAT_COUNT threshold, OUT DAT_EVENT* event,
                                       OUT DAT_COUNT* nmore);

/* Releases the waiter and refuses others. */
extern DAT_RETURN DAT_API dat_evd_set_unwaitable(IN DAT_EVD_HANDLE evd_handle);

/* Allows waiting again. */
extern DAT_RETURN DAT_API dat_evd_clear_unwaitable(IN DAT_EVD_HANDLE evd_handle);

/* ==== Notification objects (CNO) ==== */

/* Makes one; the agent, if any, is called once, at the next trigger. INSUFFICIENT_RESOURCES,
 * INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_cno_create(IN DAT_IA_HANDLE ia_handle,
                                         IN DAT_OS_WAIT_PROXY_AGENT agent,
                                         OUT DAT_CNO_HANDLE* cno_handle);

/* Changes the agent; the new one is called once, at the next trigger. INVALID_STATE. */
extern DAT_RETURN DAT_API dat_cno_modify_agent(IN DAT_CNO_HANDLE cno_handle,
                                               IN DAT_OS_WAIT_PROXY_AGENT agent);

/* Reports parameters. INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_cno_query(IN DAT_CNO_HANDLE cno_handle,
                                        IN DAT_CNO_PARAM_MASK cno_param_mask,
                                        OUT DAT_CNO_PARAM* cno_param);

/* Waits (microseconds) for a trigger; evd_handle: whose. QUEUE_EMPTY at the
 * time-out, INTERRUPTED_CALL. */
extern DAT_RETURN DAT_API dat_cno_wait(IN DAT_CNO_HANDLE cno_handle, IN DAT_TIMEOUT timeout,
                                       OUT DAT_EVD_HANDLE* evd_handle);

/* Destroys it. INVALID_STATE while a dispatcher is attached or somebody waits. */
extern DAT_RETURN DAT_API dat_cno_free(IN DAT_CNO_HANDLE cno_handle);

/* Makes one that is readable through a file descriptor. INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_cno_fd_create(IN DAT_IA_HANDLE ia_handle, OUT DAT_FD* file_descriptor,
                                            OUT DAT_CNO_HANDLE* cno_handle);

/* Takes a trigger of such an object; evd_handle: whose. QUEUE_EMPTY. */
extern DAT_RETURN DAT_API dat_cno_trigger(IN DAT_CNO_HANDLE cno_handle,
                                          OUT DAT_EVD_HANDLE* evd_handle);

/* ==== Memory regions ==== */

/* Registers memory; all results but the handle may be NULL. INSUFFICIENT_RESOURCES,
 * INVALID_PARAMETER, INVALID_STATE. */
extern DAT_RETURN DAT_API dat_lmr_create(
    IN DAT_IA_HANDLE ia_handle, IN DAT_MEM_TYPE mem_type,
    IN DAT_REGION_DESCRIPTION region_description, IN DAT_VLEN length, IN DAT_PZ_HANDLE pz_handle,
    IN DAT_MEM_PRIV_FLAGS mem_privileges, IN DAT_VA_TYPE va_type, OUT DAT_LMR_HANDLE* lmr_handle,
    OUT DAT_LMR_CONTEXT* lmr_context, OUT DAT_RMR_CONTEXT* rmr_context,
    OUT DAT_VLEN* registered_length, OUT DAT_VADDR* registered_address);

/* Reports parameters. INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_lmr_query(IN DAT_LMR_HANDLE lmr_handle,
                                        IN DAT_LMR_PARAM_MASK lmr_param_mask,
                                        OUT DAT_LMR_PARAM* lmr_param);

#ifdef __cplusplus
}
#endif

#endif /* VIADUCT_DAT2_UDAT_H_ */
