#include "tools/ping/program.h"

#include <time.h>

#include <cstdio>
#include <exception>

namespace viaduct::ping {

int Run(const char* program, const std::function<std::string()>& work) {
  try {
    std::fputs(work().c_str(), stdout);
    // An earlier write, of what did not fit into the buffer, may have failed.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      throw Failure("standard output cannot be written");
    }
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", program, e.what());
    return 1;
  }
}

uint64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * kSecond + static_cast<uint64_t>(now.tv_nsec);
}

void Patience::ReadClock(uint64_t come) {
  const uint64_t now = Now();
  if (begin_ == 0 || come != come_) begin_ = now;
  come_ = come;
  if (now - begin_ > static_cast<uint64_t>(seconds_) * kSecond) {
    throw Failure("the other end is silent");
  }
}

}  // namespace viaduct::ping
