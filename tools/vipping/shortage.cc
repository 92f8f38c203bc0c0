// Makes vipping_short short of VIs once: the call of VipCreateVi fails whose number is in the
// environment variable SHORTAGE.
#include <dlfcn.h>
#include <stdlib.h>
#include <vipl.h>

extern "C" VIP_RETURN VipCreateVi(VIP_NIC_HANDLE nic, VIP_VI_ATTRIBUTES* attributes,
                                  VIP_CQ_HANDLE send_cq, VIP_CQ_HANDLE receive_cq,
                                  VIP_VI_HANDLE* vi) {
  static const auto vipl =
      reinterpret_cast<decltype(&VipCreateVi)>(dlsym(RTLD_NEXT, "VipCreateVi"));
  static int calls_left = atoi(getenv("SHORTAGE"));
  if (--calls_left == 0) return VIP_ERROR_RESOURCE;
  return vipl(nic, attributes, send_cq, receive_cq, vi);
}
