// The tools of every chapter of the suite: one end of a connection, recording sinks, and the
// fixture that connects two ends.
#ifndef VIADUCT_TESTS_DEVICE_ENDS_H_
#define VIADUCT_TESTS_DEVICE_ENDS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/device/device_under_test.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"

namespace viaduct::verbs {

using Bytes = std::vector<uint8_t>;

// `size` bytes that differ from those of another seed.
Bytes Pattern(size_t size, int seed);

// A page of zeros that the process can read but not write.
class ReadOnlyPage {
 public:
  ReadOnlyPage();
  ~ReadOnlyPage();
  ReadOnlyPage(const ReadOnlyPage&) = delete;
  ReadOnlyPage& operator=(const ReadOnlyPage&) = delete;
  void* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  const size_t size_;
  void* const data_;
};

// A completion queue and the completions polled from it. Used only by the test's thread.
class Inbox {
 public:
  explicit Inbox(Context& context, CompletionSink* sink = nullptr);
  CompletionQueue& queue() { return *queue_; }
  void Poll();
  std::deque<Completion>& got() { return got_; }

 private:
  std::unique_ptr<CompletionQueue> queue_;
  std::deque<Completion> got_;
};

// Counts how often it is called and leaves the completions where they are.
class CompletionCounter final : public CompletionSink {
 public:
  void OnCompletions(CompletionQueue&) override { ++calls; }

  std::atomic<int> calls{0};
};

struct Event {
  enum Kind {
    kConnected,
    kConnectFailed,
    kDisconnected,
    kDropped,
    kRefusedWrite,
    kRefusedRead,
    kNone
  };
  Kind kind = kNone;
  Bytes private_data;                                 // kConnected, kConnectFailed
  ConnectOutcome outcome = ConnectOutcome::kRefused;  // kConnectFailed
  DisconnectCause cause = DisconnectCause::kLocal;    // kDisconnected
};

// Keeps the events of one queue pair in order.
class Events final : public ConnectionSink {
 public:
  // Called inside each sink call, before the event is recorded. Set before events can come.
  std::function<void(const Event&)> hook;

  size_t count() const;
  size_t CountOf(Event::Kind kind) const;
  bool Has(Event::Kind kind) const { return CountOf(kind) != 0; }
  // Removes and returns the oldest event; kNone if there is none.
  Event Take();

  void OnConnected(QueuePair& pair, absl::Span<const uint8_t> private_data) override;
  void OnConnectFailed(QueuePair& pair, ConnectOutcome outcome,
                       absl::Span<const uint8_t> private_data) override;
  void OnDisconnected(QueuePair& pair, DisconnectCause cause) override;
  void OnDropped(QueuePair& pair) override;
  void OnRefusedWrite(QueuePair& pair) override;
  void OnRefusedRead(QueuePair& pair) override;

 private:
  void Add(Event event);

  mutable Mutex mutex_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
};

// Keeps the requests of one listener in order.
class Requests final : public ListenerSink {
 public:
  size_t count() const;
  std::unique_ptr<IncomingConnection> Take();  // null if there is none
  void OnRequest(std::unique_ptr<IncomingConnection> request) override;

 private:
  mutable Mutex mutex_;
  std::deque<std::unique_ptr<IncomingConnection>> requests_ ABSL_GUARDED_BY(mutex_);
};

constexpr uint32_t kAllAccess = kLocalRead | kLocalWrite | kRemoteRead | kRemoteWrite;

struct EndOptions {
  ProtectionDomain* domain = nullptr;  // null: one of its own
  SharedReceiveQueue* shared_receives = nullptr;
  NoReceive no_receive = NoReceive::kHold;
  uint32_t max_sends = 64;
  uint32_t max_receives = 64;
  uint32_t max_segments = 4;
  uint32_t max_reads_out = 0;
  uint32_t remote_access = kRemoteRead | kRemoteWrite;
  size_t memory = 64 * 1024;
  uint32_t region_access = kAllAccess;
  bool wildcard = false;           // whether a domain of its own is a wildcard
  Inbox* shared_inbox = nullptr;   // for both directions, instead of queues of its own
  CompletionSink* sink = nullptr;  // for queues of its own
};

// A queue pair with its domain, queues, sink and one registered buffer.
class End {
 public:
  explicit End(Context& context, const EndOptions& options = {});

  Context& context() { return context_; }
  ProtectionDomain& domain() { return *domain_; }
  QueuePair& pair() { return *pair_; }
  Events& events() { return events_; }
  Inbox& sends() { return *sends_; }
  Inbox& receives() { return *receives_; }
  MemoryRegion& region() { return *region_; }
  Bytes& memory() {
    Agree();
    return memory_;
  }
  const QueuePairOptions& pair_options() const { return pair_options_; }

  void DestroyPair() { pair_.reset(); }
  void DestroyRegion() { region_.reset(); }
  void Poll();

  // One-sided requests touch the buffer in the device's thread, and this thread is not notified.
  // Both ends are in one process, so ThreadSanitizer must see an order: every access here, and
  // every such request, comes after what the executor has done and before what it does later.
  void Agree() const { context_.executor().Drain(); }

  Segment At(size_t offset, size_t length) const;
  uint64_t Address(size_t offset) const;
  void Put(size_t offset, const Bytes& bytes);
  Bytes Get(size_t offset, size_t length) const;

  PostResult Receive(uint64_t id, size_t offset, size_t length);
  PostResult Receive(uint64_t id, absl::Span<const Segment> segments);
  PostResult Send(uint64_t id, size_t offset, size_t length, uint16_t flags = 0,
                  uint32_t immediate = 0);
  PostResult Send(uint64_t id, absl::Span<const Segment> segments);
  // Between this buffer and the other end's.
  PostResult Write(uint64_t id, size_t offset, size_t length, const End& other, size_t at,
                   uint16_t flags = 0, uint32_t immediate = 0);
  PostResult Read(uint64_t id, size_t offset, size_t length, const End& other, size_t at,
                  uint16_t flags = 0);
  // A read into any memory.
  PostResult ReadInto(const Segment& sink, uint64_t id, const End& other, size_t at);
  // To or from any address and key; the local side is the beginning of this buffer.
  PostResult PostTo(Opcode opcode, uint64_t id, size_t length, uint64_t address, Key key,
                    uint16_t flags = kConfirm);
  // Binds a part of this buffer.
  BindRequest ToBind(uint64_t id, MemoryWindow& window, size_t offset, size_t length,
                     uint32_t access) const;

 private:
  PostResult Post(Opcode opcode, uint64_t id, absl::Span<const Segment> segments, uint16_t flags,
                  uint32_t immediate, uint64_t remote_address, Key remote_key);

  Context& context_;
  Events events_;
  Bytes memory_;
  Key key_ = 0;  // outlives the region: tests use it after deregistration
  std::unique_ptr<ProtectionDomain> own_domain_;
  ProtectionDomain* domain_;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<Inbox> own_sends_;
  std::unique_ptr<Inbox> own_receives_;
  Inbox* sends_;
  Inbox* receives_;
  QueuePairOptions pair_options_;
  std::unique_ptr<QueuePair> pair_;
};

class DeviceTest : public testing::Test {
 protected:
  DeviceTest();
  ~DeviceTest() override;

  DeviceUnderTest& device() { return *device_; }
  Context& a() { return device_->a(); }
  Context& b() { return device_->b(); }

  // A new end that Run polls; it lives as long as the test.
  End& NewEnd(Context& context, const EndOptions& options = {});
  void Forget(End& end);  // Run no longer polls it
  // For tests that need this earlier than the fixture does it.
  void DestroyEnds();

  // Polls all ends and lets the device work until `done`.
  bool Run(absl::FunctionRef<bool()> done);
  void Settle();
  // Returns after all sink calls in progress, and their hooks, have returned.
  void DrainExecutors();
  void PollEnds();

  // Removes and returns the next completion or event; the test fails if none comes.
  Completion Await(Inbox& inbox);
  // Await that also checks id and status.
  Completion Expect(Inbox& inbox, uint64_t id, Status status = Status::kSuccess);
  Event AwaitEvent(End& end);
  std::unique_ptr<IncomingConnection> AwaitRequest(Requests& requests);
  void ExpectDisconnected(End& end, DisconnectCause cause);
  // The same with kBroken; skips refused writes and reads.
  void ExpectBroken(End& end);

  // Starts a connection from `active` to `port` of `to`.
  absl::Status Dial(End& active, Context& to, uint16_t port, const Bytes& private_data = {},
                    bool may_frame = false);
  // The same to a listener of its own. Returns the undecided request; if none comes, the test fails
  // and this returns null.
  std::unique_ptr<IncomingConnection> Ask(End& active, Context& to, bool may_frame = false);
  // Connects the two in this way and takes both OnConnected events.
  void Connect(End& active, End& passive);
  // The same with immediate data.
  void ConnectWithImmediate(End& active, End& passive);
  // The same in a given form. `may_frame`: the active side is ready for frames in any case.
  void ConnectAs(End& active, End& passive, ImmediateForm form, bool may_frame = false);

 private:
  std::unique_ptr<DeviceUnderTest> device_;
  std::vector<std::unique_ptr<End>> ends_;
  std::vector<End*> polled_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_TESTS_DEVICE_ENDS_H_
