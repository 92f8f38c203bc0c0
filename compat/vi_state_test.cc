#include "compat/vi_state.h"

#include "gtest/gtest.h"

namespace viaduct::compat {
namespace {

constexpr ViState kIdle = ViState::kIdle;
constexpr ViState kConnected = ViState::kConnected;
constexpr ViState kPending = ViState::kConnectPending;
constexpr ViState kError = ViState::kError;

TEST(ViStateTest, DestroyAndSetAttributesAreForIdleVis) {
  for (ViCall call : {ViCall::kDestroy, ViCall::kSetAttributes}) {
    EXPECT_EQ(VerdictOf(kIdle, call), ViVerdict::kGo);
    EXPECT_EQ(VerdictOf(kConnected, call), ViVerdict::kInvalidState);
    EXPECT_EQ(VerdictOf(kPending, call), ViVerdict::kInvalidState);
    EXPECT_EQ(VerdictOf(kError, call), ViVerdict::kInvalidState);
  }
}

TEST(ViStateTest, ConnectingIsForIdleVis) {
  for (ViCall call : {ViCall::kConnectRequest, ViCall::kConnectAccept}) {
    EXPECT_EQ(VerdictOf(kIdle, call), ViVerdict::kGo);
    EXPECT_EQ(VerdictOf(kConnected, call), ViVerdict::kInvalidState);
    EXPECT_EQ(VerdictOf(kPending, call), ViVerdict::kInvalidState);
    EXPECT_EQ(VerdictOf(kError, call), ViVerdict::kInvalidState);
  }
}

TEST(ViStateTest, DisconnectIsForAllAndLeavesAnIdleViIdle) {
  EXPECT_EQ(VerdictOf(kIdle, ViCall::kDisconnect), ViVerdict::kFlushOnly);
  EXPECT_EQ(VerdictOf(kConnected, ViCall::kDisconnect), ViVerdict::kGo);
  EXPECT_EQ(VerdictOf(kPending, ViCall::kDisconnect), ViVerdict::kGo);
  EXPECT_EQ(VerdictOf(kError, ViCall::kDisconnect), ViVerdict::kGo);
}

TEST(ViStateTest, EveryEndpointStateIsAViState) {
  using core::EndpointState;
  EXPECT_EQ(ViStateOf(EndpointState::kUnconnected), kIdle);
  EXPECT_EQ(ViStateOf(EndpointState::kUnconfiguredUnconnected), kIdle);
  EXPECT_EQ(ViStateOf(EndpointState::kReserved), kIdle);
  EXPECT_EQ(ViStateOf(EndpointState::kUnconfiguredReserved), kIdle);
  EXPECT_EQ(ViStateOf(EndpointState::kPassivePending), kPending);
  EXPECT_EQ(ViStateOf(EndpointState::kUnconfiguredPassive), kPending);
  EXPECT_EQ(ViStateOf(EndpointState::kActivePending), kPending);
  EXPECT_EQ(ViStateOf(EndpointState::kTentativePending), kPending);
  EXPECT_EQ(ViStateOf(EndpointState::kUnconfiguredTentative), kPending);
  EXPECT_EQ(ViStateOf(EndpointState::kCompletionPending), kPending);
  EXPECT_EQ(ViStateOf(EndpointState::kConnected), kConnected);
  EXPECT_EQ(ViStateOf(EndpointState::kDisconnectPending), kError);
  EXPECT_EQ(ViStateOf(EndpointState::kDisconnected), kError);
}

}  // namespace
}  // namespace viaduct::compat
