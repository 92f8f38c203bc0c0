// One end of one connection, implemented by each wire (shm, iwarp, sim).
//
// A link belongs to one SoftQueuePair from Attach until Disconnect; the pair calls it, and it
// calls the pair's "for the wire" operations (queue_pair.h). Locks, in order:
//   inbound lock (the pair's home completion queue)  ->  send lock
// Pump runs under the send lock; Poll and Heat under the inbound lock; Start and Cool under both.
// Code that runs under either lock must not sleep, nor take a lock that the wire's own control path
// holds while it calls the pair. Everything else that a wire does happens on the executor.
#ifndef VIADUCT_VERBS_SOFT_LINK_H_
#define VIADUCT_VERBS_SOFT_LINK_H_

#include <cstdint>

#include "verbs/device.h"

namespace viaduct::verbs {

// A write of the peer that has been placed in part and whose end has not arrived.
enum class OpenWrite : uint8_t { kNone, kPlain, kWithImmediate };

class Link {
 public:
  // Emits posted sends as far as there is room:
  //   while (SendEntry* entry = pair->NextToEmit()) { ...; pair->Emitted(completes); }
  // Stops when the wire is full and continues at the next call. It is called by each post and,
  // while a send is not done, after Poll whenever the pair is served (by a poll of a completion
  // queue or SoftQueuePair::Attend). Pump and Poll may throw std::bad_alloc: then the pair breaks.
  virtual void Pump() = 0;

  // Consumes what has arrived, up to about `budget` messages, through the pair's inbound
  // operations; completes reads and confirmed requests. Returns true if it consumed or completed
  // anything. Not called before Start, nor after the pair broke. Returns soon, whatever the peer
  // goes on sending or consuming; if something is left, Arrived is true or the link calls
  // MarkArrived.
  virtual bool Poll(int budget) = 0;

  // A cheap check, by any thread while the link is attached: would Poll find something? May be
  // wrong either way for a moment. False for a message that is held.
  virtual bool Arrived() const = 0;

  // Under the inbound lock: true if nothing that has arrived waits for a receive. Called only after
  // the peer has left.
  virtual bool AllTaken() const = 0;

  // Under the inbound lock. A write that has arrived in full and waits for its receive is not open.
  virtual OpenWrite open_write() const { return OpenWrite::kNone; }

  // Under the inbound and the send lock, when the connection ends: completes requests that the peer
  // has confirmed and no Poll has noticed yet.
  virtual void TakeConfirmed() {}

  // The sink's OnConnected has returned; Poll is called from now on.
  virtual void Start() = 0;

  // Hot: some completion queue calls Poll at every poll, and the wire need not report arrivals.
  // Cold (the state after Start): the wire must ensure that SoftQueuePair::MarkArrived or Attend is
  // called when something arrives. Cool returns true if the caller must issue a heavy fence
  // (doorbell.h) and then check Arrived() again; a wire that is notified by its socket or its event
  // queue ignores Heat and returns false.
  virtual void Heat() = 0;
  virtual bool Cool() = 0;

  // The last call: the link may not touch the pair any more, and destroys itself when it has
  // nothing left to do. No lock is held. All that was emitted still arrives (unless the wire itself
  // failed), then the peer learns `verdict`:
  //   kSuccess            the pair disconnected, gracefully or not, or gave up connecting
  //   kReceiverNotReady, kRemoteOperation, kRemoteAccess    why the peer's request failed here
  //   anything else       the connection broke on this side
  // A link that is still connecting gives up, without any call to the pair.
  virtual void Disconnect(Status verdict) = 0;

 protected:
  virtual ~Link() = default;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_LINK_H_
