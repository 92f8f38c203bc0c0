// The order in which the bytes of a write become visible: a program that spins on a flag at the end
// finds everything ahead of it.
#include <cstdint>
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

  // The copies that place a write of `n` bytes whose end is `end` bytes into the memory.
  std::vector<Piece> PiecesOf(uint32_t n, uint32_t end) {
    std::vector<Piece> pieces;
    const auto copy = [&](unsigned char* to, uint64_t at, uint32_t bytes) {
      pieces.push_back({to, at, bytes});
    };
    EXPECT_EQ(static_cast<SoftQueuePair&>(*pair_).PlaceWrite(
                  region_->key(), reinterpret_cast<uint64_t>(memory_ + end - n), n, false, copy),
              Inbound::kOk);
    return pieces;
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

// Wherever the write ends: the flag may be any number of 1, 2, 4 or 8 bytes, aligned or not.
TEST_F(PlaceWriteTest, TheLastEightBytesComeLastAndInOrder) {
  for (uint32_t n : {1u, 2u, 3u, 5u, 7u, 8u, 9u, 15u, 16u, 64u, 101u}) {
    for (uint32_t end = 128; end < 136; ++end) {
      SCOPED_TRACE(testing::Message() << n << " bytes that end at " << end);
      const uint32_t tail = n > 8 ? n - 8 : 0;
      uint64_t placed = 0;
      for (const Piece& piece : PiecesOf(n, end)) {
        EXPECT_EQ(piece.at, placed);
        EXPECT_EQ(piece.to, memory_ + end - n + piece.at);
        if (piece.at < tail) {
          EXPECT_EQ(piece.n, tail);
        } else {  // one word
          EXPECT_TRUE(piece.n == 1 || piece.n == 2 || piece.n == 4 || piece.n == 8) << piece.n;
          EXPECT_EQ(reinterpret_cast<uintptr_t>(piece.to) % piece.n, 0u);
        }
        placed += piece.n;
      }
      EXPECT_EQ(placed, n);
    }
  }
}

TEST_F(PlaceWriteTest, AnAlignedFlagIsOneWord) {
  EXPECT_EQ(PiecesOf(64, 128).size(), 2u);
  EXPECT_EQ(PiecesOf(8, 128).size(), 1u);
  EXPECT_EQ(PiecesOf(4, 132).size(), 1u);
}

}  // namespace
}  // namespace viaduct::verbs
