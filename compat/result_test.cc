#include "compat/result.h"

#include "gtest/gtest.h"

namespace viaduct::compat {
namespace {

TEST(ResultTest, ObjectsInUseAreAResourceProblem) {
  EXPECT_EQ(ResultOf(core::InvalidState(core::StateDetail::kZoneInUse)), VIP_ERROR_RESOURCE);
  EXPECT_EQ(ResultOf(core::InvalidState(core::StateDetail::kDispatcherInUse)), VIP_ERROR_RESOURCE);
  EXPECT_EQ(ResultOf(core::InvalidState(core::StateDetail::kDispatcherHasWaiter)),
            VIP_ERROR_RESOURCE);
  EXPECT_EQ(ResultOf(core::InvalidState(core::StateDetail::kRegionInUse)), VIP_ERROR_RESOURCE);
}

TEST(ResultTest, StatesOfEndpointsAreStates) {
  EXPECT_EQ(ResultOf(core::Error(core::Code::kInvalidState, 9)), VIP_INVALID_STATE);
}

TEST(ResultTest, CodesWithOneMeaning) {
  EXPECT_EQ(ResultOf(core::Ok()), VIP_SUCCESS);
  EXPECT_EQ(ResultOf(core::Code::kTimeout), VIP_TIMEOUT);
  EXPECT_EQ(ResultOf(core::Code::kQueueEmpty), VIP_NOT_DONE);
  EXPECT_EQ(ResultOf(core::InvalidParameter(3)), VIP_INVALID_PARAMETER);
  EXPECT_EQ(ResultOf(core::Code::kInvalidHandle), VIP_INVALID_PARAMETER);
  EXPECT_EQ(ResultOf(core::OutOf(core::Resource::kMemory)), VIP_ERROR_RESOURCE);
  EXPECT_EQ(ResultOf(core::Code::kConnQualInUse), VIP_ERROR_RESOURCE);
  EXPECT_EQ(ResultOf(core::Code::kAbort), VIP_INVALID_PARAMETER);
  EXPECT_EQ(ResultOf(core::Code::kInvalidAddress), VIP_INVALID_ADDRESS);
}

// [MAN] VipConnectRequest, return values.
TEST(ResultTest, OutcomesOfConnecting) {
  EXPECT_EQ(ResultOf(core::EventType::kEstablished), VIP_SUCCESS);
  EXPECT_EQ(ResultOf(core::EventType::kPeerRejected), VIP_REJECT);
  EXPECT_EQ(ResultOf(core::EventType::kNonPeerRejected), VIP_NO_MATCH);
  EXPECT_EQ(ResultOf(core::EventType::kTimedOut), VIP_TIMEOUT);
  EXPECT_EQ(ResultOf(core::EventType::kUnreachable), VIP_NOT_REACHABLE);
  EXPECT_EQ(ResultOf(core::EventType::kNoResources), VIP_ERROR_RESOURCE);
  EXPECT_EQ(ResultOf(core::EventType::kAcceptCompletionError), VIP_TIMEOUT);
  EXPECT_EQ(ResultOf(core::PeerMismatch::kReliability), VIP_INVALID_RELIABILITY_LEVEL);
  EXPECT_EQ(ResultOf(core::PeerMismatch::kTransferSize), VIP_INVALID_MTU);
  EXPECT_EQ(ResultOf(core::PeerMismatch::kQos), VIP_INVALID_QOS);
  EXPECT_EQ(ResultOf(core::PeerMismatch::kNone), VIP_REJECT);
  EXPECT_EQ(ResultOf(core::EventType::kDisconnected), VIP_INVALID_STATE);
}

}  // namespace
}  // namespace viaduct::compat
