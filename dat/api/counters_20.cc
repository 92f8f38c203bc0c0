#include <dat2/dat_ib_extensions.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "absl/types/span.h"
#include "dat/api/counter_names.h"
#include "dat/api/counters.h"
#include "dat/api/face.h"
#include "dat/core/counts.h"
#include "dat/core/endpoint.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/interface_adapter.h"

namespace viaduct::dat {
namespace {

using core::AdapterCount;
using core::DispatcherCount;
using core::EndpointCount;
using core::ObjectType;

// A counter without a row in these tables stays 0: it is InfiniBand's and has no counterpart here.
struct EndpointRow {
  int counter;
  EndpointCount count;
};
constexpr EndpointRow kEndpointRows[] = {
    {DCNT_EP_CONNECT, EndpointCount::kConnects},
    {DCNT_EP_DISCONNECT, EndpointCount::kDisconnects},
    {DCNT_EP_POST_SEND, EndpointCount::kSends},
    {DCNT_EP_POST_SEND_DATA, EndpointCount::kSendBytes},
    {DCNT_EP_POST_RECV, EndpointCount::kReceivesPosted},
    {DCNT_EP_POST_RECV_DATA, EndpointCount::kReceivesPostedBytes},
    {DCNT_EP_POST_WRITE, EndpointCount::kWrites},
    {DCNT_EP_POST_WRITE_DATA, EndpointCount::kWriteBytes},
    {DCNT_EP_POST_WRITE_IMM, EndpointCount::kImmediateWrites},
    {DCNT_EP_POST_WRITE_IMM_DATA, EndpointCount::kImmediateWriteBytes},
    {DCNT_EP_POST_READ, EndpointCount::kReads},
    {DCNT_EP_POST_READ_DATA, EndpointCount::kReadBytes},
    {DCNT_EP_POST_CMP_SWAP, EndpointCount::kCompareAndSwaps},
    {DCNT_EP_POST_FETCH_ADD, EndpointCount::kFetchAndAdds},
    {DCNT_EP_RECV, EndpointCount::kReceives},
    {DCNT_EP_RECV_DATA, EndpointCount::kReceiveBytes},
    {DCNT_EP_RECV_RDMA_IMM, EndpointCount::kImmediates},
    {DCNT_EP_RECV_RDMA_IMM_DATA, EndpointCount::kImmediateBytes},
};

struct DispatcherRow {
  int counter;
  DispatcherCount count;
};
constexpr DispatcherRow kDispatcherRows[] = {
    {DCNT_EVD_WAIT, DispatcherCount::kWaits},
    {DCNT_EVD_WAIT_BLOCKED, DispatcherCount::kSleeps},
    {DCNT_EVD_WAIT_NOTIFY, DispatcherCount::kWoken},
    {DCNT_EVD_DEQUEUE, DispatcherCount::kDequeues},
    {DCNT_EVD_DEQUEUE_FOUND, DispatcherCount::kDequeuesFound},
    {DCNT_EVD_DEQUEUE_NOT_FOUND, DispatcherCount::kDequeuesEmpty},
    {DCNT_EVD_DEQUEUE_POLL, DispatcherCount::kPolls},
    {DCNT_EVD_DEQUEUE_POLL_FOUND, DispatcherCount::kPollsFound},
    {DCNT_EVD_CONN_CALLBACK, DispatcherCount::kConnectionEvents},
    {DCNT_EVD_DTO_CALLBACK, DispatcherCount::kNews},
};

struct ObjectRow {
  int counter;
  ObjectType type;
  bool freed;
};
constexpr ObjectRow kObjectRows[] = {
    {DCNT_IA_PZ_CREATE, ObjectType::kProtectionZone, false},
    {DCNT_IA_PZ_FREE, ObjectType::kProtectionZone, true},
    {DCNT_IA_LMR_CREATE, ObjectType::kMemoryRegion, false},
    {DCNT_IA_LMR_FREE, ObjectType::kMemoryRegion, true},
    {DCNT_IA_RMR_CREATE, ObjectType::kMemoryWindow, false},
    {DCNT_IA_RMR_FREE, ObjectType::kMemoryWindow, true},
    {DCNT_IA_PSP_CREATE, ObjectType::kPublicServicePoint, false},
    {DCNT_IA_PSP_FREE, ObjectType::kPublicServicePoint, true},
    {DCNT_IA_RSP_CREATE, ObjectType::kReservedServicePoint, false},
    {DCNT_IA_RSP_FREE, ObjectType::kReservedServicePoint, true},
    {DCNT_IA_EVD_CREATE, ObjectType::kEventDispatcher, false},
    {DCNT_IA_EVD_FREE, ObjectType::kEventDispatcher, true},
    {DCNT_IA_EP_CREATE, ObjectType::kEndpoint, false},
    {DCNT_IA_EP_FREE, ObjectType::kEndpoint, true},
    {DCNT_IA_SRQ_CREATE, ObjectType::kSharedReceiveQueue, false},
    {DCNT_IA_SRQ_FREE, ObjectType::kSharedReceiveQueue, true},
};

struct AdapterRow {
  int counter;
  AdapterCount count;
};
constexpr AdapterRow kAdapterRows[] = {
    {DCNT_IA_PSP_CREATE_ANY, AdapterCount::kAnyPointsMade},
    {DCNT_IA_SP_CR, AdapterCount::kRequestsReceived},
    {DCNT_IA_SP_CR_ACCEPTED, AdapterCount::kAccepted},
    {DCNT_IA_SP_CR_REJECTED, AdapterCount::kRejected},
    {DCNT_IA_ASYNC_ERROR, AdapterCount::kAsyncErrors},
    {DCNT_IA_ASYNC_QP_ERROR, AdapterCount::kAsyncEndpointErrors},
    {DCNT_IA_ASYNC_CQ_ERROR, AdapterCount::kAsyncOverflows},
    {DCNT_IA_CM_REQ_TX, AdapterCount::kRequestsSent},
    {DCNT_IA_CM_REQ_RX, AdapterCount::kRequestsReceived},
    {DCNT_IA_CM_REP_TX, AdapterCount::kAccepted},
    {DCNT_IA_CM_REP_RX, AdapterCount::kActiveEstablished},
    {DCNT_IA_CM_RTU_TX, AdapterCount::kActiveEstablished},
    {DCNT_IA_CM_RTU_RX, AdapterCount::kPassiveEstablished},
    {DCNT_IA_CM_USER_REJ_TX, AdapterCount::kRejected},
    {DCNT_IA_CM_USER_REJ_RX, AdapterCount::kRejectedByPeer},
    {DCNT_IA_CM_ACTIVE_EST, AdapterCount::kActiveEstablished},
    {DCNT_IA_CM_PASSIVE_EST, AdapterCount::kPassiveEstablished},
    {DCNT_IA_CM_DREQ_TX, AdapterCount::kDisconnected},
    {DCNT_IA_CM_DREQ_RX, AdapterCount::kDisconnectedByPeer},
    {DCNT_IA_CM_ERR, AdapterCount::kConnectionErrors},
    {DCNT_IA_CM_ERR_REFUSED, AdapterCount::kNonPeerRejected},
    {DCNT_IA_CM_ERR_RESET, AdapterCount::kBroken},
    {DCNT_IA_CM_ERR_TIMEOUT, AdapterCount::kTimedOut},
};

using Values = std::vector<DAT_UINT64>;

bool IsNamed(int row, int counter, size_t all) {
  return counter == row || counter == static_cast<int>(all);
}

// Reads all counters of an object of one kind. With `reset`, those that `counter` names (one past
// the last: all) start again at 0. Several counters may show the same count.
template <typename Rows, typename Source>
void Read(const Rows& rows, int counter, bool reset, Source& counts, Values* values) {
  const auto totals = counts.Read();
  for (const auto& row : rows) {
    (*values)[static_cast<size_t>(row.counter)] = counts.Shown(totals, row.count);
  }
  if (!reset) return;
  for (const auto& row : rows) {
    if (IsNamed(row.counter, counter, values->size())) counts.BeginAnew(totals, row.count);
  }
}

void ReadObjects(core::InterfaceAdapter& adapter, int counter, bool reset, Values* values) {
  for (const ObjectRow& row : kObjectRows) {
    const bool clear = reset && IsNamed(row.counter, counter, values->size());
    (*values)[static_cast<size_t>(row.counter)] =
        row.freed ? adapter.CountOfFreed(row.type, clear) : adapter.CountOfMade(row.type, clear);
  }
}

struct Found {
  DAT_RETURN error = DAT_SUCCESS;
  absl::Span<const char* const> names;
  Values values;  // of all counters
};

Found Find(DAT_HANDLE handle, int counter, bool reset) {
  Found found;
  auto known = [&](absl::Span<const char* const> names) {
    found.names = names;
    found.values.resize(names.size());
    const bool ok = counter >= 0 && counter <= static_cast<int>(names.size());
    if (!ok) found.error = BadParameter(2);
    return ok;
  };
  if (auto adapter = Share<core::InterfaceAdapter>(handle)) {
    if (!known(AdapterCounterNames())) return found;
    Read(kAdapterRows, counter, reset, adapter->counts(), &found.values);
    ReadObjects(*adapter, counter, reset, &found.values);
  } else if (auto endpoint = Share<core::Endpoint>(handle)) {
    if (!known(EndpointCounterNames())) return found;
    Read(kEndpointRows, counter, reset, endpoint->counts(), &found.values);
  } else if (auto dispatcher = Share<core::EventDispatcher>(handle)) {
    if (!known(DispatcherCounterNames())) return found;
    Read(kDispatcherRows, counter, reset, dispatcher->counts(), &found.values);
  } else {
    found.error = BadHandle(DAT_INVALID_HANDLE1);
  }
  return found;
}

}  // namespace

DAT_RETURN QueryCounters(DAT_HANDLE handle, int counter, DAT_UINT64* out, bool reset) {
  return Control([&]() -> DAT_RETURN {
    if (out == nullptr) return BadParameter(3);
    const Found found = Find(handle, counter, reset);
    if (found.error != DAT_SUCCESS) return found.error;
    const auto which = static_cast<size_t>(counter);
    if (which < found.values.size()) {
      *out = found.values[which];
    } else {
      std::copy(found.values.begin(), found.values.end(), out);
    }
    return DAT_SUCCESS;
  });
}

DAT_RETURN PrintCounters(DAT_HANDLE handle, int counter, bool reset) {
  return Control([&]() -> DAT_RETURN {
    const Found found = Find(handle, counter, reset);
    if (found.error != DAT_SUCCESS) return found.error;
    const bool all = counter == static_cast<int>(found.values.size());
    for (size_t i = 0; i < found.values.size(); ++i) {
      if (all ? found.values[i] == 0 : counter != static_cast<int>(i)) continue;
      std::printf("%-32s %llu\n", found.names[i], static_cast<unsigned long long>(found.values[i]));
    }
    return DAT_SUCCESS;
  });
}

DAT_RETURN RunCounters(DAT_HANDLE handle, int group, bool start) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(handle);
    if (!adapter) return kBadIa;
    switch (group) {
      case DCNT_IA_CM:
        adapter->CountConnections(start);
        return DAT_SUCCESS;
      case DCNT_IA_LNK:
      case DCNT_IA_DIAG:
        return Failure(DAT_MODEL_NOT_SUPPORTED);
      default:
        return BadParameter(2);
    }
  });
}

}  // namespace viaduct::dat
