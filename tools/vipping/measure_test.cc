#include "tools/vipping/measure.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <future>
#include <random>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace {
std::atomic<int> g_sends{0};
}

extern "C" VIP_RETURN VipPostSend(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* descriptor,
                                  VIP_MEM_HANDLE memory) {
  ++g_sends;
  return reinterpret_cast<decltype(&VipPostSend)>(dlsym(RTLD_NEXT, "VipPostSend"))(vi, descriptor,
                                                                                   memory);
}

namespace viaduct::vipping {
namespace {

uint64_t g_told = 0;  // ns that writing to standard error has taken

ssize_t WriteSlowly(void*, const char*, size_t size) {
  const uint64_t begin = Now();
  while (Now() - begin < ping::kSecond / 10) {
  }
  g_told += Now() - begin;
  return static_cast<ssize_t>(size);
}

// The options of a server for one client, and of that client.
Options OfBoth() {
  Options options;
  options.once = true;
  options.timeout = 60;
  options.host = "localhost";
  options.service = std::to_string(std::random_device()());
  return options;
}

TEST(Measure, DoesNotTimeWhatItTells) {
  const Nic nic("nic0");
  Options options = OfBoth();
  options.seconds = 1;
  std::future<void> server = std::async(std::launch::async, [&] { Serve(nic, options); });

  FILE* const error = stderr;
  cookie_io_functions_t slow = {};
  slow.write = WriteSlowly;
  stderr = fopencookie(nullptr, "w", slow);
  ASSERT_NE(stderr, nullptr);
  std::setvbuf(stderr, nullptr, _IOLBF, 512);
  const Result result = Measure(nic, options);
  (void)std::fclose(std::exchange(stderr, error));
  server.get();

  EXPECT_GT(g_told, 0u);
  // Each latency is half of a round trip.
  const double timed = 2 * result.latencies.mean() * static_cast<double>(result.messages);
  EXPECT_LE(timed, static_cast<double>(result.nanoseconds - g_told));
}

TEST(Measure, RoundTripsBeforeAreNotCounted) {
  const Nic nic("nic0");
  Options options = OfBoth();
  options.count = 5;
  options.warmup = 7;
  std::future<void> server = std::async(std::launch::async, [&] { Serve(nic, options); });
  g_sends = 0;
  EXPECT_EQ(Measure(nic, options).messages, 5u);
  server.get();
  EXPECT_EQ(g_sends, 2 * (5 + 7));
}

// The result of a request without this program's parameters. The server may not wait for it yet.
VIP_RETURN AskWithout(const Nic& nic, const std::string& service) {
  const End end(nic, Parameters(), VIP_SERVICE_RELIABLE_DELIVERY, 60);
  NetAddress local = Own(nic, "?", 1);
  NetAddress remote = Own(nic, service.data(), service.size());
  VIP_VI_ATTRIBUTES peer;
  VIP_RETURN result;
  do {
    result = VipConnectRequest(end.vi(), local.get(), remote.get(), 60'000, &peer);
  } while (result == VIP_NO_MATCH);
  return result;
}

TEST(Serve, AClientOfAnotherVersionIsNotTheOne) {
  const Nic nic("nic0");
  Options options = OfBoth();
  options.count = 10;
  std::future<void> server = std::async(std::launch::async, [&] { Serve(nic, options); });
  EXPECT_EQ(AskWithout(nic, options.service), VIP_REJECT);
  EXPECT_EQ(Measure(nic, options).messages, 10u);
  server.get();
}

}  // namespace
}  // namespace viaduct::vipping
