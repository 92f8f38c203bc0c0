// What a process has sent before it ends reaches its peer, and its end is reported as a disconnect,
// also if the peer is slow or stopped, or the end comes in the middle of a call.
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/harness.h"

namespace viaduct::tests {
namespace {

// An endpoint with room for `most` receives, on a dispatcher of its own.
DAT_EP_HANDLE RoomyEp(Side& side, int most) {
  DAT_EP_PARAM param = ParametersOf(side.NewEp());
  param.ep_attr.max_recv_dtos = most;
  side.receive_evd = side.NewEvd(DAT_EVD_DTO_FLAG, most);
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  EXPECT_EQ(dat_ep_create(side.ia, side.pz, side.receive_evd, side.request_evd, side.connect_evd,
                          &param.ep_attr, &ep),
            DAT_SUCCESS);
  return ep;
}

void PostReceiveInto(Memory& memory, DAT_EP_HANDLE ep) {
  DAT_LMR_TRIPLET all = memory.Local(0, memory.bytes.size());
  (void)dat_ep_post_recv(ep, 1, &all, Cookie(1), DAT_COMPLETION_DEFAULT_FLAG);
}

// The receiver takes one message at a time, so that most of them still wait when their sender is
// gone, in the library up to its limit (256 KiB) and then in TCP. TCP takes them all, however small
// its window is: what it does not take within half a second of the exit may be lost.
void ExitBeforeEachIsTaken(bool answers) {
  static constexpr size_t kSize = 2048;
  static constexpr int kMost = 150;
  RunPair(
      [](Peer& peer) {
        static Side* const side = new Side;
        static Memory* const memory = new Memory(*side, kSize);
        const DAT_EP_HANDLE ep = side->NewEp();
        side->AcceptFrom(peer, ep, Port(0));
        peer.Send(SendUntilFull(*side, ep, *memory, kMost));
        exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      [answers](Peer& peer) {
        Side side;
        Memory memory(side, kSize);
        const DAT_EP_HANDLE ep = side.NewEp();
        PostReceiveInto(memory, ep);
        side.ConnectTo(peer, ep, Port(0));
        const int complete = peer.Receive<int>();
        peer.AwaitEnd();
        for (int i = 0; i < complete; ++i) {
          ASSERT_EQ(NextCompletion(side.receive_evd).status, DAT_DTO_SUCCESS)
              << i << " of " << complete;
          PostReceiveInto(memory, ep);
          if (answers) (void)side.TrySend(ep, 1, DAT_COMPLETION_SUPPRESS_FLAG);
        }
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
      });
}

TEST(Ending, ExitBeforeEachIsTaken) { ExitBeforeEachIsTaken(/*answers=*/false); }
TEST(Ending, ExitBeforeEachIsAnswered) { ExitBeforeEachIsTaken(/*answers=*/true); }

// A message that has begun is not cut off, although the thread that sends never stops.
TEST(Ending, ExitWhileAnotherThreadSends) {
  static constexpr size_t kSize = 64 * 1024;
  static constexpr int kMost = 64;
  RunPair(
      [](Peer& peer) {
        static Side* const side = new Side;
        static Memory* const memory = new Memory(*side, kSize);
        static const DAT_EP_HANDLE ep = side->NewEp();
        side->AcceptFrom(peer, ep, Port(0));
        std::thread([] {
          DAT_LMR_TRIPLET all = memory->Local(0, kSize);
          DAT_EVENT event;
          for (int out = 0;;) {
            if (out < 4 && dat_ep_post_send(ep, 1, &all, Cookie(0), DAT_COMPLETION_DEFAULT_FLAG) ==
                               DAT_SUCCESS) {
              ++out;
            }
            if (dat_evd_dequeue(side->request_evd, &event) == DAT_SUCCESS) --out;
          }
        }).detach();
        peer.Await("it flows");
        exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      [](Peer& peer) {
        Side side;
        Memory memory(side, kSize);
        const DAT_EP_HANDLE ep = RoomyEp(side, kMost);
        for (int i = 0; i < kMost; ++i) PostReceiveInto(memory, ep);
        side.ConnectTo(peer, ep, Port(0));
        DAT_EVENT end;
        DAT_EVENT done;
        for (int taken = 0; dat_evd_dequeue(side.connect_evd, &end) != DAT_SUCCESS;) {
          if (dat_evd_dequeue(side.receive_evd, &done) != DAT_SUCCESS) continue;
          PostReceiveInto(memory, ep);
          if (++taken == kMost) peer.Tell("it flows");
          usleep(5000);  // slower than they come, so that TCP is full
        }
        EXPECT_EQ(end.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
      });
}

// Both sides send all the time, and a signal interrupts one of them in the middle of that.
void EndInASignalHandler(void (*handler)(int)) {
  static constexpr int kMost = 64;
  RunPair(
      [handler](Peer& peer) {
        static Side* const side = new Side;
        static const DAT_EP_HANDLE ep = side->NewEp();
        for (int i = 0; i < 4; ++i) side->PostReceive(ep, 1);
        side->AcceptFrom(peer, ep, Port(0));
        signal(SIGALRM, handler);
        const itimerval once = {{0, 0}, {0, 50'000 + getpid() % 997}};
        setitimer(ITIMER_REAL, &once, nullptr);
        DAT_EVENT event;
        for (int out = 0;;) {
          if (out < 4 && side->TrySend(ep, 1) == DAT_SUCCESS) ++out;
          if (dat_evd_dequeue(side->request_evd, &event) == DAT_SUCCESS) --out;
          if (dat_evd_dequeue(side->receive_evd, &event) == DAT_SUCCESS) side->PostReceive(ep, 1);
        }
      },
      [](Peer& peer) {
        Side side;
        const DAT_EP_HANDLE ep = RoomyEp(side, kMost);
        for (int i = 0; i < kMost; ++i) side.PostReceive(ep, 1);
        side.ConnectTo(peer, ep, Port(0));
        DAT_EVENT end;
        DAT_EVENT done;
        for (int out = 0; dat_evd_dequeue(side.connect_evd, &end) != DAT_SUCCESS;) {
          if (out < 4 && side.TrySend(ep, 1) == DAT_SUCCESS) ++out;
          if (dat_evd_dequeue(side.request_evd, &done) == DAT_SUCCESS) --out;
          if (dat_evd_dequeue(side.receive_evd, &done) == DAT_SUCCESS &&
              done.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS) {
            side.PostReceive(ep, 1);
          }
        }
        EXPECT_EQ(end.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
      });
}

TEST(Ending, ExitInASignalHandler) {
  EndInASignalHandler([](int) { exit(0); });
}

TEST(Ending, QuickExitInASignalHandler) {
  EndInASignalHandler([](int) { quick_exit(0); });
}

// Stops this process for a while.
void StandStill() {
  const pid_t self = getpid();
  if (fork() == 0) {
    usleep(1'600'000);  // longer than messages wait for receives
    kill(self, SIGCONT);
    _exit(0);
  }
  kill(self, SIGSTOP);
}

// A receiver that stood still gets as much time as any other to post receives for what waits.
TEST(Ending, TheReceiverStandsStill) {
  static constexpr int kMessages = 4;
  RunPair(
      [](Peer& peer) {
        auto* const side = new Side;
        const DAT_EP_HANDLE ep = side->NewEp();
        side->AcceptFrom(peer, ep, Port(0));
        for (int i = 0; i < kMessages; ++i) {
          Must(side->TrySend(ep, 1));
          EXPECT_EQ(NextCompletion(side->request_evd).status, DAT_DTO_SUCCESS);
        }
        exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      [](Peer& peer) {
        Side side;
        const DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        peer.AwaitEnd();
        StandStill();
        for (int i = 0; i < kMessages; ++i) side.PostReceive(ep, 1);
        for (int i = 0; i < kMessages; ++i) {
          EXPECT_EQ(NextCompletion(side.receive_evd).status, DAT_DTO_SUCCESS) << i;
        }
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
      });
}

// More disconnects than a socket between two processes holds.
TEST(Ending, ManyConnectionsOfAPeerThatStandsStill) {
  static constexpr int kMany = 600;
  RunPair(
      [](Peer& peer) {
        static Side* const side = new Side;
        std::vector<DAT_EP_HANDLE> eps;
        for (int i = 0; i < kMany; ++i) {
          eps.push_back(side->NewEp());
          side->AcceptFrom(peer, eps.back(), Port(0));
        }
        peer.Await("stands still soon");
        static StoppedPeer* const stopped = new StoppedPeer(peer);
        for (const DAT_EP_HANDLE ep : eps) Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
        const pid_t self = getpid();
        if (fork() == 0) {
          while (getppid() == self) usleep(10'000);  // an orphan: the process has ended
          stopped->Continue();
          _exit(0);
        }
        exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      [](Peer& peer) {
        Side side;
        side.connect_evd = side.NewEvd(DAT_EVD_CONNECTION_FLAG, kMany);
        for (int i = 0; i < kMany; ++i) side.ConnectTo(peer, side.NewEp(), Port(0));
        peer.Tell("stands still soon");
        for (int i = 0; i < kMany; ++i) {
          ASSERT_EQ(Next(side.connect_evd).event_number, DAT_CONNECTION_EVENT_DISCONNECTED) << i;
        }
      });
}

}  // namespace
}  // namespace viaduct::tests
