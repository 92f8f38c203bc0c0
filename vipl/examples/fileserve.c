#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE /* realpath with a NULL buffer */

#include "fileserve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void fs_start(struct fs_session *session, const char *root) {
  memset(session, 0, sizeof *session);
  session->root = root;
  session->fd = -1;
}

static void close_file(struct fs_session *session) {
  if (session->fd >= 0) close(session->fd);
  session->fd = -1;
}

void fs_end(struct fs_session *session) { close_file(session); }

static void refuse(struct fs_session *session, const char *reason) {
  close_file(session);
  strncpy(session->reason, reason, sizeof session->reason - 1);
  session->answer = FS_REFUSE;
}

/* Whether a name stays below the directory: relative and without a ".." on its way. */
static int is_modest(const char *name) {
  const char *part = name;

  if (*name == '/') return 0;
  while (part != NULL) {
    if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0')) return 0;
    part = strchr(part, '/');
    if (part != NULL) part++;
  }
  return 1;
}

/* The true path of a file below `root`, for free(), or NULL with errno set. Symbolic links count as
 * what they point to. */
static char *path_below(const char *root, const char *name) {
  char *path, *true_path;
  size_t root_length = strlen(root);

  if (!is_modest(name)) {
    errno = EACCES;
    return NULL;
  }
  path = malloc(root_length + strlen(name) + 2);
  if (path == NULL) return NULL;
  sprintf(path, "%s/%s", root, name);
  true_path = realpath(path, NULL);
  free(path);
  if (true_path == NULL) return NULL;
  /* The root directory is the only one whose path ends with a slash. */
  if (root[root_length - 1] == '/') root_length--;
  if (strncmp(true_path, root, root_length) != 0 || true_path[root_length] != '/') {
    free(true_path);
    errno = EACCES;
    return NULL;
  }
  return true_path;
}

static void open_file(struct fs_session *session, const char *name) {
  struct stat status;
  char *path = path_below(session->root, name);

  if (path == NULL) {
    refuse(session, strerror(errno));
    return;
  }
  /* Otherwise opening a named pipe would wait for its writer. */
  session->fd = open(path, O_RDONLY | O_NONBLOCK);
  free(path);
  if (session->fd < 0 || fstat(session->fd, &status) != 0) {
    refuse(session, strerror(errno));
  } else if (!S_ISREG(status.st_mode)) {
    refuse(session, "Not a regular file");
  } else {
    session->size = status.st_size;
    session->sent = 0;
    session->answer = FS_FILE;
  }
}

const char *fs_take_word(struct fs_session *session, unsigned word) {
  if (FP_KIND(word) != FP_CREDIT) return "immediate data that is no credit";
  if (!session->greeted) return "a credit before FP_HELLO";
  if (FP_COUNT(word) > FP_MAX_CREDITS - session->credits) return "too many credits";
  session->credits += FP_COUNT(word);
  return NULL;
}

const char *fs_take(struct fs_session *session, const char *message, unsigned length) {
  struct fp_message header;
  char name[FP_NAME_SIZE + 1];

  if (fp_unpack(message, length, &header) != 0) return "a malformed message";
  if (session->finished) return "a message after FP_BYE";
  switch (header.kind) {
    case FP_HELLO:
      if (session->greeted) return "a second FP_HELLO";
      if (header.value < 1 || header.value > FP_MAX_CREDITS) return "too many or too few credits";
      session->greeted = 1;
      session->credits = (unsigned)header.value;
      return NULL;
    case FP_CREDIT:
      return fs_take_word(session, FP_WORD(header.kind, header.count));
    case FP_GET:
      if (!session->greeted) return "FP_GET before FP_HELLO";
      if (session->answer != FS_NOTHING) return "FP_GET before the end of an answer";
      if (header.count > FP_NAME_SIZE) return "too long a name";
      memcpy(name, message + FP_HEADER_SIZE, header.count);
      name[header.count] = '\0';
      if (strlen(name) != header.count) return "a name with a zero byte";
      open_file(session, name);
      return NULL;
    case FP_BYE:
      session->finished = 1;
      return NULL;
    default:
      return "a message that only servers send";
  }
}

int fs_ready(const struct fs_session *session) {
  return session->answer != FS_NOTHING && session->credits > 0 && !session->finished;
}

/* Reads the next piece of the file to `data`; at most FP_PAYLOAD_SIZE. Returns its length; 0 after
 * an error, or when the file has become shorter. */
static unsigned read_piece(struct fs_session *session, char *data) {
  unsigned wanted = FP_PAYLOAD_SIZE, got = 0;
  ssize_t result;

  if (session->size - session->sent < (off_t)wanted) wanted = session->size - session->sent;
  while (got < wanted) {
    result = read(session->fd, data + got, wanted - got);
    if (result < 0 && errno == EINTR) continue;
    if (result < 0) {
      refuse(session, strerror(errno));
      return 0;
    }
    if (result == 0) {
      refuse(session, "The file has become shorter");
      return 0;
    }
    got += (unsigned)result;
  }
  return got;
}

unsigned fs_next(struct fs_session *session, char *message) {
  unsigned count;

  session->credits--;
  if (session->answer == FS_FILE) {
    session->answer = session->size > 0 ? FS_DATA : FS_END;
    return fp_pack(message, FP_FILE, 0, session->size);
  }
  if (session->answer == FS_DATA) {
    count = read_piece(session, message + FP_HEADER_SIZE);
    if (count > 0) {
      session->sent += count;
      session->bytes += count;
      if (session->sent == session->size) session->answer = FS_END;
      return fp_pack(message, FP_DATA, count, session->sent - count);
    }
  }
  if (session->answer == FS_END) {
    close_file(session);
    session->files++;
    session->answer = FS_NOTHING;
    return fp_pack(message, FP_END, 0, session->size);
  }
  count = strlen(session->reason);
  memcpy(message + FP_HEADER_SIZE, session->reason, count);
  session->answer = FS_NOTHING;
  return fp_pack(message, FP_REFUSE, count, 0);
}
