#include "dat/api/ofed_ways.h"

#include <algorithm>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "verbs/base/lock.h"

namespace viaduct::dat {

// Our functions, which routes.py declares for the table too.
DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT* event);
DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
                        DAT_EVENT* event, DAT_COUNT* nmore);
DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS ia_flags);
DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep_handle,
                          DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE* rsp_handle);
DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle);

namespace {

// A reserved service point that its program has not freed.
struct Reserved {
  DAT_RSP_HANDLE point;
  DAT_IA_HANDLE adapter;
  DAT_EVD_HANDLE evd;
  DAT_CONN_QUAL qualifier;
  bool spent;  // its request has been shown
};

struct AllReserved {
  verbs::Mutex lock;
  std::vector<Reserved> points ABSL_GUARDED_BY(lock);
};
AllReserved& All() {
  static AllReserved* const all = new AllReserved;
  return *all;
}

void ShowReserved(DAT_EVENT* event) {
  if (event->event_number != DAT_CONNECTION_REQUEST_EVENT) return;
  DAT_CR_ARRIVAL_EVENT_DATA& request = event->event_data.cr_arrival_event_data;
  if (request.sp_handle.rsp_handle != DAT_HANDLE_NULL) return;
  AllReserved& all = All();
  verbs::MutexLock lock(&all.lock);
  for (Reserved& reserved : all.points) {
    if (reserved.spent || reserved.evd != event->evd_handle ||
        reserved.qualifier != request.conn_qual) {
      continue;
    }
    reserved.spent = true;
    request.sp_handle.rsp_handle = reserved.point;
    return;
  }
}

DAT_RETURN Dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT* event) {
  const DAT_RETURN result = dat::dat_evd_dequeue(evd_handle, event);
  if (result == DAT_SUCCESS) ShowReserved(event);
  return result;
}

DAT_RETURN Wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
                DAT_EVENT* event, DAT_COUNT* nmore) {
  const DAT_RETURN result = dat::dat_evd_wait(evd_handle, timeout, threshold, event, nmore);
  if (result == DAT_SUCCESS) ShowReserved(event);
  return result;
}

DAT_RETURN CreateReserved(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep_handle,
                          DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE* rsp_handle) {
  AllReserved& all = All();
  verbs::MutexLock lock(&all.lock);  // nobody shows the request before the point is known here
  const DAT_RETURN result =
      dat::dat_rsp_create(ia_handle, conn_qual, ep_handle, evd_handle, rsp_handle);
  if (result == DAT_SUCCESS) {
    all.points.push_back({*rsp_handle, ia_handle, evd_handle, conn_qual, false});
  }
  return result;
}

DAT_RETURN FreeReserved(DAT_RSP_HANDLE rsp_handle) {
  const DAT_RETURN result = dat::dat_rsp_free(rsp_handle);
  AllReserved& all = All();
  verbs::MutexLock lock(&all.lock);
  const auto found =
      std::find_if(all.points.begin(), all.points.end(),
                   [&](const Reserved& reserved) { return reserved.point == rsp_handle; });
  if (found == all.points.end()) return result;
  const bool spent = found->spent;
  all.points.erase(found);
  return spent ? DAT_RETURN{DAT_SUCCESS} : result;
}

DAT_RETURN Close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS ia_flags) {
  const DAT_RETURN result = dat::dat_ia_close(ia_handle, ia_flags);
  if (result != DAT_SUCCESS) return result;
  AllReserved& all = All();
  verbs::MutexLock lock(&all.lock);
  all.points.erase(
      std::remove_if(all.points.begin(), all.points.end(),
                     [&](const Reserved& reserved) { return reserved.adapter == ia_handle; }),
      all.points.end());
  return result;
}

}  // namespace

void TakeOfedWays(DAT_PROVIDER* table) {
  table->evd_dequeue_func = Dequeue;
  table->evd_wait_func = Wait;
  table->rsp_create_func = CreateReserved;
  table->rsp_free_func = FreeReserved;
  table->ia_close_func = Close;
}

}  // namespace viaduct::dat
