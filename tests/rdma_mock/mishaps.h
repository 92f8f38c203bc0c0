// What goes wrong with a device, when a test says so. Any thread.
#ifndef VIADUCT_TESTS_RDMA_MOCK_MISHAPS_H_
#define VIADUCT_TESTS_RDMA_MOCK_MISHAPS_H_

#include <cstdint>

namespace viaduct::rdma_mock {

// Nothing goes wrong any more.
void EndMishaps();

// The next so many registrations find no memory.
void FailRegistrations(int count);
// What becomes of a registration that is to be changed: the driver cannot; it keeps its key, as
// with mlx5; it has another one then, as where that driver needs another region of the adapter's.
enum class Change : uint8_t { kRefused, kInPlace, kAnotherKey };
void ChangeRegistrations(Change change);
// A key that was given back is given out again next.
void ReuseKeys(bool reuse);
// As with siw: what is posted to a pair whose connection is over never completes.
void SwallowAfterTheEnd(bool swallow);

// What completes is not shown yet.
void ShowNoCompletions(bool late);

// The next so many keys are larger than VIPL's handles can say.
void GiveLargeKeys(int count);
// Until so many were given back. As with mlx4.
void GiveLargeKeysUntilBack(int count);
// Memory for so many more registrations at a time; -1: for any number.
void LimitRegistrations(int count);
// Queue pairs for which the device has room yet; -1: any number.
void LimitPairs(int count);
// No queue pair is made, with that errno; 0: they are.
void FailPairs(int error);
// No id says what a pair of its connection has to be told, with that errno; 0: they do.
void FailAttributes(int error);
// No accept succeeds, with that errno; 0: they do.
void FailAccepts(int error);
// Of requests for the send queue so many more are taken, the next ones refused; -1: none.
void RefuseSendsAfter(int count);
// So many receives are refused.
void RefuseReceives(int count);
// So many discoveries of a neighbour end with their time-out.
void MissNeighbours(int count);
// So many requests do not come to a host, although the neighbour on the way is there.
void MissHosts(int count);
// So many requests meet a connection that the peer still has with a pair of that number, or over
// iWARP one that TCP has from that port.
void MeetStaleConnections(int count);
// So many accepts meet one that the dialling side still has with the accepting pair. That side
// hears of nothing.
void MeetStaleAnswers(int count);
// So many accepts over iWARP come to nothing, since the peer has hung up meanwhile.
void HangUpOnAccepts(int count);
// Requests speak of these extensions of a provider instead of their own; vendor 0: of their own.
void SpeakOfExtensions(uint32_t vendor, uint32_t options);
// The library of mlx5 says that it has extensions, none of them, and takes none: as where its
// adapter has none. Of pairs that are made from now on.
void TakeNoExtensions(bool none);
// Connections are another device's, which has the same address.
void ConnectElsewhere(bool elsewhere);
// Nobody listens any more, and who did is not told. As siw may do it; with other devices nobody
// looks.
void LoseListeners();
// So many requests to disconnect do not come to the peer, until they are repeated: the kernel does
// that after a while, where the id is still there.
void LoseDisconnects(int count);
void RepeatDisconnects();
// So many messages take a shared receive and never end: the receive is flushed with its pair.
void GetMessagesStuck(int count);
// Called while memory is registered or a window made, as if by another thread; null: nothing.
void MeanwhileInMemory(void (*work)());

// What a pair has taken from a shared receive queue is flushed late: when this is false again.
void FlushLate(bool late);
// So many times the word of who dials that the connection is there does not come.
void LoseConfirmations(int count);
// The driver waits for the peer before it destroys a pair: until this is false again.
void HoldPairs(bool hold);
// Reads are answered when this is false again; what is behind them completes before. As with siw.
void HoldReads(bool hold);
// The host has an ibacm that does not answer who asks for a route, until this is false again.
void HoldRoutes(bool hold);
// The library takes nothing any more for a pair whose connection is over.
void RefuseAfterTheEnd(bool refuse);

// Completion queues are not destroyed, with EIO: as of a device that was taken out.
void KeepQueues(bool keep);

// The device tells of the failure of a pair that another library of the process has made on it.
void FailForeignPair();

// Protection domains, queue pairs, and windows, that exist.
int LiveDomains();
int LivePairs();
int LiveWindows();

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_MISHAPS_H_
