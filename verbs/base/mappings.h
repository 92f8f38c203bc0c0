// Whether memory is mapped so that other processes can have it too.
#ifndef VIADUCT_VERBS_BASE_SHARED_MAPPING_H_
#define VIADUCT_VERBS_BASE_SHARED_MAPPING_H_

#include <cstddef>

namespace viaduct::verbs {

// True if every page of the range belongs to a shared mapping (MAP_SHARED, System V), or if the
// kernel does not tell.
bool IsSharedMapping(const void* address, size_t length);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_SHARED_MAPPING_H_
