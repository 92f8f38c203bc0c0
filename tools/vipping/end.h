// One end of a measurement: a NIC, a VI, and buffers, through only the functions of <vipl.h>. Used
// by one thread, one end at a time. Every failure throws Failure; the end of the connection throws
// Ended.
#ifndef VIADUCT_TOOLS_VIPPING_END_H_
#define VIADUCT_TOOLS_VIPPING_END_H_

#include <vipl.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/ping/program.h"
#include "tools/vipping/parameters.h"

namespace viaduct::vipping {

using ping::Ended;
using ping::Failure;
using ping::Now;

// A text like "VipSendDone: VIP_TIMEOUT".
std::string Complaint(const char* call, VIP_RETURN result);
// Throws unless `result` is success.
void Must(const char* call, VIP_RETURN result);

class Nic {
 public:
  explicit Nic(const std::string& name);
  ~Nic();
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  VIP_NIC_HANDLE handle() const { return handle_; }
  const VIP_NIC_ATTRIBUTES& attributes() const { return attributes_; }
  VIADUCT_DEVICE_INFO Device() const;

 private:
  VIP_NIC_HANDLE handle_ = nullptr;
  VIP_NIC_ATTRIBUTES attributes_ = {};
};

// A VIP_NET_ADDRESS with room for what follows it.
class NetAddress {
 public:
  NetAddress() = default;
  NetAddress(const VIP_UINT8* host, size_t host_size, const void* discriminator, size_t size);
  VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(room_); }
  std::string host() const;
  std::string discriminator() const;

 private:
  alignas(8) uint8_t room_[64] = {};
};

// The NIC's own address.
NetAddress Own(const Nic& nic, const void* discriminator, size_t size);

class End {
 public:
  // An Idle VI with `depth` receives posted. A constructor that throws leaves nothing behind.
  End(const Nic& nic, const Parameters& parameters, VIP_RELIABILITY_LEVEL level,
      int timeout_seconds);
  ~End();
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  VIP_VI_HANDLE vi() const { return vi_; }

  // ---- after the connection is there
  // Exchanges where the other end may write, as the first message of each side.
  void ExchangeBuffers(bool first);
  // Posts one message of the measurement, number `n` of this end. It takes a receive of the other
  // end if `announced`; a send always does.
  void Post(uint64_t n, bool announced);
  // Posts a message without bytes.
  void PostCredit();

  // Wait until that many sends have completed since the connection, or receives since the exchange
  // of buffers if there was one; each completed receive is posted again. Both may take further
  // completions.
  void AwaitSends(uint64_t count);
  void AwaitReceives(uint64_t count);
  // Waits until the other end's silent write number `n` is in memory.
  void AwaitWrite(uint64_t n);

  uint64_t sends_posted() const { return sends_posted_; }
  uint64_t sends_done() const { return sends_done_; }

 private:
  static constexpr uint32_t kLeastBytes = 64;  // room for what ExchangeBuffers sends

  // Makes nothing yet that the destructor has to release.
  End(const Nic& nic, const Parameters& parameters, int timeout_seconds);

  VIP_DESCRIPTOR* Descriptor(uint64_t n) const;
  void Fill(VIP_DESCRIPTOR* descriptor, char* data, uint32_t bytes, VIP_UINT16 control);
  void PostSend(VIP_DESCRIPTOR* descriptor);
  void PostReceive(uint64_t n);
  // Polls both queues once, or sleeps until something completes.
  void Look(bool receive);
  // The number of completions; while it grows, the other end is not silent.
  uint64_t come() const { return sends_done_ + receives_done_; }
  void Took(bool receive, VIP_RETURN result, const VIP_DESCRIPTOR* descriptor);

  const Nic& nic_;
  const Parameters parameters_;
  const int timeout_seconds_;
  const uint32_t room_;    // of each buffer
  char* block_ = nullptr;  // in-buffer, out-buffer, descriptors of receives, then of sends
  VIP_MEM_HANDLE memory_ = 0;
  VIP_CQ_HANDLE cq_ = nullptr;
  VIP_VI_HANDLE vi_ = nullptr;
  VIP_UINT64 remote_address_ = 0;
  VIP_MEM_HANDLE remote_handle_ = 0;
  uint64_t sends_posted_ = 0;
  uint64_t sends_done_ = 0;
  uint64_t receives_posted_ = 0;
  uint64_t receives_done_ = 0;
  uint64_t receives_before_ = 0;  // those of the exchange
};

}  // namespace viaduct::vipping

#endif  // VIADUCT_TOOLS_VIPPING_END_H_
