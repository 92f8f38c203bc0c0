/* What the ends of private_data_test.py have in common: private_data_dat.c, and private_data_cm.c,
 * which knows librdmacm alone.
 *
 * usage: private_data_... OWN serve|ADDRESS BYTES...
 *
 * A client connects once for each number with that many bytes of private data, and ends what is
 * accepted; a server answers that many requests, with as many bytes, and with a reject where the
 * number begins with a minus sign ("-0" too). Each prints a line for what it sees of the other's:
 * "request", "accept" or "reject", and the number of bytes.
 */
#ifndef TESTS_LAB_PRIVATE_DATA_H
#define TESTS_LAB_PRIVATE_DATA_H

enum { kPort = 7193, kMostData = 255 };

/* One number of the command line. */
struct answer {
  int rejects, size;
  unsigned char data[kMostData];
};
struct answer read_answer(const char *number);

/* The line, or one that says that the bytes are others than read_answer's. */
void show(const char *what, const void *data, int size);

/* Says what, and errno's reason, and ends the program. */
void fail(const char *what);

#endif
