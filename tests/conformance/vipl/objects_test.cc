// NIC, VI, protection tags, memory: VIPL checklist C41 to C56.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vipl.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/short_file.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

TEST(VipOpenNic, C41_EachOpenGivesItsOwnHandle) {
  RunAlone([] {
    Nic first, second;
    EXPECT_NE(first.handle, second.handle);
    EXPECT_EQ(first.Address("x").host(), second.Address("x").host());
  });
}

TEST(VipOpenNic, C42_UnknownNames) {
  setenv("VIADUCT_NIC_NAMES", "known", 1);
  RunAlone([] {
    VIP_NIC_HANDLE nic = nullptr;
    EXPECT_EQ(::VipOpenNic("no such device", &nic), VIP_INVALID_PARAMETER);
    EXPECT_EQ(::VipOpenNic("/dev/via_eth77", &nic), VIP_INVALID_PARAMETER);
    EXPECT_EQ(::VipOpenNic(nullptr, &nic), VIP_INVALID_PARAMETER);
    EXPECT_EQ(::VipOpenNic("nic0", nullptr), VIP_INVALID_PARAMETER);
  });
  unsetenv("VIADUCT_NIC_NAMES");
  RunAlone([] {
    VIP_NIC_HANDLE nic = nullptr;
    EXPECT_EQ(::VipOpenNic("no such device", &nic), VIP_SUCCESS) << "the default NIC";
  });
}

TEST(VipOpenNic, NamesOfThirtyYears) {
  setenv("VIADUCT_NIC_NAMES", "known", 1);
  for (const char* name :
       {"nic0", "nic", "VINIC", "VINIC0", "/dev/via_lo", "/etc/via_lo", "/dev/clanvi0", "soft0"}) {
    RunAlone([name] {
      const Nic nic(name), usual("nic0");
      EXPECT_STREQ(nic.attributes.Name, name);
      EXPECT_EQ(nic.host(),
                std::string(name).ends_with("_lo") ? Nic::LoopbackHost() : usual.host());
    });
  }
  unsetenv("VIADUCT_NIC_NAMES");
}

TEST(VipQueryNic, C43_WhatProgramsRelyOn) {
  RunAlone([] {
    Nic nic;
    EXPECT_EQ(nic.attributes.NicAddressLen, 6);
    EXPECT_GE(nic.attributes.MaxTransferSize, 32768u);
    EXPECT_GE(nic.attributes.MaxDiscriminatorLen, 16);
    EXPECT_EQ(nic.attributes.ThreadSafe, VIP_TRUE);
    EXPECT_EQ(nic.attributes.ReliabilityLevelSupport, 7);
    VIP_NIC_ATTRIBUTES again;
    ASSERT_EQ(::VipQueryNic(nic.handle, &again), VIP_SUCCESS);
    EXPECT_EQ(again.LocalNicAddress, nic.attributes.LocalNicAddress);
    EXPECT_EQ(again.MaxTransferSize, nic.attributes.MaxTransferSize);
  });
}

TEST(VipCreateVi, C44_EachAttributeHasItsCode) {
  RunAlone([] {
    Nic nic;
    const auto create = [&](VIP_VI_ATTRIBUTES attributes) {
      VIP_VI_HANDLE vi;
      return ::VipCreateVi(nic.handle, &attributes, nullptr, nullptr, &vi);
    };
    EXPECT_EQ(create(Attributes()), VIP_SUCCESS);
    EXPECT_EQ(create(Attributes(3)), VIP_INVALID_RELIABILITY_LEVEL);
    EXPECT_EQ(create(Attributes(0)), VIP_INVALID_RELIABILITY_LEVEL);
    EXPECT_EQ(create(Attributes(VIP_SERVICE_DFC)), VIP_INVALID_RELIABILITY_LEVEL);
    EXPECT_EQ(create(Attributes(2, nic.attributes.MaxTransferSize + 1)), VIP_INVALID_MTU);
    EXPECT_EQ(create(Attributes(2, nic.attributes.MaxTransferSize)), VIP_SUCCESS);
    VIP_VI_ATTRIBUTES attributes = Attributes();
    attributes.Ptag = &attributes;
    EXPECT_EQ(create(attributes), VIP_INVALID_PTAG);
    attributes = Attributes();
    attributes.QoS = &attributes;  // more than 32 bits
    EXPECT_EQ(create(attributes), VIP_INVALID_QOS);
    attributes = Attributes(VIP_SERVICE_UNRELIABLE);
    attributes.EnableRdmaRead = VIP_TRUE;
    EXPECT_EQ(create(attributes), VIP_INVALID_RDMAREAD);
  });
}

TEST(VipCreateVi, ATagOfAnotherNicIsInvalid) {
  RunAlone([] {
    Nic nic, other;
    VIP_VI_ATTRIBUTES attributes = Attributes();
    ASSERT_EQ(VipCreatePtag(other.handle, &attributes.Ptag), VIP_SUCCESS);
    VIP_VI_HANDLE vi;
    EXPECT_EQ(::VipCreateVi(nic.handle, &attributes, nullptr, nullptr, &vi), VIP_INVALID_PTAG);
  });
}

TEST(VipDestroyVi, C45_NotConnectedAndNothingQueued) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        peer.AwaitEnd();
      },
      [](Peer&) {
        Side side;
        side.Receive(0);
        EXPECT_EQ(::VipDestroyVi(side.vi), VIP_ERROR_RESOURCE);
        side.Connect();
        EXPECT_EQ(::VipDestroyVi(side.vi), VIP_INVALID_STATE);
        EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
        EXPECT_EQ(::VipDestroyVi(side.vi), VIP_ERROR_RESOURCE);
        EXPECT_EQ(side.DrainFlushed(), 1);
        EXPECT_EQ(::VipDestroyVi(side.vi), VIP_SUCCESS);
        EXPECT_EQ(::VipDestroyVi(side.vi), VIP_INVALID_PARAMETER);
      });
}

TEST(VipDestroyVi, C45_ASendThatNobodyHasTakenIsQueued) {
  RunAlone([] {
    Side side;
    ASSERT_EQ(side.PostSend(side.memory.Fill(0, 0, 8)), VIP_SUCCESS);
    EXPECT_EQ(::VipDestroyVi(side.vi), VIP_ERROR_RESOURCE);
    EXPECT_EQ(side.NextSend(), side.memory.descriptor(0));
    EXPECT_EQ(::VipDestroyVi(side.vi), VIP_SUCCESS);
  });
}

TEST(VipDestroyVi, C46_WhatIsNoHandle) {
  RunAlone([] {
    Side side;
    EXPECT_EQ(::VipDestroyVi(&side.vi), VIP_INVALID_PARAMETER);
    EXPECT_EQ(::VipDestroyVi(nullptr), VIP_INVALID_PARAMETER);
    EXPECT_EQ(::VipDestroyVi(side.nic.handle), VIP_INVALID_PARAMETER);
  });
}

TEST(VipSetViAttributes, C47_InIdleAlone) {
  RunPair(
      [](Peer& peer) {
        Side side(Attributes(VIP_SERVICE_RELIABLE_RECEPTION, 4096));
        side.Accept();
        peer.AwaitEnd();
      },
      [](Peer&) {
        Side side;
        VIP_VI_ATTRIBUTES attributes = Attributes(VIP_SERVICE_RELIABLE_RECEPTION, 4096);
        ASSERT_EQ(VipCreatePtag(side.nic.handle, &attributes.Ptag), VIP_SUCCESS);
        attributes.EnableRdmaWrite = VIP_TRUE;
        EXPECT_EQ(::VipSetViAttributes(side.vi, &attributes), VIP_SUCCESS);
        const VIP_VI_ATTRIBUTES shown = side.QueryVi();
        EXPECT_EQ(shown.ReliabilityLevel, VIP_SERVICE_RELIABLE_RECEPTION);
        EXPECT_EQ(shown.MaxTransferSize, 4096u);
        EXPECT_EQ(shown.Ptag, attributes.Ptag);
        EXPECT_EQ(shown.EnableRdmaWrite, VIP_TRUE);
        VIP_VI_ATTRIBUTES wrong = Attributes(5);
        EXPECT_EQ(::VipSetViAttributes(side.vi, &wrong), VIP_INVALID_RELIABILITY_LEVEL);
        side.Connect();
        EXPECT_EQ(::VipSetViAttributes(side.vi, &attributes), VIP_INVALID_STATE);
      });
}

TEST(VipSetViAttributes, C47_ARequesterIsToldWhatWasSet) {
  RunPair(
      [](Peer& peer) {
        Side side;
        VIP_VI_ATTRIBUTES attributes = Attributes();
        attributes.EnableRdmaWrite = VIP_TRUE;
        ASSERT_EQ(::VipSetViAttributes(side.vi, &attributes), VIP_SUCCESS);
        side.Accept();
        peer.AwaitEnd();
      },
      [](Peer&) {
        Side side;
        ASSERT_EQ(side.Connect(), VIP_SUCCESS);
        EXPECT_EQ(side.peer.EnableRdmaWrite, VIP_TRUE);
      });
}

TEST(VipSetViAttributes, ATagOfAnotherNicIsInvalid) {
  RunAlone([] {
    const Side side;
    const Nic other;
    VIP_VI_ATTRIBUTES attributes = Attributes();
    ASSERT_EQ(VipCreatePtag(other.handle, &attributes.Ptag), VIP_SUCCESS);
    EXPECT_EQ(::VipSetViAttributes(side.vi, &attributes), VIP_INVALID_PTAG);
    EXPECT_EQ(side.QueryVi().Ptag, nullptr);
    EXPECT_EQ(VipDestroyPtag(other.handle, attributes.Ptag), VIP_SUCCESS) << "nothing uses it";
  });
}

// While another thread sets attributes, a connection has those that its request carried.
TEST(VipSetViAttributes, C47_BesideAConnectRequest) {
  constexpr int kRounds = 200;
  RunPair(
      [](Peer& peer) {
        Side side;
        for (int round = 0; round < kRounds; ++round) {
          NetAddress local = side.nic.Address(Name(0));
          VIP_CONN_HANDLE connection = nullptr;
          ASSERT_EQ(VipConnectWait(side.nic.handle, local.get(), VIP_INFINITE, side.requester.get(),
                                   &side.peer, &connection),
                    VIP_SUCCESS);
          VIP_VI_ATTRIBUTES attributes =
              Attributes(side.peer.ReliabilityLevel, side.peer.MaxTransferSize);
          ASSERT_EQ(VipSetViAttributes(side.vi, &attributes), VIP_SUCCESS);
          ASSERT_EQ(VipConnectAccept(connection, side.vi), VIP_SUCCESS);
          peer.Send(side.peer.MaxTransferSize);
          peer.Await("seen");
          ASSERT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
        }
      },
      [](Peer& peer) {
        Side side;
        std::atomic<bool> done{false};
        std::thread setter([&] {
          for (VIP_ULONG size = 4096; !done; size = 4096 + 65536 - size) {
            VIP_VI_ATTRIBUTES attributes = Attributes(VIP_SERVICE_RELIABLE_DELIVERY, size);
            const VIP_RETURN result = ::VipSetViAttributes(side.vi, &attributes);
            EXPECT_TRUE(result == VIP_SUCCESS || result == VIP_INVALID_STATE) << result;
          }
        });
        for (int round = 0; round < kRounds; ++round) {
          ASSERT_EQ(side.Connect(), VIP_SUCCESS);
          EXPECT_EQ(peer.Receive<VIP_ULONG>(), side.QueryVi().MaxTransferSize);
          peer.Tell("seen");
          ASSERT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
        }
        done = true;
        setter.join();
      });
}

TEST(VipQueryVi, TellsWhichQueueIsEmpty) {
  RunAlone([] {
    Side side;
    const auto empty = [&](VIP_BOOLEAN sends, VIP_BOOLEAN receives) {
      VIP_VI_STATE state;
      VIP_VI_ATTRIBUTES attributes;
      VIP_BOOLEAN sends_empty = 7, receives_empty = 7;
      EXPECT_EQ(::VipQueryVi(side.vi, &state, &attributes, &sends_empty, &receives_empty),
                VIP_SUCCESS);
      EXPECT_EQ(sends_empty, sends);
      EXPECT_EQ(receives_empty, receives);
    };
    empty(VIP_TRUE, VIP_TRUE);
    side.Receive(0);
    empty(VIP_TRUE, VIP_FALSE);
    // The VI is not connected: the send completes at once, and is queued until it is taken.
    ASSERT_EQ(side.PostSend(side.memory.Fill(1, 0, 8)), VIP_SUCCESS);
    empty(VIP_FALSE, VIP_FALSE);
    ASSERT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    VIP_DESCRIPTOR* done = nullptr;
    EXPECT_EQ(VipRecvDone(side.vi, &done), VIP_DESCRIPTOR_ERROR);
    empty(VIP_FALSE, VIP_TRUE);
    EXPECT_EQ(VipSendDone(side.vi, &done), VIP_DESCRIPTOR_ERROR);
    empty(VIP_TRUE, VIP_TRUE);
  });
}

TEST(VipDestroyPtag, C48_NotWhileItIsUsed) {
  RunAlone([] {
    Nic nic;
    VIP_VI_ATTRIBUTES attributes = Attributes();
    ASSERT_EQ(VipCreatePtag(nic.handle, &attributes.Ptag), VIP_SUCCESS);
    VIP_VI_HANDLE vi;
    ASSERT_EQ(VipCreateVi(nic.handle, &attributes, nullptr, nullptr, &vi), VIP_SUCCESS);
    EXPECT_EQ(::VipDestroyPtag(nic.handle, attributes.Ptag), VIP_ERROR_RESOURCE);
    ASSERT_EQ(VipDestroyVi(vi), VIP_SUCCESS);
    char bytes[100];
    VIP_MEM_ATTRIBUTES memory = {attributes.Ptag, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE region;
    ASSERT_EQ(VipRegisterMem(nic.handle, bytes, sizeof bytes, &memory, &region), VIP_SUCCESS);
    EXPECT_EQ(::VipDestroyPtag(nic.handle, attributes.Ptag), VIP_ERROR_RESOURCE);
    ASSERT_EQ(VipDeregisterMem(nic.handle, bytes, region), VIP_SUCCESS);
    EXPECT_EQ(::VipDestroyPtag(nic.handle, attributes.Ptag), VIP_SUCCESS);
    EXPECT_EQ(::VipDestroyPtag(nic.handle, attributes.Ptag), VIP_INVALID_PARAMETER);
    EXPECT_EQ(::VipDestroyPtag(nic.handle, nullptr), VIP_INVALID_PARAMETER);
  });
}

TEST(VipDestroyCQ, C49_NotWhileAQueueIsAttached) {
  RunAlone([] {
    Nic nic;
    VIP_CQ_HANDLE cq;
    ASSERT_EQ(VipCreateCQ(nic.handle, 16, &cq), VIP_SUCCESS);
    Memory memory(nic);
    VIP_VI_ATTRIBUTES attributes = Attributes();
    VIP_VI_HANDLE vi;
    ASSERT_EQ(VipCreateVi(nic.handle, &attributes, cq, cq, &vi), VIP_SUCCESS);
    EXPECT_EQ(::VipDestroyCQ(cq), VIP_ERROR_RESOURCE);
    // One entry is taken; the descriptor of the other entry is taken without it.
    VIP_VI_HANDLE entry_vi;
    VIP_BOOLEAN receive;
    ASSERT_EQ(VipPostSend(vi, memory.Fill(0, 0, 8), memory.handle()), VIP_SUCCESS);
    ASSERT_EQ(VipPostSend(vi, memory.Fill(1, 0, 8), memory.handle()), VIP_SUCCESS);
    ASSERT_EQ(VipCQWait(cq, 10000, &entry_vi, &receive), VIP_SUCCESS);
    VIP_DESCRIPTOR* done;
    while (VipSendDone(vi, &done) != VIP_DESCRIPTOR_ERROR || done != nullptr) {
    }
    ASSERT_EQ(VipDestroyVi(vi), VIP_SUCCESS);
    EXPECT_EQ(::VipDestroyCQ(cq), VIP_SUCCESS);
    EXPECT_EQ(::VipDestroyCQ(cq), VIP_INVALID_PARAMETER);
  });
}

TEST(VipDestroyCQ, C49_EitherQueueAlone) {
  RunAlone([] {
    Nic nic;
    VIP_CQ_HANDLE cq;
    ASSERT_EQ(VipCreateCQ(nic.handle, 16, &cq), VIP_SUCCESS);
    VIP_VI_ATTRIBUTES attributes = Attributes();
    for (const bool receives : {false, true}) {
      VIP_VI_HANDLE vi;
      ASSERT_EQ(VipCreateVi(nic.handle, &attributes, receives ? nullptr : cq,
                            receives ? cq : nullptr, &vi),
                VIP_SUCCESS);
      EXPECT_EQ(::VipDestroyCQ(cq), VIP_ERROR_RESOURCE) << receives;
      ASSERT_EQ(VipDestroyVi(vi), VIP_SUCCESS);
    }
    EXPECT_EQ(::VipDestroyCQ(cq), VIP_SUCCESS);
  });
}

TEST(VipCloseNic, C50_TakesEverythingAlong) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        peer.Tell("connected");
        while (side.State() == VIP_STATE_CONNECTED) sched_yield();
        EXPECT_EQ(side.State(), VIP_STATE_ERROR) << "the peer's close is a disconnect";
      },
      [](Peer& peer) {
        Side side;
        VIP_CQ_HANDLE cq;
        ASSERT_EQ(VipCreateCQ(side.nic.handle, 16, &cq), VIP_SUCCESS);
        VIP_PROTECTION_HANDLE tag;
        ASSERT_EQ(VipCreatePtag(side.nic.handle, &tag), VIP_SUCCESS);
        side.Receive(0);
        side.Connect();
        peer.Await("connected");
        EXPECT_EQ(::VipCloseNic(side.nic.handle), VIP_SUCCESS);
        EXPECT_EQ(::VipCloseNic(side.nic.handle), VIP_INVALID_PARAMETER);
        EXPECT_EQ(VipDisconnect(side.vi), VIP_INVALID_PARAMETER);
        EXPECT_EQ(VipDestroyCQ(cq), VIP_INVALID_PARAMETER);
        VIP_DESCRIPTOR* done;
        EXPECT_EQ(VipRecvDone(side.vi, &done), VIP_INVALID_PARAMETER);
        EXPECT_EQ(VipPostSend(side.vi, side.memory.descriptor(0), side.memory.handle()),
                  VIP_INVALID_PARAMETER);
        peer.AwaitEnd();
      });
}

TEST(VipCloseNic, EndsThoseWhoWait) {
  RunAlone([] {
    Side side;
    VIP_CQ_HANDLE cq;
    ASSERT_EQ(VipCreateCQ(side.nic.handle, 16, &cq), VIP_SUCCESS);
    VIP_VI_ATTRIBUTES attributes = Attributes();
    VIP_VI_HANDLE with_cq;
    ASSERT_EQ(VipCreateVi(side.nic.handle, &attributes, nullptr, cq, &with_cq), VIP_SUCCESS);
    side.Receive(0);
    ASSERT_EQ(VipPostRecv(with_cq, side.memory.Fill(1, 0, 8), side.memory.handle()), VIP_SUCCESS);
    VIP_RETURN results[3] = {};
    Sleeper own([&] {
      VIP_DESCRIPTOR* done;
      results[0] = VipRecvWait(side.vi, VIP_INFINITE, &done);
    });
    Sleeper beside_cq([&] {
      VIP_DESCRIPTOR* done;
      results[1] = VipRecvWait(with_cq, VIP_INFINITE, &done);
    });
    Sleeper on_cq([&] {
      VIP_VI_HANDLE vi;
      VIP_BOOLEAN receive;
      results[2] = VipCQWait(cq, VIP_INFINITE, &vi, &receive);
    });
    for (Sleeper* waiter : {&own, &beside_cq, &on_cq}) waiter->AwaitAsleep();
    EXPECT_EQ(::VipCloseNic(side.nic.handle), VIP_SUCCESS);
    for (Sleeper* waiter : {&own, &beside_cq, &on_cq}) waiter->Join();
    for (VIP_RETURN result : results) EXPECT_EQ(result, VIP_INVALID_PARAMETER);
  });
}

// A wait returns only descriptors whose status is written, and none that the close flushes.
TEST(VipCloseNic, EndsThoseWhoWaitForMessages) {
  constexpr int kRounds = 20, kMessages = 4;
  RunPair(
      [](Peer& peer) {
        for (int round = 0; round < kRounds; ++round) {
          Side side;
          for (int i = 0; i < 2 * kMessages; ++i) side.Receive(i, 64);
          side.Accept();
          peer.Tell("accepted");
          std::atomic<int> received{0};
          Sleeper waiter([&] {
            VIP_DESCRIPTOR* done;
            VIP_RETURN result;
            while ((result = VipRecvWait(side.vi, VIP_INFINITE, &done)) == VIP_SUCCESS) {
              EXPECT_TRUE(done->CS.Status & VIP_STATUS_DONE) << round;
              ++received;
            }
            EXPECT_EQ(result, VIP_INVALID_PARAMETER) << round;
            EXPECT_EQ(done, nullptr) << round;
          });
          while (received < kMessages) sched_yield();
          waiter.AwaitAsleep();
          EXPECT_EQ(::VipCloseNic(side.nic.handle), VIP_SUCCESS);
          waiter.Join();
        }
      },
      [](Peer& peer) {
        for (int round = 0; round < kRounds; ++round) {
          Side side;
          side.Connect();
          peer.Await("accepted");
          for (int i = 0; i < kMessages; ++i) side.SendText(i, "text");
          while (side.State() == VIP_STATE_CONNECTED) sched_yield();
        }
      });
}

TEST(VipRegisterMem, C51_TheSameBlockTwice) {
  RunPair(
      [](Peer& peer) {
        Side side;
        VIP_MEM_HANDLE block = 0, again = 0;
        VIP_MEM_ATTRIBUTES none = {};
        for (VIP_MEM_HANDLE* handle : {&block, &again}) {
          ASSERT_EQ(::VipRegisterMem(side.nic.handle, side.memory.data(), 4096, &none, handle),
                    VIP_SUCCESS);
          EXPECT_GE(*handle, 1u);
          EXPECT_LE(*handle, 0x7FFFFFFFu);
          EXPECT_NE(*handle, side.memory.handle());
        }
        EXPECT_NE(again, block);
        VIP_DESCRIPTOR* first = side.memory.Fill(0, 0, 1024);
        first->DS[0].Local.Handle = block;
        ASSERT_EQ(side.PostReceive(first), VIP_SUCCESS);
        VIP_DESCRIPTOR* second = side.memory.Fill(1, 2048, 1024);
        second->DS[0].Local.Handle = again;
        ASSERT_EQ(side.PostReceive(second), VIP_SUCCESS);
        side.Accept();
        EXPECT_EQ(side.TextOf(side.NextReceive()), "one");
        EXPECT_EQ(side.TextOf(side.NextReceive()), "two");
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        side.SendText(0, "one");
        side.SendText(1, "two");
        peer.Await("done");
      });
}

TEST(VipDeregisterMem, C52_NeedsTheAddress) {
  RunAlone([] {
    Nic nic;
    char bytes[100];
    VIP_MEM_HANDLE handle;
    ASSERT_EQ(VipRegisterMem(nic.handle, bytes, sizeof bytes, nullptr, &handle), VIP_SUCCESS);
    EXPECT_EQ(::VipDeregisterMem(nic.handle, bytes + 1, handle), VIP_INVALID_PARAMETER);
    EXPECT_EQ(::VipDeregisterMem(nic.handle, bytes, handle + 1), VIP_INVALID_PARAMETER);
    EXPECT_EQ(::VipDeregisterMem(nic.handle, bytes, handle), VIP_SUCCESS);
    EXPECT_EQ(::VipDeregisterMem(nic.handle, bytes, handle), VIP_INVALID_PARAMETER);
  });
}

TEST(VipRegisterMem, C53_NoAttributesAreTheDefaultOnes) {
  RunAlone([] {
    Nic nic;
    char bytes[100];
    VIP_MEM_HANDLE handle;
    ASSERT_EQ(::VipRegisterMem(nic.handle, bytes, sizeof bytes, nullptr, &handle), VIP_SUCCESS);
    VIP_MEM_ATTRIBUTES attributes;
    ASSERT_EQ(VipQueryMem(nic.handle, bytes, handle, &attributes), VIP_SUCCESS);
    EXPECT_EQ(attributes.Ptag, nullptr);
    EXPECT_EQ(attributes.EnableRdmaWrite, VIP_FALSE);
    EXPECT_EQ(attributes.EnableRdmaRead, VIP_FALSE);
  });
}

TEST(VipRegisterMem, WhatCannotBeRegistered) {
  RunAlone([] {
    Nic nic;
    char bytes[100];
    VIP_MEM_HANDLE handle;
    VIP_MEM_ATTRIBUTES attributes = {&nic, VIP_FALSE, VIP_FALSE};
    EXPECT_EQ(::VipRegisterMem(nic.handle, bytes, sizeof bytes, &attributes, &handle),
              VIP_INVALID_PTAG);
    EXPECT_EQ(::VipRegisterMem(nic.handle, nullptr, 1, nullptr, &handle), VIP_INVALID_PARAMETER);
    EXPECT_EQ(::VipRegisterMem(nic.handle, bytes, 0, nullptr, &handle), VIP_INVALID_PARAMETER);
    EXPECT_EQ(::VipRegisterMem(nic.handle, bytes, 1, nullptr, nullptr), VIP_INVALID_PARAMETER);
    EXPECT_NE(::VipRegisterMem(nic.handle, bytes, VIP_INFINITE, nullptr, &handle), VIP_SUCCESS);
    EXPECT_EQ(::VipRegisterMem(nic.handle, bytes, nic.attributes.MaxRegisterBlockBytes + 1, nullptr,
                               &handle),
              VIP_ERROR_RESOURCE);
    EXPECT_EQ(::VipRegisterMem(nic.handle, kNoMemory, 4096, nullptr, &handle),
              VIP_INVALID_PARAMETER);
  });
}

TEST(VipRegisterMem, WhatIsMappedBehindTheEndOfItsFileCannotBe) {
  RunAlone([] {
    Nic nic;
    const ShortFile file;
    if (!file.IsTold()) return;
    VIP_MEM_HANDLE handle;
    EXPECT_EQ(::VipRegisterMem(nic.handle, file.data(), 2 * file.page(), nullptr, &handle),
              VIP_INVALID_PARAMETER);
    ASSERT_EQ(::VipRegisterMem(nic.handle, file.data(), file.page(), nullptr, &handle),
              VIP_SUCCESS);
    EXPECT_EQ(::VipDeregisterMem(nic.handle, file.data(), handle), VIP_SUCCESS);
  });
}

// As a file server maps its files.
TEST(VipRegisterMem, WhatIsOnlyReadCanBeSent) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Receive(0);
        side.Accept();
        EXPECT_EQ(side.TextOf(side.NextReceive()).substr(1), "ELF");
        peer.AwaitEnd();
      },
      [](Peer&) {
        Side side;
        constexpr VIP_ULONG kBytes = 4096;
        const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        void* const bytes = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, file, 0);
        close(file);
        ASSERT_NE(bytes, MAP_FAILED);
        VIP_MEM_HANDLE handle;
        VIP_MEM_ATTRIBUTES attributes = {nullptr, VIP_TRUE, VIP_FALSE};
        EXPECT_EQ(::VipRegisterMem(side.nic.handle, bytes, kBytes, &attributes, &handle),
                  VIP_INVALID_PARAMETER);
        ASSERT_EQ(::VipRegisterMem(side.nic.handle, bytes, kBytes, nullptr, &handle), VIP_SUCCESS);
        EXPECT_EQ(VipSetMemAttributes(side.nic.handle, bytes, handle, &attributes),
                  VIP_INVALID_PARAMETER);
        side.Connect();
        VIP_DESCRIPTOR* const d = side.memory.Fill(0, 0, 4);
        d->DS[0].Local.Data.Address = bytes;
        d->DS[0].Local.Handle = handle;
        ASSERT_EQ(side.PostSend(d), VIP_SUCCESS);
        EXPECT_EQ(side.NextSend(), d);
        EXPECT_EQ(d->CS.Status & VIP_STATUS_ERROR_MASK, 0u);
        EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
        EXPECT_EQ(::VipDeregisterMem(side.nic.handle, bytes, handle), VIP_SUCCESS);
        munmap(bytes, kBytes);
      });
}

// A descriptor for a VI of tag `vi_tag`, whose buffer has tag `memory_tag`.
VIP_DESCRIPTOR* FillWithTags(Side& side, VIP_PROTECTION_HANDLE vi_tag,
                             VIP_PROTECTION_HANDLE memory_tag) {
  VIP_VI_ATTRIBUTES attributes = Attributes();
  attributes.Ptag = vi_tag;
  EXPECT_EQ(VipSetViAttributes(side.vi, &attributes), VIP_SUCCESS);
  VIP_MEM_ATTRIBUTES tagged = {memory_tag, VIP_FALSE, VIP_FALSE};
  VIP_MEM_HANDLE handle;
  EXPECT_EQ(VipRegisterMem(side.nic.handle, side.memory.data(), 64, &tagged, &handle), VIP_SUCCESS);
  VIP_DESCRIPTOR* d = side.memory.Fill(0, 0, 8);
  d->DS[0].Local.Handle = handle;
  return d;
}

// The error bits of a message that is sent with such a descriptor.
VIP_UINT32 StatusWithTags(Side& side, VIP_PROTECTION_HANDLE vi_tag,
                          VIP_PROTECTION_HANDLE memory_tag) {
  VIP_DESCRIPTOR* d = FillWithTags(side, vi_tag, memory_tag);
  side.Connect();
  EXPECT_EQ(side.PostSend(d), VIP_SUCCESS);
  side.NextSend();
  EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
  return d->CS.Status & VIP_STATUS_ERROR_MASK;
}

void ServeOneMessage(Peer& peer) {
  Side side;
  side.Receive(0);
  side.Accept();
  peer.AwaitEnd();
}

TEST(Tags, C54_AViWithoutTagUsesAnyMemory) {
  RunPair(&ServeOneMessage, [](Peer&) {
    Side side;
    VIP_PROTECTION_HANDLE tag;
    ASSERT_EQ(VipCreatePtag(side.nic.handle, &tag), VIP_SUCCESS);
    EXPECT_EQ(StatusWithTags(side, nullptr, tag), 0u);
  });
}

TEST(Tags, C54_EqualTagsMatch) {
  RunPair(&ServeOneMessage, [](Peer&) {
    Side side;
    VIP_PROTECTION_HANDLE tag;
    ASSERT_EQ(VipCreatePtag(side.nic.handle, &tag), VIP_SUCCESS);
    EXPECT_EQ(StatusWithTags(side, tag, tag), 0u);
  });
}

TEST(Tags, C55_AnotherTagIsAProtectionError) {
  RunPair(&ServeOneMessage, [](Peer&) {
    Side side;
    VIP_PROTECTION_HANDLE a, b;
    ASSERT_EQ(VipCreatePtag(side.nic.handle, &a), VIP_SUCCESS);
    ASSERT_EQ(VipCreatePtag(side.nic.handle, &b), VIP_SUCCESS);
    EXPECT_EQ(StatusWithTags(side, a, b), static_cast<VIP_UINT32>(VIP_STATUS_PROTECTION_ERROR));
  });
}

// The error bits of such a receive that takes a message.
VIP_UINT32 ReceiveStatusWithTags(Peer& peer, Side& side, VIP_PROTECTION_HANDLE vi_tag,
                                 VIP_PROTECTION_HANDLE memory_tag) {
  VIP_DESCRIPTOR* d = FillWithTags(side, vi_tag, memory_tag);
  EXPECT_EQ(side.PostReceive(d), VIP_SUCCESS);
  side.Accept();
  side.NextReceive();
  peer.Tell("received");
  return d->CS.Status & VIP_STATUS_ERROR_MASK;
}

void SendOneMessage(Peer& peer) {
  Side side;
  side.Connect();
  EXPECT_EQ(side.PostSend(side.memory.Fill(0, 0, 8)), VIP_SUCCESS);
  EXPECT_NE(side.NextSend(), nullptr);
  peer.Await("received");
}

TEST(Tags, C54_OfReceives) {
  RunPair(
      [](Peer& peer) {
        Side side;
        VIP_PROTECTION_HANDLE tag;
        ASSERT_EQ(VipCreatePtag(side.nic.handle, &tag), VIP_SUCCESS);
        EXPECT_EQ(ReceiveStatusWithTags(peer, side, nullptr, tag), 0u);
      },
      &SendOneMessage);
}

TEST(Tags, C55_OfReceives) {
  RunPair(
      [](Peer& peer) {
        Side side;
        VIP_PROTECTION_HANDLE a, b;
        ASSERT_EQ(VipCreatePtag(side.nic.handle, &a), VIP_SUCCESS);
        ASSERT_EQ(VipCreatePtag(side.nic.handle, &b), VIP_SUCCESS);
        EXPECT_EQ(ReceiveStatusWithTags(peer, side, a, b),
                  static_cast<VIP_UINT32>(VIP_STATUS_PROTECTION_ERROR));
      },
      &SendOneMessage);
}

TEST(VipSetMemAttributes, C56_QueryShowsWhatSetStored) {
  RunAlone([] {
    Nic nic;
    char bytes[100];
    VIP_MEM_HANDLE handle;
    ASSERT_EQ(VipRegisterMem(nic.handle, bytes, sizeof bytes, nullptr, &handle), VIP_SUCCESS);
    VIP_MEM_ATTRIBUTES wanted = {nullptr, VIP_TRUE, VIP_TRUE};
    ASSERT_EQ(VipCreatePtag(nic.handle, &wanted.Ptag), VIP_SUCCESS);
    EXPECT_EQ(::VipSetMemAttributes(nic.handle, bytes, handle, &wanted), VIP_SUCCESS);
    VIP_MEM_ATTRIBUTES shown;
    ASSERT_EQ(::VipQueryMem(nic.handle, bytes, handle, &shown), VIP_SUCCESS);
    EXPECT_EQ(shown.Ptag, wanted.Ptag);
    EXPECT_EQ(shown.EnableRdmaWrite, VIP_TRUE);
    EXPECT_EQ(shown.EnableRdmaRead, VIP_TRUE);
    VIP_MEM_ATTRIBUTES wrong = {&nic, VIP_FALSE, VIP_FALSE};
    EXPECT_EQ(::VipSetMemAttributes(nic.handle, bytes, handle, &wrong), VIP_INVALID_PTAG);
    ASSERT_EQ(::VipQueryMem(nic.handle, bytes, handle, &shown), VIP_SUCCESS);
    EXPECT_EQ(shown.Ptag, wanted.Ptag) << "a refused change changes nothing";
    EXPECT_EQ(::VipSetMemAttributes(nic.handle, bytes + 1, handle, &wanted), VIP_INVALID_PARAMETER);
    EXPECT_EQ(::VipQueryMem(nic.handle, bytes, 0, &shown), VIP_INVALID_PARAMETER);
  });
}

}  // namespace
}  // namespace viaduct::tests
