/*
 * A notice board in the server's memory, which clients read and write by themselves: RDMA. The
 * server takes no part in it; the private data of its accept says where the board is.
 *
 *   board SERVICE              keeps a board for one client at a time and shows it after each;
 *                              ends at the word "end"
 *   board SERVICE HOST TEXT    prints what is on the board of HOST, and writes TEXT there
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dat/examples/datlink.h"

#define BOARD_SIZE 64

static const char usage[] = "usage: board SERVICE [HOST TEXT]\n";

/* What is sent, in network order, because the two machines may differ. */
struct place {
  DAT_UINT32 address_high, address_low, context, length;
};

static char board[BOARD_SIZE] = "nothing";

static void serve(struct link *link, DAT_CONN_QUAL service) {
  struct memory memory;
  struct place place;
  DAT_PSP_HANDLE psp;
  DAT_EVENT event;
  DAT_CR_HANDLE request;
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL; /* the client's, while there is one */

  link_register(link, board, sizeof board, 1, &memory);
  place.address_high = htonl((DAT_UINT32)(memory.local.virtual_address >> 32));
  place.address_low = htonl((DAT_UINT32)memory.local.virtual_address);
  place.context = htonl(memory.for_others);
  place.length = htonl(sizeof board);
  must(dat_psp_create(link->ia, service, link->evd, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create");
  puts("waiting");
  while (ep != DAT_HANDLE_NULL || strcmp(board, "end") != 0) {
    fflush(stdout);
    event = link_next(link);
    switch (event.event_number) {
      case DAT_CONNECTION_REQUEST_EVENT:
        request = event.event_data.cr_arrival_event_data.cr_handle;
        if (ep != DAT_HANDLE_NULL) {
          must(dat_cr_reject(request, 0, NULL), "dat_cr_reject");
          break;
        }
        ep = link_endpoint(link);
        must(dat_cr_accept(request, ep, sizeof place, &place), "dat_cr_accept");
        break;
      case DAT_CONNECTION_EVENT_ESTABLISHED:
        break;
      default: /* the client has left, in order or not, perhaps before it was connected */
        must(dat_ep_free(ep), "dat_ep_free");
        ep = DAT_HANDLE_NULL;
        board[sizeof board - 1] = '\0'; /* clients may write anything */
        printf("board: %s\n", board);
    }
  }
}

static void use(struct link *link, DAT_CONN_QUAL service, const char *host, const char *text) {
  static const DAT_DTO_COOKIE cookie;
  struct memory memory;
  struct place place;
  DAT_RMR_TRIPLET remote;
  DAT_EVENT event;
  DAT_EP_HANDLE ep;

  link_register(link, board, sizeof board, 0, &memory);
  ep = link_endpoint(link);
  link_connect(ep, service, host);
  event = link_await(link, DAT_CONNECTION_EVENT_ESTABLISHED);
  if (event.event_data.connect_event_data.private_data_size != sizeof place) {
    fprintf(stderr, "that is no board\n");
    exit(1);
  }
  memcpy(&place, event.event_data.connect_event_data.private_data, sizeof place);
  remote.virtual_address = (DAT_VADDR)ntohl(place.address_high) << 32 | ntohl(place.address_low);
  remote.rmr_context = ntohl(place.context);
  remote.segment_length = ntohl(place.length);

  must(dat_ep_post_rdma_read(ep, 1, &memory.local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG),
       "dat_ep_post_rdma_read");
  link_await(link, DAT_DTO_COMPLETION_EVENT);
  board[sizeof board - 1] = '\0';
  printf("was: %s\n", board);

  memset(board, 0, sizeof board);
  strncpy(board, text, sizeof board - 1);
  must(dat_ep_post_rdma_write(ep, 1, &memory.local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG),
       "dat_ep_post_rdma_write");
  link_await(link, DAT_DTO_COMPLETION_EVENT);
  /* What was posted arrives before the other side hears of the end. */
  must(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  link_await(link, DAT_CONNECTION_EVENT_DISCONNECTED);
}

int main(int argc, char **argv) {
  struct link link;
  DAT_CONN_QUAL service;

  if (argc != 2 && argc != 4) {
    fputs(usage, stderr);
    return 2;
  }
  service = link_service(argv[1], usage);
  link_open(&link);
  link_dispatcher(&link, DAT_HANDLE_NULL, 16);
  if (argc == 2) {
    serve(&link, service);
  } else {
    use(&link, service, argv[2], argv[3]);
  }
  must(dat_ia_close(link.ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
  return 0;
}
