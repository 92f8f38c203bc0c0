// How long and how often: every time-out and retry towards a device.
//
// The deadline of an attempt is the engine's (dat/core), and abandons what the kernel still does
// for it. What the kernel ends by itself before that is in the first lines.
#ifndef VIADUCT_VERBS_RDMA_PATIENCE_H_
#define VIADUCT_VERBS_RDMA_PATIENCE_H_

#include <cstddef>
#include <cstdint>

#include "verbs/base/clock.h"
#include "verbs/device.h"

namespace viaduct::verbs::rdma {

// Of the route, and of one neighbour discovery. A neighbour that answers at once may be missed
// by the kernel (6.1), which looks again when the time is over and not before; so a discovery is
// repeated, and when that was in vain the network has no way there. siw's ten seconds for MPA's
// answer and the time for a TCP connection's are the kernel's own.
inline constexpr int kRouteMs = 60'000;
inline constexpr int kResolveMs = 2'000;
inline constexpr int kResolveTries = 30;

// Of an attempt that meets an earlier connection of its pair's number (InfiniBand) or port (iWARP).
inline constexpr int kStaleTries = 3;

// Of a listener at any free port, where TCP has the one that rdma_cm has drawn (siw).
inline constexpr int kPortTries = 32;

// Of a request that the peer's device does not answer: the most that three bits say, before the
// connection is broken.
inline constexpr uint8_t kRetries = 7;

// Of a message that finds no receive, by what its receiver has said when they connected. 7: for
// ever.
constexpr uint8_t ReceiverNotReadyRetries(NoReceive policy) {
  return policy == NoReceive::kBreak ? 0 : 7;
}
// How long its sender waits before each: 0.64 ms (InfiniBand 1.4, table 45). The kernel's
// connection manager says 0, which stands for 655 ms.
inline constexpr uint8_t kReceiverNotReadyTimer = 12;

// Messages that may land under NoReceive::kDrop before the control thread looks.
inline constexpr int kDropBounces = 16;

// What a device that answers late (Device::answers_late) is given to answer what it has received,
// before its pair is in error. rxe's kernel thread takes microseconds for it if it is let run.
inline constexpr Nanos kLateAnswer = kNanosPerMilli / 2;

// What a device is given to complete what it held when its connection ended, look by look.
inline constexpr Nanos kBurialInterval = kNanosPerMilli;
inline constexpr int kBurialTries = 200;
// Looks into a completion queue in which others complete, too: it may never be dry.
inline constexpr int kHarvests = 4096;

// Registrations until one has a key that VIPL's handles can say: every second one of siw has. mlx4
// has sixteen in turn, counted by what is given back; so all but the last few are.
inline constexpr int kKeyTries = 40;
inline constexpr size_t kKeysKept = 4;

// Of a disconnect request that the peer does not answer the kernel says so after about 70 s, unless
// it had no memory for it.
inline constexpr Nanos kFarewell = 120 * kNanosPerSecond;

// When one who has dialled over siw says a word that means nothing, each after the one before.
inline constexpr Nanos kNudges[] = {100 * kNanosPerMilli, kNanosPerSecond};

// How long a listener stays that nobody needs any more: in its end the kernel loses requests that
// it has not read yet, or rejects them as if a program had said no, and in its beginning siw does.
inline constexpr Nanos kListenerRest = 300 * kNanosPerMilli;

// Of siw's listening socket: the looks come first soon after another, then ever more seldom. There
// may be a moment in which the kernel's table lacks it, or a connection is about to be accepted.
inline constexpr Nanos kFirstListenerLook = 20 * kNanosPerMilli;
inline constexpr Nanos kListenerLook = kNanosPerSecond;
inline constexpr int kLostLooks = 2;
inline constexpr int kWaitingLooks = 4;
inline constexpr uint32_t kBusyListener = 8;  // requests between these: it accepts

// How long a thread that was made for a call that waits (aside.h) stays for the next one.
inline constexpr Nanos kAsideRest = kNanosPerSecond;

inline constexpr int kBacklog = 1024;  // connection requests that the control thread has not seen

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_PATIENCE_H_
