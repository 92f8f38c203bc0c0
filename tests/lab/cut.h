/* What cut_dat.c and cut_via.c, the programs whose link is cut, have in common. */
#ifndef TESTS_LAB_CUT_H
#define TESTS_LAB_CUT_H

#include <stdint.h>

enum { kPort = 7197, kShort = 8000, kSends = 8, kBytes = 65536 };

struct place {
  uint64_t address;
  uint32_t key;
  uint32_t reserved;
};

struct cut_memory { /* registered as one region */
  char received[kSends + 1][kBytes];
  char sent[kBytes];
  struct place there; /* of the server's memory */
};

#endif
