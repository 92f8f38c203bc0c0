// Asynchronous errors that no other chapter covers: refused reads, completions whose memory is
// gone, and the silence of a process that exits.
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include <vipl.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/sleeper.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

struct Target {
  VIP_UINT64 address;
  VIP_MEM_HANDLE handle;
};

void AwaitState(const Side& side, VIP_VI_STATE state) {
  const int64_t end = NowMilliseconds() + 20000;
  while (side.State() != state && NowMilliseconds() < end) poll(nullptr, 0, 1);
  EXPECT_EQ(side.State(), state);
}

// A read that the target refuses: `vi_allows` and `region_allows` say why.
void RefusedRead(VIP_RELIABILITY_LEVEL level, bool vi_allows, bool region_allows) {
  RunPair(
      [=](Peer& peer) {
        VIP_VI_ATTRIBUTES attributes = Attributes(level);
        attributes.EnableRdmaRead = vi_allows;
        Side side(attributes);
        ErrorLog errors(side.nic.handle);
        VIP_MEM_ATTRIBUTES rights = {nullptr, VIP_FALSE, region_allows};
        Memory target(side.nic, &rights, 65536);
        std::strcpy(target.data(), "secret");
        side.Receive(0);
        side.Accept();
        peer.Send(Target{reinterpret_cast<VIP_UINT64>(target.data()), target.handle()});
        VIP_ERROR_DESCRIPTOR error;
        ASSERT_TRUE(errors.Next(&error));
        EXPECT_EQ(error.ErrorCode, VIP_ERROR_RDMAR_PROT);
        EXPECT_EQ(error.ResourceCode, VIP_RESOURCE_VI);
        EXPECT_EQ(error.NicHandle, side.nic.handle);
        EXPECT_EQ(error.ViHandle, side.vi);
        ASSERT_TRUE(errors.Next(&error));
        EXPECT_EQ(error.ErrorCode, VIP_ERROR_CONN_LOST);
        AwaitState(side, VIP_STATE_ERROR);
        EXPECT_EQ(side.DrainFlushed(), 1);
        peer.Tell("done");
      },
      [=](Peer& peer) {
        Side side(Attributes(level));
        side.Connect();
        const Target target = peer.Receive<Target>();
        ASSERT_EQ(side.PostSend(side.memory.FillRdma(0, VIP_CONTROL_OP_RDMAREAD, 0, 7,
                                                     target.address, target.handle)),
                  VIP_SUCCESS);
        VIP_DESCRIPTOR* done = side.NextSend();
        ASSERT_NE(done, nullptr);
        EXPECT_EQ(done->CS.Status & VIP_STATUS_ERROR_MASK,
                  static_cast<VIP_UINT32>(VIP_STATUS_RDMA_PROT_ERROR));
        EXPECT_STREQ(side.memory.data(), "");
        AwaitState(side, VIP_STATE_ERROR);
        peer.Await("done");
      });
}

TEST(Errors, ARefusedReadIsToldToItsTarget) {
  for (VIP_RELIABILITY_LEVEL level :
       {VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION}) {
    RefusedRead(level, true, false);
    RefusedRead(level, false, true);
  }
}

// A completion cannot be written into memory that was deregistered while its descriptor waited.
TEST(Errors, ACompletionWithoutMemoryIsReported) {
  RunPair(
      [](Peer& peer) {
        Side side;
        ErrorLog errors(side.nic.handle);
        Memory doomed(side.nic, nullptr, 4096);
        VIP_DESCRIPTOR* d = doomed.Fill(0, 0, 0);
        ASSERT_EQ(VipPostRecv(side.vi, d, doomed.handle()), VIP_SUCCESS);
        side.Accept();
        doomed.Deregister();
        std::memset(static_cast<void*>(d), 0x77, sizeof *d);
        peer.Tell("gone");
        VIP_ERROR_DESCRIPTOR error;
        ASSERT_TRUE(errors.Next(&error));
        EXPECT_EQ(error.ErrorCode, VIP_ERROR_COMP_PROT);
        EXPECT_EQ(error.ResourceCode, VIP_RESOURCE_DESCRIPTOR);
        EXPECT_EQ(error.DescriptorPtr, d);
        EXPECT_EQ(side.NextReceive(), d) << "it completes nevertheless";
        for (size_t i = 0; i < sizeof *d; ++i) {
          ASSERT_EQ(reinterpret_cast<const unsigned char*>(d)[i], 0x77) << i;
        }
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        peer.Await("gone");
        ASSERT_EQ(side.PostSend(side.memory.Fill(0, 0, 0)), VIP_SUCCESS);
        side.NextSend();
        peer.Await("done");
      });
}

// A job whose processes just exit: the one that exits later must not be notified, while it exits,
// that the other is gone.
struct Leaver {
  Peer* peer;
  Side* side;
};
Leaver leaver;

void TellTale(VIP_PVOID, VIP_ERROR_DESCRIPTOR* error) { _exit(100 + error->ErrorCode); }

// Registered before the NIC is opened, so it runs after the library's own exit handler.
void LosePeerWhileLeaving() {
  leaver.peer->Tell("leaving");
  leaver.peer->AwaitEnd();
  AwaitState(*leaver.side, VIP_STATE_ERROR);
  poll(nullptr, 0, 50);  // room for a callback that must not come
  _exit(::testing::Test::HasFailure() ? 1 : 0);
}

TEST(Errors, AProcessThatLeavesHearsNothingMore) {
  RunPair(
      [](Peer& peer) {
        ASSERT_EQ(atexit(&LosePeerWhileLeaving), 0);
        auto* side = new Side;
        leaver = {&peer, side};
        ASSERT_EQ(VipErrorCallback(side->nic.handle, nullptr, &TellTale), VIP_SUCCESS);
        side->Accept();
        exit(1);  // nobody sees this status: the handler above ends the process
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        peer.Await("leaving");
      });
}

TEST(VipSetMemAttributes, C56_WhatSetStoredHoldsForDescriptors) {
  RunAlone([] {
    Side side;
    ErrorLog errors(side.nic.handle);
    VIP_VI_ATTRIBUTES own = side.QueryVi();
    VIP_MEM_ATTRIBUTES other = {};
    ASSERT_EQ(VipCreatePtag(side.nic.handle, &own.Ptag), VIP_SUCCESS);
    ASSERT_EQ(VipCreatePtag(side.nic.handle, &other.Ptag), VIP_SUCCESS);
    ASSERT_EQ(VipSetViAttributes(side.vi, &own), VIP_SUCCESS);
    const auto set = [&](VIP_MEM_ATTRIBUTES attributes) {
      return VipSetMemAttributes(side.nic.handle, side.memory.descriptor(0), side.memory.handle(),
                                 &attributes);
    };
    VIP_DESCRIPTOR* const d = side.memory.Fill(1, 0, 8);
    ASSERT_EQ(set(other), VIP_SUCCESS);
    ASSERT_EQ(side.PostReceive(d), VIP_SUCCESS);
    VIP_ERROR_DESCRIPTOR error;
    ASSERT_TRUE(errors.Next(&error));
    EXPECT_EQ(error.ErrorCode, VIP_ERROR_POST_DESC);
    EXPECT_EQ(error.DescriptorPtr, d);
    other.Ptag = own.Ptag;
    ASSERT_EQ(set(other), VIP_SUCCESS);
    ASSERT_EQ(side.PostReceive(d), VIP_SUCCESS);
    VIP_DESCRIPTOR* done = nullptr;
    EXPECT_EQ(VipRecvDone(side.vi, &done), VIP_NOT_DONE) << "it is queued";
    EXPECT_TRUE(errors.empty());
  });
}

// A handler that stays in its first call until `go_on` is set.
struct StandingHandler {
  std::atomic<int> calls{0};
  std::atomic<bool> go_on{false};

  static void Handle(VIP_PVOID context, VIP_ERROR_DESCRIPTOR*) {
    auto* const self = static_cast<StandingHandler*>(context);
    ++self->calls;
    while (!self->go_on) std::this_thread::yield();
  }
};

// Errors that still wait for the handler then are dropped.
TEST(ErrorCallback, NothingIsToldBehindVipCloseNic) {
  RunAlone([] {
    Side side, other;
    auto* const handler = new StandingHandler;  // a callback may come late
    ASSERT_EQ(VipErrorCallback(side.nic.handle, handler, &StandingHandler::Handle), VIP_SUCCESS);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(VipPostSend(side.vi, side.memory.descriptor(0), 0), VIP_SUCCESS);
    }
    while (handler->calls == 0) std::this_thread::yield();
    Sleeper closing([&] { EXPECT_EQ(VipCloseNic(side.nic.handle), VIP_SUCCESS); });
    closing.AwaitAsleep();
    handler->go_on = true;
    closing.Join();
    ErrorLog errors(other.nic.handle);
    ASSERT_EQ(VipPostSend(other.vi, other.memory.descriptor(0), 0), VIP_SUCCESS);
    VIP_ERROR_DESCRIPTOR error;
    ASSERT_TRUE(errors.Next(&error)) << "it comes behind the other NIC's";
    EXPECT_EQ(handler->calls, 1);
  });
}

}  // namespace
}  // namespace viaduct::tests
