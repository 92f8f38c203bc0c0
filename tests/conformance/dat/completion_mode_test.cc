// Which completions wake somebody, and dispatchers that hold more than their length: dat_ep_create,
// dat_evd_wait, dat_ep_post_*; DAT checklist 51, 59, 120, 121, and 55 with connections alive.
#include <sched.h>
#include <time.h>

#include <atomic>
#include <functional>
#include <thread>

#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/sleeper.h"

namespace viaduct::tests {
namespace {

constexpr auto kUnsignalled = DAT_COMPLETION_UNSIGNALLED_FLAG;
constexpr auto kSolicited = DAT_COMPLETION_SOLICITED_WAIT_FLAG;

DAT_EP_ATTR Modes(int receive, int request) {
  DAT_EP_ATTR attributes = {};
  attributes.recv_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(receive);
  attributes.request_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(request);
  return attributes;
}

// dat_evd_wait in a thread; the constructor returns once that thread sleeps in it.
class Waiter {
 public:
  Waiter(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout)
      : thread_([=, this] { result_ = dat_evd_wait(evd, timeout, 1, &event_, &more_); }) {
    thread_.AwaitAsleep();
  }
  DAT_RETURN Join() {
    thread_.Join();
    return result_;
  }
  DAT_COUNT more() const { return more_; }
  uint64_t cookie() const { return event_.event_data.dto_completion_event_data.user_cookie.as_64; }

 private:
  DAT_EVENT event_ = {};
  DAT_COUNT more_ = 0;
  DAT_RETURN result_ = DAT_SUCCESS;
  Sleeper thread_;
};

// The time-out of a wait that nothing ends: long enough for what is to happen meanwhile.
DAT_TIMEOUT LongEnough() { return 5 * kSecond * static_cast<DAT_TIMEOUT>(Slowness()); }

DAT_EVD_STATE EvdState(DAT_EVD_HANDLE evd) {
  DAT_EVD_PARAM param;
  Must(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
  return param.evd_state;
}

DAT_ASYNCH_ERROR_EVENT_DATA NextAsync(const Side& side, DAT_EVENT_NUMBER number) {
  return Next(side.async_evd, number).event_data.asynch_error_event_data;
}

TEST(EvdWait, C051_NoThresholdsOverQuietStreams) {
  RunAlone([] {
    Side side;
    constexpr int kBoth = DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE;
    DAT_EVENT event;
    DAT_COUNT more;
    const DAT_EP_ATTR attributes = Modes(kSolicited, kUnsignalled);
    DAT_EP_HANDLE ep = side.NewEp(&attributes);
    EXPECT_TRUE(Fails(dat_evd_wait(side.receive_evd, 0, 2, &event, &more), DAT_INVALID_STATE,
                      DAT_INVALID_STATE_EVD_CONFIG_SOLICITED));
    EXPECT_TRUE(Fails(dat_evd_wait(side.request_evd, 0, 2, &event, &more), DAT_INVALID_STATE,
                      DAT_INVALID_STATE_EVD_CONFIG_NOTIFY));
    EXPECT_TRUE(Fails(dat_evd_wait(side.request_evd, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED));
    EXPECT_EQ(static_cast<int>(EvdState(side.receive_evd)), kBoth | DAT_EVD_STATE_CONFIG_SOLICITED);
    EXPECT_EQ(static_cast<int>(EvdState(side.request_evd)), kBoth | DAT_EVD_STATE_CONFIG_NOTIFY);
    // The mode belongs to the endpoint, and ends with it.
    DAT_EP_PARAM param = {};
    param.ep_attr.request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
    Must(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, &param));
    EXPECT_EQ(static_cast<int>(EvdState(side.request_evd)), kBoth | DAT_EVD_STATE_CONFIG_THRESHOLD);
    EXPECT_TRUE(Fails(dat_evd_wait(side.request_evd, 0, 2, &event, &more), DAT_TIMEOUT_EXPIRED));
    Must(dat_ep_free(ep));
    EXPECT_EQ(static_cast<int>(EvdState(side.receive_evd)), kBoth);
    EXPECT_TRUE(Fails(dat_evd_wait(side.receive_evd, 0, 2, &event, &more), DAT_TIMEOUT_EXPIRED));
  });
}

TEST(Dto, C120_UnsignalledWakesNobody) {
  const DAT_EP_ATTR attributes = Modes(kUnsignalled, kUnsignalled);
  RunPair(
      [&](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp(&attributes);
        Memory memory(side, 8);
        DAT_LMR_TRIPLET piece = memory.Local(0, 8);
        for (uint64_t i = 0; i < 2; ++i) {
          Must(dat_ep_post_recv(ep, 1, &piece, Cookie(i), kUnsignalled));
        }
        side.PostReceive(ep, 2);
        side.AcceptFrom(peer, ep, Port(0));
        Waiter waiter(side.receive_evd, kPatience);
        peer.Tell("waiting");
        // The third completion wakes the waiter, which gets the first, because they come in order.
        Must(waiter.Join());
        EXPECT_EQ(waiter.cookie(), 0u);
        EXPECT_EQ(waiter.more(), 2);
        peer.Tell("done");
      },
      [&](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp(&attributes);
        side.ConnectTo(peer, ep, Port(0));
        peer.Await("waiting");
        Waiter waiter(side.request_evd, LongEnough());
        for (uint64_t i = 0; i < 3; ++i) Must(side.TrySend(ep, i, kUnsignalled));
        EXPECT_TRUE(Fails(waiter.Join(), DAT_TIMEOUT_EXPIRED));
        EXPECT_EQ(waiter.more(), 3);
        // They are there for whoever polls.
        EXPECT_EQ(NextCompletion(side.request_evd, 0).user_cookie.as_64, 0u);
        DAT_EVENT event;
        for (int i = 0; i < 2; ++i) Must(dat_evd_dequeue(side.request_evd, &event));
        peer.Await("done");
      });
}

TEST(Dto, C120_UnsignalledDoesNotTriggerTheNotifier) {
  const DAT_EP_ATTR attributes = Modes(0, kUnsignalled);
  RunPair(
      [&](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        for (uint64_t i = 0; i < 4; ++i) side.PostReceive(ep, i);
        side.AcceptFrom(peer, ep, Port(0));
        peer.Await("done");
      },
      [&](Peer& peer) {
        Side side;
        DAT_CNO_HANDLE cno;
        Must(dat_cno_create(side.ia, {nullptr, nullptr}, &cno));
        Must(dat_evd_modify_cno(side.request_evd, cno));
        DAT_EP_HANDLE ep = side.NewEp(&attributes);
        side.ConnectTo(peer, ep, Port(0));
        DAT_EVD_HANDLE evd;
        for (uint64_t i = 0; i < 3; ++i) Must(side.TrySend(ep, i, kUnsignalled));
        EXPECT_TRUE(Fails(dat_cno_wait(cno, 50 * kMillisecond, &evd), DAT_QUEUE_EMPTY));
        Must(side.TrySend(ep, 3));
        Must(dat_cno_wait(cno, kPatience, &evd));
        EXPECT_EQ(evd, side.request_evd);
        for (uint64_t i = 0; i < 4; ++i) {
          EXPECT_EQ(NextCompletion(side.request_evd, 0).user_cookie.as_64, i);
        }
        // A failure always notifies.
        Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
        Must(side.TrySend(ep, 4, kUnsignalled));
        Must(dat_cno_wait(cno, kPatience, &evd));
        peer.Tell("done");
      });
}

TEST(Dto, C121_OnlySolicitedMessagesWake) {
  const DAT_EP_ATTR attributes = Modes(kSolicited, 0);
  RunPair(
      [&](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp(&attributes);
        for (uint64_t i = 0; i < 6; ++i) side.PostReceive(ep, i);
        side.AcceptFrom(peer, ep, Port(0));
        {
          Waiter waiter(side.receive_evd, LongEnough());
          peer.Tell("send two");
          EXPECT_TRUE(Fails(waiter.Join(), DAT_TIMEOUT_EXPIRED));
          EXPECT_EQ(waiter.more(), 2) << "they came while it waited";
        }
        peer.Await("sent");
        for (uint64_t i = 0; i < 2; ++i) {
          EXPECT_EQ(NextCompletion(side.receive_evd).user_cookie.as_64, i);
        }
        Waiter waiter(side.receive_evd, kPatience);
        peer.Tell("send three, the last solicited");
        Must(waiter.Join());
        EXPECT_EQ(waiter.cookie(), 2u);
        EXPECT_EQ(waiter.more(), 2);
        peer.Tell("done");
      },
      [&](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        peer.Await("send two");
        for (uint64_t i = 0; i < 2; ++i) Must(side.TrySend(ep, i));
        for (uint64_t i = 0; i < 2; ++i) NextCompletion(side.request_evd);
        peer.Tell("sent");
        peer.Await("send three, the last solicited");
        for (uint64_t i = 0; i < 2; ++i) Must(side.TrySend(ep, i));
        Must(side.TrySend(ep, 2, kSolicited));
        peer.Await("done");
      });
}

// An endpoint made for solicited messages wakes for all of them once its mode is the default one.
TEST(EpModify, S_TheModeOfReceivesMayChange) {
  RunPair(
      [](Peer& peer) {
        Side side;
        const DAT_EP_ATTR attributes = Modes(kSolicited, 0);
        DAT_EP_HANDLE ep = side.NewEp(&attributes);
        DAT_EP_PARAM param = {};
        param.ep_attr.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
        Must(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &param));
        side.PostReceive(ep, 7);
        side.AcceptFrom(peer, ep, Port(0));
        Waiter waiter(side.receive_evd, kPatience);
        peer.Tell("waiting");
        Must(waiter.Join());
        EXPECT_EQ(waiter.cookie(), 7u);
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        peer.Await("waiting");
        Must(side.TrySend(ep, 1));
        peer.Await("done");
      });
}

// The dispatcher is resized while completions arrive: none is lost, none comes twice.
TEST(EvdResize, C055_WithEndpointsAlive) {
  static constexpr uint64_t kMessages = 2000;
  static constexpr uint64_t kWindow = 100;
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        for (uint64_t i = 0; i < kWindow; ++i) side.PostReceive(ep, i);
        side.AcceptFrom(peer, ep, Port(0));
        std::atomic<bool> stop{false};
        std::thread resizer([&] {
          for (DAT_COUNT length = 1; !stop; length = length % 300 + 7) {
            const DAT_RETURN value = dat_evd_resize(side.receive_evd, length);
            EXPECT_TRUE(value == DAT_SUCCESS || Fails(value, DAT_INVALID_STATE));
            sched_yield();
          }
        });
        for (uint64_t i = 0; i < kMessages; ++i) {
          ASSERT_EQ(NextCompletion(side.receive_evd).user_cookie.as_64, i);
          if (i + kWindow < kMessages) side.PostReceive(ep, i + kWindow);
        }
        stop = true;
        resizer.join();
        EXPECT_TRUE(IsEmpty(side.receive_evd));
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        for (uint64_t i = 0; i < kMessages; ++i) {
          Must(side.TrySend(ep, i));
          EXPECT_EQ(NextCompletion(side.request_evd).user_cookie.as_64, i);
        }
        peer.Await("done");
      });
}

// After the resize the reported completions fit, so the next one is another overflow.
TEST(EvdResize, S_AnOverflowBehindItIsToldToo) {
  RunAlone([] {
    Side side;
    side.request_evd = side.NewEvd(DAT_EVD_DTO_FLAG, 4);
    DAT_EP_HANDLE ep = side.NewEp();
    side.Connect(ep, Port(0));
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep);
    DAT_EVENT event;
    DAT_COUNT more = 0;
    for (uint64_t i = 0; i < 10; ++i) Must(side.TrySend(ep, i));  // flushed at once
    Must(dat_evd_wait(side.request_evd, kPatience, 1, &event, &more));
    NextAsync(side, DAT_ASYNC_ERROR_EVD_OVERFLOW);
    Must(dat_evd_resize(side.request_evd, more));
    Must(side.TrySend(ep, 10));
    Must(dat_evd_wait(side.request_evd, kPatience, 1, &event, &more));
    EXPECT_EQ(NextAsync(side, DAT_ASYNC_ERROR_EVD_OVERFLOW).dat_handle, side.request_evd);
    EXPECT_TRUE(IsEmpty(side.async_evd)) << "once";
  });
}

TEST(EvdCreate, S_LongOnesHoldTheirLength) {
  RunAlone([] {
    Side side;
    constexpr DAT_COUNT kLength = 65536;
    DAT_EVD_HANDLE evd = side.NewEvd(DAT_EVD_SOFTWARE_FLAG, kLength);
    DAT_EVENT event = {};
    event.event_number = DAT_SOFTWARE_EVENT;
    for (uintptr_t i = 0; i < kLength; ++i) {
      event.event_data.software_event_data.pointer = reinterpret_cast<DAT_PVOID>(i);
      Must(dat_evd_post_se(evd, &event));
    }
    DAT_COUNT more = 0;
    for (uintptr_t i = 0; i < kLength; ++i) {
      Must(dat_evd_wait(evd, 0, 1, &event, &more));
      ASSERT_EQ(reinterpret_cast<uintptr_t>(event.event_data.software_event_data.pointer), i);
      ASSERT_EQ(more, kLength - 1 - static_cast<DAT_COUNT>(i));
    }
  });
}

// Twenty messages for a dispatcher that was made for four; `take` is called when all are there.
void Overflow(const std::function<void(Side&)>& take, bool has_watermark = false) {
  RunPair(
      [&](Peer& peer) {
        Side side;
        side.receive_evd = side.NewEvd(DAT_EVD_DTO_FLAG, 4);
        DAT_EP_HANDLE ep = side.NewEp();
        if (has_watermark) Must(dat_ep_set_watermark(ep, 1000, DAT_WATERMARK_INFINITE));
        for (uint64_t i = 0; i < 20; ++i) side.PostReceive(ep, i);
        side.AcceptFrom(peer, ep, Port(0));
        peer.Await("sent");
        take(side);
        const auto error = NextAsync(side, DAT_ASYNC_ERROR_EVD_OVERFLOW);
        EXPECT_EQ(error.dat_handle, side.receive_evd);
        EXPECT_EQ(error.reason, static_cast<DAT_COUNT>(DAT_EVD_OVERFLOW_ERROR));
        for (uint64_t i = 1; i < 20; ++i) {
          DAT_EVENT event;
          Must(dat_evd_dequeue(side.receive_evd, &event));
          EXPECT_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, i);
        }
        EXPECT_TRUE(IsEmpty(side.receive_evd));
        EXPECT_TRUE(IsEmpty(side.async_evd)) << "once";
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        DAT_RMR_TRIPLET nothing = RemoteTriplet(0, 0, 0);
        for (uint64_t i = 0; i < 20; ++i) Must(side.TrySend(ep, i));
        // A read comes back when all before it has arrived.
        Must(dat_ep_post_rdma_read(ep, 0, nullptr, Cookie(99), &nothing,
                                   DAT_COMPLETION_DEFAULT_FLAG));
        while (NextCompletion(side.request_evd).user_cookie.as_64 != 99) {
        }
        peer.Tell("sent");
        peer.Await("done");
      });
}

// More completions than the dispatcher was made for: it reports this once, and keeps them all.
TEST(EvdCreate, C059_OverflowIsToldAndLosesNothing) {
  Overflow([](Side& side) {
    DAT_EVENT event;
    DAT_COUNT more = 0;
    Must(dat_evd_wait(side.receive_evd, kPatience, 1, &event, &more));
    EXPECT_EQ(more, 19);
  });
}

TEST(EvdCreate, C059_OverflowIsToldToWhoOnlyDequeues) {
  Overflow([](Side& side) {
    DAT_EVENT event;
    Must(dat_evd_dequeue(side.receive_evd, &event));
  });
}

// With watermarks a dispatcher takes all completions at once, but they fit no better.
TEST(EvdCreate, C059_OverflowIsToldInSpiteOfWatermarks) {
  Overflow(
      [](Side& side) {
        DAT_EVENT event;
        Must(dat_evd_dequeue(side.receive_evd, &event));
      },
      /*has_watermark=*/true);
}

// The quiet requests do not end the wait of a thread, which may have no other end.
TEST(EvdCreate, C059_OverflowIsToldDuringAWait) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        for (uint64_t i = 0; i < 21; ++i) side.PostReceive(ep, i);
        side.AcceptFrom(peer, ep, Port(0));
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        side.request_evd = side.NewEvd(DAT_EVD_DTO_FLAG, 4);
        const DAT_EP_ATTR attributes = Modes(0, kUnsignalled);
        DAT_EP_HANDLE ep = side.NewEp(&attributes);
        side.ConnectTo(peer, ep, Port(0));
        Waiter waiter(side.request_evd, DAT_TIMEOUT_INFINITE);
        for (uint64_t i = 0; i < 20; ++i) Must(side.TrySend(ep, i, kUnsignalled));
        EXPECT_EQ(NextAsync(side, DAT_ASYNC_ERROR_EVD_OVERFLOW).dat_handle, side.request_evd);
        Must(side.TrySend(ep, 20));
        Must(waiter.Join());
        EXPECT_EQ(waiter.cookie(), 0u);
        EXPECT_EQ(waiter.more(), 20);
        EXPECT_TRUE(IsEmpty(side.async_evd)) << "once";
        peer.Tell("done");
      });
}

// In between everything has fitted, although the dispatcher was never seen empty.
TEST(EvdCreate, C059_ASecondOverflowIsToldToo) {
  RunAlone([] {
    Side side;
    side.request_evd = side.NewEvd(DAT_EVD_DTO_FLAG, 4);
    DAT_EP_HANDLE ep = side.NewEp();
    side.Connect(ep, Port(0));
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep);
    DAT_EVENT event;
    DAT_COUNT more = 0;
    for (int round = 0; round < 3; ++round) {
      for (uint64_t i = 0; i < 10; ++i) Must(side.TrySend(ep, i));  // flushed at once
      Must(dat_evd_wait(side.request_evd, kPatience, 1, &event, &more));
      NextAsync(side, DAT_ASYNC_ERROR_EVD_OVERFLOW);
      for (; more > 1; --more) Must(dat_evd_dequeue(side.request_evd, &event));
      EXPECT_TRUE(IsEmpty(side.async_evd)) << "once, in round " << round;
    }
  });
}

// Completions that do not fit stay in the device, and must not keep a notifier's waiter awake.
TEST(CnoWait, S_FullDispatcherLetsItsWaiterSleep) {
  Overflow([](Side& side) {
    DAT_CNO_HANDLE cno;
    Must(dat_cno_create(side.ia, {nullptr, nullptr}, &cno));
    Must(dat_evd_modify_cno(side.receive_evd, cno));
    DAT_EVD_HANDLE evd;
    Must(dat_cno_wait(cno, kPatience, &evd));
    EXPECT_EQ(evd, side.receive_evd);
    timespec before, after;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    EXPECT_TRUE(Fails(dat_cno_wait(cno, kSecond / 2, &evd), DAT_QUEUE_EMPTY));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    const auto used =
        (after.tv_sec - before.tv_sec) * 1'000'000'000 + after.tv_nsec - before.tv_nsec;
    EXPECT_LT(used, 100'000'000) << "nanoseconds, of half a second";
    DAT_EVENT event;
    Must(dat_evd_dequeue(side.receive_evd, &event));
    Must(dat_evd_modify_cno(side.receive_evd, DAT_HANDLE_NULL));
    Must(dat_cno_free(cno));
  });
}

// The break of a connection that has no dispatcher for its events is reported to the adapter's.
void BreakWithoutConnectDispatcher(bool shared_receives) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.AcceptFrom(peer, ep, Port(0));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
        EXPECT_TRUE(IsEmpty(side.async_evd)) << "who has a dispatcher is told there alone";
        peer.Await("done");
      },
      [=](Peer& peer) {
        Side side;
        Memory memory(side, 8);
        DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
        if (shared_receives) {
          DAT_SRQ_ATTR of_queue = {8, 1, DAT_SRQ_LW_DEFAULT};
          DAT_SRQ_HANDLE srq;
          Must(dat_srq_create(side.ia, side.pz, &of_queue, &srq));
          DAT_EP_ATTR attributes = {};
          Must(dat_ep_create_with_srq(side.ia, side.pz, side.receive_evd, side.request_evd,
                                      DAT_HANDLE_NULL, srq, &attributes, &ep));
        } else {
          Must(dat_ep_create(side.ia, side.pz, side.receive_evd, side.request_evd, DAT_HANDLE_NULL,
                             nullptr, &ep));
        }
        peer.Await("listening");
        side.Connect(ep, Port(0));
        peer.Await("accepted");
        while (StateOf(ep) != DAT_EP_STATE_CONNECTED) sched_yield();
        DAT_LMR_TRIPLET local = memory.Local(0, 8);
        const DAT_RMR_TRIPLET nowhere = RemoteTriplet(4096, 8, 1);
        Must(dat_ep_post_rdma_write(ep, 1, &local, Cookie(1), &nowhere,
                                    DAT_COMPLETION_DEFAULT_FLAG));
        const auto error = NextAsync(side, DAT_ASYNC_ERROR_EP_BROKEN);
        EXPECT_EQ(error.dat_handle, ep);
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
        Must(dat_ep_reset(ep));  // after this, every event of the break has come
        EXPECT_TRUE(IsEmpty(side.async_evd)) << "once";
        peer.Tell("done");
      });
}

TEST(EpCreate, S_BrokenWithoutConnectDispatcherIsAsynchronous) {
  BreakWithoutConnectDispatcher(/*shared_receives=*/false);
}
TEST(EpCreate, S_BrokenWithoutConnectDispatcherIsAsynchronousOnce) {
  BreakWithoutConnectDispatcher(/*shared_receives=*/true);
}

}  // namespace
}  // namespace viaduct::tests
