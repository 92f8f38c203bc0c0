#include "tests/rdma_mock/mishaps.h"

#include <climits>

#include "tests/rdma_mock/failures.h"
#include "tests/rdma_mock/objects.h"
#include "tests/rdma_mock/told.h"

namespace viaduct::rdma_mock {

void EndMishaps() {
  FailRegistrations(0);
  ChangeRegistrations(Change::kRefused);
  ReuseKeys(false);
  SwallowAfterTheEnd(false);
  RingWithoutEnd(false);
  ShowAll();
  FailWork(Work::kSend, WorkStatus::kSuccess);
  GiveLargeKeys(0);
  GiveLargeKeysUntilBack(0);
  LimitRegistrations(-1);
  LimitPairs(-1);
  FailPairs(0);
  FailAttributes(0);
  FailAccepts(0);
  RefuseSendsAfter(-1);
  RefuseReceives(0);
  MissNeighbours(0);
  MissNeighboursAtOpen(0);
  HoldOpens(false);
  HoldEstablished(false);
  MissHosts(0);
  MeetStaleConnections(0);
  MeetStaleAnswers(0);
  HangUpOnAccepts(0);
  SpeakOfExtensions(0, 0);
  TakeNoExtensions(false);
  TellNoReads(false);
  UseSecondPort(false);
  ConnectElsewhere(false);
  LoseDisconnects(0);
  GetMessagesStuck(0);
  MeanwhileInMemory(nullptr);
  FlushLate(false);
  LoseConfirmations(0);
  HoldPairs(false);
  HoldReads(false);
  RefuseAfterTheEnd(false);
  HoldRoutes(false);
  KeepQueues(false);
}

void FailRegistrations(int count) { mishaps.failing_registrations = count; }

void ChangeRegistrations(Change change) { mishaps.change = static_cast<int>(change); }

void ReuseKeys(bool reuse) { mishaps.reuse_keys = reuse; }

void SwallowAfterTheEnd(bool swallow) { mishaps.swallow = swallow; }

void RingWithoutEnd(bool ring) { mishaps.endless_ringing = ring; }

void ShowNoCompletions(bool late) { ShowAtMost(late ? 0 : INT_MAX); }

void GiveLargeKeys(int count) { mishaps.large_keys = count; }

void GiveLargeKeysUntilBack(int count) { mishaps.large_until_back = count; }

void LimitRegistrations(int count) { mishaps.spare_regions = count; }

void LimitPairs(int count) { mishaps.spare_pairs = count; }

void FailPairs(int error) { mishaps.pair_error = error; }

void FailAttributes(int error) { mishaps.attributes_error = error; }

void FailAccepts(int error) { mishaps.accept_error = error; }

void RefuseSendsAfter(int count) { mishaps.taken_before_refusal = count; }

void RefuseReceives(int count) { mishaps.refused_receives = count; }

void MissNeighbours(int count) { mishaps.missed_neighbours = count; }

void MissNeighboursAtOpen(int count) { mishaps.missed_at_open = count; }

void HoldOpens(bool hold) { mishaps.held_opens = hold; }

void HoldEstablished(bool hold) { mishaps.held_established = hold; }

void MissHosts(int count) { mishaps.missed_hosts = count; }

void MeetStaleConnections(int count) { mishaps.stale_connections = count; }

void MeetStaleAnswers(int count) { mishaps.stale_answers = count; }

void HangUpOnAccepts(int count) { mishaps.hung_up_accepts = count; }

void SpeakOfExtensions(uint32_t vendor, uint32_t options) {
  mishaps.spoken_options = options;
  mishaps.spoken_vendor = vendor;
}

void TakeNoExtensions(bool none) { mishaps.no_extensions = none; }

void TellNoReads(bool none) { mishaps.untold_reads = none; }

void UseSecondPort(bool second) { mishaps.second_port = second; }

void ConnectElsewhere(bool elsewhere) { mishaps.elsewhere = elsewhere; }

void LoseDisconnects(int count) { mishaps.lost_disconnects = count; }

void GetMessagesStuck(int count) { mishaps.stuck_messages = count; }

void MeanwhileInMemory(void (*work)()) { mishaps.making_memory = work; }

void FlushLate(bool late) {
  mishaps.late_flushes = late;
  if (!late) Late().FlushAll();
}

void LoseConfirmations(int count) { mishaps.lost_confirmations = count; }

void HoldPairs(bool hold) { mishaps.held_pairs = hold; }

void HoldRoutes(bool hold) { mishaps.held_routes = hold; }

void HoldReads(bool hold) {
  mishaps.held_reads = hold;
  if (!hold) Held().AnswerAll();
}

void RefuseAfterTheEnd(bool refuse) { mishaps.refusing = refuse; }

void KeepQueues(bool keep) { mishaps.kept_queues = keep; }

int LiveDomains() { return live[static_cast<int>(Kind::kDomain)]; }

void FailForeignPair() {
  static QueuePair* const foreign = [] {
    auto* const made = new QueuePair(1);
    made->qp_context = reinterpret_cast<void*>(uintptr_t{8});
    return made;
  }();
  Push(IBV_EVENT_QP_FATAL, *foreign);
}

int LivePairs() { return live[static_cast<int>(Kind::kPair)]; }

int LiveWindows() { return live[static_cast<int>(Kind::kWindow)]; }

}  // namespace viaduct::rdma_mock
