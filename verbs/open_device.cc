#include "verbs/open_device.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "verbs/base/control_thread.h"
#include "verbs/base/interfaces.h"
#include "verbs/base/settings.h"
#include "verbs/rdma_library.h"
#include "verbs/soft/open.h"
#include "verbs/soft/wake_time.h"

namespace viaduct::verbs {
namespace {

constexpr char kRdma[] = "rdma";

bool IsSoft(const std::string& name) {
  return name == kAnyDevice || name == "shm" || name == "iwarp";
}

absl::StatusOr<std::unique_ptr<Context>> OpenRdmaDevice(const Address& address,
                                                        const std::string& name) {
  const rdma::Module* const module = RdmaLibrary();
  if (module == nullptr) {
    const bool all = ChoiceSetting(SettingId::kWire) == kRdma;
    return absl::NotFoundError(absl::StrCat("there is no device ", name,
                                            ": this host has no RDMA device that can be used",
                                            all ? ", and VIADUCT_WIRE asks for one" : ""));
  }
  absl::StatusOr<ControlThread*> loop = ControlThread::Get();
  if (!loop.ok()) return loop.status();
  const std::optional<int64_t> spin = NumberOrAutoSetting(SettingId::kSpinUs);
  return module->open(**loop, address, name == kRdma ? "" : name,
                      spin ? *spin * kNanosPerMicro : WakeTime(**loop));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Context>> OpenDevice(const Address& address,
                                                    const std::string& name) {
  const std::optional<Interfaces> interfaces = ListInterfaces();
  if (!interfaces) return absl::ResourceExhaustedError("to ask for the interfaces");
  if (!address.IsLoopback() && !HasAddress(*interfaces, address)) {
    return absl::NotFoundError(absl::StrCat("no interface has the address ", address.ToString()));
  }
  if (!IsSoft(name)) return OpenRdmaDevice(address, name);
  if (ChoiceSetting(SettingId::kWire) == kRdma) return OpenRdmaDevice(address, kRdma);
  return OpenSoftDevice(address, name);
}

std::vector<RdmaPort> ListRdmaPorts() {
  const rdma::Module* const module = RdmaLibrary();
  return module != nullptr ? module->list_ports() : std::vector<RdmaPort>();
}

std::vector<RdmaAdapter> ListRdmaAdapters() { return AdaptersOf(ListRdmaPorts()); }

bool NamesRdmaDevice(const std::string& adapter) {
  return KernelHasRdmaDevice(adapter.substr(0, adapter.find(':')));
}

}  // namespace viaduct::verbs
