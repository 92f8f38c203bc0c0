// What must happen around a fork of the process, for those that own a lock or a table.
#ifndef VIADUCT_VERBS_BASE_AT_FORK_H_
#define VIADUCT_VERBS_BASE_AT_FORK_H_

namespace viaduct::verbs {

// For the rest of the process: `before` runs in the forking thread ahead of each fork (the latest
// registered first), the others behind it. Each may be null. False: out of memory.
bool AtFork(void (*before)(), void (*in_parent)(), void (*in_child)());

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_AT_FORK_H_
