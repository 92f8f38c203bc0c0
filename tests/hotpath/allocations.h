// Counts what one thread allocates and frees: malloc and its relatives are this program's own, and
// operator new comes to them too.
#ifndef VIADUCT_TESTS_HOTPATH_ALLOCATIONS_H_
#define VIADUCT_TESTS_HOTPATH_ALLOCATIONS_H_

namespace viaduct::hotpath {

// False under a sanitizer, whose malloc stays.
bool CountsAllocations();
void StartCountingAllocations();
// Calls of this thread since the start.
int StopCountingAllocations();

}  // namespace viaduct::hotpath

#endif  // VIADUCT_TESTS_HOTPATH_ALLOCATIONS_H_
