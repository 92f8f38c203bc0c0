/*
 * flood JOB RANK HOST...: all processes send to rank 0 as fast as they can, far more than it has
 * receives for; it takes the messages in whatever order they come and counts them. Credits hold the
 * others back. An example of mp.h.
 */
#include <stdio.h>
#include <string.h>

#include "mp.h"

#define MESSAGES 2000

int main(int argc, char **argv) {
  static unsigned data[MP_MAX_BYTES / sizeof(unsigned)];
  static unsigned next[MP_MAX_SIZE];
  unsigned i, length;
  int from;

  mp_init(argc, argv);
  if (mp_rank() != 0) {
    for (i = 0; i < MESSAGES; i++) {
      memset(data, (int)i, sizeof data);
      data[0] = i;
      mp_send(0, data, sizeof(unsigned) * (1 + i % (MP_MAX_BYTES / sizeof(unsigned))));
    }
  } else {
    for (i = 0; i < MESSAGES * (unsigned)(mp_size() - 1); i++) {
      from = mp_receive(MP_ANY, data, &length);
      if (data[0] != next[from]++) mp_die("a message is lost", VIP_DESCRIPTOR_ERROR);
    }
  }
  mp_finish();
  printf("rank %d of %d: %d messages\n", mp_rank(), mp_size(), MESSAGES);
  return 0;
}
