/* What the ends of private_data_test.py have in common: private_data_dat.c, and private_data_cm.c,
 * which knows only librdmacm.
 *
 * usage: private_data_... OWN serve|ADDRESS BYTES...
 *
 * For each number a client connects with that many bytes of private data, and ends the connection
 * if it is accepted; a server answers one request with that many bytes, and rejects it if the
 * number begins with a minus sign ("-0" too). Each prints a line for what the other side has sent:
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

/* Prints the line, or one that says that the bytes differ from read_answer's. */
void show(const char *what, const void *data, int size);

/* Prints what has failed and errno's reason, and ends the program. */
void fail(const char *what);

#endif
