// What the peer of a process that exits sees.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/soft/iwarp/testing_device.h"
#include "verbs/soft/iwarp/testing_link.h"
#include "verbs/soft/iwarp/testing_peer.h"

namespace viaduct::verbs::iwarp {
namespace {

// What the process does: it connects, and exits when `go` is closed.
void ConnectAndExit(uint16_t port, int go) {
  auto* const end = new TestEnd;
  end->Dial(port);
  if (end->sink.Next().kind != Event::Kind::kConnected) _exit(1);
  char byte;
  exit(read(go, &byte, 1) == 0 ? 0 : 1);
}

// Only the process that exits has an engine, the test process none. More has come than a link
// holds, so that a mere close would be a reset.
TEST(IwarpExitTest, IsADisconnectWhateverLiesUnread) {
  TestListener listener;
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t process = fork();
  if (process == 0) {
    close(go[1]);
    ConnectAndExit(listener.port(), go[0]);
  }
  close(go[0]);
  TestPeer peer = listener.Accept();
  EXPECT_EQ(peer.ReceiveHex(24).size(), 2u * 24);
  peer.SendHex(std::string(kReply) + "50020004 80048004");
  EXPECT_EQ(peer.ReceiveFpduHex(), kWriteRtr);
  for (uint32_t i = 1; i <= 20; ++i) peer.Send(Fpdu(SendHeader(i), std::string(2 * 50000, '5')));
  close(go[1]);
  const TestPeer::End end = peer.ReceiveEnd();
  EXPECT_EQ(end.hex, "");
  EXPECT_FALSE(end.reset);
  EXPECT_FALSE(end.timed_out);
  int status = 0;
  EXPECT_EQ(waitpid(process, &status, 0), process);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
