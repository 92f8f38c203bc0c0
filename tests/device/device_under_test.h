// What the suite needs from a device in addition to verbs/device.h. Each device's own file (shm.cc,
// iwarp.cc, rdma.cc, sim.cc) defines Make; the chapters of the suite are the same for all.
#ifndef VIADUCT_TESTS_DEVICE_DEVICE_UNDER_TEST_H_
#define VIADUCT_TESTS_DEVICE_DEVICE_UNDER_TEST_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "verbs/device.h"

namespace viaduct::verbs {

class DeviceUnderTest {
 public:
  virtual ~DeviceUnderTest() = default;
  // Two contexts that reach each other over the wire that this binary tests.
  static std::unique_ptr<DeviceUnderTest> Make();

  virtual Context& a() = 0;
  virtual Context& b() = 0;

  // Lets the device work until `done` returns true. False after a generous limit, or as soon as
  // nothing is left that could change the answer.
  virtual bool RunUntil(absl::FunctionRef<bool()> done) = 0;
  // Lets everything in flight arrive. Called before a test checks that something did NOT happen.
  virtual void Settle(absl::FunctionRef<void()> poll) = 0;

  // Calls from several threads are possible (in a simulation they are not).
  virtual bool threads() const = 0;

  // Whether a receive's completion says if its message was solicited. A device that cannot know
  // (verbs does not say) reports every message as solicited, so that nobody sleeps through one.
  virtual bool tells_solicited() const { return true; }

  // Whether a message that finds no receive waits for one. iWARP hardware and siw refuse it.
  virtual bool holds_messages() const { return true; }

  // Whether messages that wait for shared receives take them in the order in which they arrived.
  virtual bool serves_in_turn() const { return true; }

  // Whether a send under NoReceive::kDrop is limited to kMaxDropBytes after the two ends have
  // agreed on immediate data.
  virtual bool limits_drops() const { return immediate_form() == ImmediateForm::kFramed; }

  // The form that two ends agree on in tests with immediate data, and in tests without.
  virtual ImmediateForm immediate_form() const { return ImmediateForm::kNative; }
  virtual ImmediateForm usual_form() const { return ImmediateForm::kNone; }
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_TESTS_DEVICE_DEVICE_UNDER_TEST_H_
