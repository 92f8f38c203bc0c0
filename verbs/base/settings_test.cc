#include "verbs/base/settings.h"

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Sets a variable for the length of a test.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~ScopedVariable() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(Settings, TableAndIdsAgree) {
  EXPECT_STREQ(GetSetting(SettingId::kLog).name, "VIADUCT_LOG");
  EXPECT_STREQ(GetSetting(SettingId::kWire).name, "VIADUCT_WIRE");
  EXPECT_STREQ(GetSetting(SettingId::kListen).name, "VIADUCT_LISTEN");
  EXPECT_STREQ(GetSetting(SettingId::kPortBase).name, "VIADUCT_PORT_BASE");
  EXPECT_STREQ(GetSetting(SettingId::kPortCount).name, "VIADUCT_PORT_COUNT");
  EXPECT_STREQ(GetSetting(SettingId::kGraceMs).name, "VIADUCT_GRACE_MS");
  EXPECT_STREQ(GetSetting(SettingId::kDatGraceMs).name, "VIADUCT_DAT_GRACE_MS");
  EXPECT_STREQ(GetSetting(SettingId::kSpinUs).name, "VIADUCT_SPIN_US");
  EXPECT_STREQ(GetSetting(SettingId::kSilenceMs).name, "VIADUCT_SILENCE_MS");
  EXPECT_STREQ(GetSetting(SettingId::kCrc).name, "VIADUCT_CRC");
  EXPECT_STREQ(GetSetting(SettingId::kFirstWordMs).name, "VIADUCT_FIRST_WORD_MS");
  EXPECT_STREQ(GetSetting(SettingId::kWindows).name, "VIADUCT_WINDOWS");
  EXPECT_STREQ(GetSetting(SettingId::kNicNames).name, "VIADUCT_NIC_NAMES");
  EXPECT_STREQ(GetSetting(SettingId::kLocalHost).name, "VIADUCT_LOCAL_HOST");
  EXPECT_STREQ(GetSetting(SettingId::kImmediate).name, "VIADUCT_IMMEDIATE");
  EXPECT_STREQ(GetSetting(SettingId::kVipHosts).name, "VIADUCT_VIP_HOSTS");
  EXPECT_STREQ(GetSetting(SettingId::kVipNics).name, "VIADUCT_VIP_NICS");
  EXPECT_STREQ(GetSetting(SettingId::kDatOverride).name, "DAT_OVERRIDE");
  EXPECT_STREQ(GetSetting(SettingId::kOfedEntries).name, "VIADUCT_OFED_ENTRIES");
  EXPECT_STREQ(GetSetting(SettingId::kQueueEmpty).name, "VIADUCT_QUEUE_EMPTY");
  EXPECT_STREQ(GetSetting(SettingId::kShortList).name, "VIADUCT_SHORT_LIST");
  EXPECT_STREQ(GetSetting(SettingId::kDatDebug).name, "DAT_DBG_TYPE");
  EXPECT_STREQ(GetSetting(SettingId::kDaplDebug).name, "DAPL_DBG_TYPE");
  EXPECT_EQ(AllSettings().size(), static_cast<size_t>(SettingId::kDaplDebug) + 1);
}

TEST(Settings, EveryDefaultIsValid) {
  for (const Setting& setting : AllSettings()) {
    const std::string entry = std::string(setting.name) + "=" + setting.default_value;
    const char* environment[] = {entry.c_str()};
    EXPECT_THAT(SettingProblems(environment), IsEmpty()) << entry;
    EXPECT_NE(std::string(setting.help), "");
  }
}

TEST(Settings, DefaultsApplyWithoutVariables) {
  EXPECT_EQ(ChoiceSetting(SettingId::kWire), "auto");
  EXPECT_EQ(NumberSetting(SettingId::kPortBase), 61000);
  EXPECT_EQ(NumberSetting(SettingId::kPortCount), 4536);
  EXPECT_EQ(NumberSetting(SettingId::kGraceMs), 250);
  EXPECT_EQ(NumberSetting(SettingId::kSilenceMs), 10000);
  EXPECT_EQ(ChoiceSetting(SettingId::kCrc), "on");
  EXPECT_EQ(PathSetting(SettingId::kVipHosts), "/etc/vip_hosts");
  EXPECT_EQ(PathSetting(SettingId::kDatOverride), "");
  EXPECT_EQ(NumberOrAutoSetting(SettingId::kSpinUs), std::nullopt);
}

TEST(Settings, TheEnvironmentIsReadAnew) {
  ScopedVariable wire("VIADUCT_WIRE", "iwarp");
  ScopedVariable grace("VIADUCT_GRACE_MS", "7");
  ScopedVariable spin("VIADUCT_SPIN_US", "0");
  EXPECT_EQ(ChoiceSetting(SettingId::kWire), "iwarp");
  EXPECT_EQ(NumberSetting(SettingId::kGraceMs), 7);
  EXPECT_EQ(NumberOrAutoSetting(SettingId::kSpinUs), 0);
}

TEST(Settings, MasksAreDecimalOrHexadecimal) {
  EXPECT_EQ(MaskSetting(SettingId::kDaplDebug), std::nullopt);
  EXPECT_FALSE(IsGiven(SettingId::kDaplDebug));
  for (const char* text : {"255", "0xff", "0xFF"}) {
    ScopedVariable mask("DAPL_DBG_TYPE", text);
    EXPECT_EQ(MaskSetting(SettingId::kDaplDebug), 255u) << text;
    EXPECT_TRUE(IsGiven(SettingId::kDaplDebug));
  }
  ScopedVariable all("DAT_DBG_TYPE", "0xffffffff");
  EXPECT_EQ(MaskSetting(SettingId::kDatDebug), UINT32_MAX);
  ScopedVariable most("DAPL_DBG_TYPE", "all");
  EXPECT_EQ(MaskSetting(SettingId::kDaplDebug), std::nullopt);
  EXPECT_FALSE(IsGiven(SettingId::kDaplDebug));
  EXPECT_THAT(SettingProblems(),
              ElementsAre("DAPL_DBG_TYPE: \"all\" is not a mask of bits; nothing is used"));
}

TEST(Settings, InvalidValuesLeaveTheDefault) {
  ScopedVariable wire("VIADUCT_WIRE", "token-ring");
  ScopedVariable base("VIADUCT_PORT_BASE", "80");
  ScopedVariable grace("VIADUCT_GRACE_MS", "soon");
  EXPECT_EQ(ChoiceSetting(SettingId::kWire), "auto");
  EXPECT_EQ(NumberSetting(SettingId::kPortBase), 61000);
  EXPECT_EQ(NumberSetting(SettingId::kGraceMs), 250);
  EXPECT_THAT(SettingProblems(),
              ::testing::UnorderedElementsAre(
                  AllOf(HasSubstr("VIADUCT_WIRE"), HasSubstr("is not one of auto|shm|iwarp")),
                  AllOf(HasSubstr("VIADUCT_PORT_BASE"),
                        HasSubstr("\"80\" is not a number in 1024..65535;")),
                  AllOf(HasSubstr("VIADUCT_GRACE_MS"), HasSubstr("250 is used"))));
}

TEST(Settings, WhatIsExpectedDependsOnTheKind) {
  const char* environment[] = {"VIADUCT_VIP_HOSTS=", "VIADUCT_SILENCE_MS=-4", "VIADUCT_SPIN_US=x"};
  EXPECT_THAT(
      SettingProblems(environment),
      ElementsAre("VIADUCT_VIP_HOSTS: \"\" is not a path; /etc/vip_hosts is used",
                  "VIADUCT_SILENCE_MS: \"-4\" is not a number in 100..3600000; 10000 is used",
                  "VIADUCT_SPIN_US: \"x\" is not a number in 0..1000000 or auto; auto is used"));
}

TEST(Settings, MorePortsNeedALowerFirstOne) {
  const char* count[] = {"VIADUCT_PORT_COUNT=8000"};
  EXPECT_THAT(SettingProblems(count),
              ElementsAre("VIADUCT_PORT_COUNT: there are only 4536 of 8000 ports, as "
                          "VIADUCT_PORT_BASE is 61000"));
  const char* fewer[] = {"VIADUCT_PORT_BASE=62000"};  // nobody has asked for a number
  EXPECT_THAT(SettingProblems(fewer), IsEmpty());
  const char* base[] = {"VIADUCT_PORT_BASE=65535"};
  EXPECT_THAT(SettingProblems(base), ElementsAre(HasSubstr("only 1 of 4536")));
  const char* both[] = {"VIADUCT_PORT_BASE=50000", "VIADUCT_PORT_COUNT=8000"};
  EXPECT_THAT(SettingProblems(both), IsEmpty());
}

TEST(Settings, NoneIsReadByAProgramWithMoreRights) {
  const char* environment[] = {"PATH=/bin", "VIADUCT_WIRE=shm", "VIADUCT_WIER=shm"};
  EXPECT_THAT(SettingProblems(environment, /*privileged=*/true),
              ElementsAre(AllOf(HasSubstr("VIADUCT_WIRE: not read"), HasSubstr("more rights")),
                          HasSubstr("VIADUCT_WIER: no such setting")));
}

TEST(Settings, MisspeltNamesAreFoundAndForeignOnesLeftAlone) {
  const char* environment[] = {"PATH=/bin",
                               "VIADUCT_WIER=shm",
                               "VIP_LOG=1",
                               "DAT_OVERRIDE=/d",
                               "DAT_OVERIDE=/d",
                               "DAT_DBG_TYPE=1",
                               "DAPL_DBG_TYPE=0xff",
                               "VIADUCT",
                               "=odd",
                               "VIADUCT_SEED=7",
                               "VIADUCT_RDMA_ADDRESS=10.9.0.1",
                               "VIADUCT_OPTIMIZED=1"};
  EXPECT_THAT(SettingProblems(environment),
              ElementsAre(AllOf(HasSubstr("VIADUCT_WIER"), HasSubstr("VIADUCT_WIRE is one")),
                          HasSubstr("VIP_LOG"), HasSubstr("DAT_OVERIDE")));
}

}  // namespace
}  // namespace viaduct::verbs
