// For tests: a wire whose one link belongs to the test, a context with no other wire, and a link.
#ifndef VIADUCT_VERBS_SOFT_TESTING_WIRE_H_
#define VIADUCT_VERBS_SOFT_TESTING_WIRE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/base/executor.h"
#include "verbs/device.h"
#include "verbs/soft/context.h"
#include "verbs/soft/link.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/wire.h"

namespace viaduct::verbs {

// Discards what it emits; Answer answers its oldest read.
class ReadingLink : public Link {
 public:
  explicit ReadingLink(SoftQueuePair& pair) : pair_(pair) {}
  void Answer() { answer_.store(true); }

  std::atomic<bool> answered{false};
  std::atomic<bool> sent{false};  // something other than a read

  void Pump() override {
    while (SendEntry* const entry = pair_.NextToEmit()) {
      const bool read = entry->opcode == Opcode::kRead;
      if (!read) sent.store(true);
      pair_.Emitted(read ? SoftQueuePair::Completes::kLater : SoftQueuePair::Completes::kNow);
    }
  }
  bool Poll(int) override {
    if (!answer_.exchange(false)) return false;
    EXPECT_NE(pair_.OldestRead(), nullptr);
    pair_.FinishRead();
    answered.store(true);
    return true;
  }
  bool Arrived() const override { return answer_.load(); }
  bool AllTaken() const override { return true; }
  void Start() override {}
  void Heat() override {}
  bool Cool() override { return false; }
  void Disconnect(Status) override {}

 protected:
  SoftQueuePair& pair_;

 private:
  std::atomic<bool> answer_{false};
};

// Decides the outcome of an attempt, on the executor.
using TestOutcome = std::function<void(SoftQueuePair&, const Link&)>;

// A pair that connects gets a new `TestLink(pair)`, which the test destroys.
template <typename TestLink>
class TestWire final : public Wire {
 public:
  TestWire(Executor& executor, std::unique_ptr<TestLink>& link, const TestOutcome& outcome)
      : executor_(executor), link_(link), outcome_(outcome) {}
  absl::string_view name() const override { return "test"; }
  bool Reaches(const Address&) const override { return true; }
  Link* Connect(SoftQueuePair& pair, const ConnectOptions&) override {
    link_ = std::make_unique<TestLink>(pair);
    executor_.Post([&, link = link_.get()] { outcome_(pair, *link); });
    return link_.get();
  }
  absl::StatusOr<std::unique_ptr<WireListener>> Listen(SoftContext&, uint16_t,
                                                       ListenerSink*) override {
    return absl::UnimplementedError("only connects");
  }
  bool IsServed(uint16_t) const override { return false; }

 private:
  Executor& executor_;
  std::unique_ptr<TestLink>& link_;
  const TestOutcome& outcome_;
};

// What `link` and `outcome` refer to must live as long as the context.
template <typename TestLink>
SoftContext::Options TestWireOptions(Executor& executor, std::unique_ptr<TestLink>& link,
                                     const TestOutcome& outcome) {
  SoftContext::Options options;
  options.address = *Address::Parse("127.0.0.1");
  options.executor = &executor;
  options.wires.push_back(std::make_unique<TestWire<TestLink>>(executor, link, outcome));
  options.attributes.max_queue_pairs = options.attributes.max_regions = 1;
  options.attributes.max_requests_per_queue = 64;
  options.attributes.max_segments = 4;
  options.attributes.max_reads_in = options.attributes.max_reads_out = 1;
  options.attributes.max_region_bytes = uint64_t{1} << 30;
  options.attributes.max_message_bytes = 1 << 20;
  return options;
}

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_TESTING_WIRE_H_
