// Processes that are killed in the middle of their work.
#ifndef VIADUCT_TESTS_FAULTS_KILLER_H_
#define VIADUCT_TESTS_FAULTS_KILLER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <random>

#include "tests/conformance/harness/failure_flag.h"

namespace viaduct::tests {

// Rounds of a repeated test: `usual`, or `many` with VIADUCT_LONG in the environment.
int Rounds(int usual, int many);

// A process that runs `body` until somebody kills it. The caller must not have opened the library.
class Victim {
 public:
  explicit Victim(const std::function<void()>& body);
  // Kills and reaps what still lives.
  ~Victim();
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  void Kill();
  // Waits for its end, and returns the wait status: 0 if it exited with 0.
  int Join();
  bool alive() const { return pid_ > 0; }

 private:
  FailureFlag failed_;
  pid_t pid_ = -1;
};

// Its seed is printed, so that a failure can be reproduced.
class RandomInstant {
 public:
  RandomInstant();
  // Passes up to `most` microseconds, so that a kill meets another instruction each time.
  void Pass(int most);

 private:
  std::mt19937 engine_;
};

// Forks a child that does nothing until the process that takes over orphans kills it. Returns when
// fork has returned in the child: until then the child holds copies of the library's sockets.
pid_t ForkIdleChild();
// Makes this process take over orphans.
void KeepOrphans();
void KillOrphan(pid_t pid);

// Passes numbers from a victim to the process that created it.
class NumberPipe {
 public:
  NumberPipe();
  ~NumberPipe();
  NumberPipe(const NumberPipe&) = delete;
  NumberPipe& operator=(const NumberPipe&) = delete;
  void Put(int value);
  // Throws, and so ends the body, when nobody can put a number any more.
  int Get();
  // Closes the half that this process does not use.
  void OnlyGet();

 private:
  int ends_[2] = {-1, -1};
};

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_KILLER_H_
