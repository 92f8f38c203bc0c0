#include "verbs/rdma_adapter.h"

#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

RdmaPort Port(const char* device, int number, const char* address) {
  return {device, number, *Address::Parse(address)};
}

TEST(RdmaAdapter, ADeviceWithOnePortHasItsName) {
  const auto adapters = AdaptersOf({Port("siw0", 1, "192.0.2.1"), Port("rxe0", 1, "192.0.2.2")});
  ASSERT_EQ(adapters.size(), 2u);
  EXPECT_EQ(adapters[0].name, "siw0");
  EXPECT_EQ(adapters[0].device, "siw0");
  EXPECT_EQ(adapters[0].address.ToString(), "192.0.2.1");
  EXPECT_EQ(adapters[1].name, "rxe0");
}

TEST(RdmaAdapter, OneOfSeveralPortsHasItsNumberBehindIt) {
  const auto adapters =
      AdaptersOf({Port("mlx4_0", 1, "192.0.2.1"), Port("mlx4_0", 2, "192.0.2.2")});
  ASSERT_EQ(adapters.size(), 2u);
  EXPECT_EQ(adapters[0].name, "mlx4_0:1");
  EXPECT_EQ(adapters[0].device, "mlx4_0");
  EXPECT_EQ(adapters[1].name, "mlx4_0:2");
  EXPECT_EQ(adapters[1].address.ToString(), "192.0.2.2");
}

TEST(RdmaAdapter, TheFirstAddressOfAPortIsTheAdapters) {
  const auto adapters = AdaptersOf(
      {Port("siw0", 1, "192.0.2.1"), Port("siw0", 1, "192.0.2.9"), Port("siw0", 1, "2001:db8::1")});
  ASSERT_EQ(adapters.size(), 1u);
  EXPECT_EQ(adapters[0].name, "siw0");
  EXPECT_EQ(adapters[0].address.ToString(), "192.0.2.1");
}

// One interface of a port may have no address but the one that the kernel gave it.
TEST(RdmaAdapter, AnAddressOfIpv4GoesBeforeOthers) {
  const auto adapters =
      AdaptersOf({Port("mlx5_0", 1, "2001:db8::1"), Port("mlx5_1", 1, "192.0.2.1"),
                  Port("mlx5_0", 1, "192.0.2.8"), Port("mlx5_0", 1, "192.0.2.9")});
  ASSERT_EQ(adapters.size(), 2u);
  EXPECT_EQ(adapters[0].name, "mlx5_0");
  EXPECT_EQ(adapters[0].address.ToString(), "192.0.2.8");
}

TEST(RdmaAdapter, IsFoundByItsNameOrByItsDeviceAndPort) {
  const auto adapters =
      AdaptersOf({Port("siw0", 1, "192.0.2.9"), Port("mlx4_0", 1, "192.0.2.1"),
                  Port("mlx4_0", 2, "192.0.2.2"), Port("mlx4_1", 2, "192.0.2.3")});
  const auto address = [&](const char* name, int port) {
    const RdmaAdapter* const found = FindAdapter(adapters, name, port);
    return found != nullptr ? found->address.ToString() : "none";
  };
  EXPECT_EQ(address("siw0", 0), "192.0.2.9");
  EXPECT_EQ(address("siw0", 1), "192.0.2.9");
  EXPECT_EQ(address("siw0", 2), "none");
  EXPECT_EQ(address("mlx4_0:2", 0), "192.0.2.2");
  EXPECT_EQ(address("mlx4_0", 0), "192.0.2.1");
  EXPECT_EQ(address("mlx4_0", 1), "192.0.2.1");
  EXPECT_EQ(address("mlx4_0", 2), "192.0.2.2");
  EXPECT_EQ(address("mlx4_0", 3), "none");
  // Its first port has no address, and is not taken for the second one.
  EXPECT_EQ(address("mlx4_1", 0), "192.0.2.3");
  EXPECT_EQ(address("mlx4_1", 1), "none");
  EXPECT_EQ(address("mlx5_0", 0), "none");
}

TEST(RdmaAdapter, NoPortNoAdapter) { EXPECT_TRUE(AdaptersOf({}).empty()); }

}  // namespace
}  // namespace viaduct::verbs
