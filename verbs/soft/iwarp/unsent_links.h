// The links whose socket once had no room, for the end of the process (exit.h): what waits in them
// is a message that would break off.
#ifndef VIADUCT_VERBS_SOFT_IWARP_UNSENT_LINKS_H_
#define VIADUCT_VERBS_SOFT_IWARP_UNSENT_LINKS_H_

namespace viaduct::verbs::iwarp {

// Of a link, until Forget has returned.
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

// Flush of all. Returns whether any has something left. Any thread; waits for no lock.
bool FlushUnsent();
// From the first FlushUnsent on: no link begins a message any more, or there would be no end.
bool ProcessExits();

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_UNSENT_LINKS_H_
