// SHARED_VIRTUAL regions: dat_lmr_create; DAT checklist 35.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/conformance/dat/side.h"

namespace viaduct::tests {
namespace {

constexpr size_t kBytes = 8192;

// Maps memory by a name that both processes know; the server creates the file, and unlinks it.
void* Map(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags, 0600);
  EXPECT_GE(fd, 0);
  EXPECT_EQ(ftruncate(fd, kBytes), 0);
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return memory;
}

DAT_RETURN Register(const Side& side, void* memory, char (&cookie)[DAT_LMR_COOKIE_SIZE],
                    DAT_LMR_HANDLE* lmr, DAT_LMR_CONTEXT* lmr_context,
                    DAT_RMR_CONTEXT* rmr_context) {
  DAT_REGION_DESCRIPTION region;
  region.for_shared_memory.virtual_address = memory;
  region.for_shared_memory.shared_memory_id = &cookie;
  return CreateLmr(side.ia, DAT_MEM_TYPE_SHARED_VIRTUAL, region, kBytes, side.pz,
                   DAT_MEM_PRIV_ALL_FLAG, lmr, lmr_context, rmr_context, nullptr, nullptr);
}

TEST(SharedLmr, C035_TwoProcessesOneRegion) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kOrderedByThePeer;
  RunPair(
      [](Peer& peer) {
        Side side;
        char path[] = "/dev/shm/viaduct-test-XXXXXX";
        close(mkstemp(path));
        auto* memory = static_cast<uint8_t*>(Map(path, O_RDWR));
        char cookie[DAT_LMR_COOKIE_SIZE];
        std::memset(cookie, 'k', sizeof cookie);
        DAT_LMR_HANDLE lmr;
        DAT_LMR_CONTEXT lmr_context;
        DAT_RMR_CONTEXT rmr_context;
        Must(Register(side, memory, cookie, &lmr, &lmr_context, &rmr_context));
        // All 40 bytes of the cookie count: another cookie is another region.
        char other[DAT_LMR_COOKIE_SIZE];
        std::memcpy(other, cookie, sizeof other);
        other[DAT_LMR_COOKIE_SIZE - 1] = 'x';
        DAT_LMR_HANDLE second;
        DAT_RMR_CONTEXT second_context;
        Must(Register(side, memory, other, &second, nullptr, &second_context));
        EXPECT_NE(second_context, rmr_context);
        DAT_LMR_PARAM param;
        Must(dat_lmr_query(second, DAT_LMR_FIELD_ALL, &param));
        EXPECT_EQ(param.mem_type, DAT_MEM_TYPE_SHARED_VIRTUAL);
        EXPECT_EQ(param.region_desc.for_shared_memory.virtual_address, memory);
        EXPECT_EQ(std::memcmp(param.region_desc.for_shared_memory.shared_memory_id, other, 40), 0);
        Must(dat_lmr_free(second));
        peer.Send(path);
        peer.Await("registered");
        unlink(path);
        // The client's region is the same memory: what RDMA writes there appears here.
        DAT_EP_HANDLE ep = side.NewEp();
        side.AcceptFrom(peer, ep, Port(0));
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        memory[0] = 0x42;
        DAT_LMR_TRIPLET local = Triplet(memory, 1, lmr_context);
        DAT_RMR_TRIPLET target = remote;
        target.segment_length = 1;
        Must(
            dat_ep_post_rdma_write(ep, 1, &local, Cookie(1), &target, DAT_COMPLETION_DEFAULT_FLAG));
        EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
        Must(dat_ep_post_rdma_read(ep, 1, &local, Cookie(2), &target, DAT_COMPLETION_DEFAULT_FLAG));
        EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
        EXPECT_EQ(memory[100], 0x42);
        peer.Tell("end");
        Must(dat_lmr_free(lmr));
      },
      [](Peer& peer) {
        Side side;
        struct Path {
          char text[29];
        };
        const auto path = peer.Receive<Path>();
        auto* memory = static_cast<uint8_t*>(Map(path.text, O_RDWR));
        char cookie[DAT_LMR_COOKIE_SIZE];
        std::memset(cookie, 'k', sizeof cookie);
        DAT_LMR_HANDLE lmr;
        DAT_LMR_CONTEXT lmr_context;
        DAT_RMR_CONTEXT rmr_context;
        Must(Register(side, memory, cookie, &lmr, &lmr_context, &rmr_context));
        peer.Tell("registered");
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        peer.Send(RemoteTriplet(reinterpret_cast<uintptr_t>(memory + 100), 100, rmr_context));
        peer.Await("end");
        EXPECT_EQ(memory[100], 0x42);
        Must(dat_lmr_free(lmr));
      });
}

TEST(SharedLmr, S_Parameters) {
  RunAlone([] {
    Side side;
    char cookie[DAT_LMR_COOKIE_SIZE] = {};
    void* const memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    DAT_REGION_DESCRIPTION region;
    DAT_LMR_HANDLE lmr;
    const auto create = [&](void* address, bool named, DAT_VLEN length) {
      region.for_shared_memory.virtual_address = address;
      region.for_shared_memory.shared_memory_id = named ? &cookie : nullptr;
      return CreateLmr(side.ia, DAT_MEM_TYPE_SHARED_VIRTUAL, region, length, side.pz,
                       DAT_MEM_PRIV_ALL_FLAG, &lmr, nullptr, nullptr, nullptr, nullptr);
    };
    EXPECT_TRUE(Fails(create(nullptr, true, kBytes), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(create(memory, false, kBytes), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(create(memory, true, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
    Must(create(memory, true, kBytes));
    Must(dat_lmr_free(lmr));
    munmap(memory, kBytes);
  });
}

TEST(SharedLmr, S_MemoryThatIsNotShared) {
  RunAlone([] {
    Side side;
    std::vector<char> bytes(kBytes);
    char cookie[DAT_LMR_COOKIE_SIZE] = {};
    DAT_LMR_HANDLE lmr;
    EXPECT_TRUE(
        Fails(Register(side, bytes.data(), cookie, &lmr, nullptr, nullptr), DAT_INVALID_STATE));
    EXPECT_TRUE(
        Fails(Register(side, nullptr, cookie, &lmr, nullptr, nullptr), DAT_INVALID_PARAMETER));
    // Memory that is partly not mapped gets another error.
    auto* const holed = static_cast<char*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    munmap(holed + kBytes / 2, kBytes / 2);
    EXPECT_TRUE(
        Fails(Register(side, holed, cookie, &lmr, nullptr, nullptr), DAT_INVALID_PARAMETER));
    munmap(holed, kBytes / 2);
  });
}

}  // namespace
}  // namespace viaduct::tests
