// Callbacks of work queues and completion queues: VIPL checklist C85, C86.
#include <vipl.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/sleeper.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

constexpr VIP_ULONG kLong = 20000;

// The arguments of callbacks, in order. Never freed, because a callback may come late.
class Calls {
 public:
  struct Call {
    int context = 0;
    VIP_NIC_HANDLE nic = nullptr;
    VIP_VI_HANDLE vi = nullptr;
    VIP_DESCRIPTOR* descriptor = nullptr;  // in a callback of a work queue
    VIP_BOOLEAN receive = VIP_FALSE;       // in a callback of a completion queue
    std::thread::id thread;
  };
  // What a callback gets as its context.
  struct Context {
    Calls* calls;
    int number;
    std::function<void(const Call&)> then;  // runs inside the callback
  };

  static Calls& New() { return *new Calls; }
  Context* NewContext(int number, std::function<void(const Call&)> then = nullptr) {
    return new Context{this, number, std::move(then)};
  }

  static void OnVi(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR* d) {
    Add(context, {0, nic, vi, d, VIP_FALSE, std::this_thread::get_id()});
  }
  static void OnCq(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN receive) {
    Add(context, {0, nic, vi, nullptr, receive, std::this_thread::get_id()});
  }

  // Waits for the next call; its context is -1 after 10 s.
  Call Next() {
    std::unique_lock<std::mutex> hold(mutex_);
    Call call;
    call.context = -1;
    if (changed_.wait_for(hold, std::chrono::seconds(10), [this] { return !calls_.empty(); })) {
      call = calls_.front();
      calls_.pop_front();
    }
    return call;
  }
  bool empty() {
    const std::lock_guard<std::mutex> hold(mutex_);
    return calls_.empty();
  }

 private:
  static void Add(VIP_PVOID context, Call call) {
    const auto& to = *static_cast<Context*>(context);
    call.context = to.number;
    if (to.then) to.then(call);
    const std::lock_guard<std::mutex> hold(to.calls->mutex_);
    to.calls->calls_.push_back(call);
    to.calls->changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call> calls_;
};

// Every callback that was due before this call has run when it returns.
void PassCallbacks() {
  Side side;
  side.Receive(0);
  Calls& calls = Calls::New();
  ASSERT_EQ(VipRecvNotify(side.vi, calls.NewContext(0), &Calls::OnVi), VIP_SUCCESS);
  ASSERT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
  ASSERT_EQ(calls.Next().context, 0);
}

TEST(Notify, C85_OneReceiveForEachCallInOrder) {
  constexpr int kCalls = 4;
  RunPair(
      [](Peer& peer) {
        Side side;
        Calls& calls = Calls::New();
        for (int i = 0; i <= kCalls; ++i) side.Receive(i);
        for (int i = 0; i < kCalls; ++i) {
          ASSERT_EQ(VipRecvNotify(side.vi, calls.NewContext(i), &Calls::OnVi), VIP_SUCCESS);
        }
        side.Accept();
        for (int i = 0; i < kCalls; ++i) {
          const Calls::Call call = calls.Next();
          EXPECT_EQ(call.context, i);
          EXPECT_EQ(call.nic, side.nic.handle);
          EXPECT_EQ(call.vi, side.vi);
          EXPECT_EQ(call.descriptor, side.memory.descriptor(i));
          EXPECT_EQ(side.TextOf(call.descriptor), "message " + std::to_string(i));
          EXPECT_NE(call.thread, std::this_thread::get_id());
        }
        // The fifth receive has no callback left.
        VIP_DESCRIPTOR* done = nullptr;
        ASSERT_EQ(VipRecvWait(side.vi, kLong, &done), VIP_SUCCESS);
        EXPECT_EQ(done, side.memory.descriptor(kCalls));
        PassCallbacks();
        EXPECT_TRUE(calls.empty());
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        for (int i = 0; i <= kCalls; ++i) side.SendText(i, "message " + std::to_string(i));
        peer.Await("done");
      });
}

TEST(Notify, C85_WhatIsCompleteAlreadyIsTakenAtOnce) {
  RunAlone([] {
    Side side;
    Calls& calls = Calls::New();
    side.Receive(0);
    ASSERT_EQ(side.PostSend(side.memory.Fill(1, 0, 8)), VIP_SUCCESS);
    ASSERT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    ASSERT_EQ(VipSendNotify(side.vi, calls.NewContext(1), &Calls::OnVi), VIP_SUCCESS);
    EXPECT_EQ(calls.Next().descriptor, side.memory.descriptor(1));
    ASSERT_EQ(VipRecvNotify(side.vi, calls.NewContext(2), &Calls::OnVi), VIP_SUCCESS);
    const Calls::Call call = calls.Next();
    EXPECT_EQ(call.descriptor, side.memory.descriptor(0));
    EXPECT_EQ(call.descriptor->CS.Status & VIP_STATUS_ERROR_MASK,
              static_cast<VIP_UINT32>(VIP_STATUS_DESC_FLUSHED_ERROR));
    EXPECT_EQ(side.DrainFlushed(), 0) << "both were taken";
  });
}

TEST(Notify, C85_SendsCallBackFromTheirOwnQueue) {
  RunPair(
      [](Peer& peer) {
        Side side;
        Calls& sent = Calls::New();
        Calls& received = Calls::New();
        side.Receive(0);
        side.Accept();
        ASSERT_EQ(VipRecvNotify(side.vi, received.NewContext(1), &Calls::OnVi), VIP_SUCCESS);
        ASSERT_EQ(VipSendNotify(side.vi, sent.NewContext(2), &Calls::OnVi), VIP_SUCCESS);
        ASSERT_EQ(side.PostSend(side.memory.Fill(1, 4096, 8)), VIP_SUCCESS);
        EXPECT_EQ(sent.Next().descriptor, side.memory.descriptor(1));
        EXPECT_TRUE(received.empty());
        peer.Tell("sent");
        EXPECT_EQ(received.Next().descriptor, side.memory.descriptor(0));
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        side.Receive(0);
        side.Connect();
        peer.Await("sent");
        side.SendText(1, "answer");
        peer.Await("done");
      });
}

// An echo that runs in callbacks only, each of which requests the next.
TEST(Notify, C85_ACallbackMayAskForTheNext) {
  constexpr int kMessages = 50;
  RunPair(
      [](Peer& peer) {
        Side side;
        Calls& calls = Calls::New();
        for (int i = 0; i < 2; ++i) side.Receive(i);
        Calls::Context* context = nullptr;
        context = calls.NewContext(7, [&](const Calls::Call& call) {
          EXPECT_EQ(side.PostReceive(call.descriptor), VIP_SUCCESS);
          EXPECT_EQ(VipRecvNotify(side.vi, context, &Calls::OnVi), VIP_SUCCESS);
          side.SendText(10, "echo");
        });
        ASSERT_EQ(VipRecvNotify(side.vi, context, &Calls::OnVi), VIP_SUCCESS);
        side.Accept();
        for (int i = 0; i < kMessages; ++i) ASSERT_EQ(calls.Next().context, 7);
        peer.Await("done");
        // Two receives are left, and one requested callback.
        ASSERT_EQ(VipCloseNic(side.nic.handle), VIP_SUCCESS);
        PassCallbacks();
        EXPECT_TRUE(calls.empty());
        peer.Tell("closed");
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        for (int i = 0; i < kMessages; ++i) {
          side.Receive(0);
          side.SendText(1, "question");
          EXPECT_EQ(side.TextOf(side.NextReceive()), "echo");
        }
        peer.Tell("done");
        peer.Await("closed");
      });
}

TEST(Notify, C85_CompletionQueuesCallWithVisAndQueues) {
  RunPair(
      [](Peer& peer) {
        Nic nic;
        VIP_CQ_HANDLE cq = nullptr;
        ASSERT_EQ(VipCreateCQ(nic.handle, 16, &cq), VIP_SUCCESS);
        Memory memory(nic);
        VIP_VI_ATTRIBUTES attributes = Attributes(), remote_attributes;
        VIP_VI_HANDLE vi = nullptr;
        ASSERT_EQ(VipCreateVi(nic.handle, &attributes, cq, cq, &vi), VIP_SUCCESS);
        for (int i = 0; i < 3; ++i) {
          ASSERT_EQ(VipPostRecv(vi, memory.Fill(i, 0, 64), memory.handle()), VIP_SUCCESS);
        }
        Calls& calls = Calls::New();
        // The handler takes the descriptor.
        const auto take = [](const Calls::Call& call) {
          VIP_DESCRIPTOR* done = nullptr;
          EXPECT_EQ(
              call.receive == VIP_TRUE ? VipRecvDone(call.vi, &done) : VipSendDone(call.vi, &done),
              VIP_SUCCESS);
        };
        for (int i = 0; i < 2; ++i) {
          ASSERT_EQ(VipCQNotify(cq, calls.NewContext(i, take), &Calls::OnCq), VIP_SUCCESS);
        }
        NetAddress local = nic.Address(Name(0)), remote;
        VIP_CONN_HANDLE connection;
        ASSERT_EQ(VipConnectWait(nic.handle, local.get(), kLong, remote.get(), &remote_attributes,
                                 &connection),
                  VIP_SUCCESS);
        ASSERT_EQ(VipConnectAccept(connection, vi), VIP_SUCCESS);
        peer.Tell("two");
        for (int i = 0; i < 2; ++i) {
          const Calls::Call call = calls.Next();
          EXPECT_EQ(call.context, i);
          EXPECT_EQ(call.vi, vi);
          EXPECT_EQ(call.nic, nic.handle);
          EXPECT_EQ(call.receive, VIP_TRUE);
        }
        // A third entry stays.
        peer.Tell("third");
        VIP_VI_HANDLE which = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        ASSERT_EQ(VipCQWait(cq, kLong, &which, &receive), VIP_SUCCESS);
        EXPECT_EQ(which, vi);
        // And an entry that is there already is reported at once.
        ASSERT_EQ(VipPostSend(vi, memory.Fill(5, 0, 0), memory.handle()), VIP_SUCCESS);
        ASSERT_EQ(VipCQNotify(cq, calls.NewContext(9, take), &Calls::OnCq), VIP_SUCCESS);
        const Calls::Call call = calls.Next();
        EXPECT_EQ(call.context, 9);
        EXPECT_EQ(call.receive, VIP_FALSE);
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        side.Receive(3);
        side.Connect();
        peer.Await("two");
        side.SendText(0, "one");
        side.SendText(1, "two");
        peer.Await("third");
        side.SendText(2, "three");
        peer.Await("done");
      });
}

TEST(Notify, C85_WrongArguments) {
  RunAlone([] {
    Side side;
    VIP_CQ_HANDLE cq = nullptr;
    ASSERT_EQ(VipCreateCQ(side.nic.handle, 16, &cq), VIP_SUCCESS);
    Calls& calls = Calls::New();
    Calls::Context* const context = calls.NewContext(0);
    EXPECT_EQ(VipSendNotify(side.vi, context, nullptr), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipRecvNotify(side.vi, context, nullptr), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipCQNotify(cq, context, nullptr), VIP_INVALID_PARAMETER);
    for (void* wrong : {static_cast<void*>(nullptr), static_cast<void*>(&calls), side.nic.handle}) {
      EXPECT_EQ(VipSendNotify(wrong, context, &Calls::OnVi), VIP_INVALID_PARAMETER);
      EXPECT_EQ(VipRecvNotify(wrong, context, &Calls::OnVi), VIP_INVALID_PARAMETER);
      EXPECT_EQ(VipCQNotify(wrong, context, &Calls::OnCq), VIP_INVALID_PARAMETER);
    }
    // A work queue with a completion queue reports through that queue only.
    VIP_VI_ATTRIBUTES attributes = Attributes();
    VIP_VI_HANDLE vi = nullptr;
    ASSERT_EQ(VipCreateVi(side.nic.handle, &attributes, nullptr, cq, &vi), VIP_SUCCESS);
    EXPECT_EQ(VipRecvNotify(vi, context, &Calls::OnVi), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipSendNotify(vi, context, &Calls::OnVi), VIP_SUCCESS);
    PassCallbacks();
    EXPECT_TRUE(calls.empty());
  });
}

TEST(Notify, C85_DestructionCancels) {
  RunAlone([] {
    Side side;
    VIP_CQ_HANDLE cq = nullptr;
    ASSERT_EQ(VipCreateCQ(side.nic.handle, 16, &cq), VIP_SUCCESS);
    Calls& calls = Calls::New();
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(VipSendNotify(side.vi, calls.NewContext(i), &Calls::OnVi), VIP_SUCCESS);
      ASSERT_EQ(VipRecvNotify(side.vi, calls.NewContext(i), &Calls::OnVi), VIP_SUCCESS);
      ASSERT_EQ(VipCQNotify(cq, calls.NewContext(i), &Calls::OnCq), VIP_SUCCESS);
    }
    ASSERT_EQ(VipDestroyVi(side.vi), VIP_SUCCESS);
    ASSERT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
    PassCallbacks();
    EXPECT_TRUE(calls.empty());
  });
}

TEST(Notify, C85_ACallbackMayDestroyWhatItIsAbout) {
  RunAlone([] {
    Side side;
    VIP_CQ_HANDLE cq = nullptr;
    ASSERT_EQ(VipCreateCQ(side.nic.handle, 16, &cq), VIP_SUCCESS);
    VIP_VI_ATTRIBUTES attributes = Attributes();
    VIP_VI_HANDLE vi = nullptr;
    ASSERT_EQ(VipCreateVi(side.nic.handle, &attributes, cq, cq, &vi), VIP_SUCCESS);
    Calls& calls = Calls::New();
    const auto destroy_vi = [](const Calls::Call& call) {
      EXPECT_EQ(VipDestroyVi(call.vi), VIP_SUCCESS);
    };
    const auto destroy_both = [cq](const Calls::Call& call) {
      VIP_DESCRIPTOR* done = nullptr;
      EXPECT_EQ(VipRecvDone(call.vi, &done), VIP_DESCRIPTOR_ERROR);
      EXPECT_EQ(VipDestroyVi(call.vi), VIP_SUCCESS);
      EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
    };
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(VipRecvNotify(side.vi, calls.NewContext(1, destroy_vi), &Calls::OnVi), VIP_SUCCESS);
      ASSERT_EQ(VipCQNotify(cq, calls.NewContext(2, destroy_both), &Calls::OnCq), VIP_SUCCESS);
    }
    side.Receive(0);
    ASSERT_EQ(VipPostRecv(vi, side.memory.Fill(1, 0, 8), side.memory.handle()), VIP_SUCCESS);
    ASSERT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    EXPECT_EQ(calls.Next().context, 1);
    ASSERT_EQ(VipDisconnect(vi), VIP_SUCCESS);
    EXPECT_EQ(calls.Next().context, 2);
    PassCallbacks();
    EXPECT_TRUE(calls.empty()) << "the second of each was cancelled";
  });
}

TEST(Notify, C85_ACallbackMayCloseTheNic) {
  RunAlone([] {
    Side side;
    Calls& calls = Calls::New();
    const auto close = [](const Calls::Call& call) {
      EXPECT_EQ(VipCloseNic(call.nic), VIP_SUCCESS);
    };
    ASSERT_EQ(VipRecvNotify(side.vi, calls.NewContext(1, close), &Calls::OnVi), VIP_SUCCESS);
    side.Receive(0);
    ASSERT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    EXPECT_EQ(calls.Next().context, 1);
    EXPECT_EQ(VipDisconnect(side.vi), VIP_INVALID_PARAMETER);
  });
}

// After the call, a program frees what its handler uses.
TEST(Notify, DestructionWaitsForTheHandlerAtWork) {
  enum class Last { kVi, kViOfCq, kCq, kNic };
  for (const Last last : {Last::kVi, Last::kViOfCq, Last::kCq, Last::kNic}) {
    RunAlone([last] {
      Side side;
      VIP_CQ_HANDLE cq = nullptr;
      ASSERT_EQ(VipCreateCQ(side.nic.handle, 16, &cq), VIP_SUCCESS);
      VIP_VI_ATTRIBUTES attributes = Attributes();
      VIP_VI_HANDLE vi = nullptr;
      ASSERT_EQ(VipCreateVi(side.nic.handle, &attributes, nullptr, cq, &vi), VIP_SUCCESS);
      Calls& calls = Calls::New();
      std::atomic<bool> begun{false}, returned{false};
      // It lasts long enough for a destruction that does not wait to return first.
      const auto work = [&](const Calls::Call&) {
        begun = true;
        for (int i = 0; i < 1000; ++i) std::this_thread::yield();
        returned = true;
      };
      if (last == Last::kVi) {
        ASSERT_EQ(VipRecvNotify(side.vi, calls.NewContext(0, work), &Calls::OnVi), VIP_SUCCESS);
        side.Receive(0);
        ASSERT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
      } else {
        ASSERT_EQ(VipCQNotify(cq, calls.NewContext(0, work), &Calls::OnCq), VIP_SUCCESS);
        ASSERT_EQ(VipPostRecv(vi, side.memory.Fill(1, 0, 8), side.memory.handle()), VIP_SUCCESS);
        ASSERT_EQ(VipDisconnect(vi), VIP_SUCCESS);
      }
      while (!begun) std::this_thread::yield();
      VIP_DESCRIPTOR* done = nullptr;
      if (last == Last::kVi) {
        EXPECT_EQ(VipDestroyVi(side.vi), VIP_SUCCESS);
      } else if (last == Last::kViOfCq) {
        EXPECT_EQ(VipRecvDone(vi, &done), VIP_DESCRIPTOR_ERROR);
        EXPECT_EQ(VipDestroyVi(vi), VIP_SUCCESS);
      } else if (last == Last::kCq) {
        EXPECT_EQ(VipRecvDone(vi, &done), VIP_DESCRIPTOR_ERROR);
        EXPECT_EQ(VipDestroyVi(vi), VIP_SUCCESS);
        EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
      } else {
        EXPECT_EQ(VipCloseNic(side.nic.handle), VIP_SUCCESS);
      }
      EXPECT_TRUE(returned);
      PassCallbacks();
    });
  }
}

// Also if the handler itself has destroyed the VI whose destruction would have waited.
TEST(Notify, DestructionWaitsForTheHandlerThatDestroyedTheVi) {
  RunAlone([] {
    Side side;
    VIP_CQ_HANDLE cq = nullptr;
    ASSERT_EQ(VipCreateCQ(side.nic.handle, 16, &cq), VIP_SUCCESS);
    VIP_VI_ATTRIBUTES attributes = Attributes();
    VIP_VI_HANDLE vi = nullptr;
    ASSERT_EQ(VipCreateVi(side.nic.handle, &attributes, nullptr, cq, &vi), VIP_SUCCESS);
    std::atomic<bool> destroyed{false}, go_on{false}, returned{false};
    const auto work = [&](const Calls::Call& call) {
      VIP_DESCRIPTOR* done = nullptr;
      EXPECT_EQ(VipRecvDone(call.vi, &done), VIP_DESCRIPTOR_ERROR);
      EXPECT_EQ(VipDestroyVi(call.vi), VIP_SUCCESS);
      destroyed = true;
      while (!go_on) std::this_thread::yield();
      returned = true;
    };
    ASSERT_EQ(VipCQNotify(cq, Calls::New().NewContext(0, work), &Calls::OnCq), VIP_SUCCESS);
    ASSERT_EQ(VipPostRecv(vi, side.memory.Fill(0, 0, 8), side.memory.handle()), VIP_SUCCESS);
    ASSERT_EQ(VipDisconnect(vi), VIP_SUCCESS);
    while (!destroyed) std::this_thread::yield();
    Sleeper destroyer([&] {
      EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
      EXPECT_TRUE(returned);
    });
    destroyer.AwaitAsleep();
    go_on = true;
    destroyer.Join();
    PassCallbacks();
  });
}

// Three consumers compete for the completions; each completion goes to one of them.
TEST(Notify, C86_DoneWaitAndNotifyShareAQueue) {
  constexpr int kRounds = 200, kEach = 3;
  RunAlone([] {
    Side side;
    std::atomic<int> taken{0};
    std::atomic<bool> over{false};
    std::thread waiter([&] {
      while (!over) {
        VIP_DESCRIPTOR* done = nullptr;
        VipRecvWait(side.vi, kLong, &done);
        if (done != nullptr) ++taken;
      }
    });
    std::thread poller([&] {
      while (!over) {
        VIP_DESCRIPTOR* done = nullptr;
        VipRecvDone(side.vi, &done);
        if (done != nullptr) ++taken;
        std::this_thread::yield();
      }
    });
    Calls& calls = Calls::New();
    Calls::Context* const context = calls.NewContext(0, [&](const Calls::Call&) { ++taken; });
    ASSERT_EQ(VipRecvNotify(side.vi, context, &Calls::OnVi), VIP_SUCCESS);
    for (int round = 1; round <= kRounds; ++round) {
      for (int i = 0; i < kEach; ++i) side.Receive(i);
      ASSERT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
      while (taken < round * kEach) std::this_thread::yield();
      for (; !calls.empty(); calls.Next()) {
        ASSERT_EQ(VipRecvNotify(side.vi, context, &Calls::OnVi), VIP_SUCCESS);
      }
    }
    over = true;
    waiter.join();
    poller.join();
    EXPECT_EQ(taken, kRounds * kEach);
    // The last callback refers to this frame.
    PassCallbacks();
    ASSERT_EQ(VipCloseNic(side.nic.handle), VIP_SUCCESS);
    PassCallbacks();
  });
}

TEST(Notify, AWaitEndsWhenItsObjectIsDestroyed) {
  RunAlone([] {
    Side side;
    VIP_CQ_HANDLE cq = nullptr;
    ASSERT_EQ(VipCreateCQ(side.nic.handle, 16, &cq), VIP_SUCCESS);
    Sleeper waiter([cq] {
      VIP_VI_HANDLE vi = nullptr;
      VIP_BOOLEAN receive = VIP_FALSE;
      EXPECT_EQ(VipCQWait(cq, VIP_INFINITE, &vi, &receive), VIP_INVALID_PARAMETER);
    });
    waiter.AwaitAsleep();
    ASSERT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
    waiter.Join();
    side.Receive(0);
    Sleeper receiver([&side] {
      VIP_DESCRIPTOR* done = nullptr;
      EXPECT_EQ(VipRecvWait(side.vi, VIP_INFINITE, &done), VIP_INVALID_PARAMETER);
      EXPECT_EQ(done, nullptr);
    });
    receiver.AwaitAsleep();
    ASSERT_EQ(VipCloseNic(side.nic.handle), VIP_SUCCESS);
    receiver.Join();
  });
}

}  // namespace
}  // namespace viaduct::tests
