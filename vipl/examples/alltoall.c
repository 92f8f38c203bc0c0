/*
 * alltoall JOB RANK HOST...: every process sends each other one message of a different size in
 * every round, and checks each byte that it gets. An example of mp.h.
 */
#include <stdio.h>

#include "mp.h"

#define ROUNDS 50

static unsigned size_of(int from, int to, int round) {
  return 1 + (unsigned)(from * 1009 + to * 313 + round * 127) % MP_MAX_BYTES;
}

static unsigned char byte_of(int from, int to, int round, unsigned i) {
  return (unsigned char)(from * 31 + to * 7 + round * 3 + i);
}

int main(int argc, char **argv) {
  static unsigned char data[MP_MAX_BYTES];
  unsigned i, length;
  int round, step, other, rank, size;

  mp_init(argc, argv);
  rank = mp_rank();
  size = mp_size();
  for (round = 0; round < ROUNDS; round++) {
    /* In each step all processes form pairs (from, to), so that each gets only one message. */
    for (step = 1; step < size; step++) {
      other = (rank + step) % size;
      length = size_of(rank, other, round);
      for (i = 0; i < length; i++) data[i] = byte_of(rank, other, round, i);
      mp_send(other, data, length);
    }
    for (step = 1; step < size; step++) {
      other = (rank + size - step) % size;
      mp_receive(other, data, &length);
      if (length != size_of(other, rank, round)) mp_die("a length is wrong", VIP_DESCRIPTOR_ERROR);
      for (i = 0; i < length; i++) {
        if (data[i] != byte_of(other, rank, round, i)) {
          mp_die("a byte is wrong", VIP_DESCRIPTOR_ERROR);
        }
      }
    }
  }
  mp_finish();
  printf("rank %d of %d: %d rounds\n", rank, size, ROUNDS);
  return 0;
}
