// How long and how often: every time-out and retry towards a device.
//
// The deadline of an attempt to connect is the engine's (dat/core); then whatever the kernel still
// does for it is abandoned. The first constants are for what the kernel ends by itself before that.
#ifndef VIADUCT_VERBS_RDMA_PATIENCE_H_
#define VIADUCT_VERBS_RDMA_PATIENCE_H_

#include <cstddef>
#include <cstdint>

#include "verbs/base/clock.h"
#include "verbs/device.h"

namespace viaduct::verbs::rdma {

// For the route, and for one neighbour discovery. The kernel (6.1) may miss a neighbour that
// answers at once, and does not check again before the time is over. So a discovery is repeated; if
// all fail, the network has no way there. siw's ten seconds for MPA's answer and the time for a TCP
// connection are the kernel's own.
inline constexpr int kRouteMs = 60'000;
inline constexpr int kResolveMs = 2'000;
inline constexpr int kResolveTries = 30;

// RoCE: with the pair that is opened to its peer the kernel looks for the neighbour once more, for
// a second, and may miss it just so. It need not look as long as the neighbour has been heard of
// late. Where the answer to a dial has taken longer than this, the pair is opened aside.
inline constexpr int kOpenTries = 3;
inline constexpr Nanos kFreshNeighbour = kNanosPerSecond;

// Tries if an earlier connection has the pair's number (InfiniBand) or port (iWARP).
inline constexpr int kStaleTries = 3;

// Tries to listen at a free port, if TCP already uses the one that rdma_cm has chosen (siw).
inline constexpr int kPortTries = 32;

// Retries of a request that the peer's device does not answer, before the connection breaks: the
// most that three bits can express.
inline constexpr uint8_t kRetries = 7;

// Retries of a message that finds no receive, as its receiver asks when they connect. 7: for ever.
constexpr uint8_t ReceiverNotReadyRetries(NoReceive policy) {
  return policy == NoReceive::kBreak ? 0 : 7;
}
// How long the sender waits before each of these: 0.64 ms (InfiniBand 1.4, table 45). The kernel's
// connection manager sets 0, which stands for 655 ms.
inline constexpr uint8_t kReceiverNotReadyTimer = 12;

// Messages that may land under NoReceive::kDrop before the control thread takes them.
inline constexpr int kDropBounces = 16;

// The time that a device that answers late (Device::answers_late) has to answer what it has
// received, before its pair is put into the error state. rxe's kernel thread needs microseconds if
// it can run.
inline constexpr Nanos kLateAnswer = kNanosPerMilli / 2;

// Interval and number of the checks whether a device has completed what an ended connection held.
inline constexpr Nanos kBurialInterval = kNanosPerMilli;
inline constexpr int kBurialTries = 200;
// How many times in a row a completion queue is harvested at most: others complete there, too, so
// it may never be empty.
inline constexpr int kHarvests = 4096;

// Registrations until one has a key that VIPL's handles can express, as every second one of siw
// has. mlx4 has sixteen in turn, counted by what is given back: so all but the last few go back.
inline constexpr int kKeyTries = 40;
inline constexpr size_t kKeysKept = 4;

// If the peer does not answer a disconnect request, the kernel reports that after about 70 s,
// unless it had no memory for it.
inline constexpr Nanos kFarewell = 120 * kNanosPerSecond;

// When the dialling side sends its nudges over siw, which mean nothing, each after the one before.
inline constexpr Nanos kNudges[] = {100 * kNanosPerMilli, kNanosPerSecond};

// How long a listener stays that nobody needs any more. When one ends, the kernel loses requests
// that were not read yet, or rejects them as if a program had done so; siw does when one begins.
inline constexpr Nanos kListenerRest = 300 * kNanosPerMilli;

// Checks of siw's listening socket: first soon after each other, then less and less often. For a
// moment the kernel's table may lack the socket, or a connection may be about to be accepted.
inline constexpr Nanos kFirstListenerLook = 20 * kNanosPerMilli;
inline constexpr Nanos kListenerLook = kNanosPerSecond;
inline constexpr int kLostLooks = 2;
inline constexpr int kWaitingLooks = 4;
inline constexpr uint32_t kBusyListener = 8;  // requests between the checks: it does accept

// How long a thread that was made for a call that waits (aside.h) stays for the next one.
inline constexpr Nanos kAsideRest = kNanosPerSecond;

inline constexpr int kBacklog = 1024;  // connection requests that the control thread has not seen

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_PATIENCE_H_
