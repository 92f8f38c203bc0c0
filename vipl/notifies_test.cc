#include "vipl/notifies.h"

#include "gtest/gtest.h"

namespace viaduct::vipl {
namespace {

class NotifiesTest : public testing::Test {
 protected:
  static ViNotifies::Registration For(int* context) { return {nullptr, context}; }

  ViNotifies notifies_;
  int first_ = 0, second_ = 0;
};

TEST_F(NotifiesTest, AreServedInTheirOrder) {
  EXPECT_FALSE(notifies_.pending());
  notifies_.Add(For(&first_));
  notifies_.Add(For(&second_));
  for (int* context : {&first_, &second_}) {
    EXPECT_TRUE(notifies_.pending());
    ViNotifies::Registration next;
    ASSERT_TRUE(notifies_.Hold(&next));
    EXPECT_EQ(next, For(context));
    EXPECT_TRUE(notifies_.pending()) << "what completes now is to post a service";
    notifies_.Take();
  }
  EXPECT_FALSE(notifies_.pending());
  ViNotifies::Registration none;
  EXPECT_FALSE(notifies_.Hold(&none));
}

TEST_F(NotifiesTest, OneThatWasReleasedIsServedNext) {
  notifies_.Add(For(&first_));
  ViNotifies::Registration next;
  ASSERT_TRUE(notifies_.Hold(&next));
  notifies_.Release();
  notifies_.Add(For(&second_));
  ASSERT_TRUE(notifies_.Hold(&next));
  EXPECT_EQ(next, For(&first_));
}

// The holder has taken a descriptor for it.
TEST_F(NotifiesTest, NobodyWithdrawsWhatIsHeld) {
  notifies_.Add(For(&first_));
  ViNotifies::Registration next;
  ASSERT_TRUE(notifies_.Hold(&next));
  EXPECT_FALSE(notifies_.Withdraw(For(&first_)));
  notifies_.Add(For(&first_));
  EXPECT_TRUE(notifies_.Withdraw(For(&first_))) << "the newest of two that are alike";
  EXPECT_TRUE(notifies_.pending());
  notifies_.Release();
  EXPECT_TRUE(notifies_.Withdraw(For(&first_)));
  EXPECT_FALSE(notifies_.pending());
  EXPECT_FALSE(notifies_.Withdraw(For(&first_)));
}

}  // namespace
}  // namespace viaduct::vipl
