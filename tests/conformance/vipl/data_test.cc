// Descriptors and messages: VIPL checklist C57 to C79, except the effect of reliability levels on a
// connection (reliability_test.cc).
#include <sched.h>
#include <vipl.h>

#include <cstring>
#include <functional>
#include <memory>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/sleeper.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

constexpr VIP_UINT32 kDone = VIP_STATUS_DONE;
constexpr VIP_UINT32 kOperationAndErrors =
    VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK | VIP_STATUS_OP_MASK | VIP_STATUS_IMMEDIATE;

TEST(Descriptor, C57_Layout) {
  EXPECT_EQ(sizeof(VIP_DESCRIPTOR), 64u);
  EXPECT_EQ(offsetof(VIP_CONTROL_SEGMENT, SegCount), 12u);
  EXPECT_EQ(offsetof(VIP_CONTROL_SEGMENT, ImmediateData), 20u);
  EXPECT_EQ(offsetof(VIP_CONTROL_SEGMENT, Status), 28u);
}

TEST(Descriptor, C58_BothDialectsNameTheSameBytes) {
  VIP_DESCRIPTOR d = {};
  d.CS.Length = 7;
  EXPECT_EQ(d.Control.Length, 7u);
  d.DS[1].Local.Handle = 9;
  EXPECT_EQ(d.Data[1].Handle, 9u);
}

TEST(Receive, C59_PostedBeforeTheConnectionInOrder) {
  RunPair(
      [](Peer& peer) {
        Side side;
        for (int n = 0; n < 10; ++n) side.Receive(n);
        side.Accept();
        for (int n = 0; n < 10; ++n) {
          VIP_DESCRIPTOR* done = side.NextReceive();
          ASSERT_EQ(done, side.memory.descriptor(n));
          EXPECT_EQ(side.TextOf(done), "message " + std::to_string(n));
        }
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        for (int n = 0; n < 10; ++n) side.SendText(n, "message " + std::to_string(n));
        peer.Await("done");
      });
}

TEST(Done, C60_C61_C62_EmptyPendingAndTimeOut) {
  RunAlone([] {
    Side side;
    VIP_DESCRIPTOR* done = side.memory.descriptor(0);
    EXPECT_EQ(VipSendDone(side.vi, &done), VIP_DESCRIPTOR_ERROR);
    EXPECT_EQ(done, nullptr);
    done = side.memory.descriptor(0);
    EXPECT_EQ(VipRecvDone(side.vi, &done), VIP_DESCRIPTOR_ERROR);
    EXPECT_EQ(done, nullptr);
    EXPECT_EQ(VipRecvWait(side.vi, VIP_INFINITE, &done), VIP_DESCRIPTOR_ERROR);
    EXPECT_EQ(done, nullptr);
    side.Receive(0);
    done = side.memory.descriptor(0);
    EXPECT_EQ(VipRecvDone(side.vi, &done), VIP_NOT_DONE);
    EXPECT_EQ(done, nullptr);
    const int64_t begin = NowMilliseconds();
    EXPECT_EQ(VipRecvWait(side.vi, 50, &done), VIP_TIMEOUT);
    EXPECT_EQ(done, nullptr);
    EXPECT_GE(NowMilliseconds() - begin, 50);
    EXPECT_LT(NowMilliseconds() - begin, 5000);
  });
}

TEST(Completion, C63_C64_C65_WhatBothSidesSee) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Receive(0, 100);
        side.Receive(1, 100);
        side.memory.descriptor(1)->CS.ImmediateData = 77;
        side.Accept();
        VIP_DESCRIPTOR* done = side.NextReceive();
        EXPECT_EQ(done->CS.Status & kOperationAndErrors,
                  kDone | VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE);
        EXPECT_EQ(done->CS.Length, 30u);
        EXPECT_EQ(done->CS.ImmediateData, 0xfeedu);
        done = side.NextReceive();
        EXPECT_EQ(done->CS.Status & kOperationAndErrors, kDone | VIP_STATUS_OP_RECEIVE);
        EXPECT_EQ(done->CS.Length, 40u);
        EXPECT_EQ(done->CS.ImmediateData, 77u) << "left alone";
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        VIP_DESCRIPTOR* d = side.memory.Fill(0, 0, 30, VIP_CONTROL_IMMEDIATE, 0xfeed);
        ASSERT_EQ(side.PostSend(d), VIP_SUCCESS);
        EXPECT_EQ(side.NextSend(), d);
        EXPECT_EQ(d->CS.Status & kOperationAndErrors, kDone | VIP_STATUS_OP_SEND);
        EXPECT_EQ(d->CS.Length, 30u);
        EXPECT_EQ(d->CS.ImmediateData, 0xfeedu);
        EXPECT_EQ(d->CS.Control, VIP_CONTROL_IMMEDIATE);
        EXPECT_EQ(d->CS.SegCount, 1);
        EXPECT_EQ(d->DS[0].Local.Length, 30u);
        ASSERT_EQ(side.PostSend(side.memory.Fill(1, 0, 40)), VIP_SUCCESS);
        side.NextSend();
        peer.Await("done");
      });
}

// Madeleine II returns its credits so, and looks at no Status. Writes stay what they are.
TEST(Completion, AnUnmarkedSendCarriesImmediateDataIfToldTo) {
  setenv("VIADUCT_IMMEDIATE", "always", 1);
  RunPair(
      [](Peer& peer) {
        Side side;
        for (int i : {0, 1}) side.Receive(i, 100);
        side.Accept();
        EXPECT_EQ(side.NextReceive()->CS.ImmediateData, 30u);
        EXPECT_EQ(side.NextReceive()->CS.ImmediateData, 0u);
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        for (int i : {0, 1}) {
          VIP_DESCRIPTOR* d = side.memory.Fill(i, 0, 4);
          d->CS.ImmediateData = i == 0 ? 30 : 0;
          ASSERT_EQ(side.PostSend(d), VIP_SUCCESS);
          EXPECT_EQ(side.NextSend(), d);
          EXPECT_EQ(d->CS.Control, VIP_CONTROL_OP_SENDRECV);
        }
        peer.Await("done");
      });
  unsetenv("VIADUCT_IMMEDIATE");
}

TEST(Completion, C66_NoSegmentsWithImmediateData) {
  RunPair(
      [](Peer& peer) {
        Side side;
        ASSERT_EQ(side.PostReceive(side.memory.Fill(0, 0, 0)), VIP_SUCCESS);
        side.Accept();
        VIP_DESCRIPTOR* done = side.NextReceive();
        EXPECT_EQ(done->CS.Status & kOperationAndErrors,
                  kDone | VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE);
        EXPECT_EQ(done->CS.Length, 0u);
        EXPECT_EQ(done->CS.ImmediateData, 5u);
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        ASSERT_EQ(side.PostSend(side.memory.Fill(0, 0, 0, VIP_CONTROL_IMMEDIATE, 5)), VIP_SUCCESS);
        EXPECT_EQ(side.NextSend()->CS.Status & VIP_STATUS_ERROR_MASK, 0u);
        peer.Await("done");
      });
}

constexpr VIP_UINT32 kScattered = 6132;  // bytes of kSegments segments of 0 to 49

char ByteAt(VIP_UINT32 at) { return static_cast<char>(at * 13); }

// Fills in as many segments as a descriptor may have, of unequal length, from the memory's end to
// its beginning and with gaps between them: a message of ByteAt.
void FillSegments(const Memory& memory, VIP_DESCRIPTOR* d) {
  d->CS.SegCount = Memory::kSegments;
  VIP_UINT32 at = 0;
  for (int i = 0; i < Memory::kSegments; ++i) {
    char* const bytes = memory.data() + (Memory::kSegments - 1 - i) * 64;
    d->DS[i].Local.Data.Address = bytes;
    d->DS[i].Local.Handle = memory.handle();
    d->DS[i].Local.Length = static_cast<VIP_UINT32>(i * 7 % 50);
    for (VIP_UINT32 k = 0; k < d->DS[i].Local.Length; ++k) bytes[k] = ByteAt(at++);
  }
  d->CS.Length = at;
}

TEST(Segments, C67_ScatterAndGatherKeepTheOrder) {
  RunPair(
      [](Peer& peer) {
        Side side;
        VIP_DESCRIPTOR* d = side.memory.Fill(0, 0, 0);
        d->CS.SegCount = Memory::kSegments;
        for (int i = 0; i < Memory::kSegments; ++i) {
          d->DS[i].Local.Data.Address = side.memory.data() + (Memory::kSegments - 1 - i) * 64;
          d->DS[i].Local.Handle = side.memory.handle();
          d->DS[i].Local.Length = 31;
        }
        ASSERT_EQ(side.PostReceive(d), VIP_SUCCESS);
        side.Accept();
        ASSERT_EQ(side.NextReceive(), d);
        ASSERT_EQ(d->CS.Status & VIP_STATUS_ERROR_MASK, 0u);
        ASSERT_EQ(d->CS.Length, kScattered);
        for (VIP_UINT32 i = 0; i < kScattered; ++i) {
          const auto* segment = static_cast<const char*>(d->DS[i / 31].Local.Data.Address);
          ASSERT_EQ(segment[i % 31], ByteAt(i)) << i;
        }
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        FillSegments(side.memory, side.memory.Fill(0, 0, 0));
        ASSERT_EQ(side.memory.descriptor(0)->CS.Length, kScattered);
        ASSERT_EQ(side.PostSend(side.memory.descriptor(0)), VIP_SUCCESS);
        EXPECT_EQ(side.NextSend()->CS.Status & VIP_STATUS_ERROR_MASK, 0u);
        peer.Await("done");
      });
}

TEST(Segments, MessagesOfManySizesArriveWhole) {
  const VIP_UINT32 sizes[] = {1, 55, 56, 57, 4095, 4096, 4097, 8192, 65536, 300000, 1 << 20};
  const VIP_VI_ATTRIBUTES attributes = Attributes(VIP_SERVICE_RELIABLE_DELIVERY, 1 << 20);
  RunPair(
      [&](Peer& peer) {
        Side side(attributes);
        ASSERT_EQ(side.PostReceive(side.memory.Fill(0, 0, 1 << 20)), VIP_SUCCESS);
        side.Accept();
        for (VIP_UINT32 size : sizes) {
          VIP_DESCRIPTOR* done = side.NextReceive();
          ASSERT_NE(done, nullptr);
          ASSERT_EQ(done->CS.Status & VIP_STATUS_ERROR_MASK, 0u);
          ASSERT_EQ(done->CS.Length, size);
          for (VIP_UINT32 i = 0; i < size; ++i) {
            ASSERT_EQ(side.memory.data()[i], static_cast<char>(i * 17 + size)) << i;
          }
          ASSERT_EQ(side.PostReceive(side.memory.Fill(0, 0, 1 << 20)), VIP_SUCCESS);
          peer.Tell("next");
        }
      },
      [&](Peer& peer) {
        Side side(attributes);
        side.Connect();
        for (VIP_UINT32 size : sizes) {
          for (VIP_UINT32 i = 0; i < size; ++i) {
            side.memory.data()[i] = static_cast<char>(i * 17 + size);
          }
          ASSERT_EQ(side.PostSend(side.memory.Fill(0, 0, size)), VIP_SUCCESS);
          ASSERT_EQ(side.NextSend()->CS.Status & VIP_STATUS_ERROR_MASK, 0u);
          peer.Await("next");
        }
      });
}

TEST(Post, C70_MisalignedOrUnregisteredDescriptors) {
  RunAlone([] {
    Side side;
    ErrorLog errors(side.nic.handle);
    auto* misaligned =
        reinterpret_cast<VIP_DESCRIPTOR*>(reinterpret_cast<char*>(side.memory.descriptor(0)) + 32);
    alignas(64) VIP_DESCRIPTOR elsewhere = {};
    VIP_VI_ATTRIBUTES own_tag = side.QueryVi();
    VIP_MEM_ATTRIBUTES other_tag = {};
    ASSERT_EQ(VipCreatePtag(side.nic.handle, &own_tag.Ptag), VIP_SUCCESS);
    ASSERT_EQ(VipCreatePtag(side.nic.handle, &other_tag.Ptag), VIP_SUCCESS);
    ASSERT_EQ(VipSetViAttributes(side.vi, &own_tag), VIP_SUCCESS);
    const Memory others(side.nic, &other_tag);
    const struct {
      VIP_DESCRIPTOR* descriptor;
      VIP_MEM_HANDLE handle;
    } cases[] = {{misaligned, side.memory.handle()},
                 {side.memory.descriptor(0), 0},
                 {side.memory.descriptor(0), side.memory.handle() ^ 1},
                 {&elsewhere, side.memory.handle()},
                 {others.descriptor(0), others.handle()},
                 {reinterpret_cast<VIP_DESCRIPTOR*>(uintptr_t{64}), side.memory.handle()}};
    for (const auto& wrong : cases) {
      for (auto* post : {&VipPostSend, &VipPostRecv}) {
        EXPECT_EQ(post(side.vi, wrong.descriptor, wrong.handle), VIP_SUCCESS);
        VIP_ERROR_DESCRIPTOR error;
        ASSERT_TRUE(errors.Next(&error));
        EXPECT_EQ(error.ErrorCode, VIP_ERROR_POST_DESC);
        EXPECT_EQ(error.ResourceCode, VIP_RESOURCE_DESCRIPTOR);
        EXPECT_EQ(error.DescriptorPtr, wrong.descriptor);
        EXPECT_EQ(error.ViHandle, side.vi);
      }
    }
    VIP_DESCRIPTOR* done;
    EXPECT_EQ(VipSendDone(side.vi, &done), VIP_DESCRIPTOR_ERROR);
    EXPECT_EQ(done, nullptr) << "nothing was queued";
    EXPECT_EQ(VipPostSend(side.vi, nullptr, side.memory.handle()), VIP_INVALID_PARAMETER);
  });
}

struct alignas(4096) PageWithDescriptorAtItsEnd {
  char region[4096 - sizeof(VIP_DESCRIPTOR)] = {};
  VIP_DESCRIPTOR descriptor = {};
};

TEST(Post, C70_ADescriptorThatLeavesThePagesOfItsRegion) {
  RunAlone([] {
    Side side;
    ErrorLog errors(side.nic.handle);
    const auto page = std::make_unique<PageWithDescriptorAtItsEnd>();
    VIP_MEM_HANDLE handle = 0;
    ASSERT_EQ(VipRegisterMem(side.nic.handle, page->region, 64, nullptr, &handle), VIP_SUCCESS);
    page->descriptor.CS.SegCount = 3;
    for (auto* post : {&VipPostSend, &VipPostRecv}) {
      EXPECT_EQ(post(side.vi, &page->descriptor, handle), VIP_SUCCESS);
      VIP_ERROR_DESCRIPTOR error;
      ASSERT_TRUE(errors.Next(&error));
      EXPECT_EQ(error.ErrorCode, VIP_ERROR_POST_DESC);
    }
    VIP_DESCRIPTOR* done;
    EXPECT_EQ(VipSendDone(side.vi, &done), VIP_DESCRIPTOR_ERROR);
    EXPECT_EQ(done, nullptr) << "nothing was queued";
    page->descriptor.CS.SegCount = 2;
    ASSERT_EQ(VipPostRecv(side.vi, &page->descriptor, handle), VIP_SUCCESS);
    EXPECT_EQ(VipRecvDone(side.vi, &done), VIP_NOT_DONE);
  });
}

struct alignas(4096) PageWithRegion {
  alignas(64) VIP_DESCRIPTOR before = {};
  alignas(64) char region[64] = {};
  alignas(64) VIP_DESCRIPTOR behind = {};

  // Fills in a descriptor of this page for the region; only the region is registered.
  VIP_MEM_HANDLE Fill(Side& side, VIP_DESCRIPTOR* descriptor) {
    VIP_MEM_HANDLE handle = 0;
    EXPECT_EQ(VipRegisterMem(side.nic.handle, region, sizeof region, nullptr, &handle),
              VIP_SUCCESS);
    descriptor->CS.Length = sizeof region;
    descriptor->CS.SegCount = 1;
    descriptor->DS[0].Local.Data.Address = region;
    descriptor->DS[0].Local.Handle = handle;
    descriptor->DS[0].Local.Length = sizeof region;
    return handle;
  }
};

// ARMCI of 2001 posts descriptors in front of the region that it registered, in the same page.
TEST(Post, DescriptorsBesideTheirRegion) {
  RunPair(
      [](Peer&) {
        const auto page = std::make_unique<PageWithRegion>();
        Side side;
        const VIP_MEM_HANDLE handle = page->Fill(side, &page->behind);
        ASSERT_EQ(VipPostRecv(side.vi, &page->behind, handle), VIP_SUCCESS);
        side.Accept();
        ASSERT_EQ(side.NextReceive(), &page->behind);
        EXPECT_EQ(page->behind.CS.Status & VIP_STATUS_ERROR_MASK, 0u);
        EXPECT_STREQ(page->region, "in its page");
      },
      [](Peer&) {
        const auto page = std::make_unique<PageWithRegion>();
        Side side;
        side.Connect();
        strcpy(page->region, "in its page");
        const VIP_MEM_HANDLE handle = page->Fill(side, &page->before);
        ASSERT_EQ(VipPostSend(side.vi, &page->before, handle), VIP_SUCCESS);
        ASSERT_EQ(side.NextSend(), &page->before);
        EXPECT_EQ(page->before.CS.Status & VIP_STATUS_ERROR_MASK, 0u);
      });
}

TEST(Post, TooManyDescriptorsAreAnOverrun) {
  RunAlone([] {
    Side side;
    ErrorLog errors(side.nic.handle);
    for (VIP_ULONG i = 0; i < side.nic.attributes.MaxDescriptorsPerQueue; ++i) {
      ASSERT_EQ(side.PostReceive(side.memory.Fill(static_cast<int>(i % 64), 0, 8)), VIP_SUCCESS);
    }
    ASSERT_EQ(side.PostReceive(side.memory.Fill(0, 0, 8)), VIP_SUCCESS);
    VIP_ERROR_DESCRIPTOR error;
    ASSERT_TRUE(errors.Next(&error));
    EXPECT_EQ(error.ErrorCode, VIP_ERROR_VI_OVERRUN);
    EXPECT_EQ(error.ViHandle, side.vi);
    EXPECT_TRUE(errors.empty());
  });
}

// A completed descriptor keeps its place in the queue until the program takes it.
TEST(Post, WhatNobodyTakesIsAnOverrunToo) {
  RunAlone([] {
    Side side;
    ErrorLog errors(side.nic.handle);
    const auto post = [&] { return side.PostSend(side.memory.Fill(0, 0, 8)); };  // flushed at once
    for (VIP_ULONG i = 0; i < side.nic.attributes.MaxDescriptorsPerQueue; ++i) {
      ASSERT_EQ(post(), VIP_SUCCESS);
    }
    VIP_DESCRIPTOR* none;
    EXPECT_EQ(VipRecvDone(side.vi, &none), VIP_DESCRIPTOR_ERROR);  // the device holds none any more
    ASSERT_EQ(post(), VIP_SUCCESS);
    VIP_ERROR_DESCRIPTOR error;
    ASSERT_TRUE(errors.Next(&error));
    EXPECT_EQ(error.ErrorCode, VIP_ERROR_VI_OVERRUN);
    EXPECT_NE(side.NextSend(), nullptr);
    ASSERT_EQ(post(), VIP_SUCCESS);
    EXPECT_EQ(side.DrainFlushed(), static_cast<int>(side.nic.attributes.MaxDescriptorsPerQueue));
    EXPECT_TRUE(errors.empty());
  });
}

// A connected VI of each level posts one bad send; its status is `expected`, with `operation`.
void BadSend(const std::function<void(Side&, VIP_DESCRIPTOR*)>& spoil, VIP_UINT32 expected,
             VIP_UINT32 operation = VIP_STATUS_OP_SEND) {
  for (VIP_RELIABILITY_LEVEL level :
       {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION}) {
    RunPair(
        [&](Peer& peer) {
          Side side(Attributes(level));
          side.Receive(0);
          side.Accept();
          if (level == VIP_SERVICE_UNRELIABLE) {
            EXPECT_EQ(side.TextOf(side.NextReceive()), "after it");
          } else {
            EXPECT_NE(side.NextReceive()->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR, 0u);
          }
          peer.Tell("done");
        },
        [&](Peer& peer) {
          Side side(Attributes(level));
          side.Connect();
          VIP_DESCRIPTOR* d = side.memory.Fill(0, 0, 16);
          spoil(side, d);
          ASSERT_EQ(side.PostSend(d), VIP_SUCCESS);
          VIP_DESCRIPTOR* done = nullptr;
          EXPECT_EQ(VipSendWait(side.vi, 20000, &done), VIP_DESCRIPTOR_ERROR);
          ASSERT_EQ(done, d);
          EXPECT_EQ(d->CS.Status & (VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK), kDone | expected);
          EXPECT_EQ(d->CS.Status & VIP_STATUS_OP_MASK, operation);
          if (level == VIP_SERVICE_UNRELIABLE) {
            EXPECT_EQ(side.State(), VIP_STATE_CONNECTED);
            side.SendText(1, "after it");
          } else {
            while (side.State() == VIP_STATE_CONNECTED) sched_yield();
            EXPECT_EQ(side.State(), VIP_STATE_ERROR);
          }
          peer.Await("done");
        });
  }
}

TEST(Post, C71_AnUnregisteredBufferIsAProtectionError) {
  BadSend([](Side&, VIP_DESCRIPTOR* d) { d->DS[0].Local.Handle ^= 0x55; },
          VIP_STATUS_PROTECTION_ERROR);
}

TEST(Post, C71_ABufferBeyondItsRegionIsAProtectionError) {
  BadSend(
      [](Side& side, VIP_DESCRIPTOR* d) {
        d->DS[0].Local.Data.Address = side.memory.data() + (1 << 20) - 8;
      },
      VIP_STATUS_PROTECTION_ERROR);
}

// At reliable reception, the sender gets an error too.
TEST(Post, C71_AReceiveInAnUnregisteredBuffer) {
  for (VIP_RELIABILITY_LEVEL level :
       {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION}) {
    SCOPED_TRACE(level);
    RunPair(
        [=](Peer& peer) {
          Side side(Attributes(level));
          VIP_DESCRIPTOR* d = side.memory.Fill(0, 0, 16);
          d->DS[0].Local.Handle ^= 0x55;
          ASSERT_EQ(side.PostReceive(d), VIP_SUCCESS);
          side.Receive(1);
          side.Accept();
          ASSERT_EQ(side.NextReceive(), d);
          EXPECT_EQ(d->CS.Status, kDone | VIP_STATUS_OP_RECEIVE | VIP_STATUS_PROTECTION_ERROR);
          if (level == VIP_SERVICE_UNRELIABLE) {
            EXPECT_EQ(side.TextOf(side.NextReceive()), "after it");
          } else {
            EXPECT_NE(side.NextReceive()->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR, 0u);
            EXPECT_EQ(side.State(), VIP_STATE_ERROR);
          }
          peer.Tell("done");
        },
        [=](Peer& peer) {
          Side side(Attributes(level));
          side.Connect();
          ASSERT_EQ(side.PostSend(side.memory.Fill(0, 0, 16)), VIP_SUCCESS);
          VIP_DESCRIPTOR* done = side.NextSend();
          if (level == VIP_SERVICE_RELIABLE_RECEPTION) {
            EXPECT_EQ(done->CS.Status & VIP_STATUS_ERROR_MASK,
                      static_cast<VIP_UINT32>(VIP_STATUS_REMOTE_DESC_ERROR));
          }
          if (level == VIP_SERVICE_UNRELIABLE) side.SendText(1, "after it");
          peer.Await("done");
        });
  }
}

TEST(Post, C72_LengthsThatAreWrong) {
  BadSend([](Side&, VIP_DESCRIPTOR* d) { d->CS.Length = 17; }, VIP_STATUS_LENGTH_ERROR);
  BadSend(
      [](Side&, VIP_DESCRIPTOR* d) {
        d->DS[0].Local.Length = 65537;
        d->CS.Length = 65537;
      },
      VIP_STATUS_LENGTH_ERROR);
}

TEST(Post, C73_MalformedDescriptors) {
  BadSend([](Side&, VIP_DESCRIPTOR* d) { d->CS.Control = VIP_CONTROL_OP_RESERVED; },
          VIP_STATUS_FORMAT_ERROR);
  for (const int reserved : {0x10, 0x400, 0x8000}) {
    SCOPED_TRACE(reserved);
    BadSend([=](Side&, VIP_DESCRIPTOR* d) { d->CS.Control = static_cast<VIP_UINT16>(reserved); },
            VIP_STATUS_FORMAT_ERROR);
  }
}

TEST(Post, C73_AMalformedReceiveThatIsFlushedIsNoMoreThanThat) {
  RunAlone([] {
    Side side;
    VIP_DESCRIPTOR* d = side.memory.Fill(0, 0, 8, VIP_CONTROL_RESERVED);
    ASSERT_EQ(side.PostReceive(d), VIP_SUCCESS);
    EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    ASSERT_EQ(side.NextReceive(), d);
    EXPECT_EQ(d->CS.Status & (VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK),
              kDone | VIP_STATUS_DESC_FLUSHED_ERROR);
  });
}

// The status of such a descriptor names its operation, so that the program recognizes it.
TEST(Post, C72_C73_AMalformedRdmaIsAnRdma) {
  const auto rdma = [](VIP_UINT16 control, VIP_UINT16 segments, VIP_UINT32 length) {
    return [=](Side& side, VIP_DESCRIPTOR* d) {
      side.memory.FillRdma(0, control, 0, 16, 0x1000, side.memory.handle());
      d->CS.SegCount = segments;
      d->CS.Length = length;
    };
  };
  const VIP_UINT16 write = VIP_CONTROL_OP_RDMAWRITE, read = VIP_CONTROL_OP_RDMAREAD;
  BadSend(rdma(write, 2, 17), VIP_STATUS_LENGTH_ERROR, VIP_STATUS_OP_RDMA_WRITE);
  BadSend(
      [](Side& side, VIP_DESCRIPTOR*) {
        side.memory.FillRdma(0, VIP_CONTROL_OP_RDMAWRITE, 0, 65537, 0x1000, side.memory.handle());
      },
      VIP_STATUS_LENGTH_ERROR, VIP_STATUS_OP_RDMA_WRITE);
  BadSend(rdma(write | 0x10, 2, 16), VIP_STATUS_FORMAT_ERROR, VIP_STATUS_OP_RDMA_WRITE);
  BadSend(rdma(write, Memory::kSegments + 1, 16), VIP_STATUS_FORMAT_ERROR,
          VIP_STATUS_OP_RDMA_WRITE);
  BadSend(rdma(read | 0x10, 2, 16), VIP_STATUS_FORMAT_ERROR, VIP_STATUS_OP_RDMA_READ);
  BadSend(rdma(read, Memory::kSegments + 1, 16), VIP_STATUS_FORMAT_ERROR, VIP_STATUS_OP_RDMA_READ);
  BadSend(rdma(read | VIP_CONTROL_IMMEDIATE, 2, 16), VIP_STATUS_FORMAT_ERROR,
          VIP_STATUS_OP_RDMA_READ);
}

TEST(Post, C77_SendsOnAViThatIsNotConnectedAreFlushed) {
  RunAlone([] {
    for (VIP_RELIABILITY_LEVEL level :
         {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION}) {
      Side side((Attributes(level)));
      VIP_DESCRIPTOR* d = side.memory.Fill(0, 0, 16);
      ASSERT_EQ(side.PostSend(d), VIP_SUCCESS);
      VIP_DESCRIPTOR* done = nullptr;
      EXPECT_EQ(VipSendWait(side.vi, 20000, &done), VIP_DESCRIPTOR_ERROR);
      EXPECT_EQ(done, d);
      EXPECT_EQ(d->CS.Status & (VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK),
                kDone | VIP_STATUS_DESC_FLUSHED_ERROR);
      EXPECT_EQ(side.State(), VIP_STATE_IDLE);
    }
  });
}

TEST(Order, C78_AThousandMessages) {
  constexpr int kMessages = 1000;
  constexpr int kWindow = 30;
  RunPair(
      [](Peer& peer) {
        Side side;
        for (int n = 0; n < kWindow; ++n) side.Receive(n, 64);
        side.Accept();
        for (int i = 0; i < kMessages; ++i) {
          VIP_DESCRIPTOR* done = side.NextReceive();
          ASSERT_EQ(done, side.memory.descriptor(i % kWindow)) << i;
          ASSERT_EQ(side.TextOf(done), std::to_string(i));
          side.Receive(i % kWindow, 64);
          if (i % 10 == 9) peer.Tell("ten more");
        }
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        int completed = 0;
        for (int i = 0; i < kMessages; ++i) {
          if (i >= kWindow && i % 10 == 0) peer.Await("ten more");
          const int n = i % kWindow;
          if (i >= kWindow) {
            ASSERT_EQ(side.NextSend(), side.memory.descriptor(completed++ % kWindow));
          }
          const std::string text = std::to_string(i);
          std::memcpy(side.memory.data() + n * 64, text.data(), text.size());
          ASSERT_EQ(side.PostSend(side.memory.Fill(n, n * 64, text.size())), VIP_SUCCESS);
        }
        for (int i = kMessages - kWindow; i < kMessages; i += 10) peer.Await("ten more");
      });
}

// The queue first holds many descriptors at each possible position in its memory for them.
TEST(Order, C78_OneByOneAndThenManyAtOnce) {
  RunAlone([] {
    constexpr int kMany = Memory::kDescriptors;
    for (int singles = 0; singles < kMany; ++singles) {
      Side side;
      int posted = 0, taken = 0;
      const auto post = [&] {
        ASSERT_EQ(side.PostSend(side.memory.Fill(posted++ % kMany, 0, 0)), VIP_SUCCESS);
      };
      const auto take = [&] {
        VIP_DESCRIPTOR* done = nullptr;
        EXPECT_EQ(VipSendDone(side.vi, &done), VIP_DESCRIPTOR_ERROR);  // flushed
        ASSERT_EQ(done, side.memory.descriptor(taken++ % kMany)) << "behind " << singles;
      };
      while (posted < singles) {
        post();
        take();
      }
      for (int burst : {kMany / 2, kMany}) {
        for (int i = 0; i < burst; ++i) post();
        for (int i = 0; i < burst; ++i) take();
      }
    }
  });
}

TEST(Order, C79_NextIsTheProgramsOwnOutsideOfTheQueue) {
  RunPair(
      [](Peer& peer) {
        Side side;
        for (int n = 0; n < 4; ++n) {
          VIP_DESCRIPTOR* d = side.memory.Fill(n, n * 64, 64);
          d->CS.Next.Address = d;
          d->CS.NextHandle = 0xdead;
          ASSERT_EQ(side.PostReceive(d), VIP_SUCCESS);
        }
        side.Accept();
        for (int n = 0; n < 4; ++n) {
          VIP_DESCRIPTOR* done = side.NextReceive();
          ASSERT_EQ(done, side.memory.descriptor(n));
          done->CS.Next.Address = side.memory.descriptor(3);
        }
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        for (int n = 0; n < 4; ++n) side.SendText(n, "x");
        peer.Await("done");
      });
}

TEST(Status, ChangesInMemoryWithoutACall) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Receive(0);
        side.Accept();
        VIP_DESCRIPTOR* d = side.memory.descriptor(0);
        const int64_t end = NowMilliseconds() + 20000;
        while ((d->CS.Status & VIP_STATUS_DONE) == 0 && NowMilliseconds() < end) sched_yield();
        EXPECT_EQ(d->CS.Status & kOperationAndErrors, kDone | VIP_STATUS_OP_RECEIVE);
        EXPECT_EQ(side.TextOf(d), "watch me");
        VIP_DESCRIPTOR* done = nullptr;
        EXPECT_EQ(VipRecvDone(side.vi, &done), VIP_SUCCESS);
        EXPECT_EQ(done, d);
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        side.SendText(0, "watch me");
        peer.Await("done");
      });
}

// A program that polls Status may post a completed descriptor again unchanged.
TEST(Status, IsClearedByAPost) {
  RunAlone([] {
    Side side;
    VIP_DESCRIPTOR* d = side.memory.Fill(0, 0, 8);
    d->CS.Status = kDone | VIP_STATUS_OP_RECEIVE;
    ASSERT_EQ(side.PostReceive(d), VIP_SUCCESS);
    EXPECT_EQ(d->CS.Status, 0u);
  });
}

TEST(Done, C86_DoesNotWaitBehindAWait) {
  RunAlone([] {
    Side side;
    side.Receive(0);
    // This waits for ever, so a Done that had to wait for its turn would never return.
    Sleeper waiter([&] {
      VIP_DESCRIPTOR* done;
      EXPECT_EQ(VipRecvWait(side.vi, VIP_INFINITE, &done), VIP_DESCRIPTOR_ERROR);
    });
    waiter.AwaitAsleep();
    VIP_DESCRIPTOR* done;
    EXPECT_EQ(VipRecvDone(side.vi, &done), VIP_NOT_DONE);
    EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    waiter.Join();
  });
}

TEST(Done, C86_OfTwoWaitersForOneDescriptorTheOtherFindsTheQueueEmpty) {
  RunAlone([] {
    Side side;
    side.Receive(0);
    VIP_RETURN results[2];
    VIP_DESCRIPTOR* done[2];
    const auto wait = [&](int n) { results[n] = VipRecvWait(side.vi, 20000, &done[n]); };
    Sleeper first([&] { wait(0); }), second([&] { wait(1); });
    first.AwaitAsleep();
    second.AwaitAsleep();
    EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    first.Join();
    second.Join();
    for (const VIP_RETURN result : results) EXPECT_EQ(result, VIP_DESCRIPTOR_ERROR);
    EXPECT_NE(done[0] == nullptr, done[1] == nullptr);
  });
}

}  // namespace
}  // namespace viaduct::tests
