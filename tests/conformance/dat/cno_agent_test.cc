// The agents of notifiers: dat_cno_create, dat_cno_modify_agent; DAT checklist 65, and 23.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <future>

#include "tests/conformance/dat/notified_side.h"

namespace viaduct::tests {
namespace {

// How long a slow agent stays in its call while the test frees something: much shorter than the
// library waits for it.
constexpr useconds_t kAWhile = 20'000;

// An agent that stays in its call until `freeing` is set, just before the test frees something,
// and for a while longer.
struct SlowAgent {
  std::atomic<bool> began{false}, freeing{false}, ended{false};
  static void Agent(DAT_PVOID instance, DAT_EVD_HANDLE) {
    auto* slow = static_cast<SlowAgent*>(instance);
    slow->began = true;
    while (!slow->freeing) sched_yield();
    usleep(kAWhile);
    slow->ended = true;
  }
  DAT_OS_WAIT_PROXY_AGENT agent() { return {this, &Agent}; }
  void AwaitBegin() {
    while (!began) sched_yield();
  }
};

// Agents are called one after the other, so the call that is made here comes after any that should
// not have been made.
void AwaitEarlierCalls(const Side& side) {
  Calls last;
  Must(Post(NewEvd(side, NewCno(side, last.agent()))));
  last.Await(1);
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
    EXPECT_EQ(Told(side.cno), side.evd);  // waiters are told as well as the agent
    Must(dat_cno_modify_agent(side.cno, calls.agent()));
    Must(Post(other));
    calls.Await(2);
    EXPECT_EQ(calls.evd, other);
    Must(dat_cno_modify_agent(side.cno, calls.agent()));
    Must(dat_cno_modify_agent(side.cno, kNoAgent));
    Must(Post(side.evd));
    AwaitEarlierCalls(side);
    EXPECT_EQ(calls.count, 2);
  });
}

// The agent is told, as a waiter is.
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

// After dat_cno_free the program may free what the agent uses.
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
        while (dat_cno_modify_agent(self->cno, {self, &Agent}) == DAT_SUCCESS) sched_yield();
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
    AwaitEarlierCalls(side);
    EXPECT_EQ(first.calls, 1);
  });
}

TEST(IaClose, C023_AbruptReleasesWaitersAndAgents) {
  RunAlone([] {
    Calls calls;
    NotifiedAdapter adapter(calls.agent());
    calls.evd = adapter.async;
    CnoWaiter waiter(adapter.cno);
    Must(dat_ia_close(adapter.ia, DAT_CLOSE_ABRUPT_FLAG));
    Must(waiter.Join());
    EXPECT_EQ(waiter.evd(), DAT_HANDLE_NULL);
    calls.Await(1);
    EXPECT_EQ(calls.evd, DAT_HANDLE_NULL);
  });
}

// An agent whose call is due but has not begun is told of the end instead of what triggered it.
TEST(IaClose, S_AnAgentThatWaitsForItsTurnIsTold) {
  RunAlone([] {
    SlowAgent slow;
    NotifiedSide side(slow.agent());
    Must(Post(side.evd));
    slow.AwaitBegin();
    Calls calls;
    NotifiedAdapter adapter(calls.agent());
    calls.evd = adapter.async;
    adapter.Trigger();
    Must(dat_ia_close(adapter.ia, DAT_CLOSE_ABRUPT_FLAG));
    EXPECT_EQ(calls.count, 0);
    slow.freeing = true;
    calls.Await(1);
    EXPECT_EQ(calls.evd, DAT_HANDLE_NULL);
  });
}

TEST(IaClose, S_AnAgentAtWorkHasReturned) {
  RunAlone([] {
    SlowAgent slow;
    NotifiedAdapter adapter(slow.agent());
    adapter.Trigger();
    slow.AwaitBegin();
    slow.freeing = true;
    Must(dat_ia_close(adapter.ia, DAT_CLOSE_ABRUPT_FLAG));
    EXPECT_TRUE(slow.ended);
  });
}

// An agent that waits at other notifiers of its adapter, which have no dispatchers.
struct WaitingAgent {
  static constexpr int kNotifiers = 8;
  DAT_CNO_HANDLE cnos[kNotifiers];
  std::atomic<bool> began{false}, ended{false};
  static void Agent(DAT_PVOID instance, DAT_EVD_HANDLE) {
    auto* waiting = static_cast<WaitingAgent*>(instance);
    waiting->began = true;
    for (DAT_CNO_HANDLE cno : waiting->cnos) {
      DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
      dat_cno_wait(cno, DAT_TIMEOUT_INFINITE, &evd);
    }
    usleep(kAWhile);
    waiting->ended = true;
  }
};

// The close releases every waiter before it waits for an agent.
TEST(IaClose, S_AnAgentThatWaitsAtOtherNotifiersHasReturned) {
  RunAlone([] {
    WaitingAgent waiting;
    NotifiedAdapter adapter({&waiting, &WaitingAgent::Agent});
    for (DAT_CNO_HANDLE& cno : waiting.cnos) Must(dat_cno_create(adapter.ia, kNoAgent, &cno));
    adapter.Trigger();
    while (!waiting.began) sched_yield();
    Must(dat_ia_close(adapter.ia, DAT_CLOSE_ABRUPT_FLAG));
    EXPECT_TRUE(waiting.ended);
  });
}

}  // namespace
}  // namespace viaduct::tests
