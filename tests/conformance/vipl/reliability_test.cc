// Errors at the reliability levels, and RDMA: VIPL checklist C68, C69, C73 to C76.
#include <vipl.h>

#include <atomic>
#include <cstring>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

constexpr VIP_RELIABILITY_LEVEL kLevels[] = {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
                                             VIP_SERVICE_RELIABLE_RECEPTION};
constexpr VIP_UINT32 kErrors = VIP_STATUS_ERROR_MASK;

void AwaitError(Side& side) {
  const int64_t end = NowMilliseconds() + 20000;
  while (side.State() == VIP_STATE_CONNECTED && NowMilliseconds() < end) sched_yield();
  EXPECT_EQ(side.State(), VIP_STATE_ERROR);
}

TEST(Reliability, C68_AMessageLongerThanTheReceive) {
  for (VIP_RELIABILITY_LEVEL level : kLevels) {
    RunPair(
        [level](Peer& peer) {
          Side side(Attributes(level));
          side.Receive(0, 8);
          side.Receive(1);
          side.Accept();
          VIP_DESCRIPTOR* done = side.NextReceive();
          ASSERT_EQ(done, side.memory.descriptor(0));
          EXPECT_EQ(done->CS.Status & kErrors, static_cast<VIP_UINT32>(VIP_STATUS_LENGTH_ERROR));
          if (level == VIP_SERVICE_UNRELIABLE) {
            EXPECT_EQ(side.TextOf(side.NextReceive()), "short");
            EXPECT_EQ(side.State(), VIP_STATE_CONNECTED);
            peer.Await("looked");
          } else {
            AwaitError(side);
            EXPECT_EQ(side.DrainFlushed(), 1);
          }
          peer.Tell("done");
        },
        [level](Peer& peer) {
          Side side(Attributes(level));
          side.Connect();
          ASSERT_EQ(side.PostSend(side.memory.Fill(0, 0, 100)), VIP_SUCCESS);
          VIP_DESCRIPTOR* done = side.NextSend();
          if (level == VIP_SERVICE_RELIABLE_RECEPTION) {
            EXPECT_EQ(done->CS.Status & kErrors,
                      static_cast<VIP_UINT32>(VIP_STATUS_REMOTE_DESC_ERROR));
          }
          if (level == VIP_SERVICE_UNRELIABLE) {
            side.SendText(1, "short");
            EXPECT_EQ(side.State(), VIP_STATE_CONNECTED);
            peer.Tell("looked");
          } else {
            AwaitError(side);
          }
          peer.Await("done");
        });
  }
}

TEST(Reliability, C69_AMessageWithoutAReceive) {
  for (VIP_RELIABILITY_LEVEL level : kLevels) {
    RunPair(
        [level](Peer& peer) {
          Side side(Attributes(level));
          ErrorLog errors(side.nic.handle);
          side.Accept();
          VIP_ERROR_DESCRIPTOR error;
          ASSERT_TRUE(errors.Next(&error));
          EXPECT_EQ(error.ViHandle, side.vi);
          if (level == VIP_SERVICE_UNRELIABLE) {
            EXPECT_EQ(error.ErrorCode, VIP_ERROR_RECVQ_EMPTY);
            EXPECT_EQ(side.State(), VIP_STATE_CONNECTED);
            side.Receive(0);
            peer.Tell("posted");
            EXPECT_EQ(side.TextOf(side.NextReceive()), "second");
          } else {
            EXPECT_EQ(error.ErrorCode, VIP_ERROR_CONN_LOST);
            EXPECT_EQ(side.State(), VIP_STATE_ERROR);
          }
          peer.Tell("done");
        },
        [level](Peer& peer) {
          Side side(Attributes(level));
          side.Connect();
          ASSERT_EQ(side.PostSend(side.memory.Fill(0, 0, 100)), VIP_SUCCESS);
          VIP_DESCRIPTOR* done = side.NextSend();
          if (level == VIP_SERVICE_UNRELIABLE) {
            EXPECT_EQ(done->CS.Status & kErrors, 0u);
            peer.Await("posted");
            side.SendText(1, "second");
          } else {
            if (level == VIP_SERVICE_RELIABLE_RECEPTION) {
              EXPECT_EQ(done->CS.Status & kErrors,
                        static_cast<VIP_UINT32>(VIP_STATUS_REMOTE_DESC_ERROR));
            }
            AwaitError(side);
          }
          peer.Await("done");
        });
  }
}

// Where a peer may write.
struct Target {
  VIP_UINT64 address;
  VIP_MEM_HANDLE handle;
};

VIP_VI_ATTRIBUTES RdmaAttributes(VIP_RELIABILITY_LEVEL level) {
  VIP_VI_ATTRIBUTES attributes = Attributes(level);
  attributes.EnableRdmaWrite = VIP_TRUE;
  attributes.EnableRdmaRead = level == VIP_SERVICE_UNRELIABLE ? VIP_FALSE : VIP_TRUE;
  return attributes;
}

// What makes a receive malformed, and what arrives: a message without bytes, or a write, which has
// none for the receive.
struct Malformed {
  VIP_UINT16 control;
  VIP_UINT16 segments;
  VIP_UINT16 sent;  // the sender's Control
};
constexpr Malformed kMalformed[] = {
    {VIP_CONTROL_OP_RDMAWRITE, 2, 0},
    {0x10, 1, VIP_CONTROL_IMMEDIATE},
    {0, Memory::kSegments + 1, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE},
};

// Posts two receives, the first of them malformed; once that one has failed, calls `end`.
template <typename End>
void ReceiveMalformed(VIP_RELIABILITY_LEVEL level, const Malformed& malformed, Peer& peer,
                      End&& end) {
  Side side(RdmaAttributes(level));
  VIP_MEM_ATTRIBUTES writable = {nullptr, VIP_TRUE, VIP_FALSE};
  Memory target(side.nic, &writable, 65536);
  VIP_DESCRIPTOR* d = side.memory.Fill(0, 0, 16);
  d->CS.Control = malformed.control;
  d->CS.SegCount = malformed.segments;
  ASSERT_EQ(side.PostReceive(d), VIP_SUCCESS);
  side.Receive(1);
  side.Accept();
  peer.Send(Target{reinterpret_cast<VIP_UINT64>(target.data()), target.handle()});
  VIP_DESCRIPTOR* done = side.NextReceive();
  ASSERT_EQ(done, d);
  EXPECT_EQ(done->CS.Status & kErrors, static_cast<VIP_UINT32>(VIP_STATUS_FORMAT_ERROR));
  end(side);
}

void SendTo(Side& side, const Malformed& malformed, const Target& target) {
  VIP_DESCRIPTOR* d =
      (malformed.sent & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_RDMAWRITE
          ? side.memory.FillRdma(0, malformed.sent, 0, 16, target.address, target.handle)
          : side.memory.Fill(0, 0, 0, malformed.sent);
  ASSERT_EQ(side.PostSend(d), VIP_SUCCESS);
}

TEST(Reliability, C73_AMalformedReceiveFailsByAMessageWithoutBytes) {
  for (VIP_RELIABILITY_LEVEL level : kLevels) {
    for (const Malformed& malformed : kMalformed) {
      SCOPED_TRACE(malformed.sent);
      RunPair(
          [=](Peer& peer) {
            ReceiveMalformed(level, malformed, peer, [&](Side& side) {
              if (level == VIP_SERVICE_UNRELIABLE) {
                EXPECT_EQ(side.TextOf(side.NextReceive()), "alone");
                EXPECT_EQ(side.State(), VIP_STATE_CONNECTED);
              } else {
                AwaitError(side);
                EXPECT_EQ(side.DrainFlushed(), 1);
              }
              peer.Tell("done");
              peer.AwaitEnd();
            });
          },
          [=](Peer& peer) {
            Side side(RdmaAttributes(level));
            side.Connect();
            SendTo(side, malformed, peer.Receive<Target>());
            side.NextSend();
            if (level == VIP_SERVICE_UNRELIABLE) {
              side.SendText(1, "alone");
            } else {
              AwaitError(side);
            }
            peer.Await("done");
          });
    }
  }
}

TEST(Reliability, C73_ASenderHearsOfAMalformedReceive) {
  for (const Malformed& malformed : kMalformed) {
    SCOPED_TRACE(malformed.sent);
    RunPair(
        [=](Peer& peer) {
          ReceiveMalformed(VIP_SERVICE_RELIABLE_RECEPTION, malformed, peer,
                           [&](Side&) { peer.Await("done"); });
        },
        [=](Peer& peer) {
          Side side(RdmaAttributes(VIP_SERVICE_RELIABLE_RECEPTION));
          side.Connect();
          SendTo(side, malformed, peer.Receive<Target>());
          EXPECT_EQ(side.NextSend()->CS.Status & kErrors,
                    static_cast<VIP_UINT32>(VIP_STATUS_REMOTE_DESC_ERROR));
          AwaitError(side);
          peer.Tell("done");
        });
  }
}

TEST(Rdma, C74_AWriteIsSilentUnlessItCarriesImmediateData) {
  for (VIP_RELIABILITY_LEVEL level : kLevels) {
    RunPair(
        [level](Peer& peer) {
          Side side(RdmaAttributes(level));
          VIP_MEM_ATTRIBUTES writable = {nullptr, VIP_TRUE, VIP_FALSE};
          Memory target(side.nic, &writable, 65536);
          side.Receive(0);
          side.Receive(1);
          side.Accept();
          peer.Send(Target{reinterpret_cast<VIP_UINT64>(target.data()), target.handle()});
          VIP_DESCRIPTOR* done = side.NextReceive();
          ASSERT_EQ(done, side.memory.descriptor(0));
          EXPECT_EQ(done->CS.Status,
                    static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE |
                                            VIP_STATUS_IMMEDIATE));
          EXPECT_EQ(done->CS.ImmediateData, 99u);
          EXPECT_EQ(done->CS.Length, 15u) << "what was written";
          EXPECT_STREQ(target.data(), "silent");
          EXPECT_STREQ(target.data() + 100, "with immediate");
          VIP_DESCRIPTOR* second = nullptr;
          EXPECT_EQ(VipRecvDone(side.vi, &second), VIP_NOT_DONE) << "one receive was taken";
          peer.Tell("done");
          peer.AwaitEnd();  // the writer still takes its completions
        },
        [level](Peer& peer) {
          Side side(RdmaAttributes(level));
          side.Connect();
          const Target target = peer.Receive<Target>();
          std::strcpy(side.memory.data(), "silent");
          std::strcpy(side.memory.data() + 100, "with immediate");
          ASSERT_EQ(side.PostSend(side.memory.FillRdma(0, VIP_CONTROL_OP_RDMAWRITE, 0, 7,
                                                       target.address, target.handle)),
                    VIP_SUCCESS);
          VIP_DESCRIPTOR* d =
              side.memory.FillRdma(1, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, 100, 15,
                                   target.address + 100, target.handle);
          d->CS.ImmediateData = 99;
          ASSERT_EQ(side.PostSend(d), VIP_SUCCESS);
          for (int i = 0; i < 2; ++i) {
            VIP_DESCRIPTOR* done = side.NextSend();
            EXPECT_EQ(done->CS.Status,
                      static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE));
          }
          peer.Await("done");
        });
  }
}

// Writes `text` to the target that the peer names, and waits for the completion.
void WriteText(Side& side, Peer& peer, const std::string& text, VIP_DESCRIPTOR** done) {
  const Target target = peer.Receive<Target>();
  std::strcpy(side.memory.data(), text.c_str());
  const auto bytes = static_cast<VIP_UINT32>(text.size() + 1);
  ASSERT_EQ(side.PostSend(side.memory.FillRdma(0, VIP_CONTROL_OP_RDMAWRITE, 0, bytes,
                                               target.address, target.handle)),
            VIP_SUCCESS);
  *done = side.NextSend();
}

// A write that the target refuses: `vi_allows` and `region_allows` say why.
void RefusedWrite(VIP_RELIABILITY_LEVEL level, bool vi_allows, bool region_allows) {
  RunPair(
      [=](Peer& peer) {
        VIP_VI_ATTRIBUTES attributes = Attributes(level);
        attributes.EnableRdmaWrite = vi_allows;
        Side side(attributes);
        ErrorLog errors(side.nic.handle);
        VIP_MEM_ATTRIBUTES rights = {nullptr, region_allows, VIP_FALSE};
        Memory target(side.nic, &rights, 65536);
        side.Accept();
        peer.Send(Target{reinterpret_cast<VIP_UINT64>(target.data()), target.handle()});
        VIP_ERROR_DESCRIPTOR error;
        ASSERT_TRUE(errors.Next(&error));
        EXPECT_EQ(error.ErrorCode, VIP_ERROR_RDMAW_PROT);
        if (level == VIP_SERVICE_UNRELIABLE) {
          EXPECT_EQ(side.State(), VIP_STATE_CONNECTED);
        } else {
          AwaitError(side);
        }
        EXPECT_EQ(std::string(target.data(), 9), std::string(9, '\0')) << "memory is untouched";
        peer.Tell("done");
      },
      [=](Peer& peer) {
        Side side(Attributes(level));
        side.Connect();
        VIP_DESCRIPTOR* done = nullptr;
        ASSERT_NO_FATAL_FAILURE(WriteText(side, peer, "forbidden", &done));
        if (level == VIP_SERVICE_RELIABLE_RECEPTION) {
          EXPECT_EQ(done->CS.Status & kErrors, static_cast<VIP_UINT32>(VIP_STATUS_RDMA_PROT_ERROR));
        }
        if (level != VIP_SERVICE_UNRELIABLE) AwaitError(side);
        peer.Await("done");
      });
}

TEST(Rdma, C75_ARegionThatForbidsWrites) {
  for (VIP_RELIABILITY_LEVEL level : kLevels) RefusedWrite(level, true, false);
}

TEST(Rdma, C75_AViThatForbidsWrites) {
  for (VIP_RELIABILITY_LEVEL level : kLevels) RefusedWrite(level, false, true);
}

// Writes into the peer's memory, which fails unless it is `allowed`.
void WriteOnce(Peer& peer, bool allowed) {
  Side side(RdmaAttributes(VIP_SERVICE_RELIABLE_RECEPTION));
  side.Connect();
  VIP_DESCRIPTOR* done = nullptr;
  ASSERT_NO_FATAL_FAILURE(WriteText(side, peer, "written", &done));
  EXPECT_EQ(done->CS.Status & kErrors,
            allowed ? 0u : static_cast<VIP_UINT32>(VIP_STATUS_RDMA_PROT_ERROR));
  peer.Tell("done");
}

// Checks the effect of WriteOnce on this side.
void ExpectWrite(Peer& peer, const Memory& target, bool allowed) {
  peer.Send(Target{reinterpret_cast<VIP_UINT64>(target.data()), target.handle()});
  peer.Await("done");
  EXPECT_EQ(std::string(target.data()), allowed ? "written" : "");
}

// 3.4: "tags must match", on the target's side.
TEST(Rdma, C55_ARegionOfAnotherTag) {
  for (const bool equal : {true, false}) {
    SCOPED_TRACE(equal);
    RunPair(
        [=](Peer& peer) {
          VIP_VI_ATTRIBUTES attributes = RdmaAttributes(VIP_SERVICE_RELIABLE_RECEPTION);
          Side side;
          ASSERT_EQ(VipCreatePtag(side.nic.handle, &attributes.Ptag), VIP_SUCCESS);
          ASSERT_EQ(VipSetViAttributes(side.vi, &attributes), VIP_SUCCESS);
          VIP_MEM_ATTRIBUTES rights = {attributes.Ptag, VIP_TRUE, VIP_FALSE};
          if (!equal) {
            ASSERT_EQ(VipCreatePtag(side.nic.handle, &rights.Ptag), VIP_SUCCESS);
          }
          const Memory target(side.nic, &rights, 65536);
          side.Accept();
          ExpectWrite(peer, target, equal);
        },
        [=](Peer& peer) { WriteOnce(peer, equal); });
  }
}

// The target is registered with the right `before`, and then set to `allowed`.
void WriteBehindSet(bool before, bool allowed) {
  RunPair(
      [=](Peer& peer) {
        Side side(RdmaAttributes(VIP_SERVICE_RELIABLE_RECEPTION));
        VIP_MEM_ATTRIBUTES rights = {nullptr, before, VIP_FALSE};
        const Memory target(side.nic, &rights, 65536);
        rights.EnableRdmaWrite = allowed;
        ASSERT_EQ(
            VipSetMemAttributes(side.nic.handle, target.descriptor(0), target.handle(), &rights),
            VIP_SUCCESS);
        side.Accept();
        ExpectWrite(peer, target, allowed);
      },
      [=](Peer& peer) { WriteOnce(peer, allowed); });
}

TEST(Rdma, C56_WhatSetStoredHoldsForAPeersWrites) {
  WriteBehindSet(/*before=*/false, /*allowed=*/true);
  WriteBehindSet(/*before=*/true, /*allowed=*/false);
}

TEST(Rdma, C56_SettingWhatHoldsAlreadyLeavesAPeersWrites) {
  WriteBehindSet(/*before=*/true, /*allowed=*/true);
}

// This level has no reads: the descriptor fails in its turn, and the connection goes on.
TEST(Rdma, AReadAtUnreliableDeliveryIsMalformed) {
  RunPair(
      [](Peer& peer) {
        Side side(RdmaAttributes(VIP_SERVICE_UNRELIABLE));
        side.Receive(0);
        side.Accept();
        EXPECT_EQ(side.TextOf(side.NextReceive()), "behind it");
        peer.Tell("done");
        peer.AwaitEnd();
      },
      [](Peer& peer) {
        Side side(RdmaAttributes(VIP_SERVICE_UNRELIABLE));
        side.Connect();
        ASSERT_EQ(side.PostSend(side.memory.FillRdma(0, VIP_CONTROL_OP_RDMAREAD, 0, 8, 0x1000,
                                                     side.memory.handle())),
                  VIP_SUCCESS);
        VIP_DESCRIPTOR* done = side.NextSend();
        ASSERT_NE(done, nullptr);
        EXPECT_EQ(done->CS.Status,
                  static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ |
                                          VIP_STATUS_FORMAT_ERROR));
        side.SendText(1, "behind it");
        peer.Await("done");
      });
}

// The receiver spins on an int at the end of writes of `bytes`, which need not be aligned.
void ExpectTheLastWordLast(VIP_UINT32 bytes) {
  constexpr int kRounds = 200;
  RunPair(
      [bytes](Peer& peer) {
        Side side(RdmaAttributes(VIP_SERVICE_RELIABLE_DELIVERY));
        VIP_MEM_ATTRIBUTES writable = {nullptr, VIP_TRUE, VIP_FALSE};
        Memory target(side.nic, &writable, 65536);
        side.Accept();
        peer.Send(Target{reinterpret_cast<VIP_UINT64>(target.data()), target.handle()});
        const volatile char* const flag = target.data() + bytes - sizeof(int);
        const auto read_flag = [flag] {
          char read[sizeof(int)];
          for (size_t i = 0; i < sizeof read; ++i) read[i] = flag[i];
          std::atomic_thread_fence(std::memory_order_acquire);
          int value;
          std::memcpy(&value, read, sizeof value);
          return value;
        };
        const auto* words = reinterpret_cast<const int*>(target.data());
        for (int round = 1; round <= kRounds; ++round) {
          const int64_t end = NowMilliseconds() + 20000;
          while (read_flag() != round && NowMilliseconds() < end) sched_yield();
          for (size_t i = 0; i < bytes / sizeof(int) - 1; ++i) ASSERT_EQ(words[i], round) << i;
          peer.Tell("seen");
        }
      },
      [bytes](Peer& peer) {
        Side side(RdmaAttributes(VIP_SERVICE_RELIABLE_DELIVERY));
        side.Connect();
        const Target target = peer.Receive<Target>();
        auto* words = reinterpret_cast<int*>(side.memory.data());
        for (int round = 1; round <= kRounds; ++round) {
          std::fill(words, words + bytes / sizeof(int), round);
          std::memcpy(side.memory.data() + bytes - sizeof round, &round, sizeof round);
          ASSERT_EQ(side.PostSend(side.memory.FillRdma(0, VIP_CONTROL_OP_RDMAWRITE, 0, bytes,
                                                       target.address, target.handle)),
                    VIP_SUCCESS);
          ASSERT_EQ(side.NextSend()->CS.Status & kErrors, 0u);
          peer.Await("seen");
        }
      });
}

TEST(Rdma, C76_TheLastWordIsVisibleLast) { ExpectTheLastWordLast(16384); }
TEST(Rdma, C76_AlsoWhereItIsNotAligned) { ExpectTheLastWordLast(16381); }

TEST(Rdma, ReadsFetchAndAFenceWaitsForThem) {
  RunPair(
      [](Peer& peer) {
        Side side(RdmaAttributes(VIP_SERVICE_RELIABLE_DELIVERY));
        VIP_MEM_ATTRIBUTES readable = {nullptr, VIP_FALSE, VIP_TRUE};
        Memory source(side.nic, &readable, 65536);
        std::strcpy(source.data() + 5, "read me");
        side.Receive(0);
        side.Accept();
        peer.Send(Target{reinterpret_cast<VIP_UINT64>(source.data()), source.handle()});
        EXPECT_EQ(side.TextOf(side.NextReceive()), std::string("read me", 8));
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side(RdmaAttributes(VIP_SERVICE_RELIABLE_DELIVERY));
        side.Connect();
        const Target source = peer.Receive<Target>();
        ASSERT_EQ(side.PostSend(side.memory.FillRdma(0, VIP_CONTROL_OP_RDMAREAD, 0, 8,
                                                     source.address + 5, source.handle)),
                  VIP_SUCCESS);
        ASSERT_EQ(side.PostSend(side.memory.Fill(1, 0, 8, VIP_CONTROL_QFENCE)), VIP_SUCCESS);
        VIP_DESCRIPTOR* done = side.NextSend();
        EXPECT_EQ(done->CS.Status,
                  static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ));
        side.NextSend();
        peer.Await("done");
      });
}

}  // namespace
}  // namespace viaduct::tests
