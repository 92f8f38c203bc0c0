#include "dat/api/event_translation.h"

#include <cstring>
#include <utility>

#include "gtest/gtest.h"

namespace viaduct::dat {
namespace {

using core::EventType;

int marks[4];
const core::Handle kSubject = &marks[0];
const core::Handle kPoint = &marks[1];
const DAT_EVD_HANDLE kEvd = &marks[2];

class EventTranslation : public ::testing::Test {
 protected:
  DAT_EVENT Translate(const core::Event& event) {
    DAT_EVENT out;
    memset(&out, 0xee, sizeof out);
    ToDatEvent(event, kEvd, local_, &out);
    EXPECT_EQ(out.evd_handle, kEvd);
    return out;
  }
  const verbs::Address local_ = verbs::Address::V4(0x7f000001);
};

TEST_F(EventTranslation, Completion) {
  core::Event event;
  event.type = EventType::kCompletion;
  event.subject = kSubject;
  event.cookie = 0x123456789abcdef0;
  event.status = verbs::Status::kSuccess;
  event.length = 4096;
  const DAT_EVENT out = Translate(event);
  EXPECT_EQ(out.event_number, DAT_DTO_COMPLETION_EVENT);
  const DAT_DTO_COMPLETION_EVENT_DATA& data = out.event_data.dto_completion_event_data;
  EXPECT_EQ(data.ep_handle, kSubject);
  EXPECT_EQ(data.user_cookie.as_64, 0x123456789abcdef0u);
  EXPECT_EQ(data.status, DAT_DTO_SUCCESS);
  EXPECT_EQ(data.transfered_length, 4096u);
}

// DAT has a status of its own for a bind that fails.
TEST_F(EventTranslation, Bind) {
  core::Event event;
  event.type = EventType::kCompletion;
  event.opcode = verbs::Opcode::kBind;
  event.subject = kSubject;
  event.cookie = 0x123456789abcdef0;
  for (const auto& [status, dat] : {
           std::pair(verbs::Status::kSuccess, DAT_DTO_SUCCESS),
           std::pair(verbs::Status::kFlushed, DAT_DTO_ERR_FLUSHED),
           std::pair(verbs::Status::kLocalProtection, DAT_RMR_OPERATION_FAILED),
           std::pair(verbs::Status::kTransport, DAT_RMR_OPERATION_FAILED),
       }) {
    event.status = status;
    const DAT_EVENT out = Translate(event);
    EXPECT_EQ(out.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
    const DAT_RMR_BIND_COMPLETION_EVENT_DATA& data = out.event_data.rmr_completion_event_data;
    EXPECT_EQ(data.rmr_handle, kSubject);
    EXPECT_EQ(data.user_cookie.as_64, 0x123456789abcdef0u);
    EXPECT_EQ(data.status, dat);
  }
}

// The bytes of a write with immediate data are not in the receive that it used. An event of 2.0
// says so; in 1.2 the event is that of a message, and the peer may have written more bytes than
// the receive has room for.
TEST_F(EventTranslation, ReceiveOfAWriteWithImmediateData) {
  core::Event event;
  event.opcode = verbs::Opcode::kReceiveWrite;
  event.has_immediate = true;
  event.length = 4096;
  const DAT_EVENT out = Translate(event);
  const DAT_DTO_COMPLETION_EVENT_DATA& data = out.event_data.dto_completion_event_data;
  EXPECT_EQ(data.status, DAT_DTO_SUCCESS);
#if VIADUCT_DAT_ABI == 20
  EXPECT_EQ(static_cast<int>(out.event_number), DAT_IB_DTO_EVENT);
  EXPECT_EQ(data.transfered_length, 4096u);
#else
  EXPECT_EQ(out.event_number, DAT_DTO_COMPLETION_EVENT);
  EXPECT_EQ(data.transfered_length, 0u);
#endif
}

TEST_F(EventTranslation, EveryStatus) {
  const struct {
    verbs::Status status;
    DAT_DTO_COMPLETION_STATUS dat;
  } cases[] = {
      {verbs::Status::kSuccess, DAT_DTO_SUCCESS},
      {verbs::Status::kFlushed, DAT_DTO_ERR_FLUSHED},
      {verbs::Status::kLocalLength, DAT_DTO_ERR_LOCAL_LENGTH},
      {verbs::Status::kLocalProtection, DAT_DTO_ERR_LOCAL_PROTECTION},
      {verbs::Status::kRemoteAccess, DAT_DTO_ERR_REMOTE_ACCESS},
      {verbs::Status::kRemoteOperation, DAT_DTO_ERR_REMOTE_RESPONDER},
      {verbs::Status::kReceiverNotReady, DAT_DTO_ERR_RECEIVER_NOT_READY},
      {verbs::Status::kTransport, DAT_DTO_ERR_TRANSPORT},
  };
  for (const auto& c : cases) EXPECT_EQ(ToDatStatus(c.status), c.dat);
}

#if VIADUCT_DAT_ABI == 20
TEST_F(EventTranslation, OperationOfCompletion) {
  const struct {
    verbs::Opcode opcode;
    DAT_DTOS operation;
  } cases[] = {
      {verbs::Opcode::kSend, DAT_DTO_SEND},        {verbs::Opcode::kSendInvalidate, DAT_DTO_SEND},
      {verbs::Opcode::kWrite, DAT_DTO_RDMA_WRITE}, {verbs::Opcode::kRead, DAT_DTO_RDMA_READ},
      {verbs::Opcode::kReceive, DAT_DTO_RECEIVE},  {verbs::Opcode::kReceiveWrite, DAT_DTO_RECEIVE},
  };
  for (const auto& c : cases) {
    core::Event event;
    event.opcode = c.opcode;
    const DAT_EVENT out = Translate(event);
    EXPECT_EQ(out.event_data.dto_completion_event_data.operation, c.operation);
    EXPECT_EQ(out.event_data.dto_completion_event_data.rmr_context, 0u);
  }
}

TEST_F(EventTranslation, AReceiveNamesTheRegionThatItsMessageEnded) {
  core::Event event;
  event.opcode = verbs::Opcode::kReceiveInvalidate;
  event.immediate = 0x1234;
  const DAT_EVENT out = Translate(event);
  EXPECT_EQ(out.event_number, DAT_DTO_COMPLETION_EVENT);
  const DAT_DTO_COMPLETION_EVENT_DATA& data = out.event_data.dto_completion_event_data;
  EXPECT_EQ(data.operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
  EXPECT_EQ(data.rmr_context, 0x1234u);
}

TEST_F(EventTranslation, EveryOperationOfExtensions) {
  const struct {
    verbs::Opcode opcode;
    bool has_immediate;
    int operation;
    DAT_IB_EXT_TYPE type;
  } cases[] = {
      {verbs::Opcode::kWrite, true, DAT_IB_DTO_RDMA_WRITE_IMMED, DAT_IB_RDMA_WRITE_IMMED},
      {verbs::Opcode::kReceiveWrite, true, DAT_IB_DTO_RECV_IMMED, DAT_IB_RDMA_WRITE_IMMED_DATA},
      {verbs::Opcode::kCompareAndSwap, false, DAT_IB_DTO_CMP_SWAP, DAT_IB_CMP_AND_SWAP},
      {verbs::Opcode::kFetchAndAdd, false, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD},
  };
  for (const auto& c : cases) {
    for (const auto& [status, shown] : {std::pair(verbs::Status::kSuccess, DAT_OP_SUCCESS),
                                        std::pair(verbs::Status::kRemoteAccess, DAT_IB_OP_ERR)}) {
      core::Event event;
      event.opcode = c.opcode;
      event.has_immediate = c.has_immediate;
      event.immediate = 0xabcd;
      event.status = status;
      const DAT_EVENT out = Translate(event);
      EXPECT_EQ(static_cast<int>(out.event_number), DAT_IB_DTO_EVENT);
      const DAT_DTO_COMPLETION_EVENT_DATA& data = out.event_data.dto_completion_event_data;
      EXPECT_EQ(static_cast<int>(data.operation), c.operation);
      EXPECT_EQ(data.rmr_context, 0u);
      DAT_IB_EXTENSION_EVENT_DATA extension;
      memcpy(&extension, out.event_extension_data, sizeof extension);
      EXPECT_EQ(extension.type, c.type);
      EXPECT_EQ(extension.status, shown);
      EXPECT_EQ(extension.val.immed.data, 0xabcdu);
    }
  }
}
#endif

TEST_F(EventTranslation, ConnectionRequest) {
  core::Event event;
  event.type = EventType::kConnectionRequest;
  event.subject = kSubject;
  event.service_point = kPoint;
  event.qualifier = 45248;
  const DAT_EVENT out = Translate(event);
  EXPECT_EQ(out.event_number, DAT_CONNECTION_REQUEST_EVENT);
  const DAT_CR_ARRIVAL_EVENT_DATA& data = out.event_data.cr_arrival_event_data;
  EXPECT_EQ(data.sp_handle.psp_handle, kPoint);
  EXPECT_EQ(data.cr_handle, kSubject);
  EXPECT_EQ(data.conn_qual, 45248u);
  EXPECT_EQ(data.local_ia_address_ptr, local_.data());
#if VIADUCT_DAT_ABI == 20
  EXPECT_EQ(data.truncate_flag, DAT_FALSE);
#endif
}

TEST_F(EventTranslation, RequestOnAReservedPointShowsNone) {
  core::Event event;
  event.type = EventType::kConnectionRequest;
  event.subject = kSubject;
  EXPECT_EQ(Translate(event).event_data.cr_arrival_event_data.sp_handle.rsp_handle,
            DAT_HANDLE_NULL);
}

TEST_F(EventTranslation, EveryConnectionEvent) {
  const struct {
    EventType type;
    DAT_EVENT_NUMBER number;
  } cases[] = {
      {EventType::kEstablished, DAT_CONNECTION_EVENT_ESTABLISHED},
      {EventType::kPeerRejected, DAT_CONNECTION_EVENT_PEER_REJECTED},
      {EventType::kNonPeerRejected, DAT_CONNECTION_EVENT_NON_PEER_REJECTED},
      {EventType::kAcceptCompletionError, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR},
      {EventType::kDisconnected, DAT_CONNECTION_EVENT_DISCONNECTED},
      {EventType::kBroken, DAT_CONNECTION_EVENT_BROKEN},
      {EventType::kTimedOut, DAT_CONNECTION_EVENT_TIMED_OUT},
      {EventType::kUnreachable, DAT_CONNECTION_EVENT_UNREACHABLE},
      {EventType::kNoResources, DAT_CONNECTION_EVENT_UNREACHABLE},
  };
  for (const auto& c : cases) {
    core::Event event;
    event.type = c.type;
    event.subject = kSubject;
    event.private_data_size = 3;
    event.private_data = &marks[3];
    const DAT_EVENT out = Translate(event);
    EXPECT_EQ(out.event_number, c.number);
    EXPECT_EQ(out.event_data.connect_event_data.ep_handle, kSubject);
    EXPECT_EQ(out.event_data.connect_event_data.private_data_size, 3);
    EXPECT_EQ(out.event_data.connect_event_data.private_data, &marks[3]);
  }
}

TEST_F(EventTranslation, SoftwareEvent) {
  core::Event event;
  event.type = EventType::kSoftware;
  event.pointer = &marks[3];
  const DAT_EVENT out = Translate(event);
  EXPECT_EQ(out.event_number, DAT_SOFTWARE_EVENT);
  EXPECT_EQ(out.event_data.software_event_data.pointer, &marks[3]);
}

TEST_F(EventTranslation, AsyncErrors) {
  const struct {
    EventType type;
    DAT_EVENT_NUMBER number;
    DAT_COUNT reason;
  } cases[] = {
      {EventType::kAsyncOverflow, DAT_ASYNC_ERROR_EVD_OVERFLOW, DAT_EVD_OVERFLOW_ERROR},
      {EventType::kAsyncEndpointBroken, DAT_ASYNC_ERROR_EP_BROKEN, DAT_EP_TRANSFER_TO_ERROR},
      {EventType::kAsyncHighWatermark, DAT_ASYNC_ERROR_EP_BROKEN,
       DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT},
      {EventType::kAsyncSharedReceivesLow, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
       DAT_SRQ_LOW_WATERMARK_EVENT},
      {EventType::kAsyncAdapterFailed, DAT_ASYNC_ERROR_IA_CATASTROPHIC, DAT_IA_CATASTROPHIC_ERROR},
  };
  for (const auto& c : cases) {
    core::Event event;
    event.type = c.type;
    event.subject = kSubject;
    const DAT_EVENT out = Translate(event);
    EXPECT_EQ(out.event_number, c.number);
    EXPECT_EQ(out.event_data.asynch_error_event_data.dat_handle, kSubject);
    EXPECT_EQ(out.event_data.asynch_error_event_data.reason, c.reason);
  }
}

}  // namespace
}  // namespace viaduct::dat
