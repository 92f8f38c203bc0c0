// Descriptors whose copies a forked child closes, so that peers notice the death of the parent even
// while the child lives; and an owner of such a descriptor.
//
// A fork copies the descriptors first and the memory, with the table, some milliseconds later.
// Hence no descriptor of a table comes or goes meanwhile: see FdChange. The table needs no lock,
// which in the child might be held by a thread that is not there.
#ifndef VIADUCT_VERBS_BASE_FD_TABLE_H_
#define VIADUCT_VERBS_BASE_FD_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "verbs/base/fd.h"

namespace viaduct::verbs {

// While one exists no fork begins, so a descriptor and its entry in a table come or go as one. Not
// nested; a local variable of a thread that waits for nobody meanwhile.
class FdChange {
 public:
  FdChange();
  // For a thread that may wait for nobody: it exists only if `exists` says so.
  explicit FdChange(std::try_to_lock_t);
  ~FdChange();
  FdChange(const FdChange&) = delete;
  FdChange& operator=(const FdChange&) = delete;

  bool exists() const { return exists_; }

 private:
  const bool exists_;
};

// Any thread. Never destroyed: for constinit objects. One bit per descriptor, in pages that are
// made on demand and never freed; higher numbers (than a process may have) are not in it.
class FdTable {
 public:
  constexpr FdTable() = default;
  FdTable(const FdTable&) = delete;
  FdTable& operator=(const FdTable&) = delete;

  // False: the number is too high for the table. True: Add needs no memory for it.
  bool Reserve(int fd) { return WordOf(static_cast<size_t>(fd)) != nullptr; }
  void Add(int fd);
  // Needs no memory; nothing happens if the descriptor is not in it.
  void Remove(int fd);

  // In a forked child: closes the inherited descriptors and empties the table. The numbers may be
  // other files afterwards.
  void CloseInForkChild();
  // How many forks lie behind this process: a descriptor that was added before the last is closed.
  uint32_t generation() const { return generation_.load(std::memory_order_relaxed); }

  // Calls act(fd) for each descriptor of the table; some may be closed meanwhile.
  template <typename Act>
  void ForEach(Act act) const {
    for (size_t p = 0; p < kPages; ++p) {
      const Page* const page = pages_[p].load(std::memory_order_acquire);
      if (page == nullptr) continue;
      for (size_t w = 0; w < kPageWords; ++w) {
        uint64_t word = page->words[w].load(std::memory_order_acquire);
        for (; word != 0; word &= word - 1) {
          act(static_cast<int>(p * kPageBits + w * kWordBits +
                               static_cast<size_t>(__builtin_ctzll(word))));
        }
      }
    }
  }

  // The same, but none is closed during its call. Waits for nobody: false if it has left some out
  // because of other threads, and may be called again.
  template <typename Act>
  bool TryForEach(Act act) const {
    bool all = true;
    ForEach([&](int fd) {
      const FdChange change(std::try_to_lock);
      if (!change.exists()) {
        all = false;
      } else if (Has(fd)) {
        act(fd);
      }
    });
    return all;
  }

 private:
  static constexpr size_t kWordBits = 64;
  static constexpr size_t kPageWords = 512;
  static constexpr size_t kPageBits = kPageWords * kWordBits;
  static constexpr size_t kPages = 64;
  struct Page {
    std::atomic<uint64_t> words[kPageWords] = {};
  };

  std::atomic<uint64_t>* WordOf(size_t fd);
  bool Has(int fd) const;  // of a page that is there

  std::atomic<Page*> pages_[kPages] = {};
  std::atomic<uint32_t> generation_{0};
};

// Move-only; closes the descriptor that it owns, which is in the table until then. Made inside the
// FdChange in which the descriptor was opened; closed, and assigned to, outside of any.
class TabledFd {
 public:
  TabledFd() = default;
  TabledFd(FdTable& table, Fd fd) : TabledFd(table, std::move(fd), nullptr, nullptr) {}
  // `end` is called before the close, while the descriptor is still in the table. If it returns
  // false, `close` gets the descriptor to close; otherwise, or without `end` (null), this closes
  // it.
  TabledFd(FdTable& table, Fd fd, bool (*end)(int), void (*close)(Fd));
  TabledFd(TabledFd&& other) noexcept
      : table_(other.table_),
        end_(other.end_),
        close_(other.close_),
        generation_(other.generation_),
        fd_(std::move(other.fd_)) {}
  TabledFd& operator=(TabledFd&& other) noexcept {
    if (this != &other) {
      Reset();
      table_ = other.table_;
      end_ = other.end_;
      close_ = other.close_;
      generation_ = other.generation_;
      fd_ = std::move(other.fd_);
    }
    return *this;
  }
  TabledFd(const TabledFd&) = delete;
  TabledFd& operator=(const TabledFd&) = delete;
  ~TabledFd() { Reset(); }

  int get() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  // True in a forked child for a descriptor that the parent owned: its copy is closed here, and its
  // number may be another file's.
  bool inherited() const { return table_ != nullptr && generation_ != table_->generation(); }
  void Reset();

 private:
  FdTable* table_ = nullptr;
  bool (*end_)(int) = nullptr;
  void (*close_)(Fd) = nullptr;
  uint32_t generation_ = 0;
  Fd fd_;
};

// Returns what `open` opens as an Owner, whose table has it before the next fork begins.
template <typename Owner, typename Open>
Owner OpenAs(Open open) {
  const FdChange change;
  return Owner(open());
}

// The same for an `open` that returns a descriptor, or -1 with an errno; uses MoveHigh.
template <typename Owner, typename Open>
Owner OpenHighAs(Open open) {
  return OpenAs<Owner>([&open] { return MoveHigh(Fd(open())); });
}

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_FD_TABLE_H_
