// Counts the system calls of one thread, by Linux's syscall user dispatch: while counting, each
// call raises a signal first, whose handler counts it and then makes the call. Other threads, such
// as the engine's control thread, are not counted. What the vDSO answers is no system call.
#ifndef VIADUCT_TESTS_HOTPATH_SYSTEM_CALLS_H_
#define VIADUCT_TESTS_HOTPATH_SYSTEM_CALLS_H_

#include <string>

namespace viaduct::hotpath {

// One thread of the process at a time.
class SystemCallCounter {
 public:
  SystemCallCounter();
  ~SystemCallCounter();
  SystemCallCounter(const SystemCallCounter&) = delete;
  SystemCallCounter& operator=(const SystemCallCounter&) = delete;

  // False where the kernel cannot do it (before 5.11); then nothing is counted.
  bool supported() const { return supported_; }

  void Start();
  // Returns the number of this thread's calls since Start.
  int Stop();
  // The numbers of the calls, for a message.
  static std::string Calls();

 private:
  bool supported_;
};

}  // namespace viaduct::hotpath

#endif  // VIADUCT_TESTS_HOTPATH_SYSTEM_CALLS_H_
