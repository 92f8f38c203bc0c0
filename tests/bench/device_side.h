// The bare device: verbs/device.h without engine or face. The faces are compared with it.
#ifndef VIADUCT_TESTS_BENCH_DEVICE_SIDE_H_
#define VIADUCT_TESTS_BENCH_DEVICE_SIDE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "tests/bench/side.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"

namespace viaduct::bench {

class DeviceSide final : private verbs::ConnectionSink, private verbs::ListenerSink {
 public:
  static constexpr const char* kName = "device";

  explicit DeviceSide(const SideOptions& options);
  ~DeviceSide();

  void Listen(uint16_t port);
  void Accept();
  void Connect(uint16_t port);
  size_t connections() const { return pairs_.size(); }

  uint32_t depth() const { return options_.depth; }
  char* in() const { return block_.start(); }
  char* out() const { return block_.start() + Block::RoundUp(options_.bytes); }
  RemoteBuffer exposed() const { return {reinterpret_cast<uint64_t>(in()), region_->key()}; }
  uint64_t received() const { return received_; }
  uint64_t completed() const { return completed_; }

  void PostReceive(size_t c = 0) {
    const verbs::Segment segment = {reinterpret_cast<uint64_t>(in()), region_->key(),
                                    options_.bytes};
    verbs::ReceiveRequest request;
    request.segments = {&segment, 1};
    if (pairs_[c]->PostReceive(request) != verbs::PostResult::kOk) Die("PostReceive", 0);
  }

  void PostSend(uint32_t bytes, size_t c = 0) {
    Post(verbs::Opcode::kSend, bytes, RemoteBuffer(), c);
  }
  void PostWrite(uint32_t bytes, const RemoteBuffer& to) {
    Post(verbs::Opcode::kWrite, bytes, to, 0);
  }

  void Poll() {
    verbs::Completion batch[16];
    const int n = queue_->Poll(batch, 16);
    for (int i = 0; i < n; ++i) {
      if (batch[i].status != verbs::Status::kSuccess) {
        Die("completion", static_cast<long>(batch[i].status));
      }
      ++(batch[i].opcode == verbs::Opcode::kReceive ? received_ : completed_);
    }
  }

  bool WaitReceive(int milliseconds);
  bool WaitBroken(int milliseconds);

 private:
  void Post(verbs::Opcode opcode, uint32_t bytes, const RemoteBuffer& to, size_t c) {
    const verbs::Segment segment = {reinterpret_cast<uint64_t>(out()), region_->key(), bytes};
    verbs::SendRequest request;
    request.opcode = opcode;
    request.segments = {&segment, 1};
    request.remote_address = to.address;
    request.remote_key = to.key;
    if (pairs_[c]->PostSend(request) != verbs::PostResult::kOk) Die("PostSend", 0);
  }

  verbs::QueuePair& AddPair();
  void AwaitConnected();

  void OnConnected(verbs::QueuePair& pair, absl::Span<const uint8_t> private_data) override;
  void OnConnectFailed(verbs::QueuePair& pair, verbs::ConnectOutcome outcome,
                       absl::Span<const uint8_t> private_data) override;
  void OnDisconnected(verbs::QueuePair& pair, verbs::DisconnectCause cause) override;
  void OnDropped(verbs::QueuePair& pair) override;
  void OnRefusedWrite(verbs::QueuePair& pair) override;
  void OnRequest(std::unique_ptr<verbs::IncomingConnection> request) override;

  const SideOptions options_;
  Block block_;
  std::unique_ptr<verbs::Context> context_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::unique_ptr<verbs::MemoryRegion> region_;
  std::unique_ptr<verbs::CompletionQueue> queue_;
  std::deque<std::unique_ptr<verbs::QueuePair>> pairs_;
  std::unique_ptr<verbs::Listener> listener_;
  uint64_t received_ = 0;
  uint64_t completed_ = 0;
  std::atomic<uint32_t> connected_{0};  // how often; waited on
  std::atomic<uint32_t> failed_{0};
  std::atomic<uint32_t> arrived_{0};  // requests so far; waited on
  uint32_t accepted_ = 0;
  verbs::Mutex lock_;
  std::deque<std::unique_ptr<verbs::IncomingConnection>> requests_ ABSL_GUARDED_BY(lock_);
};

}  // namespace viaduct::bench

#endif  // VIADUCT_TESTS_BENCH_DEVICE_SIDE_H_
