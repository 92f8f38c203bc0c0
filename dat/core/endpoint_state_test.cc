// Checks every cell of the table. The expectations, a list for each state, were written from the
// specifications and not from the table: uDAPL 1.2 and 2.0, states of an endpoint and the calls'
// RETURN VALUES.
#include "dat/core/endpoint_state.h"

#include <map>
#include <set>
#include <string>

#include "gtest/gtest.h"

namespace viaduct::core {
namespace {

using In = EndpointInput;
using Ev = EndpointEvent;
using St = EndpointState;

struct Move {
  St next;
  bool flush = false;
  Ev event = Ev::kNone;
};
constexpr bool kFlush = true;

// The table can be used at compile time.
static_assert(Next(St::kConnected, In::kPostRequest).verdict == Verdict::kGo);
static_assert(Next(St::kUnconnected, In::kConnect).next == St::kActivePending);
static_assert(sizeof(Transition) == 4);

// What a state does with each of the 26 inputs; each stands in exactly one list.
struct Expectation {
  std::map<In, Move> moves;
  std::set<In> stays;      // kGo, no change
  std::set<In> no_effect;  // kNoEffect
  std::set<In> invalid;
};

void Check(St state, const Expectation& want) {
  SCOPED_TRACE(EndpointStateName(state));
  ASSERT_EQ(want.moves.size() + want.stays.size() + want.no_effect.size() + want.invalid.size(),
            static_cast<size_t>(kEndpointInputs));
  for (int i = 0; i < kEndpointInputs; ++i) {
    const In input = static_cast<In>(i);
    SCOPED_TRACE(EndpointInputName(input));
    const Transition got = Next(state, input);
    const auto move = want.moves.find(input);
    if (move != want.moves.end()) {
      EXPECT_EQ(got.verdict, Verdict::kGo);
      EXPECT_STREQ(EndpointStateName(got.next), EndpointStateName(move->second.next));
      EXPECT_EQ(got.flush, move->second.flush);
      EXPECT_EQ(got.event, move->second.event);
      continue;
    }
    Verdict verdict = Verdict::kInvalid;
    if (want.stays.count(input) != 0) {
      verdict = Verdict::kGo;
    } else if (want.no_effect.count(input) != 0) {
      verdict = Verdict::kNoEffect;
    } else {
      EXPECT_EQ(want.invalid.count(input), 1u) << "no expectation";
    }
    EXPECT_EQ(got.verdict, verdict);
    EXPECT_STREQ(EndpointStateName(got.next), EndpointStateName(state));
    EXPECT_FALSE(got.flush);
    EXPECT_EQ(got.event, Ev::kNone);
  }
}

TEST(EndpointState, Unconnected) {
  Expectation want;
  want.moves = {{In::kConnect, {St::kActivePending}},
                {In::kReserve, {St::kReserved}},
                {In::kAcceptExplicit, {St::kCompletionPending}},
                {In::kFree, {St::kUnconfiguredUnconnected}}};
  want.stays = {In::kModifyAttributes, In::kModifyZone};
  want.no_effect = {In::kReset, In::kUnreserve};
  want.invalid = {In::kDuplicate,        In::kAcceptImplicit,     In::kRejectImplicit,
                  In::kDisconnectAbrupt, In::kDisconnectGraceful, In::kPostRequest,
                  In::kRequestArrived,   In::kPeerAccepted,       In::kPeerRejected,
                  In::kNonPeerRejected,  In::kUnreachable,        In::kNoResources,
                  In::kTimedOut,         In::kConfirmed,          In::kAcceptFailed,
                  In::kDrained,          In::kPeerDisconnected,   In::kBroken};
  Check(St::kUnconnected, want);
}

// The state of a freed endpoint.
TEST(EndpointState, UnconfiguredUnconnected) {
  Expectation want;
  want.stays = {In::kFree};
  want.no_effect = {In::kUnreserve};
  want.invalid = {In::kModifyAttributes,
                  In::kModifyZone,
                  In::kReset,
                  In::kConnect,
                  In::kReserve,
                  In::kAcceptExplicit,
                  In::kDuplicate,
                  In::kAcceptImplicit,
                  In::kRejectImplicit,
                  In::kDisconnectAbrupt,
                  In::kDisconnectGraceful,
                  In::kPostRequest,
                  In::kRequestArrived,
                  In::kPeerAccepted,
                  In::kPeerRejected,
                  In::kNonPeerRejected,
                  In::kUnreachable,
                  In::kNoResources,
                  In::kTimedOut,
                  In::kConfirmed,
                  In::kAcceptFailed,
                  In::kDrained,
                  In::kPeerDisconnected,
                  In::kBroken};
  Check(St::kUnconfiguredUnconnected, want);
}

Expectation Reserved(St unreserved, St passive) {
  Expectation want;
  want.moves = {{In::kUnreserve, {unreserved}}, {In::kRequestArrived, {passive}}};
  want.stays = {In::kModifyAttributes};
  want.invalid = {In::kConnect,
                  In::kDuplicate,
                  In::kReserve,
                  In::kAcceptExplicit,
                  In::kAcceptImplicit,
                  In::kRejectImplicit,
                  In::kDisconnectAbrupt,
                  In::kDisconnectGraceful,
                  In::kPostRequest,
                  In::kModifyZone,
                  In::kReset,
                  In::kFree,
                  In::kPeerAccepted,
                  In::kPeerRejected,
                  In::kNonPeerRejected,
                  In::kUnreachable,
                  In::kNoResources,
                  In::kTimedOut,
                  In::kConfirmed,
                  In::kAcceptFailed,
                  In::kDrained,
                  In::kPeerDisconnected,
                  In::kBroken};
  return want;
}

TEST(EndpointState, Reserved) {
  Check(St::kReserved, Reserved(St::kUnconnected, St::kPassivePending));
}

TEST(EndpointState, UnconfiguredReserved) {
  Check(St::kUnconfiguredReserved,
        Reserved(St::kUnconfiguredUnconnected, St::kUnconfiguredPassive));
}

// What the passive and tentative states share, configured or not: all but accept and reject.
Expectation PassiveBut() {
  Expectation want;
  want.stays = {In::kModifyAttributes};
  want.no_effect = {In::kUnreserve, In::kAcceptFailed};
  want.invalid = {In::kConnect,        In::kDuplicate,        In::kReserve,
                  In::kAcceptExplicit, In::kDisconnectAbrupt, In::kDisconnectGraceful,
                  In::kPostRequest,    In::kModifyZone,       In::kReset,
                  In::kFree,           In::kRequestArrived,   In::kPeerAccepted,
                  In::kPeerRejected,   In::kNonPeerRejected,  In::kUnreachable,
                  In::kNoResources,    In::kTimedOut,         In::kConfirmed,
                  In::kDrained,        In::kPeerDisconnected, In::kBroken};
  return want;
}

TEST(EndpointState, PassivePending) {
  Expectation want = PassiveBut();
  want.moves = {{In::kAcceptImplicit, {St::kCompletionPending}},
                {In::kRejectImplicit, {St::kUnconnected}}};
  Check(St::kPassivePending, want);
}

TEST(EndpointState, UnconfiguredPassive) {
  Expectation want = PassiveBut();
  want.moves = {{In::kRejectImplicit, {St::kUnconfiguredUnconnected}}};
  want.invalid.insert(In::kAcceptImplicit);
  Check(St::kUnconfiguredPassive, want);
}

TEST(EndpointState, TentativePending) {
  Expectation want = PassiveBut();
  want.invalid.erase(In::kModifyZone);
  want.stays.insert(In::kModifyZone);
  want.moves = {{In::kAcceptImplicit, {St::kCompletionPending}},
                {In::kRejectImplicit, {St::kUnconnected}}};
  Check(St::kTentativePending, want);
}

TEST(EndpointState, UnconfiguredTentative) {
  Expectation want = PassiveBut();
  want.invalid.erase(In::kModifyZone);
  want.stays.insert(In::kModifyZone);
  want.moves = {{In::kRejectImplicit, {St::kUnconfiguredUnconnected}}};
  want.invalid.insert(In::kAcceptImplicit);
  Check(St::kUnconfiguredTentative, want);
}

TEST(EndpointState, ActivePending) {
  Expectation want;
  want.moves = {
      {In::kDisconnectAbrupt, {St::kDisconnected, kFlush, Ev::kDisconnected}},
      {In::kDisconnectGraceful, {St::kDisconnected, kFlush, Ev::kDisconnected}},
      {In::kFree, {St::kUnconfiguredUnconnected}},
      {In::kPeerAccepted, {St::kConnected, false, Ev::kEstablished}},
      {In::kPeerRejected, {St::kDisconnected, kFlush, Ev::kPeerRejected}},
      {In::kNonPeerRejected, {St::kDisconnected, kFlush, Ev::kNonPeerRejected}},
      {In::kUnreachable, {St::kDisconnected, kFlush, Ev::kUnreachable}},
      {In::kNoResources, {St::kDisconnected, kFlush, Ev::kNoResources}},
      {In::kTimedOut, {St::kDisconnected, kFlush, Ev::kTimedOut}},
  };
  want.no_effect = {In::kUnreserve};
  want.invalid = {
      In::kConnect,        In::kDuplicate,      In::kReserve,          In::kAcceptExplicit,
      In::kAcceptImplicit, In::kRejectImplicit, In::kPostRequest,      In::kModifyAttributes,
      In::kModifyZone,     In::kReset,          In::kRequestArrived,   In::kConfirmed,
      In::kAcceptFailed,   In::kDrained,        In::kPeerDisconnected, In::kBroken};
  Check(St::kActivePending, want);
}

TEST(EndpointState, CompletionPending) {
  Expectation want;
  want.moves = {
      {In::kDisconnectAbrupt, {St::kDisconnected, kFlush, Ev::kDisconnected}},
      {In::kDisconnectGraceful, {St::kDisconnected, kFlush, Ev::kDisconnected}},
      {In::kFree, {St::kUnconfiguredUnconnected}},
      {In::kConfirmed, {St::kConnected, false, Ev::kEstablished}},
      {In::kAcceptFailed, {St::kDisconnected, kFlush, Ev::kAcceptCompletionError}},
  };
  want.no_effect = {In::kUnreserve};
  want.invalid = {
      In::kConnect,        In::kDuplicate,       In::kReserve,          In::kAcceptExplicit,
      In::kAcceptImplicit, In::kRejectImplicit,  In::kPostRequest,      In::kModifyAttributes,
      In::kModifyZone,     In::kReset,           In::kRequestArrived,   In::kPeerAccepted,
      In::kPeerRejected,   In::kNonPeerRejected, In::kUnreachable,      In::kNoResources,
      In::kTimedOut,       In::kDrained,         In::kPeerDisconnected, In::kBroken};
  Check(St::kCompletionPending, want);
}

TEST(EndpointState, Connected) {
  Expectation want;
  want.moves = {
      {In::kDisconnectAbrupt, {St::kDisconnected, kFlush, Ev::kDisconnected}},
      {In::kDisconnectGraceful, {St::kDisconnectPending}},
      {In::kFree, {St::kUnconfiguredUnconnected}},
      {In::kPeerDisconnected, {St::kDisconnected, kFlush, Ev::kDisconnected}},
      {In::kBroken, {St::kDisconnected, kFlush, Ev::kBroken}},
  };
  want.stays = {In::kDuplicate, In::kPostRequest};
  want.no_effect = {In::kUnreserve};
  want.invalid = {In::kConnect,        In::kReserve,        In::kAcceptExplicit,
                  In::kAcceptImplicit, In::kRejectImplicit, In::kModifyAttributes,
                  In::kModifyZone,     In::kReset,          In::kRequestArrived,
                  In::kPeerAccepted,   In::kPeerRejected,   In::kNonPeerRejected,
                  In::kUnreachable,    In::kNoResources,    In::kTimedOut,
                  In::kConfirmed,      In::kAcceptFailed,   In::kDrained};
  Check(St::kConnected, want);
}

TEST(EndpointState, DisconnectPending) {
  Expectation want;
  want.moves = {
      {In::kDisconnectAbrupt, {St::kDisconnected, kFlush, Ev::kDisconnected}},
      {In::kFree, {St::kUnconfiguredUnconnected}},
      {In::kDrained, {St::kDisconnected, kFlush, Ev::kDisconnected}},
      {In::kPeerDisconnected, {St::kDisconnected, kFlush, Ev::kDisconnected}},
      {In::kBroken, {St::kDisconnected, kFlush, Ev::kBroken}},
  };
  want.no_effect = {In::kUnreserve, In::kDisconnectGraceful};
  want.invalid = {
      In::kConnect,        In::kDuplicate,       In::kReserve,        In::kAcceptExplicit,
      In::kAcceptImplicit, In::kRejectImplicit,  In::kPostRequest,    In::kModifyAttributes,
      In::kModifyZone,     In::kReset,           In::kRequestArrived, In::kPeerAccepted,
      In::kPeerRejected,   In::kNonPeerRejected, In::kUnreachable,    In::kNoResources,
      In::kTimedOut,       In::kConfirmed,       In::kAcceptFailed};
  Check(St::kDisconnectPending, want);
}

TEST(EndpointState, Disconnected) {
  Expectation want;
  want.moves = {{In::kReset, {St::kUnconnected}}, {In::kFree, {St::kUnconfiguredUnconnected}}};
  want.stays = {In::kPostRequest};
  want.no_effect = {In::kUnreserve, In::kDisconnectAbrupt, In::kDisconnectGraceful};
  want.invalid = {
      In::kConnect,        In::kDuplicate,      In::kReserve,          In::kAcceptExplicit,
      In::kAcceptImplicit, In::kRejectImplicit, In::kModifyAttributes, In::kModifyZone,
      In::kRequestArrived, In::kPeerAccepted,   In::kPeerRejected,     In::kNonPeerRejected,
      In::kUnreachable,    In::kNoResources,    In::kTimedOut,         In::kConfirmed,
      In::kAcceptFailed,   In::kDrained,        In::kPeerDisconnected, In::kBroken};
  Check(St::kDisconnected, want);
}

// A connection's last event comes with the move to Disconnected, and every such move has one.
TEST(EndpointState, EveryMoveToDisconnectedFlushesAndTells) {
  for (int s = 0; s < kEndpointStates; ++s) {
    for (int i = 0; i < kEndpointInputs; ++i) {
      const St state = static_cast<St>(s);
      const Transition t = Next(state, static_cast<In>(i));
      if (t.next != St::kDisconnected || state == St::kDisconnected) continue;
      EXPECT_TRUE(t.flush) << EndpointStateName(state) << " " << i;
      EXPECT_NE(t.event, Ev::kNone) << EndpointStateName(state) << " " << i;
    }
  }
}

TEST(EndpointState, NamesAreDistinct) {
  std::set<std::string> names;
  for (int s = 0; s < kEndpointStates; ++s) {
    EXPECT_TRUE(names.insert(EndpointStateName(static_cast<St>(s))).second);
  }
  for (int i = 0; i < kEndpointInputs; ++i) {
    EXPECT_TRUE(names.insert(EndpointInputName(static_cast<In>(i))).second);
  }
  EXPECT_EQ(names.count("?"), 0u);
  EXPECT_STREQ(EndpointStateName(St::kCompletionPending), "COMPLETION_PENDING");
}

}  // namespace
}  // namespace viaduct::core
