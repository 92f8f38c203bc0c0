#define _FILE_OFFSET_BITS 64

#include "fileproto.h"

#include <errno.h>
#include <stdlib.h>

static void put32(char *out, unsigned value) {
  out[0] = (char)(value >> 24);
  out[1] = (char)(value >> 16);
  out[2] = (char)(value >> 8);
  out[3] = (char)value;
}

static unsigned get32(const char *in) {
  const unsigned char *bytes = (const unsigned char *)in;

  return (unsigned)bytes[0] << 24 | (unsigned)bytes[1] << 16 | (unsigned)bytes[2] << 8 | bytes[3];
}

unsigned fp_word(const char *message) { return get32(message); }

unsigned fp_pack_credit(char *message, unsigned credits) {
  put32(message, FP_WORD(FP_CREDIT, credits));
  return FP_CREDIT_SIZE;
}

unsigned fp_pack(char *message, unsigned kind, unsigned count, off_t value) {
  put32(message, FP_WORD(kind, count));
  put32(message + 4, FP_MAGIC);
  put32(message + 8, (unsigned)(value >> 16 >> 16));
  put32(message + 12, (unsigned)value);
  return FP_HEADER_SIZE + count;
}

int fp_unpack(const char *message, unsigned length, struct fp_message *out) {
  unsigned word, high;

  if (length < FP_CREDIT_SIZE) return -1;
  word = get32(message);
  out->kind = FP_KIND(word);
  out->count = FP_COUNT(word);
  out->value = 0;
  if (out->kind == FP_CREDIT) return length == FP_CREDIT_SIZE ? 0 : -1;
  if (length < FP_HEADER_SIZE || get32(message + 4) != FP_MAGIC) return -1;
  high = get32(message + 8);
  if (high > 0x7fffffffu) return -1;
  out->value = ((off_t)high << 16 << 16) | get32(message + 12);
  switch (out->kind) {
    case FP_GET:
    case FP_DATA:
    case FP_REFUSE:
      return out->count > 0 && length - FP_HEADER_SIZE == out->count ? 0 : -1;
    case FP_HELLO:
    case FP_BYE:
    case FP_FILE:
    case FP_END:
      return out->count == 0 && length == FP_HEADER_SIZE ? 0 : -1;
    default:
      return -1;
  }
}

int fp_parse_number(const char *text, unsigned long *number) {
  char *end;

  if (*text < '0' || *text > '9') return -1;
  errno = 0;
  *number = strtoul(text, &end, 10);
  return errno == 0 && *end == '\0' && *number > 0 ? 0 : -1;
}

void fp_discriminator(unsigned long service, unsigned char discriminator[8]) {
  int i;

  for (i = 7; i >= 0; i--) {
    discriminator[i] = (unsigned char)service;
    service >>= 8;
  }
}
