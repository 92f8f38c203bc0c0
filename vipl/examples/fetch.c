/*
 * fetch: gets files from a file server over the Virtual Interface Architecture. fileproto.h
 * describes the protocol.
 *
 *     cc fetch.c fetchfile.c fileproto.c vialink.c -lvipl -o fetch
 */
#define _FILE_OFFSET_BITS 64

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vipl.h>

#include "fetchfile.h"
#include "fileproto.h"
#include "vialink.h"

#define MOST_SECONDS 1000000UL
#define SENDS 8 /* FP_HELLO, FP_GET, FP_BYE and the credits under way */

#define EXIT_REFUSED 1 /* the server did not give every file */
#define EXIT_USAGE 2
#define EXIT_NO_CONNECTION 3
#define EXIT_LOST 4   /* the connection broke, or what came through it made no sense */
#define EXIT_OUTPUT 5 /* a file could not be written */

static const char usage[] =
    "usage: fetch [-v] [-d DEVICE] [-o OUT] [-t SECONDS] HOST[:SERVICE] FILE...\n"
    "Gets files from the server (filed) on HOST and writes them to the current directory.\n"
    "  -v          show the progress, which a terminal shows anyway\n"
    "  -d DEVICE   the NIC (nic0)\n"
    "  -o OUT      write there: a directory, or with one FILE a name\n"
    "  -t SECONDS  how long the server may be silent (30)\n"
    "Exit status: 0; 1 the server refused a file; 2 usage; 3 no connection; 4 connection lost;\n"
    "5 a file could not be written.\n";

struct connection {
  struct via_link link;
  const char *host; /* for messages */
  unsigned long service;
  VIP_ULONG patience;      /* milliseconds */
  unsigned owed;           /* receives posted again, not yet returned as credits */
  struct fetch_file *file; /* the one under way, or NULL */
};

static volatile int ending = 0;

/* A lost connection shows in the descriptors of the VI; no other error should come here. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {
  (void)context;
  if (error->ErrorCode == VIP_ERROR_CONN_LOST || ending) return;
  fprintf(stderr, "fetch: asynchronous error %d of resource %d\n", (int)error->ErrorCode,
          (int)error->ResourceCode);
}

static void hide_progress(struct connection *connection) {
  if (connection->file != NULL) fetch_hide_progress(connection->file);
}

/* Says why nothing more comes; `code` is what via_next or a post has returned. */
static int lost(struct connection *connection, VIP_RETURN code) {
  hide_progress(connection);
  if (code == VIP_TIMEOUT) {
    fprintf(stderr, "fetch: %s has been silent for %lu seconds\n", connection->host,
            connection->patience / 1000);
  } else if (code == VIP_DESCRIPTOR_ERROR) {
    fprintf(stderr, "fetch: connection to %s lost\n", connection->host);
  } else {
    fprintf(stderr, "fetch: connection to %s failed: %s\n", connection->host, via_text(code));
  }
  return EXIT_LOST;
}

static int nonsense(struct connection *connection, const char *what) {
  hide_progress(connection);
  fprintf(stderr, "fetch: protocol error: %s sent %s\n", connection->host, what);
  return EXIT_LOST;
}

/* Says why there is no connection. */
static int no_connection(const struct connection *connection, VIP_RETURN code) {
  if (code == VIP_NO_MATCH) {
    fprintf(stderr, "fetch: no server for service %lu on %s\n", connection->service,
            connection->host);
  } else if (code == VIP_REJECT) {
    fprintf(stderr, "fetch: the server on %s refused the connection\n", connection->host);
  } else if (code == VIP_NOT_REACHABLE) {
    fprintf(stderr, "fetch: %s cannot be reached\n", connection->host);
  } else if (code == VIP_TIMEOUT) {
    fprintf(stderr, "fetch: no answer from %s within %lu seconds\n", connection->host,
            connection->patience / 1000);
  } else {
    fprintf(stderr, "fetch: cannot connect to %s: %s\n", connection->host, via_text(code));
  }
  return EXIT_NO_CONNECTION;
}

/* Finds the host and connects to it. Returns 0 or an exit status. */
static int connect_to_server(struct connection *connection, VIP_NIC_HANDLE nic) {
  VIP_NIC_ATTRIBUTES nic_attributes;
  VIP_VI_ATTRIBUTES attributes;
  VIP_RETURN code;
  union via_address local, remote;

  code = VipQueryNic(nic, &nic_attributes);
  if (code == VIP_SUCCESS) code = VipErrorCallback(nic, NULL, on_error);
  if (code == VIP_SUCCESS) code = VipNSInit(nic, NULL);
  if (code != VIP_SUCCESS) return no_connection(connection, code);
  memset(&remote, 0, sizeof remote);
  remote.net.HostAddressLen = nic_attributes.NicAddressLen;
  code = VipNSGetHostByName(nic, (VIP_CHAR *)connection->host, &remote.net, 0);
  if (code != VIP_SUCCESS) {
    fprintf(stderr, "fetch: %s: unknown host\n", connection->host);
    return EXIT_NO_CONNECTION;
  }
  via_set_address(&remote, remote.net.HostAddress, remote.net.HostAddressLen, connection->service);
  /* The server does not ask who we are; the number of the process will do. */
  via_set_address(&local, nic_attributes.LocalNicAddress, nic_attributes.NicAddressLen,
                  (unsigned long)getpid());
  code = via_open(&connection->link, nic, FP_WINDOW, FP_MESSAGE_SIZE, SENDS, FP_REQUEST_SIZE);
  if (code == VIP_SUCCESS) {
    code = VipConnectRequest(connection->link.vi, &local.net, &remote.net, connection->patience,
                             &attributes);
  }
  return code == VIP_SUCCESS ? 0 : no_connection(connection, code);
}

/* Sends a message; nothing is expected from the server meanwhile. Returns 0 or an exit status. */
static int send_message(struct connection *connection, unsigned kind, const char *name,
                        off_t value) {
  VIP_DESCRIPTOR *descriptor, *received;
  VIP_RETURN code;
  unsigned count = name != NULL ? strlen(name) : 0;

  while ((descriptor = via_take_send(&connection->link)) == NULL) {
    code = via_next(&connection->link, connection->patience, &received);
    if (code != VIP_SUCCESS && code != VIP_NOT_DONE) return lost(connection, code);
    if (received != NULL) return nonsense(connection, "what nobody asked for");
  }
  if (count > 0) memcpy(via_data(descriptor) + FP_HEADER_SIZE, name, count);
  code = via_post_send(&connection->link, descriptor,
                       fp_pack(via_data(descriptor), kind, count, value), NULL);
  return code == VIP_SUCCESS ? 0 : lost(connection, code);
}

/* Returns credits if there are enough, and a send to carry them; else a later call does. */
static int return_credits(struct connection *connection) {
  VIP_DESCRIPTOR *descriptor;
  VIP_UINT32 word;
  VIP_RETURN code;
  unsigned length;

  if (connection->owed < FP_CREDIT_BATCH) return 0;
  descriptor = via_take_send(&connection->link);
  if (descriptor == NULL) return 0;
  length = fp_pack_credit(via_data(descriptor), connection->owed);
  word = fp_word(via_data(descriptor));
  connection->owed = 0;
  code = via_post_send(&connection->link, descriptor, length, &word);
  return code == VIP_SUCCESS ? 0 : lost(connection, code);
}

/* Waits for the next message of the server. Returns 0 or an exit status. */
static int next_message(struct connection *connection, VIP_DESCRIPTOR **received,
                        struct fp_message *header) {
  VIP_RETURN code;
  int status;

  do {
    status = return_credits(connection);
    if (status != 0) return status;
    code = via_next(&connection->link, connection->patience, received);
    if (code != VIP_SUCCESS && code != VIP_NOT_DONE) return lost(connection, code);
  } while (*received == NULL);
  if (fp_unpack(via_data(*received), (*received)->CS.Length, header) != 0) {
    return nonsense(connection, "a malformed message");
  }
  return 0;
}

/* Posts a receive again when its message has been used. */
static int release(struct connection *connection, VIP_DESCRIPTOR *received) {
  VIP_RETURN code = via_post_receive(&connection->link, received);

  if (code != VIP_SUCCESS) return lost(connection, code);
  connection->owed++;
  return 0;
}

/* Takes one message of an answer. Returns 0 or an exit status; `*ended` says that it was the last.
 */
static int take_answer(struct connection *connection, struct fetch_file *file,
                       VIP_DESCRIPTOR *received, const struct fp_message *header, int *ended) {
  const char *payload = via_data(received) + FP_HEADER_SIZE;

  if (header->kind == FP_REFUSE) {
    fetch_hide_progress(file);
    fprintf(stderr, "fetch: %s: %s: %.*s\n", connection->host, file->name, (int)header->count,
            payload);
    *ended = 1;
    return EXIT_REFUSED;
  }
  if (header->kind == FP_FILE && file->fd < 0) {
    return fetch_open(file, header->value) != 0 ? EXIT_OUTPUT : 0;
  }
  if (file->fd < 0) return nonsense(connection, "no size");
  switch (header->kind) {
    case FP_DATA:
      if (header->value != file->got || header->count > file->size - file->got) {
        return nonsense(connection, "data that does not belong here");
      }
      return fetch_write(file, payload, header->count) != 0 ? EXIT_OUTPUT : 0;
    case FP_END:
      if (header->value != file->size || file->got != file->size) {
        return nonsense(connection, "another number of bytes than it said");
      }
      *ended = 1;
      return fetch_close(file) != 0 ? EXIT_OUTPUT : 0;
    default:
      return nonsense(connection, "a message that does not belong here");
  }
}

/* Gets one file. Returns 0 or an exit status. */
static int get_file(struct connection *connection, struct fetch_file *file) {
  VIP_DESCRIPTOR *received;
  struct fp_message header;
  int ended = 0, status, released;

  connection->file = file;
  status = send_message(connection, FP_GET, file->name, 0);
  while (status == 0 && !ended) {
    status = next_message(connection, &received, &header);
    if (status != 0) break;
    status = take_answer(connection, file, received, &header, &ended);
    if (status == 0 || status == EXIT_REFUSED) {
      released = release(connection, received);
      if (released != 0) status = released;
    }
  }
  if (status != 0) fetch_abandon(file);
  connection->file = NULL;
  return status;
}

/* Says goodbye, so that the server knows that nothing was lost, and waits until it has hung up. */
static void part(struct connection *connection) {
  VIP_DESCRIPTOR *received;
  VIP_RETURN code = VIP_SUCCESS;

  ending = 1;
  if (send_message(connection, FP_BYE, NULL, 0) != 0) return;
  while (code == VIP_SUCCESS || code == VIP_NOT_DONE) {
    code = via_next(&connection->link, connection->patience, &received);
  }
}

/* Gets all files over one connection. Returns an exit status. */
static int get_files(struct connection *connection, char **names, int count, const char *out,
                     int verbose) {
  struct fetch_file file;
  struct fetch_total total;
  int i, status, worst = 0;

  fetch_start_total(&total);
  status = send_message(connection, FP_HELLO, NULL, FP_WINDOW);
  for (i = 0; i < count && (status == 0 || status == EXIT_REFUSED); i++) {
    if (fetch_name(&file, names[i], out, verbose) != 0) {
      status = EXIT_OUTPUT;
      break;
    }
    status = get_file(connection, &file);
    if (status == 0) fetch_add(&total, &file);
    if (status != 0) worst = status;
    fetch_forget(&file);
  }
  if (status == 0 || status == EXIT_REFUSED) part(connection);
  fetch_print_total(&total, count);
  return status > worst ? status : worst;
}

/* Splits HOST[:SERVICE] in place. Returns 0, or -1. */
static int parse_host(char *text, struct connection *connection) {
  char *colon = strchr(text, ':');

  connection->host = text;
  if (colon == NULL) return *text != '\0' ? 0 : -1;
  *colon = '\0';
  return colon != text && fp_parse_number(colon + 1, &connection->service) == 0 ? 0 : -1;
}

/* What is wrong with the files to get, or NULL. */
static const char *check_files(char **names, int count, const char *out) {
  struct stat status;
  int i;

  for (i = 0; i < count; i++) {
    if (strlen(names[i]) > FP_NAME_SIZE || *names[i] == '\0') {
      return "the name of a FILE has 1 to 1024 characters";
    }
  }
  if (out == NULL || (stat(out, &status) == 0 && S_ISDIR(status.st_mode))) return NULL;
  return count > 1 ? "with several FILEs, OUT is an existing directory" : NULL;
}

int main(int argc, char **argv) {
  const char *device = "nic0", *out = NULL, *wrong;
  struct connection connection;
  VIP_NIC_HANDLE nic;
  VIP_RETURN code;
  unsigned long seconds;
  int verbose = 0, option, status;

  memset(&connection, 0, sizeof connection);
  connection.service = FP_SERVICE;
  connection.patience = 30000;
  while ((option = getopt(argc, argv, "vd:o:t:h")) != -1) {
    switch (option) {
      case 'v':
        verbose = 1;
        break;
      case 'd':
        device = optarg;
        break;
      case 'o':
        out = optarg;
        break;
      case 't':
        if (fp_parse_number(optarg, &seconds) != 0 || seconds > MOST_SECONDS) {
          fprintf(stderr, "fetch: %s: SECONDS is 1 to %lu\n", optarg, MOST_SECONDS);
          return EXIT_USAGE;
        }
        connection.patience = seconds * 1000;
        break;
      case 'h':
        fputs(usage, stdout);
        return 0;
      default:
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
  }
  if (argc - optind < 2) {
    fputs(usage, stderr);
    return EXIT_USAGE;
  }
  if (parse_host(argv[optind], &connection) != 0) {
    fputs("fetch: HOST[:SERVICE] is a name and the number of a service\n", stderr);
    return EXIT_USAGE;
  }
  wrong = check_files(argv + optind + 1, argc - optind - 1, out);
  if (wrong != NULL) {
    fprintf(stderr, "fetch: %s\n", wrong);
    return EXIT_USAGE;
  }
  code = VipOpenNic(device, &nic);
  if (code != VIP_SUCCESS) {
    fprintf(stderr, "fetch: cannot open %s: %s\n", device, via_text(code));
    return EXIT_NO_CONNECTION;
  }
  status = connect_to_server(&connection, nic);
  if (status == 0) {
    status = get_files(&connection, argv + optind + 1, argc - optind - 1, out, verbose);
  }
  ending = 1;
  via_close(&connection.link);
  VipCloseNic(nic);
  return status;
}
