#include "dat/api/named_attributes.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dat/api/attribute_names.h"
#include "dat/api/limits.h"
#include "verbs/base/lock.h"
#include "verbs/base/per_process.h"

namespace viaduct::dat {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Lists {
  verbs::Mutex lock;
  std::map<Pairs, std::vector<DAT_NAMED_ATTR>> all ABSL_GUARDED_BY(lock);
};

absl::Span<const DAT_NAMED_ATTR> Kept(Pairs pairs) {
  auto& lists = verbs::PerProcess<Lists>::Get();
  verbs::MutexLock lock(&lists.lock);
  auto& [kept, list] = *lists.all.try_emplace(std::move(pairs)).first;
  if (list.empty()) {
    list.reserve(kept.size());  // if it throws, the next call tries again
    for (const auto& [name, value] : kept) list.push_back({name.c_str(), value.c_str()});
  }
  return list;
}

}  // namespace

absl::Span<const DAT_NAMED_ATTR> NamedAttributesOf(const verbs::DeviceAttributes& device) {
  Pairs pairs;
  for (const DAT_NAMED_ATTR& named : VersionAttributesOf(device)) {
    pairs.emplace_back(named.name, named.value);
  }
  pairs.emplace_back(kDeviceAttribute, device.device);
  pairs.emplace_back(kTransportAttribute, device.transport);
  pairs.emplace_back(kReasonAttribute, device.reason);
  pairs.emplace_back(kSharedSegmentsAttribute,
                     std::to_string(std::min<uint32_t>(device.max_shared_segments, kMaxSegments)));
  return Kept(std::move(pairs));
}

}  // namespace viaduct::dat
