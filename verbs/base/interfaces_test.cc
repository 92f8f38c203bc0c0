#include "verbs/base/interfaces.h"

#include <net/if.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "verbs/base/no_descriptors.h"

namespace viaduct::verbs {
namespace {

const Address kLocalHost = Address::V4(0x7f000001);

Interfaces All() {
  const std::optional<Interfaces> all = ListInterfaces();
  EXPECT_TRUE(all.has_value());
  return all.value_or(Interfaces());
}

TEST(Interfaces, ListsTheLoopback) {
  const Interfaces all = All();
  const auto loopback = std::find_if(all.begin(), all.end(), [](const Interface& interface) {
    return interface.address == kLocalHost;
  });
  ASSERT_NE(loopback, all.end());
  EXPECT_EQ(loopback->name, "lo");
  EXPECT_TRUE(loopback->loopback);
  EXPECT_TRUE(loopback->up);
  EXPECT_EQ(InterfaceAddress(all, "lo"), kLocalHost);
}

TEST(Interfaces, EachIsWhatTheKernelSays) {
  const Interfaces all = All();
  for (const Interface& interface : all) {
    SCOPED_TRACE(absl::StrCat(interface.name, " ", interface.address.ToString()));
    EXPECT_EQ(interface.index, if_nametoindex(interface.name.c_str()));
    EXPECT_NE(interface.index, 0u);
    EXPECT_FALSE(interface.address.IsUnspecified());
    EXPECT_TRUE(interface.loopback || !interface.address.IsLoopback());
    EXPECT_TRUE(InterfaceAddress(all, interface.name));
  }
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_LE(all[i - 1].index, all[i].index);
    if (all[i - 1].index != all[i].index) continue;
    EXPECT_FALSE(all[i - 1].address.family() == AF_INET6 && all[i].address.family() == AF_INET);
  }
}

// For where a filter of system calls refuses netlink, as systemd's RestrictAddressFamilies does.
TEST(Interfaces, ThoseWithIpv4AreKnownWithoutNetlink) {
  Interfaces expected = All();
  std::erase_if(expected,
                [](const Interface& interface) { return interface.address.family() != AF_INET; });
  const std::optional<Interfaces> found = internal::ListIpv4Interfaces();
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ((*found)[i].name, expected[i].name);
    EXPECT_EQ((*found)[i].index, expected[i].index);
    EXPECT_EQ((*found)[i].address, expected[i].address);
    EXPECT_EQ((*found)[i].loopback, expected[i].loopback);
    EXPECT_EQ((*found)[i].up, expected[i].up);
  }
}

TEST(Interfaces, AnAliasHasItsOwnAddress) {
  Interface alias, own, six;
  alias.name = own.name = own.label = six.name = six.label = "eth0";
  alias.label = "eth0:1";
  alias.address = *Address::Parse("192.0.2.1");
  own.address = *Address::Parse("192.0.2.2");
  six.address = *Address::Parse("2001:db8::1");
  EXPECT_EQ(InterfaceAddress({alias, own, six}, "eth0:1"), alias.address);
  EXPECT_EQ(InterfaceAddress({alias, own, six}, "eth0"), own.address);
  EXPECT_EQ(InterfaceAddress({alias, six}, "eth0"), alias.address);
  EXPECT_EQ(InterfaceAddress({six}, "eth0"), six.address);
}

TEST(Interfaces, UnknownNamesHaveNoAddress) {
  const Interfaces all = All();
  EXPECT_FALSE(InterfaceAddress(all, "no-such-one"));
  EXPECT_FALSE(InterfaceAddress(all, ""));
  EXPECT_FALSE(InterfaceAddress(all, "lo "));
}

TEST(Interfaces, WithoutADescriptorNobodyKnows) {
  const Interfaces all = All();
  std::optional<Interfaces> listed;
  std::optional<Address> by_default;
  {
    const NoDescriptors none;
    listed = ListInterfaces();
    by_default = DefaultAddress(all);
  }
  EXPECT_FALSE(listed.has_value());
  EXPECT_FALSE(by_default.has_value());
}

TEST(Interfaces, TheDefaultIsAnIpv4AddressOfThisHost) {
  const Interfaces all = All();
  const Address address = *DefaultAddress(all);
  EXPECT_EQ(address.family(), AF_INET);
  EXPECT_TRUE(address == kLocalHost || HasAddress(all, address));
}

TEST(Interfaces, KnowWhoseAddressItIs) {
  const Interfaces all = All();
  EXPECT_TRUE(HasAddress(all, kLocalHost));
  EXPECT_FALSE(HasAddress(all, Address::V4(0xc0000201))) << "192.0.2.1 is nobody's";
}

constexpr char kTitle[] =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT   \n";

std::string Route(const char* name, const char* destination, const char* flags, int metric,
                  const char* mask) {
  return absl::StrCat(name, "\t", destination, "\t010200C0\t", flags, "\t0\t0\t", metric, "\t",
                      mask, "\t0\t0\t0      \n");
}

TEST(DefaultRoute, IsTheOneToEverywhere) {
  EXPECT_EQ(internal::DefaultRouteInterface(
                absl::StrCat(kTitle, Route("eth0", "000200C0", "0001", 0, "00FFFFFF"),
                             Route("wlan0", "00000000", "0003", 600, "00000000"))),
            "wlan0");
}

TEST(DefaultRoute, IsTheOneOfLeastMetricAndOfEqualOnesTheFirst) {
  EXPECT_EQ(internal::DefaultRouteInterface(
                absl::StrCat(kTitle, Route("a", "00000000", "0003", 600, "00000000"),
                             Route("b", "00000000", "0003", 100, "00000000"),
                             Route("c", "00000000", "0003", 100, "00000000"))),
            "b");
}

TEST(DefaultRoute, MayHaveAMetricThatLooksNegative) {
  const std::string last = Route("last", "00000000", "0003", -1, "00000000");
  EXPECT_EQ(internal::DefaultRouteInterface(absl::StrCat(kTitle, last)), "last");
  EXPECT_EQ(internal::DefaultRouteInterface(
                absl::StrCat(kTitle, last, Route("b", "00000000", "0003", 100, "00000000"))),
            "b");
}

TEST(DefaultRoute, IsUpAndNotARefusal) {
  EXPECT_EQ(internal::DefaultRouteInterface(
                absl::StrCat(kTitle, Route("down", "00000000", "0002", 0, "00000000"),
                             Route("*", "00000000", "0201", 0, "00000000"),
                             Route("half", "00000000", "0001", 0, "00000080"),
                             Route("tun0", "00000000", "0001", 9, "00000000"))),
            "tun0");
}

TEST(DefaultRoute, MayBeMissing) {
  EXPECT_EQ(internal::DefaultRouteInterface(""), "");
  EXPECT_EQ(internal::DefaultRouteInterface(kTitle), "");
  EXPECT_EQ(internal::DefaultRouteInterface("eth0\t00000000\t0\n\n \t\neth0 x y z 0 0 q w\n"), "");
  EXPECT_EQ(internal::DefaultRouteInterface(
                absl::StrCat(kTitle, Route("eth0", "000200C0", "0001", 0, "00FFFFFF"))),
            "");
}

}  // namespace
}  // namespace viaduct::verbs
