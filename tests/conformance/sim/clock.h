// The simulation's clock, for tests that run over it: what this folder's libviaduct.so.1 exports
// in addition to the engine.
#ifndef VIADUCT_TESTS_CONFORMANCE_SIM_CLOCK_H_
#define VIADUCT_TESTS_CONFORMANCE_SIM_CLOCK_H_

#include <cstdint>

extern "C" {

// Nanoseconds since the simulation began. Time passes while a call waits, and in the next function.
__attribute__((visibility("default"))) int64_t viaduct_simulation_now();

// Runs the simulation for that long, as a sleep would.
__attribute__((visibility("default"))) void viaduct_simulation_pass(int64_t nanoseconds);

}  // extern "C"

#endif  // VIADUCT_TESTS_CONFORMANCE_SIM_CLOCK_H_
