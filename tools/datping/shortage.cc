// Makes datping_short short of endpoints once: the call of dat_ep_create fails whose number is in
// the environment variable SHORTAGE.
#include <dat2/udat.h>
#include <dlfcn.h>
#include <stdlib.h>

#include <atomic>

extern "C" DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE zone,
                                    DAT_EVD_HANDLE receive_evd, DAT_EVD_HANDLE request_evd,
                                    DAT_EVD_HANDLE connect_evd, const DAT_EP_ATTR* attributes,
                                    DAT_EP_HANDLE* ep) {
  static const auto dat =
      reinterpret_cast<decltype(&dat_ep_create)>(dlsym(RTLD_NEXT, "dat_ep_create"));
  static std::atomic<int> calls_left{atoi(getenv("SHORTAGE"))};
  if (--calls_left == 0) return DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES;
  return dat(ia, zone, receive_evd, request_evd, connect_evd, attributes, ep);
}
