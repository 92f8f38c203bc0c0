// Requests that fail alone: NoReceive::kDrop, verdicts, suppressed completions.
#include "tests/device/ends.h"

namespace viaduct::verbs {
namespace {

class DropTest : public DeviceTest {
 protected:
  static EndOptions Dropping() {
    EndOptions options;
    options.no_receive = NoReceive::kDrop;
    return options;
  }
};

TEST_F(DropTest, NoReceiveDropsAndReports) {
  End& from = NewEnd(a(), Dropping());
  End& to = NewEnd(b(), Dropping());
  Connect(from, to);
  uint64_t id = 0;
  for (size_t size : {0, 8, 5000, 60000}) {
    ASSERT_EQ(from.Send(++id, 0, size), PostResult::kOk);
    Expect(from.sends(), id);
    EXPECT_EQ(AwaitEvent(to).kind, Event::kDropped) << size;
    // The next one finds a receive.
    from.Put(0, Pattern(size, id));
    ASSERT_EQ(to.Receive(id, 0, 60000), PostResult::kOk);
    ASSERT_EQ(from.Send(++id, 0, size), PostResult::kOk);
    EXPECT_EQ(Expect(to.receives(), id - 1).length, size);
    Expect(from.sends(), id);
    EXPECT_TRUE(to.Get(0, size) == Pattern(size, id - 1));
  }
  EXPECT_EQ(to.events().count() + from.events().count(), 0u);
}

TEST_F(DropTest, ARefusedWriteUnderDropIsReportedAndNothingBreaks) {
  End& from = NewEnd(a(), Dropping());
  End& to = NewEnd(b(), Dropping());
  Connect(from, to);
  const Bytes before = to.Get(100, 2000);
  from.Put(0, Pattern(2000, 1));
  ASSERT_EQ(from.PostTo(Opcode::kWrite, 1, 2000, to.Address(100), to.region().key() ^ 0x550000, 0),
            PostResult::kOk);
  EXPECT_EQ(AwaitEvent(to).kind, Event::kRefusedWrite);
  EXPECT_EQ(Await(from.sends()).id, 1u);
  ASSERT_EQ(to.Receive(2, 0, 8), PostResult::kOk);
  ASSERT_EQ(from.Send(3, 0, 8), PostResult::kOk);
  Expect(to.receives(), 2);
  Expect(from.sends(), 3);
  EXPECT_EQ(to.Get(100, 2000), before);
}

// ------------------------------------------------------------------------------------ verdicts

TEST_F(DropTest, AVerdictOutsideAConnectionIsFlushed) {
  End& end = NewEnd(a());
  SendRequest request;
  request.id = 1;
  request.verdict = Status::kLocalProtection;
  ASSERT_EQ(end.pair().PostSend(request), PostResult::kOk);
  Expect(end.sends(), 1, Status::kFlushed);
}

}  // namespace
}  // namespace viaduct::verbs
