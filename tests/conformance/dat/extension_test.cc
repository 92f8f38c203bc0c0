// dat_extension_op of 2.0: writes with immediate data, atomics, queries by name.
#include "tests/conformance/dat/side.h"

#if VIADUCT_TEST_DAT == 20
#include <dat2/dat_ib_extensions.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace viaduct::tests {
namespace {

constexpr auto kAll = static_cast<DAT_MEM_PRIV_FLAGS>(int{DAT_MEM_PRIV_ALL_FLAG} |
                                                      int{DAT_IB_MEM_PRIV_REMOTE_ATOMIC});

std::string Attribute(const Side& side, const char* name) {
  for (DAT_COUNT i = 0; i < side.provider.num_provider_specific_attr; ++i) {
    const DAT_NAMED_ATTR& attribute = side.provider.provider_specific_attr[i];
    if (std::strcmp(attribute.name, name) == 0) return attribute.value;
  }
  return "";
}

DAT_IB_EXTENSION_EVENT_DATA ExtensionOf(const DAT_EVENT& event) {
  DAT_IB_EXTENSION_EVENT_DATA data;
  std::memcpy(&data, event.event_extension_data, sizeof data);
  return data;
}

DAT_EVENT NextExtension(DAT_EVD_HANDLE evd) {
  return Next(evd, static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT));
}

// A server with memory.
struct TargetSide : AcceptingSide {
  explicit TargetSide(Peer& peer, DAT_MEM_PRIV_FLAGS privileges = DAT_MEM_PRIV_ALL_FLAG)
      : AcceptingSide(peer), memory(*this, 256, privileges) {}
  Memory memory;
};

// Adds to the word that the peer named; the old value comes to the beginning of the memory.
DAT_EVENT AddFive(InitiatingSide& side) {
  DAT_LMR_TRIPLET local = side.memory.Local(0, 8);
  Must(dat_ib_post_fetch_and_add(side.ep, 5, &local, Cookie(1), &side.remote, 0));
  return NextExtension(side.request_evd);
}

uint64_t WordAt(const Memory& memory, size_t offset) {
  uint64_t word;
  std::memcpy(&word, memory.bytes.data() + offset, sizeof word);
  return word;
}

TEST(Extension, S_WhatThereIs) {
  RunAlone([] {
    Side side;
    EXPECT_EQ(side.attributes.extension_supported, DAT_EXTENSION_IB);
    EXPECT_EQ(side.attributes.extension_version, DAT_IB_EXTENSION_VERSION);
    EXPECT_EQ(Attribute(side, DAT_IB_ATTR_FETCH_AND_ADD), "TRUE");
    EXPECT_EQ(Attribute(side, DAT_IB_ATTR_CMP_AND_SWAP), "TRUE");
    EXPECT_EQ(Attribute(side, DAT_IB_ATTR_IMMED_DATA), "TRUE");
    EXPECT_EQ(Attribute(side, DAT_IB_ATTR_COUNTERS), "TRUE");
    EXPECT_EQ(Attribute(side, DAT_IB_ATTR_UD), "");
    EXPECT_EQ(Attribute(side, DAT_IB_COLL_BARRIER), "");
    DAT_EP_HANDLE ep = side.NewEp();
    EXPECT_TRUE(
        Fails(dat_ib_post_send_ud(ep, 0, nullptr, nullptr, Cookie(1), 0), DAT_NOT_IMPLEMENTED));
    EXPECT_TRUE(
        Fails(dat_extension_op(ep, DAT_IB_COLLECTIVE_BARRIER_OP, nullptr), DAT_NOT_IMPLEMENTED));
    EXPECT_TRUE(Fails(dat_extension_op(ep, 0x12345), DAT_NOT_IMPLEMENTED));
  });
}

TEST(Extension, S_QueryByName) {
  RunAlone([] {
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_IA_ATTR attributes;
    DAT_PROVIDER_ATTR provider;
    char name[] = "soft0";
    Must(dat_ib_open_query(name, &ia, DAT_IA_FIELD_ALL, &attributes, DAT_PROVIDER_FIELD_ALL,
                           &provider));
    EXPECT_STREQ(attributes.adapter_name, "soft0");
    EXPECT_EQ(provider.is_thread_safe, DAT_TRUE);
    Must(dat_ib_close_query(ia));
    EXPECT_TRUE(Fails(dat_ib_close_query(ia), DAT_INVALID_HANDLE));
  });
}

// As with every other remote privilege.
TEST(Extension, S_AtomicsAloneHaveAContext) {
  RunAlone([] {
    Side side;
    const Memory memory(side, 64, static_cast<DAT_MEM_PRIV_FLAGS>(DAT_IB_MEM_PRIV_REMOTE_ATOMIC));
    EXPECT_NE(memory.rmr_context, 0u);
    DAT_LMR_PARAM param;
    Must(dat_lmr_query(memory.lmr, DAT_LMR_FIELD_ALL, &param));
    EXPECT_EQ(param.rmr_context, memory.rmr_context);
  });
}

// On RDMA devices this is the device's own limit, for which the structures have no member.
TEST(NamedAttributes, S_SegmentsOfASharedReceiveQueue) {
  RunAlone([] {
    Side side;
    const DAT_COUNT most = std::atoi(Attribute(side, "max_recv_iov_per_srq").c_str());
    EXPECT_GT(most, 0);
    DAT_SRQ_ATTR asked = {8, most, DAT_SRQ_LW_DEFAULT};
    DAT_SRQ_HANDLE srq;
    Must(dat_srq_create(side.ia, side.pz, &asked, &srq));
    Must(dat_srq_free(srq));
    ++asked.max_recv_iov;
    EXPECT_NE(dat_srq_create(side.ia, side.pz, &asked, &srq), DAT_RETURN{DAT_SUCCESS});
  });
}

TEST(NamedAttributes, S_TheDeviceItsTransportAndTheReason) {
  RunAlone([] {
    Side side;
    for (const char* name : {"device", "transport", "reason"}) {
      EXPECT_NE(Attribute(side, name), "") << name;
    }
  });
}

TEST(Extension, S_WriteWithImmediateData) {
  RunPair(
      [](Peer& peer) {
        TargetSide side(peer);
        DAT_LMR_TRIPLET local = side.memory.Local(0, 1);
        Must(dat_ep_post_recv(side.ep, 1, &local, Cookie(5), DAT_COMPLETION_DEFAULT_FLAG));
        peer.Send(side.memory.Remote());
        const DAT_EVENT event = NextExtension(side.receive_evd);
        const auto& data = event.event_data.dto_completion_event_data;
        EXPECT_EQ(data.user_cookie.as_64, 5u);
        EXPECT_EQ(data.status, DAT_DTO_SUCCESS);
        EXPECT_EQ(data.transfered_length, 100u);
        EXPECT_EQ(static_cast<int>(data.operation), DAT_IB_DTO_RECV_IMMED);
        EXPECT_EQ(ExtensionOf(event).type, DAT_IB_RDMA_WRITE_IMMED_DATA);
        EXPECT_EQ(ExtensionOf(event).val.immed.data, 0xabcdu);
        EXPECT_EQ(side.memory.bytes[99], 0x5c);
        EXPECT_EQ(side.memory.bytes[100], 0);
        peer.Tell("end");
      },
      [](Peer& peer) {
        InitiatingSide side(peer);
        side.memory.bytes.assign(256, 0x5c);
        DAT_LMR_TRIPLET local = side.memory.Local(0, 100);
        Must(dat_ib_post_rdma_write_immed(side.ep, 1, &local, Cookie(6), &side.remote, 0xabcd,
                                          DAT_COMPLETION_DEFAULT_FLAG));
        const DAT_EVENT event = NextExtension(side.request_evd);
        EXPECT_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, 6u);
        EXPECT_EQ(ExtensionOf(event).type, DAT_IB_RDMA_WRITE_IMMED);
        EXPECT_EQ(ExtensionOf(event).status, DAT_OP_SUCCESS);
        peer.Await("end");
      });
}

// The errors give the numbers of the macros' parameters; refused requests are not counted.
TEST(Extension, S_Parameters) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    const Memory memory(side, 64, kAll);
    DAT_LMR_TRIPLET local = memory.Local(0, 16);
    DAT_RMR_TRIPLET remote = memory.Remote();
    remote.segment_length = 8;
    const auto write = [&](DAT_COUNT count, DAT_LMR_TRIPLET* from, DAT_RMR_TRIPLET* to, int flags) {
      return dat_ib_post_rdma_write_immed(ep, count, from, Cookie(1), to, 7, flags);
    };
    EXPECT_TRUE(Fails(write(-1, &local, &remote, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(write(1, nullptr, &remote, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(write(1, &local, nullptr, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
    EXPECT_TRUE(Fails(write(1, &local, &remote, 0x1000), DAT_INVALID_PARAMETER, DAT_INVALID_ARG7));
    EXPECT_TRUE(Fails(write(1, &local, &remote, 0), DAT_LENGTH_ERROR));
    local = memory.Local(0, 8);
    EXPECT_TRUE(Fails(write(1, &local, &remote, 0), DAT_INVALID_STATE));
    DAT_UINT64 written = 1;
    Must(dat_ib_query_counters(ep, DCNT_EP_POST_WRITE_IMM, &written, 0));
    EXPECT_EQ(written, 0u);
    const auto add = [&](DAT_LMR_TRIPLET* from, DAT_RMR_TRIPLET* to, int flags) {
      return dat_ib_post_fetch_and_add(ep, 5, from, Cookie(1), to, flags);
    };
    const auto swap = [&](DAT_LMR_TRIPLET* from, DAT_RMR_TRIPLET* to, int flags) {
      return dat_ib_post_cmp_and_swap(ep, 5, 6, from, Cookie(1), to, flags);
    };
    if (Attribute(side, DAT_IB_ATTR_FETCH_AND_ADD) != "TRUE") {
      EXPECT_TRUE(Fails(add(&local, &remote, 0), DAT_NOT_IMPLEMENTED));
      EXPECT_TRUE(Fails(swap(&local, &remote, 0), DAT_NOT_IMPLEMENTED));
      return;
    }
    EXPECT_TRUE(Fails(add(nullptr, &remote, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(add(&local, nullptr, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
    EXPECT_TRUE(Fails(add(&local, &remote, 0x1000), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6));
    EXPECT_TRUE(Fails(swap(nullptr, &remote, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
    EXPECT_TRUE(Fails(swap(&local, nullptr, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6));
    EXPECT_TRUE(Fails(swap(&local, &remote, 0x1000), DAT_INVALID_PARAMETER, DAT_INVALID_ARG7));
    // The buffer for the old value must have eight bytes, and so must the remote word.
    for (const DAT_SEG_LENGTH length : {7u, 9u}) {
      local = memory.Local(0, length);
      EXPECT_TRUE(Fails(add(&local, &remote, 0), DAT_LENGTH_ERROR)) << length;
      EXPECT_TRUE(Fails(swap(&local, &remote, 0), DAT_LENGTH_ERROR)) << length;
    }
    local = memory.Local(0, 8);
    remote.segment_length = 7;
    EXPECT_TRUE(Fails(add(&local, &remote, 0), DAT_LENGTH_ERROR));
    EXPECT_TRUE(Fails(swap(&local, &remote, 0), DAT_LENGTH_ERROR));
  });
}

TEST(Extension, S_Atomics) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kOrderedByThePeer;
  RunPair(
      [](Peer& peer) {
        TargetSide side(peer, kAll);
        const Memory& memory = side.memory;
        side.memory.bytes[8] = 41;
        peer.Send(RemoteTriplet(reinterpret_cast<uintptr_t>(memory.bytes.data() + 8), 8,
                                memory.rmr_context));
        peer.Await("added");
        EXPECT_EQ(WordAt(memory, 8), 46u);
        peer.Tell("swap");
        peer.Await("swapped");
        EXPECT_EQ(WordAt(memory, 8), 0x123456789abcdef0u);
        peer.Tell("end");
      },
      [](Peer& peer) {
        InitiatingSide side(peer);
        DAT_LMR_TRIPLET local = side.memory.Local(0, 8);
        DAT_EVENT event = AddFive(side);
        EXPECT_EQ(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
        EXPECT_EQ(ExtensionOf(event).type, DAT_IB_FETCH_AND_ADD);
        EXPECT_EQ(WordAt(side.memory, 0), 41u);
        peer.Tell("added");
        peer.Await("swap");
        for (const uint64_t compare : {45, 46}) {
          Must(dat_ib_post_cmp_and_swap(side.ep, compare, 0x123456789abcdef0, &local, Cookie(2),
                                        &side.remote, 0));
          event = NextExtension(side.request_evd);
          EXPECT_EQ(ExtensionOf(event).type, DAT_IB_CMP_AND_SWAP);
          EXPECT_EQ(WordAt(side.memory, 0), 46u);
        }
        DAT_UINT64 adds = 0, swaps = 0;
        Must(dat_ib_query_counters(side.ep, DCNT_EP_POST_FETCH_ADD, &adds, 0));
        Must(dat_ib_query_counters(side.ep, DCNT_EP_POST_CMP_SWAP, &swaps, 0));
        EXPECT_EQ(adds, 1u);
        EXPECT_EQ(swaps, 2u);
        peer.Tell("swapped");
        local = side.memory.Local(0, 4);
        EXPECT_TRUE(Fails(dat_ib_post_fetch_and_add(side.ep, 5, &local, Cookie(1), &side.remote, 0),
                          DAT_LENGTH_ERROR));
        peer.Await("end");
      });
}

TEST(Extension, S_AtomicsNeedTheirPrivilege) {
  RunPair(
      [](Peer& peer) {
        TargetSide side(peer);
        peer.Send(side.memory.Remote());
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, side.ep);
        peer.Tell("end");
      },
      [](Peer& peer) {
        InitiatingSide side(peer);
        const DAT_EVENT event = AddFive(side);
        EXPECT_EQ(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_REMOTE_ACCESS);
        EXPECT_EQ(ExtensionOf(event).status, DAT_IB_OP_ERR);
        peer.Await("end");
      });
}

}  // namespace
}  // namespace viaduct::tests
#endif
