/* What a VIPL program hears when something is wrong with the peer or with the way there.
 *
 * usage: bad_input_via NIC ADDRESS PORT [COMMAND]   runs COMMAND when the NIC is open, and
 * connects, with a limit of 8 seconds, at a reliable level
 *
 * A line: what was answered, and the state of the VI.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/lab/via_end.h"

enum { kShort = 8000, kLargest = 4096 };

static char memory[kLargest];

int main(int argc, char **argv) {
  VIP_VI_ATTRIBUTES theirs;
  VIP_VI_HANDLE vi;
  const char *answer;
  if (argc != 4 && argc != 5) return 2;
  open_nic(argv[1], memory, sizeof memory);
  vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, kLargest);
  if (argc == 5 && system(argv[4]) != 0) return 1;
  answer = name_of_return(request(vi, argv[2], strtoul(argv[3], NULL, 10), kShort, &theirs));
  printf("outcome: %s, %s\n", answer, name_of_state(vi));
  must(VipDisconnect(vi), "VipDisconnect");
  must(VipDestroyVi(vi), "VipDestroyVi");
  must(VipCloseNic(nic), "VipCloseNic");
  return 0;
}
