/*
 * dfiled: the file server of vipl/examples/fileproto.h over the Direct Access Transport, uDAPL 2.0.
 * A VIA client (fetch) does not notice the difference.
 *
 *     cc -I ../.. dfiled.c ../../vipl/examples/fileserve.c ../../vipl/examples/fileproto.c \
 *        -ldat2 -o dfiled
 *
 * One thread, one event dispatcher for everything, many clients.
 */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE /* realpath with a NULL buffer */

#include <dat2/udat.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vipl/examples/fileproto.h"
#include "vipl/examples/fileserve.h"

#define MAX_CLIENTS 16  /* at a time; others are refused */
#define SENDS FP_WINDOW /* messages that may be under way to a client */
#define MEMORY_SIZE (FP_REQUESTS * FP_REQUEST_SIZE + SENDS * FP_MESSAGE_SIZE)
#define EVENTS (MAX_CLIENTS * (FP_REQUESTS + SENDS + 4))

static const char usage[] =
    "usage: dfiled [-d DEVICE] [-p SERVICE] [-1] DIRECTORY\n"
    "Serves the files below DIRECTORY to fetch.\n"
    "  -d DEVICE   the interface adapter (soft0)\n"
    "  -p SERVICE  the number of the service (19970)\n"
    "  -1          serve one client, then exit: 0 if it went in order\n";

/* A piece of registered memory and what it is posted for; its address is the cookie. */
struct message {
  struct client *client;
  char *data;
  int is_receive;
  struct message *next; /* in the list of idle sends */
};

struct client {
  DAT_EP_HANDLE ep; /* DAT_HANDLE_NULL: the place is free */
  DAT_LMR_HANDLE lmr;
  DAT_LMR_CONTEXT lmr_context;
  char *memory;
  struct message messages[FP_REQUESTS + SENDS];
  struct message *idle;
  int posted; /* messages whose event has not come yet */
  int ended;  /* the connection has had its last event */
  struct fs_session session;
  const char *wrong; /* why it does not leave in order, or NULL */
};

struct server {
  const char *root;
  int once;
  DAT_IA_HANDLE ia;
  DAT_PZ_HANDLE pz;
  DAT_EVD_HANDLE evd;
  struct client clients[MAX_CLIENTS];
};

static const char *dat_text(DAT_RETURN code) {
  static char text[160];
  const char *major = "unknown error", *minor = "";

  dat_strerror(code, &major, &minor);
  sprintf(text, "%.78s%s%.78s", major, *minor != '\0' ? ", " : "", minor);
  return text;
}

static DAT_RETURN post(struct message *message, unsigned length) {
  struct client *client = message->client;
  DAT_LMR_TRIPLET segment;
  DAT_DTO_COOKIE cookie;
  DAT_RETURN code;

  memset(&segment, 0, sizeof segment);
  segment.lmr_context = client->lmr_context;
  segment.virtual_address = (DAT_VADDR)(DAT_UVERYLONG)message->data;
  segment.segment_length = length;
  cookie.as_64 = 0;
  cookie.as_ptr = message;
  code = message->is_receive
             ? dat_ep_post_recv(client->ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG)
             : dat_ep_post_send(client->ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG);
  if (code == DAT_SUCCESS) client->posted++;
  return code;
}

/* Ends the connection; the client leaves when its last event has come. */
static void hang_up(struct client *client, const char *wrong) {
  if (client->wrong == NULL) client->wrong = wrong;
  dat_ep_disconnect(client->ep, wrong == NULL ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG);
}

/* Sends what may be sent now. */
static void send_ready(struct client *client) {
  struct message *message;

  while (fs_ready(&client->session) && client->idle != NULL) {
    message = client->idle;
    client->idle = message->next;
    if (post(message, fs_next(&client->session, message->data)) != DAT_SUCCESS) {
      hang_up(client, "a send that could not be posted");
      return;
    }
  }
}

static void release(struct client *client) {
  if (client->ep != DAT_HANDLE_NULL) dat_ep_free(client->ep);
  if (client->lmr != DAT_HANDLE_NULL) dat_lmr_free(client->lmr);
  fs_end(&client->session);
  free(client->memory);
  memset(client, 0, sizeof *client);
}

/* Makes an endpoint with posted receives. After a failure the caller still calls release(). */
static DAT_RETURN prepare(struct server *server, struct client *client) {
  DAT_EP_ATTR attributes;
  DAT_REGION_DESCRIPTION region;
  DAT_RETURN code;
  int i;

  fs_start(&client->session, server->root);
  client->memory = malloc(MEMORY_SIZE);
  if (client->memory == NULL) return DAT_INSUFFICIENT_RESOURCES;
  region.for_va = client->memory;
  code = dat_lmr_create(server->ia, DAT_MEM_TYPE_VIRTUAL, region, MEMORY_SIZE, server->pz,
                        DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
                        DAT_VA_TYPE_VA, &client->lmr, &client->lmr_context, NULL, NULL, NULL);
  if (code != DAT_SUCCESS) return code;
  memset(&attributes, 0, sizeof attributes);
  attributes.service_type = DAT_SERVICE_TYPE_RC;
  attributes.max_message_size = FP_MESSAGE_SIZE;
  attributes.qos = DAT_QOS_BEST_EFFORT;
  attributes.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
  attributes.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
  attributes.max_recv_dtos = FP_REQUESTS;
  attributes.max_request_dtos = SENDS;
  attributes.max_recv_iov = 1;
  attributes.max_request_iov = 1;
  code = dat_ep_create(server->ia, server->pz, server->evd, server->evd, server->evd, &attributes,
                       &client->ep);
  for (i = 0; i < FP_REQUESTS + SENDS && code == DAT_SUCCESS; i++) {
    struct message *message = &client->messages[i];
    message->client = client;
    message->is_receive = i < FP_REQUESTS;
    if (message->is_receive) {
      message->data = client->memory + i * FP_REQUEST_SIZE;
      code = post(message, FP_REQUEST_SIZE);
    } else {
      message->data =
          client->memory + FP_REQUESTS * FP_REQUEST_SIZE + (i - FP_REQUESTS) * FP_MESSAGE_SIZE;
      message->next = client->idle;
      client->idle = message;
    }
  }
  return code;
}

static void on_request(struct server *server, DAT_CR_HANDLE request) {
  struct client *client = NULL;
  DAT_RETURN code = DAT_INSUFFICIENT_RESOURCES;
  int i;

  for (i = 0; i < MAX_CLIENTS && client == NULL; i++) {
    if (server->clients[i].memory == NULL) client = &server->clients[i];
  }
  if (client != NULL) {
    code = prepare(server, client);
    if (code == DAT_SUCCESS) code = dat_cr_accept(request, client->ep, 0, NULL);
    if (code == DAT_SUCCESS) return;
    release(client);
  }
  fprintf(stderr, "dfiled: refused a client: %s\n", dat_text(code));
  dat_cr_reject(request, 0, NULL);
}

static void on_completion(const DAT_DTO_COMPLETION_EVENT_DATA *event) {
  struct message *message = event->user_cookie.as_ptr;
  struct client *client = message->client;
  const char *wrong;

  /* Messages that were posted for a client that could not be accepted may still come back. */
  if (client == NULL || client->ep != event->ep_handle) return;
  client->posted--;
  if (event->status != DAT_DTO_SUCCESS) {
    /* A transfer in flight may report the connection's end before the connection's event does. */
    if (event->status == DAT_DTO_ERR_TRANSPORT) {
      hang_up(client, "connection lost");
    } else if (event->status != DAT_DTO_ERR_FLUSHED) {
      hang_up(client, "a transfer has failed");
    }
    return;
  }
  if (message->is_receive) {
    wrong = fs_take(&client->session, message->data, (unsigned)event->transfered_length);
    if (wrong == NULL && post(message, FP_REQUEST_SIZE) != DAT_SUCCESS) {
      wrong = "a receive that could not be posted";
    }
    if (wrong != NULL || client->session.finished) {
      hang_up(client, wrong);
      return;
    }
  } else {
    message->next = client->idle;
    client->idle = message;
  }
  send_ready(client);
}

static void on_connection_end(struct server *server, DAT_EP_HANDLE ep) {
  int i;

  for (i = 0; i < MAX_CLIENTS; i++) {
    struct client *client = &server->clients[i];
    if (client->memory == NULL || client->ep != ep) continue;
    client->ended = 1;
    if (client->wrong == NULL && !client->session.finished) client->wrong = "connection lost";
  }
}

/* Releases the clients whose last event has come. Returns how many left in order, or -1 if one did
 * not. */
static int say_goodbye(struct server *server) {
  int i, left = 0;

  for (i = 0; i < MAX_CLIENTS; i++) {
    struct client *client = &server->clients[i];
    if (client->memory == NULL || !client->ended || client->posted > 0) continue;
    printf("dfiled: %lu files, %.0f bytes%s%s\n", client->session.files, client->session.bytes,
           client->wrong != NULL ? "; " : "", client->wrong != NULL ? client->wrong : "");
    fflush(stdout);
    left = client->wrong == NULL && left >= 0 ? left + 1 : -1;
    release(client);
  }
  return left;
}

static int serve(struct server *server) {
  DAT_EVENT event;
  DAT_COUNT more;
  DAT_RETURN code;
  int left = 0;

  while (!server->once || left == 0) {
    code = dat_evd_wait(server->evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
    if (DAT_GET_TYPE(code) == DAT_INTERRUPTED_CALL) continue;
    if (code != DAT_SUCCESS) {
      fprintf(stderr, "dfiled: cannot wait for events: %s\n", dat_text(code));
      return 1;
    }
    switch (event.event_number) {
      case DAT_CONNECTION_REQUEST_EVENT:
        on_request(server, event.event_data.cr_arrival_event_data.cr_handle);
        break;
      case DAT_DTO_COMPLETION_EVENT:
        on_completion(&event.event_data.dto_completion_event_data);
        break;
      case DAT_CONNECTION_EVENT_ESTABLISHED:
        break;
      default: /* the other connection events end a connection */
        on_connection_end(server, event.event_data.connect_event_data.ep_handle);
        break;
    }
    left = say_goodbye(server);
  }
  return left > 0 ? 0 : 1;
}

static int run(struct server *server, const char *device, unsigned long service) {
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_PSP_HANDLE psp;
  DAT_RETURN code;
  const char *what = "open the adapter";
  int status;

  code = dat_ia_open((DAT_NAME_PTR)device, 8, &async, &server->ia);
  if (code == DAT_SUCCESS) {
    what = "make an event dispatcher";
    code =
        dat_evd_create(server->ia, EVENTS, DAT_HANDLE_NULL,
                       DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG, &server->evd);
  }
  if (code == DAT_SUCCESS) {
    what = "make a protection zone";
    code = dat_pz_create(server->ia, &server->pz);
  }
  if (code == DAT_SUCCESS) {
    what = "offer the service";
    code = dat_psp_create(server->ia, service, server->evd, DAT_PSP_CONSUMER_FLAG, &psp);
  }
  if (code != DAT_SUCCESS) {
    fprintf(stderr, "dfiled: %s, service %lu: cannot %s: %s\n", device, service, what,
            dat_text(code));
    return 1;
  }
  printf("dfiled: files below %s, service %lu\n", server->root, service);
  fflush(stdout);
  status = serve(server);
  dat_ia_close(server->ia, DAT_CLOSE_ABRUPT_FLAG);
  return status;
}

int main(int argc, char **argv) {
  static struct server server;
  const char *device = "soft0";
  unsigned long service = FP_SERVICE;
  int option;

  while ((option = getopt(argc, argv, "d:p:1h")) != -1) {
    switch (option) {
      case 'd':
        device = optarg;
        break;
      case 'p':
        if (fp_parse_number(optarg, &service) != 0) {
          fprintf(stderr, "dfiled: %s: not the number of a service\n", optarg);
          return 2;
        }
        break;
      case '1':
        server.once = 1;
        break;
      case 'h':
        fputs(usage, stdout);
        return 0;
      default:
        fputs(usage, stderr);
        return 2;
    }
  }
  if (argc - optind != 1) {
    fputs(usage, stderr);
    return 2;
  }
  server.root = realpath(argv[optind], NULL);
  if (server.root == NULL || chdir(server.root) != 0) {
    fprintf(stderr, "dfiled: %s: %s\n", argv[optind], strerror(errno));
    return 2;
  }
  return run(&server, device, service);
}
