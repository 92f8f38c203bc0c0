#include "compat/nic_names.h"

#include "gtest/gtest.h"

namespace viaduct::compat {
namespace {

verbs::Interface Make(const char* name, const char* address, bool loopback = false,
                      bool up = true) {
  verbs::Interface interface;
  interface.name = name;
  interface.address = *verbs::Address::Parse(address);
  interface.loopback = loopback;
  interface.up = up;
  return interface;
}

class NicNamesTest : public ::testing::Test {
 protected:
  std::string AddressOf(const char* name, bool any = false) {
    const auto found = AddressOfNic(name, any, interfaces_, *verbs::Address::Parse("192.0.2.1"));
    return found ? found->ToString() : "none";
  }

  const std::vector<verbs::Interface> interfaces_ = {
      Make("lo", "127.0.0.1", /*loopback=*/true),
      Make("enp3s0", "192.0.2.1"),
      Make("enp3s0", "2001:db8::1"),
      Make("down0", "192.0.2.9", false, false),
      Make("wlan0", "198.51.100.1"),
  };
};

TEST_F(NicNamesTest, NamesOfTheDefaultNic) {
  for (const char* name : {"soft0", "nic0", "nic", "VINIC", "VINIC0", "/dev/clanvi0"}) {
    EXPECT_EQ(AddressOf(name), "192.0.2.1") << name;
  }
}

TEST_F(NicNamesTest, Loopback) {
  EXPECT_EQ(AddressOf("/dev/via_lo"), "127.0.0.1");
  EXPECT_EQ(AddressOf("/etc/via_lo"), "127.0.0.1");
}

TEST_F(NicNamesTest, InterfacesByName) {
  EXPECT_EQ(AddressOf("/dev/via_wlan0"), "198.51.100.1");
  EXPECT_EQ(AddressOf("/dev/via_enp3s0"), "192.0.2.1");
  EXPECT_EQ(AddressOf("wlan0"), "198.51.100.1");
  EXPECT_EQ(AddressOf("198.51.100.1"), "198.51.100.1");
}

TEST_F(NicNamesTest, InterfacesByNumber) {
  EXPECT_EQ(AddressOf("/dev/via_eth0"), "192.0.2.1");
  EXPECT_EQ(AddressOf("/dev/via_eth1"), "198.51.100.1");
  EXPECT_EQ(AddressOf("/dev/via_eth2"), "none");
}

// VIPL checklist C42.
TEST_F(NicNamesTest, WhatMeansNothingIsTheDefaultIfAnyNameGoes) {
  for (const char* name : {"", "gm0", "/dev/via_", "/dev/via_eth7", "203.0.113.1", "down0"}) {
    EXPECT_EQ(AddressOf(name), "none") << name;
    EXPECT_EQ(AddressOf(name, /*any=*/true), "192.0.2.1") << name;
  }
}

TEST_F(NicNamesTest, ThisHostHasALoopbackNic) {
  EXPECT_EQ(AddressOfNic("/dev/via_lo")->ToString(), "127.0.0.1");
  EXPECT_TRUE(AddressOfNic("nic0").has_value());
}

}  // namespace
}  // namespace viaduct::compat
