// Runs the body of a conformance test in processes of its own, one for each side of a connection.
//
// The gtest process itself never opens an adapter: every body runs in a child that is forked for
// it, so each test begins with a fresh library and the engine never sees a fork. A failed EXPECT or
// ASSERT in a child is printed there and fails the test here, even if the child is killed
// afterwards. A child that dies or does not end in time fails the test too. The harness knows no
// face: DAT and VIPL tests use it alike.
//
//   TEST(EpConnect, C083_PrivateDataOfAccept) {
//     RunPair([](Peer& peer) { ...; peer.Tell("listening"); ... },
//             [](Peer& peer) { peer.Await("listening"); ... });
//   }
//
// harness_main.cc is the main() of such tests. It takes --wire=shm|iwarp|rdma|sim, and gives the
// process a network namespace of its own where that is allowed and the wire is not rdma.
// --slowness=N gives bodies N times as much time, for a machine that is N times slower. Over sim,
// which needs the engine of ../sim, a body has one thread, and there are no pairs.
#ifndef VIADUCT_TESTS_CONFORMANCE_HARNESS_HARNESS_H_
#define VIADUCT_TESTS_CONFORMANCE_HARNESS_HARNESS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>

#include "tests/conformance/harness/sees_threads_only.h"

namespace viaduct::tests {

// An address without memory: it is below what mmap gives out.
inline void* const kNoMemory = reinterpret_cast<void*>(4096);

// The other side of a pair, as a body sees it. Messages arrive in order and none is lost. When the
// other side has ended, Await and Receive record a failure and end this body.
class Peer {
 public:
  Peer(int socket, pid_t pid) : socket_(socket), pid_(pid) {}
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Steps: Await fails unless the next message is exactly that step.
  void Tell(const std::string& step);
  void Await(const std::string& step);

  // A value that the other side needs, such as a qualifier or an address.
  template <typename T>
  void Send(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    Write(&value, sizeof value);
  }
  template <typename T>
  T Receive() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    Read(&value, sizeof value);
    return value;
  }

  // Waits until the other side's process has ended, in whatever way.
  void AwaitEnd();
  pid_t pid() const { return pid_; }

 private:
  void Write(const void* data, size_t size);
  void Read(void* data, size_t size);

  const int socket_;
  const pid_t pid_;
};

struct PairOptions {
  bool server_is_killed = false;  // the client kills it: death by SIGKILL is then no failure
  bool client_is_killed = false;
  int seconds = 60;  // after that both are killed and the test fails
};

void RunPair(const std::function<void(Peer&)>& server, const std::function<void(Peer&)>& client,
             const PairOptions& options = PairOptions());

// For tests that need one process only.
void RunAlone(const std::function<void()>& body, int seconds = 60);

// The n-th (0..199) port or qualifier that this run may use; no other running test has it.
uint16_t Port(int n);
// True if the run has a network of its own, where nothing but 127.0.0.1 exists.
bool HasOwnNetwork();
// The value of --slowness, or 1: scales a time within which something has to happen.
int Slowness();
// "shm", "iwarp", "rdma" or "sim"; "" if the library chooses.
const std::string& Wire();

// The time that the library under test lives in, in nanoseconds: the machine's time, or over sim
// the simulation's, which passes only while a call waits and in PassTime.
int64_t Now();
void PassTime(int64_t nanoseconds);

// Called by harness_main.cc before anything else.
void SetUp(int argc, char** argv);

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_CONFORMANCE_HARNESS_HARNESS_H_
