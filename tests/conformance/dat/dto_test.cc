// Data transfer: dat_ep_post_*; DAT checklist 116-127.
#include "tests/conformance/dat/side.h"

namespace viaduct::tests {
namespace {

constexpr auto kDefault = DAT_COMPLETION_DEFAULT_FLAG;

void Fill(Memory& memory, uint8_t seed = 1) {
  const std::vector<uint8_t> pattern = Pattern(memory.bytes.size(), seed);
  std::copy(pattern.begin(), pattern.end(), memory.bytes.begin());
}

// Runs both bodies on connected endpoints, with `bytes` of memory each; the client's is filled.
void Connected(size_t bytes,
               const std::function<void(Peer&, Side&, DAT_EP_HANDLE, Memory&)>& server,
               const std::function<void(Peer&, Side&, DAT_EP_HANDLE, Memory&)>& client) {
  RunPair(
      [&](Peer& peer) {
        Side side;
        Memory memory(side, bytes);
        DAT_EP_HANDLE ep = side.NewEp();
        side.AcceptFrom(peer, ep, Port(0));
        server(peer, side, ep, memory);
      },
      [&](Peer& peer) {
        Side side;
        Memory memory(side, bytes);
        Fill(memory);
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        client(peer, side, ep, memory);
      });
}

TEST(Dto, C116_SendOfEverySize) {
  static constexpr size_t kSizes[] = {0,    1,    7,     56,    57,     64,     4096,
                                      8191, 8192, 65536, 65537, 262144, 1000001};
  Connected(
      1000001,
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        for (size_t size : kSizes) {
          std::fill(memory.bytes.begin(), memory.bytes.end(), 0);
          // Three segments of uneven length, filled in their order, which is not the memory's.
          const size_t first = size / 3, second = size / 2, rest = size - first;
          DAT_LMR_TRIPLET pieces[] = {memory.Local(rest, first), memory.Local(0, second),
                                      memory.Local(second, rest - second)};
          Must(dat_ep_post_recv(ep, 3, pieces, Cookie(size), kDefault));
          peer.Tell("posted");
          const auto done = NextCompletion(side.receive_evd);
          EXPECT_EQ(done.ep_handle, ep);
          EXPECT_EQ(done.status, DAT_DTO_SUCCESS);
          EXPECT_EQ(done.user_cookie.as_64, size);
          EXPECT_EQ(done.transfered_length, size);
          const std::vector<uint8_t> pattern = Pattern(1000001);
          std::rotate(memory.bytes.begin(), memory.bytes.begin() + static_cast<long>(rest),
                      memory.bytes.begin() + static_cast<long>(size));
          EXPECT_TRUE(std::equal(pattern.begin(), pattern.begin() + static_cast<long>(size),
                                 memory.bytes.begin()))
              << size;
        }
        peer.Await("done");
      },
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        for (size_t size : kSizes) {
          peer.Await("posted");
          DAT_LMR_TRIPLET pieces[] = {memory.Local(0, size / 2),
                                      memory.Local(size / 2, size - size / 2)};
          Must(dat_ep_post_send(ep, size == 0 ? 0 : 2, size == 0 ? nullptr : pieces, Cookie(size),
                                kDefault));
          const auto done = NextCompletion(side.request_evd);
          EXPECT_EQ(done.status, DAT_DTO_SUCCESS);
          EXPECT_EQ(done.user_cookie.as_64, size);
        }
        peer.Tell("done");
      });
}

// A byte in each of as many segments as there may be.
TEST(Dto, C116_AsManySegmentsAsThereMayBe) {
  static constexpr size_t kStride = 3;
  const auto side_with_all = [](Side& side) {
    DAT_EP_ATTR attributes = {};
    attributes.max_recv_iov = attributes.max_request_iov = side.attributes.max_iov_segments_per_dto;
    return side.NewEp(&attributes);
  };
  const auto pieces = [](const Side& side, const Memory& memory, bool backwards) {
    const auto count = static_cast<size_t>(side.attributes.max_iov_segments_per_dto);
    std::vector<DAT_LMR_TRIPLET> iov;
    for (size_t i = 0; i < count; ++i) {
      iov.push_back(memory.Local(kStride * (backwards ? count - 1 - i : i), 1));
    }
    return iov;
  };
  RunPair(
      [&](Peer& peer) {
        Side side;
        Memory memory(side,
                      kStride * static_cast<size_t>(side.attributes.max_iov_segments_per_dto));
        DAT_EP_HANDLE ep = side_with_all(side);
        std::vector<DAT_LMR_TRIPLET> iov = pieces(side, memory, true);
        const auto count = static_cast<DAT_COUNT>(iov.size());
        Must(dat_ep_post_recv(ep, count, iov.data(), Cookie(1), kDefault));
        side.AcceptFrom(peer, ep, Port(0));
        const auto done = NextCompletion(side.receive_evd);
        EXPECT_EQ(done.status, DAT_DTO_SUCCESS);
        EXPECT_EQ(done.transfered_length, iov.size());
        std::vector<uint8_t> expected(memory.bytes.size());
        const std::vector<uint8_t> pattern = Pattern(memory.bytes.size());
        for (size_t i = 0; i < iov.size(); ++i) {
          expected[kStride * (iov.size() - 1 - i)] = pattern[kStride * i];
        }
        EXPECT_EQ(memory.bytes, expected);
        peer.Tell("done");
      },
      [&](Peer& peer) {
        Side side;
        Memory memory(side,
                      kStride * static_cast<size_t>(side.attributes.max_iov_segments_per_dto));
        Fill(memory);
        DAT_EP_HANDLE ep = side_with_all(side);
        side.ConnectTo(peer, ep, Port(0));
        std::vector<DAT_LMR_TRIPLET> iov = pieces(side, memory, false);
        Must(dat_ep_post_send(ep, static_cast<DAT_COUNT>(iov.size()), iov.data(), Cookie(1),
                              kDefault));
        EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
        peer.Await("done");
      });
}

TEST(Dto, C117_ReceiveTooSmall) {
  Connected(
      100,
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        DAT_LMR_TRIPLET piece = memory.Local(0, 99);
        Must(dat_ep_post_recv(ep, 1, &piece, Cookie(1), kDefault));
        peer.Tell("posted");
        EXPECT_EQ(NextCompletion(side.receive_evd).status, DAT_DTO_ERR_LOCAL_LENGTH);
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
        peer.Await("done");
      },
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        peer.Await("posted");
        DAT_LMR_TRIPLET piece = memory.Local(0, 100);
        Must(dat_ep_post_send(ep, 1, &piece, Cookie(1), kDefault));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
        peer.Tell("done");
      });
}

TEST(Dto, C118_RdmaToExactRanges) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kOrderedByThePeer;
  constexpr size_t kBytes = 70000;
  Connected(
      kBytes,
      [](Peer& peer, Side&, DAT_EP_HANDLE, Memory& memory) {
        peer.Send(memory.Remote());
        peer.Await("written");
        std::vector<uint8_t> expected(kBytes);
        const std::vector<uint8_t> pattern = Pattern(kBytes);
        std::copy(pattern.begin(), pattern.begin() + 100, expected.begin() + 1000);
        std::copy(pattern.begin(), pattern.begin() + 60000, expected.begin() + 5000);
        EXPECT_EQ(memory.bytes, expected);
        Fill(memory, 55);
        peer.Tell("filled");
        peer.Await("done");
      },
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        const auto whole = peer.Receive<DAT_RMR_TRIPLET>();
        auto range = [&](size_t offset, size_t length) {
          DAT_RMR_TRIPLET triplet = whole;
#if VIADUCT_TEST_DAT == 12
          triplet.target_address += offset;
#else
          triplet.virtual_address += offset;
#endif
          triplet.segment_length = static_cast<decltype(triplet.segment_length)>(length);
          return triplet;
        };
        DAT_LMR_TRIPLET small = memory.Local(0, 100);
        DAT_RMR_TRIPLET target = range(1000, 200);  // more room than is written
        Must(dat_ep_post_rdma_write(ep, 1, &small, Cookie(1), &target, kDefault));
        DAT_LMR_TRIPLET pieces[] = {memory.Local(0, 30001), memory.Local(30001, 29999)};
        target = range(5000, 60000);
        Must(dat_ep_post_rdma_write(ep, 2, pieces, Cookie(2), &target, kDefault));
        // A read after the writes shows that they are in place.
        std::vector<uint8_t> before(memory.bytes);
        DAT_LMR_TRIPLET last = memory.Local(kBytes - 1, 1);
        target = range(0, 1);
        Must(dat_ep_post_rdma_read(ep, 1, &last, Cookie(3), &target, kDefault));
        for (uint64_t i = 1; i <= 3; ++i) {
          const auto done = NextCompletion(side.request_evd);
          EXPECT_EQ(done.user_cookie.as_64, i);
          EXPECT_EQ(done.status, DAT_DTO_SUCCESS);
        }
        peer.Tell("written");
        peer.Await("filled");
        target = range(3, 60000);
        DAT_LMR_TRIPLET sink[] = {memory.Local(10, 20000), memory.Local(20010, 49000)};
        Must(dat_ep_post_rdma_read(ep, 2, sink, Cookie(4), &target, kDefault));
        const auto done = NextCompletion(side.request_evd);
        EXPECT_EQ(done.status, DAT_DTO_SUCCESS);
        EXPECT_EQ(done.transfered_length, 60000u);
        const std::vector<uint8_t> pattern = Pattern(kBytes, 55);
        EXPECT_TRUE(
            std::equal(pattern.begin() + 3, pattern.begin() + 60003, memory.bytes.begin() + 10));
        EXPECT_EQ(memory.bytes[9], before[9]);
        EXPECT_EQ(memory.bytes[60010], before[60010]);
        peer.Tell("done");
      });
}

TEST(Dto, C118_OutOfRange) {
  Connected(
      4096,
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        peer.Send(RemoteTriplet(reinterpret_cast<uintptr_t>(memory.bytes.data()) + 1, 4096,
                                memory.rmr_context));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
        peer.Await("done");
      },
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        DAT_LMR_TRIPLET local = memory.Local(0, 4096);
        Must(dat_ep_post_rdma_read(ep, 1, &local, Cookie(1), &remote, kDefault));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
        EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_ERR_REMOTE_ACCESS);
        peer.Tell("done");
      });
}

// Not a byte is written, although half of them would fit. A write is complete once it has left, so
// its own status may be success or an error.
TEST(Dto, C118_WriteOutOfRange) {
  constexpr size_t kRegion = 64;
  Connected(
      2 * kRegion,
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        DAT_REGION_DESCRIPTION region;
        region.for_va = memory.bytes.data();
        DAT_LMR_HANDLE lmr;
        DAT_RMR_CONTEXT context;
        Must(CreateLmr(side.ia, DAT_MEM_TYPE_VIRTUAL, region, kRegion, side.pz,
                       DAT_MEM_PRIV_ALL_FLAG, &lmr, nullptr, &context, nullptr, nullptr));
        peer.Send(RemoteTriplet(reinterpret_cast<uintptr_t>(memory.bytes.data()) + kRegion / 2,
                                kRegion, context));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
        EXPECT_EQ(memory.bytes, std::vector<uint8_t>(2 * kRegion));
        peer.Await("done");
        Must(dat_lmr_free(lmr));
      },
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        DAT_LMR_TRIPLET local = memory.Local(0, kRegion);
        Must(dat_ep_post_rdma_write(ep, 1, &local, Cookie(1), &remote, kDefault));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
        peer.Tell("done");
      });
}

TEST(Dto, C119_SuppressHidesSuccessOnly) {
  Connected(
      64,
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory&) {
        for (uint64_t i = 0; i < 10; ++i) side.PostReceive(ep, i);
        peer.Tell("posted");
        for (uint64_t i = 0; i < 10; ++i) {
          EXPECT_EQ(NextCompletion(side.receive_evd).user_cookie.as_64, i);
        }
        peer.Tell("received");
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
      },
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory&) {
        peer.Await("posted");
        for (uint64_t i = 0; i < 9; ++i) {
          Must(side.TrySend(ep, i, DAT_COMPLETION_SUPPRESS_FLAG));
        }
        Must(side.TrySend(ep, 9));
        EXPECT_EQ(NextCompletion(side.request_evd).user_cookie.as_64, 9u);
        EXPECT_TRUE(IsEmpty(side.request_evd));
        peer.Await("received");
        Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
        Must(side.TrySend(ep, 10, DAT_COMPLETION_SUPPRESS_FLAG));
        const auto done = NextCompletion(side.request_evd);
        EXPECT_EQ(done.user_cookie.as_64, 10u);
        EXPECT_EQ(done.status, DAT_DTO_ERR_FLUSHED);
      });
}

TEST(Dto, C119_OfReadsAndWritesToo) {
  Connected(
      64,
      [](Peer& peer, Side&, DAT_EP_HANDLE, Memory& memory) {
        peer.Send(memory.Remote());
        peer.Await("done");
      },
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        DAT_LMR_TRIPLET local = memory.Local(0, 64);
        const auto post = [&](bool write, uint64_t cookie, DAT_COMPLETION_FLAGS flags) {
          Must((write ? dat_ep_post_rdma_write : dat_ep_post_rdma_read)(
              ep, 1, &local, Cookie(cookie), &remote, flags));
        };
        for (const bool write : {true, false}) {
          post(write, 1, DAT_COMPLETION_SUPPRESS_FLAG);
          post(write, 2, kDefault);
          EXPECT_EQ(NextCompletion(side.request_evd).user_cookie.as_64, 2u);
          EXPECT_TRUE(IsEmpty(side.request_evd));
        }
        Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
        for (const bool write : {true, false}) {
          post(write, 3, DAT_COMPLETION_SUPPRESS_FLAG);
          const auto done = NextCompletion(side.request_evd);
          EXPECT_EQ(done.user_cookie.as_64, 3u);
          EXPECT_EQ(done.status, DAT_DTO_ERR_FLUSHED);
        }
        peer.Tell("done");
      });
}

TEST(Dto, C120_Flags) {
  Connected(
      64, [](Peer& peer, Side&, DAT_EP_HANDLE, Memory&) { peer.Await("done"); },
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        DAT_LMR_TRIPLET piece = memory.Local(0, 1);
        DAT_RMR_TRIPLET remote = memory.Remote();
        for (int flags : {int{DAT_COMPLETION_UNSIGNALLED_FLAG}, 0x100}) {
          const auto bad = static_cast<DAT_COMPLETION_FLAGS>(flags);
          EXPECT_TRUE(Fails(dat_ep_post_send(ep, 1, &piece, Cookie(1), bad), DAT_INVALID_PARAMETER,
                            DAT_INVALID_ARG5));
          EXPECT_TRUE(Fails(dat_ep_post_rdma_write(ep, 1, &piece, Cookie(1), &remote, bad),
                            DAT_INVALID_PARAMETER, DAT_INVALID_ARG6));
          EXPECT_TRUE(Fails(dat_ep_post_rdma_read(ep, 1, &piece, Cookie(1), &remote, bad),
                            DAT_INVALID_PARAMETER, DAT_INVALID_ARG6));
        }
        for (int flags : {int{DAT_COMPLETION_UNSIGNALLED_FLAG}, int{DAT_COMPLETION_SUPPRESS_FLAG},
                          int{DAT_COMPLETION_BARRIER_FENCE_FLAG}, 0x100}) {
          EXPECT_TRUE(Fails(
              dat_ep_post_recv(ep, 1, &piece, Cookie(1), static_cast<DAT_COMPLETION_FLAGS>(flags)),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
        }
        EXPECT_TRUE(IsEmpty(side.request_evd));
        EXPECT_TRUE(IsEmpty(side.receive_evd));
        peer.Tell("done");
      });
}

TEST(Dto, S_Segments) {
  Connected(
      64, [](Peer& peer, Side&, DAT_EP_HANDLE, Memory&) { peer.Await("done"); },
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        std::vector<DAT_LMR_TRIPLET> many(200, memory.Local(0, 1));
        const DAT_RMR_TRIPLET remote = memory.Remote();
        const DAT_COUNT limit = ParametersOf(ep).ep_attr.max_request_iov;
        for (DAT_COUNT count : {DAT_COUNT{-1}, limit + 1, DAT_COUNT{200}}) {
          EXPECT_TRUE(Fails(dat_ep_post_send(ep, count, many.data(), Cookie(1), kDefault),
                            DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
          EXPECT_TRUE(Fails(dat_ep_post_recv(ep, count, many.data(), Cookie(1), kDefault),
                            DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
        }
        EXPECT_TRUE(Fails(dat_ep_post_send(ep, 1, nullptr, Cookie(1), kDefault),
                          DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
        EXPECT_TRUE(Fails(dat_ep_post_recv(ep, 1, nullptr, Cookie(1), kDefault),
                          DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
        EXPECT_TRUE(Fails(dat_ep_post_rdma_read(ep, 1, many.data(), Cookie(1), nullptr, kDefault),
                          DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
        // The destination is too small.
        DAT_RMR_TRIPLET small = remote;
        small.segment_length = 0;
        EXPECT_TRUE(Fails(dat_ep_post_rdma_write(ep, 1, many.data(), Cookie(1), &small, kDefault),
                          DAT_LENGTH_ERROR));
        EXPECT_TRUE(Fails(dat_ep_post_rdma_read(ep, 1, many.data(), Cookie(1), &remote, kDefault),
                          DAT_LENGTH_ERROR));
        EXPECT_TRUE(IsEmpty(side.request_evd));
        peer.Tell("done");
      });
}

TEST(Dto, C122_FenceWaitsForReads) {
  constexpr size_t kBytes = 1 << 20;
  Connected(
      kBytes,
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        Fill(memory, 9);
        side.PostReceive(ep, 1);
        peer.Send(memory.Remote());
        // The message comes after the read, so the memory may change now.
        EXPECT_EQ(NextCompletion(side.receive_evd).status, DAT_DTO_SUCCESS);
        std::fill(memory.bytes.begin(), memory.bytes.end(), 0);
        peer.Tell("overwritten");
        peer.Await("done");
      },
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        DAT_LMR_TRIPLET local = memory.Local(0, kBytes);
        Must(dat_ep_post_rdma_read(ep, 1, &local, Cookie(1), &remote, kDefault));
        Must(side.TrySend(ep, 2, DAT_COMPLETION_BARRIER_FENCE_FLAG));
        peer.Await("overwritten");
        for (uint64_t i = 1; i <= 2; ++i) {
          const auto done = NextCompletion(side.request_evd);
          EXPECT_EQ(done.user_cookie.as_64, i);
          EXPECT_EQ(done.status, DAT_DTO_SUCCESS);
        }
        EXPECT_EQ(memory.bytes, Pattern(kBytes, 9));
        peer.Tell("done");
      });
}

TEST(Dto, C123_QueueLimits) {
  DAT_EP_ATTR attributes = {};
  attributes.max_recv_dtos = 8;
  attributes.max_request_dtos = 8;
  RunPair(
      [&](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp(&attributes);
        for (uint64_t i = 0; i < 8; ++i) side.PostReceive(ep, i);
        DAT_LMR_TRIPLET none = Triplet(nullptr, 0, 0);
        EXPECT_TRUE(
            Fails(dat_ep_post_recv(ep, 1, &none, Cookie(8), kDefault), DAT_INSUFFICIENT_RESOURCES));
        side.AcceptFrom(peer, ep, Port(0));
        for (uint64_t i = 0; i < 8; ++i) {
          EXPECT_EQ(NextCompletion(side.receive_evd).user_cookie.as_64, i);
        }
        peer.Await("done");
      },
      [&](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp(&attributes);
        side.ConnectTo(peer, ep, Port(0));
        // Completions that nobody has taken still occupy the queue.
        for (uint64_t i = 0; i < 8; ++i) Must(side.TrySend(ep, i));
        EXPECT_TRUE(Fails(side.TrySend(ep, 8), DAT_INSUFFICIENT_RESOURCES));
        for (uint64_t i = 0; i < 8; ++i) {
          EXPECT_EQ(NextCompletion(side.request_evd).user_cookie.as_64, i);
        }
        peer.Tell("done");
      });
}

TEST(Dto, C124_StateOfPosts) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    EXPECT_TRUE(Fails(side.TrySend(ep, 1), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED));
    DAT_RMR_TRIPLET remote = RemoteTriplet(0, 0, 0);
    EXPECT_TRUE(Fails(dat_ep_post_rdma_write(ep, 0, nullptr, Cookie(1), &remote, kDefault),
                      DAT_INVALID_STATE));
    EXPECT_TRUE(Fails(dat_ep_post_rdma_read(ep, 0, nullptr, Cookie(1), &remote, kDefault),
                      DAT_INVALID_STATE));
    side.PostReceive(ep, 2);
    DAT_RSP_HANDLE rsp;
    Must(dat_rsp_create(side.ia, Port(0), ep, side.cr_evd, &rsp));
    side.PostReceive(ep, 3);
    EXPECT_TRUE(Fails(side.TrySend(ep, 1), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED));
    Must(dat_rsp_free(rsp));
    side.Connect(ep, Port(0));
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep);
    side.PostReceive(ep, 4);
    side.ExpectFlushedReceives(ep, 2, 4);
    EXPECT_TRUE(IsEmpty(side.request_evd));
  });
}

// Nothing but a receive can be posted; posts one, with the cookie 1.
void ExpectReceivesOnly(Side& side, DAT_EP_HANDLE ep, DAT_EP_STATE state, DAT_UINT32 subtype) {
  EXPECT_EQ(StateOf(ep), state);
  DAT_RMR_TRIPLET remote = RemoteTriplet(0, 0, 0);
  EXPECT_TRUE(Fails(side.TrySend(ep, 2), DAT_INVALID_STATE, subtype));
  EXPECT_TRUE(Fails(dat_ep_post_rdma_write(ep, 0, nullptr, Cookie(2), &remote, kDefault),
                    DAT_INVALID_STATE, subtype));
  EXPECT_TRUE(Fails(dat_ep_post_rdma_read(ep, 0, nullptr, Cookie(2), &remote, kDefault),
                    DAT_INVALID_STATE, subtype));
  side.PostReceive(ep, 1);
  EXPECT_EQ(StateOf(ep), state);
}

TEST(Dto, C124_StateOfPostsWhilePending) {
  RunPair(
      [](Peer& peer) {
        Side side;
        const DAT_EP_HANDLE ep = side.NewEp();
        DAT_RSP_HANDLE rsp;
        Must(dat_rsp_create(side.ia, Port(0), ep, side.cr_evd, &rsp));
        peer.Tell("listening");
        const DAT_CR_HANDLE request = NextRequest(side.cr_evd).cr_handle;
        ExpectReceivesOnly(side, ep, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,
                           DAT_INVALID_STATE_EP_PASSCONNPENDING);
        peer.Await("looked");
        Must(dat_cr_accept(request, DAT_HANDLE_NULL, 0, nullptr));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        EXPECT_EQ(NextCompletion(side.receive_evd).user_cookie.as_64, 1u);
        Must(side.TrySend(ep, 3));
        EXPECT_EQ(NextCompletion(side.request_evd).user_cookie.as_64, 3u);
        peer.Await("received");
      },
      [](Peer& peer) {
        Side side;
        const DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0));
        ExpectReceivesOnly(side, ep, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING,
                           DAT_INVALID_STATE_EP_ACTCONNPENDING);
        peer.Tell("looked");
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        Must(side.TrySend(ep, 3));
        EXPECT_EQ(NextCompletion(side.request_evd).user_cookie.as_64, 3u);
        EXPECT_EQ(NextCompletion(side.receive_evd).user_cookie.as_64, 1u);
        peer.Tell("received");
      });
}

TEST(Dto, C125_C127_CompletionsInPostingOrder) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kOrderedByThePeer;
  static constexpr uint64_t kRounds = 50;
  Connected(
      4096,
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        for (uint64_t i = 0; i < kRounds; ++i) side.PostReceive(ep, i);
        peer.Send(memory.Remote());
        for (uint64_t i = 0; i < kRounds; ++i) {
          const auto done = NextCompletion(side.receive_evd);
          EXPECT_EQ(done.user_cookie.as_64, i);
#if VIADUCT_TEST_DAT == 20
          EXPECT_EQ(done.operation, DAT_DTO_RECEIVE);
#endif
        }
        peer.Await("done");
      },
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        DAT_LMR_TRIPLET local = memory.Local(0, 4096);
        for (uint64_t i = 0; i < kRounds; ++i) {
          Must(dat_ep_post_rdma_write(ep, 1, &local, Cookie(3 * i), &remote, kDefault));
          Must(dat_ep_post_rdma_read(ep, 1, &local, Cookie(3 * i + 1), &remote, kDefault));
          Must(side.TrySend(ep, 3 * i + 2));
        }
        for (uint64_t i = 0; i < 3 * kRounds; ++i) {
          const auto done = NextCompletion(side.request_evd);
          EXPECT_EQ(done.user_cookie.as_64, i);
          EXPECT_EQ(done.status, DAT_DTO_SUCCESS);
#if VIADUCT_TEST_DAT == 20
          const DAT_DTOS operations[] = {DAT_DTO_RDMA_WRITE, DAT_DTO_RDMA_READ, DAT_DTO_SEND};
          EXPECT_EQ(done.operation, operations[i % 3]);
#endif
        }
        peer.Tell("done");
      });
}

TEST(Dto, C126_EmptySegmentsMayBeGarbage) {
  Connected(
      64,
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        DAT_LMR_TRIPLET pieces[] = {Triplet(reinterpret_cast<void*>(0x1234), 0, 0xdeadbeef),
                                    memory.Local(0, 64), Triplet(nullptr, 0, 0xffffffff)};
        Must(dat_ep_post_recv(ep, 3, pieces, Cookie(1), kDefault));
        peer.Tell("posted");
        const auto done = NextCompletion(side.receive_evd);
        EXPECT_EQ(done.status, DAT_DTO_SUCCESS);
        EXPECT_EQ(memory.bytes, Pattern(64));
        peer.Await("done");
      },
      [](Peer& peer, Side& side, DAT_EP_HANDLE ep, Memory& memory) {
        peer.Await("posted");
        DAT_LMR_TRIPLET pieces[] = {Triplet(nullptr, 0, 0xdeadbeef), memory.Local(0, 64)};
        Must(dat_ep_post_send(ep, 2, pieces, Cookie(1), kDefault));
        EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
        peer.Tell("done");
      });
}

}  // namespace
}  // namespace viaduct::tests
