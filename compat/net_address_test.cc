#include "compat/net_address.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "gtest/gtest.h"

namespace viaduct::compat {
namespace {

constexpr NicAddress kNic = {192, 0, 2, 7, 0, 0};

// Holds an address at an odd offset, as the char buffers of programs may.
struct Buffer {
  unsigned char bytes[64];
  VIP_NET_ADDRESS* address() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes + 1); }
};

TEST(NetAddressTest, HasSixBytesInNetworkOrder) {
  EXPECT_EQ(NicAddressOf(*verbs::Address::Parse("192.0.2.7")), kNic);
}

TEST(NetAddressTest, WhatIsWrittenIsRead) {
  Buffer buffer;
  std::memset(buffer.bytes, 0xee, sizeof buffer.bytes);
  const char name[] = {'a', '\0', '\x7f', '\xff'};
  WriteNetAddress(kNic, absl::string_view(name, 4), buffer.address());
  EXPECT_TRUE(IsLocal(buffer.address(), kNic));
  EXPECT_EQ(HostOf(buffer.address())->ToString(), "192.0.2.7");
  EXPECT_EQ(DiscriminatorOf(buffer.address())->bytes(), absl::string_view(name, 4));
  EXPECT_EQ(buffer.bytes[1 + 4 + 6 + 4], 0xee) << "a byte beyond the discriminator was written";
}

TEST(NetAddressTest, NoDiscriminatorIsADiscriminator) {
  Buffer buffer;
  WriteNetAddress(kNic, absl::string_view(), buffer.address());
  EXPECT_EQ(DiscriminatorOf(buffer.address())->bytes().size(), 0u);
}

TEST(NetAddressTest, AHostAloneLeavesTheDiscriminator) {
  Buffer buffer;
  WriteNetAddress(NicAddress{}, "door", buffer.address());
  WriteHost(kNic, buffer.address());
  EXPECT_TRUE(IsLocal(buffer.address(), kNic));
  EXPECT_EQ(DiscriminatorOf(buffer.address())->bytes(), "door");
}

TEST(NetAddressTest, RefusesWhatIsNotAHost) {
  Buffer buffer;
  WriteNetAddress(kNic, "x", buffer.address());
  buffer.bytes[1] = 5;
  EXPECT_FALSE(HostOf(buffer.address()).has_value());
  EXPECT_FALSE(IsLocal(buffer.address(), kNic));
  WriteNetAddress(NicAddress{}, "x", buffer.address());
  EXPECT_FALSE(HostOf(buffer.address()).has_value());
}

TEST(NetAddressTest, ARouteIsBothNamesAndTheHost) {
  Buffer local, remote;
  WriteNetAddress(kNic, "mine", local.address());
  WriteNetAddress({192, 0, 2, 8, 0, 0}, "yours", remote.address());
  Route route;
  ASSERT_EQ(ReadRoute(local.address(), remote.address(), kNic, &route), VIP_SUCCESS);
  EXPECT_EQ(route.local_name.bytes(), "mine");
  EXPECT_EQ(route.remote_name.bytes(), "yours");
  EXPECT_EQ(route.remote_host.ToString(), "192.0.2.8");
  // Each of the names may be too long.
  const VIP_UINT16 fits = 4, longer = 17;
  for (Buffer* each : {&local, &remote}) {
    std::memcpy(each->bytes + 3, &longer, sizeof longer);
    EXPECT_EQ(ReadRoute(local.address(), remote.address(), kNic, &route), VIP_INVALID_PARAMETER);
    std::memcpy(each->bytes + 3, &fits, sizeof fits);
  }
  WriteNetAddress(NicAddress{}, "yours", remote.address());
  EXPECT_EQ(ReadRoute(local.address(), remote.address(), kNic, &route), VIP_INVALID_PARAMETER);
  WriteNetAddress({192, 0, 2, 8, 0, 0}, "mine", local.address());
  EXPECT_EQ(ReadRoute(local.address(), remote.address(), kNic, &route), VIP_INVALID_ADDRESS)
      << "comes first";
}

TEST(NetAddressTest, RefusesLongDiscriminators) {
  Buffer buffer = {};
  WriteNetAddress(kNic, "0123456789abcdef", buffer.address());
  EXPECT_TRUE(DiscriminatorOf(buffer.address()).has_value());
  const VIP_UINT16 length = 17;
  std::memcpy(buffer.bytes + 3, &length, sizeof length);
  EXPECT_FALSE(DiscriminatorOf(buffer.address()).has_value());
}

// If the length of the host is wrong, nothing is read where the discriminator would begin.
TEST(NetAddressTest, AMalformedHostIsReadNoFurther) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  constexpr size_t kForbidden = 128 * 1024;  // more than a length can say
  void* const pages =
      mmap(nullptr, page + kForbidden, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  unsigned char* const end = static_cast<unsigned char*>(pages) + page;
  ASSERT_EQ(mprotect(end, kForbidden, PROT_NONE), 0);
  auto* const address = reinterpret_cast<VIP_NET_ADDRESS*>(end - (4 + 6 + 4));
  WriteNetAddress(kNic, "name", address);
  EXPECT_TRUE(DiscriminatorOf(address).has_value());
  for (const VIP_UINT16 length : {60000, 7, 5, 0}) {
    std::memcpy(static_cast<void*>(address), &length, sizeof length);
    EXPECT_FALSE(DiscriminatorOf(address).has_value()) << length;
    EXPECT_FALSE(HostOf(address).has_value()) << length;
    EXPECT_FALSE(IsLocal(address, kNic)) << length;
  }
  munmap(pages, page + kForbidden);
}

TEST(NetAddressTest, AnotherInstanceIsAnotherNic) {
  Buffer buffer;
  WriteNetAddress({192, 0, 2, 7, 0, 1}, "x", buffer.address());
  EXPECT_FALSE(IsLocal(buffer.address(), kNic));
}

TEST(NetAddressTest, APortIsItsQualifierInBigEndianForm) {
  EXPECT_EQ(NameOfPort(0xb0c0).bytes(), absl::string_view("\0\0\0\0\0\0\xb0\xc0", 8));
}

}  // namespace
}  // namespace viaduct::compat
