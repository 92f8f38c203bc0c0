#include "verbs/base/control_thread.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/fd.h"
#include "verbs/base/futex.h"

namespace viaduct::verbs {
namespace {

constexpr Nanos kMillisecond = 1'000'000;
constexpr Nanos kGenerous = 60'000 * kMillisecond;

// Waits for something that the control thread does.
class Signal {
 public:
  void Give() { parker_.Unpark(); }
  bool Taken(const Clock& clock) {
    return parker_.Park(Deadline::After(clock, kGenerous)) == ParkResult::kUnparked;
  }

 private:
  FutexParker parker_;
};

class ControlThreadTest : public testing::Test {
 protected:
  ControlThreadTest() : loop_(**ControlThread::Get()) {}
  // No task that captured a test's variables outlives the test.
  ~ControlThreadTest() override { loop_.Drain(); }

  ControlThread& loop_;
};

TEST_F(ControlThreadTest, IsOneForTheProcess) {
  EXPECT_EQ(*ControlThread::Get(), &loop_);
  EXPECT_TRUE(loop_.alive());
}

TEST_F(ControlThreadTest, RunsTasksInOrder) {
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) loop_.Post([&order, i] { order.push_back(i); });
  loop_.Drain();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST_F(ControlThreadTest, KnowsItself) {
  EXPECT_FALSE(loop_.OnExecutor());
  bool inside = false;
  loop_.Post([&] { inside = loop_.OnExecutor(); });
  loop_.Drain();
  EXPECT_TRUE(inside);
}

TEST_F(ControlThreadTest, DrainOnTheLoopReturnsAtOnce) {
  bool later = false, seen = true;
  loop_.Post([&] {
    loop_.Post([&] { later = true; });
    loop_.Drain();
    seen = later;
  });
  loop_.Drain();
  loop_.Drain();
  EXPECT_FALSE(seen);
  EXPECT_TRUE(later);
}

TEST_F(ControlThreadTest, RunsWhatSomebodyWaitsForBehindTheTasks) {
  std::vector<int> order;
  loop_.Post([&] { order.push_back(1); });
  loop_.RunAndWait([&] {
    EXPECT_TRUE(loop_.OnExecutor());
    order.push_back(2);
    loop_.RunAndWait([&] { order.push_back(3); });  // runs here at once
    order.push_back(4);
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
}

TEST_F(ControlThreadTest, ManyThreadsWaitForTheirs) {
  int count = 0;  // used only on the loop
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 500; ++j) {
        int seen = 0;
        loop_.RunAndWait([&] { seen = ++count; });
        EXPECT_NE(seen, 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 2000);
}

TEST_F(ControlThreadTest, ManyThreadsPost) {
  std::atomic<int> count{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 500; ++j) loop_.Post([&] { ++count; });
      loop_.Drain();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count.load(), 2000);
}

TEST_F(ControlThreadTest, BlocksAllSignals) {
  sigset_t mask;
  sigemptyset(&mask);
  loop_.Post([&] { pthread_sigmask(SIG_SETMASK, nullptr, &mask); });
  loop_.Drain();
  for (int signal : {SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1, SIGPIPE, SIGIO}) {
    EXPECT_EQ(sigismember(&mask, signal), 1) << signal;
  }
  sigset_t here;
  pthread_sigmask(SIG_SETMASK, nullptr, &here);
  EXPECT_EQ(sigismember(&here, SIGUSR1), 0) << "the thread that started it is as it was";
}

TEST_F(ControlThreadTest, TimersRunInOrderAndNotEarly) {
  const Nanos start = loop_.Now();
  std::vector<int> order;
  Signal done;
  loop_.RunAndWait([&] {  // so that all are set before the first runs
    loop_.RunAt(start + 6 * kMillisecond, [&] {
      order.push_back(2);
      EXPECT_GE(loop_.Now(), start + 6 * kMillisecond);
      EXPECT_TRUE(loop_.OnExecutor());
      done.Give();
    });
    loop_.RunAt(start + 3 * kMillisecond, [&] {
      order.push_back(1);
      EXPECT_GE(loop_.Now(), start + 3 * kMillisecond);
    });
    loop_.RunAt(0, [&] { order.push_back(0); });
  });
  ASSERT_TRUE(done.Taken(loop_));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

// What the thread had no time for counts as having come in time, however much it is.
TEST_F(ControlThreadTest, ATimerThatIsMuchTooLateRunsBehindTheEventsOfThatTime) {
  constexpr int kEvents = 200;
  std::vector<int> order;
  std::vector<Fd> fds;
  for (int i = 0; i < kEvents; ++i) {
    const int fd = fds.emplace_back(eventfd(0, EFD_CLOEXEC)).get();
    ASSERT_TRUE(loop_
                    .Watch(fd, EPOLLIN,
                           [&, i, fd](uint32_t) {
                             order.push_back(i);
                             loop_.Unwatch(fd);
                           })
                    .ok());
  }
  Signal ran;
  loop_.Post([&] {
    const Nanos due = loop_.Now();
    loop_.RunAt(due, [&] {
      order.push_back(kEvents);
      ran.Give();
    });
    for (const Fd& fd : fds) eventfd_write(fd.get(), 1);
    while (loop_.Now() - due < 150 * kMillisecond) usleep(10'000);
  });
  ASSERT_TRUE(ran.Taken(loop_));
  loop_.Drain();
  ASSERT_EQ(order.size(), kEvents + 1u);
  EXPECT_EQ(order.back(), kEvents);
}

TEST_F(ControlThreadTest, ACancelledTimerNeverRuns) {
  bool ran = false;
  auto captured = std::make_shared<int>(0);
  const Executor::TimerId id =
      loop_.RunAt(loop_.Now() + kGenerous, [&ran, captured] { ran = true; });
  EXPECT_NE(id, 0u);
  EXPECT_TRUE(loop_.Cancel(id));
  EXPECT_EQ(captured.use_count(), 1) << "what it captured is gone";
  EXPECT_FALSE(loop_.Cancel(id));
  loop_.Drain();
  EXPECT_FALSE(ran);
}

TEST_F(ControlThreadTest, CancelTellsThatATimerRanOrRuns) {
  Signal running, go_on;
  const Executor::TimerId id = loop_.RunAt(0, [&] {
    running.Give();
    EXPECT_TRUE(go_on.Taken(loop_));
  });
  ASSERT_TRUE(running.Taken(loop_));
  EXPECT_FALSE(loop_.Cancel(id));
  go_on.Give();
  loop_.Drain();
  EXPECT_FALSE(loop_.Cancel(id));
}

TEST_F(ControlThreadTest, WatchesADescriptor) {
  Fd event(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  uint64_t sum = 0;
  Signal arrived;
  auto handler = [&](uint32_t events) {
    EXPECT_EQ(events, static_cast<uint32_t>(EPOLLIN));
    uint64_t value = 0;
    EXPECT_EQ(read(event.get(), &value, sizeof(value)), 8);
    sum += value;
    arrived.Give();
  };
  ASSERT_TRUE(loop_.Watch(event.get(), EPOLLIN, handler).ok());
  EXPECT_EQ(loop_.Watch(event.get(), EPOLLIN, handler).code(), absl::StatusCode::kAlreadyExists);
  for (uint64_t value : {1, 2}) {
    ASSERT_EQ(write(event.get(), &value, sizeof(value)), 8);
    ASSERT_TRUE(arrived.Taken(loop_));
  }
  loop_.Unwatch(event.get());
  EXPECT_EQ(sum, 3u);
  const uint64_t more = 4;
  ASSERT_EQ(write(event.get(), &more, sizeof(more)), 8);
  loop_.Drain();
  loop_.Drain();
  EXPECT_EQ(sum, 3u);
}

TEST_F(ControlThreadTest, WatchPassesErrorsOn) {
  EXPECT_FALSE(loop_.Watch(-1, EPOLLIN, [](uint32_t) {}).ok());
  loop_.Unwatch(-1);
}

// The destructors of what the handler captured may call the loop.
TEST_F(ControlThreadTest, AHandlerThatIsNotWatchedEndsWithoutTheLock) {
  bool ended = false;
  const auto posts_at_its_end = [&](void*) { loop_.Post([&] { ended = true; }); };
  EXPECT_FALSE(
      loop_
          .Watch(-1, EPOLLIN,
                 [captured = std::shared_ptr<void>(nullptr, posts_at_its_end)](uint32_t) {})
          .ok());
  loop_.Drain();
  EXPECT_TRUE(ended);
}

TEST_F(ControlThreadTest, SetEventsChangesWhatIsWatched) {
  Fd event(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  Signal writable;
  ASSERT_TRUE(loop_
                  .Watch(event.get(), EPOLLIN,
                         [&](uint32_t events) {
                           EXPECT_EQ(events, static_cast<uint32_t>(EPOLLOUT));
                           loop_.SetEvents(event.get(), 0);
                           writable.Give();
                         })
                  .ok());
  loop_.Drain();
  loop_.SetEvents(event.get(), EPOLLOUT);
  EXPECT_TRUE(writable.Taken(loop_));
  loop_.Unwatch(event.get());
}

TEST_F(ControlThreadTest, UnwatchWaitsForTheHandler) {
  Fd event(eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC));
  Signal entered;
  std::atomic<bool> left{false};
  ASSERT_TRUE(loop_
                  .Watch(event.get(), EPOLLIN | EPOLLET,
                         [&](uint32_t) {
                           entered.Give();
                           for (int i = 0; i < 100; ++i) std::this_thread::yield();
                           left.store(true);
                         })
                  .ok());
  ASSERT_TRUE(entered.Taken(loop_));
  loop_.Unwatch(event.get());
  EXPECT_TRUE(left.load());
}

TEST_F(ControlThreadTest, AHandlerMayUnwatchItself) {
  Fd event(eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC));
  Signal done;
  int calls = 0;
  auto captured = std::make_shared<int>(5);
  ASSERT_TRUE(loop_
                  .Watch(event.get(), EPOLLIN,
                         [&, captured](uint32_t) {
                           ++calls;
                           loop_.Unwatch(event.get());
                           EXPECT_EQ(*captured, 5) << "the handler lives until it returns";
                           done.Give();
                         })
                  .ok());
  ASSERT_TRUE(done.Taken(loop_));
  loop_.Drain();
  EXPECT_EQ(calls, 1);
}

TEST_F(ControlThreadTest, ANumberUsedAgainHasItsOwnHandler) {
  // Both are ready in one round of epoll; the handler that runs first replaces the other one.
  Fd first(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), second(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  int stale = 0;
  Signal done;
  loop_.Post([&] {
    const uint64_t one = 1;
    auto replace = [&](int mine, Fd* other) {
      loop_.Unwatch(mine);
      loop_.Unwatch(other->get());
      const int number = other->get();
      other->Reset();
      other->Reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
      EXPECT_EQ(other->get(), number);
      EXPECT_TRUE(loop_.Watch(number, EPOLLIN, [&](uint32_t) { ++stale; }).ok());
      loop_.Post([&] { done.Give(); });
    };
    EXPECT_TRUE(
        loop_.Watch(first.get(), EPOLLIN, [&, replace](uint32_t) { replace(first.get(), &second); })
            .ok());
    EXPECT_TRUE(
        loop_
            .Watch(second.get(), EPOLLIN, [&, replace](uint32_t) { replace(second.get(), &first); })
            .ok());
    EXPECT_EQ(write(first.get(), &one, 8), 8);
    EXPECT_EQ(write(second.get(), &one, 8), 8);
  });
  ASSERT_TRUE(done.Taken(loop_));
  loop_.Drain();
  EXPECT_EQ(stale, 0);
  loop_.Unwatch(first.get());
  loop_.Unwatch(second.get());
}

TEST_F(ControlThreadTest, ATickerRunsWhileItWantsTo) {
  int calls = 0;
  Signal third;
  std::unique_ptr<Ticker> ticker = loop_.NewTicker([&] {
    EXPECT_TRUE(loop_.OnExecutor());
    if (++calls % 3 != 0) return NextTick::kSoon;
    third.Give();
    return NextTick::kNever;
  });
  loop_.Drain();
  EXPECT_EQ(calls, 0) << "not started";
  for (int i = 1; i <= 3; ++i) {
    const Nanos start = loop_.Now();
    ticker->Start();
    ASSERT_TRUE(third.Taken(loop_));
    EXPECT_GE(loop_.Now() - start, kMillisecond) << "a period lies between two calls";
    loop_.Drain();
    EXPECT_EQ(calls, 3 * i);
  }
}

TEST_F(ControlThreadTest, ALateTickIsAPeriodOfItsOwnAway) {
  int calls = 0;
  Signal second;
  std::unique_ptr<Ticker> ticker = loop_.NewTicker([&] {
    if (++calls == 1) return NextTick::kLate;
    second.Give();
    return NextTick::kNever;
  });
  const Nanos start = loop_.Now();
  ticker->Start();
  ASSERT_TRUE(second.Taken(loop_));
  EXPECT_GE(loop_.Now() - start, 16 * kMillisecond);
  loop_.Drain();
  EXPECT_EQ(calls, 2);
}

TEST_F(ControlThreadTest, LateTicksAreNotHurriedByOthers) {
  int late_calls = 0;
  std::unique_ptr<Ticker> late = loop_.NewTicker([&] {
    ++late_calls;
    return NextTick::kLate;
  });
  int calls = 0;
  Signal hundredth;
  std::unique_ptr<Ticker> soon = loop_.NewTicker([&] {
    if (++calls != 100) return NextTick::kSoon;
    hundredth.Give();
    return NextTick::kNever;
  });
  const Nanos start = loop_.Now();
  late->Start();
  soon->Start();
  ASSERT_TRUE(hundredth.Taken(loop_));
  late.reset();
  EXPECT_LE(late_calls, 1 + (loop_.Now() - start) / (16 * kMillisecond));
}

TEST_F(ControlThreadTest, StartBringsALateTickForward) {
  int late_calls = 0;
  std::unique_ptr<Ticker> late = loop_.NewTicker([&] {
    ++late_calls;
    return NextTick::kLate;
  });
  int calls = 0;
  Signal hundredth;
  // Tickers that are due together are called in the order in which they were made.
  std::unique_ptr<Ticker> soon = loop_.NewTicker([&] {
    EXPECT_EQ(late_calls, calls);
    late->Start();
    if (++calls != 100) return NextTick::kSoon;
    hundredth.Give();
    return NextTick::kNever;
  });
  soon->Start();
  ASSERT_TRUE(hundredth.Taken(loop_));
}

TEST_F(ControlThreadTest, ATickerThatIsStartedLateIsCalledAPeriodLater) {
  Signal called;
  std::unique_ptr<Ticker> ticker = loop_.NewTicker([&] {
    called.Give();
    return NextTick::kNever;
  });
  loop_.Drain();
  for (int i = 0; i < 2; ++i) {
    const Nanos start = loop_.Now();
    ticker->StartLate();
    ticker->StartLate();
    ASSERT_TRUE(called.Taken(loop_));
    EXPECT_GE(loop_.Now() - start, 16 * kMillisecond);
  }
}

TEST_F(ControlThreadTest, StartLateDoesNotPutOffWhatIsToComeSoon) {
  int calls = 0, others = 0, others_by_then = 0;
  Signal hundredth;
  std::unique_ptr<Ticker> ticker = loop_.NewTicker([&] {
    if (++calls < 100) return NextTick::kSoon;
    if (calls == 100) {
      others_by_then = others;
      hundredth.Give();
    }
    return NextTick::kNever;
  });
  std::unique_ptr<Ticker> late = loop_.NewTicker([&] {
    ++others;
    ticker->StartLate();
    return NextTick::kSoon;
  });
  ticker->Start();
  late->Start();
  ASSERT_TRUE(hundredth.Taken(loop_));
  late.reset();
  EXPECT_LE(others_by_then, 2 * 100) << "of both comes one call in each period";
}

TEST_F(ControlThreadTest, StartIsNeverLost) {
  std::atomic<int> asked{0};
  std::atomic<int> seen{0};
  FutexParker parker;
  std::unique_ptr<Ticker> ticker = loop_.NewTicker([&] {
    seen.store(asked.load(std::memory_order_relaxed), std::memory_order_relaxed);
    parker.Unpark();
    return NextTick::kNever;
  });
  for (int i = 1; i <= 200; ++i) {
    asked.store(i, std::memory_order_relaxed);
    if (i % 8 == 0) {
      ticker->StartLate();
    } else {
      ticker->Start();
    }
    while (seen.load(std::memory_order_relaxed) != i) {
      ASSERT_EQ(parker.Park(Deadline::After(loop_, kGenerous)), ParkResult::kUnparked) << i;
    }
  }
}

TEST_F(ControlThreadTest, ATickerMayEndItself) {
  Signal done;
  std::unique_ptr<Ticker> ticker;
  ticker = loop_.NewTicker([&] {
    ticker.reset();
    done.Give();
    return NextTick::kSoon;
  });
  // On the loop: the ticker must not end while another thread is still in its Start.
  loop_.Post([&] { ticker->Start(); });
  EXPECT_TRUE(done.Taken(loop_));
}

TEST_F(ControlThreadTest, DestroyingATickerWaitsForItsCall) {
  Signal entered;
  std::atomic<bool> left{false};
  std::unique_ptr<Ticker> ticker = loop_.NewTicker([&] {
    entered.Give();
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    left.store(true);
    return NextTick::kSoon;
  });
  ticker->Start();
  ASSERT_TRUE(entered.Taken(loop_));
  left.store(false);
  ticker.reset();
  // Either the call had returned, or the destructor waited for it.
  const bool then = left.load();
  loop_.Drain();
  EXPECT_EQ(left.load(), then);
}

TEST_F(ControlThreadTest, ItsParkersSleepAndWake) {
  std::unique_ptr<Parker> parker = loop_.NewParker();
  loop_.Post([&] { parker->Unpark(); });
  EXPECT_EQ(parker->Park(Deadline::After(loop_, kGenerous)), ParkResult::kUnparked);
  loop_.Drain();
}

}  // namespace
}  // namespace viaduct::verbs
