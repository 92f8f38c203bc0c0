#include "tests/faults/failing_memory.h"

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

// Of this thread: the number of allocations up to the one that fails; 0 if none does.
thread_local int countdown = 0;
thread_local bool for_good = false;  // all later ones fail, too
thread_local bool failed = false;
std::atomic<int64_t> live{0};
std::atomic<bool> fail_new_threads{false};
std::atomic<int> failed_new_threads{0};
thread_local const bool is_new = fail_new_threads;  // as it was at the thread's first allocation

void* Allocate(std::size_t alignment, std::size_t size) {
  if (is_new && fail_new_threads) {
    ++failed_new_threads;
    throw std::bad_alloc();
  }
  if (countdown != 0 && --countdown == 0) {
    failed = true;
    if (for_good) countdown = 1;
    throw std::bad_alloc();
  }
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, size) != 0) throw std::bad_alloc();
  ++live;
  return memory;
}

void Free(void* memory) {
  if (memory != nullptr) --live;
  free(memory);
}

}  // namespace

// Replaces the C++ library's operators, for the libraries under test too.
void* operator new(std::size_t size) { return Allocate(alignof(std::max_align_t), size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(static_cast<std::size_t>(alignment), size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { Free(memory); }

namespace viaduct::tests {

void FailAllocation(int n) {
  countdown = n;
  for_good = failed = false;
}

void FailAllocationsFrom(int n) {
  FailAllocation(n);
  for_good = true;
}

void FailNewThreads() { fail_new_threads = true; }

bool AwaitFailureOfNewThread() {
  for (int i = 0; i < 1000 && failed_new_threads == 0; ++i) poll(nullptr, 0, 10);
  return failed_new_threads != 0;
}

bool StopFailing() {
  fail_new_threads = false;
  countdown = 0;
  return failed;
}

int64_t LiveAllocations() { return live; }

bool LiveAtMost(int64_t most) {
  for (int i = 0; i < 1000 && live > most; ++i) poll(nullptr, 0, 10);
  return live <= most;
}

}  // namespace viaduct::tests
