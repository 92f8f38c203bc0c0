#include "verbs/soft/open.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "verbs/base/control_thread.h"
#include "verbs/base/settings.h"
#include "verbs/soft/context.h"
#include "verbs/soft/futex_doorbell.h"
#include "verbs/soft/iwarp/wire.h"
#include "verbs/soft/rendezvous.h"
#include "verbs/soft/shm/wire.h"
#include "verbs/soft/wake_time.h"

namespace viaduct::verbs {
namespace {

using iwarp::IwarpWire;

DeviceAttributes Attributes(absl::string_view wires, absl::string_view why) {
  DeviceAttributes attributes;
  attributes.device = "soft";
  attributes.transport = std::string(wires);
  attributes.reason = absl::StrCat("no RDMA device is used; wires: ", wires, why);
  attributes.max_queue_pairs = 65536;
  attributes.max_requests_per_queue = 65535;
  attributes.max_segments = 256;
  attributes.max_reads_in = IwarpWire::kMaxReads;
  attributes.max_reads_out = IwarpWire::kMaxReads;
  attributes.max_regions = 65536;
  attributes.max_region_bytes = uint64_t{1} << 40;
  attributes.max_message_bytes = IwarpWire::kMaxMessageBytes;
  attributes.max_private_data = IwarpWire::kMaxPrivateData;
  attributes.max_shared_queues = std::numeric_limits<uint32_t>::max();  // memory is the limit
  attributes.max_shared_receives = attributes.max_requests_per_queue;
  attributes.max_shared_segments = attributes.max_segments;
  return attributes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Context>> OpenSoftDevice(const Address& address,
                                                        const std::string& wanted) {
  absl::StatusOr<ControlThread*> loop = ControlThread::Get();
  if (!loop.ok()) return loop.status();
  const std::optional<int64_t> spin = NumberOrAutoSetting(SettingId::kSpinUs);
  const Nanos spin_time = spin ? *spin * kNanosPerMicro : WakeTime(**loop);

  const Nanos silence = NumberSetting(SettingId::kSilenceMs) * kNanosPerMilli;

  const std::string forced = ChoiceSetting(SettingId::kWire);
  std::string wires = forced != "auto" ? forced : wanted;
  const bool alone = wires != "shm" && wires != "iwarp" && !MayRendezvous();
  if (alone) wires = "iwarp";
  SoftContext::Options options;
  options.address = address;
  options.executor = *loop;
  options.attributes = Attributes(wires == "auto" ? "shm, iwarp" : wires,
                                  alone ? " (a filter refuses unix sockets)" : "");
  if (wires == "iwarp") {
    options.doorbell = std::make_unique<FutexDoorbell>(spin_time);
  } else {
    options.doorbell = std::make_unique<shm::ShmDoorbell>(**loop, spin_time);
    options.wires.push_back(std::make_unique<shm::ShmWire>(**loop, address, silence));
  }
  if (wires != "shm") {
    IwarpWire::Options iwarp;
    iwarp.address = address;
    iwarp.loopback_only = ChoiceSetting(SettingId::kListen) == "loopback";
    iwarp.silence = silence;
    iwarp.first_word = NumberSetting(SettingId::kFirstWordMs) * kNanosPerMilli;
    iwarp.crc = ChoiceSetting(SettingId::kCrc) == "on";
    options.wires.push_back(std::make_unique<IwarpWire>(**loop, iwarp));
  }
  return std::make_unique<SoftContext>(std::move(options));
}

}  // namespace viaduct::verbs
