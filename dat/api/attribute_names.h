// Names of our own provider-specific attributes; the others are those that OFED's programs know.
#ifndef VIADUCT_DAT_API_ATTRIBUTE_NAMES_H_
#define VIADUCT_DAT_API_ATTRIBUTE_NAMES_H_

namespace viaduct::dat {

inline constexpr char kDeviceAttribute[] = "device";        // the one that serves the adapter
inline constexpr char kTransportAttribute[] = "transport";  // what carries its connections
inline constexpr char kReasonAttribute[] = "reason";        // why it was chosen
// The largest max_recv_iov for dat_srq_create; 0 if the device has no shared receive queues.
inline constexpr char kSharedSegmentsAttribute[] = "max_recv_iov_per_srq";

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_ATTRIBUTE_NAMES_H_
