#include "tests/lab/private_data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char color(int size, int at) { return (unsigned char)(size + 7 * at); }

struct answer read_answer(const char *number) {
  struct answer answer;
  int i;
  answer.rejects = number[0] == '-';
  answer.size = abs(atoi(number));
  if (answer.size > kMostData) exit(2);
  for (i = 0; i < answer.size; i++) answer.data[i] = color(answer.size, i);
  return answer;
}

void show(const char *what, const void *data, int size) {
  const unsigned char *bytes = data;
  int i, same = 1;
  for (i = 0; i < size; i++) same = same && bytes[i] == color(size, i);
  printf("%s: %d %s\n", what, size, same ? "bytes" : "other bytes");
  fflush(stdout);
}

void fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}
