// DescriptorRing: what a work queue keeps of its posted descriptors, in posting order.
//
// A circle of small blocks. Where the end would meet the beginning a block is put in between:
// nothing moves, a VI that is idle costs next to nothing, and one that works stays in few cache
// lines. Cursors run round the circle; who posts, who completes and who takes has one each.
//
// A cursor at the end of a block reads the way on with its next step. So the poster fills a block
// only when the taker is inside the one behind it, or further: behind a block that was filled
// another may be put, and nobody stands between them.
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
    uint32_t status;  // at first the error it was posted with, then what it completed with
  };

  // Stands between two slots. Only the poster's may run ahead of what is posted.
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

  // The poster's: with so many slots behind its cursor in use, there is one for Next.
  bool HasRoom(const Cursor& end, uint64_t in_use) const {
    return end.index_ != kSlots || in_use + kSlots < blocks_ * kSlots;
  }
  // If there is none: makes room. A ring of which n were in use at the most has at most n / kSlots
  // + 2 blocks. False: there is no memory.
  bool AddBlock(const Cursor& end) {
    Block* const added = new (std::nothrow) Block;
    if (added == nullptr) return false;
    added->next = blocks_ == 0 ? added : end.block_->next;
    end.block_->next = added;
    ++blocks_;
    return true;
  }

 private:
  static constexpr uint32_t kSlots = 31;  // of 16 bytes, and the link
  struct Block : Link {
    Slot slots[kSlots];
  };

  Link start_ = {nullptr};  // leads to the first block
  uint64_t blocks_ = 0;     // the poster's
};

}  // namespace viaduct::vipl

#endif  // VIADUCT_VIPL_DESCRIPTOR_RING_H_
