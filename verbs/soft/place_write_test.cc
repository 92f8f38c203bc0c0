// The order in which the bytes of a write become visible: a program that spins on a flag at the end
// finds everything ahead of it.
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/control_thread.h"
#include "verbs/device.h"
#include "verbs/soft/context.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/testing_wire.h"

namespace viaduct::verbs {
namespace {

struct Piece {
  const unsigned char* to;
  uint64_t at;
  uint32_t n;
};

struct Sink final : ConnectionSink {
  void OnConnected(QueuePair&, absl::Span<const uint8_t>) override {}
  void OnConnectFailed(QueuePair&, ConnectOutcome, absl::Span<const uint8_t>) override {}
  void OnDisconnected(QueuePair&, DisconnectCause) override {}
  void OnDropped(QueuePair&) override {}
  void OnRefusedWrite(QueuePair&) override {}
};

class PlaceWriteTest : public testing::Test {
 protected:
  PlaceWriteTest()
      : context_(TestWireOptions(**ControlThread::Get(), link_, outcome_)),
        domain_(*context_.CreateDomain(false)),
        queue_(*context_.CreateCompletionQueue(nullptr)),
        region_(*context_.Register(*domain_, memory_, sizeof memory_,
                                   kLocalRead | kLocalWrite | kRemoteWrite)) {
    QueuePairOptions options;
    options.domain = domain_.get();
    options.send_queue = options.receive_queue = queue_.get();
    options.sink = &sink_;
    options.max_sends = options.max_receives = 1;
    pair_ = *context_.CreateQueuePair(options);
  }

  // The copies that place a write of `n` bytes, 1 and the following numbers, whose end is `end`
  // bytes into the memory.
  std::vector<Piece> PiecesOf(uint32_t n, uint32_t end) {
    std::vector<Piece> pieces;
    const auto copy = [&](unsigned char* to, uint64_t at, uint32_t bytes) {
      pieces.push_back({to, at, bytes});
      for (uint32_t i = 0; i < bytes; ++i) to[i] = static_cast<unsigned char>(at + i + 1);
    };
    EXPECT_EQ(static_cast<SoftQueuePair&>(*pair_).PlaceWrite(
                  region_->key(), reinterpret_cast<uint64_t>(memory_ + end - n), n, false, copy),
              Inbound::kOk);
    return pieces;
  }

  bool IsInMemory(const unsigned char* at) const {
    return at >= memory_ && at < memory_ + sizeof memory_;
  }

  alignas(64) unsigned char memory_[256] = {};
  std::unique_ptr<ReadingLink> link_;  // there is no connection
  TestOutcome outcome_;
  Sink sink_;
  SoftContext context_;
  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<QueuePair> pair_;
};

// Wherever the write ends: a flag of 1, 2, 4 or 8 bytes may be there, aligned or not. The wire's
// copy, which may store a byte twice, never gets to see its place.
TEST_F(PlaceWriteTest, TheLastEightBytesAreNotCopiedInPlace) {
  for (uint32_t n : {1u, 2u, 3u, 5u, 7u, 8u, 9u, 15u, 16u, 64u, 101u}) {
    for (uint32_t end = 128; end < 136; ++end) {
      SCOPED_TRACE(testing::Message() << n << " bytes that end at " << end);
      const uint32_t ahead = n > 8 ? n - 8 : 0;
      std::memset(memory_, 0, sizeof memory_);
      const std::vector<Piece> pieces = PiecesOf(n, end);
      ASSERT_EQ(pieces.size(), ahead != 0 ? 2u : 1u);
      if (ahead != 0) {
        EXPECT_EQ(pieces[0].to, memory_ + end - n);
        EXPECT_EQ(pieces[0].at, 0u);
        EXPECT_EQ(pieces[0].n, ahead);
      }
      EXPECT_FALSE(IsInMemory(pieces.back().to));
      EXPECT_EQ(pieces.back().at, ahead);
      EXPECT_EQ(pieces.back().n, n - ahead);
      for (uint32_t i = 0; i < sizeof memory_; ++i) {
        const bool written = i >= end - n && i < end;
        EXPECT_EQ(memory_[i], written ? i - (end - n) + 1 : 0) << i;
      }
    }
  }
}

// Word by word in their order; each aligned word that fits is stored as a whole.
TEST(WordBytesTest, TakesTheWidestAlignedWord) {
  alignas(8) const unsigned char memory[16] = {};
  const auto words = [&](uint32_t begin, uint32_t n) {
    std::vector<uint32_t> out;
    for (uint32_t at = 0; at != n; at += out.back()) {
      out.push_back(WordBytes(memory + begin + at, n - at));
    }
    return out;
  };
  using Words = std::vector<uint32_t>;
  EXPECT_EQ(words(0, 8), (Words{8}));
  EXPECT_EQ(words(4, 8), (Words{4, 4}));
  EXPECT_EQ(words(2, 8), (Words{2, 4, 2}));
  EXPECT_EQ(words(1, 8), (Words{1, 2, 4, 1}));
  EXPECT_EQ(words(4, 4), (Words{4}));
  EXPECT_EQ(words(6, 2), (Words{2}));
  EXPECT_EQ(words(0, 7), (Words{4, 2, 1}));
}

}  // namespace
}  // namespace viaduct::verbs
