#include "vialink.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "fileproto.h"

const char *via_text(VIP_RETURN code) {
  static const char *const texts[] = {"success",
                                      "not done",
                                      "invalid parameter",
                                      "out of resources",
                                      "no answer in time",
                                      "the connection was refused",
                                      "reliability level not supported",
                                      "transfer size not supported",
                                      "quality of service not supported",
                                      "invalid protection tag",
                                      "RDMA read not supported",
                                      "a descriptor failed",
                                      "invalid state",
                                      "the name service has failed",
                                      "nobody waits there",
                                      "not reachable",
                                      "not supported"};

  if (code == VIP_INVALID_ADDRESS) return "not an address of this NIC";
  if ((unsigned)code < sizeof texts / sizeof texts[0]) return texts[code];
  return "unknown error";
}

int via_parse_rank(const char *text, int size) {
  char *end;
  unsigned long rank = strtoul(text, &end, 10);

  if (!isdigit((unsigned char)*text) || *end != '\0' || rank >= (unsigned long)size) return -1;
  return (int)rank;
}

void via_set_address(union via_address *address, const VIP_UINT8 *host, VIP_UINT16 host_length,
                     unsigned long service) {
  address->net.HostAddressLen = host_length;
  memmove(address->net.HostAddress, host, host_length);
  address->net.DiscriminatorLen = 8;
  fp_discriminator(service, address->net.HostAddress + host_length);
}

void via_attributes(VIP_VI_ATTRIBUTES *attributes, VIP_PROTECTION_HANDLE ptag) {
  memset(attributes, 0, sizeof *attributes);
  attributes->ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
  attributes->MaxTransferSize = FP_MESSAGE_SIZE;
  attributes->Ptag = ptag;
}

/* Rounds up the size of a message, so that the descriptor after it is aligned. */
static unsigned stride(unsigned size) {
  return sizeof(VIP_DESCRIPTOR) + (size + VIP_DESCRIPTOR_ALIGNMENT - 1) / VIP_DESCRIPTOR_ALIGNMENT *
                                      VIP_DESCRIPTOR_ALIGNMENT;
}

char *via_data(VIP_DESCRIPTOR *descriptor) { return (char *)(descriptor + 1); }

static void set_data(struct via_link *link, VIP_DESCRIPTOR *descriptor, unsigned length) {
  descriptor->DS[0].Local.Data.Address = via_data(descriptor);
  descriptor->DS[0].Local.Handle = link->memory;
  descriptor->DS[0].Local.Length = length;
  descriptor->CS.SegCount = 1;
  descriptor->CS.Length = length;
}

static void make_idle(struct via_link *link, VIP_DESCRIPTOR *descriptor) {
  descriptor->CS.Next.Address = link->idle;
  link->idle = descriptor;
}

VIP_RETURN via_open(struct via_link *link, VIP_NIC_HANDLE nic, unsigned receives,
                    unsigned receive_size, unsigned sends, unsigned send_size) {
  VIP_VI_ATTRIBUTES attributes;
  VIP_MEM_ATTRIBUTES memory_attributes;
  VIP_DESCRIPTOR *descriptor;
  VIP_RETURN code;
  VIP_ULONG length =
      (VIP_ULONG)receives * stride(receive_size) + (VIP_ULONG)sends * stride(send_size);
  unsigned i;

  memset(link, 0, sizeof *link);
  link->nic = nic;
  link->block = calloc(1, length + VIP_DESCRIPTOR_ALIGNMENT);
  if (link->block == NULL) return VIP_ERROR_RESOURCE;
  link->base = link->block;
  while ((VIP_ULONG)link->base % VIP_DESCRIPTOR_ALIGNMENT != 0) link->base++;

  code = VipCreatePtag(nic, &link->ptag);
  if (code != VIP_SUCCESS) return code;
  memset(&memory_attributes, 0, sizeof memory_attributes);
  memory_attributes.Ptag = link->ptag;
  code = VipRegisterMem(nic, link->base, length, &memory_attributes, &link->memory);
  if (code != VIP_SUCCESS) return code;
  code = VipCreateCQ(nic, receives + sends, &link->cq);
  if (code != VIP_SUCCESS) return code;
  via_attributes(&attributes, link->ptag);
  code = VipCreateVi(nic, &attributes, link->cq, link->cq, &link->vi);
  if (code != VIP_SUCCESS) return code;

  for (i = 0; i < receives; i++) {
    descriptor = (VIP_DESCRIPTOR *)(link->base + i * stride(receive_size));
    set_data(link, descriptor, receive_size);
    code = via_post_receive(link, descriptor);
    if (code != VIP_SUCCESS) return code;
  }
  for (i = 0; i < sends; i++) {
    make_idle(link, (VIP_DESCRIPTOR *)(link->base + receives * stride(receive_size) +
                                       i * stride(send_size)));
  }
  return VIP_SUCCESS;
}

void via_close(struct via_link *link) {
  VIP_DESCRIPTOR *descriptor;

  if (link->vi != NULL) {
    VipDisconnect(link->vi);
    do VipSendDone(link->vi, &descriptor);
    while (descriptor != NULL);
    do VipRecvDone(link->vi, &descriptor);
    while (descriptor != NULL);
    VipDestroyVi(link->vi);
  }
  if (link->cq != NULL) VipDestroyCQ(link->cq);
  if (link->memory != 0) VipDeregisterMem(link->nic, link->base, link->memory);
  if (link->ptag != NULL) VipDestroyPtag(link->nic, link->ptag);
  free(link->block);
  memset(link, 0, sizeof *link);
}

VIP_RETURN via_post_receive(struct via_link *link, VIP_DESCRIPTOR *descriptor) {
  descriptor->CS.Control = VIP_CONTROL_OP_SENDRECV;
  descriptor->CS.Length = descriptor->DS[0].Local.Length;
  descriptor->CS.Reserved = 0;
  descriptor->CS.Status = 0;
  return VipPostRecv(link->vi, descriptor, link->memory);
}

VIP_DESCRIPTOR *via_take_send(struct via_link *link) {
  VIP_DESCRIPTOR *descriptor = link->idle;

  if (descriptor != NULL) link->idle = descriptor->CS.Next.Address;
  return descriptor;
}

VIP_RETURN via_post_send(struct via_link *link, VIP_DESCRIPTOR *descriptor, unsigned length,
                         const VIP_UINT32 *immediate) {
  set_data(link, descriptor, length);
  descriptor->CS.Control = VIP_CONTROL_OP_SENDRECV;
  if (immediate != NULL) {
    descriptor->CS.Control |= VIP_CONTROL_IMMEDIATE;
    descriptor->CS.ImmediateData = *immediate;
  }
  descriptor->CS.Reserved = 0;
  descriptor->CS.Status = 0;
  return VipPostSend(link->vi, descriptor, link->memory);
}

VIP_RETURN via_next(struct via_link *link, VIP_ULONG timeout, VIP_DESCRIPTOR **received) {
  VIP_VI_HANDLE vi;
  VIP_BOOLEAN is_receive;
  VIP_DESCRIPTOR *descriptor;
  VIP_RETURN code;

  *received = NULL;
  code = timeout == 0 ? VipCQDone(link->cq, &vi, &is_receive)
                      : VipCQWait(link->cq, timeout, &vi, &is_receive);
  if (code != VIP_SUCCESS) return code;
  code = is_receive ? VipRecvDone(vi, &descriptor) : VipSendDone(vi, &descriptor);
  if (code != VIP_SUCCESS) return code;
  if (is_receive) {
    *received = descriptor;
  } else {
    make_idle(link, descriptor);
  }
  return VIP_SUCCESS;
}
