// The links whose socket has been full at some time, for the exit of the process (exit.h): a
// message that still waits in one of them would be cut off.
#ifndef VIADUCT_VERBS_SOFT_IWARP_UNSENT_LINKS_H_
#define VIADUCT_VERBS_SOFT_IWARP_UNSENT_LINKS_H_

namespace viaduct::verbs::iwarp {

// The part of a link that is remembered; must live until ForgetUnsent has returned.
class Unsent {
 public:
  // Sends what waits, as far as the socket takes it. Returns whether something is left for which
  // the socket may have room later. Any thread; waits for no lock.
  virtual bool Flush() = 0;

 protected:
  ~Unsent() = default;
};

// Any thread.
void RememberUnsent(Unsent& link);
void ForgetUnsent(Unsent& link);

// Flushes all of them. Returns whether any has something left. Any thread; waits for no lock.
bool FlushUnsent();
// True from the first FlushUnsent on: links begin no more messages, or this would never end.
bool ProcessExits();

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_UNSENT_LINKS_H_
