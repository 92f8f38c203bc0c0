// Events that the device and the kernel report by themselves, when a test asks for them, and the
// status with which the device completes its requests. Any thread.
#ifndef VIADUCT_TESTS_RDMA_MOCK_TOLD_H_
#define VIADUCT_TESTS_RDMA_MOCK_TOLD_H_

#include <cstdint>

namespace viaduct::rdma_mock {

// Asynchronous events, named after the last part of their names in ibv_get_async_event(3).
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
// For each queue pair, completion queue or shared queue that exists, or for the device.
void TellOfDevice(DeviceEvent event);

// Events of rdma_cm, named after the last part of their names in rdma_get_cm_event(3).
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
// Sends the event to each id of this kind that exists, connected or not.
void TellIds(Ids which, IdEvent event, int status = 0);
// Sends a connect request to the listener at `port`; the requester then disappears.
void TellRequest(uint16_t port);

// Kinds of requests, and statuses, named after the last part of their names in ibv_poll_cq(3).
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
// The next such request after `before` others completes with `status`, once, without having done
// anything; its pair stops.
void FailWork(Work work, WorkStatus status, int before = 0);

// A poll returns at most `count` completions even if there are more; it fails if `count` is
// negative.
void ShowAtMost(int count);
void ShowAll();
// Each completion queue that is armed reports completions, although there are none.
void RingInVain();

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_TOLD_H_
