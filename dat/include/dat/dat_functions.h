/*
 * Viaduct: uDAPL 1.2, the functions of dat.h, which includes this file behind its types.
 *
 * Every function returns DAT_SUCCESS, DAT_INVALID_HANDLE for a bad handle, DAT_INVALID_PARAMETER
 * for a NULL where a result is written, DAT_INSUFFICIENT_RESOURCES where memory or the device has
 * no more, or one of the types listed with it (without their prefix DAT_). Time-outs are
 * microseconds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef VIADUCT_DAT_DAT_FUNCTIONS_H_
#define VIADUCT_DAT_DAT_FUNCTIONS_H_

#include <dat/dat.h>

#ifdef __cplusplus
extern "C" {
#endif

#define dat_ia_open(name, qlen, async_evd, ia)                                          \
  dat_ia_openv((name), (qlen), (async_evd), (ia), DAT_VERSION_MAJOR, DAT_VERSION_MINOR, \
               DAT_THREADSAFE)

/* ==== Interface adapter ==== */

/* Opens an adapter by name; programs call the macro dat_ia_open. An async EVD of DAT_HANDLE_NULL is
 * made here. PROVIDER_NOT_FOUND, INSUFFICIENT_RESOURCES, INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_ia_openv(IN const DAT_NAME_PTR ia_name,
                                       IN DAT_COUNT async_evd_min_qlen,
                                       IN OUT DAT_EVD_HANDLE* async_evd_handle,
                                       OUT DAT_IA_HANDLE* ia_handle, IN DAT_UINT32 dat_major,
                                       IN DAT_UINT32 dat_minor, IN DAT_BOOLEAN thread_safety);

/* Reports the attributes named by the masks; pointers that are not wanted may be NULL.
 * INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_ia_query(IN DAT_IA_HANDLE ia_handle,
                                       OUT DAT_EVD_HANDLE* async_evd_handle,
                                       IN DAT_IA_ATTR_MASK ia_attr_mask,
                                       OUT DAT_IA_ATTR* ia_attributes,
                                       IN DAT_PROVIDER_ATTR_MASK provider_attr_mask,
                                       OUT DAT_PROVIDER_ATTR* provider_attributes);

/* Closes an adapter. Abrupt: destroys all that it owns; graceful: INVALID_STATE while the
 * consumer's objects live. INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_ia_close(IN DAT_IA_HANDLE ia_handle, IN DAT_CLOSE_FLAGS ia_flags);

/* ==== Any object ==== */

/* Keeps a value of the consumer's with an object. */
extern DAT_RETURN DAT_API dat_set_consumer_context(IN DAT_HANDLE dat_handle,
                                                   IN DAT_CONTEXT context);

/* Returns it; NULL when none was set. */
extern DAT_RETURN DAT_API dat_get_consumer_context(IN DAT_HANDLE dat_handle,
                                                   OUT DAT_CONTEXT* context);

/* Says what a handle is. */
extern DAT_RETURN DAT_API dat_get_handle_type(IN DAT_HANDLE dat_handle,
                                              OUT DAT_HANDLE_TYPE* handle_type);

/* ==== Connection requests ==== */

/* Reports who asks, and the private data; all pointers end with the request. INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_cr_query(IN DAT_CR_HANDLE cr_handle,
                                       IN DAT_CR_PARAM_MASK cr_param_mask,
                                       OUT DAT_CR_PARAM* cr_param);

/* Accepts on an unconnected endpoint, or on the request's own (DAT_HANDLE_NULL). Success consumes
 * the handle; the outcome is DAT_CONNECTION_EVENT_ESTABLISHED or _ACCEPT_COMPLETION_ERROR; failure
 * has no effect, but for what dat_cr_accept(3) says of RDMA devices. INVALID_PARAMETER,
 * INVALID_STATE, INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_cr_accept(IN DAT_CR_HANDLE cr_handle, IN DAT_EP_HANDLE ep_handle,
                                        IN DAT_COUNT private_data_size,
                                        IN const DAT_PVOID private_data);

/* Rejects and consumes the request; the requester gets DAT_CONNECTION_EVENT_PEER_REJECTED. */
extern DAT_RETURN DAT_API dat_cr_reject(IN DAT_CR_HANDLE cr_handle);

/* Moves the request to another service point of the host and consumes the handle.
 * INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_cr_handoff(IN DAT_CR_HANDLE cr_handle, IN DAT_CONN_QUAL handoff);

/* ==== Event dispatchers ==== */

/* Changes the length; events stay. INVALID_STATE when it holds more. INVALID_PARAMETER,
 * INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_evd_resize(IN DAT_EVD_HANDLE evd_handle, IN DAT_COUNT evd_min_qlen);

/* Posts a software event to a dispatcher of that stream. QUEUE_FULL, INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_evd_post_se(IN DAT_EVD_HANDLE evd_handle, IN const DAT_EVENT* event);

/* Takes the oldest event; never blocks. QUEUE_EMPTY, INVALID_STATE while somebody waits. */
extern DAT_RETURN DAT_API dat_evd_dequeue(IN DAT_EVD_HANDLE evd_handle, OUT DAT_EVENT* event);

/* Reports parameters. INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_evd_query(IN DAT_EVD_HANDLE evd_handle,
                                        IN DAT_EVD_PARAM_MASK evd_param_mask,
                                        OUT DAT_EVD_PARAM* evd_param);

/* Destroys it with its events. INVALID_STATE while something feeds it. */
extern DAT_RETURN DAT_API dat_evd_free(IN DAT_EVD_HANDLE evd_handle);

/* ==== Endpoints ==== */

/* Makes an unconnected endpoint; NULL attributes: the provider's defaults. INSUFFICIENT_RESOURCES,
 * INVALID_PARAMETER, MODEL_NOT_SUPPORTED. */
extern DAT_RETURN DAT_API dat_ep_create(IN DAT_IA_HANDLE ia_handle, IN DAT_PZ_HANDLE pz_handle,
                                        IN DAT_EVD_HANDLE recv_evd_handle,
                                        IN DAT_EVD_HANDLE request_evd_handle,
                                        IN DAT_EVD_HANDLE connect_evd_handle,
                                        IN const DAT_EP_ATTR* ep_attributes,
                                        OUT DAT_EP_HANDLE* ep_handle);

/* Makes one that takes its receives from a shared receive queue. Codes of dat_ep_create. */
extern DAT_RETURN DAT_API
dat_ep_create_with_srq(IN DAT_IA_HANDLE ia_handle, IN DAT_PZ_HANDLE pz_handle,
                       IN DAT_EVD_HANDLE recv_evd_handle, IN DAT_EVD_HANDLE request_evd_handle,
                       IN DAT_EVD_HANDLE connect_evd_handle, IN DAT_SRQ_HANDLE srq_handle,
                       IN const DAT_EP_ATTR* ep_attributes, OUT DAT_EP_HANDLE* ep_handle);

/* Reports parameters. INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_ep_query(IN DAT_EP_HANDLE ep_handle,
                                       IN DAT_EP_PARAM_MASK ep_param_mask,
                                       OUT DAT_EP_PARAM* ep_param);

/* Changes parameters where the state allows it. INVALID_PARAMETER, INVALID_STATE,
 * MODEL_NOT_SUPPORTED. */
extern DAT_RETURN DAT_API dat_ep_modify(IN DAT_EP_HANDLE ep_handle,
                                        IN DAT_EP_PARAM_MASK ep_param_mask,
                                        IN const DAT_EP_PARAM* ep_param);

/* Starts to connect; timeout in microseconds, 0 is invalid. The outcome is a DAT_CONNECTION_EVENT_*
 * on the connect EVD: ESTABLISHED, PEER_REJECTED, NON_PEER_REJECTED, TIMED_OUT, UNREACHABLE.
 * INVALID_PARAMETER, INVALID_ADDRESS, INVALID_STATE, MODEL_NOT_SUPPORTED, INSUFFICIENT_RESOURCES.
 * */
extern DAT_RETURN DAT_API dat_ep_connect(IN DAT_EP_HANDLE ep_handle,
                                         IN DAT_IA_ADDRESS_PTR remote_ia_address,
                                         IN DAT_CONN_QUAL remote_conn_qual, IN DAT_TIMEOUT timeout,
                                         IN DAT_COUNT private_data_size,
                                         IN const DAT_PVOID private_data,
                                         IN DAT_QOS quality_of_service,
                                         IN DAT_CONNECT_FLAGS connect_flags);

/* Connects to where a connected endpoint is connected. Codes and events of dat_ep_connect. */
extern DAT_RETURN DAT_API dat_ep_dup_connect(IN DAT_EP_HANDLE ep_handle,
                                             IN DAT_EP_HANDLE dup_ep_handle, IN DAT_TIMEOUT timeout,
                                             IN DAT_COUNT private_data_size,
                                             IN const DAT_PVOID private_data,
                                             IN DAT_QOS quality_of_service);

/* Disconnects; graceful: after the posted requests, abrupt: at once. Ends with
 * DAT_CONNECTION_EVENT_DISCONNECTED. INVALID_STATE, INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_ep_disconnect(IN DAT_EP_HANDLE ep_handle,
                                            IN DAT_CLOSE_FLAGS disconnect_flags);

/* Reports state and whether work is outstanding; pointers may be NULL. */
extern DAT_RETURN DAT_API dat_ep_get_status(IN DAT_EP_HANDLE ep_handle, OUT DAT_EP_STATE* ep_state,
                                            OUT DAT_BOOLEAN* recv_idle,
                                            OUT DAT_BOOLEAN* request_idle);

/* Makes a disconnected endpoint unconnected again. INVALID_STATE. */
extern DAT_RETURN DAT_API dat_ep_reset(IN DAT_EP_HANDLE ep_handle);

/* Destroys it and its connection. INVALID_STATE while a service point or a request owns it. */
extern DAT_RETURN DAT_API dat_ep_free(IN DAT_EP_HANDLE ep_handle);

/* Counts the receives that are posted, or taken from a shared queue, and have not completed. */
extern DAT_RETURN DAT_API dat_ep_recv_query(IN DAT_EP_HANDLE ep_handle,
                                            OUT DAT_COUNT* nbufs_allocated,
                                            OUT DAT_COUNT* bufs_alloc_span);

/* Limits the receives that messages have taken, of the endpoint's own or of a shared queue, and
 * whose events were not dequeued yet: more than soft_high_watermark is told on the asynchronous
 * dispatcher, more than hard_high_watermark breaks the connection; DAT_WATERMARK_INFINITE.
 * INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_ep_set_watermark(IN DAT_EP_HANDLE ep_handle,
                                               IN DAT_COUNT soft_high_watermark,
                                               IN DAT_COUNT hard_high_watermark);

/* ==== Data transfer: none of these blocks; completions go to the request EVD or the recv EVD ====
 */

/* Sends a message. INVALID_STATE unless connected or disconnected (flushed),
 * INSUFFICIENT_RESOURCES, INVALID_PARAMETER, LENGTH_ERROR. */
extern DAT_RETURN DAT_API dat_ep_post_send(IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT num_segments,
                                           IN DAT_LMR_TRIPLET* local_iov,
                                           IN DAT_DTO_COOKIE user_cookie,
                                           IN DAT_COMPLETION_FLAGS completion_flags);

/* Posts a receive, in every state. INVALID_STATE without a zone, or where a shared receive queue
 * has the receives; INVALID_PARAMETER, LENGTH_ERROR. */
extern DAT_RETURN DAT_API dat_ep_post_recv(IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT num_segments,
                                           IN DAT_LMR_TRIPLET* local_iov,
                                           IN DAT_DTO_COOKIE user_cookie,
                                           IN DAT_COMPLETION_FLAGS completion_flags);

/* Reads remote memory. Codes of dat_ep_post_send. */
extern DAT_RETURN DAT_API dat_ep_post_rdma_read(IN DAT_EP_HANDLE ep_handle,
                                                IN DAT_COUNT num_segments,
                                                IN DAT_LMR_TRIPLET* local_iov,
                                                IN DAT_DTO_COOKIE user_cookie,
                                                IN const DAT_RMR_TRIPLET* remote_iov,
                                                IN DAT_COMPLETION_FLAGS completion_flags);

/* Writes remote memory. Codes of dat_ep_post_send. */
extern DAT_RETURN DAT_API dat_ep_post_rdma_write(IN DAT_EP_HANDLE ep_handle,
                                                 IN DAT_COUNT num_segments,
                                                 IN DAT_LMR_TRIPLET* local_iov,
                                                 IN DAT_DTO_COOKIE user_cookie,
                                                 IN const DAT_RMR_TRIPLET* remote_iov,
                                                 IN DAT_COMPLETION_FLAGS completion_flags);

/* ==== Memory regions ==== */

/* Ends the registration. INVALID_STATE while a window is bound to it. */
extern DAT_RETURN DAT_API dat_lmr_free(IN DAT_LMR_HANDLE lmr_handle);

/* Makes local stores visible to incoming RDMA reads. INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_lmr_sync_rdma_read(IN DAT_IA_HANDLE ia_handle,
                                                 IN const DAT_LMR_TRIPLET* local_segments,
                                                 IN DAT_VLEN num_segments);

/* Makes incoming RDMA writes visible to local loads. INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_lmr_sync_rdma_write(IN DAT_IA_HANDLE ia_handle,
                                                  IN const DAT_LMR_TRIPLET* local_segments,
                                                  IN DAT_VLEN num_segments);

/* ==== Memory windows ==== */

/* Makes an unbound window. INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_rmr_create(IN DAT_PZ_HANDLE pz_handle,
                                         OUT DAT_RMR_HANDLE* rmr_handle);

/* Reports parameters. INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_rmr_query(IN DAT_RMR_HANDLE rmr_handle,
                                        IN DAT_RMR_PARAM_MASK rmr_param_mask,
                                        OUT DAT_RMR_PARAM* rmr_param);

/* Binds a window to a part of a region (length 0: unbinds); completes with
 * DAT_RMR_BIND_COMPLETION_EVENT. INVALID_STATE, INVALID_PARAMETER, PROTECTION_VIOLATION,
 * PRIVILEGES_VIOLATION, INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_rmr_bind(IN DAT_RMR_HANDLE rmr_handle,
                                       IN const DAT_LMR_TRIPLET* lmr_triplet,
                                       IN DAT_MEM_PRIV_FLAGS mem_privileges,
                                       IN DAT_EP_HANDLE ep_handle, IN DAT_RMR_COOKIE user_cookie,
                                       IN DAT_COMPLETION_FLAGS completion_flags,
                                       OUT DAT_RMR_CONTEXT* rmr_context);

/* Destroys a window, bound or not. */
extern DAT_RETURN DAT_API dat_rmr_free(IN DAT_RMR_HANDLE rmr_handle);

/* ==== Service points ==== */

/* Listens on a qualifier; requests arrive as DAT_CONNECTION_REQUEST_EVENT. CONN_QUAL_IN_USE,
 * CONN_QUAL_UNAVAILABLE, INSUFFICIENT_RESOURCES, INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_psp_create(IN DAT_IA_HANDLE ia_handle, IN DAT_CONN_QUAL conn_qual,
                                         IN DAT_EVD_HANDLE evd_handle, IN DAT_PSP_FLAGS psp_flags,
                                         OUT DAT_PSP_HANDLE* psp_handle);

/* Listens on a free qualifier, which it returns. CONN_QUAL_UNAVAILABLE,
 * INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_psp_create_any(IN DAT_IA_HANDLE ia_handle,
                                             OUT DAT_CONN_QUAL* conn_qual,
                                             IN DAT_EVD_HANDLE evd_handle,
                                             IN DAT_PSP_FLAGS psp_flags,
                                             OUT DAT_PSP_HANDLE* psp_handle);

/* Reports parameters. INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_psp_query(IN DAT_PSP_HANDLE psp_handle,
                                        IN DAT_PSP_PARAM_MASK psp_param_mask,
                                        OUT DAT_PSP_PARAM* psp_param);

/* Stops listening; requests that have arrived stay valid. */
extern DAT_RETURN DAT_API dat_psp_free(IN DAT_PSP_HANDLE psp_handle);

/* Listens for one request, for one endpoint. CONN_QUAL_IN_USE, CONN_QUAL_UNAVAILABLE,
 * INVALID_STATE, INSUFFICIENT_RESOURCES, INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_rsp_create(IN DAT_IA_HANDLE ia_handle, IN DAT_CONN_QUAL conn_qual,
                                         IN DAT_EP_HANDLE ep_handle, IN DAT_EVD_HANDLE evd_handle,
                                         OUT DAT_RSP_HANDLE* rsp_handle);

/* Reports parameters. INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_rsp_query(IN DAT_RSP_HANDLE rsp_handle,
                                        IN DAT_RSP_PARAM_MASK rsp_param_mask,
                                        OUT DAT_RSP_PARAM* rsp_param);

/* Stops listening; the endpoint is unconnected again. */
extern DAT_RETURN DAT_API dat_rsp_free(IN DAT_RSP_HANDLE rsp_handle);

/* ==== Protection zones ==== */

/* Makes a zone. INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_pz_create(IN DAT_IA_HANDLE ia_handle, OUT DAT_PZ_HANDLE* pz_handle);

/* Reports parameters. INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_pz_query(IN DAT_PZ_HANDLE pz_handle,
                                       IN DAT_PZ_PARAM_MASK pz_param_mask,
                                       OUT DAT_PZ_PARAM* pz_param);

/* Destroys it. INVALID_STATE while something uses it. */
extern DAT_RETURN DAT_API dat_pz_free(IN DAT_PZ_HANDLE pz_handle);

/* ==== Shared receive queues ==== */

/* Makes a queue of at least that size. INSUFFICIENT_RESOURCES, INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_srq_create(IN DAT_IA_HANDLE ia_handle, IN DAT_PZ_HANDLE pz_handle,
                                         IN DAT_SRQ_ATTR* srq_attr, OUT DAT_SRQ_HANDLE* srq_handle);

/* Reports parameters; counts may be DAT_VALUE_UNKNOWN. INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_srq_query(IN DAT_SRQ_HANDLE srq_handle,
                                        IN DAT_SRQ_PARAM_MASK srq_param_mask,
                                        OUT DAT_SRQ_PARAM* srq_param);

/* Changes its size. INVALID_STATE when more is outstanding. INSUFFICIENT_RESOURCES,
 * INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_srq_resize(IN DAT_SRQ_HANDLE srq_handle,
                                         IN DAT_COUNT srq_max_recv_dto);

/* Asks for one event when fewer receives are available. INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_srq_set_lw(IN DAT_SRQ_HANDLE srq_handle, IN DAT_COUNT low_watermark);

/* Posts a receive; never blocks. INVALID_PARAMETER, LENGTH_ERROR. */
extern DAT_RETURN DAT_API dat_srq_post_recv(IN DAT_SRQ_HANDLE srq_handle, IN DAT_COUNT num_segments,
                                            IN DAT_LMR_TRIPLET* local_iov,
                                            IN DAT_DTO_COOKIE user_cookie);

/* Destroys it. INVALID_STATE while an endpoint uses it. */
extern DAT_RETURN DAT_API dat_srq_free(IN DAT_SRQ_HANDLE srq_handle);

/* ==== Registry and errors ==== */

/* Fills the caller's entries with the adapters known. INVALID_PARAMETER when there are too few:
 * entries_returned says how many it takes. */
extern DAT_RETURN DAT_API dat_registry_list_providers(IN DAT_COUNT max_to_return,
                                                      OUT DAT_COUNT* entries_returned,
                                                      OUT DAT_PROVIDER_INFO*(dat_provider_list[]));

/* Names the type and the subtype of a return value; "" when there is no subtype. INVALID_PARAMETER
 * for an unknown value. */
extern DAT_RETURN DAT_API dat_strerror(IN DAT_RETURN value, OUT const char** major_message,
                                       OUT const char** minor_message);

#ifdef __cplusplus
}
#endif

#endif /* VIADUCT_DAT_DAT_FUNCTIONS_H_ */
