// Each allocation of a call fails once: the call reports it, and leaves nothing behind.
#include <poll.h>
#include <sched.h>
#include <unistd.h>
#include <vipl.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"
#include "tests/faults/failing_memory.h"

namespace viaduct::tests {
namespace {

constexpr int kTries = 8;  // the first eight allocations of a call, one by one

struct Made {
  VIP_CQ_HANDLE send_cq = nullptr, receive_cq = nullptr;
  VIP_VI_HANDLE vi = nullptr;
};

void MakeCqs(const Nic& nic, Made* made) {
  ASSERT_EQ(VipCreateCQ(nic.handle, 16, &made->send_cq), VIP_SUCCESS);
  ASSERT_EQ(VipCreateCQ(nic.handle, 16, &made->receive_cq), VIP_SUCCESS);
}
void Destroy(const Made& made) {
  if (made.vi != nullptr) {
    EXPECT_EQ(VipDestroyVi(made.vi), VIP_SUCCESS);
  }
  EXPECT_EQ(VipDestroyCQ(made.send_cq), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyCQ(made.receive_cq), VIP_SUCCESS);
}

// `others`: tags besides its own, so that each table of the adapter grows in a different call.
void FailEachAllocationOfVipCreateVi(int others) {
  int n = 0;
  for (bool failed = true; failed;) {
    SCOPED_TRACE(++n);
    Nic nic;
    VIP_VI_ATTRIBUTES attributes = Attributes();
    for (int i = 0; i <= others; ++i) {
      ASSERT_EQ(VipCreatePtag(nic.handle, &attributes.Ptag), VIP_SUCCESS);
    }
    Made made;
    MakeCqs(nic, &made);
    FailAllocation(n);
    const VIP_RETURN result =
        VipCreateVi(nic.handle, &attributes, made.send_cq, made.receive_cq, &made.vi);
    failed = StopFailing();
    if (failed && result != VIP_SUCCESS) {
      EXPECT_EQ(result, VIP_ERROR_RESOURCE);
      EXPECT_EQ(made.vi, nullptr);
    } else {
      EXPECT_EQ(result, VIP_SUCCESS);
    }
    Destroy(made);
    EXPECT_EQ(VipDestroyPtag(nic.handle, attributes.Ptag), VIP_SUCCESS);
  }
  EXPECT_GT(n, 5) << "the libraries allocate elsewhere";
}

TEST(OutOfMemory, AFailedVipCreateViLeavesWhatItUsesFree) {
  RunAlone([] {
    for (int others = 0; others < 8; ++others) {
      SCOPED_TRACE(others);
      FailEachAllocationOfVipCreateVi(others);
    }
  });
}

// Makes the same call until no allocation is left to fail; `undo` is for one that succeeded.
void FailEachAllocation(const std::function<VIP_RETURN()>& call,
                        const std::function<VIP_RETURN()>& undo) {
  {
    SCOPED_TRACE("the first one, which needs more");
    ASSERT_EQ(call(), VIP_SUCCESS);
    ASSERT_EQ(undo(), VIP_SUCCESS);
  }
  const int64_t before = LiveAllocations();
  int n = 0;
  for (bool failed = true; failed;) {
    SCOPED_TRACE(++n);
    FailAllocation(n);
    const VIP_RETURN result = call();
    failed = StopFailing();
    if (result == VIP_SUCCESS) {
      EXPECT_EQ(undo(), VIP_SUCCESS);
    } else {
      EXPECT_TRUE(failed);
      EXPECT_EQ(result, VIP_ERROR_RESOURCE);
    }
  }
  EXPECT_GT(n, 3) << "the libraries allocate elsewhere";
  EXPECT_TRUE(LiveAtMost(before)) << LiveAllocations() << " instead of " << before;
}

TEST(OutOfMemory, AFailedVipOpenNicLeavesNothingOpen) {
  RunAlone([] {
    const Nic other;
    VIP_NIC_HANDLE nic = nullptr;
    FailEachAllocation([&] { return VipOpenNic("nic0", &nic); }, [&] { return VipCloseNic(nic); });
  });
}

TEST(OutOfMemory, AFailedVipCreateCqLeavesNoQueue) {
  RunAlone([] {
    const Nic nic;
    VIP_CQ_HANDLE cq = nullptr;
    FailEachAllocation([&] { return VipCreateCQ(nic.handle, 16, &cq); },
                       [&] { return VipDestroyCQ(cq); });
  });
}

TEST(OutOfMemory, AFailedVipCreateViLeavesNoVi) {
  RunAlone([] {
    const Nic nic;
    VIP_VI_ATTRIBUTES attributes = Attributes();
    VIP_VI_HANDLE vi = nullptr;
    FailEachAllocation([&] { return VipCreateVi(nic.handle, &attributes, nullptr, nullptr, &vi); },
                       [&] { return VipDestroyVi(vi); });
  });
}

// Each time the first region of a NIC, which needs more.
TEST(OutOfMemory, AFailedVipRegisterMemLeavesItsTagFree) {
  RunAlone([] {
    int n = 0;
    for (bool failed = true; failed;) {
      SCOPED_TRACE(++n);
      const Nic nic;
      VIP_MEM_ATTRIBUTES attributes = {};
      ASSERT_EQ(VipCreatePtag(nic.handle, &attributes.Ptag), VIP_SUCCESS);
      char bytes[64];
      VIP_MEM_HANDLE memory = 0;
      FailAllocation(n);
      const VIP_RETURN result =
          VipRegisterMem(nic.handle, bytes, sizeof bytes, &attributes, &memory);
      failed = StopFailing();
      if (result == VIP_SUCCESS) {
        EXPECT_EQ(VipDeregisterMem(nic.handle, bytes, memory), VIP_SUCCESS);
      } else {
        EXPECT_TRUE(failed);
        EXPECT_EQ(result, VIP_ERROR_RESOURCE);
      }
      EXPECT_EQ(VipDestroyPtag(nic.handle, attributes.Ptag), VIP_SUCCESS);
    }
    EXPECT_GT(n, 3) << "the libraries allocate elsewhere";
  });
}

TEST(OutOfMemory, AFailedVipConnectPeerRequestLeavesTheViIdle) {
  RunAlone([] {
    Side side;
    NetAddress local = side.nic.Address(Name(1)), remote = side.nic.Address(Name(2));
    int n = 0;
    for (bool failed = true; failed;) {
      SCOPED_TRACE(++n);
      FailAllocation(n);
      const VIP_RETURN result = VipConnectPeerRequest(side.vi, local.get(), remote.get(), 20000);
      failed = StopFailing();
      EXPECT_TRUE(result == VIP_SUCCESS || (failed && result == VIP_ERROR_RESOURCE)) << result;
      EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
      EXPECT_EQ(side.State(), VIP_STATE_IDLE);
    }
    EXPECT_GT(n, 3) << "the libraries allocate elsewhere";
  });
}

constinit std::atomic<int> told{0};
void Tell(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) { ++told; }
void TellEntry(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN) { ++told; }

// Calls `notify` while a completion waits for it, and one allocation after the other fails; `take`
// takes what no handler was called for.
void FailEachAllocationOfANotify(const std::function<void()>& complete,
                                 const std::function<VIP_RETURN()>& notify,
                                 const std::function<void()>& take) {
  int asked = told, n = 0;
  for (bool failed = true; failed;) {
    SCOPED_TRACE(++n);
    complete();
    FailAllocation(n);
    const VIP_RETURN result = notify();
    failed = StopFailing();
    if (result == VIP_SUCCESS) {
      ++asked;
      while (told != asked) sched_yield();
    } else {
      EXPECT_EQ(result, VIP_ERROR_RESOURCE);
      take();
    }
  }
  EXPECT_GT(n, 1) << "it allocates elsewhere";
  EXPECT_EQ(told, asked) << "a handler was called whose call had failed";
}

TEST(OutOfMemory, ANotifyThatSucceedsIsServedThoughNoCompletionFollows) {
  RunAlone([] {
    Side side;
    FailEachAllocationOfANotify(
        [&] { side.PostSend(side.memory.Fill(0, 0, 0)); },  // not connected: it is flushed
        [&] { return VipSendNotify(side.vi, nullptr, &Tell); },
        [&] {
          VIP_DESCRIPTOR* done = nullptr;
          EXPECT_EQ(VipSendWait(side.vi, 10000, &done), VIP_DESCRIPTOR_ERROR);
          EXPECT_NE(done, nullptr);
        });
  });
}

TEST(OutOfMemory, ANotifyOfACompletionQueueThatSucceedsIsServed) {
  RunAlone([] {
    const Nic nic;
    const Memory memory(nic);
    Made made;
    MakeCqs(nic, &made);
    VIP_VI_ATTRIBUTES attributes = Attributes();
    ASSERT_EQ(VipCreateVi(nic.handle, &attributes, made.send_cq, made.receive_cq, &made.vi),
              VIP_SUCCESS);
    const auto drain = [&] {
      VIP_DESCRIPTOR* done = nullptr;
      while (VipSendDone(made.vi, &done) == VIP_NOT_DONE || done != nullptr) {
      }
    };
    FailEachAllocationOfANotify(
        [&] {
          drain();
          ASSERT_EQ(VipPostSend(made.vi, memory.Fill(0, 0, 0), memory.handle()), VIP_SUCCESS);
        },
        [&] { return VipCQNotify(made.send_cq, nullptr, &TellEntry); }, drain);
    drain();
    Destroy(made);
  });
}

// Calling the handler needs neither memory nor a further completion.
TEST(OutOfMemory, AHandlerIsCalledWithoutMemory) {
  RunAlone([] {
    Side side;
    for (int calls = 1; calls <= 3; ++calls) {
      ASSERT_EQ(VipSendNotify(side.vi, nullptr, &Tell), VIP_SUCCESS);
      if (calls > 1) FailAllocationsFrom(1);     // the first descriptor takes memory
      side.PostSend(side.memory.Fill(0, 0, 0));  // not connected: it is flushed
      while (told != calls) sched_yield();
      StopFailing();
    }
  });
}

TEST(OutOfMemory, TheThreadOfHandlersWaitsForMemory) {
  RunAlone([] {
    Side side;
    FailNewThreads();
    ASSERT_EQ(VipSendNotify(side.vi, nullptr, &Tell), VIP_SUCCESS);
    ASSERT_TRUE(AwaitFailureOfNewThread());
    StopFailing();
    side.PostSend(side.memory.Fill(0, 0, 0));
    while (told != 1) sched_yield();
  });
}

TEST(OutOfMemory, AnErrorWithoutAHandlerNeedsNone) {
  RunAlone([] {
    Side side;
    const auto fail_here = [](VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {
      FailAllocationsFrom(1);
      ++told;
    };
    for (const VIP_VI_CALLBACK handler : {VIP_VI_CALLBACK{fail_here}, VIP_VI_CALLBACK{&Tell}}) {
      const int next = told + 1;
      ASSERT_EQ(VipSendNotify(side.vi, nullptr, handler), VIP_SUCCESS);
      side.PostSend(side.memory.Fill(0, 0, 0));
      while (told != next) sched_yield();
      EXPECT_EQ(VipPostSend(side.vi, side.memory.descriptor(0), 0), VIP_SUCCESS);
    }
  });
}

// There was no memory for the thread of handlers, perhaps only for that. Each time in a process
// that does not have this thread yet.
TEST(OutOfMemory, WhatEndsMakesNoThreadOfHandlers) {
  for (int n = 1; n <= kTries; ++n) {
    SCOPED_TRACE(n);
    RunAlone([n] {
      const Nic nic;
      Made made;
      MakeCqs(nic, &made);
      VIP_VI_ATTRIBUTES attributes = Attributes();
      ASSERT_EQ(VipCreateVi(nic.handle, &attributes, nullptr, made.receive_cq, &made.vi),
                VIP_SUCCESS);
      const Memory memory(nic);
      ASSERT_EQ(VipPostSend(made.vi, memory.Fill(0, 0, 0), memory.handle()), VIP_SUCCESS);
      const auto handler = [](VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {};
      FailAllocationsFrom(n);
      (void)VipSendNotify(made.vi, nullptr, handler);
      StopFailing();
      VIP_DESCRIPTOR* done = nullptr;
      (void)VipSendDone(made.vi, &done);  // unless the handler got it
      FailAllocationsFrom(1);
      const VIP_RETURN destroyed = VipDestroyVi(made.vi);
      EXPECT_FALSE(StopFailing()) << "it allocates";
      EXPECT_EQ(destroyed, VIP_SUCCESS);
      made.vi = nullptr;
      Destroy(made);
    });
  }
}

// Each in a process that has logged nothing yet.
TEST(OutOfMemory, AFailedReadOfAFileWithBadLinesMayBeRepeated) {
  constexpr int kAllocations = 30;  // of a call, and some more
  for (int n = 1; n <= kAllocations; ++n) {
    SCOPED_TRACE(n);
    RunAlone([n] {
      char path[] = "/tmp/vip_hosts.XXXXXX";
      const int file = mkstemp(path);
      ASSERT_GE(file, 0);
      for (int i = 0; i < 8; ++i) ASSERT_EQ(write(file, "bad\n", 4), 4);
      close(file);
      setenv("VIADUCT_VIP_HOSTS", path, 1);
      const Nic nic;
      ASSERT_EQ(VipNSInit(nic.handle, nullptr), VIP_SUCCESS);
      NetAddress address;
      char name[] = "nobody";
      FailAllocation(n);
      EXPECT_NE(VipNSGetHostByName(nic.handle, name, address.get(), 0), VIP_SUCCESS);
      StopFailing();
      EXPECT_NE(VipNSGetHostByName(nic.handle, name, address.get(), 0), VIP_SUCCESS);
      unlink(path);
    });
  }
}

// The client gets an answer to each request, whether a wait has returned it or not.
TEST(OutOfMemory, AFailedVipConnectWaitLeavesNoRequestUndecided) {
  RunPair(
      [](Peer&) {
        Side side;
        int n = 0;
        for (bool failed = true; failed;) {
          SCOPED_TRACE(++n);
          NetAddress local = side.nic.Address(Name(0));
          VIP_CONN_HANDLE request = nullptr;
          FailAllocation(n);
          const VIP_RETURN result = VipConnectWait(side.nic.handle, local.get(), VIP_INFINITE,
                                                   side.requester.get(), &side.peer, &request);
          failed = StopFailing();
          EXPECT_TRUE(result == VIP_SUCCESS || (failed && result == VIP_ERROR_RESOURCE)) << result;
          if (result != VIP_SUCCESS) continue;
          EXPECT_EQ(VipConnectReject(request), VIP_SUCCESS);
        }
        EXPECT_GT(n, 3) << "the libraries allocate elsewhere";
        side.Accept(0);
      },
      [](Peer&) {
        Side side;
        constexpr VIP_ULONG kLong = 10000;  // ms
        VIP_RETURN result;
        do {
          result = side.Request(0, kLong);
          ASSERT_NE(result, VIP_TIMEOUT) << "nobody decides the request";
        } while (result != VIP_SUCCESS);
      });
}

TEST(OutOfMemory, VipDisconnectNeedsNone) {
  RunPair(
      [](Peer&) {
        for (int n = 1; n <= kTries; ++n) {
          SCOPED_TRACE(n);
          Side side;
          side.Receive(0, 64);
          side.Accept(n);
          FailAllocation(n);
          const VIP_RETURN result = VipDisconnect(side.vi);
          EXPECT_FALSE(StopFailing()) << "it allocates";
          EXPECT_EQ(result, VIP_SUCCESS);
          EXPECT_EQ(side.DrainFlushed(), 1);
          EXPECT_EQ(VipDestroyVi(side.vi), VIP_SUCCESS);
        }
      },
      [](Peer&) {
        for (int n = 1; n <= kTries; ++n) {
          Side side;
          side.Connect(n);
          while (side.State() == VIP_STATE_CONNECTED) sched_yield();
        }
      });
}

// Another connection between the two processes lives on, and the request waits.
TEST(OutOfMemory, AFailedVipConnectAcceptLeavesTheRequestAndOtherConnections) {
  RunPair(
      [](Peer& peer) {
        Side other;
        other.Accept();
        int n = 0;
        for (bool failed = true; failed;) {
          SCOPED_TRACE(++n);
          peer.Send(true);
          Side side;
          NetAddress local = side.nic.Address(Name(1));
          VIP_CONN_HANDLE request = nullptr;
          ASSERT_EQ(VipConnectWait(side.nic.handle, local.get(), VIP_INFINITE, side.requester.get(),
                                   &side.peer, &request),
                    VIP_SUCCESS);
          FailAllocation(n);
          const VIP_RETURN first = VipConnectAccept(request, side.vi);
          failed = StopFailing();
          if (first != VIP_SUCCESS) {
            EXPECT_TRUE(failed);
            EXPECT_EQ(first, VIP_ERROR_RESOURCE);
            EXPECT_EQ(side.State(), VIP_STATE_IDLE);
            EXPECT_EQ(VipConnectAccept(request, side.vi), VIP_SUCCESS);
          }
          EXPECT_EQ(side.State(), VIP_STATE_CONNECTED);
        }
        EXPECT_GT(n, 1) << "the libraries allocate elsewhere";
        peer.Send(false);
        other.SendText(0, "still here");
        peer.Await("received");
      },
      [](Peer& peer) {
        Side other;
        other.Receive(0, 64);
        other.Connect();
        while (peer.Receive<bool>()) {
          Side side;
          side.Connect(1);
          while (side.State() == VIP_STATE_CONNECTED) sched_yield();
        }
        EXPECT_EQ(other.TextOf(other.NextReceive()), "still here");
        peer.Tell("received");
      });
}

// The memory that the end of a NIC needs is allocated before the end begins.
TEST(OutOfMemory, VipCloseNicClosesAllOrNothing) {
  RunPair(
      [](Peer& peer) {
        int n = 0;
        for (bool failed = true; failed;) {
          SCOPED_TRACE(++n);
          peer.Send(true);
          Side side;
          side.Receive(0, 64);
          side.Accept();
          FailAllocation(n);
          const VIP_RETURN result = VipCloseNic(side.nic.handle);
          failed = StopFailing();
          if (result != VIP_SUCCESS) {
            EXPECT_TRUE(failed);
            EXPECT_EQ(result, VIP_ERROR_RESOURCE);
            EXPECT_EQ(side.State(), VIP_STATE_CONNECTED);
            EXPECT_EQ(VipCloseNic(side.nic.handle), VIP_SUCCESS);
          }
          peer.Await("ended");
        }
        EXPECT_GT(n, 1) << "the libraries allocate elsewhere";
        peer.Send(false);
      },
      [](Peer& peer) {
        while (peer.Receive<bool>()) {
          Side side;
          side.Connect();
          while (side.State() == VIP_STATE_CONNECTED) sched_yield();
          peer.Tell("ended");
        }
      });
}

// A name that somebody waits for outlives the wait.
TEST(OutOfMemory, VipCloseNicClosesAllOrNothingWhileAThreadWaits) {
  RunAlone([] {
    int n = 0;
    for (bool failed = true; failed;) {
      SCOPED_TRACE(++n);
      Side side;
      std::atomic<bool> returned{false};
      std::thread waiter([&side, &returned] {
        NetAddress local = side.nic.Address(Name(0)), remote;
        VIP_VI_ATTRIBUTES attributes;
        VIP_CONN_HANDLE request;
        VipConnectWait(side.nic.handle, local.get(), VIP_INFINITE, remote.get(), &attributes,
                       &request);
        returned = true;
      });
      poll(nullptr, 0, 50);  // it listens
      FailAllocation(n);
      const VIP_RETURN result = VipCloseNic(side.nic.handle);
      failed = StopFailing();
      if (result != VIP_SUCCESS) {
        EXPECT_TRUE(failed);
        EXPECT_EQ(result, VIP_ERROR_RESOURCE);
        EXPECT_EQ(VipCloseNic(side.nic.handle), VIP_SUCCESS) << "neither closed nor open";
      }
      for (int i = 0; i < 200 && !returned; ++i) poll(nullptr, 0, 10);
      EXPECT_TRUE(returned) << "the waiter waits for ever";
      if (!returned) _exit(1);
      waiter.join();
    }
  });
}

TEST(OutOfMemory, AVipConnectWaitInVainLeavesNothing) {
  RunAlone([] {
    const Nic other;
    poll(nullptr, 0, 500);
    int64_t before = 0;
    int n = 0;
    for (bool failed = true; failed;) {
      SCOPED_TRACE(++n);
      {
        const Nic nic;
        NetAddress local = nic.Address(Name(0)), remote;
        VIP_VI_ATTRIBUTES attributes;
        VIP_CONN_HANDLE request;
        FailAllocation(n);
        const VIP_RETURN result =
            VipConnectWait(nic.handle, local.get(), 0, remote.get(), &attributes, &request);
        failed = StopFailing();
        EXPECT_TRUE(result == VIP_TIMEOUT || (failed && result == VIP_ERROR_RESOURCE)) << result;
        EXPECT_EQ(VipCloseNic(nic.handle), VIP_SUCCESS);
      }
      if (n == 1) {
        poll(nullptr, 0, 500);
        before = LiveAllocations() + 20;
        continue;
      }
      EXPECT_TRUE(LiveAtMost(before)) << LiveAllocations() << " instead of " << before;
    }
  });
}

TEST(OutOfMemory, AFailedVipCloseNicLeavesTheNicOpen) {
  RunPair(
      [](Peer& peer) {
        Side side;
        for (int i = 0; i < 2; ++i) side.Receive(i, 64);
        side.Accept();
        peer.Tell("accepted");
        FailAllocation(1);
        const VIP_RETURN result = VipCloseNic(side.nic.handle);
        EXPECT_TRUE(StopFailing());
        EXPECT_EQ(result, VIP_ERROR_RESOURCE);
        peer.Tell("failed");
        for (int i = 0; i < 2; ++i) EXPECT_EQ(side.TextOf(side.NextReceive()), "text");
        EXPECT_EQ(VipCloseNic(side.nic.handle), VIP_SUCCESS);
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        peer.Await("accepted");
        side.SendText(0, "text");
        peer.Await("failed");
        side.SendText(1, "text");
        while (side.State() == VIP_STATE_CONNECTED) sched_yield();
      });
}

}  // namespace
}  // namespace viaduct::tests
