#include "tests/hotpath/allocations.h"

#include <cerrno>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VIADUCT_HOTPATH_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define VIADUCT_HOTPATH_SANITIZED 1
#endif
#endif

namespace viaduct::hotpath {
namespace {

thread_local bool counting = false;
thread_local int counted = 0;

[[maybe_unused]] void Count() {
  if (counting) ++counted;
}

}  // namespace

void StartCountingAllocations() {
  counted = 0;
  counting = true;
}

int StopCountingAllocations() {
  counting = false;
  return counted;
}

#ifdef VIADUCT_HOTPATH_SANITIZED
bool CountsAllocations() { return false; }
}  // namespace viaduct::hotpath
#else
bool CountsAllocations() { return true; }
}  // namespace viaduct::hotpath

// glibc's own, under the names that it keeps for programs that replace malloc.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t n, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* memory);

#define VIADUCT_HOTPATH_EXPORT __attribute__((visibility("default")))

VIADUCT_HOTPATH_EXPORT void* malloc(size_t size) {
  viaduct::hotpath::Count();
  return __libc_malloc(size);
}
VIADUCT_HOTPATH_EXPORT void* calloc(size_t n, size_t size) {
  viaduct::hotpath::Count();
  return __libc_calloc(n, size);
}
VIADUCT_HOTPATH_EXPORT void* realloc(void* old, size_t size) {
  viaduct::hotpath::Count();
  return __libc_realloc(old, size);
}
VIADUCT_HOTPATH_EXPORT void* memalign(size_t alignment, size_t size) {
  viaduct::hotpath::Count();
  return __libc_memalign(alignment, size);
}
VIADUCT_HOTPATH_EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  viaduct::hotpath::Count();
  return __libc_memalign(alignment, size);
}
VIADUCT_HOTPATH_EXPORT int posix_memalign(void** out, size_t alignment, size_t size) {
  viaduct::hotpath::Count();
  void* memory = __libc_memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}
VIADUCT_HOTPATH_EXPORT void free(void* memory) {
  if (memory != nullptr) viaduct::hotpath::Count();
  __libc_free(memory);
}
}
#endif
