/* Every macro of dat_ib_extensions.h, as a program uses it. */
#include <dat2/dat_ib_extensions.h>

static int progress(void) { return 0; }

static DAT_RETURN transfers(DAT_EP_HANDLE ep, DAT_LMR_TRIPLET* local, DAT_RMR_TRIPLET* remote,
                            DAT_IB_ADDR_HANDLE* address) {
  DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG;
  DAT_DTO_COOKIE cookie;
  DAT_RETURN result;

  cookie.as_64 = 7;
  result = dat_ib_post_fetch_and_add(ep, 1, local, cookie, remote, flags);
  result |= dat_ib_post_cmp_and_swap(ep, 1, 2, local, cookie, remote, flags);
  result |= dat_ib_post_rdma_write_immed(ep, 1, local, cookie, remote, 0x77, flags);
  result |= dat_ib_post_send_ud(ep, 1, local, address, cookie, flags);
  result |= dat_ib_post_recv_ud(ep, 1, local, cookie, flags);
  result |= dat_ib_ud_cm_free(ep, cookie);
  result |= dat_ib_ud_ah_free(ep, address);
  return result;
}

static DAT_RETURN counters(DAT_IA_HANDLE ia, DAT_EP_HANDLE ep) {
  DAT_UINT64 values[DCNT_IA_ALL_COUNTERS];
  DAT_RETURN result = dat_query_counters(ia, DCNT_IA_ALL_COUNTERS, values, 0);
  result |= dat_ib_query_counters(ep, DCNT_EP_CONNECT, values, 1);
  result |= dat_print_counters(ep, DCNT_EP_ALL_COUNTERS, 0);
  result |= dat_ib_start_counter(ia, DCNT_IA_CM);
  result |= dat_ib_stop_counter(ia, DCNT_IA_CM);
  return result;
}

static DAT_RETURN queries(char* name) {
  DAT_HANDLE ia;
  DAT_IA_ATTR adapter;
  DAT_PROVIDER_ATTR provider;
  DAT_RETURN result =
      dat_ib_open_query(name, &ia, DAT_IA_FIELD_ALL, &adapter, DAT_PROVIDER_FIELD_ALL, &provider);
  result |= dat_ib_close_query(ia);
  return result;
}

static DAT_RETURN collectives(DAT_IA_HANDLE ia, DAT_EVD_HANDLE evd, DAT_PZ_HANDLE pz,
                              DAT_IB_COLLECTIVE_HANDLE group) {
  DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG;
  DAT_IB_COLLECTIVE_REDUCE_DATA_OP op = DAT_IB_COLLECTIVE_REDUCE_OP_SUM;
  DAT_IB_COLLECTIVE_DATA_TYPE type = DAT_IB_COLLECTIVE_TYPE_INT32;
  DAT_IB_COLLECTIVE_MEMBER member;
  DAT_IB_COLLECTIVE_GROUP info;
  DAT_UINT32 member_size;
  DAT_UINT64 clock;
  DAT_CONTEXT context;
  DAT_COUNT sizes[2], places[2];
  char in[16], out[16];
  DAT_RETURN result;

  context.as_ptr = &info;
  sizes[0] = sizes[1] = 8;
  places[0] = 0;
  places[1] = 8;
  in[0] = 1;
  result = dat_ib_collective_create_member(ia, progress, &member, &member_size);
  result |= dat_ib_collective_create_group(&member, 1, 0, 1, &info, evd, pz, context);
  result |= dat_ib_collective_set_clock(group, 1, context);
  result |= dat_ib_collective_read_clock(group, &clock);
  result |= dat_ib_collective_barrier(group, context, flags);
  result |= dat_ib_collective_broadcast(group, in, 16, 0, context, flags);
  result |= dat_ib_collective_scatter(group, in, 16, out, 16, 0, context, flags);
  result |= dat_ib_collective_scatterv(group, in, sizes, places, out, 16, 0, context, flags);
  result |= dat_ib_collective_gather(group, in, 16, out, 16, 0, context, flags);
  result |= dat_ib_collective_gatherv(group, in, 16, out, sizes, places, 0, context, flags);
  result |= dat_ib_collective_allgather(group, in, 16, out, 16, context, flags);
  result |= dat_ib_collective_allgatherv(group, in, 16, out, sizes, places, context, flags);
  result |= dat_ib_collective_alltoall(group, in, 16, out, 16, context, flags);
  result |=
      dat_ib_collective_alltoallv(group, in, sizes, places, out, sizes, places, context, flags);
  result |= dat_ib_collective_reduce(group, in, 16, out, 16, op, type, 0, context, flags);
  result |= dat_ib_collective_allreduce(group, in, 16, out, 16, op, type, context, flags);
  result |= dat_ib_collective_reduce_scatter(group, in, 16, out, sizes, op, type, context, flags);
  result |= dat_ib_collective_scan(group, in, 16, out, 16, op, type, context, flags);
  result |= dat_ib_collective_free_group(group);
  result |= dat_ib_collective_free_member(ia, member);
  return result;
}

int main(int argc, char** argv) {
  DAT_EVENT event;
  DAT_IB_EXTENSION_EVENT_DATA* extension;
  DAT_LMR_TRIPLET local = {0, 0, 0};
  DAT_RMR_TRIPLET remote = {0, 0, 0};
  const char* message;
  DAT_RETURN result;

  if (dat_evd_dequeue(argv, &event) != DAT_SUCCESS) return 1;
  extension = (DAT_IB_EXTENSION_EVENT_DATA*)&event.event_extension_data[0];
  result = transfers(argv, &local, &remote, &extension->remote_ah);
  result |= counters(argv, argv) | queries(argv[0]) | collectives(argv, argv, argv, argv);
  if (dat_strerror_ext_status(extension->status, &message) != DAT_SUCCESS) return 2;
  if (dat_strerror_extension(DAT_IB_ERR, &message) != DAT_SUCCESS) return 3;
  if (dat_strerror_extension(DAT_QUEUE_EMPTY, &message) != DAT_SUCCESS) return 4;
  return result == DAT_SUCCESS ? (int)extension->val.immed.data : argc;
}
