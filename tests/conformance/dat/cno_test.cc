// dat_cno_*, dat_evd_modify_cno: the pages of those names; DAT checklist 62-69, 22, 23.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <thread>

#include "tests/conformance/dat/notified_side.h"

namespace viaduct::tests {
namespace {

::testing::AssertionResult IsQuiet(DAT_CNO_HANDLE cno) {
  DAT_EVD_HANDLE evd = cno;
  const DAT_RETURN value = dat_cno_wait(cno, 0, &evd);
  if (evd != DAT_HANDLE_NULL) return ::testing::AssertionFailure() << "a dispatcher is named";
  return Fails(value, DAT_QUEUE_EMPTY);
}

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

// An event that comes while a waiter gives up is reported to the waiter or to the notifier.
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

// The client. After each poll the server says how many of the `most` messages it has taken, and
// 1000 at the end; the client then sends one message, or with `pairs` every other time two
// together.
void SendWhenTold(Peer& peer, uint64_t most, bool pairs) {
  ConnectingSide side(peer);
  uint64_t sent = 0;
  for (uint64_t round = 0; peer.Receive<uint64_t>() < 1000; ++round) {
    const uint64_t wanted = pairs ? 1 + round % 2 : 1;
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
    CnoWaiter first(side.cno), second(side.cno);
    Must(Post(side.evd));
    Must(Post(side.evd));
    Must(first.Join());
    Must(second.Join());
    EXPECT_EQ(first.evd(), side.evd);
    EXPECT_EQ(second.evd(), side.evd);
    EXPECT_TRUE(IsQuiet(side.cno));
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

// Whether queued events are still in the device or not, after a dequeue, no program can know.
TEST(EvdModifyCno, S_TheFirstOneIsToldOfWhatIsQueued) {
  RunAlone([] {
    Side side;
    DAT_CNO_HANDLE cno = NewCno(side);
    DAT_EVD_HANDLE evd = NewEvd(side, DAT_HANDLE_NULL);
    Must(dat_evd_modify_cno(evd, cno));
    EXPECT_TRUE(IsQuiet(cno));
    Must(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
    for (int i = 0; i < 3; ++i) Must(Post(evd));
    Next(evd, DAT_SOFTWARE_EVENT, 0);
    Must(dat_evd_modify_cno(evd, cno));
    EXPECT_EQ(Told(cno), evd);
    EXPECT_TRUE(IsQuiet(cno));
    // A second notifier is told only of what comes after the call.
    DAT_CNO_HANDLE next = NewCno(side);
    Must(dat_evd_modify_cno(evd, next));
    EXPECT_TRUE(IsQuiet(next));
    Must(Post(evd));
    EXPECT_EQ(Told(next), evd);
    EXPECT_TRUE(IsQuiet(cno));
  });
}

TEST(CnoFree, C067_InUse) {
  RunAlone([] {
    NotifiedSide side;
    EXPECT_TRUE(Fails(dat_cno_free(side.cno), DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE));
    Must(dat_evd_free(side.evd));
    CnoWaiter waiter(side.cno);
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
    CnoWaiter waiter(side.cno), other(side.cno);
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
    CnoWaiter waiter(cno);
    std::atomic<bool> ended{false};
    std::thread signals([&] {
      while (!ended) {
        pthread_kill(waiter.thread(), SIGUSR1);
        timespec pause = {0, 5'000'000};
        nanosleep(&pause, nullptr);
      }
    });
    // The notifier can be freed only after its waiter has ended.
    while (DAT_GET_TYPE(dat_cno_free(cno)) == DAT_INVALID_STATE) sched_yield();
    ended = true;
    signals.join();
    EXPECT_TRUE(Fails(waiter.Join(), DAT_INTERRUPTED_CALL));
    EXPECT_EQ(waiter.evd(), DAT_HANDLE_NULL);
  });
}

TEST(IaClose, C022_GracefulNeedsTheNotifierFreed) {
  RunAlone([] {
    NotifiedAdapter adapter;
    EXPECT_TRUE(Fails(dat_ia_close(adapter.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE));
    Must(dat_cno_free(adapter.cno));
    Must(dat_ia_close(adapter.ia, DAT_CLOSE_GRACEFUL_FLAG));
  });
}

// The notifier is told of what the cancelled wait has seen and left.
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

// Also of what came before the wait, and before there was a notifier.
TEST(EvdWait, S_ACancelledWaitTellsANotifierThatCameMeanwhile) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kLosesTheCancelled;
  RunAlone([] {
    NotifiedSide side;
    Must(dat_evd_modify_cno(side.evd, DAT_HANDLE_NULL));
    Must(Post(side.evd));
    Sleeper waiter([&] {
      DAT_EVENT event;
      DAT_COUNT more;
      dat_evd_wait(side.evd, DAT_TIMEOUT_INFINITE, 3, &event, &more);
    });
    waiter.AwaitAsleep();
    Must(dat_evd_modify_cno(side.evd, side.cno));
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
