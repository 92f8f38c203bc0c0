#include "compat/name_service.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>

#include "gtest/gtest.h"

namespace {
int g_name_error = 0;
int g_address_error = EAI_NONAME;
std::vector<const char*> g_addresses;
}  // namespace

// In place of libc's, so that no test here asks the machine's own resolver.
extern "C" int getnameinfo(const sockaddr*, socklen_t, char* host, socklen_t size, char*, socklen_t,
                           int) {
  if (g_name_error == 0) snprintf(host, size, "asked");
  return g_name_error;
}
extern "C" int getaddrinfo(const char*, const char*, const addrinfo*, addrinfo** found) {
  static addrinfo infos[4];
  static sockaddr_in addresses[4];
  if (g_address_error != 0) return g_address_error;
  for (size_t i = 0; i < g_addresses.size(); ++i) {
    addresses[i] = {};
    addresses[i].sin_family = AF_INET;
    inet_pton(AF_INET, g_addresses[i], &addresses[i].sin_addr);
    infos[i] = {};
    infos[i].ai_addr = reinterpret_cast<sockaddr*>(&addresses[i]);
    infos[i].ai_addrlen = sizeof addresses[i];
    infos[i].ai_next = i + 1 < g_addresses.size() ? &infos[i + 1] : nullptr;
  }
  *found = infos;
  return 0;
}
extern "C" void freeaddrinfo(addrinfo*) {}

namespace viaduct::compat {
namespace {

constexpr NicAddress kOwn = {192, 0, 2, 1, 0, 0};
constexpr NicAddress kOther = {192, 0, 2, 2, 0, 0};
constexpr NicAddress kLoopback = {127, 0, 0, 1, 0, 0};

HostIdentity Self(const std::string& name) { return {name, kOwn}; }

TEST(NameServiceTest, BothOrdersOfColumns) {
  const HostsFile file = HostsFile::Parse(
      "# hosts\n"
      "192.0.2.1 alpha a # first\n"
      "\n"
      "beta 192.0.2.2 b\n"
      "nonsense\n"
      "two words\n");
  EXPECT_EQ(file.AddressesOf("alpha"), std::vector<NicAddress>{kOwn});
  EXPECT_EQ(file.AddressesOf("a"), std::vector<NicAddress>{kOwn});
  EXPECT_EQ(file.AddressesOf("beta"), std::vector<NicAddress>{kOther});
  EXPECT_EQ(file.AddressesOf("B"), std::vector<NicAddress>{kOther});
  EXPECT_TRUE(file.AddressesOf("nonsense").empty());
  EXPECT_TRUE(file.AddressesOf("two").empty());
  EXPECT_EQ(file.NameOf(kOther), "beta");
  EXPECT_EQ(file.NameOf(kLoopback), "");
  EXPECT_EQ(file.Addresses(), (std::vector<NicAddress>{kOwn, kOwn, kOther, kOther}));
  EXPECT_EQ(file.skipped(), (std::vector<int>{5, 6}));
}

TEST(NameServiceTest, LongNamesAreTriedShort) {
  const HostsFile file = HostsFile::Parse("192.0.2.2 beta\n");
  EXPECT_EQ(file.AddressesOf("beta.example.org"), std::vector<NicAddress>{kOther});
}

TEST(NameServiceTest, ShortNamesFindLongOnes) {
  const HostsFile file =
      HostsFile::Parse("192.0.2.1 beta.example.org\n192.0.2.2 beta\n192.0.2.1 gamma.example.org");
  EXPECT_EQ(file.AddressesOf("beta"), std::vector<NicAddress>{kOther});
  EXPECT_EQ(file.AddressesOf("GAMMA"), std::vector<NicAddress>{kOwn});
  EXPECT_TRUE(file.AddressesOf("gam").empty());
  EXPECT_TRUE(file.AddressesOf("gamma.example.net").empty());
}

TEST(NameServiceTest, NumbersAreNotCutAtTheirDots) {
  const HostsFile file = HostsFile::Parse("192.0.2.1 10 10.1\n");
  EXPECT_TRUE(file.AddressesOf("10.1.2.3").empty());
}

TEST(NameServiceTest, SeveralAddressesKeepTheirOrder) {
  const HostsFile file = HostsFile::Parse("192.0.2.1 x\n192.0.2.2 x\n");
  EXPECT_EQ(file.AddressesOf("x"), (std::vector<NicAddress>{kOwn, kOther}));
}

// VIPL checklist C92.
TEST(NameServiceTest, SeveralNamesForOneAddress) {
  const HostsFile file = HostsFile::Parse("192.0.2.1 one\n192.0.2.1 two\n");
  EXPECT_EQ(LookUpName("one", file, Self("host")), LookUpName("two", file, Self("host")));
}

// VIPL checklist C91.
TEST(NameServiceTest, OwnNameIsTheNic) {
  const HostsFile none;
  EXPECT_EQ(LookUpName("host", none, Self("host")), std::vector<NicAddress>{kOwn});
  EXPECT_EQ(LookUpName("host", none, Self("host.example.org")), std::vector<NicAddress>{kOwn});
  EXPECT_EQ(LookUpName("host.example.org", none, Self("host.example.org")),
            std::vector<NicAddress>{kOwn});
}

// VIPL checklist C91: a host that does not know its domain.
TEST(NameServiceTest, OwnLongNameThatNobodyKnowsIsTheNic) {
  const HostsFile none;
  EXPECT_EQ(LookUpName("host.example.invalid", none, Self("host")), std::vector<NicAddress>{kOwn});
  EXPECT_TRUE(LookUpName("hosts.example.invalid", none, Self("host")).empty());
  EXPECT_TRUE(LookUpName("host.example.invalid", none, Self("host.example.org")).empty());
  EXPECT_TRUE(LookUpName("10.1.2.300", none, Self("10")).empty());
  EXPECT_TRUE(LookUpName(".invalid", none, Self("")).empty());
  // The hosts file takes precedence.
  const HostsFile file = HostsFile::Parse("192.0.2.2 host.example.invalid\n");
  EXPECT_EQ(LookUpName("host.example.invalid", file, Self("host")),
            std::vector<NicAddress>{kOther});
}

// A resolver that knows the name without an IPv4 address, or that failed, has not said that the
// name is unknown.
TEST(NameServiceTest, OwnLongNameThatTheResolverDoesNotDeny) {
  const auto ask = [](int error) {
    static int answer;
    answer = error;
    return LookUpName("host.example.org", HostsFile(), Self("host"),
                      [](const std::string&, const HostIdentity&) {
                        return ResolverAnswer{answer, {}};
                      });
  };
  for (int error : {EAI_NONAME, EAI_AGAIN}) {
    EXPECT_EQ(ask(error), std::vector<NicAddress>{kOwn}) << gai_strerror(error);
  }
  for (int error : {EAI_NODATA, EAI_ADDRFAMILY, EAI_FAIL, EAI_MEMORY, EAI_SYSTEM}) {
    EXPECT_TRUE(ask(error).empty()) << gai_strerror(error);
  }
  EXPECT_EQ(LookUpName("host.example.org", HostsFile(), Self("host"),
                       [](const std::string&, const HostIdentity&) {
                         return ResolverAnswer{0, {kOther}};
                       }),
            std::vector<NicAddress>{kOther});
}

TEST(NameServiceTest, LocalhostAndNumbers) {
  const HostsFile none;
  for (const char* host : {"host", "localhost", "localhost.localdomain"}) {
    EXPECT_EQ(LookUpName("localhost", none, Self(host)), std::vector<NicAddress>{kLoopback});
  }
  EXPECT_EQ(LookUpName("192.0.2.2", none, Self("host")), std::vector<NicAddress>{kOther});
}

// Debian puts the host's own long name at 127.0.1.1, and an address may come once for each kind of
// socket.
TEST(NameServiceTest, WhatTheResolverAnswers) {
  g_address_error = 0;
  g_addresses = {"127.0.1.1", "192.0.2.2", "127.0.0.1", "192.0.2.2"};
  const ResolverAnswer answer = AskResolver("name", Self("host"));
  EXPECT_EQ(answer.error, 0);
  EXPECT_EQ(answer.addresses, (std::vector<NicAddress>{kOwn, kOther, kLoopback}));
  g_address_error = EAI_SYSTEM;
  errno = EIO;
  EXPECT_EQ(AskResolver("name", Self("host")).error, EAI_SYSTEM);
  errno = EMFILE;
  EXPECT_THROW(AskResolver("name", Self("host")), std::bad_alloc);
  g_address_error = EAI_MEMORY;
  EXPECT_THROW(AskResolver("name", Self("host")), std::bad_alloc);
  g_address_error = EAI_NONAME;
  EXPECT_EQ(AskResolver("name", Self("host")).error, EAI_NONAME);
}

TEST(NameServiceTest, LinesThatAreSkippedAreSaid) {
  std::string path = std::string(getenv("TEST_TMPDIR")) + "/vip_hosts-XXXXXX";  // each is said once
  close(mkstemp(path.data()));
  std::ofstream(path) << "192.0.2.2 beta\nnonsense\n";
  testing::internal::CaptureStderr();
  EXPECT_EQ(HostsFile::Read(path).NameOf(kOther), "beta");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(path + ":2: "), std::string::npos) << said;
  unlink(path.c_str());
}

TEST(NameServiceTest, UnknownNames) {
  EXPECT_TRUE(LookUpName("no-such-host.invalid", HostsFile(), Self("host")).empty());
  EXPECT_TRUE(LookUpName("", HostsFile(), Self("host")).empty());
  EXPECT_TRUE(LookUpName("", HostsFile(), Self("")).empty());
}

// VIPL checklist C93.
TEST(NameServiceTest, AddressesHaveNames) {
  const HostsFile file = HostsFile::Parse("192.0.2.2 beta\n");
  EXPECT_EQ(LookUpAddress(kOther, file, Self("host")), "beta");
  EXPECT_EQ(LookUpAddress(kOwn, file, Self("host")), "host");
  EXPECT_EQ(LookUpAddress(kLoopback, file, Self("host")), "localhost");
  // For a host without a name of its own the resolver is asked.
  g_name_error = 0;
  EXPECT_EQ(LookUpAddress(kOwn, file, Self("")), "asked");
}

TEST(NameServiceTest, AnAddressHasNoNameOnlyWhereTheResolverSaysSo) {
  const HostsFile file = HostsFile::Parse("");
  g_name_error = EAI_NONAME;
  EXPECT_EQ(LookUpAddress(kOther, file, Self("host")), "");
  g_name_error = EAI_MEMORY;
  EXPECT_THROW(LookUpAddress(kOther, file, Self("host")), std::bad_alloc);
  g_name_error = EAI_SYSTEM;
  errno = EMFILE;
  EXPECT_THROW(LookUpAddress(kOther, file, Self("host")), std::bad_alloc);
  errno = EIO;
  EXPECT_EQ(LookUpAddress(kOther, file, Self("host")), "");
}

}  // namespace
}  // namespace viaduct::compat
