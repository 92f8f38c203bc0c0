// Limits that the face itself sets; all others are the device's.
#ifndef VIADUCT_DAT_API_LIMITS_H_
#define VIADUCT_DAT_API_LIMITS_H_

namespace viaduct::dat {

// Dispatchers grow with what is posted; this only catches nonsense.
inline constexpr int kMaxEvdLength = 1 << 20;

// Posting converts segments into an array on the stack.
inline constexpr int kMaxSegments = 64;

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_LIMITS_H_
