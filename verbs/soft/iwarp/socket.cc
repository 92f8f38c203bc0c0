#include "verbs/soft/iwarp/socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace viaduct::verbs::iwarp {
namespace {

// One bit per descriptor, in pages that are made on demand and never freed: the hook of a fork
// takes no lock. Descriptors beyond (more than a process may have) are not in it.
constexpr size_t kWordBits = 64;
constexpr size_t kPageWords = 512;
constexpr size_t kPageBits = kPageWords * kWordBits;
constexpr size_t kPages = 64;

struct Page {
  std::atomic<uint64_t> words[kPageWords] = {};
};

constinit std::atomic<Page*> pages[kPages] = {};
constinit std::atomic<bool> hooked{false};
constinit std::atomic<bool> in_fork_child{false};

std::atomic<uint64_t>* WordOf(size_t fd) {
  const size_t index = fd / kPageBits;
  if (index >= kPages) return nullptr;
  Page* page = pages[index].load(std::memory_order_acquire);
  if (page == nullptr) {
    auto* const made = new Page;
    if (pages[index].compare_exchange_strong(page, made, std::memory_order_acq_rel)) {
      page = made;
    } else {
      delete made;
    }
  }
  return &page->words[fd % kPageBits / kWordBits];
}

uint64_t BitOf(size_t fd) { return uint64_t{1} << fd % kWordBits; }

// Calls `act` with each descriptor; with `forget`, none is remembered afterwards.
template <typename Act>
void ForEach(bool forget, Act act) {
  for (size_t p = 0; p < kPages; ++p) {
    Page* const page = pages[p].load(std::memory_order_acquire);
    if (page == nullptr) continue;
    for (size_t w = 0; w < kPageWords; ++w) {
      uint64_t word = forget ? page->words[w].exchange(0, std::memory_order_relaxed)
                             : page->words[w].load(std::memory_order_relaxed);
      for (; word != 0; word &= word - 1) {
        act(static_cast<int>(p * kPageBits + w * kWordBits +
                             static_cast<size_t>(__builtin_ctzll(word))));
      }
    }
  }
}

void CloseAll() {
  in_fork_child.store(true, std::memory_order_relaxed);
  ForEach(/*forget=*/true, [](int fd) { close(fd); });
}

}  // namespace

Socket::Socket(Fd fd) : fd_(std::move(fd)) {
  if (!fd_.valid()) return;
  const auto number = static_cast<size_t>(fd_.get());
  if (auto* const word = WordOf(number)) word->fetch_or(BitOf(number), std::memory_order_relaxed);
}

void Socket::Reset() {
  if (!fd_.valid()) return;
  const auto number = static_cast<size_t>(fd_.get());
  // In a child the descriptor is closed already, and its number may be another file's.
  if (InForkChild()) {
    fd_.Release();
    return;
  }
  if (auto* const word = WordOf(number)) word->fetch_and(~BitOf(number), std::memory_order_relaxed);
  fd_.Reset();
}

void CloseSocketsInForkChildren(EventLoop& loop) {
  if (!hooked.exchange(true)) loop.OnForkChild(CloseAll);
}

void ShutDownSocketsAtExit(EventLoop& loop) {
  static std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  loop.OnExit([] { ForEach(/*forget=*/false, [](int fd) { shutdown(fd, SHUT_WR); }); });
}

bool InForkChild() { return in_fork_child.load(std::memory_order_relaxed); }

}  // namespace viaduct::verbs::iwarp
