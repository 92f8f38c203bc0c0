// Numbers that nobody can guess.
#ifndef VIADUCT_VERBS_BASE_RANDOM_H_
#define VIADUCT_VERBS_BASE_RANDOM_H_

#include <cstdint>

namespace viaduct::verbs {

// From the kernel or, if that refuses (a system-call filter), from whatever other source there is;
// throws std::runtime_error if there is none.
uint64_t RandomWord();

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_RANDOM_H_
