#define _FILE_OFFSET_BITS 64

#include "fetchfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static double now(void) {
  struct timeval time;

  gettimeofday(&time, NULL);
  return time.tv_sec + time.tv_usec / 1e6;
}

/* MB/s; a clock that has not moved counts as a microsecond. */
static double rate(double bytes, double seconds) {
  return bytes / 1e6 / (seconds > 1e-6 ? seconds : 1e-6);
}

static int failed(struct fetch_file *file, const char *what) {
  int error = errno;

  fetch_hide_progress(file);
  fprintf(stderr, "fetch: cannot %s %s: %s\n", what, file->path != NULL ? file->path : file->name,
          strerror(error));
  return -1;
}

static char *join(const char *directory, const char *name) {
  char *path = malloc(strlen(directory) + strlen(name) + 2);

  if (path != NULL) sprintf(path, "%s/%s", directory, name);
  return path;
}

int fetch_name(struct fetch_file *file, const char *name, const char *out, int verbose) {
  struct stat status;
  const char *slash = strrchr(name, '/'), *last = slash != NULL ? slash + 1 : name;

  memset(file, 0, sizeof *file);
  file->name = name;
  file->fd = -1;
  file->show = isatty(2) ? 2 : verbose ? 1 : 0;
  if (out == NULL) {
    file->path = strdup(last);
  } else if (stat(out, &status) == 0 && S_ISDIR(status.st_mode)) {
    file->path = join(out, last);
  } else {
    file->path = strdup(out);
  }
  if (file->path == NULL) return failed(file, "name");
  if (stat(file->path, &status) == 0 && !S_ISREG(status.st_mode)) return 0;
  file->part = malloc(strlen(file->path) + sizeof ".part");
  if (file->part == NULL) return failed(file, "name");
  sprintf(file->part, "%s.part", file->path);
  return 0;
}

int fetch_open(struct fetch_file *file, off_t size) {
  file->size = size;
  file->started = file->shown = now();
  file->fd = open(file->part != NULL ? file->part : file->path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file->fd < 0) return failed(file, "create");
  file->opened = 1;
  return 0;
}

static void show_progress(struct fetch_file *file) {
  double time = now();

  if (file->show == 0 || time - file->shown < (file->show == 2 ? 0.1 : 1.0)) return;
  file->shown = time;
  fprintf(stderr, "%s%s  %3.0f%%  %.0f bytes  %.1f MB/s%s", file->show == 2 ? "\r" : "", file->name,
          file->size > 0 ? 100.0 * file->got / file->size : 100.0, (double)file->got,
          rate(file->got, time - file->started), file->show == 2 ? "\033[K" : "\n");
}

void fetch_hide_progress(struct fetch_file *file) {
  if (file->show == 2 && file->shown > file->started) fputs("\r\033[K", stderr);
  file->shown = file->started;
}

int fetch_write(struct fetch_file *file, const char *data, unsigned length) {
  ssize_t result;

  while (length > 0) {
    result = write(file->fd, data, length);
    if (result < 0 && errno == EINTR) continue;
    if (result < 0) return failed(file, "write");
    data += result;
    length -= (unsigned)result;
    file->got += result;
  }
  show_progress(file);
  return 0;
}

int fetch_close(struct fetch_file *file) {
  int result = close(file->fd);

  file->fd = -1;
  if (result != 0) return failed(file, "write");
  if (file->part != NULL && rename(file->part, file->path) != 0) return failed(file, "create");
  fetch_hide_progress(file);
  return 0;
}

void fetch_abandon(struct fetch_file *file) {
  fetch_hide_progress(file);
  if (file->fd >= 0) close(file->fd);
  file->fd = -1;
  if (file->part != NULL && file->opened) unlink(file->part);
}

void fetch_forget(struct fetch_file *file) {
  free(file->path);
  free(file->part);
}

void fetch_start_total(struct fetch_total *total) {
  memset(total, 0, sizeof *total);
  total->started = now();
}

void fetch_add(struct fetch_total *total, const struct fetch_file *file) {
  total->files++;
  total->bytes += file->got;
}

void fetch_print_total(const struct fetch_total *total, int wanted) {
  double seconds = now() - total->started;

  printf("fetch: %d of %d files, %.0f bytes in %.3f s, %.1f MB/s\n", total->files, wanted,
         total->bytes, seconds, rate(total->bytes, seconds));
}
