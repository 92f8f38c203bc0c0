// Helpers of the VIPL conformance tests: NICs, VIs and descriptors of one side of a connection.
#ifndef VIADUCT_TESTS_CONFORMANCE_VIPL_SIDE_H_
#define VIADUCT_TESTS_CONFORMANCE_VIPL_SIDE_H_

#include <sys/types.h>
#include <vipl.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/conformance/harness/sleeper.h"

namespace viaduct::tests {

class Peer;  // the harness's

// The harness's Now(), in milliseconds.
int64_t NowMilliseconds();

// A VIP_NET_ADDRESS with room for its host address and discriminator.
class NetAddress {
 public:
  NetAddress() = default;
  NetAddress(const VIP_UINT8* host, size_t host_length, const std::string& discriminator);
  VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes_); }
  std::string host() const;
  std::string discriminator() const;

 private:
  alignas(8) unsigned char bytes_[128] = {};
};

// A discriminator that no other running test uses.
std::string Name(int n);

struct Nic {
  explicit Nic(const char* name = "nic0");
  ~Nic();
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;
  NetAddress Address(const std::string& discriminator) const;
  // As NetAddress::host.
  std::string host() const { return Address("").host(); }
  static std::string LoopbackHost() { return {127, 0, 0, 1, 0, 0}; }

  VIP_NIC_HANDLE handle = nullptr;
  VIP_NIC_ATTRIBUTES attributes = {};
};

// Registered memory: room for descriptors, followed by room for data.
class Memory {
 public:
  explicit Memory(const Nic& nic, const VIP_MEM_ATTRIBUTES* attributes = nullptr,
                  size_t data_bytes = 1 << 20);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // The n-th of kDescriptors, each with room for kSegments.
  static constexpr int kDescriptors = 64;
  static constexpr int kSegments = 252;
  VIP_DESCRIPTOR* descriptor(int n) const;
  char* data() const;
  VIP_MEM_HANDLE handle() const { return handle_; }
  void Deregister();

  // A descriptor of one segment, or of none if `length` is 0.
  VIP_DESCRIPTOR* Fill(int n, size_t offset, VIP_UINT32 length, VIP_UINT16 control = 0,
                       VIP_UINT32 immediate = 0) const;
  VIP_DESCRIPTOR* FillRdma(int n, VIP_UINT16 operation, size_t offset, VIP_UINT32 length,
                           VIP_UINT64 remote, VIP_MEM_HANDLE remote_handle) const;

 private:
  const VIP_NIC_HANDLE nic_;
  void* bytes_ = nullptr;
  VIP_MEM_HANDLE handle_ = 0;
};

VIP_VI_ATTRIBUTES Attributes(VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY,
                             VIP_ULONG max_transfer_size = 65536);

// A NIC, memory and a VI.
struct Side {
  explicit Side(const VIP_VI_ATTRIBUTES& vi_attributes = Attributes());
  ~Side();

  VIP_VI_STATE State() const;
  VIP_VI_ATTRIBUTES QueryVi() const;

  // Waits for a request for `name`, and leaves it undecided.
  VIP_CONN_HANDLE TakeRequest(const std::string& name);
  // Waits for a request on Name(n) and accepts it.
  void Accept(int n = 0);
  // Repeats the request until somebody waits on Name(n), as programs do.
  VIP_RETURN Connect(int n = 0);
  // Makes one attempt.
  VIP_RETURN Request(int n, VIP_ULONG timeout);

  VIP_RETURN PostSend(VIP_DESCRIPTOR* descriptor) {
    return VipPostSend(vi, descriptor, memory.handle());
  }
  VIP_RETURN PostReceive(VIP_DESCRIPTOR* descriptor) {
    return VipPostRecv(vi, descriptor, memory.handle());
  }
  // Posts a receive of `length` bytes at descriptor n and offset n * 4096.
  void Receive(int n, VIP_UINT32 length = 4096);
  // Wait for the next completion; null after a time-out, which is a failure.
  VIP_DESCRIPTOR* NextSend();
  VIP_DESCRIPTOR* NextReceive();
  // Sends `text` from descriptor n and waits for the completion.
  void SendText(int n, const std::string& text);
  std::string TextOf(const VIP_DESCRIPTOR* descriptor) const;
  // Takes what is left on both queues, and returns the number; all of it must be flushed.
  int DrainFlushed();

  Nic nic;
  Memory memory;
  VIP_VI_HANDLE vi = nullptr;
  NetAddress requester;         // what VipConnectWait showed
  VIP_VI_ATTRIBUTES peer = {};  // what VipConnectRequest or VipConnectWait showed
};

// One message each way; the side that passes `first` sends first. Uses descriptors 0 and 16.
void Exchange(Side& side, Peer& peer, bool first);

// Collects asynchronous errors of a NIC.
class ErrorLog {
 public:
  explicit ErrorLog(VIP_NIC_HANDLE nic);
  // Waits for the next error; returns false after 10 s.
  bool Next(VIP_ERROR_DESCRIPTOR* error);
  bool empty();

 private:
  struct Shared;
  static void Handle(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error);
  // Never freed, because a callback may come late.
  Shared* const shared_;
};

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_CONFORMANCE_VIPL_SIDE_H_
