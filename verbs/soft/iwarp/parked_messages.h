// What has arrived and must wait until the program posts a receive (NoReceive::kHold), in order.
// The bytes are copied, since other links use the receive buffer meanwhile.
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
    kSend,      // a segment of queue 0
    kRefused,   // the same, directly after a Write that was refused
    kWrite,     // of a Write, or its immediate data, after a Write that is parked or whose end is
    kWriteEnd,  // the end of a Write whose bytes have been placed; holds no bytes
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
  // The front is the last segment of a Write whose bytes have been placed: now only its end waits.
  void TurnFrontIntoWriteEnd();

  bool empty() const { return items_.empty(); }
  bool full() const { return bytes_ > kLimit; }
  size_t count(Kind kind) const { return counts_[static_cast<size_t>(kind)]; }
  // A Write, or the end of one, is parked: later Writes must not be placed before it.
  bool HasWrite() const { return count(Kind::kWrite) + count(Kind::kWriteEnd) > 0; }

 private:
  // Counted per item in addition to its bytes, so that empty messages are not free.
  static constexpr size_t kItemCost = 64;

  std::list<Item> items_;
  size_t bytes_ = 0;
  size_t counts_[5] = {};
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_PARKED_MESSAGES_H_
