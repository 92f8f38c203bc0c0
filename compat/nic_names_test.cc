#include "compat/nic_names.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace viaduct::compat {
namespace {

verbs::Interface Make(const char* name, const char* address, bool loopback = false,
                      bool up = true) {
  verbs::Interface interface;
  interface.label = name;
  interface.name = interface.label.substr(0, interface.label.find(':'));
  interface.address = *verbs::Address::Parse(address);
  interface.loopback = loopback;
  interface.up = up;
  return interface;
}

class NicNamesTest : public ::testing::Test {
 protected:
  std::string AddressOf(const char* name) {
    const auto found = AddressOfNic(name, interfaces_, kDefault);
    return found ? found->ToString() : "none";
  }
  // Returns "address device" as chosen with this file, "none" or "not for us".
  std::string Choose(const char* name, const char* file, bool any = false) {
    const auto adapters = [&] {
      asked_for_adapters_ = true;
      return adapters_;
    };
    const auto names_device = [&](const std::string& asked) {
      return asked == "siw7" || asked == "siw0:1" || asked == "mlx5_0";
    };
    NicChoice choice;
    const core::Error error = ChooseNic(name, NicFile::Parse(file), any, interfaces_, kDefault,
                                        {adapters, names_device}, &choice);
    if (error.code == core::Code::kInsufficientResources) return "not for us";
    return error.ok() ? choice.address.ToString() + " " + choice.device : "none";
  }

  bool asked_for_adapters_ = false;
  const std::vector<verbs::RdmaAdapter> adapters_ = {
      {"siw0", "siw0", *verbs::Address::Parse("198.51.100.1")},
      {"mlx5_0:2", "mlx5_0", *verbs::Address::Parse("192.0.2.1")},
      {"six0", "six0", *verbs::Address::Parse("2001:db8::1")},
  };
  const verbs::Address kDefault = *verbs::Address::Parse("192.0.2.1");

  const std::vector<verbs::Interface> interfaces_ = {
      Make("lo", "127.0.0.1", /*loopback=*/true),
      Make("enp3s0", "2001:db8::1"),
      Make("enp3s0", "192.0.2.1"),
      Make("enp3s0", "192.0.2.3"),
      Make("enp3s0:1", "192.0.2.7"),
      Make("down0", "192.0.2.9", false, false),
      Make("wlan0", "198.51.100.1"),
  };
};

TEST_F(NicNamesTest, NamesOfTheDefaultNic) {
  for (const char* name : {"soft0", "nic0", "nic", "VINIC", "VINIC0", "/dev/clanvi0"}) {
    EXPECT_EQ(AddressOf(name), "192.0.2.1") << name;
  }
}

TEST_F(NicNamesTest, AnAliasIsTheInterface) {
  EXPECT_EQ(AddressOf("/dev/via_enp3s0:1"), "192.0.2.7");
  EXPECT_EQ(AddressOf("/dev/via_enp3s0"), "192.0.2.1");
  EXPECT_EQ(AddressOf("/dev/via_eth1"), "198.51.100.1");
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
  EXPECT_EQ(AddressOf("192.0.2.3"), "192.0.2.3");
  EXPECT_EQ(AddressOf("192.0.2.9"), "none") << "its interface is down";
  EXPECT_EQ(AddressOf("2001:db8::1"), "none") << "NIC addresses are IPv4";
}

TEST_F(NicNamesTest, InterfacesByNumber) {
  EXPECT_EQ(AddressOf("/dev/via_eth0"), "192.0.2.1");
  EXPECT_EQ(AddressOf("/dev/via_eth1"), "198.51.100.1");
  EXPECT_EQ(AddressOf("/dev/via_eth2"), "none");
  EXPECT_EQ(AddressOf("/dev/via_eth0001"), "198.51.100.1");
  EXPECT_EQ(AddressOf("/dev/via_eth00001"), "none") << "no device had so many digits";
  EXPECT_EQ(AddressOf("/dev/via_eth99999999999999999999"), "none");
}

// VIPL checklist C42.
TEST_F(NicNamesTest, WhatMeansNothingIsTheDefaultIfAnyNameGoes) {
  for (const char* name : {"", "gm0", "/dev/via_", "/dev/via_eth7", "203.0.113.1", "down0"}) {
    EXPECT_EQ(AddressOf(name), "none") << name;
    EXPECT_EQ(Choose(name, "", /*any=*/false), "none") << name;
    EXPECT_EQ(Choose(name, "", /*any=*/true), "192.0.2.1 auto") << name;
  }
}

TEST_F(NicNamesTest, TheFileComesFirst) {
  const char* file =
      "gm0 wlan0 iwarp\n"
      "nic0 198.51.100.1\n"
      "/dev/via_lo none\n"
      "clan0 default shm\n"
      "gone eth9\n"
      "away 203.0.113.1\n";
  EXPECT_EQ(Choose("gm0", file), "198.51.100.1 iwarp");
  EXPECT_EQ(Choose("nic0", file), "198.51.100.1 auto");
  EXPECT_EQ(Choose("/dev/via_lo", file), "none");
  EXPECT_EQ(Choose("clan0", file), "192.0.2.1 shm");
  EXPECT_EQ(Choose("gone", file, /*any=*/true), "none");
  EXPECT_EQ(Choose("away", file, /*any=*/true), "none");
  EXPECT_EQ(Choose("VINIC", file), "192.0.2.1 auto");
}

TEST_F(NicNamesTest, TheCatchAllTakesWhatMeansNothing) {
  EXPECT_EQ(Choose("whatever", "* wlan0 iwarp\n"), "198.51.100.1 iwarp");
  EXPECT_EQ(Choose("nic0", "* wlan0 iwarp\n"), "192.0.2.1 auto");
  EXPECT_EQ(Choose("whatever", "* none\n", /*any=*/true), "none");
}

TEST_F(NicNamesTest, AnRdmaAdapterIsANic) {
  EXPECT_EQ(Choose("siw0", ""), "198.51.100.1 siw0");
  EXPECT_EQ(Choose("siw0", "", /*any=*/true), "198.51.100.1 siw0");
  EXPECT_EQ(Choose("siw0", "* wlan0 iwarp\n"), "198.51.100.1 siw0");
  EXPECT_EQ(Choose("mlx5_0:2", ""), "192.0.2.1 mlx5_0");
  EXPECT_EQ(Choose("siw0", "siw0 default shm\n"), "192.0.2.1 shm");
  // NIC addresses are IPv4.
  EXPECT_EQ(Choose("six0", ""), "none");
}

// Opening another NIC in its place would surprise the program.
TEST_F(NicNamesTest, AnRdmaDeviceThatCannotBeUsedIsNoOtherNic) {
  for (const char* file : {"", "* wlan0 iwarp\n"}) {
    EXPECT_EQ(Choose("siw7", file, /*any=*/true), "not for us") << file;
  }
  EXPECT_EQ(Choose("siw7", "siw7 default shm\n"), "192.0.2.1 shm");
  EXPECT_EQ(Choose("siw8", "", /*any=*/true), "192.0.2.1 auto");
}

TEST_F(NicNamesTest, AnAdapterThatIsCalledOtherwiseIsNamed) {
  for (const auto& [name, line] :
       {std::pair("siw0:1", "\"siw0:1\", but it is called otherwise here: siw0\n"),
        std::pair("mlx5_0", "\"mlx5_0\", but it is called otherwise here: mlx5_0:2\n"),
        std::pair("siw7", "\"siw7\", but not for this process")}) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(Choose(name, ""), "not for us");
    EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr(line));
  }
}

TEST_F(NicNamesTest, OtherNamesDoNotLookForRdmaAdapters) {
  for (const char* name : {"nic0", "VINIC", "/dev/via_eth0", "/dev/via_lo", "wlan0", "192.0.2.1"}) {
    EXPECT_NE(Choose(name, ""), "none") << name;
  }
  EXPECT_EQ(Choose("gm0", "gm0 wlan0 iwarp\n"), "198.51.100.1 iwarp");
  EXPECT_FALSE(asked_for_adapters_);
}

TEST_F(NicNamesTest, ThisHostHasALoopbackNic) {
  NicChoice choice;
  ASSERT_TRUE(ChooseNic("/dev/via_lo", &choice).ok());
  EXPECT_EQ(choice.address.ToString(), "127.0.0.1");
  EXPECT_TRUE(ChooseNic("nic0", &choice).ok());
}

}  // namespace
}  // namespace viaduct::compat
