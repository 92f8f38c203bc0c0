// What a NIC promises in its attributes, used to the full: transfers of 16 MiB, 252 segments, and
// more VIs than any program had.
#include <vipl.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/process_facts.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

constexpr VIP_UINT32 kLargest = 16u << 20;
constexpr int kSegments = 252;

struct Target {
  VIP_UINT64 address;
  VIP_MEM_HANDLE handle;
};

VIP_VI_ATTRIBUTES LargeTransfers(VIP_RELIABILITY_LEVEL level) {
  VIP_VI_ATTRIBUTES attributes = Attributes(level, kLargest);
  attributes.EnableRdmaWrite = VIP_TRUE;
  attributes.EnableRdmaRead = VIP_TRUE;
  return attributes;
}

// Each byte differs from its neighbours, and from the byte one page further on.
unsigned char ByteAt(size_t i, int seed) {
  return static_cast<unsigned char>(i * 7 + (i >> 12) * 13 + static_cast<size_t>(seed));
}

void FillPattern(char* data, size_t size, int seed) {
  for (size_t i = 0; i < size; ++i) data[i] = static_cast<char>(ByteAt(i, seed));
}

// The first byte that differs; `size` if none does.
size_t Mismatch(const char* data, size_t size, int seed) {
  for (size_t i = 0; i < size; ++i) {
    if (static_cast<unsigned char>(data[i]) != ByteAt(i, seed)) return i;
  }
  return size;
}

TEST(Limits, AttributesReachWhatProgramsCountOn) {
  RunAlone([] {
    const Nic nic;
    const VIP_NIC_ATTRIBUTES& a = nic.attributes;
    EXPECT_GE(a.MaxTransferSize, kLargest);
    EXPECT_GE(a.MaxVI, 10000u);
    EXPECT_GE(a.MaxDescriptorsPerQueue, 1024u);
    EXPECT_GE(a.MaxSegmentsPerDesc, VIP_ULONG{kSegments});
    EXPECT_GE(a.MaxCQ, 1024u);
    EXPECT_GE(a.MaxCQEntries, 65535u);
    EXPECT_GE(a.MaxPtags, 1024u);
    EXPECT_EQ(a.MaxDiscriminatorLen, 16u);
    EXPECT_EQ(a.NicAddressLen, 6u);
  });
}

// A message, a write and a read of 16 MiB; the message gathered from as many segments as a
// descriptor takes.
void TransferLargest(VIP_RELIABILITY_LEVEL level) {
  RunPair(
      [level](Peer& peer) {
        const VIP_VI_ATTRIBUTES attributes = LargeTransfers(level);
        Side side(attributes);
        VIP_MEM_ATTRIBUTES rights = {nullptr, VIP_TRUE, VIP_TRUE};
        Memory target(side.nic, &rights, 2 * size_t{kLargest});
        ASSERT_EQ(VipPostRecv(side.vi, target.Fill(0, 0, kLargest), target.handle()), VIP_SUCCESS);
        side.Accept();
        VIP_DESCRIPTOR* done = side.NextReceive();
        ASSERT_NE(done, nullptr);
        EXPECT_EQ(done->CS.Status,
                  static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE));
        EXPECT_EQ(done->CS.Length, kLargest);
        EXPECT_EQ(Mismatch(target.data(), kLargest, 1), size_t{kLargest});
        FillPattern(target.data(), kLargest, 3);
        peer.Send(Target{reinterpret_cast<VIP_UINT64>(target.data()), target.handle()});
        peer.Await("written");
        EXPECT_EQ(Mismatch(target.data() + kLargest, kLargest, 2), size_t{kLargest});
        peer.Tell("done");
      },
      [level](Peer& peer) {
        const VIP_VI_ATTRIBUTES attributes = LargeTransfers(level);
        Side side(attributes);
        Memory source(side.nic, nullptr, kLargest);
        FillPattern(source.data(), kLargest, 1);
        side.Connect();
        VIP_DESCRIPTOR* d = source.Fill(0, 0, kLargest);
        d->CS.SegCount = kSegments;
        VIP_UINT32 offset = 0;
        for (int i = 0; i < kSegments; ++i) {
          const VIP_UINT32 rest = kLargest - offset;
          const VIP_UINT32 length = i + 1 == kSegments ? rest : 66000 + static_cast<VIP_UINT32>(i);
          d->Data[i].Data.Address = source.data() + offset;
          d->Data[i].Handle = source.handle();
          d->Data[i].Length = length;
          offset += length;
        }
        ASSERT_EQ(VipPostSend(side.vi, d, source.handle()), VIP_SUCCESS);
        ASSERT_EQ(side.NextSend(), d);
        EXPECT_EQ(d->CS.Status, static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND));
        const Target target = peer.Receive<Target>();

        FillPattern(source.data(), kLargest, 2);
        d = source.FillRdma(0, VIP_CONTROL_OP_RDMAWRITE, 0, kLargest, target.address + kLargest,
                            target.handle);
        ASSERT_EQ(VipPostSend(side.vi, d, source.handle()), VIP_SUCCESS);
        ASSERT_EQ(side.NextSend(), d);
        EXPECT_EQ(d->CS.Status,
                  static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE));

        // The read comes after the write, so the written bytes are in place once the read is done.
        std::memset(source.data(), 0, kLargest);
        d = source.FillRdma(0, VIP_CONTROL_OP_RDMAREAD, 0, kLargest, target.address, target.handle);
        ASSERT_EQ(VipPostSend(side.vi, d, source.handle()), VIP_SUCCESS);
        ASSERT_EQ(side.NextSend(), d);
        EXPECT_EQ(d->CS.Status, static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ));
        EXPECT_EQ(Mismatch(source.data(), kLargest, 3), size_t{kLargest});
        peer.Tell("written");
        peer.Await("done");
      });
}

TEST(Limits, SixteenMebibytesReliableDelivery) { TransferLargest(VIP_SERVICE_RELIABLE_DELIVERY); }

TEST(Limits, SixteenMebibytesReliableReception) { TransferLargest(VIP_SERVICE_RELIABLE_RECEPTION); }

long ResidentKib() {
  long pages = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "re");
  EXPECT_EQ(fscanf(file, "%ld %ld", &pages, &resident), 2);
  fclose(file);
  return resident * 4;
}

TEST(Limits, TenThousandVisCostNeitherDescriptorsNorThreads) {
  constexpr int kVis = 10000;
  RunAlone([] {
    Side first;
    const int descriptors = OpenDescriptors(), threads = Threads();
    const long before = ResidentKib();
    std::vector<VIP_VI_HANDLE> vis(kVis);
    VIP_VI_ATTRIBUTES attributes = Attributes();
    for (VIP_VI_HANDLE& vi : vis) {
      ASSERT_EQ(VipCreateVi(first.nic.handle, &attributes, nullptr, nullptr, &vi), VIP_SUCCESS);
    }
    EXPECT_EQ(OpenDescriptors(), descriptors);
    EXPECT_EQ(Threads(), threads);
    const long each = (ResidentKib() - before) * 1024 / kVis;
    printf("%d VIs: %ld bytes of resident memory each\n", kVis, each);
    EXPECT_LE(each, 20 * 1024);

    // The last VI works like the first.
    ASSERT_EQ(VipPostRecv(vis.back(), first.memory.Fill(0, 0, 8), first.memory.handle()),
              VIP_SUCCESS);
    ASSERT_EQ(VipDisconnect(vis.back()), VIP_SUCCESS);
    VIP_DESCRIPTOR* done = nullptr;
    EXPECT_EQ(VipRecvDone(vis.back(), &done), VIP_DESCRIPTOR_ERROR);
    EXPECT_EQ(done, first.memory.descriptor(0));
    for (VIP_VI_HANDLE vi : vis) ASSERT_EQ(VipDestroyVi(vi), VIP_SUCCESS);
  });
}

}  // namespace
}  // namespace viaduct::tests
