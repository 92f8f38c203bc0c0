#include "dat/core/peer_match.h"

#include "gtest/gtest.h"

namespace viaduct::core {
namespace {

using verbs::Address;

const Address kLow = Address::V4(0x0a000001), kHigh = Address::V4(0x0a000002);

ServiceName Name(const char* text) { return *ServiceName::FromBytes(text, 1); }

EndpointProfile Profile() {
  EndpointProfile profile;
  profile.any = false;
  profile.reliability = 2;
  profile.max_transfer_size = 4096;
  return profile;
}

PeerRequest Own() {
  PeerRequest own;
  own.id = 7;
  own.address = kLow;
  own.name = Name("a");
  own.wanted_address = kHigh;
  own.wanted_name = Name("b");
  own.profile = Profile();
  return own;
}

ConnectionHeader Other() {
  ConnectionHeader header;
  header.kind = HeaderKind::kViplPeerRequest;
  header.remote = Name("a");
  header.local = Name("b");
  header.profile = Profile();
  header.peer_id = 8;
  return header;
}

TEST(PeerMatchTest, EachNamesTheOther) {
  EXPECT_TRUE(BelongTogether(Own(), kHigh, Other()));
  EXPECT_FALSE(BelongTogether(Own(), kLow, Other())) << "another host";
  ConnectionHeader other = Other();
  other.local = Name("c");
  EXPECT_FALSE(BelongTogether(Own(), kHigh, other));
  other = Other();
  other.remote = Name("c");
  EXPECT_FALSE(BelongTogether(Own(), kHigh, other));
  other = Other();
  other.kind = HeaderKind::kViplRequest;
  EXPECT_FALSE(BelongTogether(Own(), kHigh, other)) << "VipConnectRequest is not for a peer";
}

TEST(PeerMatchTest, TheLoopbackAddressIsThisHost) {
  PeerRequest own = Own();
  own.wanted_address = Address::V4(0x7f000001);
  EXPECT_TRUE(BelongTogether(own, kLow, Other()));
  EXPECT_TRUE(BelongTogether(own, own.wanted_address, Other()));
  EXPECT_FALSE(BelongTogether(own, kHigh, Other()));
}

// VIPL checklist C40.
TEST(PeerMatchTest, NobodyMatchesHimself) {
  PeerRequest own = Own();
  own.wanted_address = own.address;
  own.wanted_name = own.name;
  ConnectionHeader echo = Other();
  echo.remote = echo.local = own.name;
  echo.peer_id = own.id;
  EXPECT_FALSE(BelongTogether(own, own.address, echo));
  echo.peer_id = own.id + 1;
  EXPECT_TRUE(BelongTogether(own, own.address, echo)) << "another VI with the same addresses";
}

TEST(PeerMatchTest, FirstDifferenceCounts) {
  EndpointProfile other = Profile();
  EXPECT_EQ(Compare(Profile(), other), PeerMismatch::kNone);
  other.qos = 1;
  EXPECT_EQ(Compare(Profile(), other), PeerMismatch::kQos);
  other.max_transfer_size = 1;
  EXPECT_EQ(Compare(Profile(), other), PeerMismatch::kTransferSize);
  other.reliability = 4;
  EXPECT_EQ(Compare(Profile(), other), PeerMismatch::kReliability);
  other.rdma_read_enabled = false;
  EXPECT_EQ(Compare(other, Profile()), PeerMismatch::kReliability);
}

TEST(PeerMatchTest, BothSidesSeeOneWinner) {
  PeerRequest a = Own(), b = Own();
  for (uint64_t id : {uint64_t{6}, uint64_t{8}}) {
    for (const Address& address : {kLow, kHigh}) {
      b.id = id;
      b.address = address;
      EXPECT_NE(DialWins(a, b.address, b.id), DialWins(b, a.address, a.id));
    }
  }
  b.id = 8;
  b.address = kLow;
  EXPECT_FALSE(DialWins(a, b.address, b.id)) << "the larger id";
  b.id = 6;
  b.address = kHigh;
  EXPECT_FALSE(DialWins(a, b.address, b.id)) << "the larger address, whatever the ids";
}

}  // namespace
}  // namespace viaduct::core
