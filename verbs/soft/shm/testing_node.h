// What one process of a test needs: a context over shared memory only, a queue pair with its queues
// and buffer, and sinks that count. For tests that need a second process, unlike tests/device.
#ifndef VIADUCT_VERBS_SOFT_SHM_TESTING_NODE_H_
#define VIADUCT_VERBS_SOFT_SHM_TESTING_NODE_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "verbs/device.h"

namespace viaduct::verbs::shm {

// Starts the control thread if need be.
std::unique_ptr<Context> OpenForTest(absl::string_view address = "127.0.0.1",
                                     Nanos silence = 10'000'000'000);

// A queue of receives that several ends share, with the domain that they then have in common.
struct SharedReceives {
  explicit SharedReceives(Context& context);

  const std::unique_ptr<ProtectionDomain> domain;
  const std::unique_ptr<SharedReceiveQueue> queue;
};

class TestEnd final : public ConnectionSink {
 public:
  // With `shared`, which must outlive it, Receive posts there.
  explicit TestEnd(Context& context, size_t memory = 1 << 20, uint32_t depth = 64,
                   bool one_queue = false, NoReceive no_receive = NoReceive::kHold,
                   SharedReceives* shared = nullptr);
  ~TestEnd();

  ProtectionDomain& domain() { return shared_ != nullptr ? *shared_->domain : *domain_; }
  QueuePair& pair() { return *pair_; }
  CompletionQueue& sends() { return *send_queue_; }
  CompletionQueue& receives() { return one_queue_ ? *send_queue_ : *receive_queue_; }
  std::vector<uint8_t>& memory() { return memory_; }
  Key key() const { return region_->key(); }
  void Deregister() { region_.reset(); }
  void DestroyPair() { pair_.reset(); }

  void Send(uint64_t id, size_t offset, uint32_t length, uint16_t flags = 0);
  void Receive(uint64_t id, size_t offset, uint32_t length);
  void OneSided(Opcode opcode, uint64_t id, size_t offset, uint32_t length, uint64_t remote,
                Key remote_key, uint16_t flags = 0);

  // Polls and waits until a completion comes; aborts the test after a generous time.
  Completion Next(CompletionQueue& queue);
  // Waits until `count`, one of the counters below, is at least `at_least`.
  void Await(const std::atomic<int>& count, int at_least = 1);

  std::atomic<int> connected{0};
  std::atomic<int> failed{0};
  std::atomic<int> disconnected{0};
  std::atomic<DisconnectCause> cause{DisconnectCause::kLocal};
  std::atomic<ConnectOutcome> outcome{ConnectOutcome::kGone};

  std::function<void()> on_failed;  // called inside OnConnectFailed

  void OnConnected(QueuePair&, absl::Span<const uint8_t>) override { connected++; }
  void OnConnectFailed(QueuePair&, ConnectOutcome how, absl::Span<const uint8_t>) override {
    outcome = how;
    if (on_failed) on_failed();
    failed++;
  }
  void OnDisconnected(QueuePair&, DisconnectCause why) override {
    cause = why;
    disconnected++;
  }
  void OnDropped(QueuePair&) override {}
  void OnRefusedWrite(QueuePair&) override {}

 private:
  const bool one_queue_;
  SharedReceives* const shared_;
  std::vector<uint8_t> memory_;
  std::unique_ptr<ProtectionDomain> domain_;  // null with shared_
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<CompletionQueue> send_queue_;
  std::unique_ptr<CompletionQueue> receive_queue_;
  std::unique_ptr<QueuePair> pair_;
};

// Accepts every request with the pair that `next` gives.
class TestListener final : public ListenerSink {
 public:
  TestListener(Context& context, std::function<QueuePair&()> next, uint16_t port = 0);
  uint16_t port() const { return listener_->port(); }
  void OnRequest(std::unique_ptr<IncomingConnection> request) override;

 private:
  std::function<QueuePair&()> next_;
  std::unique_ptr<Listener> listener_;
};

void DialForTest(QueuePair& pair, uint16_t port);

// Forks a process that runs `body`, connected to this one by a pair of pipes. This process must not
// have started the control thread yet. The destructor kills and reaps the child.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<int(ChildProcess&)>& body);
  ~ChildProcess();
  pid_t pid() const { return pid_; }
  void Put(const void* data, size_t size);
  void Get(void* data, size_t size);
  template <typename T>
  void PutValue(const T& value) {
    Put(&value, sizeof value);
  }
  template <typename T>
  T GetValue() {
    T value;
    Get(&value, sizeof value);
    return value;
  }
  int Wait();  // the exit status
  void Kill();

 private:
  pid_t pid_ = 0;
  int in_ = -1;
  int out_ = -1;
  bool reaped_ = false;
};

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_TESTING_NODE_H_
