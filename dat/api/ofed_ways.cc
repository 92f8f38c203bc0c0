#include "dat/api/ofed_ways.h"

#include <algorithm>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "dat/api/face.h"
#include "verbs/base/held_across_forks.h"
#include "verbs/base/lock.h"

#pragma weak dats_get_ia_handle

namespace viaduct::dat {

// Our functions. routes.py also declares them, for the table.
DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT* event);
DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle);
DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
                        DAT_EVENT* event, DAT_COUNT* nmore);
DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE* ep_state,
                             DAT_BOOLEAN* recv_idle, DAT_BOOLEAN* request_idle);
DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS ia_flags);
DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep_handle,
                          DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE* rsp_handle);
DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle);
DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM* param);

namespace {

// A reserved service point that the program has not freed, or whose request it has not seen yet.
struct Reserved {
  DAT_RSP_HANDLE point;
  DAT_IA_HANDLE adapter;
  DAT_EVD_HANDLE evd;
  DAT_EP_HANDLE ep;
  DAT_CONN_QUAL qualifier;
  bool spent = false;  // its request has been shown, or its dispatcher is gone
  bool freed = false;  // while its request was waiting to be shown
};

using AllReserved = std::vector<Reserved>;

constinit verbs::Mutex g_lock;
const verbs::HeldAcrossForks<g_lock> g_lock_at_fork;
// Made with the first point, since calls that free or close must not need memory; never destroyed.
constinit AllReserved* g_points ABSL_GUARDED_BY(g_lock) = nullptr;

void ShowAdapter(DAT_EVENT* event) {
  if (event->event_number != DAT_ASYNC_ERROR_IA_CATASTROPHIC) return;
  DAT_HANDLE& adapter = event->event_data.asynch_error_event_data.dat_handle;
  adapter = RegistrysHandle(adapter);
}

void ShowReserved(DAT_EVENT* event) {
  if (event->event_number != DAT_CONNECTION_REQUEST_EVENT) return;
  DAT_CR_ARRIVAL_EVENT_DATA& request = event->event_data.cr_arrival_event_data;
  if (request.sp_handle.rsp_handle != DAT_HANDLE_NULL) return;
  verbs::MutexLock lock(&g_lock);
  if (g_points == nullptr) return;
  const auto found =
      std::find_if(g_points->begin(), g_points->end(), [&](const Reserved& reserved) {
        return !reserved.spent && reserved.evd == event->evd_handle &&
               reserved.qualifier == request.conn_qual;
      });
  if (found == g_points->end()) return;
  if (found->freed) {
    g_points->erase(found);
    return;
  }
  found->spent = true;
  request.sp_handle.rsp_handle = found->point;
}

void Show(DAT_EVENT* event) {
  ShowReserved(event);
  ShowAdapter(event);
}

DAT_RETURN Dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT* event) {
  const DAT_RETURN result = dat::dat_evd_dequeue(evd_handle, event);
  if (result == DAT_SUCCESS) Show(event);
  return result;
}

DAT_RETURN Wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
                DAT_EVENT* event, DAT_COUNT* nmore) {
  const DAT_RETURN result = dat::dat_evd_wait(evd_handle, timeout, threshold, event, nmore);
  if (result == DAT_SUCCESS) Show(event);
  return result;
}

DAT_RETURN CreateReserved(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep_handle,
                          DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE* rsp_handle) {
  return Protected([&]() -> DAT_RETURN {
    verbs::MutexLock lock(&g_lock);  // nobody shows the request before the point is known here
    if (g_points == nullptr) g_points = new AllReserved;
    AllReserved& points = *g_points;
    points.push_back({DAT_HANDLE_NULL, ia_handle, evd_handle, ep_handle, conn_qual});
    const DAT_RETURN result =
        dat::dat_rsp_create(ia_handle, conn_qual, ep_handle, evd_handle, rsp_handle);
    if (result != DAT_SUCCESS) {
      points.pop_back();
      return result;
    }
    Reserved& made = points.back();
    made.point = *rsp_handle;
    DAT_RSP_PARAM param = {};  // shows the endpoint that the call may have created
    param.ep_handle = ep_handle;
    (void)dat::dat_rsp_query(*rsp_handle, DAT_RSP_FIELD_ALL, &param);
    made.ep = param.ep_handle;
    return result;
  });
}

// For a point that no longer serves, and whose request nobody has seen yet. The engine removes a
// point just after its request has come, so the point may still have been there to be freed.
bool IsRequestWaiting(const Reserved& reserved, DAT_RETURN freed) {
  if (freed != DAT_SUCCESS) return true;
  DAT_EP_STATE state;
  return dat::dat_ep_get_status(reserved.ep, &state, nullptr, nullptr) == DAT_SUCCESS &&
         state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING;
}

DAT_RETURN FreeReserved(DAT_RSP_HANDLE rsp_handle) {
  verbs::MutexLock lock(&g_lock);  // nobody reserves the endpoint anew before its state is seen
  const DAT_RETURN result = dat::dat_rsp_free(rsp_handle);
  // A point that the engine has removed may still be in the list, but one that it could not free
  // is left as it is.
  const bool gone = result == DAT_SUCCESS || DAT_GET_TYPE(result) == DAT_INVALID_HANDLE;
  if (g_points == nullptr || !gone) return result;
  const auto found = std::find_if(
      g_points->begin(), g_points->end(),
      [&](const Reserved& reserved) { return !reserved.freed && reserved.point == rsp_handle; });
  if (found == g_points->end()) return result;
  // The waiting request must not be shown with a later point of the same name.
  found->freed = !found->spent && IsRequestWaiting(*found, result);
  if (!found->freed) g_points->erase(found);
  return DAT_SUCCESS;
}

// Nobody will see the requests that were waiting there.
DAT_RETURN FreeDispatcher(DAT_EVD_HANDLE evd_handle) {
  const DAT_RETURN result = dat::dat_evd_free(evd_handle);
  if (result != DAT_SUCCESS) return result;
  verbs::MutexLock lock(&g_lock);
  if (g_points == nullptr) return result;
  std::erase_if(*g_points, [&](Reserved& reserved) {
    if (reserved.evd == evd_handle) reserved.spent = true;
    return reserved.spent && reserved.freed;
  });
  return result;
}

}  // namespace

DAT_IA_HANDLE RegistrysHandle(DAT_IA_HANDLE adapter) {
  DAT_IA_HANDLE shown = DAT_HANDLE_NULL;
  if (dats_get_ia_handle == nullptr) return adapter;  // that registry has no such function
  return dats_get_ia_handle(adapter, &shown) == DAT_SUCCESS ? shown : adapter;
}

DAT_RETURN CloseAsOfed(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS ia_flags) {
  const DAT_RETURN result = dat::dat_ia_close(ia_handle, ia_flags);
  if (result != DAT_SUCCESS) return result;
  verbs::MutexLock lock(&g_lock);
  if (g_points == nullptr) return result;
  std::erase_if(*g_points, [&](const Reserved& reserved) { return reserved.adapter == ia_handle; });
  return result;
}

void TakeOfedWays(DAT_PROVIDER* table) {
  table->evd_dequeue_func = Dequeue;
  table->evd_wait_func = Wait;
  table->rsp_create_func = CreateReserved;
  table->rsp_free_func = FreeReserved;
  table->ia_close_func = CloseAsOfed;
  table->evd_free_func = FreeDispatcher;
}

}  // namespace viaduct::dat
