#include <string.h>
#include <vipl.h>

#include <thread>
#include <vector>

#include "tests/hotpath/no_shared_lock.h"

namespace viaduct::hotpath {
namespace {

constexpr VIP_ULONG kTimeoutMilliseconds = 20000;

void Must(VIP_RETURN result) { ASSERT_EQ(result, VIP_SUCCESS); }

// One NIC, one protection tag, one region; two VIs for each connection, without completion queues.
class ViplProgram {
 public:
  explicit ViplProgram(int connections) : lines_(static_cast<size_t>(connections)) {
    Must(VipOpenNic(const_cast<char*>("nic0"), &nic_));
    Must(VipQueryNic(nic_, &nic_attributes_));
    Must(VipCreatePtag(nic_, &ptag_));
    VIP_MEM_ATTRIBUTES memory = {};
    memory.Ptag = ptag_;
    Must(VipRegisterMem(nic_, lines_.data(), lines_.size() * sizeof(Line), &memory, &memory_));
    for (Line& line : lines_) Connect(line);
  }
  ~ViplProgram() { VipCloseNic(nic_); }

  void Exchange(int c) {
    Line& line = lines_[static_cast<size_t>(c)];
    Prepare(&line.receive, line.in);
    Must(VipPostRecv(line.to, &line.receive, memory_));
    Prepare(&line.send, line.out);
    Must(VipPostSend(line.from, &line.send, memory_));
    Take(VipRecvDone, line.to);
    Take(VipSendDone, line.from);
  }

 private:
  struct Line {
    alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR send;
    alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR receive;
    char in[64];
    char out[64];
    VIP_VI_HANDLE from;
    VIP_VI_HANDLE to;
  };
  // An address with a discriminator of four bytes.
  struct NetAddress {
    explicit NetAddress(const VIP_NIC_ATTRIBUTES& nic) : bytes(64) {
      get()->HostAddressLen = nic.NicAddressLen;
      get()->DiscriminatorLen = 4;
      memcpy(get()->HostAddress, nic.LocalNicAddress, nic.NicAddressLen);
      memcpy(get()->HostAddress + nic.NicAddressLen, "lock", 4);
    }
    VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes.data()); }
    std::vector<char> bytes;
  };

  void Connect(Line& line) {
    VIP_VI_ATTRIBUTES attributes = {};
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes.MaxTransferSize = 4096;
    attributes.Ptag = ptag_;
    Must(VipCreateVi(nic_, &attributes, nullptr, nullptr, &line.from));
    Must(VipCreateVi(nic_, &attributes, nullptr, nullptr, &line.to));
    std::thread passive([&] {
      NetAddress local(nic_attributes_), remote(nic_attributes_);
      VIP_VI_ATTRIBUTES theirs;
      VIP_CONN_HANDLE request;
      Must(
          VipConnectWait(nic_, local.get(), kTimeoutMilliseconds, remote.get(), &theirs, &request));
      Must(VipConnectAccept(request, line.to));
    });
    NetAddress local(nic_attributes_), remote(nic_attributes_);
    local.get()->DiscriminatorLen = 0;
    VIP_VI_ATTRIBUTES theirs;
    VIP_RETURN result;
    do {
      result =
          VipConnectRequest(line.from, local.get(), remote.get(), kTimeoutMilliseconds, &theirs);
    } while (result == VIP_NO_MATCH);  // nobody waits yet
    Must(result);
    passive.join();
  }

  void Prepare(VIP_DESCRIPTOR* descriptor, char* data) {
    memset(&descriptor->CS, 0, sizeof descriptor->CS);
    descriptor->CS.Control = VIP_CONTROL_OP_SENDRECV;
    descriptor->CS.SegCount = 1;
    descriptor->CS.Length = 8;
    descriptor->DS[0].Local.Data.Address = data;
    descriptor->DS[0].Local.Handle = memory_;
    descriptor->DS[0].Local.Length = 8;
  }

  template <typename Done>
  static void Take(Done done, VIP_VI_HANDLE vi) {
    VIP_DESCRIPTOR* descriptor;
    VIP_RETURN result;
    while ((result = done(vi, &descriptor)) == VIP_NOT_DONE) {
    }
    Must(result);
  }

  VIP_NIC_HANDLE nic_ = nullptr;
  VIP_NIC_ATTRIBUTES nic_attributes_ = {};
  VIP_PROTECTION_HANDLE ptag_ = nullptr;
  VIP_MEM_HANDLE memory_ = 0;
  std::vector<Line> lines_;
};

TEST(NoSharedLock, Vipl) { NobodyWaitsForAStoppedThread<ViplProgram>(); }

}  // namespace
}  // namespace viaduct::hotpath
