// Each allocation of a call fails once: the call says so, and nothing of it is left behind.
#include <vipl.h>

#include <cstdlib>
#include <new>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"

namespace {

// Of this thread: how many allocations from now the one that fails is; 0: none does.
thread_local int countdown = 0;

void* Allocate(std::size_t alignment, std::size_t size) {
  if (countdown != 0 && --countdown == 0) throw std::bad_alloc();
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, size) != 0) throw std::bad_alloc();
  return memory;
}

}  // namespace

// In the place of the C++ library's, for the libraries under test too.
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
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, std::size_t) noexcept { free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { free(memory); }

namespace viaduct::tests {
namespace {

struct Made {
  VIP_CQ_HANDLE send_cq = nullptr, receive_cq = nullptr;
  VIP_VI_HANDLE vi = nullptr;
};

void MakeCqs(const Nic& nic, Made* made) {
  ASSERT_EQ(VipCreateCQ(nic.handle, 16, &made->send_cq), VIP_SUCCESS);
  ASSERT_EQ(VipCreateCQ(nic.handle, 16, &made->receive_cq), VIP_SUCCESS);
}
VIP_RETURN MakeVi(const Nic& nic, Made* made) {
  VIP_VI_ATTRIBUTES attributes = Attributes();
  return VipCreateVi(nic.handle, &attributes, made->send_cq, made->receive_cq, &made->vi);
}
void Destroy(const Made& made) {
  if (made.vi != nullptr) {
    EXPECT_EQ(VipDestroyVi(made.vi), VIP_SUCCESS);
  }
  EXPECT_EQ(VipDestroyCQ(made.send_cq), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyCQ(made.receive_cq), VIP_SUCCESS);
}

TEST(OutOfMemory, AFailedVipCreateViLeavesItsCompletionQueuesFree) {
  RunAlone([] {
    Nic nic;
    // The adapter's own table has room then.
    Made first[16];
    for (Made& made : first) {
      MakeCqs(nic, &made);
      ASSERT_EQ(MakeVi(nic, &made), VIP_SUCCESS);
    }
    for (const Made& made : first) Destroy(made);
    int n = 0;
    for (bool failed = true; failed;) {
      SCOPED_TRACE(++n);
      Made made;
      MakeCqs(nic, &made);
      countdown = n;
      const VIP_RETURN result = MakeVi(nic, &made);
      failed = countdown == 0;
      countdown = 0;
      // What is wanted for speed alone the call can do without.
      if (failed && result != VIP_SUCCESS) {
        EXPECT_EQ(result, VIP_ERROR_RESOURCE);
        EXPECT_EQ(made.vi, nullptr);
      } else {
        EXPECT_EQ(result, VIP_SUCCESS);
      }
      Destroy(made);
    }
    EXPECT_GT(n, 5) << "the libraries allocate elsewhere";
  });
}

}  // namespace
}  // namespace viaduct::tests
