#ifndef VIADUCT_VERBS_BASE_VERSION_H_
#define VIADUCT_VERBS_BASE_VERSION_H_

// The version of the whole project: libraries, headers and tools are released together.
// README.md's CHANGELOG starts with it.
#define VIADUCT_VERSION "0.1.0"

#endif  // VIADUCT_VERBS_BASE_VERSION_H_
