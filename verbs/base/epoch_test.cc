#include "verbs/base/epoch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

TEST(Epoch, NobodyInsideMeansNoWait) {
  { EpochGuard guard; }
  EpochSynchronize();
}

TEST(Epoch, TheCallerIsNotWaitedFor) {
  EpochGuard outer;
  EpochGuard inner;
  EpochSynchronize();
}

TEST(Epoch, TheOutermostGuardAloneCounts) {
  uint64_t inside;
  {
    EpochGuard outer;
    const std::atomic<uint64_t>& entries = internal::epoch_record->entries;
    inside = entries.load();
    EXPECT_EQ(inside % 2, 1u);
    {
      EpochGuard inner;
      EXPECT_EQ(entries.load(), inside);
    }
    EXPECT_EQ(entries.load(), inside);
  }
  EXPECT_EQ(internal::epoch_record->entries.load(), inside + 1);
}

// A thread that stands inside `depth` guards until it is told to leave.
class Insider {
 public:
  explicit Insider(int depth) : thread_([this, depth] { Enter(depth); }) {
    while (!inside_.load()) std::this_thread::yield();
  }
  void Leave() { leave_.store(true); }
  void Join() { thread_.join(); }
  bool left() const { return left_.load(); }

 private:
  void Enter(int depth) {
    EpochGuard guard;
    if (depth > 1) {
      Enter(depth - 1);
    } else {
      inside_.store(true);
    }
    while (!leave_.load()) std::this_thread::yield();
    left_.store(true);
  }

  std::atomic<bool> inside_{false};
  std::atomic<bool> leave_{false};
  std::atomic<bool> left_{false};
  std::thread thread_;
};

TEST(Epoch, WaitsForThreadsInsideAndForNestedGuards) {
  for (int depth : {1, 3}) {
    Insider insider(depth);
    std::atomic<bool> synchronized{false};
    std::thread destroyer([&] {
      EpochSynchronize();
      EXPECT_TRUE(insider.left());
      synchronized.store(true);
    });
    EXPECT_FALSE(synchronized.load());
    insider.Leave();
    destroyer.join();
    insider.Join();
    EXPECT_TRUE(synchronized.load());
  }
}

TEST(Epoch, DoesNotWaitForThoseWhoEnterAgain) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> entered{0};
  std::thread busy([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      EpochGuard guard;
      entered.fetch_add(1);
      std::this_thread::yield();  // threads on its processor find it inside
    }
  });
  while (entered.load() == 0) std::this_thread::yield();
  const uint64_t begin = entered.load();
  for (int rounds = 0; rounds < 200 || entered.load() == begin; ++rounds) EpochSynchronize();
  stop.store(true);
  busy.join();
}

TEST(Epoch, RecordsOfEndedThreadsAreUsedAgain) {
  internal::EpochRecord* record = nullptr;
  std::thread([&] {
    EpochGuard guard;
    record = internal::epoch_record;
  }).join();
  bool found = false;
  std::thread([&] {
    EpochGuard guard;
    found = internal::epoch_record == record;
  }).join();
  EXPECT_TRUE(found);
}

// The purpose: readers follow a pointer while a destroyer replaces and frees what it points to.
TEST(Epoch, NothingIsReadAfterItWasFreed) {
  struct Object {
    explicit Object(int value) : first(value), second(value) {}
    ~Object() { first = -1; }
    int first, second;
  };
  std::atomic<Object*> shared{new Object(0)};
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
        EpochGuard guard;
        Object* object = shared.load(std::memory_order_acquire);
        ASSERT_EQ(object->first, object->second);
      }
    });
  }
  for (int i = 1; i <= 2000; ++i) {
    std::unique_ptr<Object> old(shared.exchange(new Object(i), std::memory_order_acq_rel));
    EpochSynchronize();
  }
  stop.store(true);
  for (std::thread& reader : readers) reader.join();
  delete shared.load();
}

TEST(Epoch, AChildDoesNotWaitForThreadsItDoesNotHave) {
  Insider insider(1);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);  // the child of a failing test ends too
    EpochSynchronize();
    _exit(7);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  insider.Leave();
  insider.Join();
}

TEST(AsymmetricFence, StoreThenLoadIsNeverReorderedOnBothSides) {
  PrepareFences();
  std::atomic<int> light{0}, heavy{0};
  std::atomic<int> round{0}, done{0};
  constexpr int kRounds = 500;
  int light_saw = 0;
  std::thread other([&] {
    for (int i = 1; i <= kRounds; ++i) {
      while (round.load(std::memory_order_acquire) != i) std::this_thread::yield();
      light.store(i, std::memory_order_relaxed);
      LightFence();
      light_saw = heavy.load(std::memory_order_relaxed);
      done.store(i, std::memory_order_release);
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    round.store(i, std::memory_order_release);
    heavy.store(i, std::memory_order_relaxed);
    HeavyFence();
    const int heavy_saw = light.load(std::memory_order_relaxed);
    while (done.load(std::memory_order_acquire) != i) std::this_thread::yield();
    EXPECT_TRUE(heavy_saw == i || light_saw == i) << "round " << i;
  }
  other.join();
}

}  // namespace
}  // namespace viaduct::verbs
