// Counts what one thread allocates and frees: this program has its own malloc and its relatives,
// and operator new calls them too.
#ifndef VIADUCT_TESTS_HOTPATH_ALLOCATIONS_H_
#define VIADUCT_TESTS_HOTPATH_ALLOCATIONS_H_

namespace viaduct::hotpath {

// False under a sanitizer, whose malloc stays in place.
bool CountsAllocations();
void StartCountingAllocations();
// Returns the number of this thread's calls since the start.
int StopCountingAllocations();

}  // namespace viaduct::hotpath

#endif  // VIADUCT_TESTS_HOTPATH_ALLOCATIONS_H_
