// What an RDMA device is asked for, over the one without a wire (tests/rdma_mock).
#include "gtest/gtest.h"
#include "tests/device/ends.h"
#include "tests/rdma_mock/asked.h"

namespace viaduct::verbs {
namespace {

using AskedTest = DeviceTest;

TEST_F(AskedTest, ARegionHasTheAccessAskedForAndNoMore) {
  constexpr struct {
    uint32_t access;
    uint32_t asked;
  } kRows[] = {
      {kLocalRead, 0},
      {kLocalRead | kLocalWrite, kLocalWrite},
      {kLocalRead | kRemoteRead, kRemoteRead},
      // A device asks for the local right where it has the remote one.
      {kLocalRead | kRemoteWrite, kLocalWrite | kRemoteWrite},
      {kAllAccess, kLocalWrite | kRemoteRead | kRemoteWrite},
  };
  End& end = NewEnd(a());
  Bytes memory = Pattern(100, 1);
  for (const auto& row : kRows) {
    auto region = a().Register(end.domain(), memory.data(), memory.size(), row.access);
    ASSERT_TRUE(region.ok()) << region.status();
    EXPECT_EQ(rdma_mock::AskedAccess(), row.asked) << row.access;
  }
}

TEST_F(AskedTest, APairIsOpenedToWhatItsPeerMayDo) {
  EndOptions reads;
  reads.remote_access = kRemoteRead;
  End& from = NewEnd(a(), reads);
  End& to = NewEnd(b(), reads);
  Connect(from, to);
  EXPECT_EQ(rdma_mock::AskedPeerAccess(), uint32_t{kLocalWrite | kRemoteRead});
}

// On iWARP nobody asks again.
TEST_F(AskedTest, APeerThatFoundNoReceiveAsksAgainSoon) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  constexpr int kUnderAMillisecond = 12;  // InfiniBand 1.4, table 45
  EXPECT_EQ(rdma_mock::AskedDelay(), a().attributes().immediate_data ? kUnderAMillisecond : 0);
}

}  // namespace
}  // namespace viaduct::verbs
