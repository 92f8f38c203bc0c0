// A fixed exchange of 8-byte messages between two sides in one thread: the same instructions on
// every run, for callgrind.
#ifndef VIADUCT_TESTS_HOTPATH_SCRIPT_H_
#define VIADUCT_TESTS_HOTPATH_SCRIPT_H_

#include <stdio.h>
#include <stdlib.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "tests/bench/latency.h"
#include "tests/bench/side.h"
#include "tests/bench/two_processes.h"

namespace viaduct::hotpath {

// Functions of their own, so that callgrind tells them apart.
template <typename Side>
__attribute__((noinline)) void ScriptPostSend(Side& side) {
  side.PostSend(8);
}
template <typename Side>
__attribute__((noinline)) void ScriptPostReceive(Side& side) {
  side.PostReceive();
}
// VIPL asks for sends and for receives by different calls, the others for both by one.
template <typename Side>
__attribute__((noinline)) void ScriptTakeReceive(Side& side, uint64_t until) {
  while (side.received() < until) {
    if constexpr (requires { side.PollReceives(); }) {
      side.PollReceives();
    } else {
      side.Poll();
    }
  }
}
template <typename Side>
__attribute__((noinline)) void ScriptTakeSend(Side& side, uint64_t until) {
  while (side.completed() < until) {
    if constexpr (requires { side.PollSends(); }) {
      side.PollSends();
    } else {
      side.Poll();
    }
  }
}

// One message from one side to the other, all four completions and posts of it.
template <typename Side>
void OneMessage(Side& from, Side& to) {
  ScriptPostSend(from);
  ScriptTakeReceive(to, to.received() + 1);
  ScriptPostReceive(to);
  ScriptTakeSend(from, from.completed() + 1);
}

template <typename Side>
__attribute__((noinline)) void ScriptMeasured(Side& one, Side& two, int messages) {
  for (int i = 0; i < messages; i += 2) {
    OneMessage(one, two);
    OneMessage(two, one);
  }
}

// MESSAGES is the first argument; callgrind counts only inside ScriptMeasured. `afterwards` gets
// both sides and MESSAGES.
template <typename Side>
int RunScript(int argc, char** argv,
              const std::function<void(Side&, Side&, int)>& afterwards = nullptr) {
  const int messages = argc > 1 ? atoi(argv[1]) : 1000;
  const uint16_t port = bench::FreePort();
  bench::SideOptions options;
  options.depth = 16;
  std::unique_ptr<Side> passive;
  Side active(options);
  passive = std::make_unique<Side>(options);
  passive->Listen(port);
  std::thread accept([&] { passive->Accept(); });
  active.Connect(port);
  accept.join();
  bench::PrepareReceives(active);
  bench::PrepareReceives(*passive);
  for (int i = 0; i < 200; ++i) {
    OneMessage(active, *passive);
    OneMessage(*passive, active);
  }
  ScriptMeasured(active, *passive, messages);
  printf("%d\n", messages);
  if (afterwards) afterwards(active, *passive, messages);
  return 0;
}

}  // namespace viaduct::hotpath

#endif  // VIADUCT_TESTS_HOTPATH_SCRIPT_H_
