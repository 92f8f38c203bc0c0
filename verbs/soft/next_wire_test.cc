// A wire that cannot carry a connection leaves it to the next wire.
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/base/busy_control_thread.h"
#include "verbs/base/fd.h"
#include "verbs/soft/open.h"
#include "verbs/soft/rendezvous.h"
#include "verbs/soft/shm/testing_node.h"

namespace viaduct::verbs {
namespace {

bool AwaitReadable(int fd) {
  pollfd entry = {fd, POLLIN, 0};
  return poll(&entry, 1, 60'000) == 1;
}

// Somebody may begin to listen between the attempts at two wires. The first wire is better, and the
// choice is for ever.
TEST(NextWireTest, SomebodyComesBetweenTheLooks) {
  const Address address = *Address::Parse("127.0.0.1");
  auto far = OpenSoftDevice(address, "iwarp");
  auto near = OpenSoftDevice(address, "shm");
  auto dialling = OpenSoftDevice(address, "auto");
  ASSERT_TRUE(far.ok() && near.ok() && dialling.ok());
  shm::TestEnd from(**dialling), to_far(**far), to_near(**near);
  shm::TestListener at_far(**far, [&]() -> QueuePair& { return to_far.pair(); });
  BusyControlThread busy;
  shm::DialForTest(from.pair(), at_far.port());
  shm::TestListener at_near(
      **near, [&]() -> QueuePair& { return to_near.pair(); }, at_far.port());
  busy.LetGo();
  from.Await(from.connected);
  while (to_near.connected + to_far.connected == 0) sched_yield();
  EXPECT_EQ(to_near.connected, 1);
  EXPECT_EQ(to_far.connected, 0);
}

// Two listen at the same port of two addresses, and the near one is not at the address dialled.
TEST(NextWireTest, SomebodyAtAnotherAddressIsNobody) {
  auto asked = OpenSoftDevice(*Address::Parse("127.0.0.1"), "iwarp");
  auto other = OpenSoftDevice(*Address::Parse("127.0.0.2"), "shm");
  auto dialling = OpenSoftDevice(*Address::Parse("127.0.0.1"), "auto");
  ASSERT_TRUE(asked.ok() && other.ok() && dialling.ok());
  shm::TestEnd from(**dialling), to_asked(**asked), to_other(**other);
  shm::TestListener at_asked(**asked, [&]() -> QueuePair& { return to_asked.pair(); });
  shm::TestListener at_other(
      **other, [&]() -> QueuePair& { return to_other.pair(); }, at_asked.port());
  shm::DialForTest(from.pair(), at_asked.port());
  while (to_asked.connected + to_other.connected == 0) sched_yield();
  EXPECT_EQ(to_asked.connected, 1);
  from.Await(from.connected);
}

// A process hangs up on our Hello if we share too much memory with it, or if it has none left.
TEST(NextWireTest, AHelloThatIsNotWelcome) {
  const Address address = *Address::Parse("127.0.0.1");
  auto serving = OpenSoftDevice(address, "iwarp");
  auto dialling = OpenSoftDevice(address, "auto");
  ASSERT_TRUE(serving.ok() && dialling.ok());
  shm::TestEnd from(**dialling), to(**serving);
  shm::TestListener listener(**serving, [&]() -> QueuePair& { return to.pair(); });
  const absl::StatusOr<ListeningFd> full = ListenAt("viaduct", listener.port());
  ASSERT_TRUE(full.ok()) << full.status();
  shm::DialForTest(from.pair(), listener.port());
  ASSERT_TRUE(AwaitReadable(full->get()));
  Fd socket(accept(full->get(), nullptr, nullptr));
  ASSERT_TRUE(AwaitReadable(socket.get()));
  socket.Reset();
  while (from.connected + from.failed == 0) sched_yield();
  EXPECT_EQ(from.connected, 1);
  EXPECT_EQ(from.failed, 0);
}

}  // namespace
}  // namespace viaduct::verbs
