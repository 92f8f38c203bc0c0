// A process that says on the socket what it may not: it is hung up on.
#include <cstdint>

#include "gtest/gtest.h"
#include "verbs/soft/shm/testing_bare_peer.h"
#include "verbs/soft/shm/testing_node.h"

namespace viaduct::verbs::shm {
namespace {

TEST(HostilePeerTest, TwoWelcomes) {
  const auto context = OpenForTest();
  BarePeer bare(0);
  bare.Say(BuildMessage(MessageType::kWelcome, 0, kGreeting));
  bare.Say(RequestInVain(kTheirs));
  EXPECT_EQ(bare.Next(), MessageType::kNotHere) << "one is right";
  bare.Say(BuildMessage(MessageType::kWelcome, 0, kGreeting));
  EXPECT_EQ(bare.Next(), MessageType{});
}

TEST(HostilePeerTest, ARequestBeforeTheWelcome) {
  const auto context = OpenForTest();
  BarePeer bare(0);
  bare.Say(RequestInVain(kTheirs));
  EXPECT_EQ(bare.Next(), MessageType{});
}

TEST(HostilePeerTest, ACloseOfWhatIsNotAnswered) {
  const auto context = OpenForTest();
  BarePeer bare(0);
  bare.Say(BuildMessage(MessageType::kWelcome, 0, kGreeting));
  const auto link = bare.BeAsked();
  bare.Say(BuildMessage(MessageType::kClose, link->id, CloseBody{}));
  EXPECT_EQ(bare.Next(), MessageType{});
}

// It reads late, and nothing is lost.
TEST(HostilePeerTest, AnswersWaitUntilTheyAreRead) {
  const auto context = OpenForTest();
  BarePeer bare(1);
  constexpr int kRequests = 2000;
  for (int i = 0; i < kRequests; i++) ASSERT_TRUE(bare.Say(RequestInVain(0)));
  for (int i = 0; i < kRequests; i++) ASSERT_EQ(bare.Next(), MessageType::kNotHere) << i;
}

TEST(HostilePeerTest, NoEndOfAnswersWaits) {
  const auto context = OpenForTest();
  BarePeer bare(1);
  int said = 0;
  while (said < 10 * static_cast<int>(kConnections) && bare.Say(RequestInVain(0))) said++;
  EXPECT_LT(said, 10 * static_cast<int>(kConnections));
}

TEST(HostilePeerTest, TwoCloses) {
  Accepted accepted;
  TestEnd& end = accepted.end();
  BarePeer& bare = accepted.bare();
  // Both at once: behind the end of the connection it would be one of nothing.
  bare.loop().RunAndWait([&] {
    for (int i = 0; i < 2; i++) bare.Say(BuildMessage(MessageType::kClose, 0, CloseBody{}));
  });
  EXPECT_EQ(bare.Next(), MessageType{});
  end.Await(end.disconnected);
}

TEST(HostilePeerTest, AVerdictThatIsNone) {
  Accepted accepted;
  TestEnd& end = accepted.end();
  end.Send(1, 0, 8, kConfirm);
  CloseBody close = {};
  close.verdict = 12345;
  accepted.bare().Say(BuildMessage(MessageType::kClose, 0, close));
  EXPECT_EQ(end.Next(end.sends()).status, Status::kFlushed);
  end.Await(end.disconnected);
  EXPECT_EQ(end.cause, DisconnectCause::kBroken);
}

}  // namespace
}  // namespace viaduct::verbs::shm
