// dat_evd_*: the pages of those names; DAT checklist 47-61, 69.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include <atomic>
#include <thread>

#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/sleeper.h"

namespace viaduct::tests {
namespace {

constexpr auto kSoftware = DAT_EVD_SOFTWARE_FLAG;

DAT_RETURN Post(DAT_EVD_HANDLE evd, uintptr_t pointer) {
  DAT_EVENT event = {};
  event.event_number = DAT_SOFTWARE_EVENT;
  event.event_data.software_event_data.pointer = reinterpret_cast<DAT_PVOID>(pointer);
  return dat_evd_post_se(evd, &event);
}

DAT_RETURN Wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold = 1,
                DAT_COUNT* more = nullptr) {
  DAT_EVENT event;
  return dat_evd_wait(evd, timeout, threshold, &event, more);
}

// Whether a thread waits: a waiter keeps others from dequeuing.
bool HasWaiter(DAT_EVD_HANDLE evd) {
  DAT_EVENT event;
  return DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) == DAT_INVALID_STATE;
}

// Runs dat_evd_wait in a thread; returns once that thread is the waiter.
class Waiter {
 public:
  explicit Waiter(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout = DAT_TIMEOUT_INFINITE) {
    thread_ = std::thread([=, this] {
      DAT_COUNT more;
      result_ = dat_evd_wait(evd, timeout, 1, &event_, &more);
    });
    while (!HasWaiter(evd)) sched_yield();
  }
  DAT_RETURN Join() {
    thread_.join();
    return result_;
  }
  pthread_t thread() { return thread_.native_handle(); }

 private:
  std::thread thread_;
  DAT_EVENT event_;
  DAT_RETURN result_ = DAT_SUCCESS;
};

TEST(EvdCreate, S_Parameters) {
  RunAlone([] {
    Side side;
    DAT_EVD_HANDLE evd;
    auto create = [&](DAT_COUNT length, int flags, DAT_EVD_HANDLE* out) {
      return dat_evd_create(side.ia, length, DAT_HANDLE_NULL, static_cast<DAT_EVD_FLAGS>(flags),
                            out);
    };
    EXPECT_TRUE(Fails(create(0, kSoftware, &evd), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(create(-5, kSoftware, &evd), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(create(8, 0, &evd), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
    EXPECT_TRUE(Fails(create(8, 0x2000, &evd), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
    EXPECT_TRUE(Fails(create(8, kSoftware, nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
    EXPECT_TRUE(Fails(create(0x7fffffff, kSoftware, &evd), DAT_INSUFFICIENT_RESOURCES));
    Must(create(side.attributes.max_evd_qlen, kSoftware, &evd));
  });
}

// Programs of 2.0 that use extensions ask for their events; 1.2 has none.
TEST(EvdCreate, S_ExtensionFlag) {
  RunAlone([] {
    Side side;
    const auto flags = static_cast<DAT_EVD_FLAGS>(0x200 | DAT_EVD_DTO_FLAG);
    DAT_EVD_HANDLE evd;
    const DAT_RETURN made = dat_evd_create(side.ia, 8, DAT_HANDLE_NULL, flags, &evd);
#if VIADUCT_TEST_DAT == 12
    EXPECT_TRUE(Fails(made, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
#else
    Must(made);
    DAT_EVD_PARAM param;
    Must(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
    EXPECT_EQ(param.evd_flags, flags);
    DAT_EP_HANDLE ep;
    Must(dat_ep_create(side.ia, side.pz, evd, evd, side.connect_evd, nullptr, &ep));
#endif
  });
}

TEST(EvdWait, C047_TimeoutZeroIsAPoll) {
  RunAlone([] {
    Side side;
    DAT_EVD_HANDLE evd = side.NewEvd(kSoftware);
    DAT_COUNT more = 99;
    EXPECT_TRUE(Fails(Wait(evd, 0, 1, &more), DAT_TIMEOUT_EXPIRED));
    EXPECT_EQ(more, 0);
    Must(Post(evd, 1));
    Must(Wait(evd, 0, 1, &more));
    EXPECT_EQ(more, 0);
  });
}

TEST(EvdWait, C048_MicrosecondsAndNoExtension) {
  RunAlone([] {
    Side side;
    constexpr int kPosts = 1000;  // for ten seconds
    DAT_EVD_HANDLE evd = side.NewEvd(kSoftware, kPosts);
    for (DAT_TIMEOUT timeout : {DAT_TIMEOUT{500}, 20 * kMillisecond}) {
      const uint64_t begin = NowMicroseconds();
      EXPECT_TRUE(Fails(Wait(evd, timeout), DAT_TIMEOUT_EXPIRED));
      EXPECT_GE(NowMicroseconds() - begin, timeout);
      EXPECT_LT(NowMicroseconds() - begin, timeout + 5 * kSecond);
    }
    // Events below the threshold wake the waiter again and again, but do not give it more time.
    Must(Post(evd, 1));
    std::atomic<bool> stop{false};
    std::thread poster([&] {
      for (int i = 1; i < kPosts && !stop; ++i) {
        (void)Post(evd, 1);
        timespec pause = {0, 10'000'000};
        nanosleep(&pause, nullptr);
      }
    });
    const uint64_t begin = NowMicroseconds();
    DAT_COUNT more = 0;
    EXPECT_TRUE(Fails(Wait(evd, 150 * kMillisecond, kPosts, &more), DAT_TIMEOUT_EXPIRED));
    EXPECT_GE(NowMicroseconds() - begin, 150 * kMillisecond);
    EXPECT_LT(NowMicroseconds() - begin, 5 * kSecond);
    EXPECT_GT(more, 0);
    stop = true;
    poster.join();
  });
}

TEST(EvdWait, C049_ThresholdRange) {
  RunAlone([] {
    Side side;
    DAT_EVD_HANDLE evd = side.NewEvd(kSoftware, 8);
    DAT_EVD_PARAM param;
    Must(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
    for (DAT_COUNT threshold : {0, -1, param.evd_qlen + 1}) {
      EXPECT_TRUE(Fails(Wait(evd, 0, threshold), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    }
    EXPECT_TRUE(Fails(Wait(evd, 0, param.evd_qlen), DAT_TIMEOUT_EXPIRED));
    DAT_COUNT more;
    EXPECT_TRUE(
        Fails(dat_evd_wait(evd, 0, 1, nullptr, &more), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
  });
}

TEST(EvdWait, C050_Threshold) {
  RunAlone([] {
    Side side;
    DAT_EVD_HANDLE evd = side.NewEvd(kSoftware);
    for (uintptr_t i = 1; i <= 3; ++i) Must(Post(evd, i));
    DAT_COUNT more = 0;
    EXPECT_TRUE(Fails(Wait(evd, 5 * kMillisecond, 4, &more), DAT_TIMEOUT_EXPIRED));
    EXPECT_EQ(more, 3);  // nothing was taken
    std::thread poster([&] { (void)Post(evd, 4); });
    Must(Wait(evd, kPatience, 4, &more));
    EXPECT_EQ(more, 3);
    poster.join();
    DAT_EVENT event;
    Must(dat_evd_wait(evd, 0, 3, &event, &more));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(event.event_data.software_event_data.pointer), 2u);
    EXPECT_EQ(more, 2);
  });
}

TEST(EvdWait, C052_OneWaiter) {
  RunAlone([] {
    Side side;
    DAT_EVD_HANDLE evd = side.NewEvd(kSoftware);
    Waiter waiter(evd);
    DAT_EVENT event;
    EXPECT_TRUE(Fails(Wait(evd, kSecond), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER));
    EXPECT_TRUE(
        Fails(dat_evd_dequeue(evd, &event), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER));
    EXPECT_TRUE(Fails(dat_evd_free(evd), DAT_INVALID_STATE));
    Must(Post(evd, 1));
    Must(waiter.Join());
  });
}

// A wait during which the process stood still finds what came in time, although the time-out has
// passed.
TEST(EvdWait, S_AStopDoesNotHideWhatHasCome) {
  RunPair(
      [](Peer& peer) {
        Side side;
        const DAT_EP_HANDLE ep = side.NewEp();
        side.AcceptFrom(peer, ep, Port(0));
        for (int i = 0; i < 3; ++i) {
          peer.Await("waits");
          AwaitAsleep(peer.pid(), peer.pid());
          StoppedPeer stopped(peer);
          Must(side.TrySend(ep, 1));
          EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
          usleep(1'400'000 * Slowness());  // its time-out passes
          stopped.Continue();
          peer.Await("has it");
        }
      },
      [](Peer& peer) {
        Side side;
        const DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        for (int i = 0; i < 3; ++i) {
          side.PostReceive(ep, 1);
          DAT_EVENT event;
          DAT_COUNT more;
          peer.Tell("waits");
          const DAT_TIMEOUT timeout = kSecond * static_cast<DAT_TIMEOUT>(Slowness());
          EXPECT_EQ(dat_evd_wait(side.receive_evd, timeout, 1, &event, &more), DAT_SUCCESS);
          peer.Tell("has it");
        }
      });
}

TEST(EvdWait, C053_Unwaitable) {
  RunAlone([] {
    Side side;
    DAT_EVD_HANDLE evd = side.NewEvd(kSoftware);
    Waiter waiter(evd);
    Must(dat_evd_set_unwaitable(evd));
    EXPECT_TRUE(Fails(waiter.Join(), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE));
    EXPECT_TRUE(Fails(Wait(evd, kSecond), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE));
    Must(Post(evd, 1));
    DAT_EVENT event;
    Must(dat_evd_dequeue(evd, &event));
    Must(dat_evd_clear_unwaitable(evd));
    EXPECT_TRUE(Fails(Wait(evd, 0), DAT_TIMEOUT_EXPIRED));
  });
}

// The waiter is told even if it wakes only after waiting is allowed again.
TEST(EvdWait, C053_UnwaitableForAMoment) {
  RunAlone([] {
    Side side;
    DAT_EVD_HANDLE evd = side.NewEvd(kSoftware);
    for (int i = 0; i < 100; ++i) {
      Waiter waiter(evd, kPatience);
      Must(dat_evd_set_unwaitable(evd));
      Must(dat_evd_clear_unwaitable(evd));
      ASSERT_TRUE(Fails(waiter.Join(), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE)) << i;
    }
  });
}

TEST(EvdQuery, C054_State) {
  RunAlone([] {
    Side side;
    DAT_EVD_HANDLE evd = side.NewEvd(static_cast<DAT_EVD_FLAGS>(kSoftware | DAT_EVD_DTO_FLAG), 9);
    auto state = [&] {
      DAT_EVD_PARAM param;
      Must(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
      EXPECT_EQ(param.ia_handle, side.ia);
      EXPECT_GE(param.evd_qlen, 9);
      EXPECT_EQ(static_cast<int>(param.evd_flags), kSoftware | DAT_EVD_DTO_FLAG);
      return static_cast<int>(param.evd_state);
    };
    EXPECT_EQ(state(), DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
    for (int i = 0; i < 2; ++i) {  // idempotent
      Must(dat_evd_disable(evd));
      EXPECT_EQ(state(), DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_WAITABLE);
    }
    Must(dat_evd_set_unwaitable(evd));
    EXPECT_EQ(state(), DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_UNWAITABLE);
    Must(dat_evd_enable(evd));
    Must(dat_evd_clear_unwaitable(evd));
    EXPECT_EQ(state(), DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
    DAT_EVD_PARAM param;
    EXPECT_TRUE(Fails(dat_evd_query(evd, static_cast<DAT_EVD_PARAM_MASK>(0x20), &param),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(dat_evd_query(evd, DAT_EVD_FIELD_ALL, nullptr), DAT_INVALID_PARAMETER,
                      DAT_INVALID_ARG3));
  });
}

TEST(EvdResize, C055_KeepsTheEvents) {
  RunAlone([] {
    Side side;
    DAT_EVD_HANDLE evd = side.NewEvd(kSoftware, 8);
    for (uintptr_t i = 1; i <= 5; ++i) Must(Post(evd, i));
    Must(dat_evd_resize(evd, 100));
    for (uintptr_t i = 6; i <= 50; ++i) Must(Post(evd, i));
    const DAT_RETURN smaller = dat_evd_resize(evd, 10);
    EXPECT_TRUE(smaller == DAT_SUCCESS || Fails(smaller, DAT_INVALID_STATE));
    for (uintptr_t i = 1; i <= 50; ++i) {
      const DAT_EVENT event = Next(evd, DAT_SOFTWARE_EVENT, 0);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(event.event_data.software_event_data.pointer), i);
    }
    Must(dat_evd_resize(evd, 4));
    for (DAT_COUNT length : {0, -1}) {
      EXPECT_TRUE(Fails(dat_evd_resize(evd, length), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    }
  });
}

TEST(EvdResize, C056_BelowWhatIsQueued) {
  RunAlone([] {
    Side side;
    DAT_EVD_HANDLE evd = side.NewEvd(kSoftware, 32);
    for (uintptr_t i = 1; i <= 20; ++i) Must(Post(evd, i));
    EXPECT_TRUE(Fails(dat_evd_resize(evd, 5), DAT_INVALID_STATE));
    DAT_EVD_PARAM param;
    Must(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
    EXPECT_GE(param.evd_qlen, 32);
    for (uintptr_t i = 1; i <= 20; ++i) {
      const DAT_EVENT event = Next(evd, DAT_SOFTWARE_EVENT, 0);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(event.event_data.software_event_data.pointer), i);
    }
    Must(dat_evd_resize(evd, 5));
  });
}

TEST(EvdResize, S_Parameters) {
  RunAlone([] {
    Side side;
    DAT_EVD_HANDLE evd = side.NewEvd(kSoftware, 8);
    for (DAT_COUNT length : {0, -1}) {
      EXPECT_TRUE(Fails(dat_evd_resize(evd, length), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    }
    EXPECT_TRUE(Fails(dat_evd_resize(evd, 0x7fffffff), DAT_INSUFFICIENT_RESOURCES));
    Must(dat_evd_resize(evd, side.attributes.max_evd_qlen));
    DAT_EVD_PARAM param;
    Must(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
    EXPECT_GE(param.evd_qlen, side.attributes.max_evd_qlen);
  });
}

TEST(EvdResize, S_BelowWhatAThreadWaitsFor) {
  RunAlone([] {
    Side side;
    DAT_EVD_HANDLE evd = side.NewEvd(kSoftware, 8);
    DAT_RETURN result = DAT_ABORT;
    Sleeper waiter([&] {
      DAT_EVENT event;
      DAT_COUNT more;
      result = dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 4, &event, &more);
    });
    waiter.AwaitAsleep();
    EXPECT_TRUE(Fails(dat_evd_resize(evd, 3), DAT_INVALID_STATE));
    Must(dat_evd_resize(evd, 4));
    for (uintptr_t i = 1; i <= 4; ++i) Must(Post(evd, i));
    waiter.Join();
    Must(result);
    Must(dat_evd_resize(evd, 3));
  });
}

TEST(EvdPostSe, C057_Parameters) {
  RunAlone([] {
    Side side;
    DAT_EVD_HANDLE evd = side.NewEvd(kSoftware);
    DAT_EVENT event = {};
    event.event_number = DAT_DTO_COMPLETION_EVENT;
    EXPECT_TRUE(Fails(dat_evd_post_se(evd, &event), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(dat_evd_post_se(evd, nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(Post(side.request_evd, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
    EXPECT_TRUE(IsEmpty(evd));
    Must(Post(evd, 0x123456789abc));
    const DAT_EVENT taken = Next(evd, DAT_SOFTWARE_EVENT, 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(taken.event_data.software_event_data.pointer),
              0x123456789abcu);
  });
}

TEST(EvdPostSe, C058_FullQueue) {
  RunAlone([] {
    Side side;
    DAT_EVD_HANDLE evd = side.NewEvd(kSoftware, 4);
    DAT_EVD_PARAM param;
    Must(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
    for (DAT_COUNT i = 0; i < param.evd_qlen; ++i) Must(Post(evd, static_cast<uintptr_t>(i)));
    EXPECT_TRUE(Fails(Post(evd, 99), DAT_QUEUE_FULL));
    EXPECT_TRUE(IsEmpty(side.async_evd));
    for (DAT_COUNT i = 0; i < param.evd_qlen; ++i) Next(evd, DAT_SOFTWARE_EVENT, 0);
    EXPECT_TRUE(IsEmpty(evd));
  });
}

// Completions fill the queue too, including those that still wait in the device.
TEST(EvdPostSe, C058_FullOfCompletions) {
  RunAlone([] {
    Side side;
    const auto mixed = static_cast<DAT_EVD_FLAGS>(kSoftware | DAT_EVD_DTO_FLAG);
    side.request_evd = side.NewEvd(mixed, 4);
    DAT_EP_HANDLE ep = side.NewEp();
    side.Connect(ep, Port(0));
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep);
    for (uint64_t i = 0; i < 4; ++i) Must(side.TrySend(ep, i));  // flushed at once
    EXPECT_TRUE(Fails(Post(side.request_evd, 99), DAT_QUEUE_FULL));
    Next(side.request_evd, DAT_DTO_COMPLETION_EVENT, 0);
    Must(Post(side.request_evd, 100));
    EXPECT_TRUE(Fails(Post(side.request_evd, 101), DAT_QUEUE_FULL));
    for (int i = 0; i < 3; ++i) Next(side.request_evd, DAT_DTO_COMPLETION_EVENT, 0);
    Next(side.request_evd, DAT_SOFTWARE_EVENT, 0);
    EXPECT_TRUE(IsEmpty(side.async_evd));
  });
}

TEST(EvdFree, C060_InUse) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    for (DAT_EVD_HANDLE evd : {side.receive_evd, side.request_evd, side.connect_evd}) {
      EXPECT_TRUE(Fails(dat_evd_free(evd), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE));
    }
    Must(dat_ep_free(ep));
    for (DAT_EVD_HANDLE evd : {side.receive_evd, side.request_evd, side.connect_evd}) {
      Must(dat_evd_free(evd));
    }
  });
}

TEST(EvdDequeue, C061_EachEventOnceInOrder) {
  RunAlone([] {
    constexpr uintptr_t kEvents = 4000;
    constexpr int kThreads = 3;
    Side side;
    DAT_EVD_HANDLE evd = side.NewEvd(kSoftware, kEvents);
    std::vector<std::atomic<int>> seen(kEvents + 1);
    std::atomic<uintptr_t> taken{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        uintptr_t last = 0;
        while (taken < kEvents) {
          DAT_EVENT event;
          if (dat_evd_dequeue(evd, &event) != DAT_SUCCESS) {
            sched_yield();
            continue;
          }
          auto value = reinterpret_cast<uintptr_t>(event.event_data.software_event_data.pointer);
          EXPECT_GT(value, last);
          last = value;
          ++seen[value];
          ++taken;
        }
      });
    }
    for (uintptr_t i = 1; i <= kEvents; ++i) Must(Post(evd, i));
    for (std::thread& thread : threads) thread.join();
    for (uintptr_t i = 1; i <= kEvents; ++i) EXPECT_EQ(seen[i], 1) << i;
    DAT_EVENT event;
    EXPECT_TRUE(Fails(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY));
    EXPECT_TRUE(Fails(dat_evd_dequeue(evd, nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
  });
}

// For programs written for OFED, which compare with the codes without their class.
TEST(EvdWait, S_NoEventWithoutItsClass) {
  setenv("VIADUCT_QUEUE_EMPTY", "bare", 1);
  RunAlone([] {
    Side side;
    DAT_EVENT event;
    DAT_COUNT more;
    EXPECT_EQ(dat_evd_dequeue(side.request_evd, &event), DAT_RETURN{DAT_QUEUE_EMPTY});
    for (DAT_TIMEOUT timeout : {0u, 1000u}) {
      const auto wait = [&](DAT_EVD_HANDLE evd) {
        return dat_evd_wait(evd, timeout, 1, &event, &more);
      };
      EXPECT_EQ(wait(side.request_evd), DAT_RETURN{DAT_TIMEOUT_EXPIRED});
      EXPECT_EQ(wait(side.NewEvd(DAT_EVD_RMR_BIND_FLAG)), DAT_RETURN{DAT_TIMEOUT_EXPIRED});
      EXPECT_TRUE(Fails(wait(side.connect_evd), DAT_TIMEOUT_EXPIRED)) << "OFED's, too";
    }
    DAT_CNO_HANDLE cno;
    Must(dat_cno_create(side.ia, DAT_OS_WAIT_PROXY_AGENT{nullptr, nullptr}, &cno));
    Must(dat_evd_modify_cno(side.request_evd, cno));
    EXPECT_TRUE(Fails(dat_evd_wait(side.request_evd, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED));
    DAT_EVD_HANDLE told;
    EXPECT_EQ(dat_cno_wait(cno, 1000, &told), DAT_RETURN{DAT_QUEUE_EMPTY});
  });
  unsetenv("VIADUCT_QUEUE_EMPTY");
}

TEST(EvdWait, C069_SignalInterrupts) {
  RunAlone([] {
    static std::atomic<int> handled;
    struct sigaction action = {};
    action.sa_handler = [](int) { ++handled; };
    ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    Side side;
    DAT_EVD_HANDLE evd = side.NewEvd(kSoftware);
    Waiter waiter(evd);
    // The waiter may still spin when a signal comes; then a later signal meets it asleep.
    std::atomic<bool> ended{false};
    std::thread signals([&] {
      while (!ended) {
        pthread_kill(waiter.thread(), SIGUSR1);
        timespec pause = {0, 5'000'000};
        nanosleep(&pause, nullptr);
      }
    });
    // The dispatcher has a waiter until the wait ends.
    while (HasWaiter(evd)) sched_yield();
    ended = true;
    signals.join();
    EXPECT_TRUE(Fails(waiter.Join(), DAT_INTERRUPTED_CALL));
    EXPECT_GT(handled, 0);
  });
}

}  // namespace
}  // namespace viaduct::tests
