// dat_cno_*, dat_evd_modify_cno: the pages of those names; DAT checklist 62-69, 22, 23.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/sleeper.h"

namespace viaduct::tests {
namespace {

constexpr auto kSoftware = DAT_EVD_SOFTWARE_FLAG;
constexpr DAT_OS_WAIT_PROXY_AGENT kNoAgent = {nullptr, nullptr};

DAT_RETURN Post(DAT_EVD_HANDLE evd) {
  DAT_EVENT event = {};
  event.event_number = DAT_SOFTWARE_EVENT;
  return dat_evd_post_se(evd, &event);
}

DAT_CNO_HANDLE NewCno(const Side& side, DAT_OS_WAIT_PROXY_AGENT agent = kNoAgent) {
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  Must(dat_cno_create(side.ia, agent, &cno));
  return cno;
}

DAT_EVD_HANDLE NewEvd(const Side& side, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags = kSoftware,
                      DAT_COUNT length = 64) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  Must(dat_evd_create(side.ia, length, cno, flags, &evd));
  return evd;
}

// A notifier and a dispatcher that tells it.
struct NotifiedSide : Side {
  explicit NotifiedSide(DAT_OS_WAIT_PROXY_AGENT agent = kNoAgent) : cno(NewCno(*this, agent)) {}
  const DAT_CNO_HANDLE cno;
  const DAT_EVD_HANDLE evd = tests::NewEvd(*this, cno);
};

::testing::AssertionResult IsQuiet(DAT_CNO_HANDLE cno) {
  DAT_EVD_HANDLE evd = cno;
  const DAT_RETURN value = dat_cno_wait(cno, 0, &evd);
  if (evd != DAT_HANDLE_NULL) return ::testing::AssertionFailure() << "a dispatcher is named";
  return Fails(value, DAT_QUEUE_EMPTY);
}

// The dispatcher that is told within the patience.
DAT_EVD_HANDLE Told(DAT_CNO_HANDLE cno) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  Must(dat_cno_wait(cno, kPatience, &evd));
  return evd;
}

// Runs dat_cno_wait in a thread; returns when that thread sleeps.
class Waiter {
 public:
  explicit Waiter(DAT_CNO_HANDLE cno) {
    std::promise<pid_t> began;
    thread_ = std::thread([&began, cno, this] {
      began.set_value(static_cast<pid_t>(syscall(SYS_gettid)));
      result_ = dat_cno_wait(cno, DAT_TIMEOUT_INFINITE, &evd_);
    });
    const pid_t tid = began.get_future().get();
    const std::string stat = "/proc/self/task/" + std::to_string(tid) + "/stat";
    for (int asleep = 0; asleep < 20; ++asleep) {
      if (StateLetter(stat) != 'S') asleep = 0;
      sched_yield();
    }
  }
  DAT_RETURN Join() {
    thread_.join();
    return result_;
  }
  DAT_EVD_HANDLE evd() const { return evd_; }
  pthread_t thread() { return thread_.native_handle(); }

 private:
  std::thread thread_;
  DAT_EVD_HANDLE evd_ = reinterpret_cast<DAT_EVD_HANDLE>(1);
  DAT_RETURN result_ = DAT_SUCCESS;
};

// An agent's calls.
struct Calls {
  std::atomic<int> count{0};
  std::atomic<DAT_EVD_HANDLE> evd{nullptr};
  static void Agent(DAT_PVOID instance, DAT_EVD_HANDLE evd) {
    auto* calls = static_cast<Calls*>(instance);
    calls->evd = evd;
    ++calls->count;
  }
  DAT_OS_WAIT_PROXY_AGENT agent() { return {this, &Agent}; }
  void Await(int n) {
    while (count < n) sched_yield();
  }
};

// One that returns a while after something of its has begun to be freed.
struct SlowAgent {
  std::atomic<bool> began{false}, freeing{false}, ended{false};
  static void Agent(DAT_PVOID instance, DAT_EVD_HANDLE) {
    auto* slow = static_cast<SlowAgent*>(instance);
    slow->began = true;
    while (!slow->freeing) sched_yield();
    for (int i = 0; i < 10000; ++i) sched_yield();
    slow->ended = true;
  }
  DAT_OS_WAIT_PROXY_AGENT agent() { return {this, &Agent}; }
  void AwaitBegin() {
    while (!began) sched_yield();
  }
};

TEST(CnoCreate, S_QueryShowsWhatWasGiven) {
  RunAlone([] {
    Side side;
    Calls calls;
    DAT_CNO_HANDLE cno = NewCno(side, calls.agent());
    DAT_CNO_PARAM param;
    Must(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
    EXPECT_EQ(param.ia_handle, side.ia);
#if VIADUCT_TEST_DAT == 12
    EXPECT_EQ(param.agent.instance_data, &calls);
    EXPECT_EQ(param.agent.proxy_agent_func, &Calls::Agent);
#else
    EXPECT_EQ(param.proxy_type, DAT_PROXY_TYPE_AGENT);
    EXPECT_EQ(param.proxy.agent.instance_data, &calls);
    EXPECT_EQ(param.proxy.agent.proxy_agent_func, &Calls::Agent);
    Must(dat_cno_modify_agent(cno, kNoAgent));
    Must(dat_cno_query(cno, DAT_CNO_FIELD_PROXY, &param));
    EXPECT_EQ(param.proxy_type, DAT_PROXY_TYPE_NONE);
#endif
    EXPECT_TRUE(Fails(dat_cno_query(cno, DAT_CNO_FIELD_ALL, nullptr), DAT_INVALID_PARAMETER,
                      DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(dat_cno_query(cno, static_cast<DAT_CNO_PARAM_MASK>(8), &param),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(
        Fails(dat_cno_create(side.ia, kNoAgent, nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    Must(dat_cno_free(cno));
    EXPECT_TRUE(Fails(dat_cno_free(cno), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO));
  });
}

TEST(CnoWait, C062_TimeoutIsQueueEmpty) {
  RunAlone([] {
    Side side;
    DAT_CNO_HANDLE cno = NewCno(side);
    for (DAT_TIMEOUT timeout : {DAT_TIMEOUT{0}, DAT_TIMEOUT{500}, 20 * kMillisecond}) {
      DAT_EVD_HANDLE evd = cno;
      const uint64_t begin = NowMicroseconds();
      EXPECT_TRUE(Fails(dat_cno_wait(cno, timeout, &evd), DAT_QUEUE_EMPTY));
      EXPECT_GE(NowMicroseconds() - begin, timeout);
      EXPECT_EQ(evd, DAT_HANDLE_NULL);
    }
    EXPECT_TRUE(Fails(dat_cno_wait(cno, 0, nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
  });
}

TEST(CnoWait, C063_EnabledTriggersDisabledDoesNot) {
  RunAlone([] {
    NotifiedSide side;
    EXPECT_TRUE(IsQuiet(side.cno));
    Must(Post(side.evd));
    EXPECT_EQ(Told(side.cno), side.evd);
    Must(dat_evd_disable(side.evd));
    Must(Post(side.evd));
    EXPECT_TRUE(IsQuiet(side.cno));
    Must(dat_evd_enable(side.evd));
    Must(Post(side.evd));
    EXPECT_EQ(Told(side.cno), side.evd);
    EXPECT_TRUE(IsQuiet(side.cno));
  });
}

TEST(CnoWait, C063_WaitedDispatcherDoesNotTrigger) {
  RunAlone([] {
    NotifiedSide side;
    DAT_RETURN result = DAT_ABORT;
    std::thread waiter([&] {
      DAT_EVENT event;
      DAT_COUNT more;
      result = dat_evd_wait(side.evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
    });
    DAT_EVENT event;
    while (DAT_GET_TYPE(dat_evd_dequeue(side.evd, &event)) != DAT_INVALID_STATE) sched_yield();
    Must(Post(side.evd));
    waiter.join();
    Must(result);
    EXPECT_TRUE(IsQuiet(side.cno));
  });
}

// What comes while a waiter gives up is told to one of the two.
TEST(CnoWait, C063_NothingIsLostBetweenWaiterAndNotifier) {
  RunAlone([] {
    NotifiedSide side;
    for (int i = 0; i < 2000; ++i) {
      std::thread poster([&] { Must(Post(side.evd)); });
      DAT_EVENT event;
      DAT_COUNT more;
      const DAT_RETURN waited =
          dat_evd_wait(side.evd, static_cast<DAT_TIMEOUT>(i % 100), 1, &event, &more);
      if (waited != DAT_SUCCESS) {
        ASSERT_TRUE(Fails(waited, DAT_TIMEOUT_EXPIRED));
        if (more == 0) {
          ASSERT_EQ(Told(side.cno), side.evd) << i;
        }
        Next(side.evd, DAT_SOFTWARE_EVENT);
      }
      poster.join();
      DAT_EVD_HANDLE told;
      (void)dat_cno_wait(side.cno, 0, &told);
    }
  });
}

// The client of a server that says after each look how many of `most` messages it has taken, and
// 1000 at last: sends one, or with `pairs` now and then two that come together.
void SendWhenTold(Peer& peer, uint64_t most, bool pairs) {
  ConnectingSide side(peer);
  uint64_t sent = 0;
  while (peer.Receive<uint64_t>() < 1000) {
    const uint64_t wanted = pairs ? 1 + sent % 2 : 1;
    for (uint64_t n = 0; n < wanted && sent < most; ++n) Must(side.TrySend(side.ep, sent++));
  }
  peer.Tell("done");
}

TEST(CnoWait, C063_CompletionsTrigger) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_CNO_HANDLE cno = NewCno(side);
        for (DAT_EVD_HANDLE evd : {side.receive_evd, side.connect_evd, side.cr_evd}) {
          Must(dat_evd_modify_cno(evd, cno));
        }
        DAT_EP_HANDLE ep = side.NewEp();
        for (uint64_t i = 0; i < 40; ++i) side.PostReceive(ep, i);
        DAT_PSP_HANDLE psp = side.Listen(Port(0));
        peer.Tell("listening");
        EXPECT_EQ(Told(cno), side.cr_evd);
        Must(side.TryAccept(NextRequest(side.cr_evd).cr_handle, ep));
        EXPECT_EQ(Told(cno), side.connect_evd);
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        Must(dat_psp_free(psp));
        peer.Tell("accepted");
        // As programs do: take everything, then wait.
        for (uint64_t taken = 0;;) {
          DAT_EVENT event;
          while (dat_evd_dequeue(side.receive_evd, &event) == DAT_SUCCESS) {
            EXPECT_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, taken);
            ++taken;
          }
          if (taken == 40) break;
          peer.Send(taken);
          EXPECT_EQ(Told(cno), side.receive_evd) << taken;
        }
        peer.Send(uint64_t{1000});
        peer.Await("done");
      },
      [](Peer& peer) { SendWhenTold(peer, 40, /*pairs=*/true); });
}

TEST(CnoWait, C064_TriggerIsRememberedOnce) {
  RunAlone([] {
    NotifiedSide side;
    DAT_EVD_HANDLE second = NewEvd(side, side.cno);
    for (int i = 0; i < 5; ++i) Must(Post(side.evd));
    Must(Post(second));
    EXPECT_EQ(Told(side.cno), side.evd);
    EXPECT_TRUE(IsQuiet(side.cno));
    Must(Post(second));
    EXPECT_EQ(Told(side.cno), second);
    EXPECT_TRUE(IsQuiet(side.cno));
  });
}

TEST(CnoWait, C064_EachTriggerWakesAWaiter) {
  RunAlone([] {
    NotifiedSide side;
    Waiter first(side.cno), second(side.cno);
    Must(Post(side.evd));
    Must(Post(side.evd));
    Must(first.Join());
    Must(second.Join());
    EXPECT_EQ(first.evd(), side.evd);
    EXPECT_EQ(second.evd(), side.evd);
    EXPECT_TRUE(IsQuiet(side.cno));
  });
}

TEST(CnoAgent, C065_CalledOnceForEachAssociation) {
  RunAlone([] {
    Calls calls;
    NotifiedSide side(calls.agent());
    DAT_EVD_HANDLE other = NewEvd(side, side.cno);
    Must(Post(side.evd));
    calls.Await(1);
    EXPECT_EQ(calls.evd, side.evd);
    Must(Post(side.evd));
    EXPECT_EQ(Told(side.cno), side.evd);  // a waiter is told beside the agent
    Must(dat_cno_modify_agent(side.cno, calls.agent()));
    Must(Post(other));
    calls.Await(2);
    EXPECT_EQ(calls.evd, other);
    Must(dat_cno_modify_agent(side.cno, calls.agent()));
    Must(dat_cno_modify_agent(side.cno, kNoAgent));
    Must(Post(side.evd));
    // Calls run one after the other: this one comes behind any that should not have been.
    Calls last;
    DAT_CNO_HANDLE marker = NewCno(side, last.agent());
    Must(Post(NewEvd(side, marker)));
    last.Await(1);
    EXPECT_EQ(calls.count, 2);
  });
}

// As a waiter is.
TEST(CnoAgent, S_IsToldOfTheLastDispatchersEnd) {
  RunAlone([] {
    Calls calls;
    NotifiedSide side(calls.agent());
    DAT_EVD_HANDLE other = NewEvd(side, side.cno);
    calls.evd = side.evd;
    Must(dat_evd_free(other));
    Must(dat_evd_free(side.evd));
    calls.Await(1);
    EXPECT_EQ(calls.evd, DAT_HANDLE_NULL);
    Must(dat_cno_free(side.cno));
    EXPECT_EQ(calls.count, 1);
  });
}

// Every call is legal in an agent: it takes the event, asks for the next call, and frees.
TEST(CnoAgent, C065_AgentMayCallAnything) {
  RunAlone([] {
    struct Loop {
      DAT_CNO_HANDLE cno;
      std::atomic<int> events{0};
      std::promise<DAT_RETURN> freed;
      static void Agent(DAT_PVOID instance, DAT_EVD_HANDLE evd) {
        auto* loop = static_cast<Loop*>(instance);
        DAT_EVENT event;
        while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS) ++loop->events;
        if (loop->events < 100) {
          EXPECT_EQ(dat_cno_modify_agent(loop->cno, {loop, &Agent}), DAT_RETURN{DAT_SUCCESS});
          EXPECT_EQ(Post(evd), DAT_RETURN{DAT_SUCCESS});
          return;
        }
        EXPECT_EQ(dat_evd_free(evd), DAT_RETURN{DAT_SUCCESS});
        loop->freed.set_value(dat_cno_free(loop->cno));
      }
    } loop;
    Side side;
    loop.cno = NewCno(side, {&loop, &Loop::Agent});
    Must(Post(NewEvd(side, loop.cno)));
    Must(loop.freed.get_future().get());
    EXPECT_EQ(loop.events, 100);
  });
}

// What its agent uses may be freed behind the notifier.
TEST(CnoFree, S_TheAgentHasReturned) {
  RunAlone([] {
    SlowAgent slow;
    NotifiedSide side(slow.agent());
    Must(Post(side.evd));
    slow.AwaitBegin();
    Must(dat_evd_free(side.evd));
    slow.freeing = true;
    Must(dat_cno_free(side.cno));
    EXPECT_TRUE(slow.ended);
  });
}

// An agent that asks for its next call while its notifier is being freed gets none, and nothing
// else can be tied to that notifier.
TEST(CnoFree, S_TheAgentSetsNoneForTheEnd) {
  RunAlone([] {
    struct Rearming {
      DAT_IA_HANDLE ia;
      DAT_CNO_HANDLE cno;
      std::atomic<bool> began{false}, freeing{false};
      std::atomic<int> calls{0};
      static void Agent(DAT_PVOID instance, DAT_EVD_HANDLE) {
        auto* self = static_cast<Rearming*>(instance);
        ++self->calls;
        self->began = true;
        while (!self->freeing) sched_yield();
        for (int i = 0; i < 10000; ++i) {
          if (dat_cno_modify_agent(self->cno, {self, &Agent}) != DAT_SUCCESS) break;
          sched_yield();
        }
        DAT_EVD_HANDLE evd;
        EXPECT_TRUE(Fails(dat_evd_create(self->ia, 1, self->cno, kSoftware, &evd),
                          DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO));
      }
    } first;
    NotifiedSide side({&first, &Rearming::Agent});
    first.ia = side.ia;
    first.cno = side.cno;
    Must(Post(side.evd));
    while (!first.began) sched_yield();
    Must(dat_evd_free(side.evd));
    first.freeing = true;
    Must(dat_cno_free(side.cno));
    // Calls run one after the other: this one comes behind any that should not have been.
    Calls last;
    DAT_CNO_HANDLE marker = NewCno(side, last.agent());
    Must(Post(NewEvd(side, marker)));
    last.Await(1);
    EXPECT_EQ(first.calls, 1);
  });
}

TEST(EvdModifyCno, C066_OnlyTheNewOneIsTold) {
  RunAlone([] {
    Side side;
    DAT_CNO_HANDLE old_cno = NewCno(side), new_cno = NewCno(side);
    DAT_EVD_HANDLE evd = NewEvd(side, old_cno);
    auto shown = [&] {
      DAT_EVD_PARAM param;
      Must(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
      return param.cno_handle;
    };
    EXPECT_EQ(shown(), old_cno);
    Must(dat_evd_disable(evd));
    Must(dat_evd_modify_cno(evd, new_cno));
    Must(dat_evd_enable(evd));
    EXPECT_EQ(shown(), new_cno);
    Must(Post(evd));
    EXPECT_EQ(Told(new_cno), evd);
    EXPECT_TRUE(IsQuiet(old_cno));
    Must(dat_cno_free(old_cno));
    Must(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
    EXPECT_EQ(shown(), DAT_HANDLE_NULL);
    Must(Post(evd));
    EXPECT_TRUE(IsQuiet(new_cno));
    Must(dat_cno_free(new_cno));
    EXPECT_TRUE(
        Fails(dat_evd_modify_cno(evd, new_cno), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO));
    for (int i = 0; i < 2; ++i) Next(evd, DAT_SOFTWARE_EVENT, 0);  // none was lost
  });
}

TEST(CnoFree, C067_InUse) {
  RunAlone([] {
    NotifiedSide side;
    EXPECT_TRUE(Fails(dat_cno_free(side.cno), DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE));
    Must(dat_evd_free(side.evd));
    Waiter waiter(side.cno);
    EXPECT_TRUE(Fails(dat_cno_free(side.cno), DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE));
    // The documented way out.
    DAT_EVD_HANDLE temporary = NewEvd(side, side.cno);
    Must(Post(temporary));
    Must(waiter.Join());
    EXPECT_EQ(waiter.evd(), temporary);
    Must(dat_evd_free(temporary));
    Must(dat_cno_free(side.cno));
  });
}

TEST(CnoWait, C068_FreeingTheLastDispatcherWakes) {
  RunAlone([] {
    NotifiedSide side;
    DAT_EVD_HANDLE last = NewEvd(side, side.cno);
    Waiter waiter(side.cno), other(side.cno);
    Must(dat_evd_free(side.evd));
    Must(dat_evd_free(last));
    Must(waiter.Join());
    Must(other.Join());
    EXPECT_EQ(waiter.evd(), DAT_HANDLE_NULL);
    EXPECT_EQ(other.evd(), DAT_HANDLE_NULL);
    Must(dat_cno_free(side.cno));
  });
}

TEST(CnoWait, C069_SignalInterrupts) {
  RunAlone([] {
    struct sigaction action = {};
    action.sa_handler = [](int) {};
    action.sa_flags = SA_RESTART;
    ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    Side side;
    DAT_CNO_HANDLE cno = NewCno(side);
    Waiter waiter(cno);
    std::atomic<bool> ended{false};
    std::thread signals([&] {
      while (!ended) {
        pthread_kill(waiter.thread(), SIGUSR1);
        timespec pause = {0, 5'000'000};
        nanosleep(&pause, nullptr);
      }
    });
    // Only the waiter's end makes the notifier free again.
    while (DAT_GET_TYPE(dat_cno_free(cno)) == DAT_INVALID_STATE) sched_yield();
    ended = true;
    signals.join();
    EXPECT_TRUE(Fails(waiter.Join(), DAT_INTERRUPTED_CALL));
    EXPECT_EQ(waiter.evd(), DAT_HANDLE_NULL);
  });
}

// An adapter that nothing closes.
DAT_IA_HANDLE OpenAdapter(DAT_EVD_HANDLE* async) {
  char name[] = "soft0";
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  Must(dat_ia_open(name, 8, async, &ia));
  return ia;
}

TEST(IaClose, C022_GracefulNeedsTheNotifierFreed) {
  RunAlone([] {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = OpenAdapter(&async);
    DAT_CNO_HANDLE cno;
    Must(dat_cno_create(ia, kNoAgent, &cno));
    EXPECT_TRUE(Fails(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE));
    Must(dat_cno_free(cno));
    Must(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
  });
}

TEST(IaClose, C023_AbruptReleasesWaitersAndAgents) {
  RunAlone([] {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = OpenAdapter(&async);
    Calls calls;
    calls.evd = async;
    DAT_CNO_HANDLE cno;
    Must(dat_cno_create(ia, calls.agent(), &cno));
    Waiter waiter(cno);
    Must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
    Must(waiter.Join());
    EXPECT_EQ(waiter.evd(), DAT_HANDLE_NULL);
    calls.Await(1);
    EXPECT_EQ(calls.evd, DAT_HANDLE_NULL);
  });
}

// One that has been called and not begun is told of the end, instead of what it was called for.
TEST(IaClose, S_AnAgentThatWaitsForItsTurnIsTold) {
  RunAlone([] {
    SlowAgent slow;
    NotifiedSide side(slow.agent());
    Must(Post(side.evd));
    slow.AwaitBegin();
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = OpenAdapter(&async);
    Calls calls;
    calls.evd = async;
    DAT_CNO_HANDLE cno;
    Must(dat_cno_create(ia, calls.agent(), &cno));
    DAT_EVD_HANDLE evd;
    Must(dat_evd_create(ia, 1, cno, kSoftware, &evd));
    Must(Post(evd));
    Must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
    EXPECT_EQ(calls.count, 0);
    slow.freeing = true;
    calls.Await(1);
    EXPECT_EQ(calls.evd, DAT_HANDLE_NULL);
  });
}

TEST(IaClose, S_AnAgentAtWorkHasReturned) {
  RunAlone([] {
    SlowAgent slow;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = OpenAdapter(&async);
    DAT_CNO_HANDLE cno;
    Must(dat_cno_create(ia, slow.agent(), &cno));
    DAT_EVD_HANDLE evd;
    Must(dat_evd_create(ia, 1, cno, kSoftware, &evd));
    Must(Post(evd));
    slow.AwaitBegin();
    slow.freeing = true;
    Must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
    EXPECT_TRUE(slow.ended);
  });
}

// What it has seen, and left, is told to the notifier.
TEST(EvdWait, S_ACancelledWaitForSeveralLeavesItsNews) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kLosesTheCancelled;
  RunAlone([] {
    NotifiedSide side;
    Sleeper waiter([&] {
      DAT_EVENT event;
      DAT_COUNT more;
      dat_evd_wait(side.evd, DAT_TIMEOUT_INFINITE, 3, &event, &more);
    });
    waiter.AwaitAsleep();
    Must(Post(side.evd));
    Must(Post(side.evd));
    waiter.AwaitAsleep();
    waiter.Cancel();
    waiter.Join();
    EXPECT_EQ(Told(side.cno), side.evd);
  });
}

TEST(Cno, C030_HandleTypeAndContext) {
  RunAlone([] {
    Side side;
    DAT_CNO_HANDLE cno = NewCno(side);
    DAT_HANDLE_TYPE type;
    Must(dat_get_handle_type(cno, &type));
    EXPECT_EQ(type, DAT_HANDLE_TYPE_CNO);
    DAT_CONTEXT context;
    Must(dat_get_consumer_context(cno, &context));
    EXPECT_EQ(context.as_64, 0u);
    context.as_64 = 77;
    Must(dat_set_consumer_context(cno, context));
    context.as_64 = 0;
    Must(dat_get_consumer_context(cno, &context));
    EXPECT_EQ(context.as_64, 77u);
  });
}

#if VIADUCT_TEST_DAT == 20

bool IsReadable(DAT_FD fd, int milliseconds = 0) {
  pollfd poll_fd = {fd, POLLIN, 0};
  return poll(&poll_fd, 1, milliseconds) == 1;
}

// uDAPL 2.0 dat_cno_fd_create, dat_cno_trigger: they are in its header, and OFED exports neither.
TEST(CnoFd, S_ReadableFromTriggerToTrigger) {
  RunAlone([] {
    Side side;
    DAT_FD fd = -1;
    DAT_CNO_HANDLE cno;
    Must(dat_cno_fd_create(side.ia, &fd, &cno));
    DAT_CNO_PARAM param;
    Must(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
    EXPECT_EQ(param.proxy_type, DAT_PROXY_TYPE_FD);
    EXPECT_EQ(param.proxy.fd, fd);
    DAT_EVD_HANDLE evd = NewEvd(side, cno), told = evd;
    EXPECT_FALSE(IsReadable(fd));
    EXPECT_TRUE(Fails(dat_cno_trigger(cno, &told), DAT_QUEUE_EMPTY));
    EXPECT_EQ(told, DAT_HANDLE_NULL);
    for (int i = 0; i < 3; ++i) Must(Post(evd));
    EXPECT_TRUE(IsReadable(fd));
    EXPECT_TRUE(IsReadable(fd)) << "looking takes nothing";
    Must(dat_cno_trigger(cno, &told));
    EXPECT_EQ(told, evd);
    EXPECT_FALSE(IsReadable(fd));
    Must(Post(evd));
    EXPECT_EQ(Told(cno), evd);  // a wait takes the trigger as well
    EXPECT_FALSE(IsReadable(fd));
    EXPECT_TRUE(Fails(dat_cno_modify_agent(cno, kNoAgent), DAT_INVALID_STATE));
    EXPECT_TRUE(Fails(dat_cno_trigger(cno, nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    Must(dat_evd_free(evd));
    Must(dat_cno_free(cno));
    EXPECT_EQ(fcntl(fd, F_GETFD), -1) << "closed";
    DAT_CNO_HANDLE out;
    for (DAT_HANDLE bad : {DAT_HANDLE_NULL, cno, DAT_HANDLE(side.pz), DAT_HANDLE(&side)}) {  // C029
      EXPECT_TRUE(Fails(dat_cno_trigger(bad, &told), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO));
      EXPECT_TRUE(
          Fails(dat_cno_fd_create(bad, &fd, &out), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA));
    }
  });
}

TEST(CnoFd, S_MessagesMakeItReadable) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_FD fd = -1;
        DAT_CNO_HANDLE cno;
        Must(dat_cno_fd_create(side.ia, &fd, &cno));
        Must(dat_evd_modify_cno(side.receive_evd, cno));
        DAT_EP_HANDLE ep = side.NewEp();
        for (uint64_t i = 0; i < 20; ++i) side.PostReceive(ep, i);
        side.AcceptFrom(peer, ep, Port(0));
        for (uint64_t taken = 0; taken < 20;) {
          peer.Send(taken);
          ASSERT_TRUE(IsReadable(fd, static_cast<int>(kPatience / kMillisecond)));
          DAT_EVD_HANDLE told;
          Must(dat_cno_trigger(cno, &told));
          EXPECT_EQ(told, side.receive_evd);
          DAT_EVENT event;
          while (dat_evd_dequeue(side.receive_evd, &event) == DAT_SUCCESS) ++taken;
        }
        peer.Send(uint64_t{1000});
        peer.Await("done");
      },
      [](Peer& peer) { SendWhenTold(peer, 20, /*pairs=*/false); });
}

#endif

}  // namespace
}  // namespace viaduct::tests
