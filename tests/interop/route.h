// How somebody else's program reaches our engine.
//   INTEROP_ROUTE=own     our libdat2 in LD_LIBRARY_PATH
//   INTEROP_ROUTE=plugin  the distribution's libdat2 with our plug-in, by DAT_OVERRIDE only
#ifndef VIADUCT_TESTS_INTEROP_ROUTE_H_
#define VIADUCT_TESTS_INTEROP_ROUTE_H_

#include <string>

namespace viaduct::tests {

// Prepares the environment of the programs that this process starts; its own environment names the
// route.
void ChooseRoute();
bool IsPlugin();

// The adapter's name on either route.
inline constexpr char kAdapter[] = "soft0";

// Empty, or why a program cannot run here.
std::string WhyNotHere(const std::string& program);

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_INTEROP_ROUTE_H_
