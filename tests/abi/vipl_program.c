/* The ways in which old programs of both dialects use vipl.h, in one file. */
#include <vipl.h>

/* A program's own macro for a constant that is an enumerator here. */
#ifndef VIP_ERROR_NOT_SUPPORTED
#define VIP_ERROR_NOT_SUPPORTED -33333
#endif

/* Attributes by position: the order of the members is part of the API. */
static VIP_VI_ATTRIBUTES attributes = {
    VIP_SERVICE_RELIABLE_DELIVERY, 32768, 0, 0, VIP_TRUE, VIP_FALSE,
};

static const char *result_name(int result) {
  switch (result) {
    case VIP_SUCCESS:
      return "success";
    case VIP_ERROR_NOT_SUPPORTED:
      return "not supported";
    case VIP_NO_MATCH:
      return "no match";
    default:
      return "error";
  }
}

/* Functions kept in a table, as a program that loads the library at run time does. */
static struct {
  VIP_RETURN (*open_nic)(const VIP_CHAR *, VIP_NIC_HANDLE *);
  VIP_RETURN (*by_name)(VIP_NIC_HANDLE, VIP_CHAR *, VIP_NET_ADDRESS *, VIP_ULONG);
} functions;

/* The members' names in Intel's guide, M-VIA, and cLAN with VIPL095. */
static void fill_segments(VIP_DESCRIPTOR *descriptor, void *data, VIP_MEM_HANDLE handle) {
  descriptor->CS.Next.Address = 0;
  descriptor->CS.SegCount = 2;
  descriptor->CS.Control = VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE;
  descriptor->CS.Length = 4096;
  descriptor->CS.Status = 0;
  descriptor->DS[0].Remote.Data.AddressBits = 0;
  descriptor->DS[0].Remote.Handle = handle;
  descriptor->DS[1].Local.Data.Address = data;
  descriptor->DS[1].Local.Handle = handle;
  descriptor->DS[1].Local.Length = 4096;
}

/* The members' names in cLAN. */
static VIP_UINT32 sum_segments(VIP_DESCRIPTOR *descriptor) {
  VIP_UINT32 sum = descriptor->Control.Length;
  while (!(descriptor->Control.Status & VIP_STATUS_DONE)) sum += descriptor->Data[1].Length;
  if (descriptor->Control.Next.Descriptor == descriptor) sum += descriptor->Data[0].Handle;
  return sum;
}

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {
  *(VIP_ERROR_CODE *)context = error->ErrorCode;
}

int main(int argc, char **argv) {
  VIP_NIC_HANDLE nic;
  VIP_NIC_ATTRIBUTES nic_attributes;
  VIP_VI_HANDLE vi;
  VIP_DESCRIPTOR descriptor;
  VIP_ERROR_CODE error = VIP_ERROR_POST_DESC;
  VIP_ULONG timeout = argc > 1 ? VIP_INFINITE : 100;
  VIP_DESCRIPTOR *done;

  functions.open_nic = VipOpenNic;
  functions.by_name = VipNSGetHostByName;
  if (functions.open_nic("nic0", &nic) != VIP_SUCCESS) return result_name(1)[0];
  VipErrorCallback(nic, &error, on_error);
  VipQueryNic(nic, &nic_attributes);
  if (nic_attributes.ReliabilityLevelSupport >= VIP_SERVICE_RELIABLE_RECEPTION) {
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_RECEPTION;
  }
  VipCreateVi(nic, &attributes, 0, 0, &vi);
  fill_segments(&descriptor, argv, 1);
  VipPostSend(vi, &descriptor, 1);
  VipSendWait(vi, timeout, &done);
  return (int)sum_segments(done);
}
