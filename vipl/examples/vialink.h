/*
 * What a VIA program needs for one connection: a VI with one completion queue for both its work
 * queues, and messages in registered memory, each right after its descriptor. Used by one thread.
 */
#ifndef VIADUCT_VIPL_EXAMPLES_VIALINK_H_
#define VIADUCT_VIPL_EXAMPLES_VIALINK_H_

#include <vipl.h>

/* An address with room for every host and discriminator. */
union via_address {
  VIP_NET_ADDRESS net;
  char room[sizeof(VIP_NET_ADDRESS) + 255 + 255];
};

struct via_link {
  VIP_NIC_HANDLE nic;
  VIP_PROTECTION_HANDLE ptag;
  VIP_CQ_HANDLE cq;
  VIP_VI_HANDLE vi;
  VIP_MEM_HANDLE memory;
  void *block;          /* as malloc gave it */
  char *base;           /* aligned, registered */
  VIP_DESCRIPTOR *idle; /* free sends, chained by CS.Next */
};

/* What a VIP_RETURN means, in words. */
const char *via_text(VIP_RETURN code);

/* The rank of a process among `size` of them, or -1 if the text is none. */
int via_parse_rank(const char *text, int size);

/* Fills in a host address and the discriminator of a service. */
void via_set_address(union via_address *address, const VIP_UINT8 *host, VIP_UINT16 host_length,
                     unsigned long service);

/* The attributes that both ends of the file service use. */
void via_attributes(VIP_VI_ATTRIBUTES *attributes, VIP_PROTECTION_HANDLE ptag);

/* Opens a link: an Idle VI on which `receives` messages of `receive_size` bytes are posted, with
 * `sends` idle ones of `send_size` bytes. After a failure via_close must still be called. */
VIP_RETURN via_open(struct via_link *link, VIP_NIC_HANDLE nic, unsigned receives,
                    unsigned receive_size, unsigned sends, unsigned send_size);

/* Disconnects, and releases everything. */
void via_close(struct via_link *link);

/* The bytes of a message. */
char *via_data(VIP_DESCRIPTOR *descriptor);

/* Posts a receive again. */
VIP_RETURN via_post_receive(struct via_link *link, VIP_DESCRIPTOR *descriptor);

/* Takes an idle send, or returns NULL when all are posted; via_next brings them back. */
VIP_DESCRIPTOR *via_take_send(struct via_link *link);

/* Sends `length` bytes of via_data. With `immediate`, that number is sent along. */
VIP_RETURN via_post_send(struct via_link *link, VIP_DESCRIPTOR *descriptor, unsigned length,
                         const VIP_UINT32 *immediate);

/* Waits for the next completion of either queue, or with 0 only checks for one.
 * VIP_SUCCESS: a message has come in `*received`, or that is NULL and a send is idle again.
 * VIP_TIMEOUT, VIP_NOT_DONE: nothing yet. VIP_DESCRIPTOR_ERROR: the connection is gone. */
VIP_RETURN via_next(struct via_link *link, VIP_ULONG timeout, VIP_DESCRIPTOR **received);

#endif /* VIADUCT_VIPL_EXAMPLES_VIALINK_H_ */
