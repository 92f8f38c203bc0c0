// Limits how many connections that have ended for the program may still wait for their peers.
#ifndef VIADUCT_VERBS_SOFT_IWARP_ENDING_H_
#define VIADUCT_VERBS_SOFT_IWARP_ENDING_H_

#include <cstddef>

namespace viaduct::verbs::iwarp {

// A program may serve one peer after another: peers that do not close at the end must not use up
// its descriptors.
inline constexpr size_t kMostEndings = 256;

// One such connection, in a list of the process that needs no allocation and starts empty in a
// forked child. Used on the loop.
class Ending {
 public:
  Ending() = default;
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

 protected:
  // Must not be in the list.
  ~Ending() = default;
  // At most once. If the list now exceeds kMostEndings, the oldest entry, which has had the longest
  // time, gives way before this returns.
  void Enter();
  // No effect if it is not in the list.
  void Leave();

 private:
  // Leaves the list and closes the socket.
  virtual void GiveWay() = 0;

  bool entered_ = false;
  Ending* older_ = nullptr;
  Ending* younger_ = nullptr;
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_ENDING_H_
