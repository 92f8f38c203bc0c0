// An RDMA device that is taken out under VIPL programs: every NIC on it is notified, and every wait
// for a request ends, which nobody would end otherwise.
#include <poll.h>
#include <vipl.h>

#include <cstring>
#include <mutex>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/harness/sleeper.h"
#include "tests/faults/failing_device.h"

namespace viaduct::tests {
namespace {

constexpr int kPatience = 20'000;  // ms

class Errors {
 public:
  static void Note(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    Errors& errors = *static_cast<Errors*>(context);
    const std::lock_guard<std::mutex> hold(errors.mutex_);
    errors.list_.push_back(*error);
  }
  // Returns the errors as soon as there are any.
  std::vector<VIP_ERROR_DESCRIPTOR> Await() {
    for (int i = 0; i < kPatience && Get().empty(); ++i) poll(nullptr, 0, 1);
    return Get();
  }
  std::vector<VIP_ERROR_DESCRIPTOR> Get() {
    const std::lock_guard<std::mutex> hold(mutex_);
    return list_;
  }

 private:
  std::mutex mutex_;
  std::vector<VIP_ERROR_DESCRIPTOR> list_;
};

struct Nic {
  Nic() {
    EXPECT_EQ(VipOpenNic("nic0", &handle), VIP_SUCCESS);
    EXPECT_EQ(VipErrorCallback(handle, &errors, Errors::Note), VIP_SUCCESS);
  }
  VIP_RETURN WaitForRequest() const {
    VIP_NIC_ATTRIBUTES attributes;
    EXPECT_EQ(VipQueryNic(handle, &attributes), VIP_SUCCESS);
    alignas(8) char local[64] = {}, remote[64] = {};
    auto* const name = reinterpret_cast<VIP_NET_ADDRESS*>(local);
    name->HostAddressLen = attributes.NicAddressLen;
    memcpy(name->HostAddress, attributes.LocalNicAddress, attributes.NicAddressLen);
    name->DiscriminatorLen = 4;
    memcpy(name->HostAddress + name->HostAddressLen, "door", 4);
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE request;
    return VipConnectWait(handle, name, VIP_INFINITE, reinterpret_cast<VIP_NET_ADDRESS*>(remote),
                          &theirs, &request);
  }

  VIP_NIC_HANDLE handle = nullptr;
  Errors errors;
};

TEST(BrokenDevice, EveryNicAndWhoeverWaitsForARequestHears) {
  Nic nics[2];
  VIP_RETURN waited = VIP_SUCCESS;
  Sleeper waiter([&] { waited = nics[0].WaitForRequest(); });
  waiter.AwaitAsleep();
  BreakDevice();
  waiter.Join();
  EXPECT_EQ(waited, VIP_ERROR_RESOURCE);
  EXPECT_EQ(nics[1].WaitForRequest(), VIP_ERROR_RESOURCE);
  BreakDevice();  // reported only once
  for (Nic& nic : nics) {
    const std::vector<VIP_ERROR_DESCRIPTOR> errors = nic.errors.Await();
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_EQ(errors[0].ErrorCode, VIP_ERROR_CATASTROPHIC);
    EXPECT_EQ(errors[0].ResourceCode, VIP_RESOURCE_NIC);
    EXPECT_EQ(errors[0].NicHandle, nic.handle);
    EXPECT_EQ(errors[0].ViHandle, nullptr);
  }
  VIP_NIC_HANDLE late;
  EXPECT_EQ(VipOpenNic("nic0", &late), VIP_ERROR_RESOURCE);
  for (Nic& nic : nics) {
    EXPECT_EQ(VipCloseNic(nic.handle), VIP_SUCCESS);
    EXPECT_EQ(nic.errors.Get().size(), 1u);
  }
  EXPECT_EQ(VipOpenNic("nic0", &late), VIP_ERROR_RESOURCE);
}

}  // namespace
}  // namespace viaduct::tests
