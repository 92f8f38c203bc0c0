// What adapters there are, by name: those of dat.conf, then the built-in ones, which are soft0 and
// the RDMA adapters of this host.
#ifndef VIADUCT_DAT_REGISTRY_REGISTRY_H_
#define VIADUCT_DAT_REGISTRY_REGISTRY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dat/core/error.h"
#include "dat/registry/dat_conf.h"
#include "verbs/base/address.h"
#include "verbs/device.h"
#include "verbs/rdma_adapter.h"

namespace viaduct::registry {

// Why nothing fits: the first of name, major version, minor version and thread safety that no
// entry has.
enum class Found { kNoName, kNoMajor, kNoMinor, kNoThreadSafety, kYes };

class Registry {
 public:
  // The process's registry: made at the first call, never changed. Any thread; entries stay valid.
  static const Registry& Get();

  explicit Registry(std::vector<Entry> entries) : entries_(std::move(entries)) {}
  const std::vector<Entry>& entries() const { return entries_; }

  // The entries to try, in the file's order: those with the lowest minor version that is at least
  // `minor` (uDAPL 1.2 dat_ia_open). Entries of one name, version and thread safety are
  // alternatives: the first one whose library can be loaded is used.
  Found Find(const std::string& name, uint32_t major, uint32_t minor, bool thread_safe,
             std::vector<const Entry*>* entries) const;

 private:
  const std::vector<Entry> entries_;
};

// soft0 and `rdma`, for both versions, thread-safe and not; the engine is always thread-safe.
std::vector<Entry> BuiltInEntries(const std::vector<verbs::RdmaAdapter>& rdma);

// The entries of the file that DAT_OVERRIDE names, and no others; without DAT_OVERRIDE, those of
// /etc/dat.conf, then the built-in ones. Bad lines and a file that cannot be read are logged.
// Throws std::bad_alloc if a descriptor or memory is missing, which may be different at the next
// call.
std::vector<Entry> ReadEntries();

// `file`, then those entries of `built_in` whose name and major version `file` does not have.
std::vector<Entry> WithBuiltIn(std::vector<Entry> file, std::vector<Entry> built_in);

// Whether the engine that is linked here serves the entry: a built-in one, one that names our own
// provider library, and, where VIADUCT_OFED_ENTRIES says so, one of the OFED providers.
bool IsEngines(const Entry& entry);

// Whether the entry names a provider library of OFED (libdaplofa, libdaploscm, libdaploucm, ...).
bool IsOfeds(const Entry& entry);

// The address at which the engine opens an entry's adapter, and the device that serves it.
struct Place {
  verbs::Address address;
  std::string device = verbs::kAnyDevice;
};

// Finds what the first word of the entry's parameters names: a network interface, an address, or an
// RDMA adapter under its name in ListRdmaAdapters or under its device's, which then serves the
// entry. Behind a device's name the second word is the port's number; without one, or with 0, it is
// the first port that is listed. An RDMA device that cannot be used stands for its network
// interface. Without parameters it is the interface of the IPv4 default route, or
// 127.0.0.1. kNotFound: nothing here has that name or address; kInsufficientResources: the kernel
// could not be asked.
core::Error PlaceOf(const Entry& entry, Place* place);

// The line of dat.conf by which the engine serves the adapter of somebody else's entry: at the
// place that its parameters name, or, if nothing here has that name or address, at the default
// route's.
std::string LineOfOurs(const Entry& entry);

}  // namespace viaduct::registry

#endif  // VIADUCT_DAT_REGISTRY_REGISTRY_H_
