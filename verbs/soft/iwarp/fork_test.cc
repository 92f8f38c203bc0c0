// A process that forks and dies: its peer notices, although the child lives.
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "verbs/soft/iwarp/testing_device.h"
#include "verbs/soft/iwarp/testing_peer.h"

namespace viaduct::verbs::iwarp {
namespace {

// What the forked process does. Its own child outlives it until `hold` is closed.
void ConnectForkAndDie(uint16_t port, int hold) {
  TestEnd end;
  end.Dial(port);
  if (end.sink.Next().kind != Event::Kind::kConnected) _exit(1);
  const pid_t child = fork();
  if (child == 0) {
    // Work that is posted here goes nowhere and hurts nobody.
    end.Send(1, 0, 8);
    char byte;
    _exit(read(hold, &byte, 1) == 0 ? 0 : 1);
  }
  _exit(child > 0 ? 0 : 1);
}

// Only the parent that dies has an engine, the test process none.
TEST(IwarpForkTest, ThePeerNoticesTheParentsDeath) {
  TestListener listener;
  int hold[2];
  ASSERT_EQ(pipe(hold), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    close(hold[1]);
    ConnectForkAndDie(listener.port(), hold[0]);
  }
  close(hold[0]);
  TestPeer peer = listener.Accept();
  EXPECT_EQ(peer.ReceiveHex(24).size(), 48u);
  peer.SendHex("4d504120494420526570204672616d65 50020004 80048004");
  EXPECT_EQ(peer.ReceiveFpduHex(), "000ec140000000010000000000000000ebd34c5f");
  const TestPeer::End end = peer.ReceiveEnd();
  EXPECT_EQ(end.hex, "");
  EXPECT_FALSE(end.timed_out);
  int status = 0;
  EXPECT_EQ(waitpid(parent, &status, 0), parent);
  EXPECT_EQ(status, 0);
  close(hold[1]);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
