/* One conversation between two programs, client and server, each with either face: exchange_dat.c
 * and exchange_via.c. It is a sequence of connections, kSteps. If a step is accepted, both ends
 * send, read and write, and then one of them ends the connection: gracefully after a last message,
 * or abruptly while receives are posted. Anything that is not as agreed ends the program with a
 * line that says what.
 *
 * DAT's private data have a pattern, both ways and with a reject; VIPL has none, and its peer sees
 * none.
 */
#ifndef TESTS_LAB_EXCHANGE_H
#define TESTS_LAB_EXCHANGE_H

#include <stdint.h>

enum {
  kPort = 7191,
  kShown = 65536,
  kLetter = 40001, /* more than one segment of iWARP */
  kReceives = 4,   /* posted before each connection */
  kMostData = 512,
  kWhatThereIs = -1 /* the most private data that the adapter takes */
};

enum role { kClient, kServer, kNobody };

struct step {
  int private_data;
  enum role ender; /* kNobody: the server rejects */
  int abrupt;
};
extern const struct step kSteps[];
extern const int kStepCount;

struct hello { /* big-endian */
  uint64_t address;
  uint32_t key;
  uint32_t reserved;
};

struct room {                    /* in one region */
  unsigned char shown[kShown];   /* the peer reads it */
  unsigned char written[kShown]; /* the peer writes it; follows `shown` */
  unsigned char place[kShown];
  unsigned char letter[kLetter];
  unsigned char received[kReceives][kLetter];
  struct hello hello;
};

/* What a face does on its connection; each function waits until it is done. */
struct connection {
  struct room *room;
  uint32_t key; /* of the region */
  int is_dat, peer_is_dat;
  void (*say)(void *start, uint32_t bytes);
  void (*start_saying)(void *start, uint32_t bytes); /* does not wait */
  uint32_t (*hear)(unsigned char **start);
  void (*read)(void *here, uint32_t bytes, uint64_t there, uint32_t key);
  void (*write)(void *here, uint32_t bytes, uint64_t there, uint32_t key);
};

void fail(int step, const char *what);
void expect(int step, int right, const char *what);

/* Make the private data of a step's sender, and check whether these are they. */
int make_data(unsigned char *data, int most, enum role sender, int step);
int are_data(const unsigned char *data, int size, enum role sender, int step);

/* Paints what the peer may read, before the connection. */
void prepare(const struct connection *connection, enum role role, int step);
/* Does everything that both ends do. When it returns to the ender, the peer waits for the end, with
 * one send that may not be confirmed yet. */
void talk(const struct connection *connection, enum role role, int step);
/* Before a graceful end, which only DAT has: the ender's last message, for which it need not wait,
 * and its receipt by the peer. */
int has_last_letter(const struct connection *connection, enum role role, int step);
uint32_t last_letter(const struct connection *connection, enum role role, int step);
void hear_last_letter(const struct connection *connection, enum role role, int step);
/* How many receives an end has left. */
int receives_left(const struct connection *connection, enum role role, int step);

#endif
