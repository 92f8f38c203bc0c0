#include "tests/rdma_mock/asked.h"

#include "tests/rdma_mock/objects.h"
#include "verbs/device.h"

namespace viaduct::rdma_mock {
namespace {

// The right to bind windows opens nothing by itself.
uint32_t AccessOf(int flags) {
  uint32_t access = 0;
  if ((flags & IBV_ACCESS_LOCAL_WRITE) != 0) access |= verbs::kLocalWrite;
  if ((flags & IBV_ACCESS_REMOTE_READ) != 0) access |= verbs::kRemoteRead;
  if ((flags & IBV_ACCESS_REMOTE_WRITE) != 0) access |= verbs::kRemoteWrite;
  if ((flags & IBV_ACCESS_REMOTE_ATOMIC) != 0) access |= verbs::kRemoteAtomic;
  return access;
}

}  // namespace

uint32_t AskedAccess() { return AccessOf(asked.access); }

uint32_t AskedPeerAccess() { return AccessOf(static_cast<int>(asked.peer_access)); }

int AskedDelay() { return asked.delay; }

int AskedRead() { return asked.read; }

int AskedReadSegments() { return asked.read_segments; }

uint32_t AskedInvalidated() { return asked.invalidated; }

int AskedReadsIn() { return asked.reads_in; }

int AskedReadsOut() { return asked.reads_out; }

uint32_t AskedExtensions() { return asked.extensions; }

uint32_t AskedAgreedExtensions() { return asked.agreed_extensions; }

uint32_t AskedUsedExtensions() { return asked.used_extensions; }

int AskedPartition() { return asked.partition; }

bool AskedCrossedReads() { return asked.crossed_reads; }

int AskedChanges() { return asked.changes; }

int AskedInlineSegments() { return asked.inline_segments; }

uint64_t AskedInlineAddress() { return asked.inline_address; }

bool AskedFencedBind() { return asked.fenced_bind; }

bool AskedStaleSegment() { return asked.stale_segment; }

int AskedEmptyWrites() { return asked.empty_writes; }

int AskedArms() { return asked.arms; }

int AskedEndlessCalls() { return asked.endless_calls; }

int AskedCompletionQueues() { return asked.completion_queues; }

}  // namespace viaduct::rdma_mock
