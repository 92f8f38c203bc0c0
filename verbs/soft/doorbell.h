// How the completion queues of a context sleep and are woken, and how arrivals on cold links
// reach them. There are three implementations: one for the shared-memory bells (shm/), a plain one
// with futexes only, and one for the simulation, which advances its virtual time.
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
  // Called by polls that found nothing; costs a few nanoseconds when there are no marks.
  virtual void Collect() = 0;

  // Sleeps while `word` is `seen`, until Wake(word), an arrival that Collect would find, a signal
  // (kInterrupted; not always if its handler has SA_RESTART: shm/README.md) or the deadline
  // (kTimedOut). Returns kReady in the other cases; may return early. If the caller's thread may be
  // cancelled while it sleeps (verbs/base/cancellation.h), this call may be unwound.
  virtual WaitResult Sleep(std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline) = 0;

  // A thread is about to sleep elsewhere until the attendant reports an arrival: the next arrival
  // must be noticed at once, not at a tick.
  virtual void Expect() {}

  // Wakes all threads that sleep on `word`, which the caller has changed.
  virtual void Wake(std::atomic<uint32_t>& word) = 0;

  // Orders this process's earlier stores with those that it, or any peer of a cold link, made
  // meanwhile: after this call Link::Arrived is reliable.
  virtual void HeavyFence() = 0;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_DOORBELL_H_
