// What has arrived and must wait until the program posts a receive (NoReceive::kHold), in order.
// Copies, since the receive buffer goes to other links.
#ifndef VIADUCT_VERBS_SOFT_IWARP_PARKED_MESSAGES_H_
#define VIADUCT_VERBS_SOFT_IWARP_PARKED_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>

namespace viaduct::verbs::iwarp {

// Not thread-safe.
class ParkedMessages {
 public:
  // Beyond this the socket is not read any more.
  static constexpr size_t kLimit = 256 * 1024;

  enum class Kind : uint8_t {
    kSend,         // a segment of queue 0
    kRefused,      // that, right behind a Write that was refused
    kWrite,        // a segment of a Write, or its immediate data, behind another Write
    kWriteEnd,     // the end of a Write whose bytes are placed: no bytes
    kReadRequest,  // a Read Request or an Atomic Request
  };
  struct Item {
    Kind kind;
    std::unique_ptr<uint8_t[]> bytes;  // the ULPDU
    size_t size = 0;

    std::span<const uint8_t> ulpdu() const { return {bytes.get(), size}; }
  };

  void Push(Kind kind, std::span<const uint8_t> ulpdu);
  const Item& front() const { return items_.front(); }
  void Pop();
  // The front is the last segment of a Write: its bytes have been placed, its end waits.
  void TurnFrontIntoWriteEnd();

  bool empty() const { return items_.empty(); }
  bool full() const { return bytes_ > kLimit; }
  size_t count(Kind kind) const { return counts_[static_cast<size_t>(kind)]; }
  // What is written next must not be placed before it.
  bool HasWrite() const { return count(Kind::kWrite) + count(Kind::kWriteEnd) > 0; }

 private:
  // An item's own cost, so that empty messages are not free.
  static constexpr size_t kItemCost = 64;

  std::list<Item> items_;
  size_t bytes_ = 0;
  size_t counts_[5] = {};
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_PARKED_MESSAGES_H_
