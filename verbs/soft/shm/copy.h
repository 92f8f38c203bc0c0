// The copies of the data path.
#ifndef VIADUCT_VERBS_SOFT_SHM_COPY_H_
#define VIADUCT_VERBS_SOFT_SHM_COPY_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace viaduct::verbs::shm {

// 0..64 bytes without a call: overlapping moves of one size class, exact at both ends. The last
// byte is stored once, and last: a thread may watch it in the memory of a receive, and reset it.
inline void CopySmall(unsigned char* to, const unsigned char* from, uint32_t n) {
  if (n > 32) {
    unsigned char tail[32];
    std::memcpy(tail, from + n - 32, 32);
    std::memcpy(to, from, 32);
    std::memcpy(to + n - 32, tail, 32);
  } else if (n > 16) {
    unsigned char tail[16];
    std::memcpy(tail, from + n - 16, 16);
    std::memcpy(to, from, 16);
    std::memcpy(to + n - 16, tail, 16);
  } else if (n > 8) {
    uint64_t head, tail;
    std::memcpy(&head, from, 8);
    std::memcpy(&tail, from + n - 8, 8);
    std::memcpy(to, &head, 8);
    std::memcpy(to + n - 8, &tail, 8);
  } else if (n == 8) {
    std::memcpy(to, from, 8);
  } else if (n > 4) {
    uint32_t head, tail;
    std::memcpy(&head, from, 4);
    std::memcpy(&tail, from + n - 4, 4);
    std::memcpy(to, &head, 4);
    std::memcpy(to + n - 4, &tail, 4);
  } else if (n == 4) {
    std::memcpy(to, from, 4);
  } else if (n > 2) {
    uint16_t head, tail;
    std::memcpy(&head, from, 2);
    std::memcpy(&tail, from + n - 2, 2);
    std::memcpy(to, &head, 2);
    std::memcpy(to + n - 2, &tail, 2);
  } else if (n == 2) {
    std::memcpy(to, from, 2);
  } else if (n == 1) {
    *to = *from;
  }
}

// libc takes "rep movsb" for a few kilobytes, which is slow on lines that sit in the other core's
// cache: 0.28 us for a message of 4 KiB against 0.21 us with 32-byte moves. Above that libc wins.
__attribute__((target("avx2"))) inline void CopyWide(unsigned char* to, const unsigned char* from,
                                                     size_t n) {
  for (; n >= 128; n -= 128, to += 128, from += 128) {
    const auto* source = reinterpret_cast<const __m256i_u*>(from);
    auto* target = reinterpret_cast<__m256i_u*>(to);
    const __m256i a = _mm256_loadu_si256(source);
    const __m256i b = _mm256_loadu_si256(source + 1);
    const __m256i c = _mm256_loadu_si256(source + 2);
    const __m256i d = _mm256_loadu_si256(source + 3);
    _mm256_storeu_si256(target, a);
    _mm256_storeu_si256(target + 1, b);
    _mm256_storeu_si256(target + 2, c);
    _mm256_storeu_si256(target + 3, d);
  }
  std::memcpy(to, from, n);
}

extern const bool kHasAvx2;

// To or from a chunk.
inline void CopyLarge(unsigned char* to, const unsigned char* from, size_t n) {
  if (n <= 4096 && kHasAvx2) {
    CopyWide(to, from, n);
  } else {
    std::memcpy(to, from, n);
  }
}

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_COPY_H_
