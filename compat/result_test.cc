#include "compat/result.h"

#include "gtest/gtest.h"

namespace viaduct::compat {
namespace {

TEST(ResultTest, ObjectsInUseAreAResourceProblem) {
  using core::StateDetail;
  for (const StateDetail detail :
       {StateDetail::kZoneInUse, StateDetail::kRegionInUse, StateDetail::kAdapterInUse,
        StateDetail::kDispatcherInUse, StateDetail::kDispatcherHasWaiter,
        StateDetail::kDispatcherUnwaitable}) {
    EXPECT_EQ(ResultOf(core::InvalidState(detail)), VIP_ERROR_RESOURCE) << static_cast<int>(detail);
  }
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
  EXPECT_EQ(ResultOf(core::Code::kConnQualUnavailable), VIP_ERROR_RESOURCE);
  EXPECT_EQ(ResultOf(core::Code::kInterrupted), VIP_ERROR_RESOURCE);
  EXPECT_EQ(ResultOf(core::Code::kPrivilegesViolation), VIP_ERROR_RESOURCE);
  EXPECT_EQ(ResultOf(core::Code::kQueueFull), VIP_ERROR_RESOURCE);
  EXPECT_EQ(ResultOf(core::Code::kLengthError), VIP_INVALID_PARAMETER);
  EXPECT_EQ(ResultOf(core::Code::kNotFound), VIP_INVALID_PARAMETER);
  EXPECT_EQ(ResultOf(core::Code::kProtectionViolation), VIP_INVALID_PTAG);
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
  EXPECT_EQ(ResultOf(core::EventType::kBroken), VIP_INVALID_STATE);
}

}  // namespace
}  // namespace viaduct::compat
