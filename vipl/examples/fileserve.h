/*
 * The server's part of the file service, whatever carries the messages: VIPL in filed, DAT in
 * dfiled of dat/examples. One session serves one client and is used by one thread.
 */
#ifndef VIADUCT_VIPL_EXAMPLES_FILESERVE_H_
#define VIADUCT_VIPL_EXAMPLES_FILESERVE_H_

#include <sys/types.h>

#include "fileproto.h"

enum fs_answer { FS_NOTHING, FS_FILE, FS_DATA, FS_END, FS_REFUSE };

struct fs_session {
  const char *root;      /* the directory, as realpath returns it */
  int greeted;           /* FP_HELLO has come */
  int finished;          /* FP_BYE has come: disconnect */
  unsigned credits;      /* messages that the client has room for */
  enum fs_answer answer; /* what comes next */
  int fd;                /* the open file, or -1 */
  off_t size, sent;
  char reason[256]; /* of FS_REFUSE */
  unsigned long files;
  double bytes;
};

/* Begins a session for files below `root`, which outlives it. */
void fs_start(struct fs_session *session, const char *root);

/* Closes what is open. */
void fs_end(struct fs_session *session);

/* Takes a message of the client. Returns NULL, or what is wrong with it: disconnect then. */
const char *fs_take(struct fs_session *session, const char *message, unsigned length);

/* Takes the word of a credit that came as immediate data; otherwise as fs_take. */
const char *fs_take_word(struct fs_session *session, unsigned word);

/* Whether there is a message that may be sent now. */
int fs_ready(const struct fs_session *session);

/* Writes that message into FP_MESSAGE_SIZE bytes and returns its length. */
unsigned fs_next(struct fs_session *session, char *message);

#endif /* VIADUCT_VIPL_EXAMPLES_FILESERVE_H_ */
