// The table behind Next(): include endpoint_state.h.
//
// A row is an input, a column a state; the four columns of UNCONFIGURED states come last. A cell:
//
//   IS  kInvalid, the state stays      NO  kNoEffect, the state stays      OK  kGo, the state stays
//   XYZ kGo, to that state
//   con kGo, to CONNECTED, event kEstablished
//   d.. kGo, to DISCONNECTED, everything posted is flushed, with an event:
//         dDC kDisconnected   dBR kBroken        dAC kAcceptCompletionError
//         dPR kPeerRejected   dNP kNonPeerRejected   dUR kUnreachable   dTO kTimedOut
//         dNR kNoResources
//
// uUN is an endpoint that was freed: it gives up its queue pair and what is posted. The engine does
// not use the other UNCONFIGURED states, whose columns follow DAT.
#ifndef VIADUCT_DAT_CORE_ENDPOINT_TABLE_H_
#define VIADUCT_DAT_CORE_ENDPOINT_TABLE_H_

#include <array>
#include <cstddef>

#include "dat/core/endpoint_state.h"

namespace viaduct::core {
namespace endpoint_table {

struct Cell {
  enum Kind : uint8_t { kMissing, kStays, kMoves };
  Kind kind = kMissing;
  Verdict verdict = Verdict::kInvalid;
  EndpointState next = EndpointState::kUnconnected;
  bool flush = false;
  EndpointEvent event = EndpointEvent::kNone;
};

constexpr Cell Stays(Verdict verdict) {
  return {Cell::kStays, verdict, EndpointState::kUnconnected, false, EndpointEvent::kNone};
}
constexpr Cell To(EndpointState next, EndpointEvent event = EndpointEvent::kNone) {
  return {Cell::kMoves, Verdict::kGo, next, false, event};
}
constexpr Cell Ends(EndpointEvent event) {
  return {Cell::kMoves, Verdict::kGo, EndpointState::kDisconnected, true, event};
}

using Column = EndpointState;
inline constexpr std::array<Column, kEndpointStates> kColumns = {
    Column::kUnconnected,
    Column::kReserved,
    Column::kPassivePending,
    Column::kActivePending,
    Column::kTentativePending,
    Column::kCompletionPending,
    Column::kConnected,
    Column::kDisconnectPending,
    Column::kDisconnected,
    Column::kUnconfiguredUnconnected,
    Column::kUnconfiguredReserved,
    Column::kUnconfiguredPassive,
    Column::kUnconfiguredTentative,
};

struct Row {
  EndpointInput input;
  std::array<Cell, kEndpointStates> cells;
};

constexpr std::array<Row, kEndpointInputs> Rows() {
  using In = EndpointInput;
  constexpr Cell IS = Stays(Verdict::kInvalid);
  constexpr Cell NO = Stays(Verdict::kNoEffect);
  constexpr Cell OK = Stays(Verdict::kGo);
  constexpr Cell UNC = To(EndpointState::kUnconnected);
  constexpr Cell RES = To(EndpointState::kReserved);
  constexpr Cell PCP = To(EndpointState::kPassivePending);
  constexpr Cell ACP = To(EndpointState::kActivePending);
  constexpr Cell CMP = To(EndpointState::kCompletionPending);
  constexpr Cell DPD = To(EndpointState::kDisconnectPending);
  constexpr Cell uUN = To(EndpointState::kUnconfiguredUnconnected);
  constexpr Cell uPC = To(EndpointState::kUnconfiguredPassive);
  constexpr Cell con = To(EndpointState::kConnected, EndpointEvent::kEstablished);
  constexpr Cell dDC = Ends(EndpointEvent::kDisconnected);
  constexpr Cell dBR = Ends(EndpointEvent::kBroken);
  constexpr Cell dAC = Ends(EndpointEvent::kAcceptCompletionError);
  constexpr Cell dPR = Ends(EndpointEvent::kPeerRejected);
  constexpr Cell dNP = Ends(EndpointEvent::kNonPeerRejected);
  constexpr Cell dUR = Ends(EndpointEvent::kUnreachable);
  constexpr Cell dTO = Ends(EndpointEvent::kTimedOut);
  constexpr Cell dNR = Ends(EndpointEvent::kNoResources);
  // clang-format off
  return {{
      // Calls.                   UNC  RES  PCP  ACP  TCP  CMP  CON  DPD  DIS  uUN  uRS  uPC  uTC
      {In::kConnect,           {{ ACP, IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS }}},
      {In::kDuplicate,         {{ IS,  IS,  IS,  IS,  IS,  IS,  OK,  IS,  IS,  IS,  IS,  IS,  IS }}},
      {In::kReserve,           {{ RES, IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS }}},
      // Freeing a service point succeeds whatever has become of its endpoint since.
      {In::kUnreserve,         {{ NO,  UNC, NO,  NO,  NO,  NO,  NO,  NO,  NO,  NO,  uUN, NO,  NO }}},
      {In::kAcceptExplicit,    {{ CMP, IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS }}},
      {In::kAcceptImplicit,    {{ IS,  IS,  CMP, IS,  CMP, IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS }}},
      {In::kRejectImplicit,    {{ IS,  IS,  UNC, IS,  UNC, IS,  IS,  IS,  IS,  IS,  IS,  uUN, uUN}}},
      {In::kDisconnectAbrupt,  {{ IS,  IS,  IS,  dDC, IS,  dDC, dDC, dDC, NO,  IS,  IS,  IS,  IS }}},
      {In::kDisconnectGraceful,{{ IS,  IS,  IS,  dDC, IS,  dDC, DPD, NO,  NO,  IS,  IS,  IS,  IS }}},
      {In::kPostRequest,       {{ IS,  IS,  IS,  IS,  IS,  IS,  OK,  IS,  OK,  IS,  IS,  IS,  IS }}},
      {In::kModifyAttributes,  {{ OK,  OK,  OK,  IS,  OK,  IS,  IS,  IS,  IS,  IS,  OK,  OK,  OK }}},
      {In::kModifyZone,        {{ OK,  IS,  IS,  IS,  OK,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  OK }}},
      {In::kReset,             {{ NO,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  UNC, IS,  IS,  IS,  IS }}},
      {In::kFree,              {{ uUN, IS,  IS,  uUN, IS,  uUN, uUN, uUN, uUN, OK,  IS,  IS,  IS }}},
      // Wire and timer.          UNC  RES  PCP  ACP  TCP  CMP  CON  DPD  DIS  uUN  uRS  uPC  uTC
      {In::kRequestArrived,    {{ IS,  PCP, IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  uPC, IS,  IS }}},
      {In::kPeerAccepted,      {{ IS,  IS,  IS,  con, IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS }}},
      {In::kPeerRejected,      {{ IS,  IS,  IS,  dPR, IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS }}},
      {In::kNonPeerRejected,   {{ IS,  IS,  IS,  dNP, IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS }}},
      {In::kUnreachable,       {{ IS,  IS,  IS,  dUR, IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS }}},
      {In::kTimedOut,          {{ IS,  IS,  IS,  dTO, IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS }}},
      {In::kNoResources,       {{ IS,  IS,  IS,  dNR, IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS,  IS }}},
      {In::kConfirmed,         {{ IS,  IS,  IS,  IS,  IS,  con, IS,  IS,  IS,  IS,  IS,  IS,  IS }}},
      // If the requester goes before the accept, only the accept notices.
      {In::kAcceptFailed,      {{ IS,  IS,  NO,  IS,  NO,  dAC, IS,  IS,  IS,  IS,  IS,  NO,  NO }}},
      {In::kDrained,           {{ IS,  IS,  IS,  IS,  IS,  IS,  IS,  dDC, IS,  IS,  IS,  IS,  IS }}},
      {In::kPeerDisconnected,  {{ IS,  IS,  IS,  IS,  IS,  IS,  dDC, dDC, IS,  IS,  IS,  IS,  IS }}},
      {In::kBroken,            {{ IS,  IS,  IS,  IS,  IS,  IS,  dBR, dBR, IS,  IS,  IS,  IS,  IS }}},
  }};
  // clang-format on
}

// Every input has its row at its own place, every state one column, every cell a content.
constexpr bool IsTotal() {
  std::array<bool, kEndpointStates> seen = {};
  for (EndpointState column : kColumns) {
    if (seen[static_cast<size_t>(column)]) return false;
    seen[static_cast<size_t>(column)] = true;
  }
  const std::array<Row, kEndpointInputs> rows = Rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<size_t>(rows[i].input) != i) return false;
    for (const Cell& cell : rows[i].cells) {
      if (cell.kind == Cell::kMissing) return false;
    }
  }
  return true;
}
static_assert(IsTotal());

// The rows in the order of the enums, with the state filled in where it stays.
using Table = std::array<std::array<Transition, kEndpointStates>, kEndpointInputs>;
constexpr Table Expand() {
  Table table = {};
  const std::array<Row, kEndpointInputs> rows = Rows();
  for (size_t input = 0; input < rows.size(); ++input) {
    for (size_t column = 0; column < kColumns.size(); ++column) {
      const Cell& cell = rows[input].cells[column];
      const EndpointState state = kColumns[column];
      table[input][static_cast<size_t>(state)] = {
          cell.verdict, cell.kind == Cell::kStays ? state : cell.next, cell.flush, cell.event};
    }
  }
  return table;
}
inline constexpr Table kTable = Expand();

// An event comes only where it was expected, and the dispatcher that expects it stays in place. So
// no transition needs room for an event, except the calls that begin an attempt.
constexpr bool ExpectsEvents() {
  for (const Row& row : Rows()) {
    const bool begins = row.input == EndpointInput::kConnect ||
                        row.input == EndpointInput::kAcceptExplicit ||
                        row.input == EndpointInput::kAcceptImplicit;
    const bool changes_parts =
        row.input == EndpointInput::kModifyAttributes || row.input == EndpointInput::kModifyZone;
    for (size_t column = 0; column < kColumns.size(); ++column) {
      const Cell& cell = row.cells[column];
      const uint32_t before = EventsToCome(kColumns[column]);
      if (changes_parts && cell.verdict != Verdict::kInvalid && before != 0) return false;
      if (cell.kind != Cell::kMoves || begins) continue;
      const uint32_t told = cell.event == EndpointEvent::kNone ? 0 : 1;
      if (EventsToCome(cell.next) + told > before) return false;
    }
  }
  return true;
}
static_assert(ExpectsEvents());

}  // namespace endpoint_table

constexpr Transition Next(EndpointState state, EndpointInput input) {
  return endpoint_table::kTable[static_cast<size_t>(input)][static_cast<size_t>(state)];
}

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_ENDPOINT_TABLE_H_
