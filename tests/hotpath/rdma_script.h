// The script over an RDMA device, and what it must not do: system calls and allocations.
#ifndef VIADUCT_TESTS_HOTPATH_RDMA_SCRIPT_H_
#define VIADUCT_TESTS_HOTPATH_RDMA_SCRIPT_H_

#include <stdio.h>
#include <string.h>

#include "tests/hotpath/allocations.h"
#include "tests/hotpath/script.h"
#include "tests/hotpath/system_calls.h"

namespace viaduct::hotpath {

// The control thread wakes up to take what nobody has polled for a millisecond. One batch must be
// without that, as in quiet_tests.h.
inline constexpr int kMaxBatches = 100;

// With "quiet" after the number of messages, the program also prints the counts of another run,
// which is not possible under valgrind.
template <typename Side>
int RunQuietScript(int argc, char** argv) {
  if (argc < 3 || strcmp(argv[2], "quiet") != 0) return RunScript<Side>(argc, argv);
  return RunScript<Side>(argc, argv, [](Side& one, Side& two, int messages) {
    SystemCallCounter calls;
    if (!calls.supported() || !CountsAllocations()) {
      printf("not counted\n");
      return;
    }
    int made = 0, allocations = 0;
    for (int i = 0; i < kMaxBatches; ++i) {
      StartCountingAllocations();
      calls.Start();
      ScriptMeasured(one, two, messages);
      made = calls.Stop();
      allocations = StopCountingAllocations();
      if (made == 0 && allocations == 0) break;
    }
    printf("%d system calls, %d allocations %s\n", made, allocations,
           SystemCallCounter::Calls().c_str());
  });
}

}  // namespace viaduct::hotpath

#endif  // VIADUCT_TESTS_HOTPATH_RDMA_SCRIPT_H_
