// What a device and the kernel tell of by themselves, when a test says so, and with which status
// the device completes what it was given. Any thread.
#ifndef VIADUCT_TESTS_RDMA_MOCK_TOLD_H_
#define VIADUCT_TESTS_RDMA_MOCK_TOLD_H_

#include <cstdint>

namespace viaduct::rdma_mock {

// Asynchronous events, by the end of their names in ibv_get_async_event(3).
enum class DeviceEvent {
  kQpFatal,
  kQpReqErr,
  kQpAccessErr,
  kQpLastWqeReached,
  kCommEst,
  kCqErr,
  kSrqErr,
  kSrqLimitReached,
  kPortErr,
  kPortActive,
  kLidChange,
  kPkeyChange,
  kGidChange,
  kDeviceFatal,
};
// Of each queue pair, completion queue or shared queue that exists, or of the device.
void TellOfDevice(DeviceEvent event);

// Events of rdma_cm, by the end of their names in rdma_get_cm_event(3).
enum class IdEvent {
  kAddrError,
  kRouteError,
  kConnectResponse,
  kConnectError,
  kUnreachable,
  kRejected,
  kEstablished,
  kDisconnected,
  kDeviceRemoval,
  kMulticastError,
  kAddrChange,
  kTimewaitExit,
};
enum class Ids { kDialling, kRequested, kListening, kBound };
// To each such id that exists, connected or not.
void TellIds(Ids which, IdEvent event, int status = 0);
// A request to whoever listens at the port, and that who has asked has gone.
void TellRequest(uint16_t port);

// What completes, and as what, by the end of the names in ibv_poll_cq(3).
enum class Work { kSend, kWrite, kRead, kBind, kReceive };
enum class WorkStatus {
  kSuccess,
  kLocLenErr,
  kLocQpOpErr,
  kLocEecOpErr,
  kLocProtErr,
  kWrFlushErr,
  kMwBindErr,
  kBadRespErr,
  kLocAccessErr,
  kRemInvReqErr,
  kRemAccessErr,
  kRemOpErr,
  kRetryExcErr,
  kRnrRetryExcErr,
  kLocRddViolErr,
  kRemInvRdReqErr,
  kRemAbortErr,
  kInvEecnErr,
  kInvEecStateErr,
  kFatalErr,
  kRespTimeoutErr,
  kGeneralErr,
};
// The next one behind `before` others, once; its pair stops, and nothing of it has been done.
void FailWork(Work work, WorkStatus status, int before = 0);

// A poll shows so many completions at most though there are more, or fails if that is negative.
void ShowAtMost(int count);
void ShowAll();
// Each completion queue that was asked for news tells of some, and there are none.
void RingInVain();

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_TOLD_H_
