/*
 * A file on its way to the disk, its progress, and the sum of all files.
 *
 * An incomplete file never has its name: it grows under NAME.part. A target that exists and
 * is no regular file, such as a device, is written directly.
 */
#ifndef VIADUCT_VIPL_EXAMPLES_FETCHFILE_H_
#define VIADUCT_VIPL_EXAMPLES_FETCHFILE_H_

#include <sys/types.h>

struct fetch_file {
  const char *name; /* at the server */
  char *path;       /* here */
  char *part;       /* where it grows; NULL: at `path` */
  int fd;           /* -1 until the server has said the size */
  int opened;       /* this fetch has created what is there */
  off_t size, got;
  double started, shown; /* seconds */
  int show;              /* progress: 0 none, 1 lines, 2 one line of a terminal */
};

struct fetch_total {
  int files;
  double bytes, started;
};

/* Decides where a file goes: the directory or name `out`, or with NULL the current directory.
 * Returns 0, or -1 after a message. */
int fetch_name(struct fetch_file *file, const char *name, const char *out, int verbose);

/* Opens it. Returns 0, or -1 after a message. */
int fetch_open(struct fetch_file *file, off_t size);

/* Writes what comes next. Returns 0, or -1 after a message. */
int fetch_write(struct fetch_file *file, const char *data, unsigned length);

/* Closes a complete file and gives it its name. Returns 0, or -1 after a message. */
int fetch_close(struct fetch_file *file);

/* Removes what there is of an incomplete file. */
void fetch_abandon(struct fetch_file *file);

/* Releases the memory. */
void fetch_forget(struct fetch_file *file);

/* Ends a line of progress on a terminal, so that a message can be printed. */
void fetch_hide_progress(struct fetch_file *file);

void fetch_start_total(struct fetch_total *total);
void fetch_add(struct fetch_total *total, const struct fetch_file *file);

/* Prints the summary. */
void fetch_print_total(const struct fetch_total *total, int wanted);

#endif /* VIADUCT_VIPL_EXAMPLES_FETCHFILE_H_ */
