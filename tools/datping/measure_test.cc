#include "tools/datping/measure.h"

#include <dlfcn.h>
#include <netdb.h>

#include <atomic>
#include <future>
#include <memory>
#include <random>

#include "gtest/gtest.h"

namespace {
std::atomic<int> g_lookups{0};
std::atomic<int> g_sends{0};
std::atomic<int> g_empty_reads{0};
}  // namespace

extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  ++g_lookups;
  return reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"))(name, service,
                                                                                   hints, found);
}

extern "C" DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET* local,
                                       DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags) {
  ++g_sends;
  return reinterpret_cast<decltype(&dat_ep_post_send)>(dlsym(RTLD_NEXT, "dat_ep_post_send"))(
      ep, count, local, cookie, flags);
}

extern "C" DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT count,
                                            DAT_LMR_TRIPLET* local, DAT_DTO_COOKIE cookie,
                                            const DAT_RMR_TRIPLET* remote,
                                            DAT_COMPLETION_FLAGS flags) {
  g_empty_reads += count == 0;
  return reinterpret_cast<decltype(&dat_ep_post_rdma_read)>(
      dlsym(RTLD_NEXT, "dat_ep_post_rdma_read"))(ep, count, local, cookie, remote, flags);
}

namespace viaduct::datping {
namespace {

constexpr int kPatience = 60;

class MeasureTest : public testing::Test {
 protected:
  MeasureTest() {
    options_.once = true;
    options_.timeout = kPatience;
    options_.service = uint64_t{1} << 32 | std::random_device()();  // beyond the ports, so a name
  }

  // Ends when Serve does, and throws what it throws.
  std::future<void> Server() {
    return std::async(std::launch::async, [this] { Serve(adapter_, options_); });
  }

  // The only one that a client makes of its `connections`.
  std::unique_ptr<End> Connection(datping::Test test, uint32_t connections) {
    Parameters parameters;
    parameters.test = test;
    parameters.connections = connections;
    DAT_IA_ATTR attributes;
    Must("dat_ia_query", dat_ia_query(adapter_.ia(), nullptr, DAT_IA_FIELD_IA_ADDRESS_PTR,
                                      &attributes, 0, nullptr));
    for (;;) {  // until the server listens
      auto end = std::make_unique<End>(adapter_, parameters, kPatience);
      if (end->Connect(attributes.ia_address_ptr, options_.service)) return end;
    }
  }

  const Adapter adapter_{"soft0"};
  Options options_;
};

TEST_F(MeasureTest, OnceEndsWithAClientThatMadeOnlySomeOfItsConnections) {
  std::future<void> server = Server();
  Connection(datping::Test::kLatency, 2)->Disconnect();
  EXPECT_NO_THROW(server.get());
}

TEST_F(MeasureTest, OnceEndsWithTheLastOfSeveralClients) {
  std::future<void> server = Server();
  const std::unique_ptr<End> passer = Connection(datping::Test::kConnect, 1);
  const std::unique_ptr<End> first = Connection(datping::Test::kLatency, 1);
  Connection(datping::Test::kLatency, 1)->Disconnect();
  first->Disconnect();
  passer->Disconnect();
  EXPECT_NO_THROW(server.get());
}

TEST_F(MeasureTest, RoundTripsBeforeAreNotCounted) {
  std::future<void> server = Server();
  options_.host = "localhost";
  options_.count = 5;
  options_.warmup = 7;
  g_sends = 0;
  EXPECT_EQ(Measure(adapter_, options_).at(0).messages, 5u);
  EXPECT_NO_THROW(server.get());
  EXPECT_EQ(g_sends, 2 * (5 + 7));
}

TEST_F(MeasureTest, AStreamEndsWhenAllHasArrived) {
  std::future<void> server = Server();
  options_.host = "localhost";
  options_.count = 5;
  options_.parameters.test = datping::Test::kBandwidth;
  g_empty_reads = 0;
  EXPECT_EQ(Measure(adapter_, options_).at(0).messages, 5u);
  EXPECT_NO_THROW(server.get());
  EXPECT_EQ(g_empty_reads, 1);
}

TEST_F(MeasureTest, LooksForTheHostOnce) {
  std::future<void> server = Server();
  options_.host = "localhost";
  options_.count = 5;
  options_.parameters.test = datping::Test::kConnect;
  options_.parameters.connections = 2;
  g_lookups = 0;
  EXPECT_EQ(Measure(adapter_, options_).size(), 2u);
  EXPECT_EQ(g_lookups, 1);
  EXPECT_NO_THROW(server.get());
}

}  // namespace
}  // namespace viaduct::datping
