#include "verbs/base/fd_table.h"

#include <unistd.h>

#include "verbs/base/at_fork.h"
#include "verbs/base/lock.h"

namespace viaduct::verbs {
namespace {

uint64_t BitOf(int fd) { return uint64_t{1} << static_cast<unsigned>(fd) % 64; }

constinit Mutex g_changing;

void BeforeFork() ABSL_NO_THREAD_SAFETY_ANALYSIS { g_changing.Lock(); }
void AfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS { g_changing.Unlock(); }

const AtFork g_at_fork(BeforeFork, AfterFork, AfterFork);

}  // namespace

FdChange::FdChange() ABSL_NO_THREAD_SAFETY_ANALYSIS : exists_(true) { g_changing.Lock(); }
FdChange::FdChange(std::try_to_lock_t) ABSL_NO_THREAD_SAFETY_ANALYSIS
    : exists_(g_changing.TryLock()) {}
FdChange::~FdChange() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (exists_) g_changing.Unlock();
}

std::atomic<uint64_t>* FdTable::WordOf(size_t fd) {
  const size_t index = fd / kPageBits;
  if (index >= kPages) return nullptr;
  Page* page = pages_[index].load(std::memory_order_acquire);
  if (page == nullptr) {
    auto* const made = new Page;
    if (pages_[index].compare_exchange_strong(page, made, std::memory_order_acq_rel)) {
      page = made;
    } else {
      delete made;
    }
  }
  return &page->words[fd % kPageBits / kWordBits];
}

void FdTable::Add(int fd) {
  if (auto* const word = WordOf(static_cast<size_t>(fd))) {
    word->fetch_or(BitOf(fd), std::memory_order_release);
  }
}

void FdTable::Remove(int fd) {
  const size_t index = static_cast<size_t>(fd) / kPageBits;
  if (index >= kPages || pages_[index].load(std::memory_order_acquire) == nullptr) return;
  WordOf(static_cast<size_t>(fd))->fetch_and(~BitOf(fd), std::memory_order_relaxed);
}

bool FdTable::Has(int fd) const {
  const auto bit = static_cast<size_t>(fd);
  const Page* const page = pages_[bit / kPageBits].load(std::memory_order_acquire);
  return (page->words[bit % kPageBits / kWordBits].load(std::memory_order_acquire) & BitOf(fd)) !=
         0;
}

void FdTable::CloseInForkChild() {
  generation_.fetch_add(1, std::memory_order_relaxed);
  ForEach([this](int fd) {
    Remove(fd);
    close(fd);
  });
}

TabledFd::TabledFd(FdTable& table, Fd fd, bool (*end)(int), void (*close)(Fd))
    : table_(&table),
      end_(end),
      close_(close),
      generation_(table.generation()),
      fd_(std::move(fd)) {
  if (fd_.valid()) table_->Add(fd_.get());
}

void TabledFd::Reset() {
  if (!fd_.valid()) return;
  if (inherited()) {
    fd_.Release();
    return;
  }
  const bool at_once = end_ == nullptr || end_(fd_.get());
  {
    const FdChange change;
    // Before the close: as soon as the number is free, another thread may have it.
    table_->Remove(fd_.get());
    if (at_once) fd_.Reset();
  }
  if (!at_once) close_(std::move(fd_));
}

}  // namespace viaduct::verbs
