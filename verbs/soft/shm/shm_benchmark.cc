// The bare device between two pinned processes: shm_benchmark TEST [SIZE [ITERATIONS]]
//   latency    ping-pong of sends, microseconds one way
//   latency2   the same with separate completion queues for sends and receives
//   write      ping-pong of RDMA writes that the target sees in its memory
//   rate       a stream of sends, millions per second
//   stream     the same in gigabytes per second
//   idlepoll   an empty poll, nanoseconds
#include <sched.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "verbs/soft/shm/testing_node.h"

namespace viaduct::verbs::shm {
namespace {

constexpr int kDepth = 64;
constexpr int kReceives = 48;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

struct Side {
  TestEnd& end;
  uint32_t size;
  uint64_t sent = 0, sends_done = 0, received = 0;
  Completion out[16] = {};

  size_t half() const { return end.memory().size() / 2; }
  void Count(int n) {
    for (int i = 0; i < n; i++) {
      if (out[i].status != Status::kSuccess) std::abort();
      out[i].opcode == Opcode::kReceive ? received++ : sends_done++;
    }
  }
  void Harvest() { Count(end.receives().Poll(out, 16)); }
  void HarvestSends() { Count(end.sends().Poll(out, 16)); }
  void Send() {
    while (sent - sends_done >= kDepth - 1) HarvestSends();
    end.Send(0, 0, size);
    sent++;
  }
  void Repost() { end.Receive(0, half(), size); }
};

void PingPong(Side& side, bool first, uint64_t rounds) {
  const uint64_t from = side.received;
  for (uint64_t i = 0; i < rounds; i++) {
    if (first) side.Send();
    while (side.received <= from + i) side.Harvest();
    if (!first) side.Send();
    side.Repost();
    while (side.sent - side.sends_done >= kReceives) side.HarvestSends();
  }
}

double Latency(Side& side, bool first, uint64_t rounds) {
  for (int i = 0; i < kReceives; i++) side.Repost();
  PingPong(side, first, rounds / 10 + 100);
  const double start = Now();
  PingPong(side, first, rounds);
  return (Now() - start) / static_cast<double>(rounds) / 2 * 1e6;
}

double Stream(Side& side, bool sender, uint64_t rounds) {
  const double start = Now();
  if (sender) {
    side.Repost();
    for (uint64_t i = 0; i < rounds; i++) {
      side.Send();
      if (side.sent - side.sends_done >= kReceives) side.Harvest();
    }
    while (side.received == 0) side.Harvest();  // the receiver has everything
  } else {
    for (int i = 0; i < kReceives; i++) side.Repost();
    for (uint64_t done = 0; done < rounds;) {
      side.Harvest();
      for (; done < side.received; done++) side.Repost();
    }
    side.size = 0;
    side.Send();
    while (side.sends_done == 0) side.HarvestSends();
  }
  return (Now() - start) / static_cast<double>(rounds);
}

double Write(Side& side, bool first, uint64_t rounds, uint64_t remote, Key key) {
  auto* flag = reinterpret_cast<volatile uint8_t*>(&side.end.memory()[side.half() + side.size - 1]);
  double start = 0;
  for (uint64_t i = 0; i < rounds + 1000; i++) {
    if (i == 1000) start = Now();
    const uint8_t value = static_cast<uint8_t>(i % 250 + 1);
    const auto write = [&] {
      while (side.sent - side.sends_done >= kReceives) side.Harvest();
      side.end.memory()[side.size - 1] = value;
      side.end.OneSided(Opcode::kWrite, 0, 0, side.size, remote + side.half(), key);
      side.sent++;
    };
    if (first) write();
    while (*flag != value) side.Harvest();
    if (!first) write();
  }
  return (Now() - start) / static_cast<double>(rounds) / 2 * 1e6;
}

double Run(const std::string& test, Side& side, bool first, uint64_t rounds, uint64_t remote,
           Key key) {
  if (test == "latency" || test == "latency2") return Latency(side, first, rounds);
  if (test == "write") return Write(side, first, rounds, remote, key);
  if (test == "rate") return 1e-6 / Stream(side, first, rounds);
  if (test == "stream") return side.size / Stream(side, first, rounds) / 1e9;
  const double start = Now();  // idlepoll
  for (uint64_t i = 0; i < rounds; i++) side.Harvest();
  return (Now() - start) / static_cast<double>(rounds) * 1e9;
}

int Main(int argc, char** argv) {
  const std::string test = argc > 1 ? argv[1] : "latency";
  const auto size = static_cast<uint32_t>(argc > 2 ? std::atol(argv[2]) : 8);
  const auto rounds = static_cast<uint64_t>(argc > 3 ? std::atol(argv[3]) : 200000);
  const bool one_queue = test != "latency2";
  const size_t memory = 2 * ((size + 4095) / 4096 * 4096 + 4096);

  const auto play = [&](ChildProcess& other, bool first) {
    Pin(first ? 1 : 0);
    auto context = OpenForTest();
    TestEnd end(*context, memory, kDepth, one_queue);
    std::unique_ptr<TestListener> listener;
    other.PutValue(reinterpret_cast<uint64_t>(end.memory().data()));
    other.PutValue(end.key());
    const auto remote = other.GetValue<uint64_t>();
    const auto key = other.GetValue<Key>();
    if (first) {
      DialForTest(end.pair(), other.GetValue<uint16_t>());
    } else {
      listener =
          std::make_unique<TestListener>(*context, [&]() -> QueuePair& { return end.pair(); });
      other.PutValue(listener->port());
    }
    end.Await(end.connected);
    Side side{end, size};
    const double result = Run(test, side, first, rounds, remote, key);
    if (first) std::printf("%.4f\n", result);
    other.PutValue(1);
    other.GetValue<int>();
    return 0;
  };
  ChildProcess child([&](ChildProcess& parent) { return play(parent, false); });
  return play(child, true);
}

}  // namespace
}  // namespace viaduct::verbs::shm

int main(int argc, char** argv) { return viaduct::verbs::shm::Main(argc, argv); }
