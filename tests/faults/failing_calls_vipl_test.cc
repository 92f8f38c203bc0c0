// failing_calls_dat_test.cc for VIPL programs.
#include <vipl.h>

#include <functional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"
#include "tests/faults/lives.h"

namespace viaduct::tests {
namespace {

constexpr int kRounds = 3;
constexpr VIP_ULONG kLong = 20000, kOneAttempt = 2000;  // ms
constexpr VIP_ULONG kEntries = 16;
constexpr int kLastReceive = kRounds, kSend = kRounds + 1;  // indices of descriptors

VIP_ULONG TimeoutOf(Patience patience) {
  if (patience == Patience::kForever) return VIP_INFINITE;
  return patience == Patience::kLong ? kLong : kOneAttempt;
}

void Try(VIP_RETURN value, const char* call) {
  if (value != VIP_SUCCESS) throw Refused(call + (": " + std::to_string(value)));
}
// Expects that what is waited for comes, or that a call reports that it will not.
void TryWait(VIP_RETURN value, const char* what) {
  if (value == VIP_TIMEOUT) ADD_FAILURE() << what << " never came";
  Try(value, what);
}

// A program that checks every return value.
class Program {
 public:
  Program() {
    Try(VipOpenNic("nic0", &nic_), "VipOpenNic");
    absl::Cleanup close = [this] { Close(); };
    Try(VipErrorCallback(nic_, nullptr, [](VIP_PVOID, VIP_ERROR_DESCRIPTOR*) {}),
        "VipErrorCallback");
    Try(VipQueryNic(nic_, &attributes_), "VipQueryNic");
    VIP_MEM_ATTRIBUTES attributes = {};
    Try(VipRegisterMem(nic_, &memory_, sizeof memory_, &attributes, &handle_), "VipRegisterMem");
    Try(VipCreateCQ(nic_, kEntries, &cq_), "VipCreateCQ");
    std::move(close).Cancel();
  }
  ~Program() {
    EXPECT_EQ(VipDestroyCQ(cq_), VIP_SUCCESS);
    EXPECT_EQ(VipDeregisterMem(nic_, &memory_, handle_), VIP_SUCCESS);
    Close();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  char Serve(char say, Patience patience) {
    NetAddress local = Address(Name(0)), remote;
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE request;
    TryWait(VipConnectWait(nic_, local.get(), TimeoutOf(patience), remote.get(), &theirs, &request),
            "a request");
    absl::Cleanup reject = [&] { (void)VipConnectReject(request); };
    return Live(
        [&](VIP_VI_HANDLE vi) {
          std::move(reject).Cancel();
          return VipConnectAccept(request, vi);
        },
        say, false);
  }
  char Call(char say, Patience patience) {
    return Live(
        [&](VIP_VI_HANDLE vi) {
          NetAddress local = Address("client"), remote = Address(Name(0));
          VIP_VI_ATTRIBUTES theirs;
          return VipConnectRequest(vi, local.get(), remote.get(), TimeoutOf(patience), &theirs);
        },
        say, true);
  }

 private:
  NetAddress Address(const std::string& discriminator) const {
    return NetAddress(attributes_.LocalNicAddress, attributes_.NicAddressLen, discriminator);
  }
  void Close() { EXPECT_EQ(VipCloseNic(nic_), VIP_SUCCESS); }

  char Live(const std::function<VIP_RETURN(VIP_VI_HANDLE)>& begin, char say, bool first) {
    VIP_VI_ATTRIBUTES attributes = Attributes();
    VIP_VI_HANDLE vi;
    Try(VipCreateVi(nic_, &attributes, cq_, nullptr, &vi), "VipCreateVi");
    absl::Cleanup destroy = [&] {
      EXPECT_EQ(VipDisconnect(vi), VIP_SUCCESS);
      for (auto* done : {&VipSendDone, &VipRecvDone}) {
        VIP_DESCRIPTOR* descriptor = nullptr;
        do {
          (void)done(vi, &descriptor);
        } while (descriptor != nullptr);
      }
      EXPECT_EQ(VipDestroyVi(vi), VIP_SUCCESS);
    };
    for (int n = 0; n <= kLastReceive; ++n) {
      Try(VipPostRecv(vi, Fill(n, &memory_.heard), handle_), "VipPostRecv");
    }
    Try(begin(vi), "connecting");
    memory_.said = say;
    for (int round = 0; round < kRounds; ++round) {
      if (first) Say(vi);
      VIP_DESCRIPTOR* heard = nullptr;
      TryWait(VipRecvWait(vi, kLong, &heard), "a message");
      if (!first) Say(vi);
    }
    if (!first) AwaitEnd(vi);
    return memory_.heard;
  }
  VIP_DESCRIPTOR* Fill(int n, char* byte) {
    VIP_DESCRIPTOR* const descriptor = &memory_.descriptors[n];
    *descriptor = {};
    descriptor->CS.SegCount = 1;
    descriptor->CS.Length = 1;
    descriptor->DS[0].Local.Data.Address = byte;
    descriptor->DS[0].Local.Handle = handle_;
    descriptor->DS[0].Local.Length = 1;
    return descriptor;
  }
  void Say(VIP_VI_HANDLE vi) {
    Try(VipPostSend(vi, Fill(kSend, &memory_.said), handle_), "VipPostSend");
    VIP_VI_HANDLE of = nullptr;
    VIP_BOOLEAN receive = VIP_FALSE;
    TryWait(VipCQWait(cq_, kLong, &of, &receive), "a completion");
    EXPECT_EQ(of, vi);
    VIP_DESCRIPTOR* said = nullptr;
    Try(VipSendDone(vi, &said), "VipSendDone");
  }
  // The last receive is only there to be flushed at the end.
  void AwaitEnd(VIP_VI_HANDLE vi) {
    VIP_DESCRIPTOR* done = nullptr;
    EXPECT_EQ(VipRecvWait(vi, kLong, &done), VIP_DESCRIPTOR_ERROR);
  }

  VIP_NIC_HANDLE nic_ = nullptr;
  VIP_NIC_ATTRIBUTES attributes_ = {};
  VIP_MEM_HANDLE handle_ = 0;
  VIP_CQ_HANDLE cq_ = nullptr;
  struct {
    alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR descriptors[kSend + 1];
    char said, heard;
  } memory_ = {};
};

TEST(FailingCalls, OfAClient) { TryEachCallOfAClient<Program>(FailEachCall); }
TEST(FailingCalls, OfAServer) { TryEachCallOfAServer<Program>(FailEachCall); }

TEST(LastCall, OfAClient) { TryEachCallOfAClient<Program>(DieAtEachCall); }
TEST(LastCall, OfAServer) { TryEachCallOfAServer<Program>(DieAtEachCall); }

}  // namespace
}  // namespace viaduct::tests
