// The program as somebody else's registry (a distribution's libdat2), under which the plug-in
// serves. It is to be linked with -rdynamic: the plug-in finds its registry among the program's
// symbols.
#ifndef VIADUCT_TESTS_FAULTS_REGISTRY_H_
#define VIADUCT_TESTS_FAULTS_REGISTRY_H_

#include <dat2/udat.h>
// Must come after udat.h.
#include <dat2/dat_registry.h>

namespace viaduct::tests {

// The plug-in's functions, for an adapter of that name and address; null if it registers none.
const DAT_PROVIDER* ServeAdapter(const char* name, const char* address);

// Opens the adapter. `*shown` is the handle that a program knows, which the functions do not.
DAT_RETURN OpenAdapter(const char* name, DAT_EVD_HANDLE* async, DAT_IA_HANDLE* ia,
                       DAT_IA_HANDLE* shown);

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_REGISTRY_H_
