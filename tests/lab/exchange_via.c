/* exchange.h, as a VIPL program.
 *
 * usage: exchange_via NIC serve|ADDRESS dat|via
 *
 * The last word says what the peer is.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lab/exchange.h"
#include "tests/lab/via_end.h"

static struct memory { /* registered as one region */
  VIP_DESCRIPTOR receives[kReceives];
  VIP_DESCRIPTOR request;
  struct room room;
} memory __attribute__((aligned(VIP_DESCRIPTOR_ALIGNMENT)));

static VIP_VI_HANDLE vi;
static int errors[2]; /* a pipe with the codes of the library's error callbacks */

static void say(void *start, uint32_t bytes) {
  fill(&memory.request, start, bytes);
  complete(vi, &memory.request, "sending");
}

static void start_saying(void *start, uint32_t bytes) {
  fill(&memory.request, start, bytes);
  must(VipPostSend(vi, &memory.request, memory_handle), "VipPostSend");
}

static uint32_t hear(unsigned char **start) {
  VIP_DESCRIPTOR *done;
  must(VipRecvWait(vi, kPatience, &done), "VipRecvWait");
  *start = memory.room.received[done - memory.receives];
  return done->CS.Length;
}

static void read_there(void *here, uint32_t bytes, uint64_t there, uint32_t key) {
  fill_rdma(&memory.request, VIP_CONTROL_OP_RDMAREAD, here, bytes, there, key);
  complete(vi, &memory.request, "reading");
}

static void write_there(void *here, uint32_t bytes, uint64_t there, uint32_t key) {
  fill_rdma(&memory.request, VIP_CONTROL_OP_RDMAWRITE, here, bytes, there, key);
  complete(vi, &memory.request, "writing");
}

static struct connection connection = {&memory.room, 0,    0,          0,          say,
                                       start_saying, hear, read_there, write_there};

/* What an endpoint can keep to: a request for one at a port has no header (dat/core/FORMAT.md). */
static VIP_RELIABILITY_LEVEL level(void) {
  return connection.peer_is_dat ? VIP_SERVICE_RELIABLE_DELIVERY : VIP_SERVICE_RELIABLE_RECEPTION;
}

static void begin(enum role role, int step) {
  int i;
  vi = make_vi(level(), kShown);
  for (i = 0; i < kReceives; i++) {
    fill(&memory.receives[i], memory.room.received[i], kLetter);
    must(VipPostRecv(vi, &memory.receives[i], memory_handle), "VipPostRecv");
  }
  prepare(&connection, role, step);
}

static void note_error(void *context, VIP_ERROR_DESCRIPTOR *error) {
  const int code = error->ErrorCode;
  (void)context;
  if (write(errors[1], &code, sizeof code) != sizeof code) _exit(1);
}

/* The next error code within `patience`; 0 if there is none. */
static int next_error(int patience) {
  struct pollfd waiting = {errors[0], POLLIN, 0};
  int code = 0;
  if (poll(&waiting, 1, patience) != 1) return 0;
  return read(errors[0], &code, sizeof code) == sizeof code ? code : 0;
}

static void expect_flushed(int left, int step) {
  VIP_DESCRIPTOR *done;
  for (; left > 0; left--) {
    expect(step, VipRecvWait(vi, kPatience, &done) == VIP_DESCRIPTOR_ERROR && done != NULL,
           "a receive that was left is not done");
    expect(step, (done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR) != 0,
           "a receive that was left is not flushed");
  }
  expect(step, VipRecvDone(vi, &done) == VIP_DESCRIPTOR_ERROR && done == NULL,
         "one receive too many");
}

static void end(enum role role, int step) {
  const int ender = role == kSteps[step].ender;
  VIP_DESCRIPTOR *done;
  if (!ender && has_last_letter(&connection, role, step)) {
    hear_last_letter(&connection, role, step);
  }
  if (ender) must(VipDisconnect(vi), "VipDisconnect");
  expect_flushed(receives_left(&connection, role, step), step);
  if (!ender) {
    const VIP_RETURN sent = VipSendWait(vi, kPatience, &done); /* or flushed by the end */
    expect(step, sent == VIP_SUCCESS || sent == VIP_DESCRIPTOR_ERROR, "the message before the end");
    expect(step, next_error(kPatience) == VIP_ERROR_CONN_LOST, "no VIP_ERROR_CONN_LOST");
    expect(step, state_of(vi) == VIP_STATE_ERROR, "the VI is not in VIP_STATE_ERROR");
    must(VipDisconnect(vi), "VipDisconnect in VIP_STATE_ERROR");
  }
  expect(step, state_of(vi) == VIP_STATE_IDLE, "the VI is not idle after VipDisconnect");
  expect(step, next_error(0) == 0, "one error too many");
  must(VipDestroyVi(vi), "VipDestroyVi");
}

static void serve_step(int step) {
  const VIP_CONN_HANDLE request = await_request(kPort);
  if (kSteps[step].ender == kNobody) {
    must(VipConnectReject(request), "VipConnectReject");
    return;
  }
  begin(kServer, step);
  must(VipConnectAccept(request, vi), "VipConnectAccept");
  talk(&connection, kServer, step);
  end(kServer, step);
}

static void dial_step(const char *host, int step) {
  VIP_VI_ATTRIBUTES theirs;
  VIP_RETURN answer;
  begin(kClient, step);
  answer = request(vi, host, kPort, kPatience, &theirs);
  if (kSteps[step].ender == kNobody) {
    expect(step, answer == VIP_REJECT, "it is not rejected");
    expect(step, state_of(vi) == VIP_STATE_IDLE, "the VI is not idle after a reject");
    must(VipDisconnect(vi), "VipDisconnect when idle");
    expect_flushed(kReceives, step);
    must(VipDestroyVi(vi), "VipDestroyVi");
    return;
  }
  must(answer, "VipConnectRequest");
  expect(step, theirs.ReliabilityLevel == level() && theirs.MaxTransferSize == kShown,
         "the peer has other attributes");
  talk(&connection, kClient, step);
  end(kClient, step);
}

int main(int argc, char **argv) {
  int step;
  if (argc != 4) {
    fprintf(stderr, "usage: exchange_via NIC serve|ADDRESS dat|via\n");
    return 2;
  }
  if (pipe(errors) != 0) return 1;
  open_nic(argv[1], &memory, sizeof memory);
  must(VipErrorCallback(nic, NULL, note_error), "VipErrorCallback");
  connection.key = memory_handle;
  connection.peer_is_dat = strcmp(argv[3], "dat") == 0;
  for (step = 0; step < kStepCount; step++) {
    if (strcmp(argv[2], "serve") == 0) {
      serve_step(step);
    } else {
      dial_step(argv[2], step);
    }
  }
  must(VipCloseNic(nic), "VipCloseNic");
  printf("%d steps\n", kStepCount);
  return 0;
}
