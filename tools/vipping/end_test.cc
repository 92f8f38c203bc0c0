#include "tools/vipping/end.h"

#include <dlfcn.h>

#include "gtest/gtest.h"

namespace {

int g_things = 0;  // the number of existing regions and completion queues

template <typename Function>
Function* Vipl(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE nic, VIP_PVOID address, VIP_ULONG bytes,
                                     VIP_MEM_ATTRIBUTES* attributes, VIP_MEM_HANDLE* memory) {
  ++g_things;
  return Vipl<decltype(VipRegisterMem)>("VipRegisterMem")(nic, address, bytes, attributes, memory);
}

extern "C" VIP_RETURN VipDeregisterMem(VIP_NIC_HANDLE nic, VIP_PVOID address,
                                       VIP_MEM_HANDLE memory) {
  --g_things;
  return Vipl<decltype(VipDeregisterMem)>("VipDeregisterMem")(nic, address, memory);
}

extern "C" VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE nic, VIP_ULONG entries, VIP_CQ_HANDLE* cq) {
  ++g_things;
  return Vipl<decltype(VipCreateCQ)>("VipCreateCQ")(nic, entries, cq);
}

extern "C" VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE cq) {
  --g_things;
  return Vipl<decltype(VipDestroyCQ)>("VipDestroyCQ")(cq);
}

namespace viaduct::vipping {
namespace {

TEST(End, LeavesNothingIfItCannotBeMade) {
  const Nic nic("nic0");
  Parameters parameters;
  parameters.completion = Completion::kCq;
  constexpr VIP_RELIABILITY_LEVEL kNone = 0;
  EXPECT_THROW(End(nic, parameters, kNone, /*timeout_seconds=*/1), Failure);
  EXPECT_EQ(g_things, 0);
}

}  // namespace
}  // namespace viaduct::vipping
