/*
 * Viaduct: uDAPL 1.2, the functions of dat.h, which includes this file after its types.
 *
 * Every function returns DAT_SUCCESS or one of the types listed with it, without their prefix DAT_.
 * It may also return DAT_INVALID_HANDLE for a bad handle, DAT_INVALID_PARAMETER for a NULL pointer
 * where a result is written, and DAT_INSUFFICIENT_RESOURCES if memory or a resource of the device
 * has run out. A handle may be DAT_HANDLE_NULL, and a pointer NULL, only if the comment says so;
 * but private data and segments may be NULL if there are none. Private data is copied. Any thread
 * may call any function.
 *
 * A query fills in all members of its structure, whatever its mask says. The mask must have no
 * unknown bits. Time-outs are in microseconds; DAT_TIMEOUT_INFINITE means no limit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef VIADUCT_DAT_DAT_FUNCTIONS_H_
#define VIADUCT_DAT_DAT_FUNCTIONS_H_

#include <dat/dat.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Programs call dat_ia_openv by this macro. */
#define dat_ia_open(name, qlen, async_evd, ia)                                          \
  dat_ia_openv((name), (qlen), (async_evd), (ia), DAT_VERSION_MAJOR, DAT_VERSION_MINOR, \
               DAT_THREADSAFE)

/* ==== Interface adapter ==== */

/* Opens an adapter by its name. If *async_evd_handle is DAT_HANDLE_NULL, a dispatcher for
 * asynchronous errors of at least async_evd_min_qlen events is made and returned there; it ends
 * with the adapter. Otherwise *async_evd_handle is a dispatcher for DAT_EVD_ASYNC_FLAG, or
 * DAT_EVD_ASYNC_EXISTS. Codes: PROVIDER_NOT_FOUND, INVALID_PARAMETER, INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_ia_openv(IN const DAT_NAME_PTR ia_name,
                                       IN DAT_COUNT async_evd_min_qlen,
                                       IN OUT DAT_EVD_HANDLE* async_evd_handle,
                                       OUT DAT_IA_HANDLE* ia_handle, IN DAT_UINT32 dat_major,
                                       IN DAT_UINT32 dat_minor, IN DAT_BOOLEAN thread_safety);

/* Reports the attributes of an adapter and of its provider, each if its mask is not 0.
 * async_evd_handle, and the structure whose mask is 0, may be NULL. Code: INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_ia_query(IN DAT_IA_HANDLE ia_handle,
                                       OUT DAT_EVD_HANDLE* async_evd_handle,
                                       IN DAT_IA_ATTR_MASK ia_attr_mask,
                                       OUT DAT_IA_ATTR* ia_attributes,
                                       IN DAT_PROVIDER_ATTR_MASK provider_attr_mask,
                                       OUT DAT_PROVIDER_ATTR* provider_attributes);

/* Closes an adapter. DAT_CLOSE_ABRUPT_FLAG destroys everything that was made with it, and waits on
 * its dispatchers end with DAT_ABORT. Codes: INVALID_STATE (DAT_CLOSE_GRACEFUL_FLAG was given, and
 * the program has not freed all of its objects), INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_ia_close(IN DAT_IA_HANDLE ia_handle, IN DAT_CLOSE_FLAGS ia_flags);

/* ==== Any object ==== */

/* Stores a value of the program's own with an object of any type, in place of the one before. */
extern DAT_RETURN DAT_API dat_set_consumer_context(IN DAT_HANDLE dat_handle,
                                                   IN DAT_CONTEXT context);

/* Returns the value that was stored with an object, or 0 if none was. */
extern DAT_RETURN DAT_API dat_get_consumer_context(IN DAT_HANDLE dat_handle,
                                                   OUT DAT_CONTEXT* context);

/* Reports the type of an object. */
extern DAT_RETURN DAT_API dat_get_handle_type(IN DAT_HANDLE dat_handle,
                                              OUT DAT_HANDLE_TYPE* handle_type);

/* ==== Connection requests ==== */

/* Reports who asks, the private data, and the request's own endpoint if it has one. The pointers
 * are valid as long as the request. Code: INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_cr_query(IN DAT_CR_HANDLE cr_handle,
                                       IN DAT_CR_PARAM_MASK cr_param_mask,
                                       OUT DAT_CR_PARAM* cr_param);

/* Accepts a request on an unconnected endpoint; if the request has an endpoint of its own,
 * ep_handle must be DAT_HANDLE_NULL. Success ends cr_handle, and
 * DAT_CONNECTION_EVENT_ESTABLISHED or _ACCEPT_COMPLETION_ERROR tells the outcome. A failure has no
 * effect, with one exception for RDMA devices that dat_cr_accept(3) describes. Codes:
 * INVALID_PARAMETER, INVALID_STATE, INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_cr_accept(IN DAT_CR_HANDLE cr_handle, IN DAT_EP_HANDLE ep_handle,
                                        IN DAT_COUNT private_data_size,
                                        IN const DAT_PVOID private_data);

/* Rejects a request and ends cr_handle; the requester gets DAT_CONNECTION_EVENT_PEER_REJECTED. */
extern DAT_RETURN DAT_API dat_cr_reject(IN DAT_CR_HANDLE cr_handle);

/* Moves a request to the service point of this host that has the qualifier handoff, and ends
 * cr_handle. Codes: INVALID_PARAMETER (no such service point takes the request),
 * INSUFFICIENT_RESOURCES (its dispatcher is full); in both cases the request stays. */
extern DAT_RETURN DAT_API dat_cr_handoff(IN DAT_CR_HANDLE cr_handle, IN DAT_CONN_QUAL handoff);

/* ==== Event dispatchers ==== */

/* Changes the length of a dispatcher, which is a number of events; no event is lost. Codes:
 * INVALID_STATE (more events are queued, or a thread waits for more), INVALID_PARAMETER,
 * INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_evd_resize(IN DAT_EVD_HANDLE evd_handle, IN DAT_COUNT evd_min_qlen);

/* Queues a copy of a software event. Codes: QUEUE_FULL, INVALID_PARAMETER (the dispatcher is not
 * for DAT_EVD_SOFTWARE_FLAG, or event_number is not DAT_SOFTWARE_EVENT). */
extern DAT_RETURN DAT_API dat_evd_post_se(IN DAT_EVD_HANDLE evd_handle, IN const DAT_EVENT* event);

/* Takes the oldest event; never blocks. Codes: QUEUE_EMPTY, INVALID_STATE (a thread waits on the
 * dispatcher). */
extern DAT_RETURN DAT_API dat_evd_dequeue(IN DAT_EVD_HANDLE evd_handle, OUT DAT_EVENT* event);

/* Reports the parameters of a dispatcher. Code: INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_evd_query(IN DAT_EVD_HANDLE evd_handle,
                                        IN DAT_EVD_PARAM_MASK evd_param_mask,
                                        OUT DAT_EVD_PARAM* evd_param);

/* Destroys a dispatcher and its events; a connection request among them is refused. Code:
 * INVALID_STATE (an object feeds the dispatcher, or a thread waits on it). */
extern DAT_RETURN DAT_API dat_evd_free(IN DAT_EVD_HANDLE evd_handle);

/* ==== Endpoints ==== */

/* Makes an unconnected endpoint. The zone and each dispatcher may be DAT_HANDLE_NULL, and
 * dat_ep_modify can set them later. NULL ep_attributes means the defaults. Codes:
 * INVALID_PARAMETER, MODEL_NOT_SUPPORTED (the service type or the quality of service),
 * INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_ep_create(IN DAT_IA_HANDLE ia_handle, IN DAT_PZ_HANDLE pz_handle,
                                        IN DAT_EVD_HANDLE recv_evd_handle,
                                        IN DAT_EVD_HANDLE request_evd_handle,
                                        IN DAT_EVD_HANDLE connect_evd_handle,
                                        IN const DAT_EP_ATTR* ep_attributes,
                                        OUT DAT_EP_HANDLE* ep_handle);

/* Makes an endpoint as dat_ep_create does, which takes its receives from a shared receive queue.
 * ep_attributes must not be NULL; what they say of the number of receives and of their segments is
 * ignored. Codes of dat_ep_create. */
extern DAT_RETURN DAT_API
dat_ep_create_with_srq(IN DAT_IA_HANDLE ia_handle, IN DAT_PZ_HANDLE pz_handle,
                       IN DAT_EVD_HANDLE recv_evd_handle, IN DAT_EVD_HANDLE request_evd_handle,
                       IN DAT_EVD_HANDLE connect_evd_handle, IN DAT_SRQ_HANDLE srq_handle,
                       IN const DAT_EP_ATTR* ep_attributes, OUT DAT_EP_HANDLE* ep_handle);

/* Reports the parameters of an endpoint. Code: INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_ep_query(IN DAT_EP_HANDLE ep_handle,
                                       IN DAT_EP_PARAM_MASK ep_param_mask,
                                       OUT DAT_EP_PARAM* ep_param);

/* Changes the parameters that the mask names. Codes: INVALID_PARAMETER (also for what cannot be
 * changed), INVALID_STATE (the endpoint's state does not allow this change), MODEL_NOT_SUPPORTED,
 * INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_ep_modify(IN DAT_EP_HANDLE ep_handle,
                                        IN DAT_EP_PARAM_MASK ep_param_mask,
                                        IN const DAT_EP_PARAM* ep_param);

/* Starts to connect an unconnected endpoint to the service point remote_conn_qual of a host, and
 * returns. A timeout of 0 is invalid. A DAT_CONNECTION_EVENT_* on the
 * connect dispatcher tells the outcome: ESTABLISHED, PEER_REJECTED, NON_PEER_REJECTED, TIMED_OUT or
 * UNREACHABLE. Codes: INVALID_PARAMETER, INVALID_ADDRESS, INVALID_STATE (the endpoint is not
 * unconnected, or has no zone), MODEL_NOT_SUPPORTED (the quality of service, or multipath),
 * INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_ep_connect(IN DAT_EP_HANDLE ep_handle,
                                         IN DAT_IA_ADDRESS_PTR remote_ia_address,
                                         IN DAT_CONN_QUAL remote_conn_qual, IN DAT_TIMEOUT timeout,
                                         IN DAT_COUNT private_data_size,
                                         IN const DAT_PVOID private_data,
                                         IN DAT_QOS quality_of_service,
                                         IN DAT_CONNECT_FLAGS connect_flags);

/* Starts to connect ep_handle to where dup_ep_handle, a connected endpoint of the same adapter, is
 * connected. Codes and events of dat_ep_connect. */
extern DAT_RETURN DAT_API dat_ep_dup_connect(IN DAT_EP_HANDLE ep_handle,
                                             IN DAT_EP_HANDLE dup_ep_handle, IN DAT_TIMEOUT timeout,
                                             IN DAT_COUNT private_data_size,
                                             IN const DAT_PVOID private_data,
                                             IN DAT_QOS quality_of_service);

/* Ends a connection or an attempt to connect: at once with DAT_CLOSE_ABRUPT_FLAG, after the posted
 * requests with DAT_CLOSE_GRACEFUL_FLAG (an attempt: at once). DAT_CONNECTION_EVENT_DISCONNECTED
 * follows, except for an endpoint that is disconnected already. Codes: INVALID_STATE (there is
 * nothing to end), INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_ep_disconnect(IN DAT_EP_HANDLE ep_handle,
                                            IN DAT_CLOSE_FLAGS disconnect_flags);

/* Reports the state, and for receives and for requests whether none is outstanding (DAT_TRUE). Each
 * result pointer may be NULL. */
extern DAT_RETURN DAT_API dat_ep_get_status(IN DAT_EP_HANDLE ep_handle, OUT DAT_EP_STATE* ep_state,
                                            OUT DAT_BOOLEAN* recv_idle,
                                            OUT DAT_BOOLEAN* request_idle);

/* Makes a disconnected endpoint unconnected, so that it can connect again. Code: INVALID_STATE (the
 * endpoint is neither disconnected nor unconnected). */
extern DAT_RETURN DAT_API dat_ep_reset(IN DAT_EP_HANDLE ep_handle);

/* Destroys an endpoint and ends its connection. Code: INVALID_STATE (the endpoint is reserved, or
 * belongs to a request that waits for an answer). */
extern DAT_RETURN DAT_API dat_ep_free(IN DAT_EP_HANDLE ep_handle);

/* Counts the receives that are posted, or taken from a shared queue, and have not completed. Both
 * results are the same number; each result pointer may be NULL. */
extern DAT_RETURN DAT_API dat_ep_recv_query(IN DAT_EP_HANDLE ep_handle,
                                            OUT DAT_COUNT* nbufs_allocated,
                                            OUT DAT_COUNT* bufs_alloc_span);

/* Limits the number of receives, of the endpoint's own or of a shared queue, that messages have
 * taken and whose events the program has not taken yet. Above soft_high_watermark
 * DAT_ASYNC_ERROR_EP_BROKEN comes once, with the reason DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT; above
 * hard_high_watermark the connection breaks. DAT_WATERMARK_INFINITE means no limit. Code:
 * INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_ep_set_watermark(IN DAT_EP_HANDLE ep_handle,
                                               IN DAT_COUNT soft_high_watermark,
                                               IN DAT_COUNT hard_high_watermark);

/* ==== Data transfer ==== */

/*
 * None of these functions blocks. The completion of a receive comes on the endpoint's dispatcher
 * for receives, any other on its dispatcher for requests. Until then the memory of the segments
 * belongs to the library. The arrays local_iov and remote_iov are copied.
 */

/* Sends the bytes of the segments as one message, which is flushed if the endpoint is disconnected.
 * Codes: INVALID_STATE (the endpoint is neither connected nor disconnected, or has no zone),
 * INVALID_PARAMETER, LENGTH_ERROR (the message is longer than max_message_size, or in 1.2 a segment
 * has 4 GiB or more), INSUFFICIENT_RESOURCES (too many requests are outstanding). */
extern DAT_RETURN DAT_API dat_ep_post_send(IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT num_segments,
                                           IN DAT_LMR_TRIPLET* local_iov,
                                           IN DAT_DTO_COOKIE user_cookie,
                                           IN DAT_COMPLETION_FLAGS completion_flags);

/* Posts a receive, in every state; it is flushed if the endpoint is disconnected. Codes:
 * INVALID_STATE (the endpoint has no zone, or takes its receives from a shared queue),
 * INVALID_PARAMETER, LENGTH_ERROR (in 1.2 a segment has 4 GiB or more), INSUFFICIENT_RESOURCES (too
 * many receives are outstanding). */
extern DAT_RETURN DAT_API dat_ep_post_recv(IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT num_segments,
                                           IN DAT_LMR_TRIPLET* local_iov,
                                           IN DAT_DTO_COOKIE user_cookie,
                                           IN DAT_COMPLETION_FLAGS completion_flags);

/* Reads all of the remote segment into the local segments. Codes of dat_ep_post_send, with
 * LENGTH_ERROR if the remote segment is longer than the local ones. */
extern DAT_RETURN DAT_API dat_ep_post_rdma_read(IN DAT_EP_HANDLE ep_handle,
                                                IN DAT_COUNT num_segments,
                                                IN DAT_LMR_TRIPLET* local_iov,
                                                IN DAT_DTO_COOKIE user_cookie,
                                                IN const DAT_RMR_TRIPLET* remote_iov,
                                                IN DAT_COMPLETION_FLAGS completion_flags);

/* Writes the bytes of the local segments to the beginning of the remote segment. Codes of
 * dat_ep_post_send, with LENGTH_ERROR if the local segments are longer than the remote one. */
extern DAT_RETURN DAT_API dat_ep_post_rdma_write(IN DAT_EP_HANDLE ep_handle,
                                                 IN DAT_COUNT num_segments,
                                                 IN DAT_LMR_TRIPLET* local_iov,
                                                 IN DAT_DTO_COOKIE user_cookie,
                                                 IN const DAT_RMR_TRIPLET* remote_iov,
                                                 IN DAT_COMPLETION_FLAGS completion_flags);

/* ==== Memory regions ==== */

/* Ends a registration; the memory stays the program's. Code: INVALID_STATE (a window is bound to
 * the memory). */
extern DAT_RETURN DAT_API dat_lmr_free(IN DAT_LMR_HANDLE lmr_handle);

/* Makes local stores visible to RDMA reads of peers. Here they are visible at once, so the function
 * only checks the segments. Code: INVALID_PARAMETER (a segment is not within registered memory of
 * the adapter). */
extern DAT_RETURN DAT_API dat_lmr_sync_rdma_read(IN DAT_IA_HANDLE ia_handle,
                                                 IN const DAT_LMR_TRIPLET* local_segments,
                                                 IN DAT_VLEN num_segments);

/* Makes RDMA writes of peers visible to local loads. Here they are visible at once, so the function
 * only checks the segments. Code: INVALID_PARAMETER (as for dat_lmr_sync_rdma_read). */
extern DAT_RETURN DAT_API dat_lmr_sync_rdma_write(IN DAT_IA_HANDLE ia_handle,
                                                  IN const DAT_LMR_TRIPLET* local_segments,
                                                  IN DAT_VLEN num_segments);

/* ==== Memory windows ==== */

/* Makes a window, which is not bound yet, for every endpoint of the zone. Code:
 * INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_rmr_create(IN DAT_PZ_HANDLE pz_handle,
                                         OUT DAT_RMR_HANDLE* rmr_handle);

/* Reports the parameters of a window; those of the binding are 0 if there is none. Code:
 * INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_rmr_query(IN DAT_RMR_HANDLE rmr_handle,
                                        IN DAT_RMR_PARAM_MASK rmr_param_mask,
                                        OUT DAT_RMR_PARAM* rmr_param);

/* Posts a request that binds a window to a range of registered memory, with the remote privileges
 * in mem_privileges; a range of 0 bytes only ends the earlier binding. *rmr_context receives the
 * context for the peer; the pointer may be NULL. DAT_RMR_BIND_COMPLETION_EVENT tells the outcome.
 * Codes: INVALID_STATE, INVALID_PARAMETER, PROTECTION_VIOLATION (window, endpoint and memory do not
 * belong to one zone), PRIVILEGES_VIOLATION (the memory lacks local privileges),
 * INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_rmr_bind(IN DAT_RMR_HANDLE rmr_handle,
                                       IN const DAT_LMR_TRIPLET* lmr_triplet,
                                       IN DAT_MEM_PRIV_FLAGS mem_privileges,
                                       IN DAT_EP_HANDLE ep_handle, IN DAT_RMR_COOKIE user_cookie,
                                       IN DAT_COMPLETION_FLAGS completion_flags,
                                       OUT DAT_RMR_CONTEXT* rmr_context);

/* Ends the binding of a window, if there is one, and destroys the window. */
extern DAT_RETURN DAT_API dat_rmr_free(IN DAT_RMR_HANDLE rmr_handle);

/* ==== Service points ==== */

/* Listens on a qualifier. Requests come as DAT_CONNECTION_REQUEST_EVENT on the dispatcher, whose
 * length is the backlog. Codes: CONN_QUAL_IN_USE, CONN_QUAL_UNAVAILABLE (the adapter has lost its
 * address, or may not listen),
 * INVALID_PARAMETER, INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_psp_create(IN DAT_IA_HANDLE ia_handle, IN DAT_CONN_QUAL conn_qual,
                                         IN DAT_EVD_HANDLE evd_handle, IN DAT_PSP_FLAGS psp_flags,
                                         OUT DAT_PSP_HANDLE* psp_handle);

/* Listens as dat_psp_create does, on a free qualifier, which is returned in *conn_qual. Codes:
 * CONN_QUAL_UNAVAILABLE (also if none is free), INVALID_PARAMETER, INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_psp_create_any(IN DAT_IA_HANDLE ia_handle,
                                             OUT DAT_CONN_QUAL* conn_qual,
                                             IN DAT_EVD_HANDLE evd_handle,
                                             IN DAT_PSP_FLAGS psp_flags,
                                             OUT DAT_PSP_HANDLE* psp_handle);

/* Reports the parameters of a public service point. Code: INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_psp_query(IN DAT_PSP_HANDLE psp_handle,
                                        IN DAT_PSP_PARAM_MASK psp_param_mask,
                                        OUT DAT_PSP_PARAM* psp_param);

/* Stops listening; requests that have come stay valid. */
extern DAT_RETURN DAT_API dat_psp_free(IN DAT_PSP_HANDLE psp_handle);

/* Listens for one request, for which it reserves an unconnected endpoint; the service point ends
 * when the request comes. If ep_handle is DAT_HANDLE_NULL, the library makes the endpoint:
 * dat_rsp_query shows it, and the program has to free it. Codes: CONN_QUAL_IN_USE,
 * CONN_QUAL_UNAVAILABLE, INVALID_STATE (the endpoint is not unconnected), INVALID_PARAMETER,
 * INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_rsp_create(IN DAT_IA_HANDLE ia_handle, IN DAT_CONN_QUAL conn_qual,
                                         IN DAT_EP_HANDLE ep_handle, IN DAT_EVD_HANDLE evd_handle,
                                         OUT DAT_RSP_HANDLE* rsp_handle);

/* Reports the parameters of a reserved service point. Code: INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_rsp_query(IN DAT_RSP_HANDLE rsp_handle,
                                        IN DAT_RSP_PARAM_MASK rsp_param_mask,
                                        OUT DAT_RSP_PARAM* rsp_param);

/* Stops listening; the endpoint, if it is still reserved, is unconnected again. */
extern DAT_RETURN DAT_API dat_rsp_free(IN DAT_RSP_HANDLE rsp_handle);

/* ==== Protection zones ==== */

/* Makes a protection zone. Code: INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_pz_create(IN DAT_IA_HANDLE ia_handle, OUT DAT_PZ_HANDLE* pz_handle);

/* Reports the adapter of a zone. Code: INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_pz_query(IN DAT_PZ_HANDLE pz_handle,
                                       IN DAT_PZ_PARAM_MASK pz_param_mask,
                                       OUT DAT_PZ_PARAM* pz_param);

/* Destroys a zone. Code: INVALID_STATE (the zone still has endpoints, memory, windows or shared
 * receive queues). */
extern DAT_RETURN DAT_API dat_pz_free(IN DAT_PZ_HANDLE pz_handle);

/* ==== Shared receive queues ==== */

/* Makes a shared receive queue. Codes: INVALID_PARAMETER, INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_srq_create(IN DAT_IA_HANDLE ia_handle, IN DAT_PZ_HANDLE pz_handle,
                                         IN DAT_SRQ_ATTR* srq_attr, OUT DAT_SRQ_HANDLE* srq_handle);

/* Reports the parameters of a shared receive queue. Code: INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_srq_query(IN DAT_SRQ_HANDLE srq_handle,
                                        IN DAT_SRQ_PARAM_MASK srq_param_mask,
                                        OUT DAT_SRQ_PARAM* srq_param);

/* Changes the length of a shared receive queue. Codes: INVALID_STATE (more receives are
 * outstanding, or the low watermark is higher), INVALID_PARAMETER, INSUFFICIENT_RESOURCES. */
extern DAT_RETURN DAT_API dat_srq_resize(IN DAT_SRQ_HANDLE srq_handle,
                                         IN DAT_COUNT srq_max_recv_dto);

/* Asks for one DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, with the reason
 * DAT_SRQ_LOW_WATERMARK_EVENT, as soon as fewer receives than low_watermark are left; 0 asks for
 * none. Code: INVALID_PARAMETER. */
extern DAT_RETURN DAT_API dat_srq_set_lw(IN DAT_SRQ_HANDLE srq_handle, IN DAT_COUNT low_watermark);

/* Posts a receive to a shared receive queue; never blocks. The completion comes on the dispatcher
 * for receives of the endpoint whose message takes it. Codes: INVALID_PARAMETER, LENGTH_ERROR (in
 * 1.2 a segment has 4 GiB or more), INSUFFICIENT_RESOURCES (the queue is full). */
extern DAT_RETURN DAT_API dat_srq_post_recv(IN DAT_SRQ_HANDLE srq_handle, IN DAT_COUNT num_segments,
                                            IN DAT_LMR_TRIPLET* local_iov,
                                            IN DAT_DTO_COOKIE user_cookie);

/* Destroys a shared receive queue with its receives. Code: INVALID_STATE (endpoints use it). */
extern DAT_RETURN DAT_API dat_srq_free(IN DAT_SRQ_HANDLE srq_handle);

/* ==== Registry and errors ==== */

/* Lists the adapters that can be opened. The array has max_to_return pointers to structures of the
 * caller's; *entries_returned receives the number of adapters. Code: INVALID_PARAMETER (there are
 * more adapters than max_to_return: only *entries_returned is set). */
extern DAT_RETURN DAT_API dat_registry_list_providers(IN DAT_COUNT max_to_return,
                                                      OUT DAT_COUNT* entries_returned,
                                                      OUT DAT_PROVIDER_INFO*(dat_provider_list[]));

/* Returns the names of the type and of the subtype ("" if there is none) of a return value. The
 * strings belong to the library. minor_message may be NULL. Code: INVALID_PARAMETER (this
 * version has no such value). */
extern DAT_RETURN DAT_API dat_strerror(IN DAT_RETURN value, OUT const char** major_message,
                                       OUT const char** minor_message);

#ifdef __cplusplus
}
#endif

#endif /* VIADUCT_DAT_DAT_FUNCTIONS_H_ */
