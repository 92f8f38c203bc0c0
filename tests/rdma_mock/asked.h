// What the device was last asked for, in the terms of verbs/device.h. Any thread.
#ifndef VIADUCT_TESTS_RDMA_MOCK_ASKED_H_
#define VIADUCT_TESTS_RDMA_MOCK_ASKED_H_

#include <cstdint>

namespace viaduct::rdma_mock {

// Access of the last registration, and of the last queue pair that was connected to a peer. Local
// read access is never asked for, since every registration has it.
uint32_t AskedAccess();
uint32_t AskedPeerAccess();

// The delay that the same pair asks of a peer for which it has no receive, in InfiniBand's
// encoding. 0: none was given, which means the longest.
int AskedDelay();

// The bytes of the last read, and the number of local segments for its answer; -1: there was none.
int AskedRead();
int AskedReadSegments();

// The key of the window that the last send was to end.
uint32_t AskedInvalidated();

// From the last accept: how many reads the peer may have in flight, and how many this end may have.
int AskedReadsIn();
int AskedReadsOut();

// The options of the provider's extensions in the last connect request, and in the last accept.
uint32_t AskedExtensions();
uint32_t AskedAgreedExtensions();
// The options in use by the last pair that was connected to its peer: that of the dialling side.
uint32_t AskedUsedExtensions();

// Index of the partition of the last pair that was connected to its peer; -1: there was none.
int AskedPartition();

// Whether a pair of some connection may have more reads in flight than its peer answers at a time.
bool AskedCrossedReads();

// Changes of queue pairs since the program began, including state changes: each is a command for
// hardware.
int AskedChanges();

// The number of segments of the last request that went inline, and the address of the first one.
int AskedInlineSegments();
uint64_t AskedInlineAddress();
// Whether the last bind had to wait for the reads before it.
bool AskedFencedBind();
// Whether a request without segments has had a list with a first entry that is not empty: some
// libraries read it.
bool AskedStaleSegment();

// Writes of no bytes since the program began.
int AskedEmptyWrites();

// How often a completion queue was armed since the program began.
int AskedArms();

// Calls since the program began from which the kernel would not return: they end an accept over
// iWARP whose peer has not yet spoken.
int AskedEndlessCalls();

// Completion queues created since the program began.
int AskedCompletionQueues();

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_ASKED_H_
