// The suite over shared memory, both ends in this process (one mapping, so that ThreadSanitizer
// sees what happens).
#include <memory>

#include "absl/strings/string_view.h"
#include "tests/device/soft_context.h"
#include "tests/device/two_contexts.h"
#include "verbs/base/control_thread.h"
#include "verbs/soft/shm/wire.h"

namespace viaduct::verbs {
namespace {

std::unique_ptr<Context> OpenAt(absl::string_view address) {
  ControlThread& loop = **ControlThread::Get();
  DeviceAttributes limits;
  limits.max_reads_in = limits.max_reads_out = 32;
  limits.max_message_bytes = 0x7fffffff;
  limits.max_private_data = 504;
  return OpenSoft(address, std::make_unique<shm::ShmWire>(loop, *Address::Parse(address)),
                  std::make_unique<shm::ShmDoorbell>(loop, kSoftSpin), limits);
}

}  // namespace

std::unique_ptr<DeviceUnderTest> DeviceUnderTest::Make() {
  return std::make_unique<TwoContexts>(OpenAt("127.0.0.1"), OpenAt("127.0.0.2"), kSoftSettling);
}

}  // namespace viaduct::verbs
