// Sends one of each message, in the order that decode_test.py expects.
#include <memory>

#include "gtest/gtest.h"
#include "tests/device/ends.h"

namespace viaduct::verbs {
namespace {

constexpr size_t kShort = 16;
constexpr size_t kLong = 20'000;  // several segments
constexpr Key kNobodysKey = 0x7eadbeef;

TEST_F(DeviceTest, SaysEveryMessageForTheDecoder) {
  EndOptions options;
  options.memory = 2 * kLong;
  End& active = NewEnd(a(), options);
  End& passive = NewEnd(b(), options);
  Requests requests;
  auto listener = b().Listen(0, &requests);
  ASSERT_TRUE(listener.ok()) << listener.status();
  ASSERT_TRUE(Dial(active, b(), (*listener)->port(), Pattern(20, 1)).ok());
  std::unique_ptr<IncomingConnection> request = AwaitRequest(requests);
  ASSERT_NE(request, nullptr);
  ASSERT_EQ(passive.Receive(1, 0, kShort), PostResult::kOk);
  ASSERT_EQ(passive.Receive(2, 0, kLong), PostResult::kOk);
  ASSERT_TRUE(request->Accept(passive.pair(), Pattern(30, 2)).ok());
  ASSERT_EQ(AwaitEvent(active).kind, Event::kConnected);

  ASSERT_EQ(active.Send(11, 0, kShort), PostResult::kOk);
  Expect(passive.receives(), 1);
  ASSERT_EQ(AwaitEvent(passive).kind, Event::kConnected);
  ASSERT_EQ(active.Send(12, 0, kLong), PostResult::kOk);
  Expect(passive.receives(), 2);
  ASSERT_EQ(active.Write(13, 0, kShort, passive, 0), PostResult::kOk);
  ASSERT_EQ(active.Read(14, 0, kShort, passive, 0), PostResult::kOk);
  for (uint64_t id : {11, 12, 13, 14}) Expect(active.sends(), id);
  ASSERT_EQ(active.Receive(3, 0, kShort), PostResult::kOk);
  ASSERT_EQ(passive.Send(15, 0, kShort), PostResult::kOk);
  Expect(active.receives(), 3);
  // No region has this key: the passive side reports that and ends the connection.
  ASSERT_EQ(active.PostTo(Opcode::kRead, 16, kShort, 0x1000, kNobodysKey), PostResult::kOk);
  Expect(active.sends(), 16, Status::kRemoteAccess);
  ExpectBroken(active);
}

}  // namespace
}  // namespace viaduct::verbs
