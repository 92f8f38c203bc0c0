// kAsyncOverflow: a dispatcher holds more than its length, whichever call finds this.

#include "gtest/gtest.h"
#include "tests/sim/engine.h"

namespace viaduct::core {
namespace {

constexpr uint32_t kLength = 2;

class OverflowTest : public EngineTest {
 protected:
  OverflowTest()
      : errors_(a_->MakeDispatcher()), few_(a_->MakeDispatcher(kLength)), a(*a_), b(*b_) {
    EXPECT_TRUE(a_->adapter().SetAsyncDispatcher(*errors_, /*own=*/false).ok());
    Endpoint::Parts parts = a.Parts();
    parts.receive = few_;
    EXPECT_TRUE(a->Modify(&parts, nullptr).ok());
    Join(b, *a_, a);
  }
  ~OverflowTest() override {
    Endpoint::Parts parts = a.Parts();
    EXPECT_TRUE(a->Disconnect(verbs::DisconnectMode::kAbrupt).ok());
    RunFor(kMilli);
    EXPECT_TRUE(a->Reset().ok());
    EXPECT_TRUE(a->Modify(&parts, nullptr).ok());
  }
  // Lets so many more messages come.
  void Come(int messages) {
    for (int i = 0; i < messages; ++i) {
      ASSERT_TRUE(a.Receive(i).ok());
      ASSERT_TRUE(b.Send(i).ok());
    }
    RunFor(kMilli);
  }
  void Take(int messages) {
    Event event;
    for (int i = 0; i < messages; ++i) ASSERT_TRUE(few_->Dequeue(&event).ok());
  }
  Words Errors() {
    Words words;
    Event event;
    while (errors_->Dequeue(&event).ok()) words.push_back(Word(event));
    return words;
  }

  Ref<EventDispatcher> errors_;
  Ref<EventDispatcher> few_;
  End a;
  End b;
};

TEST_F(OverflowTest, IsFoundByADequeue) {
  Come(kLength + 1);
  EXPECT_EQ(Errors(), Words{});
  Take(1);
  EXPECT_EQ(Errors(), Words{"overflow"});
  Take(kLength);
  EXPECT_EQ(Errors(), Words{}) << "once";
}

// The dispatcher then has them all in its queue, and a dequeue looks no further.
TEST_F(OverflowTest, IsFoundByAResizeThatIsRefused) {
  Come(kLength + 1);
  EXPECT_EQ(few_->Resize(kLength).code, Code::kInvalidState);
  EXPECT_EQ(Errors(), Words{"overflow"});
  Take(kLength + 1);
  EXPECT_EQ(Errors(), Words{}) << "once";
}

TEST_F(OverflowTest, IsFoundByACountOfReceives) {
  Come(kLength + 1);
  EXPECT_EQ(a->HarvestOpenReceives(), 0u);
  EXPECT_EQ(Errors(), Words{"overflow"});
  Take(kLength + 1);
  EXPECT_EQ(Errors(), Words{}) << "once";
}

TEST_F(OverflowTest, IsFoundAgainBehindAResizeThatMadeRoom) {
  Come(kLength + 1);
  EXPECT_EQ(a->HarvestOpenReceives(), 0u);
  EXPECT_EQ(Errors(), Words{"overflow"});
  ASSERT_TRUE(few_->Resize(kLength + 1).ok());
  Come(1);
  EXPECT_EQ(a->HarvestOpenReceives(), 0u);
  EXPECT_EQ(Errors(), Words{"overflow"});
  Take(kLength + 2);
  EXPECT_EQ(Errors(), Words{}) << "once";
}

// An event would make the overflow worse, and the program that takes the events sees it anyhow.
TEST_F(OverflowTest, OfTheDispatcherThatHearsOfThemIsToldToNobody) {
  ASSERT_TRUE(errors_->Resize(1).ok());
  for (int i = 0; i < 2; ++i) {
    a_->adapter().PostAsync(EventType::kAsyncHighWatermark, few_->handle());
  }
  EXPECT_EQ(Errors().size(), 2u);
}

}  // namespace
}  // namespace viaduct::core
