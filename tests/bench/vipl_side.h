// A VIPL program: a reliable-delivery VI without completion queues, descriptors beside the buffers.
#ifndef VIADUCT_TESTS_BENCH_VIPL_SIDE_H_
#define VIADUCT_TESTS_BENCH_VIPL_SIDE_H_

#include <vipl.h>

#include <cstdint>
#include <vector>

#include "tests/bench/side.h"

namespace viaduct::bench {

class ViplSide {
 public:
  static constexpr const char* kName = "vipl";

  explicit ViplSide(const SideOptions& options);
  ~ViplSide();
  ViplSide(const ViplSide&) = delete;
  ViplSide& operator=(const ViplSide&) = delete;

  // VIPL has no listener: each Accept waits for one request.
  void Listen(uint16_t port) { port_ = port; }
  void Accept();
  void Connect(uint16_t port);
  size_t connections() const { return vis_.size(); }

  uint32_t depth() const { return options_.depth; }
  char* in() const { return block_.start(); }
  char* out() const { return block_.start() + Block::RoundUp(options_.bytes); }
  RemoteBuffer exposed() const { return {reinterpret_cast<uint64_t>(in()), memory_}; }
  uint64_t received() const { return received_; }
  uint64_t completed() const { return completed_; }

  void PostReceive(size_t c = 0) {
    VIP_DESCRIPTOR* d = receives() + receives_posted_++ % options_.depth;
    Prepare(d, VIP_CONTROL_OP_SENDRECV, options_.bytes, 1);
    SetLocal(&d->DS[0].Local, in(), options_.bytes);
    const VIP_RETURN result = VipPostRecv(vis_[c], d, memory_);
    if (result != VIP_SUCCESS) Die("VipPostRecv", result);
  }

  void PostSend(uint32_t bytes, size_t c = 0) {
    VIP_DESCRIPTOR* d = sends() + sends_posted_++ % options_.depth;
    Prepare(d, VIP_CONTROL_OP_SENDRECV, bytes, 1);
    SetLocal(&d->DS[0].Local, out(), bytes);
    Post(d, c);
  }

  void PostWrite(uint32_t bytes, const RemoteBuffer& to) {
    VIP_DESCRIPTOR* d = sends() + sends_posted_++ % options_.depth;
    Prepare(d, VIP_CONTROL_OP_RDMAWRITE, bytes, 2);
    d->DS[0].Remote.Data.AddressBits = to.address;
    d->DS[0].Remote.Handle = to.key;
    SetLocal(&d->DS[1].Local, out(), bytes);
    Post(d, 0);
  }

  void Poll(size_t c = 0) {
    if (receives_posted_ != received_) PollReceives(c);
    if (sends_posted_ != completed_) PollSends(c);
  }
  void PollReceives(size_t c = 0) {
    VIP_DESCRIPTOR* d;
    const VIP_RETURN result = VipRecvDone(vis_[c], &d);
    if (result == VIP_SUCCESS) {
      ++received_;
    } else if (result != VIP_NOT_DONE) {
      Die("VipRecvDone", result);
    }
  }
  void PollSends(size_t c = 0) {
    VIP_DESCRIPTOR* d;
    const VIP_RETURN result = VipSendDone(vis_[c], &d);
    if (result == VIP_SUCCESS) {
      ++completed_;
    } else if (result != VIP_NOT_DONE) {
      Die("VipSendDone", result);
    }
  }

  bool WaitReceive(int milliseconds) {
    VIP_DESCRIPTOR* d;
    const VIP_RETURN result = VipRecvWait(vis_[0], static_cast<VIP_ULONG>(milliseconds), &d);
    if (result == VIP_TIMEOUT) return false;
    if (result != VIP_SUCCESS) Die("VipRecvWait", result);
    ++received_;
    return true;
  }

  bool WaitBroken(int milliseconds) {
    VIP_DESCRIPTOR* d;
    return VipRecvWait(vis_[0], static_cast<VIP_ULONG>(milliseconds), &d) == VIP_DESCRIPTOR_ERROR &&
           d != nullptr;
  }

 private:
  VIP_DESCRIPTOR* receives() const {
    return reinterpret_cast<VIP_DESCRIPTOR*>(block_.start() + 2 * Block::RoundUp(options_.bytes));
  }
  VIP_DESCRIPTOR* sends() const { return receives() + options_.depth; }

  void Prepare(VIP_DESCRIPTOR* d, VIP_UINT16 control, uint32_t bytes, VIP_UINT16 segments) {
    d->CS.SegCount = segments;
    d->CS.Control = control;
    d->CS.Reserved = 0;
    d->CS.Length = bytes;
    d->CS.Status = 0;
  }
  void SetLocal(VIP_DATA_SEGMENT* segment, char* data, uint32_t bytes) {
    segment->Data.AddressBits = reinterpret_cast<uint64_t>(data);
    segment->Handle = memory_;
    segment->Length = bytes;
  }
  void Post(VIP_DESCRIPTOR* d, size_t c) {
    const VIP_RETURN result = VipPostSend(vis_[c], d, memory_);
    if (result != VIP_SUCCESS) Die("VipPostSend", result);
  }

  VIP_VI_HANDLE AddVi();

  const SideOptions options_;
  Block block_;  // in-buffer, out-buffer, receive descriptors, send descriptors
  VIP_NIC_HANDLE nic_ = nullptr;
  VIP_NIC_ATTRIBUTES nic_attributes_ = {};
  VIP_VI_ATTRIBUTES vi_attributes_ = {};
  VIP_MEM_HANDLE memory_ = 0;
  std::vector<VIP_VI_HANDLE> vis_;
  uint16_t port_ = 0;
  uint64_t receives_posted_ = 0;
  uint64_t received_ = 0;
  uint64_t sends_posted_ = 0;
  uint64_t completed_ = 0;
};

}  // namespace viaduct::bench

#endif  // VIADUCT_TESTS_BENCH_VIPL_SIDE_H_
