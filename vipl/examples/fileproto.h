/*
 * The file service: what travels between fetch and a file server.
 *
 * CONNECTION. A service is a number. Its VIA discriminator is that number in eight bytes, most
 * significant first, so a DAT server offers the same service under the number as its connection
 * qualifier. The VI is of Reliable Delivery, with MaxTransferSize FP_MESSAGE_SIZE.
 *
 * MESSAGES. All numbers are unsigned, most significant byte first. A message starts with a word:
 *
 *     bits 31..24  kind (FP_HELLO ...)
 *     bits 23..0   count
 *
 * FP_CREDIT is that word and nothing else, 4 bytes. Every other message goes on:
 *
 *     offset  size
 *     4       4     FP_MAGIC
 *     8       8     value
 *     16      count payload, without a terminator
 *
 *     kind       from    count               value                        payload
 *     FP_HELLO   client  0                   first credits                none; the first message
 *     FP_GET     client  length of name      0                            name of a file
 *     FP_CREDIT  client  further credits     -                            -
 *     FP_BYE     client  0                   0                            none; the last message
 *     FP_FILE    server  0                   size of the file             none
 *     FP_DATA    server  bytes of data       where in the file they stand bytes of the file
 *     FP_END     server  0                   size of the file             none
 *     FP_REFUSE  server  length of reason    0                            why, for a human reader
 *
 * A VIA client sends a credit with immediate data equal to the word: a VIA server need not look
 * into the buffer. A DAT server, which sees no immediate data, reads the same word there.
 *
 * CONVERSATION. FP_HELLO; then any number of FP_GETs, each sent after the answer to the one before
 * has ended; then FP_BYE, upon which the server disconnects. The answer to FP_GET is FP_FILE,
 * FP_DATA in ascending order without holes, FP_END; or FP_REFUSE, also in the middle of a file that
 * can no longer be read. An empty file has no FP_DATA. Whoever sees anything else disconnects.
 *
 * CREDITS. A message that finds no receive descriptor breaks a reliable connection. So the server
 * sends only against credits: FP_HELLO gives as many as the client has posted receives (at most
 * FP_MAX_CREDITS), each message costs one, and FP_CREDIT gives back those that were posted again.
 * The client returns at least FP_CREDIT_BATCH at a time and offers at most FP_WINDOW, so at most
 * FP_WINDOW / FP_CREDIT_BATCH of these are unread, besides one FP_HELLO, one FP_GET and one FP_BYE:
 * FP_REQUESTS receives at the server are enough, and nobody has to count those.
 */
#ifndef VIADUCT_VIPL_EXAMPLES_FILEPROTO_H_
#define VIADUCT_VIPL_EXAMPLES_FILEPROTO_H_

#include <sys/types.h>

#define FP_SERVICE 19970      /* if no other is named */
#define FP_MAGIC 0x56494146u  /* "VIAF" */
#define FP_MESSAGE_SIZE 32768 /* the longest message; every NIC carries that much */
#define FP_HEADER_SIZE 16     /* in front of a payload */
#define FP_CREDIT_SIZE 4      /* an FP_CREDIT */
#define FP_PAYLOAD_SIZE (FP_MESSAGE_SIZE - FP_HEADER_SIZE)
#define FP_NAME_SIZE 1024    /* the longest name */
#define FP_REQUEST_SIZE 1088 /* room for the longest message of a client */
#define FP_WINDOW 32         /* receives that a client posts */
#define FP_CREDIT_BATCH 8    /* credits that it returns at a time */
#define FP_REQUESTS 8        /* receives that a server posts for each client */
#define FP_MAX_CREDITS 1024  /* more are a protocol error */

#define FP_HELLO 1
#define FP_GET 2
#define FP_CREDIT 3
#define FP_BYE 4
#define FP_FILE 5
#define FP_DATA 6
#define FP_END 7
#define FP_REFUSE 8

#define FP_WORD(kind, count) (((unsigned)(kind) << 24) | (unsigned)(count))
#define FP_KIND(word) ((unsigned)(word) >> 24)
#define FP_COUNT(word) ((unsigned)(word)&0xffffffu)

/* A message as numbers; the payload stands at `message + FP_HEADER_SIZE`. */
struct fp_message {
  unsigned kind;
  unsigned count;
  off_t value;
};

/* The word at the start of a message of at least four bytes. */
unsigned fp_word(const char *message);

/* Writes a credit and returns its length. */
unsigned fp_pack_credit(char *message, unsigned credits);

/* Writes the header of another message; the payload, if any, has been or will be put after it.
 * Returns the length of header and payload. */
unsigned fp_pack(char *message, unsigned kind, unsigned count, off_t value);

/* Reads a message of `length` bytes. Returns 0, or -1 for one that breaks the rules above: too
 * short, a payload of another length than count, no magic, an unknown kind, a value that no file
 * has. */
int fp_unpack(const char *message, unsigned length, struct fp_message *out);

/* Reads a number, such as a service's: 1 or more, decimal. Returns 0, or -1. */
int fp_parse_number(const char *text, unsigned long *number);

/* Writes the discriminator of a service. */
void fp_discriminator(unsigned long service, unsigned char discriminator[8]);

#endif /* VIADUCT_VIPL_EXAMPLES_FILEPROTO_H_ */
