#include "tools/ping/program.h"

#include <time.h>

#include <cstdio>
#include <exception>

#include "tools/report_output.h"

namespace viaduct::ping {

int Run(const char* program, const std::function<std::string()>& work) {
  try {
    ReportOutput output;
    output.Print(work());
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
