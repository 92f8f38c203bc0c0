#include "tools/vipping/end.h"

#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "tools/vipping/notices.h"

namespace viaduct::vipping {
namespace {

constexpr size_t kDescriptorBytes = 64;

size_t RoundUp(size_t bytes) {
  return (bytes + VIP_DESCRIPTOR_ALIGNMENT - 1) / VIP_DESCRIPTOR_ALIGNMENT *
         VIP_DESCRIPTOR_ALIGNMENT;
}

}  // namespace

std::string Complaint(const char* call, VIP_RETURN result) {
  static constexpr const char* kNames[] = {"VIP_SUCCESS",
                                           "VIP_NOT_DONE",
                                           "VIP_INVALID_PARAMETER",
                                           "VIP_ERROR_RESOURCE",
                                           "VIP_TIMEOUT",
                                           "VIP_REJECT",
                                           "VIP_INVALID_RELIABILITY_LEVEL",
                                           "VIP_INVALID_MTU",
                                           "VIP_INVALID_QOS",
                                           "VIP_INVALID_PTAG",
                                           "VIP_INVALID_RDMAREAD",
                                           "VIP_DESCRIPTOR_ERROR",
                                           "VIP_INVALID_STATE",
                                           "VIP_ERROR_NAMESERVICE",
                                           "VIP_NO_MATCH",
                                           "VIP_NOT_REACHABLE",
                                           "VIP_ERROR_NOT_SUPPORTED"};
  std::string name = result == VIP_INVALID_ADDRESS ? "VIP_INVALID_ADDRESS" : std::to_string(result);
  if (static_cast<size_t>(result) < sizeof kNames / sizeof *kNames) name = kNames[result];
  return std::string(call) + ": " + name;
}

void Must(const char* call, VIP_RETURN result) {
  if (result != VIP_SUCCESS) throw Failure(Complaint(call, result));
}

Nic::Nic(const std::string& name) {
  Must(("VipOpenNic " + name).c_str(), VipOpenNic(name.c_str(), &handle_));
  Must("VipQueryNic", VipQueryNic(handle_, &attributes_));
}

Nic::~Nic() { VipCloseNic(handle_); }

VIADUCT_DEVICE_INFO Nic::Device() const {
  VIADUCT_DEVICE_INFO info = {};
  Must("VipQuerySystemManagementInfo",
       VipQuerySystemManagementInfo(handle_, VIADUCT_SMI_DEVICE, &info));
  return info;
}

NetAddress::NetAddress(const VIP_UINT8* host, size_t host_size, const void* discriminator,
                       size_t size) {
  if (offsetof(VIP_NET_ADDRESS, HostAddress) + host_size + size > sizeof room_) {
    throw Failure("the address is too long");
  }
  get()->HostAddressLen = static_cast<VIP_UINT16>(host_size);
  get()->DiscriminatorLen = static_cast<VIP_UINT16>(size);
  uint8_t* bytes = room_ + offsetof(VIP_NET_ADDRESS, HostAddress);
  std::memcpy(bytes, host, host_size);
  std::memcpy(bytes + host_size, discriminator, size);
}

std::string NetAddress::host() const {
  VIP_UINT16 size;
  std::memcpy(&size, room_, sizeof size);
  return std::string(reinterpret_cast<const char*>(room_) + offsetof(VIP_NET_ADDRESS, HostAddress),
                     size);
}

std::string NetAddress::discriminator() const {
  VIP_UINT16 sizes[2];
  std::memcpy(sizes, room_, sizeof sizes);
  return std::string(
      reinterpret_cast<const char*>(room_) + offsetof(VIP_NET_ADDRESS, HostAddress) + sizes[0],
      sizes[1]);
}

NetAddress Own(const Nic& nic, const void* discriminator, size_t size) {
  return NetAddress(nic.attributes().LocalNicAddress, nic.attributes().NicAddressLen, discriminator,
                    size);
}

End::End(const Nic& nic, const Parameters& parameters, int timeout_seconds)
    : nic_(nic),
      parameters_(parameters),
      timeout_seconds_(timeout_seconds),
      room_(static_cast<uint32_t>(RoundUp(std::max(parameters.bytes, kLeastBytes)))) {}

// The other constructor has returned, so that the destructor runs, whatever is thrown here.
End::End(const Nic& nic, const Parameters& parameters, VIP_RELIABILITY_LEVEL level,
         int timeout_seconds)
    : End(nic, parameters, timeout_seconds) {
  const size_t bytes = 2 * size_t{room_} + 2 * size_t{parameters.depth} * kDescriptorBytes;
  void* block = nullptr;
  if (posix_memalign(&block, 4096, bytes) != 0) throw Failure("no memory");
  block_ = static_cast<char*>(block);
  std::memset(block_, 0, bytes);
  VIP_MEM_ATTRIBUTES rights = {nullptr, VIP_TRUE, VIP_FALSE};
  Must("VipRegisterMem", VipRegisterMem(nic.handle(), block_, bytes, &rights, &memory_));
  if (parameters.completion == Completion::kCq) {
    Must("VipCreateCQ", VipCreateCQ(nic.handle(), 2 * parameters.depth, &cq_));
  }
  VIP_VI_ATTRIBUTES attributes = {};
  attributes.ReliabilityLevel = level;
  attributes.MaxTransferSize = std::max(parameters.bytes, kLeastBytes);
  attributes.EnableRdmaWrite = VIP_TRUE;
  Must("VipCreateVi", VipCreateVi(nic.handle(), &attributes, cq_, cq_, &vi_));
  Notices::Box().Begin(vi_);
  for (uint32_t i = 0; i < parameters.depth; ++i) PostReceive(receives_posted_);
}

End::~End() {
  VIP_DESCRIPTOR* done = nullptr;
  if (vi_ != nullptr) {
    VipDisconnect(vi_);
    do VipSendDone(vi_, &done);
    while (done != nullptr);
    do VipRecvDone(vi_, &done);
    while (done != nullptr);
    VipDestroyVi(vi_);
  }
  if (cq_ != nullptr) VipDestroyCQ(cq_);
  if (memory_ != 0) VipDeregisterMem(nic_.handle(), block_, memory_);
  free(block_);
}

VIP_DESCRIPTOR* End::Descriptor(uint64_t n) const {
  return reinterpret_cast<VIP_DESCRIPTOR*>(block_ + 2 * size_t{room_} + n * kDescriptorBytes);
}

void End::Fill(VIP_DESCRIPTOR* descriptor, char* data, uint32_t bytes, VIP_UINT16 control) {
  descriptor->CS.SegCount = 1;
  descriptor->CS.Control = control;
  descriptor->CS.Reserved = 0;
  descriptor->CS.Length = bytes;
  descriptor->CS.Status = 0;
  descriptor->Data[0].Data.Address = data;
  descriptor->Data[0].Handle = memory_;
  descriptor->Data[0].Length = bytes;
}

void End::PostReceive(uint64_t n) {
  VIP_DESCRIPTOR* descriptor = Descriptor(n % parameters_.depth);
  Fill(descriptor, block_, room_, VIP_CONTROL_OP_SENDRECV);
  Must("VipPostRecv", VipPostRecv(vi_, descriptor, memory_));
  ++receives_posted_;
}

void End::PostSend(VIP_DESCRIPTOR* descriptor) {
  Must("VipPostSend", VipPostSend(vi_, descriptor, memory_));
  ++sends_posted_;
}

void End::ExchangeBuffers(bool first) {
  const VIP_UINT64 address = reinterpret_cast<VIP_UINT64>(block_);
  const auto tell = [&] {
    std::memcpy(block_ + room_, &address, sizeof address);
    std::memcpy(block_ + room_ + sizeof address, &memory_, sizeof memory_);
    VIP_DESCRIPTOR* descriptor = Descriptor(parameters_.depth);
    Fill(descriptor, block_ + room_, sizeof address + sizeof memory_, VIP_CONTROL_OP_SENDRECV);
    PostSend(descriptor);
    AwaitSends(1);
  };
  if (first) tell();
  AwaitReceives(1);
  std::memcpy(&remote_address_, block_, sizeof remote_address_);
  std::memcpy(&remote_handle_, block_ + sizeof remote_address_, sizeof remote_handle_);
  receives_before_ = 1;
  // Nothing of the exchange may be taken for a write.
  std::memset(block_, 0, kLeastBytes);
  if (!first) tell();
}

void End::Post(uint64_t n, bool announced) {
  char* out = block_ + room_;
  VIP_DESCRIPTOR* descriptor = Descriptor(parameters_.depth + sends_posted_ % parameters_.depth);
  if (parameters_.operation == Operation::kSend) {
    Fill(descriptor, out, parameters_.bytes, VIP_CONTROL_OP_SENDRECV);
  } else {
    // In a stream the buffer is the library's, because earlier writes are still in flight.
    if (parameters_.silent_write()) {
      out[parameters_.bytes - 1] = static_cast<char>(Parameters::Mark(n));
    }
    Fill(descriptor, out, parameters_.bytes,
         static_cast<VIP_UINT16>(VIP_CONTROL_OP_RDMAWRITE |
                                 (announced ? VIP_CONTROL_IMMEDIATE : 0)));
    descriptor->CS.SegCount = 2;
    descriptor->CS.ImmediateData = static_cast<VIP_UINT32>(n);
    descriptor->DS[1].Local = descriptor->DS[0].Local;
    descriptor->DS[0].Remote.Data.AddressBits = remote_address_;
    descriptor->DS[0].Remote.Handle = remote_handle_;
    descriptor->DS[0].Remote.Reserved = 0;
  }
  PostSend(descriptor);
}

void End::PostCredit() {
  VIP_DESCRIPTOR* descriptor = Descriptor(parameters_.depth + sends_posted_ % parameters_.depth);
  Fill(descriptor, block_ + room_, 0, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE);
  descriptor->CS.SegCount = 0;
  PostSend(descriptor);
}

void End::Took(bool receive, VIP_RETURN result, const VIP_DESCRIPTOR* descriptor) {
  if (result == VIP_NOT_DONE || (result == VIP_DESCRIPTOR_ERROR && descriptor == nullptr)) return;
  if (result == VIP_TIMEOUT) throw Failure("the other end is silent");
  if (result == VIP_DESCRIPTOR_ERROR) {
    constexpr VIP_UINT32 kGone = VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_TRANSPORT_ERROR;
    const VIP_UINT32 errors = descriptor->CS.Status & VIP_STATUS_ERROR_MASK;
    if ((errors & kGone) != 0) throw Ended();
    throw Failure("a descriptor failed with status " + std::to_string(descriptor->CS.Status));
  }
  Must(receive ? "VipRecvDone" : "VipSendDone", result);
  if (!receive) {
    ++sends_done_;
    return;
  }
  // Silent writes never use a receive again.
  if (!parameters_.silent_write()) PostReceive(receives_done_);
  ++receives_done_;
}

void End::Look(bool receive) {
  VIP_DESCRIPTOR* done = nullptr;
  const VIP_ULONG milliseconds = static_cast<VIP_ULONG>(timeout_seconds_) * 1000;
  switch (parameters_.completion) {
    case Completion::kPoll: {
      if (receive || receives_posted_ != receives_done_) {
        const VIP_RETURN result = VipRecvDone(vi_, &done);
        Took(true, result, done);
      }
      if (sends_posted_ != sends_done_) {
        const VIP_RETURN result = VipSendDone(vi_, &done);
        Took(false, result, done);
      }
      return;
    }
    case Completion::kWait: {
      const VIP_RETURN result =
          receive ? VipRecvWait(vi_, milliseconds, &done) : VipSendWait(vi_, milliseconds, &done);
      return Took(receive, result, done);
    }
    case Completion::kCq: {
      VIP_VI_HANDLE vi = nullptr;
      VIP_BOOLEAN is_receive = VIP_FALSE;
      VIP_RETURN result = VipCQWait(cq_, milliseconds, &vi, &is_receive);
      if (result == VIP_SUCCESS) {
        result = is_receive ? VipRecvDone(vi, &done) : VipSendDone(vi, &done);
      }
      return Took(is_receive != VIP_FALSE, result, done);
    }
    case Completion::kNotify: {
      const std::optional<Notice> notice = Notices::Box().Next(receive, timeout_seconds_);
      if (!notice) return Took(receive, VIP_TIMEOUT, nullptr);
      const bool failed = (notice->descriptor->CS.Status & VIP_STATUS_ERROR_MASK) != 0;
      return Took(notice->receive, failed ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS, notice->descriptor);
    }
  }
}

void End::AwaitSends(uint64_t count) {
  for (ping::Patience patience(timeout_seconds_); sends_done_ < count; patience.Look(come())) {
    Look(/*receive=*/false);
  }
}

void End::AwaitReceives(uint64_t count) {
  for (ping::Patience patience(timeout_seconds_); receives_done_ < receives_before_ + count;
       patience.Look(come())) {
    Look(/*receive=*/true);
  }
}

void End::AwaitWrite(uint64_t n) {
  const auto* flag =
      reinterpret_cast<const volatile unsigned char*>(block_ + parameters_.bytes - 1);
  const unsigned char wanted = Parameters::Mark(n);
  for (ping::Patience patience(timeout_seconds_); *flag != wanted; patience.Look(come())) {
    Look(/*receive=*/true);  // writes land while somebody polls
  }
}

}  // namespace viaduct::vipping
