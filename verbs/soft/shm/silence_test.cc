// A requester that does not run is given up.
#include <memory>

#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/soft/rendezvous.h"
#include "verbs/soft/shm/arena.h"
#include "verbs/soft/shm/message.h"
#include "verbs/soft/shm/testing_node.h"

namespace viaduct::verbs::shm {
namespace {

// The requester never says Established, and marks its connection when the pair has already gone.
TEST(SilenceTest, AMarkOfARequesterThatIsGivenUpFindsNoPair) {
  ChildProcess requester([](ChildProcess& parent) {
    const auto port = parent.GetValue<uint16_t>();
    pid_t pid;
    const auto socket = DialTo("viaduct", port, &pid);
    const std::shared_ptr<Arena> arena = Arena::Create();
    if (!socket.ok() || arena == nullptr || !arena->PayConnection(0)) return 1;
    const int fds[] = {arena->fd()};
    const HelloBody hello = {1, 0, 0};
    RequestBody request = {};
    request.from = request.to = ToWire(*Address::Parse("127.0.0.1"));
    request.port = port;
    for (const SocketResult sent :
         {SendMessage(socket->get(), BuildMessage(MessageType::kHello, 0, hello), fds),
          SendMessage(socket->get(), BuildMessage(MessageType::kRequest, 0, request), {})}) {
      if (sent != SocketResult::kDone) return 2;
    }
    parent.GetValue<int>();
    DirectionBlock& theirs = arena->direction(1);
    theirs.leaf[0].fetch_or(1);
    theirs.summary.fetch_or(1);
    parent.PutValue(0);
    return parent.GetValue<int>();
  });
  auto context = OpenForTest("127.0.0.1", /*silence=*/200'000'000);
  TestEnd end(*context);
  TestListener listener(*context, [&]() -> QueuePair& { return end.pair(); });
  end.on_failed = [&] {
    end.DestroyPair();
    requester.PutValue(0);
    requester.GetValue<int>();
    Completion completion;
    EXPECT_EQ(end.receives().Poll(&completion, 1), 0);
  };
  requester.PutValue(listener.port());
  end.Await(end.failed);
  EXPECT_EQ(end.outcome, ConnectOutcome::kGone);
  requester.PutValue(0);
  EXPECT_EQ(requester.Wait(), 0);
}

}  // namespace
}  // namespace viaduct::verbs::shm
