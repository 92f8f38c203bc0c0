#include "tests/rdma_mock/remote_keys.h"

#include <utility>

namespace viaduct::rdma_mock {

RemoteKeys::Entry RemoteKeys::NewEntry() {
  std::map<uint32_t, Reach> one = {{0, {}}};
  return one.extract(0);
}

void RemoteKeys::Open(uint32_t key, const Reach& reach, Entry entry) {
  entry.key() = key;
  entry.mapped() = reach;
  verbs::MutexLock lock(&mutex_);
  keys_.insert(std::move(entry));
}

RemoteKeys::Entry RemoteKeys::Remove(uint32_t key) {
  verbs::MutexLock lock(&mutex_);
  return keys_.extract(key);
}

Reach RemoteKeys::Find(uint32_t key) {
  verbs::MutexLock lock(&mutex_);
  const auto found = keys_.find(key);
  return found == keys_.end() ? Reach{} : found->second;
}

bool RemoteKeys::Use(const ibv_qp& pair, uint32_t key, uint64_t address, uint32_t bytes,
                     unsigned access, absl::FunctionRef<void(char*)> move) {
  if (bytes == 0) {
    move(nullptr);
    return true;
  }
  verbs::MutexLock lock(&mutex_);
  const auto found = keys_.find(key);
  if (found == keys_.end()) return false;
  const Reach& reach = found->second;
  const uint64_t offset = address - reach.from;
  if (reach.domain != pair.pd || (reach.pair != nullptr && reach.pair != &pair) ||
      (reach.access & access) != access || offset > reach.length || bytes > reach.length - offset) {
    return false;
  }
  move(reach.memory + offset);
  return true;
}

bool RemoteKeys::Close(const ibv_qp& pair, uint32_t key) {
  verbs::MutexLock lock(&mutex_);
  const auto found = keys_.find(key);
  if (found == keys_.end() || found->second.pair != &pair) return false;
  found->second = {};
  return true;
}

RemoteKeys& Remote() {
  static RemoteKeys* const keys = new RemoteKeys;
  return *keys;
}

}  // namespace viaduct::rdma_mock
