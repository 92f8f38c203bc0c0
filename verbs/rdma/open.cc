#include "verbs/rdma/open.h"

#include <dirent.h>
#include <rdma/rdma_cma.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <new>
#include <optional>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "verbs/base/fd.h"
#include "verbs/base/interfaces.h"
#include "verbs/base/log.h"
#include "verbs/rdma/context.h"
#include "verbs/rdma/device.h"
#include "verbs/rdma/errors.h"

namespace viaduct::verbs::rdma {
namespace {

constinit std::atomic<bool> rights_checked{false};

// Asks librdmacm which device has an address.
class Binding {
 public:
  explicit Binding(const Address& address) {
    if (rdma_create_id(nullptr, &id_, nullptr, RDMA_PS_TCP) != 0) {
      error_ = errno;
      id_ = nullptr;
      return;
    }
    sockaddr_storage at;
    address.ToSockaddr(0, &at);
    if (rdma_bind_addr(id_, reinterpret_cast<sockaddr*>(&at)) != 0) error_ = errno;
  }
  ~Binding() {
    if (id_ != nullptr) rdma_destroy_id(id_);
  }
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;

  int error() const { return error_; }
  // Null: no RDMA device has the address.
  ibv_context* verbs() const { return error_ == 0 ? id_->verbs : nullptr; }
  int port() const { return id_->port_num; }

 private:
  rdma_cm_id* id_ = nullptr;
  int error_ = 0;
};

// Whether descriptors are too short for librdmacm and libibverbs to find the devices. Asked before
// they do: libibverbs reads once which drivers there are, and keeps what it found.
bool LacksDescriptors() {
  // At the same time: its folder of drivers, a file there, and a device's two.
  std::array<Fd, 4> fds;
  return std::any_of(fds.begin(), fds.end(), [](Fd& fd) {
    fd = Fd(eventfd(0, EFD_CLOEXEC));
    return !fd.valid();
  });
}

// Whether descriptors or memory were too short to find out. librdmacm says ENODEV also of a device
// that it could not open.
bool IsShort(const Binding& binding) {
  return binding.verbs() == nullptr && (IsShortage(binding.error()) || LacksDescriptors());
}

// Checks the rights, since librdmacm does not tell missing rights from missing devices. Returns OK,
// or what is wrong, which is logged with its cure.
absl::Status CheckRights() {
  constexpr char kFolder[] = "/dev/infiniband";
  if (access("/dev/infiniband/rdma_cm", R_OK | W_OK) != 0) {
    return ErrnoStatus(errno, "/dev/infiniband/rdma_cm");
  }
  DIR* const folder = opendir(kFolder);
  if (folder == nullptr) return ErrnoStatus(errno, kFolder);
  const absl::Cleanup close = [folder] { closedir(folder); };
  absl::Status status;
  for (const dirent* entry; (entry = readdir(folder)) != nullptr;) {
    const std::string path = absl::StrCat(kFolder, "/", entry->d_name);
    if (!absl::StartsWith(entry->d_name, "uverbs")) continue;
    if (access(path.c_str(), R_OK | W_OK) != 0) status = ErrnoStatus(errno, path);
  }
  return status;
}

}  // namespace

std::vector<RdmaPort> ListPorts() {
  std::vector<RdmaPort> ports;
  const std::optional<Interfaces> interfaces = ListInterfaces();
  if (!interfaces) throw std::bad_alloc();  // a line was logged
  if (LacksDescriptors()) throw std::bad_alloc();
  for (const Interface& interface : *interfaces) {
    if (interface.loopback || !interface.up) continue;
    const Binding binding(interface.address);
    if (IsShort(binding)) throw std::bad_alloc();
    if (binding.verbs() == nullptr) continue;
    ports.push_back({binding.verbs()->device->name, binding.port(), interface.address});
  }
  if (ports.empty() && !rights_checked.exchange(true)) CheckRights().IgnoreError();
  return ports;
}

absl::StatusOr<std::unique_ptr<Context>> Open(EventLoop& loop, const Address& address,
                                              const std::string& name, Nanos spin) {
  if (Device::InheritedAny()) {
    return absl::FailedPreconditionError(
        "a child of a process that had an RDMA device open cannot open one: it has to fork first");
  }
  constexpr char kShort[] = "to ask librdmacm for the device";
  if (LacksDescriptors()) return absl::ResourceExhaustedError(kShort);
  const Binding binding(address);
  if (IsShort(binding)) return absl::ResourceExhaustedError(kShort);
  if (binding.verbs() == nullptr) {
    if (const absl::Status rights = CheckRights(); !rights.ok()) return rights;
  }
  if (binding.error() == EADDRNOTAVAIL || binding.error() == ENODEV ||
      (binding.error() == 0 && binding.verbs() == nullptr)) {
    return absl::NotFoundError(absl::StrCat("no RDMA device has the address ", address.ToString()));
  }
  if (binding.error() != 0) return ErrnoStatus(binding.error(), "rdma_cm");
  const std::string found = binding.verbs()->device->name;
  if (!name.empty() && name != found) {
    return absl::NotFoundError(
        absl::StrCat(address.ToString(), " is an address of ", found, " and not of ", name));
  }
  absl::StatusOr<Device*> device = Device::Get(binding.verbs(), address, loop);
  if (!device.ok()) return device.status();
  if ((*device)->gone()) {
    return absl::UnavailableError(absl::StrCat("the device ", found, " was removed"));
  }
  return std::make_unique<RdmaContext>(**device, binding.port(), address, spin);
}

}  // namespace viaduct::verbs::rdma
