// Every function from several threads with arguments drawn at random: handles that are NULL,
// garbage, freed, of another type or alive, NULL pointers, descriptors anywhere. A call only has
// to return, with one of the header's codes; afterwards the library works as on the first day.
//
// Five seconds; a minute with VIADUCT_LONG in the environment. A failure names its seed.
#include <stdlib.h>
#include <unistd.h>
#include <vipl.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

constexpr int kThreads = 4;
constexpr VIP_ULONG kMaxWait = 3;  // ms

// ThreadSanitizer is to check the library and not this program: under it a descriptor is written by
// one thread, posted at most once, and left alone.
#ifdef __SANITIZE_THREAD__
constexpr bool kEachOnce = true;
constexpr size_t kArenaBytes = 128 << 20;
#else
constexpr bool kEachOnce = false;
constexpr size_t kArenaBytes = 1 << 20;
#endif

// Handles of every type that were ever given out, alive or not; the oldest are forgotten.
class Pool {
 public:
  void Add(void* handle) {
    const std::lock_guard<std::mutex> hold(lock_);
    if (handles_.size() < kRoom) {
      handles_.push_back(handle);
    } else {
      handles_[next_++ % kRoom] = handle;
    }
  }
  void* Pick(std::mt19937& random) {
    const std::lock_guard<std::mutex> hold(lock_);
    return handles_.empty() ? nullptr : handles_[random() % handles_.size()];
  }

 private:
  static constexpr size_t kRoom = 64;
  std::mutex lock_;
  std::vector<void*> handles_;
  size_t next_ = 0;
};

struct Arena {
  explicit Arena(const Nic& nic) : memory(nic, nullptr, kArenaBytes) {}

  // A descriptor that nobody has had before; null when there are no more.
  VIP_DESCRIPTOR* Fresh() {
    const size_t at = fresh.fetch_add(1) * sizeof(VIP_DESCRIPTOR);
    if (at >= kArenaBytes) return nullptr;
    return reinterpret_cast<VIP_DESCRIPTOR*>(memory.data() + at);
  }

  Memory memory;
  std::atomic<size_t> fresh{0};
  Pool handles;
  Pool memory_handles;
};

class Caller {
 public:
  Caller(Arena* arena, unsigned seed) : arena_(*arena), random_(seed) {
    calls_ = {
        [this] { return Made(VipOpenNic(Maybe("nic0"), Maybe(&out_))); },
        [this] { return VipCloseNic(Rarely(Handle())); },
        [this] { return VipQueryNic(Handle(), Maybe(&nic_attributes_)); },
        [this] {
          FillAttributes();
          return Made(VipCreateVi(Handle(), Maybe(&vi_attributes_), HandleOrNull(), HandleOrNull(),
                                  Maybe(&out_)));
        },
        [this] { return VipDestroyVi(Handle()); },
        [this] {
          FillAttributes();
          return VipSetViAttributes(Handle(), Maybe(&vi_attributes_));
        },
        [this] {
          return VipQueryVi(Handle(), Maybe(&state_), Maybe(&vi_attributes_), Maybe(&flag_),
                            Maybe(&flag_));
        },
        [this] {
          return Made(VipConnectWait(Handle(), Address(), Time(), Maybe(remote_.get()),
                                     Maybe(&vi_attributes_), Maybe(&out_)));
        },
        [this] { return VipConnectAccept(Handle(), Handle()); },
        [this] { return VipConnectReject(Handle()); },
        [this] {
          return VipConnectRequest(Handle(), Address(), Address(), Time(), Maybe(&vi_attributes_));
        },
        [this] { return VipConnectPeerRequest(Handle(), Address(), Address(), Time()); },
        [this] { return VipConnectPeerDone(Handle(), Maybe(&vi_attributes_)); },
        [this] { return VipConnectPeerWait(Handle(), Maybe(&vi_attributes_)); },
        [this] { return VipDisconnect(Handle()); },
        [this] { return Made(VipCreatePtag(Handle(), Maybe(&out_))); },
        [this] { return VipDestroyPtag(Handle(), Handle()); },
        [this] {
          VIP_MEM_HANDLE memory = 0;
          const VIP_RETURN result = VipRegisterMem(Handle(), arena_.memory.data(), random_() % 4096,
                                                   MemAttributes(), Maybe(&memory));
          if (memory != 0) arena_.memory_handles.Add(AsPointer(memory));
          return result;
        },
        [this] { return VipDeregisterMem(Handle(), arena_.memory.data(), MemoryHandle()); },
        [this] {
          return VipQueryMem(Handle(), arena_.memory.data(), MemoryHandle(), MemAttributes());
        },
        [this] {
          return VipSetMemAttributes(Handle(), arena_.memory.data(), MemoryHandle(),
                                     MemAttributes());
        },
        [this] { return VipPostSend(Handle(), Descriptor(), MemoryHandle()); },
        [this] { return VipPostRecv(Handle(), Descriptor(), MemoryHandle()); },
        [this] { return VipSendDone(Handle(), Maybe(&done_)); },
        [this] { return VipRecvDone(Handle(), Maybe(&done_)); },
        [this] { return VipSendWait(Handle(), Time(), Maybe(&done_)); },
        [this] { return VipRecvWait(Handle(), Time(), Maybe(&done_)); },
        [this] { return VipSendNotify(Handle(), this, Maybe(&OnDescriptor)); },
        [this] { return VipRecvNotify(Handle(), this, Maybe(&OnDescriptor)); },
        [this] { return VipCQNotify(Handle(), this, Maybe(&OnEntry)); },
        [this] { return Made(VipCreateCQ(Handle(), random_() % 100, Maybe(&out_))); },
        [this] { return VipDestroyCQ(Handle()); },
        [this] { return VipResizeCQ(Handle(), random_() % 100); },
        [this] { return VipCQDone(Handle(), Maybe(&vi_), Maybe(&flag_)); },
        [this] { return VipCQWait(Handle(), Time(), Maybe(&vi_), Maybe(&flag_)); },
        [this] { return VipErrorCallback(Handle(), this, random_() % 4 ? &Ignore : nullptr); },
        [this] {
          VIP_NET_ADDRESS* addresses[4];
          VIP_AUTODISCOVERY_LIST list = {1, addresses, random_() % 5};
          return VipQuerySystemManagementInfo(Handle(), random_() % 3, Maybe(&list));
        },
        [this] { return VipNSInit(Handle(), nullptr); },
        [this] {
          return VipNSGetHostByName(Handle(), Maybe(host_), Maybe(remote_.get()), random_() % 3);
        },
        [this] {
          VIP_ULONG room = random_() % sizeof text_;
          return VipNSGetHostByAddr(Handle(), Address(), Maybe(text_), Maybe(&room));
        },
        [this] { return VipNSShutdown(Handle()); },
        [this] { return VipAddTagCQ(Handle(), Maybe(&out_), 1, 1); },
        [this] { return VipRemoveTagCQ(Handle(), nullptr, 1); },
        [this] { return VipPostDeferredSends(Handle(), VIP_TRUE, Maybe(&flag_)); },
        [this] {
          VipSetUserData(Handle(), this);
          VipGetUserData(Handle());
          return VIP_SUCCESS;
        },
    };
  }

  // Returns how many calls succeeded.
  int Run(int64_t end) {
    int succeeded = 0;
    while (NowMilliseconds() < end) {
      const size_t n = random_() % calls_.size();
      const VIP_RETURN result = calls_[n]();
      if (result == VIP_SUCCESS) ++succeeded;
      const bool known = (result >= VIP_SUCCESS && result <= VIP_ERROR_NOT_SUPPORTED) ||
                         result == VIP_INVALID_ADDRESS;
      EXPECT_TRUE(known) << "call " << n << ": " << result;
    }
    return succeeded;
  }

 private:
  static void* AsPointer(uintptr_t number) { return reinterpret_cast<void*>(number); }
  static void Ignore(VIP_PVOID, VIP_ERROR_DESCRIPTOR* error) {
    EXPECT_LE(error->ErrorCode, VIP_ERROR_CATASTROPHIC);
  }

  // Callbacks use the objects that they are passed, as programs do.
  static void OnDescriptor(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE vi,
                           VIP_DESCRIPTOR* descriptor) {
    EXPECT_NE(descriptor, nullptr);
    VIP_DESCRIPTOR* next;
    VipRecvDone(vi, &next);
  }
  static void OnEntry(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE vi, VIP_BOOLEAN receive) {
    VIP_DESCRIPTOR* done;
    if (receive) {
      VipRecvDone(vi, &done);
    } else {
      VipSendDone(vi, &done);
    }
  }

  template <typename T>
  T* Maybe(T* pointer) {
    return random_() % 16 ? pointer : nullptr;
  }
  // NICs must live for a while.
  void* Rarely(void* handle) { return random_() % 16 ? nullptr : handle; }
  VIP_RETURN Made(VIP_RETURN result) {
    if (result == VIP_SUCCESS) arena_.handles.Add(out_);
    return result;
  }
  void* Handle() {
    switch (random_() % 8) {
      case 0:
        return nullptr;
      case 1:
        return AsPointer(uintptr_t{random_()} << 32 | random_());
      case 2:
        return this;
      case 3:
        return static_cast<char*>(arena_.handles.Pick(random_)) + random_() % 17 - 8;
      default:
        return arena_.handles.Pick(random_);
    }
  }
  void* HandleOrNull() { return random_() % 2 ? nullptr : Handle(); }
  VIP_MEM_HANDLE MemoryHandle() {
    switch (random_() % 4) {
      case 0:
        return static_cast<VIP_MEM_HANDLE>(random_());
      case 1:
        return static_cast<VIP_MEM_HANDLE>(
            reinterpret_cast<uintptr_t>(arena_.memory_handles.Pick(random_)));
      default:
        return arena_.memory.handle();
    }
  }
  // A well-formed descriptor, one with random bits, or none at all. Several threads fill the same
  // one, unless kEachOnce.
  VIP_DESCRIPTOR* Descriptor() {
    const int n = static_cast<int>(random_() % Memory::kDescriptors);
    VIP_DESCRIPTOR* d = kEachOnce ? arena_.Fresh() : arena_.memory.descriptor(n);
    if (d == nullptr) return nullptr;
    switch (random_() % 8) {
      case 0:
        return nullptr;
      case 1:
        return reinterpret_cast<VIP_DESCRIPTOR*>(AsPointer(random_()));
      case 2:
        return reinterpret_cast<VIP_DESCRIPTOR*>(reinterpret_cast<char*>(d) + random_() % 64);
      case 3:
        for (VIP_UINT32* word = &d->CS.Reserved; word != &d->CS.Status; ++word) {
          __atomic_store_n(word, random_(), __ATOMIC_RELAXED);
        }
        return d;
      default:
        return d;
    }
  }
  VIP_MEM_ATTRIBUTES* MemAttributes() {
    mem_attributes_ = {HandleOrNull(), static_cast<VIP_BOOLEAN>(random_() % 2),
                       static_cast<VIP_BOOLEAN>(random_() % 2)};
    return Maybe(&mem_attributes_);
  }
  void FillAttributes() {
    vi_attributes_ = Attributes(static_cast<VIP_RELIABILITY_LEVEL>(1u << random_() % 4));
    if (random_() % 4 == 0) vi_attributes_.Ptag = Handle();
  }
  VIP_NET_ADDRESS* Address() {
    static const VIP_UINT8 kLoopback[] = {127, 0, 0, 1, 0, 0};
    address_ = NetAddress(kLoopback, random_() % 8 ? 6 : random_() % 7, Name(random_() % 2));
    return Maybe(address_.get());
  }
  VIP_ULONG Time() { return random_() % (kMaxWait + 1); }

  Arena& arena_;
  std::mt19937 random_;
  std::vector<std::function<VIP_RETURN()>> calls_;
  void* out_ = nullptr;
  void* vi_ = nullptr;
  VIP_DESCRIPTOR* done_ = nullptr;
  VIP_BOOLEAN flag_ = 0;
  VIP_VI_STATE state_ = VIP_STATE_IDLE;
  VIP_NIC_ATTRIBUTES nic_attributes_ = {};
  VIP_VI_ATTRIBUTES vi_attributes_ = {};
  VIP_MEM_ATTRIBUTES mem_attributes_ = {};
  NetAddress address_, remote_;
  VIP_CHAR host_[16] = "localhost";
  VIP_CHAR text_[64] = "";
};

TEST(Storm, EveryFunctionFromSeveralThreads) {
  const int seconds = getenv("VIADUCT_LONG") != nullptr ? 60 : 5;
  unsetenv("VIADUCT_LONG");  // the tests' setting: the library neither reads it nor warns of it
  setenv("VIADUCT_LOG", "error", 1);
  RunAlone(
      [seconds] {
        const unsigned seed = std::random_device()();
        SCOPED_TRACE("seed " + std::to_string(seed));
        Nic nic("/dev/via_lo");
        // Never freed, because handlers may be called late.
        auto* arena = new Arena(nic);
        arena->handles.Add(nic.handle);
        for (int i = 0; i < 4; ++i) {
          VIP_NIC_HANDLE other;
          ASSERT_EQ(VipOpenNic("nic0", &other), VIP_SUCCESS);
          arena->handles.Add(other);
        }
        const int64_t end = NowMilliseconds() + seconds * 1000;
        std::atomic<int> succeeded{0};
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < kThreads; ++i) {
          threads.emplace_back([&, i] { succeeded += (new Caller(arena, seed + i))->Run(end); });
        }
        for (std::thread& thread : threads) thread.join();
        EXPECT_GT(succeeded.load(), 100) << "the storm met closed doors only";
        printf("%d calls succeeded\n", succeeded.load());

        Side side;
        side.Receive(0);
        EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
        EXPECT_EQ(side.DrainFlushed(), 1);
        EXPECT_EQ(VipDestroyVi(side.vi), VIP_SUCCESS);
      },
      seconds + 60);
}

}  // namespace
}  // namespace viaduct::tests
