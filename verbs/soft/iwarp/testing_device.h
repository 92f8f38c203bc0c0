#ifndef VIADUCT_VERBS_SOFT_IWARP_TESTING_DEVICE_H_
#define VIADUCT_VERBS_SOFT_IWARP_TESTING_DEVICE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "verbs/base/event_loop.h"
#include "verbs/device.h"

// For tests: a soft device whose only wire is iWARP, and the parts of one end of a connection.
// Every wait ends after a minute, as a failure.

namespace viaduct::verbs::iwarp {

// One call that the sink received.
struct Event {
  enum class Kind { kConnected, kFailed, kDisconnected, kDropped, kRefusedWrite, kDamage };
  Kind kind;
  ConnectOutcome outcome = ConnectOutcome::kRefused;
  DisconnectCause cause = DisconnectCause::kLocal;
  std::string data;
  Damage damage = Damage::kNone;
};

// The number of open descriptors of this process, to be compared with an earlier one.
size_t OpenDescriptors();

class TestSink : public ConnectionSink {
 public:
  void OnConnected(QueuePair& pair, absl::Span<const uint8_t> data) override;
  void OnConnectFailed(QueuePair& pair, ConnectOutcome outcome,
                       absl::Span<const uint8_t> data) override;
  void OnDisconnected(QueuePair& pair, DisconnectCause cause) override;
  void OnDropped(QueuePair& pair) override;
  void OnRefusedWrite(QueuePair& pair) override;
  void OnDamage(QueuePair& pair, Damage damage) override;

  Event Next();
  bool Empty();
  bool immediate = false;  // EnableImmediate(kNative) inside OnConnected

 private:
  void Add(Event event);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> events_;
};

class TestListenerSink : public ListenerSink {
 public:
  void OnRequest(std::unique_ptr<IncomingConnection> request) override;
  std::unique_ptr<IncomingConnection> Next();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<IncomingConnection>> requests_;
};

// One end: context, domain, queues, pair, and a registered piece of memory.
struct TestEnd {
  struct Options {
    NoReceive no_receive = NoReceive::kHold;
    size_t memory = 1 << 20;
    uint32_t access = kLocalRead | kLocalWrite | kRemoteRead | kRemoteWrite;
    uint32_t reads = 4;
    uint32_t requests = 4096;
    Nanos silence = 10'000'000'000;
    Nanos first_word = 300'000'000;
    Nanos nudge = 0;  // never: tests count what is sent
    bool crc = true;
    bool separate_queues = false;
    uint32_t shared_receives = 0;  // size of a shared receive queue; 0: none
  };
  explicit TestEnd(const Options& options);
  TestEnd() : TestEnd(Options()) {}
  ~TestEnd();

  void Listen();
  // Connects to a listener on 127.0.0.1.
  void Dial(uint16_t port, const std::string& data = "");
  // Accepts the next request, with `data` in the answer.
  void AcceptNext(const std::string& data = "");

  Segment Piece(size_t at, uint32_t length) const {
    return {reinterpret_cast<uint64_t>(memory.data()) + at, region->key(), length};
  }
  uint64_t address(size_t at) const { return reinterpret_cast<uint64_t>(memory.data()) + at; }
  void Fill(size_t at, size_t length, unsigned seed);
  bool Matches(size_t at, size_t length, unsigned seed);

  // Takes the lock under which the control thread reads and writes `memory` for the peer:
  // ThreadSanitizer does not see the order that the network gives.
  void SyncMemory();

  void Receive(uint64_t id, size_t at, uint32_t length);
  void Send(uint64_t id, size_t at, uint32_t length, uint16_t flags = 0, uint32_t immediate = 0);
  void Write(uint64_t id, size_t at, uint32_t length, const TestEnd& to, size_t to_at,
             uint16_t flags = 0, uint32_t immediate = 0);
  void Read(uint64_t id, size_t at, uint32_t length, const TestEnd& from, size_t from_at,
            uint16_t flags = 0);
  // Reads 8 bytes from a peer that is no TestEnd to the start of `memory`.
  void ReadFrom(uint64_t id, Key key, uint64_t address = 0);

  // The next completion of the send or of the receive queue (the same one unless separate).
  Completion NextSend() { return Next(*send_queue); }
  Completion NextReceive() { return Next(receive_queue()); }
  Completion Next(CompletionQueue& queue);
  CompletionQueue& receive_queue() { return separate ? *separate : *send_queue; }

  EventLoop& loop;
  std::vector<uint8_t> memory;
  TestSink sink;
  TestListenerSink requests;
  std::unique_ptr<Context> context;
  std::unique_ptr<ProtectionDomain> domain;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<CompletionQueue> send_queue;
  std::unique_ptr<CompletionQueue> separate;
  std::unique_ptr<SharedReceiveQueue> shared;
  std::unique_ptr<QueuePair> pair;
  std::unique_ptr<Listener> listener;
};

// Two ends, connected; the first is the initiator.
void ConnectEnds(TestEnd& first, TestEnd& second);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_TESTING_DEVICE_H_
