// What the device was asked for last, in the words of verbs/device.h. Any thread.
#ifndef VIADUCT_TESTS_RDMA_MOCK_ASKED_H_
#define VIADUCT_TESTS_RDMA_MOCK_ASKED_H_

#include <cstdint>

namespace viaduct::rdma_mock {

// Access of the last registration, and of the last queue pair that was opened to a peer. A local
// read is never asked for: every registration has it.
uint32_t AskedAccess();
uint32_t AskedPeerAccess();

// The delay for a peer of that pair that has found no receive, as InfiniBand counts it; 0: it was
// not said, which is the longest.
int AskedDelay();

// The bytes of the last read, and in how many segments it was to end; -1: there was none.
int AskedRead();
int AskedReadSegments();

// Of the last accept: reads that the peer may have under way, and that this end may have.
int AskedReadsIn();
int AskedReadsOut();

// The options of its provider's extensions that the last dial has told, and the last accept.
uint32_t AskedExtensions();
uint32_t AskedAgreedExtensions();
// The options that the last pair uses that was opened to its peer: who has dialled.
uint32_t AskedUsedExtensions();

// Index of the partition of the last pair that was opened to its peer; -1: there was none.
int AskedPartition();

// A pair of some connection may ask more reads than its peer's answers at a time.
bool AskedCrossedReads();

// Changes of queue pairs since the program began, their states among them: each is a command for
// hardware.
int AskedChanges();

// Of the last request that went inline: how many segments, and where the first one lies.
int AskedInlineSegments();
uint64_t AskedInlineAddress();
// Whether the last bind was to wait for the reads before it.
bool AskedFencedBind();
// A request without segments has had a list whose first one is not empty: some libraries look.
bool AskedStaleSegment();

// Writes of no bytes since the program began.
int AskedEmptyWrites();

// How often a completion queue was armed since the program began.
int AskedArms();

// Calls since the program began from which the kernel would not come back: they end an accept of
// iWARP whose peer has not spoken.
int AskedEndlessCalls();

// Completion queues since the program began.
int AskedCompletionQueues();

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_ASKED_H_
