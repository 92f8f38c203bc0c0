// dat_srq_*, dat_ep_create_with_srq: the pages of those names; DAT checklist 22, 31, 128-131, 133.
#include <vector>

#include "tests/conformance/dat/side.h"

namespace viaduct::tests {
namespace {

DAT_RETURN TryCreate(const Side& side, DAT_COUNT receives, DAT_COUNT segments, DAT_SRQ_HANDLE* srq,
                     DAT_COUNT low_watermark = DAT_SRQ_LW_DEFAULT) {
  DAT_SRQ_ATTR attributes = {receives, segments, low_watermark};
  return dat_srq_create(side.ia, side.pz, &attributes, srq);
}

DAT_SRQ_HANDLE NewSrq(const Side& side, DAT_COUNT receives) {
  DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
  Must(TryCreate(side, receives, 1, &srq));
  return srq;
}

DAT_EP_HANDLE NewEp(const Side& side, DAT_SRQ_HANDLE srq) {
  DAT_EP_ATTR attributes = {};
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  Must(dat_ep_create_with_srq(side.ia, side.pz, side.receive_evd, side.request_evd,
                              side.connect_evd, srq, &attributes, &ep));
  return ep;
}

void Post(DAT_SRQ_HANDLE srq, const Memory& memory, size_t offset, size_t length, uint64_t cookie) {
  DAT_LMR_TRIPLET local = memory.Local(offset, length);
  Must(dat_srq_post_recv(srq, 1, &local, Cookie(cookie)));
}

DAT_SRQ_PARAM ParametersOf(DAT_SRQ_HANDLE srq) {
  DAT_SRQ_PARAM param;
  Must(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
  return param;
}

// The other side of each pair. It has an endpoint for each of the server's, and sends a message of
// one byte, the endpoint's number, whenever the server names that endpoint.
void SendWhenTold(Peer& peer, int endpoints) {
  Side side;
  Memory memory(side, 16);
  std::vector<DAT_EP_HANDLE> eps;
  for (int i = 0; i < endpoints; ++i) {
    eps.push_back(side.NewEp());
    side.ConnectTo(peer, eps.back(), Port(0));
  }
  for (int told; (told = peer.Receive<int>()) >= 0;) {
    memory.bytes[told] = static_cast<uint8_t>(told);
    DAT_LMR_TRIPLET local = memory.Local(told, 1);
    Must(dat_ep_post_send(eps[told], 1, &local, Cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
  }
}

TEST(Srq, C128_EveryMessageCompletesOnItsEndpoint) {
  constexpr int kEndpoints = 4;
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 64);
        DAT_SRQ_HANDLE srq = NewSrq(side, 32);
        std::vector<DAT_EP_HANDLE> eps;
        for (int i = 0; i < kEndpoints; ++i) {
          eps.push_back(NewEp(side, srq));
          EXPECT_EQ(viaduct::tests::ParametersOf(eps.back()).srq_handle, srq);
          side.AcceptFrom(peer, eps.back(), Port(0));
        }
        for (uint64_t i = 0; i < 32; ++i) Post(srq, memory, i, 1, i);
        for (uint64_t i = 0; i < 32; ++i) {
          const int which = static_cast<int>(i * 7 % kEndpoints);
          peer.Send(which);
          const DAT_DTO_COMPLETION_EVENT_DATA received = NextCompletion(side.receive_evd);
          EXPECT_EQ(received.ep_handle, eps[which]);
          EXPECT_EQ(received.user_cookie.as_64, i);
          EXPECT_EQ(received.transfered_length, 1u);
          EXPECT_EQ(memory.bytes[i], which);
        }
        peer.Send(-1);
      },
      [](Peer& peer) { SendWhenTold(peer, kEndpoints); });
}

TEST(Srq, C129_PostingOnTheEndpointAndFreeingInUse) {
  RunAlone([] {
    Side side;
    Memory memory(side, 64);
    DAT_SRQ_HANDLE srq = NewSrq(side, 8);
    DAT_EP_HANDLE ep = NewEp(side, srq);
    DAT_LMR_TRIPLET local = memory.Local(0, 1);
    EXPECT_TRUE(Fails(dat_ep_post_recv(ep, 1, &local, Cookie(1), DAT_COMPLETION_DEFAULT_FLAG),
                      DAT_INVALID_STATE));
    EXPECT_TRUE(Fails(dat_srq_free(srq), DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE));
    Must(dat_ep_free(ep));
    Must(dat_srq_free(srq));
    EXPECT_TRUE(Fails(dat_srq_free(srq), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ));
  });
}

TEST(Srq, C130_LowWatermark) {
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 64);
        DAT_SRQ_HANDLE srq = NewSrq(side, 8);
        DAT_EP_HANDLE ep = NewEp(side, srq);
        side.AcceptFrom(peer, ep, Port(0));
        for (uint64_t i = 0; i < 5; ++i) Post(srq, memory, i, 1, i);
        EXPECT_TRUE(Fails(dat_srq_set_lw(srq, 9), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
        EXPECT_TRUE(Fails(dat_srq_set_lw(srq, -1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
        Must(dat_srq_set_lw(srq, 4));
        EXPECT_EQ(ParametersOf(srq).low_watermark, 4);
        for (int i = 0; i < 3; ++i) {
          peer.Send(0);
          NextCompletion(side.receive_evd);
        }
        const DAT_EVENT event = Next(side.async_evd);
        EXPECT_EQ(event.event_data.asynch_error_event_data.dat_handle, srq);
        EXPECT_EQ(event.event_data.asynch_error_event_data.reason, DAT_SRQ_LOW_WATERMARK_EVENT);
        EXPECT_TRUE(IsEmpty(side.async_evd));  // once
        Must(dat_srq_set_lw(srq, 4));          // the queue is below it already
        EXPECT_EQ(Next(side.async_evd).event_data.asynch_error_event_data.dat_handle, srq);
        peer.Send(-1);
      },
      [](Peer& peer) { SendWhenTold(peer, 1); });
}

// A slot of the queue stays occupied until the consumer has dequeued its completion.
TEST(Srq, C133_CountsWhatIsNotDequeued) {
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 64);
        DAT_SRQ_HANDLE srq = NewSrq(side, 10);
        DAT_EP_HANDLE ep = NewEp(side, srq);
        side.AcceptFrom(peer, ep, Port(0));
        for (uint64_t i = 0; i < 10; ++i) Post(srq, memory, i, 1, i);
        for (int i = 0; i < 8; ++i) {
          peer.Send(0);
          EXPECT_EQ(ParametersOf(srq).outstanding_dto_count, 10);
        }
        DAT_EVENT event;
        DAT_COUNT more = 0;
        Must(dat_evd_wait(side.receive_evd, DAT_TIMEOUT_INFINITE, 8, &event, &more));
        EXPECT_EQ(more, 7);
        EXPECT_EQ(ParametersOf(srq).available_dto_count, 2);
        EXPECT_EQ(ParametersOf(srq).outstanding_dto_count, 9);
        Must(dat_evd_dequeue(side.receive_evd, &event));
        EXPECT_EQ(ParametersOf(srq).outstanding_dto_count, 8);
        EXPECT_TRUE(Fails(dat_srq_resize(srq, 7), DAT_INVALID_STATE));
        Must(dat_srq_resize(srq, 8));
        peer.Send(-1);
      },
      [](Peer& peer) { SendWhenTold(peer, 1); });
}

TEST(Srq, C131_C133_ResizeAndCounts) {
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 64);
        DAT_SRQ_HANDLE srq = NewSrq(side, 4);
        DAT_EP_HANDLE ep = NewEp(side, srq);
        side.AcceptFrom(peer, ep, Port(0));
        for (uint64_t i = 0; i < 4; ++i) Post(srq, memory, i, 1, i);
        DAT_LMR_TRIPLET local = memory.Local(0, 1);
        EXPECT_TRUE(
            Fails(dat_srq_post_recv(srq, 1, &local, Cookie(9)), DAT_INSUFFICIENT_RESOURCES));
        EXPECT_TRUE(Fails(dat_srq_resize(srq, 3), DAT_INVALID_STATE));
        EXPECT_TRUE(Fails(dat_srq_resize(srq, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
        Must(dat_srq_resize(srq, 40));
        for (uint64_t i = 4; i < 40; ++i) Post(srq, memory, i, 1, i);
        DAT_SRQ_PARAM param = ParametersOf(srq);
        EXPECT_EQ(param.ia_handle, side.ia);
        EXPECT_EQ(param.pz_handle, side.pz);
        EXPECT_EQ(param.srq_state, DAT_SRQ_STATE_OPERATIONAL);
        EXPECT_GE(param.max_recv_dtos, 40);
        EXPECT_EQ(param.available_dto_count, 40);
        EXPECT_EQ(param.outstanding_dto_count, 40);
        for (uint64_t i = 0; i < 30; ++i) {
          peer.Send(0);
          EXPECT_EQ(NextCompletion(side.receive_evd).user_cookie.as_64, i);
        }
        param = ParametersOf(srq);
        EXPECT_EQ(param.available_dto_count, 10);
        EXPECT_EQ(param.outstanding_dto_count, 10);
        Must(dat_srq_set_lw(srq, 10));
        EXPECT_TRUE(Fails(dat_srq_resize(srq, 9), DAT_INVALID_STATE));
        Must(dat_srq_resize(srq, 10));
        for (uint64_t i = 30; i < 40; ++i) {
          peer.Send(0);
          EXPECT_EQ(NextCompletion(side.receive_evd).user_cookie.as_64, i);
        }
        peer.Send(-1);
      },
      [](Peer& peer) { SendWhenTold(peer, 1); });
}

// The queue decides about receives; whatever the endpoint's attributes ask for is ignored.
TEST(Srq, C128_TheEndpointsReceivesAreNotCounted) {
  RunAlone([] {
    Side side;
    DAT_SRQ_HANDLE srq = NewSrq(side, 8);
    DAT_EP_ATTR attributes = {};
    attributes.max_recv_dtos = side.attributes.max_dto_per_ep + 1;
    attributes.max_recv_iov = side.attributes.max_iov_segments_per_dto + 1;
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    Must(dat_ep_create_with_srq(side.ia, side.pz, side.receive_evd, side.request_evd,
                                side.connect_evd, srq, &attributes, &ep));
    attributes.max_request_dtos = attributes.max_recv_dtos;
    EXPECT_TRUE(Fails(dat_ep_create_with_srq(side.ia, side.pz, side.receive_evd, side.request_evd,
                                             side.connect_evd, srq, &attributes, &ep),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG7));
  });
}

// This holds whatever is posted: an empty queue has a watermark, too.
TEST(Srq, C130_C131_WatermarkAndLengthBoundEachOther) {
  RunAlone([] {
    Side side;
    DAT_SRQ_HANDLE srq = NewSrq(side, 8);
    EXPECT_TRUE(Fails(dat_srq_set_lw(srq, 9), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    Must(dat_srq_set_lw(srq, 8));
    EXPECT_TRUE(Fails(dat_srq_resize(srq, 7), DAT_INVALID_STATE));
    Must(dat_srq_resize(srq, 8));
    Must(dat_srq_set_lw(srq, 7));
    Must(dat_srq_resize(srq, 7));
  });
}

TEST(Srq, C022_C030_C031_AnObjectLikeOthers) {
  RunAlone([] {
    Side side;
    DAT_SRQ_HANDLE srq;
    EXPECT_TRUE(Fails(TryCreate(side, 0, 1, &srq), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(TryCreate(side, 8, -1, &srq), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(TryCreate(side, 8, 1, &srq, 3), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(TryCreate(side, 8, 1, nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
    Must(TryCreate(side, 8, 0, &srq));  // 0 is no limit
    EXPECT_GE(ParametersOf(srq).max_recv_iov, 1);
    Must(dat_srq_free(srq));
    EXPECT_EQ(side.provider.srq_supported, DAT_TRUE);
    DAT_PZ_HANDLE pz;
    Must(dat_pz_create(side.ia, &pz));
    std::swap(pz, side.pz);
    srq = NewSrq(side, 8);
    std::swap(pz, side.pz);
    EXPECT_TRUE(Fails(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE));
    DAT_HANDLE_TYPE type;
    Must(dat_get_handle_type(srq, &type));
    EXPECT_EQ(type, DAT_HANDLE_TYPE_SRQ);
    DAT_CONTEXT context;
    Must(dat_get_consumer_context(srq, &context));
    EXPECT_EQ(context.as_64, 0u);
    // The endpoint's zone must be the queue's, and attributes must be given.
    DAT_EP_ATTR attributes = {};
    DAT_EP_HANDLE ep;
    auto create = [&](DAT_SRQ_HANDLE queue, const DAT_EP_ATTR* with) {
      return dat_ep_create_with_srq(side.ia, side.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
                                    DAT_HANDLE_NULL, queue, with, &ep);
    };
    EXPECT_TRUE(Fails(create(srq, &attributes), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(create(pz, &attributes), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ));
    DAT_SRQ_HANDLE other = NewSrq(side, 8);
    EXPECT_TRUE(Fails(create(other, nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG7));
    EXPECT_TRUE(Fails(dat_ia_close(side.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE));
    ep = NewEp(side, other);
    DAT_EP_PARAM param = {};
    param.pz_handle = pz;
    EXPECT_TRUE(Fails(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_INVALID_PARAMETER,
                      DAT_INVALID_ARG3));
    EXPECT_EQ(viaduct::tests::ParametersOf(ep).pz_handle, side.pz);
    for (DAT_PZ_HANDLE good : {side.pz, DAT_HANDLE_NULL, side.pz}) {
      param.pz_handle = good;
      Must(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param));
    }
    Must(dat_ep_free(ep));
    Must(dat_srq_free(other));
    Must(dat_srq_free(srq));
    Must(dat_pz_free(pz));
  });
}

}  // namespace
}  // namespace viaduct::tests
