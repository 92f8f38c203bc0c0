// Completion queues: VIPL checklist C80 to C84.
#include <unistd.h>
#include <vipl.h>

#include <atomic>
#include <map>
#include <thread>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

constexpr VIP_ULONG kLong = 20000;

// A NIC, memory and one completion queue for both queues of several VIs.
struct Hub {
  explicit Hub(int vis, VIP_ULONG entries = 64,
               VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY)
      : memory(nic) {
    EXPECT_EQ(VipCreateCQ(nic.handle, entries, &cq), VIP_SUCCESS);
    for (int i = 0; i < vis; ++i) {
      VIP_VI_ATTRIBUTES attributes = Attributes(level);
      VIP_VI_HANDLE vi = nullptr;
      EXPECT_EQ(VipCreateVi(nic.handle, &attributes, cq, cq, &vi), VIP_SUCCESS);
      this->vis.push_back(vi);
    }
  }
  void Accept(int i, int name) {
    NetAddress local = nic.Address(Name(name)), remote;
    VIP_VI_ATTRIBUTES peer;
    VIP_CONN_HANDLE connection;
    ASSERT_EQ(VipConnectWait(nic.handle, local.get(), kLong, remote.get(), &peer, &connection),
              VIP_SUCCESS);
    ASSERT_EQ(VipConnectAccept(connection, vis[i]), VIP_SUCCESS);
  }
  void Receive(int i, int n) {
    ASSERT_EQ(VipPostRecv(vis[i], memory.Fill(n, n * 4096, 4096), memory.handle()), VIP_SUCCESS);
  }
  VIP_VI_STATE State(int i) const {
    VIP_VI_STATE state = VIP_STATE_IDLE;
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN sends_empty, receives_empty;
    EXPECT_EQ(VipQueryVi(vis[i], &state, &attributes, &sends_empty, &receives_empty), VIP_SUCCESS);
    return state;
  }

  Nic nic;
  Memory memory;
  VIP_CQ_HANDLE cq = nullptr;
  std::vector<VIP_VI_HANDLE> vis;
};

TEST(Cq, C80_C82_OneForManyVisTellsViAndQueue) {
  constexpr int kVis = 4;
  RunPair(
      [](Peer& peer) {
        Hub hub(kVis);
        for (int i = 0; i < kVis; ++i) {
          hub.Receive(i, i);
          hub.Accept(i, i);
        }
        peer.Tell("all");
        std::map<VIP_VI_HANDLE, int> seen;
        int sent = 0;
        while (sent < kVis) {
          VIP_VI_HANDLE vi = nullptr;
          VIP_BOOLEAN receive = VIP_FALSE;
          ASSERT_EQ(VipCQWait(hub.cq, kLong, &vi, &receive), VIP_SUCCESS);
          VIP_DESCRIPTOR* done = nullptr;
          if (receive == VIP_TRUE) {
            ASSERT_EQ(VipRecvDone(vi, &done), VIP_SUCCESS);
            // The answer completes on the same queue, as a send.
            const int n = 20 + static_cast<int>(seen.size());
            ++seen[vi];
            ASSERT_EQ(VipPostSend(vi, hub.memory.Fill(n, 0, 4), hub.memory.handle()), VIP_SUCCESS);
          } else {
            ASSERT_EQ(seen[vi], 1);
            ASSERT_EQ(VipSendDone(vi, &done), VIP_SUCCESS);
            ++sent;
          }
        }
        EXPECT_EQ(seen.size(), static_cast<size_t>(kVis));
        peer.Await("done");
      },
      [](Peer& peer) {
        std::vector<std::unique_ptr<Side>> sides;
        for (int i = 0; i < kVis; ++i) {
          sides.push_back(std::make_unique<Side>());
          sides.back()->Receive(10);
          sides.back()->Connect(i);
        }
        peer.Await("all");
        for (auto& side : sides) side->SendText(0, "ping");
        for (auto& side : sides) EXPECT_EQ(side->NextReceive()->CS.Length, 4u);
        peer.Tell("done");
      });
}

TEST(Cq, C81_TimesOutAndIsEmpty) {
  RunAlone([] {
    Hub hub(1);
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    EXPECT_EQ(VipCQDone(hub.cq, &vi, &receive), VIP_NOT_DONE);
    const int64_t begin = NowMilliseconds();
    EXPECT_EQ(VipCQWait(hub.cq, 100, &vi, &receive), VIP_TIMEOUT);
    EXPECT_GE(NowMilliseconds() - begin, 100);
    EXPECT_LT(NowMilliseconds() - begin, 5000);
  });
}

TEST(Cq, C81_WakesForACompletion) {
  RunPair(
      [](Peer& peer) {
        Hub hub(1);
        hub.Receive(0, 0);
        hub.Accept(0, 0);
        peer.Send(gettid());
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receive;
        EXPECT_EQ(VipCQWait(hub.cq, VIP_INFINITE, &vi, &receive), VIP_SUCCESS);
        EXPECT_EQ(vi, hub.vis[0]);
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        AwaitAsleep(peer.pid(), peer.Receive<pid_t>());
        side.SendText(0, "wake up");
        peer.Await("done");
      });
}

TEST(Cq, C83_FlushedDescriptorsHaveEntries) {
  RunAlone([] {
    Hub hub(1);
    for (int n = 0; n < 3; ++n) hub.Receive(0, n);
    ASSERT_EQ(VipDisconnect(hub.vis[0]), VIP_SUCCESS);
    for (int n = 0; n < 3; ++n) {
      VIP_VI_HANDLE vi = nullptr;
      VIP_BOOLEAN receive;
      ASSERT_EQ(VipCQWait(hub.cq, kLong, &vi, &receive), VIP_SUCCESS);
      EXPECT_EQ(vi, hub.vis[0]);
      EXPECT_EQ(receive, VIP_TRUE);
      VIP_DESCRIPTOR* done = nullptr;
      EXPECT_EQ(VipRecvDone(vi, &done), VIP_DESCRIPTOR_ERROR);
      EXPECT_EQ(done, hub.memory.descriptor(n));
    }
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    EXPECT_EQ(VipCQDone(hub.cq, &vi, &receive), VIP_NOT_DONE);
  });
}

// While another VI of the completion queue receives all the time, flushed descriptors are found as
// soon as the state is Error, without VipCQDone.
TEST(Cq, C83_FlushedDescriptorsAreFoundBesideABusyVi) {
  constexpr int kRounds = 8;
  RunPair(
      [](Peer& peer) {
        for (int round = 0; round < kRounds; ++round) {
          Hub hub(2, 64, VIP_SERVICE_UNRELIABLE);
          const ErrorLog dropped(hub.nic.handle);
          for (int i = 0; i < 2; ++i) {
            for (int n = 0; n < 16; ++n) hub.Receive(i, 16 * i + n);
            hub.Accept(i, i);
          }
          peer.Tell("accepted");
          std::atomic<bool> stop{false};
          std::atomic<int> received{0};
          std::thread server([&] {
            while (!stop.load()) {
              VIP_VI_HANDLE vi;
              VIP_BOOLEAN receive;
              VIP_DESCRIPTOR* done;
              if (VipCQDone(hub.cq, &vi, &receive) != VIP_SUCCESS || vi != hub.vis[1]) continue;
              if (VipRecvDone(vi, &done) != VIP_SUCCESS) continue;
              ++received;
              VipPostRecv(vi, done, hub.memory.handle());
            }
          });
          while (received.load() < 100) std::this_thread::yield();
          peer.Tell("busy");
          while (hub.State(0) != VIP_STATE_ERROR) std::this_thread::yield();
          for (int n = 0; n < 16; ++n) {
            VIP_DESCRIPTOR* done = nullptr;
            EXPECT_EQ(VipRecvDone(hub.vis[0], &done), VIP_DESCRIPTOR_ERROR) << n;
            EXPECT_EQ(done, hub.memory.descriptor(n));
          }
          stop = true;
          server.join();
          peer.Tell("done");
        }
      },
      [](Peer& peer) {
        for (int round = 0; round < kRounds; ++round) {
          Side doomed(Attributes(VIP_SERVICE_UNRELIABLE)), busy(Attributes(VIP_SERVICE_UNRELIABLE));
          doomed.Connect(0);
          busy.Connect(1);
          peer.Await("accepted");
          std::atomic<bool> stop{false};
          std::thread sender([&] {
            while (!stop.load()) {
              busy.PostSend(busy.memory.Fill(0, 0, 8));
              busy.NextSend();
            }
          });
          peer.Await("busy");
          EXPECT_EQ(VipDisconnect(doomed.vi), VIP_SUCCESS);
          peer.Await("done");
          stop = true;
          sender.join();
        }
      });
}

// One VI has more completions at every poll than a poll takes. A descriptor that is flushed at
// another VI gets its entry nevertheless.
TEST(Cq, C83_AnEntryDoesNotWaitBehindABusyVi) {
  constexpr int kInFlight = 48;
  constexpr int kEnough = 20'000;
  RunPair(
      [&](Peer& peer) {
        Hub hub(2, 1024, VIP_SERVICE_UNRELIABLE);
        hub.Accept(0, 0);
        peer.Tell("accepted");
        const auto send = [&](int vi, int n) {
          ASSERT_EQ(VipPostSend(hub.vis[vi], hub.memory.Fill(n, 0, 4), hub.memory.handle()),
                    VIP_SUCCESS);
        };
        for (int n = 0; n < kInFlight; ++n) send(0, n);
        int next = 0, entries = 0;
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        while (vi != hub.vis[1]) {
          if (entries == 100) send(1, kInFlight);  // not connected: flushed at once
          if (VipCQDone(hub.cq, &vi, &receive) != VIP_SUCCESS || vi != hub.vis[0]) continue;
          ASSERT_LT(++entries, kEnough);
          VIP_DESCRIPTOR* done = nullptr;
          ASSERT_EQ(VipSendDone(vi, &done), VIP_SUCCESS);
          send(0, next++ % kInFlight);
        }
        peer.Tell("enough");
      },
      [](Peer& peer) {
        Side side(Attributes(VIP_SERVICE_UNRELIABLE));
        const ErrorLog dropped(side.nic.handle);
        side.Connect();
        peer.Await("accepted");
        std::atomic<bool> stop{false};
        std::thread receiver([&] {
          VIP_DESCRIPTOR* done;
          while (!stop.load()) VipRecvDone(side.vi, &done);
        });
        peer.Await("enough");
        stop = true;
        receiver.join();
      });
}

TEST(VipDisconnect, C31_MarksWhatGoesToCompletionQueues) {
  RunAlone([] {
    Side side;
    VIP_CQ_HANDLE sends = nullptr, receives = nullptr;
    ASSERT_EQ(VipCreateCQ(side.nic.handle, 16, &sends), VIP_SUCCESS);
    ASSERT_EQ(VipCreateCQ(side.nic.handle, 16, &receives), VIP_SUCCESS);
    VIP_VI_ATTRIBUTES attributes = Attributes();
    VIP_VI_HANDLE vi = nullptr;
    ASSERT_EQ(VipCreateVi(side.nic.handle, &attributes, sends, receives, &vi), VIP_SUCCESS);
    VIP_DESCRIPTOR* const posted[] = {side.memory.Fill(0, 0, 8), side.memory.Fill(1, 0, 8)};
    ASSERT_EQ(VipPostSend(vi, posted[0], side.memory.handle()), VIP_SUCCESS);
    ASSERT_EQ(VipPostRecv(vi, posted[1], side.memory.handle()), VIP_SUCCESS);
    EXPECT_EQ(::VipDisconnect(vi), VIP_SUCCESS);
    for (const VIP_DESCRIPTOR* d : posted) {
      EXPECT_EQ(d->CS.Status & (VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK),
                static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR));
    }
  });
}

TEST(VipConnectRequest, C15_MarksWhatGoesToCompletionQueues) {
  if (!HasOwnNetwork()) GTEST_SKIP() << "needs a network where an address is unreachable";
  if (Wire() == "shm") GTEST_SKIP() << "the wire stays on its host";
  RunAlone([] {
    Side side;
    VIP_CQ_HANDLE cq = nullptr;
    ASSERT_EQ(VipCreateCQ(side.nic.handle, 16, &cq), VIP_SUCCESS);
    VIP_VI_ATTRIBUTES attributes = Attributes();
    VIP_VI_HANDLE vi = nullptr;
    ASSERT_EQ(VipCreateVi(side.nic.handle, &attributes, nullptr, cq, &vi), VIP_SUCCESS);
    const VIP_UINT8 nowhere[6] = {192, 0, 2, 1, 0, 0};
    NetAddress local = side.nic.Address("client");
    NetAddress remote(nowhere, sizeof nowhere, Name(0));
    for (int round = 0; round < 20; ++round) {
      VIP_DESCRIPTOR* const posted = side.memory.Fill(0, 0, 8);
      ASSERT_EQ(VipPostRecv(vi, posted, side.memory.handle()), VIP_SUCCESS);
      ASSERT_EQ(::VipConnectRequest(vi, local.get(), remote.get(), kLong, &side.peer),
                VIP_NOT_REACHABLE);
      ASSERT_EQ(posted->CS.Status & (VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK),
                static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR))
          << round;
      VIP_VI_HANDLE from = nullptr;
      VIP_BOOLEAN receive = VIP_FALSE;
      EXPECT_EQ(VipCQDone(cq, &from, &receive), VIP_SUCCESS);
      VIP_DESCRIPTOR* done = nullptr;
      EXPECT_EQ(VipRecvDone(vi, &done), VIP_DESCRIPTOR_ERROR);
      ASSERT_EQ(::VipDisconnect(vi), VIP_SUCCESS);
    }
  });
}

TEST(Cq, C84_ResizeKeepsEntries) {
  RunAlone([] {
    Hub hub(1);
    for (int n = 0; n < 8; ++n) {
      ASSERT_EQ(VipPostSend(hub.vis[0], hub.memory.Fill(n, 0, 4), hub.memory.handle()),
                VIP_SUCCESS);
    }
    EXPECT_EQ(VipResizeCQ(hub.cq, 4), VIP_ERROR_RESOURCE);
    EXPECT_EQ(VipResizeCQ(hub.cq, 8), VIP_SUCCESS);
    EXPECT_EQ(VipResizeCQ(hub.cq, 1024), VIP_SUCCESS);
    EXPECT_EQ(VipResizeCQ(hub.cq, 0), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipResizeCQ(hub.cq, hub.nic.attributes.MaxCQEntries + 1), VIP_ERROR_RESOURCE);
    for (int n = 0; n < 8; ++n) {
      VIP_VI_HANDLE vi = nullptr;
      VIP_BOOLEAN receive;
      ASSERT_EQ(VipCQDone(hub.cq, &vi, &receive), VIP_SUCCESS);
      EXPECT_EQ(receive, VIP_FALSE);
      VIP_DESCRIPTOR* done = nullptr;
      EXPECT_EQ(VipSendDone(vi, &done), VIP_DESCRIPTOR_ERROR);
      EXPECT_EQ(done, hub.memory.descriptor(n));
    }
  });
}

TEST(Cq, MoreEntriesThanTheNicHasAreRefused) {
  RunAlone([] {
    const Nic nic;
    VIP_CQ_HANDLE cq = nullptr;
    EXPECT_EQ(VipCreateCQ(nic.handle, nic.attributes.MaxCQEntries + 1, &cq), VIP_ERROR_RESOURCE);
    EXPECT_EQ(cq, nullptr);
  });
}

TEST(Cq, NeverLosesEntriesBeyondItsSize) {
  RunAlone([] {
    Hub hub(1, /*entries=*/2);
    for (int n = 0; n < 40; ++n) {
      ASSERT_EQ(VipPostSend(hub.vis[0], hub.memory.Fill(n, 0, 4), hub.memory.handle()),
                VIP_SUCCESS);
    }
    for (int n = 0; n < 40; ++n) {
      VIP_VI_HANDLE vi = nullptr;
      VIP_BOOLEAN receive;
      ASSERT_EQ(VipCQDone(hub.cq, &vi, &receive), VIP_SUCCESS) << n;
      VIP_DESCRIPTOR* done = nullptr;
      EXPECT_EQ(VipSendDone(vi, &done), VIP_DESCRIPTOR_ERROR);
    }
  });
}

TEST(Cq, ADescriptorTakenWithoutCqDoneTakesItsEntryAlong) {
  RunAlone([] {
    Hub hub(1);
    for (int n = 0; n < 4; ++n) {
      ASSERT_EQ(VipPostSend(hub.vis[0], hub.memory.Fill(n, 0, 4), hub.memory.handle()),
                VIP_SUCCESS);
    }
    VIP_DESCRIPTOR* done = nullptr;
    EXPECT_EQ(VipSendWait(hub.vis[0], kLong, &done), VIP_DESCRIPTOR_ERROR);
    EXPECT_EQ(done, hub.memory.descriptor(0));
    EXPECT_EQ(VipSendDone(hub.vis[0], &done), VIP_DESCRIPTOR_ERROR);
    EXPECT_EQ(done, hub.memory.descriptor(1));
    EXPECT_EQ(VipResizeCQ(hub.cq, 2), VIP_SUCCESS) << "more than two entries are left";
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN receive;
    for (int n = 2; n < 4; ++n) {
      ASSERT_EQ(VipCQDone(hub.cq, &vi, &receive), VIP_SUCCESS);
      EXPECT_EQ(VipSendDone(vi, &done), VIP_DESCRIPTOR_ERROR);
      EXPECT_EQ(done, hub.memory.descriptor(n));
    }
    EXPECT_EQ(VipCQDone(hub.cq, &vi, &receive), VIP_NOT_DONE);
  });
}

// Two threads that each have an entry may take each other's descriptor, but both get one.
TEST(Cq, ThreadsThatShareItMissNothing) {
  RunAlone([] {
    constexpr int kRounds = 1000;
    Hub hub(1);
    std::atomic<int> taken{0};
    const auto consume = [&] {
      VIP_VI_HANDLE vi = nullptr;
      VIP_BOOLEAN receive;
      while (VipCQDone(hub.cq, &vi, &receive) == VIP_SUCCESS) {
        VIP_DESCRIPTOR* done = nullptr;
        EXPECT_EQ(VipSendDone(vi, &done), VIP_DESCRIPTOR_ERROR);
        EXPECT_NE(done, nullptr);
        ++taken;
      }
    };
    for (int round = 0; round < kRounds; ++round) {
      taken = 0;
      for (int n = 0; n < Memory::kDescriptors; ++n) {  // flushed at once
        ASSERT_EQ(VipPostSend(hub.vis[0], hub.memory.Fill(n, 0, 4), hub.memory.handle()),
                  VIP_SUCCESS);
      }
      std::thread other(consume);
      consume();
      other.join();
      ASSERT_EQ(taken, Memory::kDescriptors) << "in round " << round;
    }
  });
}

TEST(Cq, WaitOnAnAttachedQueueWakes) {
  RunPair(
      [](Peer& peer) {
        Hub hub(1);
        hub.Receive(0, 0);
        hub.Accept(0, 0);
        peer.Send(gettid());
        VIP_DESCRIPTOR* done = nullptr;
        EXPECT_EQ(VipRecvWait(hub.vis[0], VIP_INFINITE, &done), VIP_SUCCESS);
        EXPECT_EQ(done, hub.memory.descriptor(0));
        VIP_VI_HANDLE vi;
        VIP_BOOLEAN receive;
        EXPECT_EQ(VipCQDone(hub.cq, &vi, &receive), VIP_NOT_DONE);
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        AwaitAsleep(peer.pid(), peer.Receive<pid_t>());
        side.SendText(0, "wake up");
        peer.Await("done");
      });
}

// Both have completed before anybody polls. A program that takes them in turn would sleep for ever
// on the second one if the send's entry did not come first.
TEST(Cq, C82_ASendIsFoundBeforeTheMessageThatAnswersIt) {
  constexpr int kRounds = 200;
  for (VIP_RELIABILITY_LEVEL level :
       {VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION}) {
    // There the confirmation is a message of its own, which may arrive after the answer.
    if (level == VIP_SERVICE_RELIABLE_RECEPTION && Wire() == "iwarp") continue;
    RunPair(
        [level](Peer& peer) {
          Hub hub(1, 64, level);
          hub.Accept(0, 0);
          SCOPED_TRACE(level);
          for (int round = 0; round < kRounds; ++round) {
            hub.Receive(0, 0);
            VIP_DESCRIPTOR* const ask = hub.memory.Fill(16, 16 * 4096, 8);
            ASSERT_EQ(VipPostSend(hub.vis[0], ask, hub.memory.handle()), VIP_SUCCESS);
            peer.Tell("asked");
            peer.Await("answered");
            for (const VIP_BOOLEAN queue : {VIP_FALSE, VIP_TRUE}) {
              VIP_VI_HANDLE vi = nullptr;
              VIP_BOOLEAN receive = VIP_FALSE;
              ASSERT_EQ(VipCQWait(hub.cq, kLong, &vi, &receive), VIP_SUCCESS);
              ASSERT_EQ(receive, queue) << round;
              VIP_DESCRIPTOR* done = nullptr;
              ASSERT_EQ(queue == VIP_TRUE ? VipRecvDone(vi, &done) : VipSendDone(vi, &done),
                        VIP_SUCCESS);
              EXPECT_EQ(done, queue == VIP_TRUE ? hub.memory.descriptor(0) : ask);
            }
          }
          peer.Tell("done");
        },
        [level](Peer& peer) {
          Side side(Attributes(level));
          side.Receive(0);
          side.Connect();
          for (int round = 0; round < kRounds; ++round) {
            ASSERT_NE(side.NextReceive(), nullptr);
            side.Receive(0);
            peer.Await("asked");
            ASSERT_EQ(side.PostSend(side.memory.Fill(16, 16 * 4096, 8)), VIP_SUCCESS);
            peer.Tell("answered");
            ASSERT_NE(side.NextSend(), nullptr);
          }
          peer.Await("done");
        });
  }
}

TEST(Cq, OfAnotherNicIsRefused) {
  RunAlone([] {
    Hub hub(0);
    Nic other;
    VIP_VI_ATTRIBUTES attributes = Attributes();
    VIP_VI_HANDLE vi;
    EXPECT_EQ(VipCreateVi(other.handle, &attributes, hub.cq, nullptr, &vi), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipCreateVi(other.handle, &attributes, nullptr, other.handle, &vi),
              VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipCreateVi(hub.nic.handle, &attributes, hub.cq, hub.nic.handle, &vi),
              VIP_INVALID_PARAMETER);
    attributes.MaxTransferSize = 0;
    EXPECT_EQ(VipCreateVi(hub.nic.handle, &attributes, hub.cq, hub.cq, &vi), VIP_INVALID_MTU);
    EXPECT_EQ(VipDestroyCQ(hub.cq), VIP_SUCCESS) << "nothing stayed attached";
  });
}

TEST(Cq, DestructionEndsAWait) {
  RunAlone([] {
    Hub hub(0);
    VIP_RETURN result = VIP_SUCCESS;
    Sleeper waiter([&] {
      VIP_VI_HANDLE vi;
      VIP_BOOLEAN receive;
      result = VipCQWait(hub.cq, VIP_INFINITE, &vi, &receive);
    });
    waiter.AwaitAsleep();
    EXPECT_EQ(VipDestroyCQ(hub.cq), VIP_SUCCESS);
    waiter.Join();
    EXPECT_EQ(result, VIP_INVALID_PARAMETER);
  });
}

}  // namespace
}  // namespace viaduct::tests
