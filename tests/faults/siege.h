// A server that is attacked on its port, and the client that attacks it.
//
// The server has an old connection, which must go on, and a listener, which must take the next good
// request; the client uses both after each attack. Both are DAT programs.
#ifndef VIADUCT_TESTS_FAULTS_SIEGE_H_
#define VIADUCT_TESTS_FAULTS_SIEGE_H_

#include <functional>

#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/harness.h"

namespace viaduct::tests {

// The private data of an attacker's request that is good so far.
inline constexpr char kAttackData[] = "raw!";
inline constexpr size_t kAttackedReceive = 64;  // bytes of each of two receives
inline constexpr int kAttackedSends = 100;

// What the server does with a request that carries kAttackData: it accepts it, and then the
// connection must end exactly once and give back every request.
struct Attack {
  bool message = true;    // a message "m" comes before the attack
  bool may_fill = false;  // nonsense may happen to be a message
  bool sends = false;     // the server sends kAttackedSends
  bool reads = false;     // it reads kAttackedReceive bytes of the attacker, in vain
};

class Besieger {
 public:
  explicit Besieger(Peer& peer);
  Besieger(const Besieger&) = delete;
  Besieger& operator=(const Besieger&) = delete;

  // Checks that the server goes on, on its old connection and on a new one.
  void Check();
  // Begin makes the server wait for a request with kAttackData; AwaitDone returns when it has seen
  // the end of that connection.
  void Begin(const Attack& attack);
  void AwaitDone();
  // Memory of the server that the attacker's connection may write, read and use for atomics: two
  // times kAttackedReceive bytes.
  const DAT_RMR_TRIPLET& open_memory() const { return open_memory_; }
  // Tells the server that nothing more comes.
  void Finish();

 private:
  DAT_EP_HANDLE Connect();
  void Send(DAT_EP_HANDLE ep);
  void UseBoth();

  Peer& peer_;
  Side side_;
  DAT_EP_HANDLE old_ = DAT_HANDLE_NULL;
  DAT_RMR_TRIPLET open_memory_ = {};
};

// The server listens at Port(0). At the end it holds what it held before, and the network nothing.
void RunSiege(const std::function<void(Besieger&)>& body);

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_SIEGE_H_
