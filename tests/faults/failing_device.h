// Lives of a program over the mock of an RDMA device (tests/rdma_mock), in each of which another
// call of the device's libraries fails, or one of their events or completions reports a failure.
#ifndef VIADUCT_TESTS_FAULTS_FAILING_DEVICE_H_
#define VIADUCT_TESTS_FAULTS_FAILING_DEVICE_H_

#include <functional>
#include <string>

#include "tests/faults/refused.h"

namespace viaduct::tests {

// `live` opens the device and closes it again; it throws Refused if it ends early. The first call
// fails in its first life, the second in the next, and so on, in each form of failure. A life in
// which nothing fails must not end early, and none may leave objects of the device behind.
void FailEachCallOfTheDevice(const std::function<void()>& live);

// Takes the device out, for as long as the process lives: its driver reports that.
void BreakDevice();

// What has failed in this life, or "nothing".
std::string FailedCall();

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_FAILING_DEVICE_H_
