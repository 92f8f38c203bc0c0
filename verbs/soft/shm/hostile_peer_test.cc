// We hang up on a process that says on the socket what it may not say.
#include <fcntl.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/fd.h"
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

std::string Bare(MessageType type, uint32_t connection, size_t bytes) {
  return BuildMessage(type, connection, {}, std::vector<uint8_t>(bytes));
}

template <typename Body>
std::string With(MessageType type, uint32_t connection, const Body& body, size_t bytes) {
  return BuildMessage(type, connection, body, std::vector<uint8_t>(bytes));
}

// Whether it was hung up on for its last message, to which there was no answer.
bool IsHungUpOn(BarePeer& bare, uint32_t connection) {
  bare.Say(RequestInVain(connection));
  return bare.Next() == MessageType{};
}

TEST(HostilePeerTest, ARequestThatIsNone) {
  const auto context = OpenForTest();
  const auto breaks = [](const std::string& message) {
    BarePeer bare(1);
    bare.Say(message);
    return IsHungUpOn(bare, 1);
  };
  const auto request = [](size_t bytes, const std::function<void(RequestBody&)>& change) {
    RequestBody body = RequestFor(1);
    change(body);
    return With(MessageType::kRequest, 0, body, bytes);
  };
  EXPECT_FALSE(breaks(request(kMaxNoteBytes + kMaxPrivateData, [](RequestBody& body) {
    body.note = kMaxNoteBytes;
  }))) << "as much is right";
  EXPECT_TRUE(breaks(Bare(MessageType::kRequest, 0, sizeof(RequestBody) - 1))) << "short";
  EXPECT_TRUE(breaks(request(0, [](RequestBody& body) { body.from.family = 0; })));
  EXPECT_TRUE(breaks(request(0, [](RequestBody& body) { body.to.family = 0; })));
  EXPECT_TRUE(breaks(request(kMaxNoteBytes + 1, [](RequestBody& body) {
    body.note = kMaxNoteBytes + 1;
  }))) << "a long note";
  EXPECT_TRUE(breaks(request(7, [](RequestBody& body) { body.note = 8; }))) << "a cut note";
  EXPECT_TRUE(breaks(request(kMaxPrivateData + 1, [](RequestBody&) {}))) << "long data";
  EXPECT_TRUE(breaks(RequestInVain(kTheirs))) << "a number that is ours to give";
}

TEST(HostilePeerTest, ANumberThatThereIsNot) {
  const auto context = OpenForTest();
  BarePeer bare(0);
  bare.Say(BuildMessage(MessageType::kWelcome, 0, kGreeting));
  bare.Say(RequestInVain(kConnections - 1));
  EXPECT_EQ(bare.Next(), MessageType::kNotHere) << "the last that there is";
  bare.Say(RequestInVain(kConnections));
  EXPECT_EQ(bare.Next(), MessageType{});
}

TEST(HostilePeerTest, MessagesThatAreNone) {
  const auto context = OpenForTest();
  for (const MessageType type : {MessageType{}, MessageType::kHello, MessageType::kAsk,
                                 MessageType::kYes, MessageType{99}}) {
    BarePeer bare(1);
    bare.Say(Bare(type, 0, 64));
    EXPECT_TRUE(IsHungUpOn(bare, 0)) << static_cast<int>(type);
  }
  BarePeer bare(1);
  const Fd gift(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int fds[] = {gift.get()};
  bare.Say(RequestInVain(0), fds);
  EXPECT_EQ(bare.Next(), MessageType{}) << "no message brings a descriptor";
}

TEST(HostilePeerTest, AWelcomeThatIsShort) {
  const auto context = OpenForTest();
  BarePeer bare(0);
  bare.Say(Bare(MessageType::kWelcome, 0, sizeof(HelloBody) - 1));
  EXPECT_TRUE(IsHungUpOn(bare, kTheirs));
}

TEST(HostilePeerTest, AnAnswerThatIsNone) {
  const auto context = OpenForTest();
  const auto breaks = [](MessageType type, size_t bytes) {
    BarePeer bare(0);
    bare.Say(BuildMessage(MessageType::kWelcome, 0, kGreeting));
    const auto link = bare.BeAsked();
    bare.Say(Bare(type, link->id, bytes));
    return IsHungUpOn(bare, kTheirs);
  };
  constexpr size_t kAccept = sizeof(AcceptBody), kRedirect = sizeof(RedirectBody);
  EXPECT_FALSE(breaks(MessageType::kAccept, kAccept + kMaxPrivateData));
  EXPECT_TRUE(breaks(MessageType::kAccept, kAccept + kMaxPrivateData + 1));
  EXPECT_TRUE(breaks(MessageType::kAccept, kAccept - 1));
  EXPECT_FALSE(breaks(MessageType::kReject, kMaxPrivateData));
  EXPECT_TRUE(breaks(MessageType::kReject, kMaxPrivateData + 1));
  EXPECT_FALSE(breaks(MessageType::kRedirect, kRedirect + kMaxNoteBytes));
  EXPECT_TRUE(breaks(MessageType::kRedirect, kRedirect + kMaxNoteBytes + 1));
  EXPECT_TRUE(breaks(MessageType::kRedirect, kRedirect - 1));
  EXPECT_TRUE(breaks(MessageType::kEstablished, 0));
}

// All are about a connection that has been accepted.
TEST(HostilePeerTest, MessagesThatAreNotDue) {
  const std::string messages[] = {
      BuildMessage(MessageType::kRequest, 0, RequestFor(1)),
      BuildMessage(MessageType::kAccept, 0, AcceptBody{}),
      BuildMessage(MessageType::kRedirect, 0, RedirectBody{}),
      Bare(MessageType::kReject, 0, 0),
      Bare(MessageType::kRefuse, 0, 0),
      Bare(MessageType::kNotHere, 0, 0),
      Bare(MessageType::kEstablished, 0, 0),
      Bare(MessageType::kReleased, 0, 0),
      Bare(MessageType::kClose, 0, sizeof(CloseBody) - 1),
  };
  for (const std::string& message : messages) {
    SCOPED_TRACE(&message - messages);
    Accepted accepted;
    accepted.bare().Say(message);
    EXPECT_TRUE(IsHungUpOn(accepted.bare(), 1));
    accepted.end().Await(accepted.end().disconnected);
    EXPECT_EQ(accepted.end().cause, DisconnectCause::kBroken);
  }
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

// The peer reads late, and nothing is lost.
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
  // Both at once: after the end of the connection the second one would be about no connection.
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
