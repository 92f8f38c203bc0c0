// Lives of a program over the mock of an RDMA device (tests/rdma_mock), in each of which another
// call of the device's libraries fails, or what they tell of.
#ifndef VIADUCT_TESTS_FAULTS_FAILING_DEVICE_H_
#define VIADUCT_TESTS_FAULTS_FAILING_DEVICE_H_

#include <functional>
#include <string>

#include "tests/faults/refused.h"

namespace viaduct::tests {

// `live` opens the device and closes it again; it throws Refused where it ends early. The first of
// the calls fails in its first life, the second in the next, and so on, in each of their forms. A
// life in which nothing has failed does not end early, and none leaves anything of the device.
void FailEachCallOfTheDevice(const std::function<void()>& live);

// The device is taken out, for as long as the process lives: its driver says so.
void BreakDevice();

// What has failed in this life, or "nothing".
std::string FailedCall();

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_FAILING_DEVICE_H_
