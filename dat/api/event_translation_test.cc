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

// DAT has a word of its own for a bind that fails.
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

// The bytes of a write with immediate data are not in the receive that it took. An event of 2.0
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
      {verbs::Opcode::kSend, DAT_DTO_SEND},
      {verbs::Opcode::kWrite, DAT_DTO_RDMA_WRITE},
      {verbs::Opcode::kRead, DAT_DTO_RDMA_READ},
      {verbs::Opcode::kReceive, DAT_DTO_RECEIVE},
      {verbs::Opcode::kReceiveWrite, DAT_DTO_RECEIVE},
  };
  for (const auto& c : cases) {
    core::Event event;
    event.opcode = c.opcode;
    const DAT_EVENT out = Translate(event);
    EXPECT_EQ(out.event_data.dto_completion_event_data.operation, c.operation);
    EXPECT_EQ(out.event_data.dto_completion_event_data.rmr_context, 0u);
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
  core::Event event;
  event.subject = kSubject;
  event.type = EventType::kAsyncOverflow;
  DAT_EVENT out = Translate(event);
  EXPECT_EQ(out.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
  EXPECT_EQ(out.event_data.asynch_error_event_data.dat_handle, kSubject);
  EXPECT_EQ(out.event_data.asynch_error_event_data.reason, DAT_EVD_OVERFLOW_ERROR);
  event.type = EventType::kAsyncEndpointBroken;
  out = Translate(event);
  EXPECT_EQ(out.event_number, DAT_ASYNC_ERROR_EP_BROKEN);
  EXPECT_EQ(out.event_data.asynch_error_event_data.dat_handle, kSubject);
  event.type = EventType::kAsyncAdapterFailed;
  out = Translate(event);
  EXPECT_EQ(out.event_number, DAT_ASYNC_ERROR_IA_CATASTROPHIC);
  EXPECT_EQ(out.event_data.asynch_error_event_data.dat_handle, kSubject);
  EXPECT_EQ(out.event_data.asynch_error_event_data.reason, DAT_IA_CATASTROPHIC_ERROR);
}

}  // namespace
}  // namespace viaduct::dat
