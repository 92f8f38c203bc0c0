// How the completion queues of a context sleep and are woken, and how arrivals on cold links
// reach them. One implementation knows the shared-memory bells (shm/), a plain one only futexes,
// the simulation runs its virtual time.
#ifndef VIADUCT_VERBS_SOFT_DOORBELL_H_
#define VIADUCT_VERBS_SOFT_DOORBELL_H_

#include <atomic>
#include <cstdint>

#include "verbs/device.h"

namespace viaduct::verbs {

class Doorbell {
 public:
  virtual ~Doorbell() = default;

  // How long a waiter spins before it sleeps; 0 in a simulation.
  virtual Nanos SpinTime() const = 0;

  // Moves arrival marks that peers left into the completion queues (SoftQueuePair::MarkArrived).
  // Called by polls that found nothing; a few nanoseconds when there are none.
  virtual void Collect() = 0;

  // Sleeps while `word` is `seen`, until Wake(word), an arrival that Collect would find, a signal
  // (kInterrupted; not always if its handler has SA_RESTART: shm/README.md) or the deadline
  // (kTimedOut); otherwise kReady. May return early. A caller that lets its thread be cancelled
  // asleep (verbs/base/cancellation.h) may be unwound from here.
  virtual WaitResult Sleep(std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline) = 0;

  // A thread will sleep elsewhere until the attendant tells of an arrival: the next one is noticed
  // at once, and not at a tick.
  virtual void Expect() {}

  // Wakes all that sleep on `word`, which the caller has changed.
  virtual void Wake(std::atomic<uint32_t>& word) = 0;

  // Orders what this process stored before with what it, or any peer of a cold link, stored
  // meanwhile: after it Link::Arrived tells the truth.
  virtual void HeavyFence() = 0;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_DOORBELL_H_
