#include "verbs/soft/shm/copy.h"

namespace viaduct::verbs::shm {

const bool kHasAvx2 = __builtin_cpu_supports("avx2");

}  // namespace viaduct::verbs::shm
