#include "verbs/base/address.h"

#include <arpa/inet.h>

#include <cstring>

#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

TEST(Address, StartsUnspecified) {
  Address address;
  EXPECT_EQ(address.family(), AF_UNSPEC);
  EXPECT_TRUE(address.IsUnspecified());
  EXPECT_FALSE(address.IsLoopback());
  EXPECT_EQ(address.v4(), 0u);
  EXPECT_EQ(address.ToString(), "unspecified");
  EXPECT_EQ(address, Address());
  sockaddr_storage storage;
  EXPECT_EQ(address.ToSockaddr(7, &storage), 0u);
}

TEST(Address, V4TakesHostOrder) {
  Address address = Address::V4(0xc0000201);
  EXPECT_EQ(address.ToString(), "192.0.2.1");
  EXPECT_EQ(address.v4(), 0xc0000201u);
  EXPECT_NE(address, Address());
  EXPECT_NE(address, Address::V4(0xc0000202));
}

TEST(Address, ParsesNumbersOfBothFamilies) {
  EXPECT_EQ(Address::Parse("192.0.2.1"), Address::V4(0xc0000201));
  std::optional<Address> v6 = Address::Parse("2001:db8::1");
  ASSERT_TRUE(v6.has_value());
  EXPECT_EQ(v6->family(), AF_INET6);
  EXPECT_EQ(v6->v4(), 0u);
  EXPECT_EQ(v6->ToString(), "2001:db8::1");
}

// DAT's own header makes such addresses on Linux.
TEST(Address, IPv4MappedIsIPv4) {
  EXPECT_EQ(Address::Parse("::ffff:192.0.2.1"), Address::V4(0xc0000201));
  EXPECT_TRUE(Address::Parse("::ffff:127.0.0.1")->IsLoopback());
  sockaddr_in6 mapped = {};
  mapped.sin6_family = AF_INET6;
  ASSERT_EQ(inet_pton(AF_INET6, "0:0:0:0:0:FFFF:192.0.2.1", &mapped.sin6_addr), 1);
  EXPECT_EQ(Address::FromSockaddr(reinterpret_cast<const sockaddr*>(&mapped), sizeof(mapped)),
            Address::V4(0xc0000201));
  mapped.sin6_addr.s6_addr[10] = 0;
  EXPECT_EQ(
      Address::FromSockaddr(reinterpret_cast<const sockaddr*>(&mapped), sizeof(mapped))->family(),
      AF_INET6);
}

TEST(Address, RefusesAnythingElse) {
  for (const char* text :
       {"", "localhost", "192.0.2", "192.0.2.1:80", " 192.0.2.1", "2001:db8::g", "256.0.0.1"}) {
    EXPECT_FALSE(Address::Parse(text).has_value()) << text;
  }
  EXPECT_FALSE(Address::Parse(absl::string_view("192.0.2.1\0x", 11)).has_value());
}

TEST(Address, KnowsLoopbackAndUnspecified) {
  EXPECT_TRUE(Address::Parse("127.0.0.1")->IsLoopback());
  EXPECT_TRUE(Address::Parse("127.9.8.7")->IsLoopback());
  EXPECT_TRUE(Address::Parse("::1")->IsLoopback());
  EXPECT_FALSE(Address::Parse("128.0.0.1")->IsLoopback());
  EXPECT_TRUE(Address::Parse("0.0.0.0")->IsUnspecified());
  EXPECT_TRUE(Address::Parse("::")->IsUnspecified());
  EXPECT_FALSE(Address::Parse("::1")->IsUnspecified());
}

// Two interfaces may have the same link-local address.
TEST(Address, ShowsItsScope) {
  sockaddr_in6 link_local = {};
  link_local.sin6_family = AF_INET6;
  link_local.sin6_addr.s6_addr[0] = 0xfe;
  link_local.sin6_addr.s6_addr[1] = 0x80;
  link_local.sin6_addr.s6_addr[15] = 1;
  link_local.sin6_scope_id = 2;
  const auto* any = reinterpret_cast<const sockaddr*>(&link_local);
  EXPECT_EQ(Address::FromSockaddr(any, sizeof link_local)->ToString(), "fe80::1%2");
}

TEST(Address, GoesThroughSockaddrAndBack) {
  for (const char* text : {"192.0.2.1", "2001:db8::1"}) {
    Address address = *Address::Parse(text);
    sockaddr_storage storage;
    socklen_t length = address.ToSockaddr(4660, &storage);
    ASSERT_GT(length, 0u);
    uint16_t port;
    std::memcpy(&port, storage.__ss_padding, sizeof(port));  // both families keep it there
    EXPECT_EQ(ntohs(port), 4660);
    std::optional<Address> back =
        Address::FromSockaddr(reinterpret_cast<sockaddr*>(&storage), length);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(*back, address) << "the port is no part of an address";
    EXPECT_FALSE(Address::FromSockaddr(reinterpret_cast<sockaddr*>(&storage), length - 1));
  }
}

TEST(Address, RefusesForeignAndTruncatedStructures) {
  sockaddr_storage storage = {};
  storage.ss_family = AF_UNIX;
  EXPECT_FALSE(Address::FromSockaddr(reinterpret_cast<sockaddr*>(&storage), sizeof(storage)));
  EXPECT_FALSE(Address::FromSockaddr(reinterpret_cast<sockaddr*>(&storage), 1));
  EXPECT_FALSE(Address::FromSockaddr(nullptr, sizeof(storage)));
}

TEST(Address, DataShowsPortZero) {
  sockaddr_in from = {};
  from.sin_family = AF_INET;
  from.sin_port = htons(80);
  from.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::optional<Address> address =
      Address::FromSockaddr(reinterpret_cast<sockaddr*>(&from), sizeof(from));
  ASSERT_TRUE(address.has_value());
  sockaddr_in shown;
  std::memcpy(&shown, address->data(), sizeof(shown));
  EXPECT_EQ(shown.sin_port, 0);
  EXPECT_EQ(shown.sin_addr.s_addr, from.sin_addr.s_addr);
}

}  // namespace
}  // namespace viaduct::verbs
