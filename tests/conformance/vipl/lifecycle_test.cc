// A NIC is closed that still owns everything: all of it is released, the peer is notified, and
// nothing is left in the process. A VI is destroyed to which another thread posts: no descriptor is
// left without a status. A VI is destroyed that another thread connects: one of the two fails.
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vipl.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/process_facts.h"
#include "tests/conformance/vipl/side.h"

namespace {

// What this thread does at its next allocation, such as a work queue makes in the middle of a post.
thread_local const std::function<void()>* at_allocation = nullptr;

}  // namespace

// These replace those of the C++ library, for the libraries under test too.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  if (at_allocation != nullptr) (*std::exchange(at_allocation, nullptr))();
  return std::malloc(size);
}
void* operator new(std::size_t size) {
  void* const memory = operator new(size, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace viaduct::tests {
namespace {

constexpr int kRounds = 20;

// Everything that a NIC can own, with descriptors posted and a connection alive.
void CloseWithEverythingOpen() {
  Side side;
  VIP_CQ_HANDLE cq;
  ASSERT_EQ(VipCreateCQ(side.nic.handle, 16, &cq), VIP_SUCCESS);
  VIP_PROTECTION_HANDLE tag;
  ASSERT_EQ(VipCreatePtag(side.nic.handle, &tag), VIP_SUCCESS);
  VIP_VI_ATTRIBUTES attributes = Attributes();
  VIP_VI_HANDLE idle;
  ASSERT_EQ(VipCreateVi(side.nic.handle, &attributes, cq, cq, &idle), VIP_SUCCESS);
  ASSERT_EQ(VipPostRecv(idle, side.memory.Fill(1, 0, 8), side.memory.handle()), VIP_SUCCESS);
  ASSERT_EQ(VipNSInit(side.nic.handle, nullptr), VIP_SUCCESS);
  side.Receive(0);
  side.Connect();
  side.SendText(16, "here");
  const VIP_VI_HANDLE connected = side.vi;
  ASSERT_EQ(::VipCloseNic(side.nic.handle), VIP_SUCCESS);
  VIP_DESCRIPTOR* done;
  EXPECT_EQ(VipRecvDone(connected, &done), VIP_INVALID_PARAMETER);
  EXPECT_EQ(::VipDisconnect(idle), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDestroyCQ(cq), VIP_INVALID_PARAMETER);
}

TEST(VipCloseNic, WithAConnectionAliveIsADisconnectForThePeer) {
  RunPair(
      [](Peer& peer) {
        Side side;
        ErrorLog errors(side.nic.handle);
        for (int round = 0; round < kRounds; ++round) {
          side.Receive(0);
          side.Receive(1);
          side.Accept();
          EXPECT_EQ(side.TextOf(side.NextReceive()), "here");
          VIP_ERROR_DESCRIPTOR error;
          ASSERT_TRUE(errors.Next(&error));
          EXPECT_EQ(error.ErrorCode, VIP_ERROR_CONN_LOST);
          EXPECT_EQ(side.State(), VIP_STATE_ERROR);
          EXPECT_EQ(side.DrainFlushed(), 1);
          ASSERT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
          EXPECT_EQ(side.State(), VIP_STATE_IDLE);
          peer.Tell("idle again");
        }
      },
      [](Peer& peer) {
        int descriptors = 0, threads = 0;
        for (int round = 0; round < kRounds; ++round) {
          CloseWithEverythingOpen();
          peer.Await("idle again");
          // The first rounds start what stays: the control thread and its descriptors.
          if (round == 2) {
            descriptors = OpenDescriptors();
            threads = Threads();
          }
        }
        const int64_t end = NowMilliseconds() + 10000;
        while ((OpenDescriptors() > descriptors || Threads() > threads) &&
               NowMilliseconds() < end) {
          timespec instant = {0, 1000000};
          nanosleep(&instant, nullptr);
        }
        EXPECT_LE(OpenDescriptors(), descriptors);
        EXPECT_LE(Threads(), threads);
      });
}

// The program may already use the descriptors' memory for something else.
TEST(VipCloseNic, WritesIntoNoDescriptor) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        peer.AwaitEnd();
      },
      [](Peer&) {
        Side side;
        for (int n = 0; n < 8; ++n) side.Receive(n);
        side.Connect();
        EXPECT_EQ(::VipCloseNic(side.nic.handle), VIP_SUCCESS);
        for (int n = 0; n < 8; ++n) EXPECT_EQ(side.memory.descriptor(n)->CS.Status, 0u) << n;
      });
}

// Posted receives are flushed when the NIC is closed, but the memory of their descriptors is gone.
TEST(VipCloseNic, BehindMemoryThatIsGone) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        peer.AwaitEnd();
      },
      [](Peer&) {
        constexpr size_t kBytes = 16384;
        Side side;
        void* const arena =
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(arena, MAP_FAILED);
        VIP_MEM_ATTRIBUTES attributes = {};
        VIP_MEM_HANDLE handle;
        ASSERT_EQ(VipRegisterMem(side.nic.handle, arena, kBytes, &attributes, &handle),
                  VIP_SUCCESS);
        auto* const descriptors = static_cast<VIP_DESCRIPTOR*>(arena);
        for (int n = 0; n < 8; ++n) {
          descriptors[n].CS.SegCount = 1;
          descriptors[n].DS[0].Local.Data.Address = static_cast<char*>(arena) + 8192 + n * 64;
          descriptors[n].DS[0].Local.Handle = handle;
          descriptors[n].DS[0].Local.Length = 64;
          ASSERT_EQ(VipPostRecv(side.vi, &descriptors[n], handle), VIP_SUCCESS);
        }
        side.Connect();
        // The arena is no longer accessible, and nothing else takes its place.
        ASSERT_EQ(mmap(arena, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                  arena);
        EXPECT_EQ(::VipCloseNic(side.nic.handle), VIP_SUCCESS);
      });
}

void AwaitEndOfMainThread() {
  char state = 0;
  while (state != 'Z') {
    std::string pid, name;
    std::ifstream("/proc/self/stat") >> pid >> name >> state;
    sched_yield();
  }
}

// What a program does after the end of its main thread. Returns 0, or the number of the step that
// failed.
int WorkWithoutMainThread() {
  constexpr size_t kBytes = 16384;
  VIP_NIC_HANDLE before, nic;
  VIP_NIC_ATTRIBUTES seen_before, seen;
  if (::VipOpenNic("nic0", &before) || VipQueryNic(before, &seen_before)) return 1;
  AwaitEndOfMainThread();
  if (::VipOpenNic("nic0", &nic) || VipQueryNic(nic, &seen)) return 2;
  if (std::memcmp(seen.LocalNicAddress, seen_before.LocalNicAddress, seen.NicAddressLen) != 0) {
    return 3;
  }
  void* const arena =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  VIP_MEM_HANDLE handle;
  if (VipRegisterMem(nic, arena, kBytes, nullptr, &handle)) return 4;
  // A descriptor that is flushed after its memory is gone is reported, and not written to.
  VIP_VI_ATTRIBUTES attributes = {};
  attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
  attributes.MaxTransferSize = 4096;
  VIP_VI_HANDLE vi;
  if (VipCreateVi(nic, &attributes, nullptr, nullptr, &vi)) return 5;
  if (VipPostRecv(vi, static_cast<VIP_DESCRIPTOR*>(arena), handle)) return 6;
  munmap(arena, kBytes);
  if (::VipDisconnect(vi)) return 7;
  return ::VipCloseNic(nic) || ::VipCloseNic(before) ? 8 : 0;
}

// pthread_exit(3) in main.
TEST(Process, GoesOnWithoutItsMainThread) {
  RunAlone([] {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::thread([] { _exit(WorkWithoutMainThread()); }).detach();
      syscall(SYS_exit, 0);  // what pthread_exit ends with, without unwinding
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 0);
  });
}

// A call that sleeps at its first allocation until Finish.
class HeldCall {
 public:
  explicit HeldCall(std::function<VIP_RETURN()> call)
      : thread_([this, call = std::move(call)] {
          const std::function<void()> hold = [this] {
            inside_.store(true);
            inside_.notify_one();
            go_on_.wait(false);
          };
          // A thread's first call allocates.
          VIP_DESCRIPTOR* none;
          EXPECT_EQ(VipRecvDone(nullptr, &none), VIP_INVALID_PARAMETER);
          at_allocation = &hold;
          result_ = call();
          EXPECT_EQ(std::exchange(at_allocation, nullptr), nullptr) << "it allocates nothing";
          inside_.store(true);
          inside_.notify_one();
        }) {
    inside_.wait(false);
  }
  VIP_RETURN Finish() {
    go_on_.store(true);
    go_on_.notify_one();
    thread_.join();
    return result_;
  }

 private:
  std::atomic<bool> inside_{false}, go_on_{false};
  VIP_RETURN result_ = VIP_SUCCESS;
  std::thread thread_;
};

TEST(VipCreateVi, ATagThatIsDestroyedMeanwhileIsNone) {
  RunAlone([] {
    Nic nic;
    VIP_PROTECTION_HANDLE tag;
    ASSERT_EQ(VipCreatePtag(nic.handle, &tag), VIP_SUCCESS);
    VIP_VI_ATTRIBUTES attributes = Attributes();
    attributes.Ptag = tag;
    VIP_VI_HANDLE vi;
    HeldCall create([&] { return VipCreateVi(nic.handle, &attributes, nullptr, nullptr, &vi); });
    EXPECT_EQ(VipDestroyPtag(nic.handle, tag), VIP_SUCCESS);
    EXPECT_EQ(create.Finish(), VIP_INVALID_PTAG);
  });
}

TEST(VipCloseNic, AVipConnectPeerRequestOfAnotherThreadFindsNoVi) {
  RunAlone([] {
    VIP_VI_ATTRIBUTES attributes = Attributes();
    VIP_NIC_HANDLE nic;
    VIP_VI_HANDLE vi;
    Nic other;
    NetAddress local = other.Address("mine"), remote = other.Address(Name(0));
    ASSERT_EQ(VipOpenNic("nic0", &nic), VIP_SUCCESS);
    ASSERT_EQ(VipCreateVi(nic, &attributes, nullptr, nullptr, &vi), VIP_SUCCESS);
    HeldCall request([&] { return VipConnectPeerRequest(vi, local.get(), remote.get(), 10000); });
    EXPECT_EQ(::VipCloseNic(nic), VIP_SUCCESS);
    EXPECT_EQ(request.Finish(), VIP_INVALID_PARAMETER);
  });
}

// VipDisconnect has no answer but these two, also if the VI ends in the middle of it.
TEST(VipCloseNic, BesideAVipDisconnect) {
  RunAlone([] {
    Side server;
    VIP_VI_ATTRIBUTES attributes = Attributes();
    for (int n = 0; n < 60; ++n) {
      VIP_NIC_HANDLE nic;
      VIP_VI_HANDLE vi;
      ASSERT_EQ(VipOpenNic("nic0", &nic), VIP_SUCCESS);
      ASSERT_EQ(VipCreateVi(nic, &attributes, nullptr, nullptr, &vi), VIP_SUCCESS);
      std::thread accepting([&] { server.Accept(n); });
      NetAddress local = server.nic.Address("client"), remote = server.nic.Address(Name(n));
      VIP_VI_ATTRIBUTES theirs;
      VIP_RETURN connected;
      do {
        connected = VipConnectRequest(vi, local.get(), remote.get(), 10000, &theirs);
      } while (connected == VIP_NO_MATCH);
      accepting.join();
      ASSERT_EQ(connected, VIP_SUCCESS);
      VIP_RETURN disconnected = VIP_SUCCESS;
      std::atomic<bool> begun{false};
      std::thread disconnecting([&] {
        begun.store(true);
        disconnected = ::VipDisconnect(vi);
      });
      while (!begun.load()) sched_yield();
      for (int i = 0; i < n % 20 * 200; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
      EXPECT_EQ(::VipCloseNic(nic), VIP_SUCCESS);
      disconnecting.join();
      EXPECT_TRUE(disconnected == VIP_SUCCESS || disconnected == VIP_INVALID_PARAMETER)
          << disconnected;
      ASSERT_EQ(::VipDisconnect(server.vi), VIP_SUCCESS);
    }
  });
}

bool IsVi(VIP_VI_HANDLE vi) {
  VIP_VI_STATE state;
  VIP_VI_ATTRIBUTES attributes;
  VIP_BOOLEAN sends_empty, receives_empty;
  return VipQueryVi(vi, &state, &attributes, &sends_empty, &receives_empty) == VIP_SUCCESS;
}

// The post finds the VI, and queues its descriptor only after the handle has become invalid.
void PostWhileItIsDestroyed(const Side& side, VIP_VI_HANDLE vi, VIP_DESCRIPTOR* descriptor,
                            VIP_RETURN (*post)(VIP_VI_HANDLE, VIP_DESCRIPTOR*, VIP_MEM_HANDLE)) {
  std::atomic<bool> posting{false}, dead{false};
  std::thread poster([&] {
    VIP_DESCRIPTOR* none;
    EXPECT_EQ(VipRecvDone(vi, &none), VIP_DESCRIPTOR_ERROR);  // this thread's first call
    const std::function<void()> hold = [&] {
      posting.store(true);
      posting.notify_one();
      dead.wait(false);
    };
    at_allocation = &hold;
    EXPECT_EQ(post(vi, descriptor, side.memory.handle()), VIP_SUCCESS);
  });
  posting.wait(false);
  std::thread destroyer([&] { EXPECT_EQ(::VipDestroyVi(vi), VIP_SUCCESS); });
  while (IsVi(vi)) sched_yield();
  dead.store(true);
  dead.notify_one();
  destroyer.join();
  poster.join();
  EXPECT_EQ(descriptor->CS.Status & (VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK),
            static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR));
}

TEST(VipDestroyVi, WhatAnotherThreadPostsMeanwhileIsFlushed) {
  RunAlone([] {
    Side side;
    VIP_CQ_HANDLE cq = nullptr;
    ASSERT_EQ(VipCreateCQ(side.nic.handle, 16, &cq), VIP_SUCCESS);
    VIP_VI_ATTRIBUTES attributes = Attributes();
    for (const VIP_CQ_HANDLE used : {VIP_CQ_HANDLE{nullptr}, cq}) {
      for (const auto post : {&VipPostRecv, &VipPostSend}) {
        VIP_VI_HANDLE vi = nullptr;
        ASSERT_EQ(VipCreateVi(side.nic.handle, &attributes, used, used, &vi), VIP_SUCCESS);
        PostWhileItIsDestroyed(side, vi, side.memory.Fill(0, 0, 8), post);
      }
    }
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    EXPECT_EQ(VipCQDone(cq, &vi, &receive), VIP_NOT_DONE) << "an entry of a VI that is gone";
    EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
  });
}

// Only one of the two calls succeeds, and no requester is connected to a VI that is gone.
void AcceptWhileItIsDestroyed(const Side& side, Side& requester, int n) {
  VIP_VI_ATTRIBUTES attributes = Attributes();
  VIP_VI_HANDLE vi = nullptr;
  ASSERT_EQ(VipCreateVi(side.nic.handle, &attributes, nullptr, nullptr, &vi), VIP_SUCCESS);
  VIP_RETURN requested = VIP_NOT_REACHABLE;
  std::thread asking([&] {
    do {
      requested = requester.Request(n, 10000);
    } while (requested == VIP_NO_MATCH);  // the server does not wait yet
  });
  NetAddress local = side.nic.Address(Name(n)), remote;
  VIP_VI_ATTRIBUTES theirs;
  VIP_CONN_HANDLE request = nullptr;
  const VIP_RETURN waited =
      VipConnectWait(side.nic.handle, local.get(), 10000, remote.get(), &theirs, &request);
  if (waited != VIP_SUCCESS) {
    asking.join();
    FAIL() << waited;
  }
  VIP_RETURN accepted = VIP_SUCCESS, destroyed = VIP_SUCCESS;
  std::atomic<int> begun{0};
  const auto together = [&begun] {
    ++begun;
    while (begun != 2) sched_yield();
  };
  std::thread accepting([&] {
    together();
    accepted = VipConnectAccept(request, vi);
  });
  together();
  for (int i = 0; i < n % 40 * 50; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
  destroyed = ::VipDestroyVi(vi);
  accepting.join();
  if (accepted == VIP_SUCCESS) {
    EXPECT_EQ(destroyed, VIP_INVALID_STATE);
  } else {
    EXPECT_EQ(destroyed, VIP_SUCCESS);
    EXPECT_EQ(VipConnectReject(request), VIP_SUCCESS);
  }
  asking.join();
  EXPECT_EQ(requested, accepted == VIP_SUCCESS ? VIP_SUCCESS : VIP_REJECT);
  EXPECT_EQ(::VipDisconnect(requester.vi), VIP_SUCCESS);
  if (destroyed == VIP_SUCCESS) return;
  EXPECT_EQ(::VipDisconnect(vi), VIP_SUCCESS);
  EXPECT_EQ(::VipDestroyVi(vi), VIP_SUCCESS);
}

TEST(VipDestroyVi, WhatAnotherThreadConnectsMeanwhileStaysOrIsRefused) {
  RunAlone([] {
    Side side, requester;
    for (int n = 0; n < 60 && !testing::Test::HasFailure(); ++n) {
      SCOPED_TRACE(n);
      AcceptWhileItIsDestroyed(side, requester, n);
    }
  });
}

}  // namespace
}  // namespace viaduct::tests
