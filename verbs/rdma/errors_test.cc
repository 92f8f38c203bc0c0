#include "verbs/rdma/errors.h"

#include <cerrno>

#include "gtest/gtest.h"

namespace viaduct::verbs::rdma {
namespace {

constexpr Manager kSiw = Manager::kSiw;
constexpr Manager kIwarp = Manager::kIwarp;
constexpr Manager kInfiniband = Manager::kInfiniband;

TEST(ErrorsTest, CompletionsKeepTheirKind) {
  EXPECT_EQ(CompletionStatus(IBV_WC_SUCCESS), Status::kSuccess);
  EXPECT_EQ(CompletionStatus(IBV_WC_WR_FLUSH_ERR), Status::kFlushed);
  EXPECT_EQ(CompletionStatus(IBV_WC_LOC_LEN_ERR), Status::kLocalLength);
  EXPECT_EQ(CompletionStatus(IBV_WC_LOC_PROT_ERR), Status::kLocalProtection);
  EXPECT_EQ(CompletionStatus(IBV_WC_REM_ACCESS_ERR), Status::kRemoteAccess);
  EXPECT_EQ(CompletionStatus(IBV_WC_REM_INV_REQ_ERR), Status::kRemoteOperation);
  EXPECT_EQ(CompletionStatus(IBV_WC_REM_OP_ERR), Status::kRemoteOperation);
  EXPECT_EQ(CompletionStatus(IBV_WC_RNR_RETRY_EXC_ERR), Status::kReceiverNotReady);
  EXPECT_EQ(CompletionStatus(IBV_WC_RETRY_EXC_ERR), Status::kTransport);
  EXPECT_EQ(CompletionStatus(IBV_WC_FATAL_ERR), Status::kTransport);
}

TEST(ErrorsTest, InfinibandTellsWhoRejected) {
  EXPECT_EQ(OutcomeOf(RDMA_CM_EVENT_REJECTED, 28, kInfiniband, true), ConnectOutcome::kRejected);
  EXPECT_EQ(OutcomeOf(RDMA_CM_EVENT_REJECTED, 8, kInfiniband, false), ConnectOutcome::kNobody);
  EXPECT_EQ(OutcomeOf(RDMA_CM_EVENT_REJECTED, 35, kInfiniband, true), ConnectOutcome::kRefused);
}

TEST(ErrorsTest, InfinibandTellsThatAProgramRejected) {
  EXPECT_TRUE(IsProgramsReject(RDMA_CM_EVENT_REJECTED, 28, kInfiniband));
  EXPECT_FALSE(IsProgramsReject(RDMA_CM_EVENT_REJECTED, 8, kInfiniband));
  EXPECT_FALSE(IsProgramsReject(RDMA_CM_EVENT_UNREACHABLE, 28, kInfiniband));
  EXPECT_FALSE(IsProgramsReject(RDMA_CM_EVENT_REJECTED, 28, kIwarp));
}

TEST(ErrorsTest, InfinibandTellsOfAnEarlierConnection) {
  EXPECT_TRUE(IsStale(RDMA_CM_EVENT_REJECTED, 10, kInfiniband));
  EXPECT_FALSE(IsStale(RDMA_CM_EVENT_REJECTED, 8, kInfiniband));
  EXPECT_FALSE(IsStale(RDMA_CM_EVENT_UNREACHABLE, 10, kInfiniband));
  EXPECT_FALSE(IsStale(RDMA_CM_EVENT_REJECTED, 10, kIwarp));
}

TEST(ErrorsTest, TcpTellsOfAnEarlierConnectionOfThePort) {
  for (Manager manager : {kIwarp, kSiw}) {
    EXPECT_TRUE(IsStale(RDMA_CM_EVENT_ADDR_ERROR, -EADDRNOTAVAIL, manager));
    EXPECT_TRUE(IsStale(RDMA_CM_EVENT_ADDR_ERROR, -EADDRINUSE, manager));
    EXPECT_FALSE(IsStale(RDMA_CM_EVENT_ADDR_ERROR, -ECONNREFUSED, manager));
    // cxgb4: status2errno of CPL_ERR_CONN_EXIST.
    const bool adapters = manager == kIwarp;
    EXPECT_EQ(IsStale(RDMA_CM_EVENT_CONNECT_ERROR, -EADDRINUSE, manager), adapters);
    EXPECT_EQ(HeardWith(RDMA_CM_EVENT_CONNECT_ERROR, -EADDRINUSE, manager), !adapters);
    EXPECT_FALSE(IsStale(RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO, manager));
  }
}

// siw: siw_cm.c, siw_proc_mpareply. The adapters: process_mpa_reply of cxgb4, irdma_cm.c,
// qed_iwarp.c.
TEST(ErrorsTest, IwarpsRejectIsAConsumersUnlessTcpRefused) {
  constexpr rdma_cm_event_type kRejected = RDMA_CM_EVENT_REJECTED;
  EXPECT_EQ(OutcomeOf(kRejected, -ECONNRESET, kSiw, false), ConnectOutcome::kRejected);
  EXPECT_EQ(OutcomeOf(kRejected, -ECONNREFUSED, kSiw, false), ConnectOutcome::kNobody);
  EXPECT_EQ(OutcomeOf(kRejected, -ECONNREFUSED, kIwarp, false), ConnectOutcome::kRejected);
  EXPECT_EQ(OutcomeOf(kRejected, -ECONNRESET, kIwarp, false), ConnectOutcome::kNobody);
  EXPECT_EQ(OutcomeOf(kRejected, -ECONNRESET, kIwarp, true), ConnectOutcome::kRejected);
  EXPECT_EQ(OutcomeOf(kRejected, -EPROTO, kIwarp, false), ConnectOutcome::kRefused);
  EXPECT_EQ(OutcomeOf(RDMA_CM_EVENT_ADDR_ERROR, -ECONNREFUSED, kIwarp, false),
            ConnectOutcome::kNobody);
}

TEST(ErrorsTest, AnAdaptersTcpTellsOfItsWayByAConnectError) {
  for (int error : {EHOSTUNREACH, ENETUNREACH, EBUSY}) {
    EXPECT_EQ(OutcomeOf(RDMA_CM_EVENT_CONNECT_ERROR, -error, kIwarp, false),
              ConnectOutcome::kUnreachable);
    EXPECT_FALSE(HeardWith(RDMA_CM_EVENT_CONNECT_ERROR, -error, kIwarp));
  }
  EXPECT_EQ(OutcomeOf(RDMA_CM_EVENT_CONNECT_ERROR, -ENOMEM, kIwarp, false),
            ConnectOutcome::kNoResources);
  EXPECT_EQ(OutcomeOf(RDMA_CM_EVENT_CONNECT_ERROR, -EBUSY, kSiw, false), ConnectOutcome::kRefused);
  EXPECT_TRUE(HeardWith(RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO, kIwarp));
}

TEST(ErrorsTest, SiwsTimeOutIsAHandshakesUnlessTcpHadNoAnswer) {
  EXPECT_EQ(OutcomeOf(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, kSiw, false),
            ConnectOutcome::kRefused);
  EXPECT_TRUE(HeardWith(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, kSiw));
  EXPECT_EQ(OutcomeOf(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, kSiw, false),
            ConnectOutcome::kUnreachable);
  EXPECT_FALSE(HeardWith(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, kSiw));
}

// The driver's number is the same whether TCP or MPA got no answer.
TEST(ErrorsTest, AnAdaptersTimeOutMayBeTcps) {
  EXPECT_EQ(OutcomeOf(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, kIwarp, false),
            ConnectOutcome::kUnreachable);
  EXPECT_FALSE(HeardWith(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, kIwarp));
}

TEST(ErrorsTest, EachOutcomeIsExplained) {
  for (int outcome = 0; outcome <= static_cast<int>(ConnectOutcome::kGone); ++outcome) {
    EXPECT_NE(Explanation(static_cast<ConnectOutcome>(outcome)), "") << outcome;
  }
}

TEST(ErrorsTest, NoWayIsUnreachable) {
  for (rdma_cm_event_type event :
       {RDMA_CM_EVENT_ADDR_ERROR, RDMA_CM_EVENT_ROUTE_ERROR, RDMA_CM_EVENT_UNREACHABLE}) {
    for (int error : {EHOSTUNREACH, ENETUNREACH, ENODEV, ETIMEDOUT}) {
      EXPECT_EQ(OutcomeOf(event, -error, kInfiniband, false), ConnectOutcome::kUnreachable);
    }
  }
  EXPECT_EQ(OutcomeOf(RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, kIwarp, false),
            ConnectOutcome::kRefused);
  EXPECT_EQ(OutcomeOf(RDMA_CM_EVENT_DEVICE_REMOVAL, 0, kIwarp, false),
            ConnectOutcome::kNoResources);
  EXPECT_EQ(OutcomeOfErrno(ENOMEM), ConnectOutcome::kNoResources);
}

TEST(ErrorsTest, OnlyAnAnswerIsHeard) {
  EXPECT_TRUE(HeardWith(RDMA_CM_EVENT_REJECTED, 8, kInfiniband));
  EXPECT_TRUE(HeardWith(RDMA_CM_EVENT_ESTABLISHED, 0, kInfiniband));
  EXPECT_TRUE(HeardWith(RDMA_CM_EVENT_ADDR_ERROR, -ECONNREFUSED, kIwarp));
  EXPECT_FALSE(HeardWith(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, kInfiniband));
  EXPECT_FALSE(HeardWith(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, kInfiniband));
}

TEST(ErrorsTest, ErrnosBecomeCodes) {
  EXPECT_EQ(ErrnoStatus(ENOMEM, "x").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus(EACCES, "x").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ErrnoStatus(EADDRINUSE, "x").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ErrnoStatus(ENODEV, "x").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrnoStatus(EIO, "x").code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace viaduct::verbs::rdma
