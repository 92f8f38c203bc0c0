#include "dat/core/service_name.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "gtest/gtest.h"

namespace viaduct::core {
namespace {

constexpr uint16_t kBase = 61000;
constexpr uint16_t kRange = 4536;
using Ports = std::vector<uint16_t>;

ServiceName Name(const std::string& bytes) {
  return ServiceName::FromBytes(bytes.data(), bytes.size()).value();
}

TEST(ServiceName, AQualifierIsItsBigEndianDiscriminator) {
  const std::string bytes("\x01\x02\x03\x04\x05\x06\x07\x08", 8);
  EXPECT_EQ(ServiceName::FromQualifier(0x0102030405060708), Name(bytes));
  EXPECT_EQ(Name(bytes).qualifier(), 0x0102030405060708u);
  EXPECT_EQ(ServiceName::FromQualifier(~uint64_t{0}).qualifier(), ~uint64_t{0});
}

TEST(ServiceName, OnlyEightBytesAreAQualifier) {
  for (size_t size = 0; size <= kMaxNameBytes; ++size) {
    EXPECT_EQ(Name(std::string(size, 'x')).qualifier().has_value(), size == 8) << size;
    EXPECT_EQ(Name(std::string(size, 'x')).bytes(), std::string(size, 'x'));
  }
}

TEST(ServiceName, RefusesLongerNames) {
  const std::string bytes(300, 'x');
  for (size_t size = kMaxNameBytes + 1; size <= bytes.size(); ++size) {
    EXPECT_FALSE(ServiceName::FromBytes(bytes.data(), size)) << size;
  }
}

TEST(ServiceName, LengthAndContentTellNamesApart) {
  EXPECT_EQ(ServiceName(), *ServiceName::FromBytes(nullptr, 0));
  EXPECT_FALSE(Name("a") == Name(std::string("a\0", 2)));
  EXPECT_FALSE(Name("ab") == Name("ac"));
  const absl::flat_hash_set<ServiceName> names = {ServiceName(), Name("a"),
                                                  Name(std::string("a\0", 2)),
                                                  ServiceName::FromQualifier(0), Name("a")};
  EXPECT_EQ(names.size(), 4u);
  EXPECT_TRUE(names.contains(Name(std::string(8, '\0'))));
  EXPECT_FALSE(names.contains(Name(std::string(7, '\0'))));
}

TEST(ServiceName, UnprivilegedPortsAreDirect) {
  EXPECT_FALSE(ServiceName::FromQualifier(0).direct_port());
  EXPECT_FALSE(ServiceName::FromQualifier(1023).direct_port());
  EXPECT_EQ(ServiceName::FromQualifier(1024).direct_port(), 1024);
  EXPECT_EQ(ServiceName::FromQualifier(65535).direct_port(), 65535);
  EXPECT_FALSE(ServiceName::FromQualifier(65536).direct_port());
  EXPECT_FALSE(ServiceName::FromQualifier((uint64_t{1} << 32) + 4711).direct_port());
  EXPECT_FALSE(Name("port").direct_port());
  EXPECT_EQ(ServiceName::FromQualifier(45248).Ports(kBase, kRange), Ports{45248});
}

// Computed from FORMAT.md by another program. Other builds dial by these numbers: a change here
// is a change of the protocol.
TEST(ServiceName, PortsAreWhatTheFormatSays) {
  EXPECT_EQ(Name("").Ports(kBase, kRange),
            (Ports{63206, 61639, 64608, 63041, 61474, 64443, 62876, 61309, 64278, 62711, 61144,
                   64113, 62546, 65515, 63948, 62381}));
  EXPECT_EQ(Name("a").Ports(kBase, kRange),
            (Ports{64683, 63004, 61325, 64182, 62503, 65360, 63681, 62002, 64859, 63180, 61501,
                   64358, 62679, 61000, 63857, 62178}));
  EXPECT_EQ(ServiceName::FromQualifier(7).Ports(kBase, kRange),
            (Ports{65457, 63548, 61639, 64266, 62357, 64984, 63075, 61166, 63793, 61884, 64511,
                   62602, 65229, 63320, 61411, 64038}));
  EXPECT_EQ(ServiceName::FromQualifier(70000).Ports(kBase, kRange),
            (Ports{63995, 63562, 63129, 62696, 62263, 61830, 61397, 65500, 65067, 64634, 64201,
                   63768, 63335, 62902, 62469, 62036}));
  EXPECT_EQ(Name(std::string("\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17", 16)).Ports(kBase, kRange),
            (Ports{62878, 61497, 64652, 63271, 61890, 65045, 63664, 62283, 65438, 64057, 62676,
                   61295, 64450, 63069, 61688, 64843}));
  EXPECT_EQ(Name("a").Ports(65530, 100), (Ports{65535, 65530, 65531, 65532, 65533, 65534}));
}

TEST(ServiceName, PortsAreDistinctAndInRange) {
  for (uint16_t range : {1, 2, 15, 16, 17, 100, 997, 4536, 60000}) {
    for (int i = 0; i < 300; ++i) {
      const Ports ports = Name("name " + std::to_string(i)).Ports(5000, range);
      EXPECT_EQ(ports.size(), std::min<size_t>(16, range));
      EXPECT_EQ(std::set<uint16_t>(ports.begin(), ports.end()).size(), ports.size());
      for (uint16_t port : ports) {
        EXPECT_GE(port, 5000);
        EXPECT_LT(port, 5000 + range);
      }
    }
  }
  EXPECT_TRUE(Name("a").Ports(kBase, 0).empty());
  EXPECT_EQ(Name("a").Ports(kBase, kRange, 3).size(), 3u);
}

// Names that differ only in their last byte, as programs make them, spread over the ports.
TEST(ServiceName, SimilarNamesSpread) {
  std::map<uint16_t, int> first;
  int most = 0;
  for (uint64_t qualifier = 100000; qualifier < 101000; ++qualifier) {
    const Ports ports = ServiceName::FromQualifier(qualifier).Ports(kBase, kRange);
    most = std::max(most, ++first[ports[0]]);
  }
  EXPECT_GT(first.size(), 800u);  // of 1000 in 4536: 898 are expected of a random function
  EXPECT_LT(most, 8);
}

TEST(ServiceName, IsReadableInALog) {
  EXPECT_EQ(ServiceName::FromQualifier(45248).ToString(), "45248");
  EXPECT_EQ(ServiceName::FromQualifier(~uint64_t{0}).ToString(), "18446744073709551615");
  EXPECT_EQ(Name("\n\xff").ToString(), "0a:ff");
  EXPECT_EQ(ServiceName().ToString(), "empty");
}

}  // namespace
}  // namespace viaduct::core
