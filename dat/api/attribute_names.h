// Names of the provider-specific attributes that are ours, beside those that OFED's programs know.
#ifndef VIADUCT_DAT_API_ATTRIBUTE_NAMES_H_
#define VIADUCT_DAT_API_ATTRIBUTE_NAMES_H_

namespace viaduct::dat {

inline constexpr char kDeviceAttribute[] = "device";        // which one serves the adapter
inline constexpr char kTransportAttribute[] = "transport";  // how its connections go
inline constexpr char kReasonAttribute[] = "reason";        // why it was chosen
// What dat_srq_create takes as max_recv_iov; 0 where there are no such queues.
inline constexpr char kSharedSegmentsAttribute[] = "max_recv_iov_per_srq";

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_ATTRIBUTE_NAMES_H_
