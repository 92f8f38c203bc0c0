// Connections that have ended for the program, and how many of them may wait for their peers.
#ifndef VIADUCT_VERBS_SOFT_IWARP_ENDING_H_
#define VIADUCT_VERBS_SOFT_IWARP_ENDING_H_

#include <cstddef>

namespace viaduct::verbs::iwarp {

// A program may take one peer after the other, and what each of them does not do at the end must
// not keep a descriptor of it.
inline constexpr size_t kMostEndings = 256;

// One of them, in a list of the process that needs no memory. On the loop. A forked child has none.
class Ending {
 public:
  Ending() = default;
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

 protected:
  // Not while it is entered.
  ~Ending() = default;
  // At most once. Beyond kMostEndings the one that was entered first, which has had the longest
  // time, gives way before this returns.
  void Enter();
  // Nothing, if it is not entered.
  void Leave();

 private:
  // Leaves, and closes its socket.
  virtual void GiveWay() = 0;

  bool entered_ = false;
  Ending* older_ = nullptr;
  Ending* younger_ = nullptr;
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_ENDING_H_
