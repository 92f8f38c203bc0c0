/*
 * filed: a file server over the Virtual Interface Architecture. fileproto.h describes the
 * protocol.
 *
 *     cc filed.c fileserve.c fileproto.c vialink.c -lvipl -lpthread -o filed
 *
 * The main thread waits for connections and gives each client a thread and a VI of its own. If
 * the NIC's library is not safe for threads, it serves one client after another.
 */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE /* realpath with a NULL buffer */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vipl.h>

#include "fileproto.h"
#include "fileserve.h"
#include "vialink.h"

#define MAX_CLIENTS 16     /* at a time; others are refused */
#define SENDS FP_WINDOW    /* messages that may be under way to a client */
#define PATIENCE_MS 120000 /* until a silent client is sent away */
#define CLIENT_NAME_SIZE 256

static const char usage[] =
    "usage: filed [-d DEVICE] [-p SERVICE] [-1] DIRECTORY\n"
    "Serves the files below DIRECTORY to fetch.\n"
    "  -d DEVICE   the NIC (nic0)\n"
    "  -p SERVICE  the number of the service (19970)\n"
    "  -1          serve one client, then exit: 0 if it went in order\n";

struct client {
  struct via_link link;
  struct fs_session session;
  char name[CLIENT_NAME_SIZE];
};

static pthread_mutex_t clients_lock = PTHREAD_MUTEX_INITIALIZER;
static int clients = 0;

static void count_clients(int change) {
  pthread_mutex_lock(&clients_lock);
  clients += change;
  pthread_mutex_unlock(&clients_lock);
}

static int room_for_client(void) {
  int room;

  pthread_mutex_lock(&clients_lock);
  room = clients < MAX_CLIENTS;
  pthread_mutex_unlock(&clients_lock);
  return room;
}

/* A lost connection shows in the descriptors of its VI; no other error should come here. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {
  (void)context;
  if (error->ErrorCode == VIP_ERROR_CONN_LOST) return;
  fprintf(stderr, "filed: asynchronous error %d of resource %d\n", (int)error->ErrorCode,
          (int)error->ResourceCode);
}

/* Sends what may be sent now. */
static VIP_RETURN send_ready(struct client *client) {
  VIP_DESCRIPTOR *descriptor;
  VIP_RETURN code = VIP_SUCCESS;

  while (code == VIP_SUCCESS && fs_ready(&client->session)) {
    descriptor = via_take_send(&client->link);
    if (descriptor == NULL) break;
    code = via_post_send(&client->link, descriptor, fs_next(&client->session, via_data(descriptor)),
                         NULL);
  }
  return code;
}

/* Takes a message of the client. Returns NULL, or what is wrong with it. */
static const char *take(struct client *client, VIP_DESCRIPTOR *descriptor) {
  const char *wrong;

  if (descriptor->CS.Status & VIP_STATUS_IMMEDIATE) {
    wrong = fs_take_word(&client->session, descriptor->CS.ImmediateData);
  } else {
    wrong = fs_take(&client->session, via_data(descriptor), descriptor->CS.Length);
  }
  if (wrong == NULL && via_post_receive(&client->link, descriptor) != VIP_SUCCESS) {
    wrong = "a receive that could not be posted";
  }
  return wrong;
}

/* Serves a connected client until it leaves. Returns NULL, or why it did not leave in order. */
static const char *serve(struct client *client) {
  VIP_DESCRIPTOR *received;
  VIP_RETURN code;
  const char *wrong;

  while (!client->session.finished) {
    received = NULL;
    code = send_ready(client);
    if (code == VIP_SUCCESS) code = via_next(&client->link, PATIENCE_MS, &received);
    if (code == VIP_TIMEOUT) return "silent for too long";
    if (code == VIP_DESCRIPTOR_ERROR) return "connection lost";
    if (code != VIP_SUCCESS && code != VIP_NOT_DONE) return via_text(code);
    if (received != NULL) {
      wrong = take(client, received);
      if (wrong != NULL) return wrong;
    }
  }
  return NULL;
}

/* Serves a client and releases it. Returns whether it left in order. */
static int serve_and_close(struct client *client) {
  const char *wrong = serve(client);

  via_close(&client->link);
  fs_end(&client->session);
  printf("filed: %s: %lu files, %.0f bytes%s%s\n", client->name, client->session.files,
         client->session.bytes, wrong != NULL ? "; " : "", wrong != NULL ? wrong : "");
  fflush(stdout);
  free(client);
  return wrong == NULL;
}

static void *client_thread(void *client) {
  serve_and_close(client);
  count_clients(-1);
  return NULL;
}

/* The name of a host, or its bytes with dots between them. */
static void name_host(VIP_NIC_HANDLE nic, VIP_NET_ADDRESS *address, char *name) {
  VIP_ULONG length = CLIENT_NAME_SIZE;
  unsigned i;

  if (VipNSGetHostByAddr(nic, address, name, &length) == VIP_SUCCESS) return;
  for (i = 0; i < address->HostAddressLen && i < CLIENT_NAME_SIZE / 4; i++) {
    name += sprintf(name, "%s%u", i > 0 ? "." : "", address->HostAddress[i]);
  }
}

/* Gives a waiting client a VI. Returns NULL when it has been refused or has gone. */
static struct client *accept_client(VIP_NIC_HANDLE nic, VIP_CONN_HANDLE connection,
                                    VIP_NET_ADDRESS *address, const char *root) {
  struct client *client = calloc(1, sizeof *client);
  VIP_RETURN code = VIP_ERROR_RESOURCE;

  if (client != NULL) {
    name_host(nic, address, client->name);
    fs_start(&client->session, root);
    if (room_for_client()) {
      code = via_open(&client->link, nic, FP_REQUESTS, FP_REQUEST_SIZE, SENDS, FP_MESSAGE_SIZE);
      if (code == VIP_SUCCESS) code = VipConnectAccept(connection, client->link.vi);
      if (code == VIP_SUCCESS) return client;
    }
    fprintf(stderr, "filed: refused %s: %s\n", client->name, via_text(code));
    via_close(&client->link);
    free(client);
  }
  VipConnectReject(connection);
  return NULL;
}

/* Starts the client's thread, or serves the client here if there can be no thread. */
static void start_client(struct client *client) {
  pthread_t thread;

  count_clients(+1);
  if (pthread_create(&thread, NULL, client_thread, client) == 0) {
    pthread_detach(thread);
  } else {
    client_thread(client);
  }
}

static int run(VIP_NIC_HANDLE nic, unsigned long service, const char *root, int once) {
  VIP_NIC_ATTRIBUTES nic_attributes;
  VIP_VI_ATTRIBUTES attributes;
  VIP_CONN_HANDLE connection;
  VIP_RETURN code;
  union via_address local, remote;
  struct client *client;

  code = VipQueryNic(nic, &nic_attributes);
  if (code == VIP_SUCCESS) code = VipErrorCallback(nic, NULL, on_error);
  if (code == VIP_SUCCESS) code = VipNSInit(nic, NULL);
  if (code != VIP_SUCCESS) {
    fprintf(stderr, "filed: %s\n", via_text(code));
    return 1;
  }
  via_set_address(&local, nic_attributes.LocalNicAddress, nic_attributes.NicAddressLen, service);
  printf("filed: files below %s, service %lu\n", root, service);
  fflush(stdout);
  for (;;) {
    code = VipConnectWait(nic, &local.net, VIP_INFINITE, &remote.net, &attributes, &connection);
    if (code != VIP_SUCCESS) {
      fprintf(stderr, "filed: cannot wait for clients of service %lu: %s\n", service,
              via_text(code));
      return 1;
    }
    client = accept_client(nic, connection, &remote.net, root);
    if (client == NULL) continue;
    if (once) return serve_and_close(client) ? 0 : 1;
    if (nic_attributes.ThreadSafe) {
      start_client(client);
    } else {
      serve_and_close(client);
    }
  }
}

int main(int argc, char **argv) {
  const char *device = "nic0";
  unsigned long service = FP_SERVICE;
  VIP_NIC_HANDLE nic;
  VIP_RETURN code;
  char *root;
  int once = 0, option, status;

  while ((option = getopt(argc, argv, "d:p:1h")) != -1) {
    switch (option) {
      case 'd':
        device = optarg;
        break;
      case 'p':
        if (fp_parse_number(optarg, &service) != 0) {
          fprintf(stderr, "filed: %s: not the number of a service\n", optarg);
          return 2;
        }
        break;
      case '1':
        once = 1;
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
  root = realpath(argv[optind], NULL);
  if (root == NULL || chdir(root) != 0) {
    fprintf(stderr, "filed: %s: %s\n", argv[optind], strerror(errno));
    return 2;
  }
  code = VipOpenNic(device, &nic);
  if (code != VIP_SUCCESS) {
    fprintf(stderr, "filed: cannot open %s: %s\n", device, via_text(code));
    return 1;
  }
  status = run(nic, service, root, once);
  VipCloseNic(nic);
  free(root);
  return status;
}
