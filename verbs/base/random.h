// Numbers that nobody can guess.
#ifndef VIADUCT_VERBS_BASE_RANDOM_H_
#define VIADUCT_VERBS_BASE_RANDOM_H_

#include <cstdint>

namespace viaduct::verbs {

// Of the kernel; where it refuses (a filter of system calls), of whatever else there is: throws
// std::runtime_error if that is nothing.
uint64_t RandomWord();

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_RANDOM_H_
