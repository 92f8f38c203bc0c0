// One thread at a time.
#ifndef VIADUCT_VIPL_TURN_H_
#define VIADUCT_VIPL_TURN_H_

#include <atomic>

namespace viaduct::vipl {

// Lets one thread at a time begin a connection of a VI; the rest finds it pending.
class Turn {
 public:
  explicit Turn(std::atomic<bool>* taken)
      : taken_(taken->exchange(true, std::memory_order_acquire) ? nullptr : taken) {}
  ~Turn() {
    if (taken_ != nullptr) taken_->store(false, std::memory_order_release);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool is_mine() const { return taken_ != nullptr; }

 private:
  std::atomic<bool>* const taken_;
};

}  // namespace viaduct::vipl

#endif  // VIADUCT_VIPL_TURN_H_
