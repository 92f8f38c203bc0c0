// Static probes (USDT) of the provider "viaduct": places where bpftrace, perf, SystemTap or gdb can
// observe a running program. viaduct(7) documents them, including the number and order of their
// arguments. While nothing is attached, a probe is an instruction that does nothing.
#ifndef VIADUCT_DAT_CORE_PROBES_H_
#define VIADUCT_DAT_CORE_PROBES_H_

#include <sys/sdt.h>

#include "absl/base/attributes.h"
#include "dat/core/endpoint_state.h"
#include "dat/core/object.h"
#include "verbs/device.h"

namespace viaduct::core {

// An endpoint, or VI, moves from one state to another or stays in its state; `why`: the cause.
inline void ProbeState(Handle endpoint, EndpointState from, EndpointState to, EndpointInput why) {
  STAP_PROBE4(viaduct, state, endpoint, EndpointStateName(from), EndpointStateName(to),
              EndpointInputName(why));
}

// A connection request was offered to a service point; `taken`: its dispatcher had room.
inline void ProbeRequest(Handle point, uint64_t qualifier, bool taken) {
  STAP_PROBE3(viaduct, request, point, qualifier, taken);
}

// A completion of an endpoint, or VI, has been taken from the device.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void ProbeCompletion(Handle endpoint,
                                                         const verbs::Completion& completion) {
  STAP_PROBE5(viaduct, completion, endpoint, completion.id, static_cast<int>(completion.opcode),
              static_cast<int>(completion.status), completion.length);
}

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_PROBES_H_
