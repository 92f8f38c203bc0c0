#include "verbs/soft/iwarp/parked_messages.h"

#include <algorithm>
#include <utility>

namespace viaduct::verbs::iwarp {

void ParkedMessages::Push(Kind kind, std::span<const uint8_t> ulpdu) {
  Item item;
  item.kind = kind;
  item.size = ulpdu.size();
  if (!ulpdu.empty()) {
    item.bytes = std::make_unique_for_overwrite<uint8_t[]>(ulpdu.size());
    std::copy(ulpdu.begin(), ulpdu.end(), item.bytes.get());
  }
  bytes_ += item.size + kItemCost;
  ++counts_[static_cast<size_t>(kind)];
  items_.push_back(std::move(item));
}

void ParkedMessages::Pop() {
  bytes_ -= items_.front().size + kItemCost;
  --counts_[static_cast<size_t>(items_.front().kind)];
  items_.pop_front();
}

void ParkedMessages::TurnFrontIntoWriteEnd() {
  Item& item = items_.front();
  --counts_[static_cast<size_t>(item.kind)];
  ++counts_[static_cast<size_t>(Kind::kWriteEnd)];
  bytes_ -= item.size;
  item = Item{Kind::kWriteEnd, nullptr, 0};
}

}  // namespace viaduct::verbs::iwarp
