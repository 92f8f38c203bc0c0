// Two processes, forked before either opens an adapter, and the page that they share.
#ifndef VIADUCT_TESTS_BENCH_TWO_PROCESSES_H_
#define VIADUCT_TESTS_BENCH_TWO_PROCESSES_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace viaduct::bench {

// The child runs on the first CPU, the parent on the second.
struct Cpus {
  int child = 0;
  int parent = 1;
};

class TwoProcesses {
 public:
  // The number of values that the processes exchange outside of the measurement.
  static constexpr int kWords = 16;

  // Ends the process if it cannot do its work. After `seconds` both processes give up.
  explicit TwoProcesses(const Cpus& cpus, int seconds = 60);
  // In the child: does not return. In the parent: ends the child.
  ~TwoProcesses();
  TwoProcesses(const TwoProcesses&) = delete;
  TwoProcesses& operator=(const TwoProcesses&) = delete;

  bool parent() const { return child_ != 0; }
  // Returns when the other side has called it as many times. Sleeps meanwhile; ends this process if
  // the other one has ended.
  void Meet();
  // In the parent: kill -9. Afterwards there is nobody to meet.
  void KillChild();
  // Written before a Meet, read after it.
  std::atomic<uint64_t>& mine(int word) { return page_->word[Index()][word]; }
  std::atomic<uint64_t>& theirs(int word) { return page_->word[1 - Index()][word]; }

 private:
  struct Page {
    std::atomic<uint64_t> met[2];
    std::atomic<uint64_t> word[2][kWords];
  };
  int Index() const { return parent() ? 1 : 0; }
  bool OtherHasEnded();

  Page* page_;
  pid_t parent_;
  pid_t child_;
};

// A TCP port that nobody had a moment ago.
uint16_t FreePort();

}  // namespace viaduct::bench

#endif  // VIADUCT_TESTS_BENCH_TWO_PROCESSES_H_
