#include "tests/lab/exchange.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct step kSteps[] = {
    {0, kClient, 0},   {1, kServer, 0}, {100, kClient, 1}, {kWhatThereIs, kServer, 1},
    {100, kNobody, 0},
};
const int kStepCount = sizeof kSteps / sizeof kSteps[0];

/* What is painted. */
enum { kData, kToRead, kToWrite, kToSend, kLast };

void fail(int step, const char *what) {
  fprintf(stderr, "step %d: %s\n", step, what);
  exit(1);
}

void expect(int step, int right, const char *what) {
  if (!right) fail(step, what);
}

static unsigned char color(enum role role, int step, int what, size_t at) {
  return (unsigned char)(at * 7 + (at >> 8) + (size_t)(step * 64 + what * 2 + (role == kServer)));
}

static void paint(unsigned char *to, size_t bytes, enum role role, int step, int what) {
  size_t i;
  for (i = 0; i < bytes; i++) to[i] = color(role, step, what, i);
}

static int is_painted(const unsigned char *from, size_t bytes, enum role role, int step, int what) {
  size_t i;
  for (i = 0; i < bytes; i++) {
    if (from[i] != color(role, step, what, i)) return 0;
  }
  return 1;
}

static enum role other(enum role role) { return role == kClient ? kServer : kClient; }

/* Data of a size that the receiver cannot know begin with this size. */
int make_data(unsigned char *data, int most, enum role sender, int step) {
  const int wanted = kSteps[step].private_data;
  const int size = wanted == kWhatThereIs ? most : wanted;
  expect(step, size <= kMostData, "the adapter takes more private data than this program has");
  paint(data, (size_t)size, sender, step, kData);
  if (wanted == kWhatThereIs) {
    expect(step, size > 100, "the adapter takes no more private data than the steps before");
    data[0] = (unsigned char)(size >> 8);
    data[1] = (unsigned char)size;
  }
  return size;
}

int are_data(const unsigned char *data, int size, enum role sender, int step) {
  unsigned char right[kMostData];
  if (size < 0 || size > kMostData) return 0;
  if (kSteps[step].private_data == kWhatThereIs && size <= 100) return 0;
  return make_data(right, size, sender, step) == size && memcmp(right, data, (size_t)size) == 0;
}

void prepare(const struct connection *connection, enum role role, int step) {
  paint(connection->room->shown, kShown, role, step, kToRead);
  memset(connection->room->written, 0, kShown);
}

static void say_hello(const struct connection *connection) {
  struct room *room = connection->room;
  room->hello.address = htobe64((uint64_t)(uintptr_t)room->shown);
  room->hello.key = htobe32(connection->key);
  room->hello.reserved = 0;
  connection->say(&room->hello, sizeof room->hello);
}

static struct hello hear_hello(const struct connection *connection, int step) {
  unsigned char *start;
  struct hello hello;
  expect(step, connection->hear(&start) == sizeof hello, "the first message has another length");
  memcpy(&hello, start, sizeof hello);
  hello.address = be64toh(hello.address);
  hello.key = be32toh(hello.key);
  return hello;
}

static void hear_letter(const struct connection *connection, enum role role, int step, int what) {
  unsigned char *start;
  expect(step, connection->hear(&start) == kLetter, "a letter has another length");
  expect(step, is_painted(start, kLetter, other(role), step, what), "a letter has other bytes");
}

void talk(const struct connection *connection, enum role role, int step) {
  struct room *room = connection->room;
  struct hello peer;
  unsigned char *start;
  if (role == kClient) say_hello(connection); /* iWARP: the client talks first */
  peer = hear_hello(connection, step);
  if (role == kServer) say_hello(connection);

  connection->read(room->place, kShown, peer.address, peer.key);
  expect(step, is_painted(room->place, kShown, other(role), step, kToRead),
         "other bytes were read");
  paint(room->place, kShown, role, step, kToWrite);
  connection->write(room->place, kShown, peer.address + kShown, peer.key);
  paint(room->letter, kLetter, role, step, kToSend);
  connection->say(room->letter, kLetter);

  hear_letter(connection, role, step, kToSend);
  expect(step, is_painted(room->written, kShown, other(role), step, kToWrite),
         "other bytes were written");
  if (role == kSteps[step].ender) {
    expect(step, connection->hear(&start) == 1, "the message before the end has another length");
  } else {
    connection->start_saying(room->letter, 1);
  }
}

int has_last_letter(const struct connection *connection, enum role role, int step) {
  const int ender = role == kSteps[step].ender;
  return !kSteps[step].abrupt && (ender ? connection->is_dat : connection->peer_is_dat);
}

uint32_t last_letter(const struct connection *connection, enum role role, int step) {
  paint(connection->room->letter, kLetter, role, step, kLast);
  return kLetter;
}

void hear_last_letter(const struct connection *connection, enum role role, int step) {
  hear_letter(connection, role, step, kLast);
}

int receives_left(const struct connection *connection, enum role role, int step) {
  const int ender = role == kSteps[step].ender;
  return kReceives - (ender || has_last_letter(connection, role, step) ? 3 : 2);
}
