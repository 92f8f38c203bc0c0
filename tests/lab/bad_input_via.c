/* What a VIPL program is told when something is wrong with an RDMA device, its rights, the peer or
 * the path to it.
 *
 * usage: bad_input_via NIC open                     opens it
 *        bad_input_via NIC memory                   registers 16 MiB
 *        bad_input_via NIC wait                     waits for a request without a limit, until the
 * NIC says why it ends
 *        bad_input_via NIC ADDRESS PORT [COMMAND]   runs COMMAND when the NIC is open, and
 * connects, with a limit of 8 seconds, at a reliable level
 *
 * Prints a line for each step: its name and the result; for a connection also the VI's state.
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/via_end.h"

enum { kShort = 8000, kLargest = 4096, kBytes = 16 << 20, kPort = 7198 };

static char memory[kLargest];
static sem_t told;

static int answer(const char *step, VIP_RETURN code) {
  printf("%s: %s\n", step, name_of_return(code));
  fflush(stdout);
  return code == VIP_SUCCESS;
}

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {
  (void)context;
  printf("the NIC: %s\n",
         error->ErrorCode == VIP_ERROR_CATASTROPHIC ? "VIP_ERROR_CATASTROPHIC" : "another error");
  sem_post(&told);
}

static void register_much(void) {
  VIP_MEM_ATTRIBUTES rights;
  memset(&rights, 0, sizeof rights);
  answer("register", VipRegisterMem(nic, calloc(1, kBytes), kBytes, &rights, &memory_handle));
}

static void await_nobody(void) {
  VIP_CONN_HANDLE connection;
  must(VipErrorCallback(nic, NULL, on_error), "VipErrorCallback");
  answer("wait", next_request(kPort, VIP_INFINITE, &connection));
  sem_wait(&told);
  answer("close", VipCloseNic(nic));
}

int main(int argc, char **argv) {
  VIP_VI_ATTRIBUTES theirs;
  VIP_VI_HANDLE vi;
  const char *outcome;
  sem_init(&told, 0, 0);
  if (argc == 3 && strcmp(argv[2], "wait") != 0) {
    if (!answer("open", VipOpenNic(argv[1], &nic))) return 0;
    if (strcmp(argv[2], "memory") == 0) register_much();
    must(VipCloseNic(nic), "VipCloseNic");
    return 0;
  }
  if (argc < 3 || argc > 5) return 2;
  open_nic(argv[1], memory, sizeof memory);
  if (argc == 3) {
    answer("open", VIP_SUCCESS);
    await_nobody();
    return 0;
  }
  vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, kLargest);
  if (argc == 5 && system(argv[4]) != 0) return 1;
  outcome = name_of_return(request(vi, argv[2], strtoul(argv[3], NULL, 10), kShort, &theirs));
  printf("outcome: %s, %s\n", outcome, name_of_state(vi));
  must(VipDisconnect(vi), "VipDisconnect");
  must(VipDestroyVi(vi), "VipDestroyVi");
  must(VipCloseNic(nic), "VipCloseNic");
  return 0;
}
