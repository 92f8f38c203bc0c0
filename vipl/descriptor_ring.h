// DescriptorRing: what a work queue keeps of its posted descriptors, in posting order.
//
// A ring of small blocks. When the end would meet the beginning, a new block is inserted between
// them: nothing moves, an idle VI costs next to nothing, and a busy one stays in few cache lines.
// Cursors run round the ring: the poster, the completer and the taker have one each.
//
// A cursor at the end of a block reads the link to the next block only when it takes its next step.
// So the poster starts to fill a block only after the taker has entered the following one: when the
// block is full, another can be inserted after it, and no cursor stands between the two.
#ifndef VIADUCT_VIPL_DESCRIPTOR_RING_H_
#define VIADUCT_VIPL_DESCRIPTOR_RING_H_

#include <vipl.h>

#include <cstdint>
#include <new>

namespace viaduct::vipl {

class DescriptorRing {
 private:
  struct Block;
  struct Link {
    Block* next;
  };

 public:
  struct Slot {
    VIP_DESCRIPTOR* descriptor;
    VIP_MEM_HANDLE memory;
    uint32_t status;  // the error that it was posted with, or 0; then the Status that it got
  };

  // A position between two slots. Only the poster's cursor may step past what is posted.
  class Cursor {
   public:
    Slot& Next() {
      if (index_ == kSlots) {
        block_ = block_->next;
        index_ = 0;
      }
      return static_cast<Block*>(block_)->slots[index_++];
    }

   private:
    friend class DescriptorRing;
    explicit Cursor(Link* block) : block_(block) {}
    Link* block_;
    uint32_t index_ = kSlots;
  };

  DescriptorRing() = default;
  ~DescriptorRing() {
    if (blocks_ == 0) return;
    for (Block* block = start_.next; blocks_ != 0; --blocks_) {
      Block* const next = block->next;
      delete block;
      block = next;
    }
  }
  DescriptorRing(const DescriptorRing&) = delete;
  DescriptorRing& operator=(const DescriptorRing&) = delete;

  // Before the first slot.
  Cursor begin() { return Cursor(&start_); }

  // For the poster: whether Next has a free slot while `in_use` slots before the cursor are in use.
  bool HasRoom(const Cursor& end, uint64_t in_use) const {
    return end.index_ != kSlots || in_use + kSlots < blocks_ * kSlots;
  }
  // Makes room if HasRoom is false. A ring that had at most n slots in use has at most n / kSlots +
  // 2 blocks. False: there is no memory.
  bool AddBlock(const Cursor& end) {
    Block* const added = new (std::nothrow) Block;
    if (added == nullptr) return false;
    added->next = blocks_ == 0 ? added : end.block_->next;
    end.block_->next = added;
    ++blocks_;
    return true;
  }

 private:
  static constexpr uint32_t kSlots = 31;  // of 16 bytes each, after the link
  struct Block : Link {
    Slot slots[kSlots];
  };

  Link start_ = {nullptr};  // leads to the first block
  uint64_t blocks_ = 0;     // used only by the poster
};

}  // namespace viaduct::vipl

#endif  // VIADUCT_VIPL_DESCRIPTOR_RING_H_
