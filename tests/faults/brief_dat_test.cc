// Connections that end as soon as they exist, on a machine that is busy with other things: the
// passive side gets both events, in order, whatever the active side's process does next.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/harness.h"

namespace viaduct::tests {
namespace {

int Rounds(int few, int many) { return getenv("VIADUCT_LONG") != nullptr ? many : few; }

// Processes that only take processor time from all others; they end with this object.
class BusyMachine {
 public:
  BusyMachine() {
    const long count = 4 * sysconf(_SC_NPROCESSORS_ONLN);
    for (long i = 0; i < count; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const volatile bool forever = true;
        while (forever) {
        }
      }
      if (pid > 0) pids_.push_back(pid);
    }
  }
  ~BusyMachine() {
    for (const pid_t pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  BusyMachine(const BusyMachine&) = delete;
  BusyMachine& operator=(const BusyMachine&) = delete;

 private:
  std::vector<pid_t> pids_;
};

// What the passive side sees of one connection.
void ServeOne(Side& side, DAT_EP_HANDLE ep) {
  Must(side.TryAccept(NextRequest(side.cr_evd).cr_handle, ep));
  NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
  NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
  EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
}

DAT_CLOSE_FLAGS Manner(int round) {
  return round % 2 == 0 ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG;
}

TEST(BriefConnection, ManyOfOneProcess) {
  const int rounds = Rounds(60, 3000);
  BusyMachine load;
  RunPair(
      [rounds](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        peer.Tell("listening");
        for (int round = 0; round < rounds; ++round) {
          SCOPED_TRACE(round);
          const DAT_EP_HANDLE ep = side.NewEp();
          ServeOne(side, ep);
          Must(dat_ep_free(ep));
        }
      },
      [rounds](Peer& peer) {
        Side side;
        peer.Await("listening");
        for (int round = 0; round < rounds; ++round) {
          SCOPED_TRACE(round);
          const DAT_EP_HANDLE ep = side.NewEp();
          side.Connect(ep, Port(0));
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
          Must(dat_ep_disconnect(ep, Manner(round)));
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
          Must(dat_ep_free(ep));
        }
      },
      {.seconds = 600});
}

// exit() follows the disconnect at once: nobody waits for its event.
TEST(BriefConnection, OfProcessesThatExit) {
  const int rounds = Rounds(12, 300);
  BusyMachine load;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    RunPair(
        [](Peer& peer) {
          Side side;
          side.Listen(Port(0));
          const DAT_EP_HANDLE ep = side.NewEp();
          side.PostReceive(ep, 1);
          side.PostReceive(ep, 2);
          peer.Tell("listening");
          ServeOne(side, ep);
          EXPECT_EQ(NextCompletion(side.receive_evd).status, DAT_DTO_SUCCESS);
          side.ExpectFlushedReceives(ep, 2, 2);
        },
        [round](Peer& peer) {
          auto* side = new Side;
          const DAT_EP_HANDLE ep = side->NewEp();
          peer.Await("listening");
          side->Connect(ep, Port(0));
          NextConnection(side->connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
          Must(side->TrySend(ep, 1));
          EXPECT_EQ(NextCompletion(side->request_evd).status, DAT_DTO_SUCCESS);
          Must(dat_ep_disconnect(ep, Manner(round)));
          exit(::testing::Test::HasFailure() ? 1 : 0);
        },
        {.seconds = 120});
  }
}

}  // namespace
}  // namespace viaduct::tests
