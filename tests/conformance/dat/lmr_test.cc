// dat_lmr_*: the pages of those names; DAT checklist 32-34, 36, 38, 39, 46.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/short_file.h"

namespace viaduct::tests {
namespace {

DAT_RETURN Create(const Side& side, void* address, DAT_VLEN length,
                  int privileges = DAT_MEM_PRIV_ALL_FLAG, int type = DAT_MEM_TYPE_VIRTUAL,
                  DAT_LMR_HANDLE* lmr = nullptr) {
  static DAT_LMR_HANDLE unused;
  DAT_REGION_DESCRIPTION region;
  region.for_va = address;
  return CreateLmr(side.ia, static_cast<DAT_MEM_TYPE>(type), region, length, side.pz,
                   static_cast<DAT_MEM_PRIV_FLAGS>(privileges), lmr != nullptr ? lmr : &unused,
                   nullptr, nullptr, nullptr, nullptr);
}

TEST(LmrCreate, C032_RangeCoversTheRequest) {
  RunAlone([] {
    Side side;
    std::vector<char> bytes(5000);
    DAT_REGION_DESCRIPTION region;
    region.for_va = bytes.data() + 3;
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT lmr_context = 0;
    DAT_RMR_CONTEXT rmr_context = 0;
    DAT_VLEN size = 0;
    DAT_VADDR address = 0;
    Must(CreateLmr(side.ia, DAT_MEM_TYPE_VIRTUAL, region, 4000, side.pz, DAT_MEM_PRIV_ALL_FLAG,
                   &lmr, &lmr_context, &rmr_context, &size, &address));
    const auto begin = reinterpret_cast<uintptr_t>(bytes.data() + 3);
    EXPECT_LE(address, begin);
    EXPECT_GE(address + size, begin + 4000);
    EXPECT_NE(rmr_context, 0u);
    DAT_LMR_PARAM param;
    Must(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
    EXPECT_EQ(param.ia_handle, side.ia);
    EXPECT_EQ(param.mem_type, DAT_MEM_TYPE_VIRTUAL);
    EXPECT_EQ(param.region_desc.for_va, region.for_va);
    EXPECT_EQ(param.length, 4000u);
    EXPECT_EQ(param.pz_handle, side.pz);
    EXPECT_EQ(param.mem_priv, DAT_MEM_PRIV_ALL_FLAG);
    EXPECT_EQ(param.lmr_context, lmr_context);
    EXPECT_EQ(param.rmr_context, rmr_context);
    EXPECT_EQ(param.registered_size, size);
    EXPECT_EQ(param.registered_address, address);
    Must(dat_lmr_free(lmr));
  });
}

TEST(LmrCreate, C033_NoRemotePrivilegeNoContext) {
  RunAlone([] {
    Side side;
    char bytes[64];
    DAT_REGION_DESCRIPTION region;
    region.for_va = bytes;
    for (int privileges : {0x00, 0x01, 0x10, 0x11}) {
      DAT_LMR_HANDLE lmr;
      DAT_RMR_CONTEXT rmr_context = 77;
      Must(CreateLmr(side.ia, DAT_MEM_TYPE_VIRTUAL, region, 64, side.pz,
                     static_cast<DAT_MEM_PRIV_FLAGS>(privileges), &lmr, nullptr, &rmr_context,
                     nullptr, nullptr));
      EXPECT_EQ(rmr_context, 0u);
      DAT_LMR_PARAM param;
      Must(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
      EXPECT_EQ(static_cast<int>(param.mem_priv), privileges);
    }
  });
}

TEST(LmrCreate, C034_OverAnother) {
  RunAlone([] {
    Side side;
    Memory memory(side, 4096, DAT_MEM_PRIV_LOCAL_READ_FLAG);
    DAT_PZ_HANDLE pz;
    Must(dat_pz_create(side.ia, &pz));
    DAT_REGION_DESCRIPTION region;
    region.for_lmr_handle = memory.lmr;
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT context;
    DAT_VLEN size;
    DAT_VADDR address;
    Must(CreateLmr(side.ia, DAT_MEM_TYPE_LMR, region, 0, pz, DAT_MEM_PRIV_ALL_FLAG, &lmr, &context,
                   nullptr, &size, &address));
    EXPECT_NE(lmr, memory.lmr);
    EXPECT_NE(context, memory.lmr_context);
    EXPECT_EQ(size, 4096u);
    EXPECT_EQ(address, reinterpret_cast<uintptr_t>(memory.bytes.data()));
    DAT_LMR_PARAM param;
    Must(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
    EXPECT_EQ(param.mem_type, DAT_MEM_TYPE_LMR);
    EXPECT_EQ(param.region_desc.for_lmr_handle, memory.lmr);
    EXPECT_EQ(param.pz_handle, pz);
    EXPECT_EQ(param.mem_priv, DAT_MEM_PRIV_ALL_FLAG);
    EXPECT_NE(param.rmr_context, 0u);
    Must(dat_lmr_query(memory.lmr, DAT_LMR_FIELD_ALL, &param));
    EXPECT_EQ(param.pz_handle, side.pz) << "the one below is as it was";
    EXPECT_EQ(param.mem_priv, DAT_MEM_PRIV_LOCAL_READ_FLAG);
    Must(dat_lmr_free(memory.lmr));
    const DAT_LMR_TRIPLET triplet = Triplet(memory.bytes.data(), 4096, context);
    Must(dat_lmr_sync_rdma_read(side.ia, &triplet, 1));
    Must(dat_lmr_free(lmr));
  });
}

TEST(LmrCreate, C036_MemoryBehindTheEndOfItsFile) {
  RunAlone([] {
    Side side;
    const ShortFile file;
    if (!file.IsTold()) return;
    EXPECT_TRUE(
        Fails(Create(side, file.data(), 2 * file.page()), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    Must(Create(side, file.data(), file.page()));
  });
}

TEST(LmrCreate, C036_Parameters) {
  RunAlone([] {
    Side side;
    char bytes[64];
    DAT_LMR_HANDLE lmr;
    EXPECT_TRUE(Fails(Create(side, nullptr, 64), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(Create(side, bytes, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
    EXPECT_TRUE(Fails(Create(side, kNoMemory, 64), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(Create(side, bytes, 64, 0x1000), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6));
    EXPECT_TRUE(Fails(Create(side, bytes, 64, 0x33, 99), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(
        Fails(CreateLmr(side.ia, DAT_MEM_TYPE_VIRTUAL, DAT_REGION_DESCRIPTION{bytes}, 64, side.pz,
                        DAT_MEM_PRIV_ALL_FLAG, nullptr, nullptr, nullptr, nullptr, nullptr),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG1 + kLmrHandleArgument - 1));
    Must(Create(side, bytes, 64, 0x33, DAT_MEM_TYPE_VIRTUAL, &lmr));
    DAT_LMR_PARAM param;
    EXPECT_TRUE(Fails(dat_lmr_query(lmr, static_cast<DAT_LMR_PARAM_MASK>(0x8000), &param),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, nullptr), DAT_INVALID_PARAMETER,
                      DAT_INVALID_ARG3));
  });
}

#if VIADUCT_TEST_DAT == 20
TEST(LmrCreate, S_AddressTypes) {
  RunAlone([] {
    Side side;
    char bytes[64];
    DAT_REGION_DESCRIPTION region;
    region.for_va = bytes;
    DAT_LMR_HANDLE lmr;
    auto create = [&](int type) {
      return dat_lmr_create(side.ia, DAT_MEM_TYPE_VIRTUAL, region, 64, side.pz,
                            DAT_MEM_PRIV_ALL_FLAG, static_cast<DAT_VA_TYPE>(type), &lmr, nullptr,
                            nullptr, nullptr, nullptr);
    };
    EXPECT_EQ(side.attributes.zb_supported, DAT_TRUE);
    EXPECT_TRUE(Fails(create(9), DAT_INVALID_PARAMETER, DAT_INVALID_ARG7));
    std::swap(side.ia, side.pz);
    EXPECT_TRUE(Fails(create(9), DAT_INVALID_HANDLE)) << "handles are looked at first";
    std::swap(side.ia, side.pz);
    Must(create(DAT_VA_TYPE_VA));
    Must(create(DAT_VA_TYPE_ZB));
    DAT_LMR_PARAM param;
    Must(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
    EXPECT_EQ(param.va_type, DAT_VA_TYPE_ZB);
    DAT_LMR_TRIPLET triplet = {0, 64, param.lmr_context};
    Must(dat_lmr_sync_rdma_read(side.ia, &triplet, 1));
    triplet.virtual_address = 1;
    EXPECT_TRUE(Fails(dat_lmr_sync_rdma_read(side.ia, &triplet, 1), DAT_INVALID_PARAMETER));
  });
}

// A device may take the bytes of a short message at once, at the address that it is given.
TEST(LmrCreate, S_MessagesFromAZeroBasedRegion) {
  RunPair(
      [](Peer& peer) {
        AcceptingSide side(peer);
        Memory memory(side, 8192);
        for (const size_t length : {8, 8192}) {
          DAT_LMR_TRIPLET local = memory.Local(0, length);
          Must(dat_ep_post_recv(side.ep, 1, &local, Cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
          peer.Tell("posted");
          EXPECT_EQ(NextCompletion(side.receive_evd).transfered_length, length);
          EXPECT_EQ(std::vector<uint8_t>(memory.bytes.begin(), memory.bytes.begin() + length),
                    Pattern(length));
        }
      },
      [](Peer& peer) {
        ConnectingSide side(peer);
        // A device can count a region from 0 if the region begins at a page.
        void* const page = aligned_alloc(4096, 8192);
        DAT_REGION_DESCRIPTION region = {};
        region.for_va = page;
        DAT_LMR_HANDLE lmr;
        DAT_LMR_CONTEXT context;
        Must(dat_lmr_create(side.ia, DAT_MEM_TYPE_VIRTUAL, region, 8192, side.pz,
                            DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB, &lmr, &context, nullptr, nullptr,
                            nullptr));
        for (const size_t length : {8, 8192}) {
          const std::vector<uint8_t> pattern = Pattern(length);
          std::copy(pattern.begin(), pattern.end(), static_cast<uint8_t*>(page));
          peer.Await("posted");
          DAT_LMR_TRIPLET local = Triplet(nullptr, length, context);
          Must(dat_ep_post_send(side.ep, 1, &local, Cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
          EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
        }
        Must(dat_lmr_free(lmr));
        free(page);
      });
}
#endif

TEST(LmrSync, C039_SegmentsAreChecked) {
  RunAlone([] {
    Side side;
    Memory memory(side, 4096);
    for (auto* sync : {dat_lmr_sync_rdma_read, dat_lmr_sync_rdma_write}) {
      DAT_LMR_TRIPLET segments[] = {memory.Local(0, 4096), memory.Local(4000, 96),
                                    Triplet(nullptr, 0, 0xdeadbeef)};
      Must(sync(side.ia, segments, 3));
      Must(sync(side.ia, nullptr, 0));
      EXPECT_TRUE(Fails(sync(side.ia, nullptr, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
      segments[1] = memory.Local(4000, 97);
      EXPECT_TRUE(Fails(sync(side.ia, segments, 3), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
      segments[1] = Triplet(memory.bytes.data() - 1, 10, memory.lmr_context);
      EXPECT_TRUE(Fails(sync(side.ia, segments, 3), DAT_INVALID_PARAMETER));
      segments[1] = Triplet(memory.bytes.data(), 10, memory.lmr_context + 1);
      EXPECT_TRUE(Fails(sync(side.ia, segments, 3), DAT_INVALID_PARAMETER));
    }
    Must(dat_lmr_free(memory.lmr));
    DAT_LMR_TRIPLET gone = memory.Local(0, 1);
    EXPECT_TRUE(Fails(dat_lmr_sync_rdma_read(side.ia, &gone, 1), DAT_INVALID_PARAMETER));
  });
}

#if VIADUCT_TEST_DAT == 12
// A region longer than a segment of 2.0 can be.
TEST(LmrSync, C039_LongSegments) {
  if (Wire() == "rdma") GTEST_SKIP() << "an RDMA device pins what is registered";
  RunAlone([] {
    Side side;
    constexpr DAT_VLEN kBytes = DAT_VLEN{8} << 30;
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    DAT_LMR_HANDLE lmr;
    Must(Create(side, memory, kBytes, DAT_MEM_PRIV_ALL_FLAG, DAT_MEM_TYPE_VIRTUAL, &lmr));
    DAT_LMR_PARAM param;
    Must(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
    for (auto* sync : {dat_lmr_sync_rdma_read, dat_lmr_sync_rdma_write}) {
      DAT_LMR_TRIPLET segment = Triplet(memory, 0, param.lmr_context);
      for (DAT_VLEN length : {kBytes / 2, kBytes - 1, kBytes}) {
        segment.segment_length = length;
        Must(sync(side.ia, &segment, 1));
      }
      segment.segment_length = kBytes + 1;
      EXPECT_TRUE(Fails(sync(side.ia, &segment, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    }
    Must(dat_lmr_free(lmr));
    munmap(memory, kBytes);
  });
}
#endif

// Does one RDMA write or read of memory with these privileges, by the memory's true context.
void RemoteAccess(int privileges, bool write, bool allowed) {
  RunPair(
      [=](Peer& peer) {
        Side side;
        Memory memory(side, 256, static_cast<DAT_MEM_PRIV_FLAGS>(privileges));
        DAT_EP_HANDLE ep = side.NewEp();
        side.AcceptFrom(peer, ep, Port(0));
        peer.Send(RemoteTriplet(reinterpret_cast<uintptr_t>(memory.bytes.data()), 256,
                                memory.lmr_context));
        if (!allowed) {
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
          EXPECT_EQ(memory.bytes, std::vector<uint8_t>(256));
        }
        if (allowed && write)
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
        peer.Await("done");
        if (allowed && write) {
          EXPECT_EQ(memory.bytes, Pattern(256));
        }
      },
      [=](Peer& peer) {
        Side side;
        Memory memory(side, 256);
        const std::vector<uint8_t> pattern = Pattern(256);
        std::copy(pattern.begin(), pattern.end(), memory.bytes.begin());
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        DAT_LMR_TRIPLET local = memory.Local(0, 256);
        Must((write ? dat_ep_post_rdma_write : dat_ep_post_rdma_read)(
            ep, 1, &local, Cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG));
        if (allowed) {
          EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
          // What was sent before a graceful disconnect is in place before the peer sees the end.
          if (write) {
            Must(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
            NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
          }
        } else {
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
          EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
          const auto done = NextCompletion(side.request_evd);
          // On iWARP a write is complete once it has left; only a read is told of the refusal.
          if (!write) {
            EXPECT_EQ(done.status, DAT_DTO_ERR_REMOTE_ACCESS);
          }
        }
        peer.Tell("done");
      });
}

TEST(Lmr, C046_ReadWithPrivilege) { RemoteAccess(0x03, false, true); }
TEST(Lmr, C046_WriteWithPrivilege) { RemoteAccess(0x30, true, true); }
TEST(Lmr, C046_ReadWithoutPrivilege) { RemoteAccess(0x31, false, false); }
TEST(Lmr, C046_WriteWithoutPrivilege) { RemoteAccess(0x13, true, false); }
TEST(Lmr, C033_ReadOfLocalMemory) { RemoteAccess(0x11, false, false); }
TEST(Lmr, C033_WriteOfLocalMemory) { RemoteAccess(0x11, true, false); }

TEST(Lmr, C038_FreedMemoryIsGoneForThePeer) {
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 256);
        DAT_EP_HANDLE ep = side.NewEp();
        side.AcceptFrom(peer, ep, Port(0));
        const DAT_RMR_TRIPLET remote = memory.Remote();
        Must(dat_lmr_free(memory.lmr));
        peer.Send(remote);
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        Memory memory(side, 256);
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        DAT_LMR_TRIPLET local = memory.Local(0, 256);
        Must(dat_ep_post_rdma_read(ep, 1, &local, Cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
        EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_ERR_REMOTE_ACCESS);
        peer.Tell("done");
      });
}

}  // namespace
}  // namespace viaduct::tests
