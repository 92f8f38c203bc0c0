// The pool of chunks that all connections of two processes share: nobody waits for what others keep.
#include <cstring>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/soft/shm/testing_node.h"

namespace viaduct::verbs::shm {
namespace {

constexpr uint32_t kMessage = 1 << 20;  // a pool's worth
constexpr int kHolders = 4;             // these leave four chunks to others

// Connections that nobody serves hold nearly all chunks; one more reads what takes a chunk each
// time, more often than there are chunks left.
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

}  // namespace
}  // namespace viaduct::verbs::shm
