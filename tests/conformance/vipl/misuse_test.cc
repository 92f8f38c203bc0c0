// Every exported function with handles that are NULL, garbage, freed or of another type, and with
// NULL pointers: the documented error, and nothing else happens. Memory that is freed too early.
#include <sched.h>
#include <sys/mman.h>
#include <vipl.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

struct Handles {
  Side side;
  VIP_CQ_HANDLE cq = nullptr;
  VIP_PROTECTION_HANDLE tag = nullptr;
  std::vector<void*> wrong;

  Handles() {
    EXPECT_EQ(VipCreateCQ(side.nic.handle, 16, &cq), VIP_SUCCESS);
    EXPECT_EQ(VipCreatePtag(side.nic.handle, &tag), VIP_SUCCESS);
    void *freed_cq, *freed_nic, *freed_vi, *freed_tag;
    EXPECT_EQ(VipCreateCQ(side.nic.handle, 16, &freed_cq), VIP_SUCCESS);
    EXPECT_EQ(VipDestroyCQ(freed_cq), VIP_SUCCESS);
    EXPECT_EQ(VipOpenNic("nic0", &freed_nic), VIP_SUCCESS);
    EXPECT_EQ(VipCloseNic(freed_nic), VIP_SUCCESS);
    VIP_VI_ATTRIBUTES attributes = Attributes();
    EXPECT_EQ(VipCreateVi(side.nic.handle, &attributes, nullptr, nullptr, &freed_vi), VIP_SUCCESS);
    EXPECT_EQ(VipDestroyVi(freed_vi), VIP_SUCCESS);
    EXPECT_EQ(VipCreatePtag(side.nic.handle, &freed_tag), VIP_SUCCESS);
    EXPECT_EQ(VipDestroyPtag(side.nic.handle, freed_tag), VIP_SUCCESS);
    wrong = {nullptr,
             this,
             &cq,
             reinterpret_cast<void*>(uintptr_t{1}),
             reinterpret_cast<void*>(~uintptr_t{0}),
             reinterpret_cast<void*>(uintptr_t{0x5555555555555555}),
             static_cast<char*>(side.nic.handle) + 1,
             static_cast<char*>(side.vi) + 8,
             freed_cq,
             freed_nic,
             freed_vi,
             freed_tag,
             tag};
  }

  std::vector<void*> NotNic() const { return With({side.vi, cq}); }
  std::vector<void*> NotVi() const { return With({side.nic.handle, cq}); }
  std::vector<void*> NotCq() const { return With({side.nic.handle, side.vi}); }

 private:
  std::vector<void*> With(std::vector<void*> more) const {
    more.insert(more.end(), wrong.begin(), wrong.end());
    return more;
  }
};

void AllOf(const std::vector<void*>& handles, const std::function<VIP_RETURN(void*)>& call,
           const char* name) {
  for (void* handle : handles) {
    EXPECT_EQ(call(handle), VIP_INVALID_PARAMETER) << name << " with " << handle;
  }
}

void NeverCalled(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) { ADD_FAILURE(); }
void NeverCalledEither(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN) { ADD_FAILURE(); }

void CallNicAndVis(Handles& h) {
  VIP_NIC_ATTRIBUTES nic_attributes;
  VIP_VI_ATTRIBUTES vi_attributes = Attributes();
  VIP_VI_STATE state;
  VIP_BOOLEAN flag, other_flag;
  void* out;
  VIP_AUTODISCOVERY_LIST list = {};

  AllOf(
      h.NotNic(), [](void* x) { return VipCloseNic(x); }, "VipCloseNic");
  AllOf(
      h.NotNic(), [&](void* x) { return VipQueryNic(x, &nic_attributes); }, "VipQueryNic");
  AllOf(
      h.NotNic(), [&](void* x) { return VipCreateVi(x, &vi_attributes, 0, 0, &out); },
      "VipCreateVi");
  AllOf(
      h.NotNic(), [&](void* x) { return VipErrorCallback(x, nullptr, nullptr); },
      "VipErrorCallback");
  AllOf(
      h.NotNic(),
      [&](void* x) { return VipQuerySystemManagementInfo(x, VIP_SMI_AUTODISCOVERY, &list); },
      "VipQuerySystemManagementInfo");
  AllOf(
      h.NotVi(), [](void* x) { return VipDestroyVi(x); }, "VipDestroyVi");
  AllOf(
      h.NotVi(), [&](void* x) { return VipSetViAttributes(x, &vi_attributes); },
      "VipSetViAttributes");
  AllOf(
      h.NotVi(), [&](void* x) { return VipQueryVi(x, &state, &vi_attributes, &flag, &other_flag); },
      "VipQueryVi");
  for (void* x : h.NotVi()) {
    VipSetUserData(x, &h);
    EXPECT_EQ(VipGetUserData(x), nullptr) << x;
  }
}

void CallMemory(Handles& h) {
  VIP_MEM_ATTRIBUTES mem_attributes = {};
  VIP_MEM_HANDLE memory;
  void* out;
  char bytes[64];

  AllOf(
      h.NotNic(), [&](void* x) { return VipCreatePtag(x, &out); }, "VipCreatePtag");
  AllOf(
      h.NotNic(), [&](void* x) { return VipDestroyPtag(x, h.tag); }, "VipDestroyPtag");
  AllOf(
      h.NotNic(),
      [&](void* x) { return VipRegisterMem(x, bytes, sizeof bytes, &mem_attributes, &memory); },
      "VipRegisterMem");
  AllOf(
      h.NotNic(),
      [&](void* x) {
        return VipDeregisterMem(x, h.side.memory.descriptor(0), h.side.memory.handle());
      },
      "VipDeregisterMem");
  AllOf(
      h.NotNic(),
      [&](void* x) {
        return VipQueryMem(x, h.side.memory.descriptor(0), h.side.memory.handle(), &mem_attributes);
      },
      "VipQueryMem");
  AllOf(
      h.NotNic(),
      [&](void* x) {
        return VipSetMemAttributes(x, h.side.memory.descriptor(0), h.side.memory.handle(),
                                   &mem_attributes);
      },
      "VipSetMemAttributes");
}

void CallConnections(Handles& h) {
  VIP_VI_ATTRIBUTES vi_attributes = Attributes();
  void* out;
  NetAddress address = h.side.nic.Address(Name(0)), remote;

  AllOf(
      h.NotNic(),
      [&](void* x) {
        return VipConnectWait(x, address.get(), 0, remote.get(), &vi_attributes, &out);
      },
      "VipConnectWait");
  AllOf(
      h.NotVi(), [&](void* x) { return VipConnectAccept(h.cq, x); }, "VipConnectAccept");
  AllOf(
      h.NotVi(), [&](void* x) { return VipConnectAccept(x, h.side.vi); }, "VipConnectAccept");
  AllOf(
      h.NotVi(), [](void* x) { return VipConnectReject(x); }, "VipConnectReject");
  AllOf(
      h.NotVi(),
      [&](void* x) {
        return VipConnectRequest(x, address.get(), address.get(), 100, &vi_attributes);
      },
      "VipConnectRequest");
  AllOf(
      h.NotVi(),
      [&](void* x) { return VipConnectPeerRequest(x, address.get(), address.get(), 100); },
      "VipConnectPeerRequest");
  AllOf(
      h.NotVi(), [&](void* x) { return VipConnectPeerDone(x, &vi_attributes); },
      "VipConnectPeerDone");
  AllOf(
      h.NotVi(), [&](void* x) { return VipConnectPeerWait(x, &vi_attributes); },
      "VipConnectPeerWait");
  AllOf(
      h.NotVi(), [](void* x) { return VipDisconnect(x); }, "VipDisconnect");
}

void CallWorkQueues(Handles& h) {
  VIP_DESCRIPTOR* d = nullptr;
  VIP_BOOLEAN flag;
  VIP_DESCRIPTOR* good = h.side.memory.descriptor(0);
  const VIP_MEM_HANDLE handle = h.side.memory.handle();

  AllOf(
      h.NotVi(), [&](void* x) { return VipSendNotify(x, nullptr, &NeverCalled); }, "VipSendNotify");
  AllOf(
      h.NotVi(), [&](void* x) { return VipRecvNotify(x, nullptr, &NeverCalled); }, "VipRecvNotify");
  AllOf(
      h.NotVi(), [&](void* x) { return VipPostSend(x, good, handle); }, "VipPostSend");
  AllOf(
      h.NotVi(), [&](void* x) { return VipPostRecv(x, good, handle); }, "VipPostRecv");
  AllOf(
      h.NotVi(), [&](void* x) { return VipSendDone(x, &d); }, "VipSendDone");
  AllOf(
      h.NotVi(), [&](void* x) { return VipRecvDone(x, &d); }, "VipRecvDone");
  AllOf(
      h.NotVi(), [&](void* x) { return VipSendWait(x, 0, &d); }, "VipSendWait");
  AllOf(
      h.NotVi(), [&](void* x) { return VipRecvWait(x, 0, &d); }, "VipRecvWait");
  AllOf(
      h.NotVi(), [&](void* x) { return VipPostDeferredSends(x, VIP_FALSE, &flag); },
      "VipPostDeferredSends");
}

void CallCompletionQueues(Handles& h) {
  void* out;
  VIP_BOOLEAN flag;

  AllOf(
      h.NotNic(), [&](void* x) { return VipCreateCQ(x, 16, &out); }, "VipCreateCQ");
  AllOf(
      h.NotCq(), [](void* x) { return VipDestroyCQ(x); }, "VipDestroyCQ");
  AllOf(
      h.NotCq(), [&](void* x) { return VipAddTagCQ(x, &out, 1, 1); }, "VipAddTagCQ");
  AllOf(
      h.NotCq(), [](void* x) { return VipRemoveTagCQ(x, nullptr, 1); }, "VipRemoveTagCQ");
  AllOf(
      h.NotCq(), [](void* x) { return VipResizeCQ(x, 16); }, "VipResizeCQ");
  AllOf(
      h.NotCq(), [](void* x) { return VipCQNotify(x, nullptr, &NeverCalledEither); },
      "VipCQNotify");
  AllOf(
      h.NotCq(), [&](void* x) { return VipCQDone(x, &out, &flag); }, "VipCQDone");
  AllOf(
      h.NotCq(), [&](void* x) { return VipCQWait(x, 0, &out, &flag); }, "VipCQWait");
}

void CallNameService(Handles& h) {
  char text[256] = "localhost";
  VIP_ULONG length = sizeof text;
  NetAddress address = h.side.nic.Address(Name(0)), remote;

  AllOf(
      h.NotNic(), [&](void* x) { return VipNSInit(x, nullptr); }, "VipNSInit");
  AllOf(
      h.NotNic(), [&](void* x) { return VipNSGetHostByName(x, text, remote.get(), 0); },
      "VipNSGetHostByName");
  AllOf(
      h.NotNic(), [&](void* x) { return VipNSGetHostByAddr(x, address.get(), text, &length); },
      "VipNSGetHostByAddr");
  AllOf(
      h.NotNic(), [&](void* x) { return VipNSShutdown(x); }, "VipNSShutdown");
}

void CallEverything(Handles& h) {
  CallNicAndVis(h);
  CallMemory(h);
  CallConnections(h);
  CallWorkQueues(h);
  CallCompletionQueues(h);
  CallNameService(h);
}

TEST(Misuse, HandlesThatAreNone) {
  RunAlone([] {
    Handles handles;
    CallEverything(handles);
  });
}

TEST(Misuse, FromSeveralThreads) {
  RunAlone([] {
    Handles handles;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 20; ++round) CallEverything(handles);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(Misuse, NullPointers) {
  RunAlone([] {
    Handles h;
    const VIP_NIC_HANDLE nic = h.side.nic.handle;
    const VIP_VI_HANDLE vi = h.side.vi;
    VIP_VI_ATTRIBUTES vi_attributes = Attributes();
    VIP_VI_STATE state;
    VIP_BOOLEAN flag;
    void* out;
    char text[256] = "localhost";
    VIP_ULONG length = sizeof text;
    NetAddress address = h.side.nic.Address(Name(0)), remote;
    const VIP_RETURN results[] = {
        VipOpenNic(nullptr, &out),
        VipOpenNic("nic0", nullptr),
        VipQueryNic(nic, nullptr),
        VipCreateVi(nic, nullptr, nullptr, nullptr, &out),
        VipCreateVi(nic, &vi_attributes, nullptr, nullptr, nullptr),
        VipSetViAttributes(vi, nullptr),
        VipQueryVi(vi, nullptr, &vi_attributes, &flag, &flag),
        VipQueryVi(vi, &state, nullptr, &flag, &flag),
        VipQueryVi(vi, &state, &vi_attributes, nullptr, &flag),
        VipQueryVi(vi, &state, &vi_attributes, &flag, nullptr),
        VipConnectWait(nic, nullptr, 0, remote.get(), &vi_attributes, &out),
        VipConnectWait(nic, address.get(), 0, nullptr, &vi_attributes, &out),
        VipConnectWait(nic, address.get(), 0, remote.get(), nullptr, &out),
        VipConnectWait(nic, address.get(), 0, remote.get(), &vi_attributes, nullptr),
        VipConnectRequest(vi, nullptr, address.get(), 1, &vi_attributes),
        VipConnectRequest(vi, address.get(), nullptr, 1, &vi_attributes),
        VipConnectRequest(vi, address.get(), address.get(), 1, nullptr),
        VipConnectPeerRequest(vi, nullptr, address.get(), 1),
        VipConnectPeerRequest(vi, address.get(), nullptr, 1),
        VipConnectPeerRequest(vi, address.get(), address.get(), 0),
        VipConnectPeerDone(vi, nullptr),
        VipConnectPeerWait(vi, nullptr),
        VipSendNotify(vi, nullptr, nullptr),
        VipRecvNotify(vi, nullptr, nullptr),
        VipCQNotify(h.cq, nullptr, nullptr),
        VipCreatePtag(nic, nullptr),
        VipSetMemAttributes(nic, h.side.memory.descriptor(0), h.side.memory.handle(), nullptr),
        VipQueryMem(nic, h.side.memory.descriptor(0), h.side.memory.handle(), nullptr),
        VipPostSend(vi, nullptr, h.side.memory.handle()),
        VipPostRecv(vi, nullptr, h.side.memory.handle()),
        VipSendDone(vi, nullptr),
        VipRecvDone(vi, nullptr),
        VipSendWait(vi, 0, nullptr),
        VipRecvWait(vi, 0, nullptr),
        VipCreateCQ(nic, 16, nullptr),
        VipCreateCQ(nic, 0, &out),
        VipCQDone(h.cq, nullptr, &flag),
        VipCQDone(h.cq, &out, nullptr),
        VipCQWait(h.cq, 0, nullptr, &flag),
        VipCQWait(h.cq, 0, &out, nullptr),
        VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, nullptr),
        VipQuerySystemManagementInfo(nic, 0, &length),
        VipAddTagCQ(h.cq, nullptr, 1, 1),
        VipPostDeferredSends(vi, VIP_FALSE, nullptr),
        VipNSGetHostByName(nic, nullptr, remote.get(), 0),
        VipNSGetHostByName(nic, text, nullptr, 0),
        VipNSGetHostByAddr(nic, nullptr, text, &length),
        VipNSGetHostByAddr(nic, address.get(), nullptr, &length),
        VipNSGetHostByAddr(nic, address.get(), text, nullptr),
    };
    for (size_t i = 0; i < sizeof results / sizeof *results; ++i) {
      EXPECT_EQ(results[i], VIP_INVALID_PARAMETER) << "call " << i;
    }
  });
}

// Threads that create, use and destroy while others guess at their handles.
TEST(Misuse, HandlesThatDieMeanwhile) {
  RunAlone([] {
    Handles h;
    std::atomic<void*> shared{nullptr};
    std::atomic<bool> stop{false};
    std::vector<std::thread> guessers;
    for (int i = 0; i < 3; ++i) {
      guessers.emplace_back([&, i] {
        while (!stop.load()) {
          void* vi = shared.load();
          VIP_DESCRIPTOR* d;
          VipPostRecv(vi, h.side.memory.descriptor(i), h.side.memory.handle());
          VipRecvDone(vi, &d);
          VipRecvWait(vi, 1, &d);
          VipDisconnect(vi);
          VIP_VI_STATE state;
          VIP_VI_ATTRIBUTES attributes;
          VIP_BOOLEAN sends_empty, receives_empty;
          VipQueryVi(vi, &state, &attributes, &sends_empty, &receives_empty);
        }
      });
    }
    for (int round = 0; round < 200; ++round) {
      VIP_VI_ATTRIBUTES attributes = Attributes();
      VIP_VI_HANDLE vi;
      ASSERT_EQ(
          VipCreateVi(h.side.nic.handle, &attributes, nullptr, round % 2 ? h.cq : nullptr, &vi),
          VIP_SUCCESS);
      shared.store(vi);
      while (VipDestroyVi(vi) != VIP_SUCCESS) {
        VIP_DESCRIPTOR* d;
        VipDisconnect(vi);
        VipRecvDone(vi, &d);
      }
    }
    stop.store(true);
    for (std::thread& thread : guessers) thread.join();
  });
}

// An adapter of the time still held the pages of such memory.
TEST(VipDisconnect, WhatWasFreedIsFlushedLikeTheRest) {
  RunAlone([] {
    Side side;
    static std::atomic<int> told{0};
    ASSERT_EQ(VipErrorCallback(side.nic.handle, nullptr,
                               [](VIP_PVOID, VIP_ERROR_DESCRIPTOR* error) {
                                 if (error->ErrorCode == VIP_ERROR_COMP_PROT) ++told;
                               }),
              VIP_SUCCESS);
    constexpr size_t kBytes = 8192;
    void* const bytes =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    VIP_MEM_ATTRIBUTES attributes = {};
    VIP_MEM_HANDLE memory;
    ASSERT_EQ(VipRegisterMem(side.nic.handle, bytes, kBytes, &attributes, &memory), VIP_SUCCESS);
    auto* const descriptor = static_cast<VIP_DESCRIPTOR*>(bytes);
    ASSERT_EQ(VipPostRecv(side.vi, descriptor, memory), VIP_SUCCESS);
    munmap(bytes, kBytes);
    errno = 0;
    EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    EXPECT_EQ(errno, 0);
    VIP_DESCRIPTOR* done = nullptr;
    EXPECT_EQ(VipRecvWait(side.vi, 10000, &done), VIP_DESCRIPTOR_ERROR);
    EXPECT_EQ(done, descriptor);
    while (told == 0) sched_yield();
    EXPECT_EQ(VipDeregisterMem(side.nic.handle, bytes, memory), VIP_SUCCESS);
  });
}

}  // namespace
}  // namespace viaduct::tests
