// Peer to peer: two requests that look for each other, in every order, on a virtual clock.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dat/core/connection_header.h"
#include "dat/core/peer_match.h"
#include "gtest/gtest.h"
#include "tests/sim/engine.h"

namespace viaduct::core {
namespace {

using State = EndpointState;

ServiceName Name(const std::string& text) {
  return *ServiceName::FromBytes(text.data(), text.size());
}

EndpointProfile Profile(uint32_t size = 4096) {
  EndpointProfile profile;
  profile.any = false;
  profile.reliability = 2;
  profile.max_transfer_size = size;
  return profile;
}

EndpointAttributes OfVi() {
  EndpointAttributes attributes;
  attributes.keep_receives_on_failure = true;
  return attributes;
}

class PeerTest : public EngineTest {
 protected:
  // Asks for a peer as VipConnectPeerRequest does.
  Error Ask(Node& node, End& end, const std::string& name, Node& other, const std::string& others,
            uint64_t id, verbs::Deadline deadline = verbs::Deadline::Infinite(),
            const EndpointProfile& profile = Profile()) {
    return Ask(node, end, name, other.address(), others, id, deadline, profile);
  }
  Error Ask(Node& node, End& end, const std::string& name, const verbs::Address& other,
            const std::string& others, uint64_t id,
            verbs::Deadline deadline = verbs::Deadline::Infinite(),
            const EndpointProfile& profile = Profile()) {
    PeerRequest request;
    request.id = id;
    request.address = node.address();
    request.name = Name(name);
    request.wanted_address = other;
    request.wanted_name = Name(others);
    request.profile = profile;
    ConnectParameters parameters;
    parameters.target.address = other;
    parameters.target.name = request.wanted_name;
    parameters.deadline = deadline;
    parameters.peer = &request;
    return end->Connect(parameters);
  }
  void ExpectJoined(End& a, End& b) {
    RunUntil([&] { return a.Heard() && b.Heard(); });
    EXPECT_EQ(a.Listen(), Words{"established"});
    EXPECT_EQ(b.Listen(), Words{"established"});
    RunFor(kSecond);
    EXPECT_EQ(a->state(), State::kConnected);
    EXPECT_EQ(b->state(), State::kConnected);
    EXPECT_FALSE(a.Heard());
    EXPECT_FALSE(b.Heard());
  }
};

TEST_F(PeerTest, CrossingRequestsMeetWhoeverWins) {
  for (uint64_t id : {1, 3}) {
    End a(*a_, OfVi()), b(*b_, OfVi());
    ASSERT_TRUE(Ask(*a_, a, "a", *b_, "b", id).ok());
    ASSERT_TRUE(Ask(*b_, b, "b", *a_, "a", 2).ok());
    ExpectJoined(a, b);
  }
}

TEST_F(PeerTest, SecondRequestComesAtAnyTime) {
  for (verbs::Nanos later = 0; later < 120 * kMilli; later += kMilli / 4) {
    SCOPED_TRACE(later);
    End a(*a_, OfVi()), b(*b_, OfVi());
    ASSERT_TRUE(Ask(*a_, a, "a", *b_, "b", 2).ok());
    RunFor(later);
    EXPECT_EQ(a->state(), State::kActivePending);
    const verbs::Nanos asked = Now();
    ASSERT_TRUE(Ask(*b_, b, "b", *a_, "a", later % (2 * kMilli) == 0 ? 1 : 3).ok());
    RunUntil([&] { return a.Heard() && b.Heard(); });
    EXPECT_LT(Now() - asked, 100 * kMilli);
    EXPECT_EQ(a.Listen(), Words{"established"});
    EXPECT_EQ(b.Listen(), Words{"established"});
  }
}

TEST_F(PeerTest, ProfilesAreTheOthers) {
  End a(*a_, OfVi()), b(*b_, OfVi());
  EndpointProfile profile = Profile();
  profile.rdma_write_enabled = false;
  ASSERT_TRUE(Ask(*a_, a, "a", *b_, "b", 1, verbs::Deadline::Infinite(), profile).ok());
  a->set_profile(profile);
  b->set_profile(Profile());
  ASSERT_TRUE(Ask(*b_, b, "b", *a_, "a", 2).ok());
  ExpectJoined(a, b);
  EXPECT_TRUE(a->peer_profile().rdma_write_enabled);
  EXPECT_FALSE(b->peer_profile().rdma_write_enabled);
}

TEST_F(PeerTest, NobodyComes) {
  End a(*a_, OfVi());
  const verbs::Nanos begin = Now();
  ASSERT_TRUE(a.Receive(1).ok());
  ASSERT_TRUE(Ask(*a_, a, "a", *b_, "b", 1, In(300 * kMilli)).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"timed out"});
  EXPECT_EQ(Now() - begin, 300 * kMilli);
  EXPECT_EQ(a->state(), State::kUnconnected);
}

TEST_F(PeerTest, MismatchIsToldToBoth) {
  for (bool a_first : {false, true}) {
    End a(*a_, OfVi()), b(*b_, OfVi());
    const auto forever = verbs::Deadline::Infinite();
    if (a_first) {
      ASSERT_TRUE(Ask(*a_, a, "a", *b_, "b", 1).ok());
      RunFor(50 * kMilli);
    }
    ASSERT_TRUE(Ask(*b_, b, "b", *a_, "a", 2, forever, Profile(8192)).ok());
    if (!a_first) {
      ASSERT_TRUE(Ask(*a_, a, "a", *b_, "b", 1).ok());
    }
    RunUntil([&] { return a.Heard() && b.Heard(); });
    for (End* end : {&a, &b}) {
      EXPECT_EQ(end->Listen(), Words{"peer rejected"});
      EXPECT_EQ((*end)->peer_mismatch(), PeerMismatch::kTransferSize);
      EXPECT_EQ((*end)->state(), State::kUnconnected);
    }
  }
}

TEST_F(PeerTest, NeverWithItself) {
  End a(*a_, OfVi());
  ASSERT_TRUE(Ask(*a_, a, "a", *a_, "a", 1, In(300 * kMilli)).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"timed out"});
}

TEST_F(PeerTest, TwoOfOneProcessWithOneAddress) {
  End a(*a_, OfVi()), b(*a_, OfVi());
  ASSERT_TRUE(Ask(*a_, a, "a", *a_, "a", 1).ok());
  ASSERT_TRUE(Ask(*a_, b, "a", *a_, "a", 2).ok());
  ExpectJoined(a, b);
}

TEST_F(PeerTest, FourWithOneAddressMakeTwoPairs) {
  End a(*a_, OfVi()), b(*a_, OfVi()), c(*a_, OfVi()), d(*a_, OfVi());
  uint64_t id = 0;
  for (End* end : {&a, &b, &c, &d}) ASSERT_TRUE(Ask(*a_, *end, "a", *a_, "a", ++id).ok());
  RunUntil([&] { return a.Heard() && b.Heard() && c.Heard() && d.Heard(); });
  for (End* end : {&a, &b, &c, &d}) EXPECT_EQ(end->Listen(), Words{"established"});
}

TEST_F(PeerTest, WhoAskedFirstIsMetFirst) {
  End first(*a_, OfVi()), second(*a_, OfVi()), b(*b_, OfVi());
  ASSERT_TRUE(Ask(*a_, first, "a", *b_, "b", 1).ok());
  ASSERT_TRUE(Ask(*a_, second, "a", *b_, "b", 2).ok());
  RunFor(50 * kMilli);
  ASSERT_TRUE(Ask(*b_, b, "b", *a_, "a", 3).ok());
  ExpectJoined(first, b);
  EXPECT_EQ(second->state(), State::kActivePending);
}

TEST_F(PeerTest, OtherSideDiesWhileItIsAnswered) {
  End a(*a_, OfVi());
  ASSERT_TRUE(Ask(*a_, a, "a", *b_, "b", 1, In(kSecond)).ok());
  RunFor(50 * kMilli);
  {
    End b(*b_, OfVi());
    ASSERT_TRUE(Ask(*b_, b, "b", *a_, "a", 2).ok());
    RunUntil([&] { return RequestTimes(2).size() != 0; });
  }  // b has gone before the answer came
  RunFor(100 * kMilli);
  if (a->state() == State::kActivePending) {
    End b(*b_, OfVi());
    ASSERT_TRUE(Ask(*b_, b, "b", *a_, "a", 3).ok());
    ExpectJoined(a, b);
  } else {
    EXPECT_EQ(a->state(), State::kDisconnected);  // it was connected for a moment
  }
}

TEST_F(PeerTest, DisconnectAndFreeEndIt) {
  End a(*a_, OfVi()), b(*b_, OfVi());
  ASSERT_TRUE(Ask(*a_, a, "a", *b_, "b", 1).ok());
  RunFor(10 * kMilli);
  ASSERT_TRUE(a->Disconnect(verbs::DisconnectMode::kAbrupt).ok());
  EXPECT_EQ(a.Listen(), Words{"disconnected"});
  ASSERT_TRUE(a->Reset().ok());
  ASSERT_TRUE(Ask(*b_, b, "b", *a_, "a", 2).ok());
  RunFor(kSecond);
  EXPECT_EQ(b->state(), State::kActivePending) << "nobody listens any more";
  ASSERT_TRUE(Ask(*a_, a, "a", *b_, "b", 1).ok());
  ExpectJoined(a, b);
}

// A stranger that says nothing has the first port of the partner's name, and our dial there is the
// one that would win.
TEST_F(PeerTest, ADialThatNobodyAnswersYieldsToThePartners) {
  struct Silent final : verbs::ListenerSink {
    void OnRequest(std::unique_ptr<verbs::IncomingConnection> request) override {
      kept.push_back(std::move(request));
    }
    std::vector<std::unique_ptr<verbs::IncomingConnection>> kept;
  } silent;
  auto listener = a_->context().Listen(a_->manager().PeerPortsOf(Name("a"))[0], &silent);
  ASSERT_TRUE(listener.ok());
  End a(*a_, OfVi()), b(*b_, OfVi());
  ASSERT_TRUE(Ask(*b_, b, "b", *a_, "a", 2).ok());
  RunFor(50 * kMilli);
  EXPECT_FALSE(silent.kept.empty());
  const verbs::Nanos asked = Now();
  ASSERT_TRUE(Ask(*a_, a, "a", *b_, "b", 1).ok());
  RunUntil([&] { return a.Heard() && b.Heard(); });
  EXPECT_LT(Now() - asked, 500 * kMilli);
  EXPECT_EQ(a.Listen(), Words{"established"});
  EXPECT_EQ(b.Listen(), Words{"established"});
}

// As between many processes of one host, each with a request for each other one.
TEST_F(PeerTest, OneWithoutAPortDialsItsPartner) {
  struct Stranger final : verbs::ListenerSink {
    void OnRequest(std::unique_ptr<verbs::IncomingConnection> request) override {
      request->Refuse();
    }
  } stranger;
  std::vector<std::unique_ptr<verbs::Listener>> taken;
  for (uint16_t port : a_->manager().PeerPortsOf(Name("a"))) {
    auto listener = a_->context().Listen(port, &stranger);
    ASSERT_TRUE(listener.ok());
    taken.push_back(*std::move(listener));
  }
  for (bool first : {true, false}) {
    SCOPED_TRACE(first);
    End a(*a_, OfVi()), b(*b_, OfVi());
    if (first) {
      ASSERT_TRUE(Ask(*a_, a, "a", *b_, "b", 1).ok());
    }
    ASSERT_TRUE(Ask(*b_, b, "b", *a_, "a", 2).ok());
    if (!first) {
      ASSERT_TRUE(Ask(*a_, a, "a", *b_, "b", 1).ok());
    }
    ExpectJoined(a, b);
  }
}

TEST_F(PeerTest, APartnerWhoseHostIsNotUpYetIsWaitedFor) {
  const verbs::Address third = verbs::Address::Parse("10.0.0.3").value();
  End a(*a_, OfVi());
  ASSERT_TRUE(Ask(*a_, a, "a", third, "c", 1).ok());
  RunFor(3 * kSecond);
  EXPECT_EQ(a->state(), State::kActivePending);
  Node node(simulation_);
  ASSERT_EQ(node.address(), third);
  End c(node, OfVi());
  ASSERT_TRUE(Ask(node, c, "c", a_->address(), "a", 2).ok());
  ExpectJoined(a, c);
}

TEST_F(PeerTest, WordThatIsNoneIsNoMismatch) {
  // Somebody answers a request for a peer with a difference that does not exist.
  struct Liar final : verbs::ListenerSink {
    void OnRequest(std::unique_ptr<verbs::IncomingConnection> request) override {
      ConnectionHeader header;
      header.kind = HeaderKind::kMismatch;
      header.mismatch = 77;
      request->Reject(EncodeHeader(header));
    }
  } liar;
  auto listener = b_->context().Listen(b_->manager().PeerPortsOf(Name("b"))[0], &liar);
  ASSERT_TRUE(listener.ok());
  End a(*a_, OfVi());
  ASSERT_TRUE(Ask(*a_, a, "a", *b_, "b", 1, In(kSecond)).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"peer rejected"});
  EXPECT_EQ(a->peer_mismatch(), PeerMismatch::kNone);
}

}  // namespace
}  // namespace viaduct::core
