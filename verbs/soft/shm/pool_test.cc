// The pool of chunks that all connections of two processes share: nobody waits for chunks that
// others keep, and none is lost.
#include <cstring>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/soft/shm/testing_node.h"

namespace viaduct::verbs::shm {
namespace {

constexpr uint32_t kMessage = 1 << 20;  // a pool's worth
constexpr int kHolders = 4;             // these leave four chunks to others

// Connections that nobody serves hold nearly all chunks. One more connection makes reads that take
// a chunk each, and more of them than there are chunks left.
TEST(PoolTest, ReadsGoOnWhileOthersHoldThePool) {
  constexpr uint32_t kRead = 1024;
  ChildProcess target([](ChildProcess& parent) {
    auto context = OpenForTest();
    std::vector<std::unique_ptr<TestEnd>> ends;
    for (int i = 0; i <= kHolders; i++) ends.push_back(std::make_unique<TestEnd>(*context));
    size_t next = 0;
    TestListener listener(*context, [&]() -> QueuePair& { return ends[next++]->pair(); });
    parent.PutValue(listener.port());
    TestEnd& read = *ends[kHolders];
    std::memset(read.memory().data(), 7, read.memory().size());
    parent.PutValue(reinterpret_cast<uint64_t>(read.memory().data()));
    parent.PutValue(read.key());
    for (auto& end : ends) end->Await(end->connected);
    for (int i = 0; i < kHolders; i++) ends[i]->Send(1, 0, kMessage);
    parent.PutValue(1);
    parent.GetValue<int>();
    return 0;
  });
  ChildProcess reader([&target](ChildProcess&) {
    auto context = OpenForTest();
    const auto port = target.GetValue<uint16_t>();
    const auto address = target.GetValue<uint64_t>();
    const auto key = target.GetValue<Key>();
    std::vector<std::unique_ptr<TestEnd>> ends;
    for (int i = 0; i <= kHolders; i++) {
      ends.push_back(std::make_unique<TestEnd>(*context));
      DialForTest(ends[i]->pair(), port);
      ends[i]->Await(ends[i]->connected);
    }
    target.GetValue<int>();
    TestEnd& end = *ends[kHolders];
    for (uint64_t i = 0; i < 20; i++) {
      end.memory()[kRead - 1] = 0;
      end.OneSided(Opcode::kRead, i, 0, kRead, address, key);
      if (end.Next(end.sends()).status != Status::kSuccess) return 1;
      if (end.memory()[kRead - 1] != 7) return 2;
    }
    target.PutValue(1);
    return 0;
  });
  EXPECT_EQ(reader.Wait(), 0);
  EXPECT_EQ(target.Wait(), 0);
}

// Each read breaks its connection at its fourth chunk, when three have been placed. All chunks come
// back: the target finds enough for a message that is emitted before anybody receives it.
TEST(PoolTest, ReadsThatBreakOffLoseNothing) {
  constexpr int kReads = 25;
  constexpr uint32_t kRead = 64 * 1024;
  ChildProcess target([](ChildProcess& parent) {
    auto context = OpenForTest();
    std::vector<std::unique_ptr<TestEnd>> ends;
    for (int i = 0; i <= kReads; i++) ends.push_back(std::make_unique<TestEnd>(*context));
    size_t next = 0;
    TestListener listener(*context, [&]() -> QueuePair& { return ends[next++]->pair(); });
    parent.PutValue(listener.port());
    for (int i = 0; i < kReads; i++) {
      ends[i]->Await(ends[i]->connected);
      parent.PutValue(reinterpret_cast<uint64_t>(ends[i]->memory().data()));
      parent.PutValue(ends[i]->key());
      ends[i]->Await(ends[i]->disconnected);
    }
    TestEnd& last = *ends[kReads];
    last.Await(last.connected);
    last.Send(1, 0, 4 * kRead);
    const bool sent = last.Next(last.sends()).status == Status::kSuccess;
    parent.PutValue(1);
    return sent ? 0 : 1;
  });
  ChildProcess reader([&target](ChildProcess&) {
    auto context = OpenForTest();
    const auto port = target.GetValue<uint16_t>();
    for (int i = 0; i < kReads; i++) {
      TestEnd end(*context);
      DialForTest(end.pair(), port);
      end.Await(end.connected);
      const auto start = reinterpret_cast<uint64_t>(end.memory().data());
      // The second segment is in no region.
      const Segment segments[] = {{start, end.key(), kRead - 1},
                                  {start + kRead, end.key() ^ (1 << 20), 1}};
      SendRequest request;
      request.opcode = Opcode::kRead;
      request.segments = segments;
      request.remote_address = target.GetValue<uint64_t>();
      request.remote_key = target.GetValue<Key>();
      if (end.pair().PostSend(request) != PostResult::kOk) return 1;
      if (end.Next(end.sends()).status != Status::kLocalProtection) return 2;
      end.Await(end.disconnected);
    }
    TestEnd end(*context);
    DialForTest(end.pair(), port);
    end.Await(end.connected);
    target.GetValue<int>();
    return 0;
  });
  EXPECT_EQ(reader.Wait(), 0);
  EXPECT_EQ(target.Wait(), 0);
}

}  // namespace
}  // namespace viaduct::verbs::shm
