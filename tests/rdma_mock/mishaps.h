// What goes wrong with the device, when a test asks for it. Any thread.
#ifndef VIADUCT_TESTS_RDMA_MOCK_MISHAPS_H_
#define VIADUCT_TESTS_RDMA_MOCK_MISHAPS_H_

#include <cstdint>

namespace viaduct::rdma_mock {

// Nothing goes wrong any more.
void EndMishaps();

// The next `count` registrations find no memory.
void FailRegistrations(int count);
// What happens to a registration that is to be changed: the driver cannot do it; it keeps its key,
// as with mlx5; or it gets another one, as when that driver needs another region of the adapter's.
enum class Change : uint8_t { kRefused, kInPlace, kAnotherKey };
void ChangeRegistrations(Change change);
// The key that was given back last is given out next.
void ReuseKeys(bool reuse);
// As with siw: a request posted to a pair whose connection is over never completes.
void SwallowAfterTheEnd(bool swallow);

// While this is true, a completion queue that is armed reports completions at once, although there
// are none.
void RingWithoutEnd(bool ring);

// While `late`, completions are not shown.
void ShowNoCompletions(bool late);

// The next `count` keys are larger than VIPL's handles can hold.
void GiveLargeKeys(int count);
// Keys are too large until `count` have been given back. As with mlx4.
void GiveLargeKeysUntilBack(int count);
// There is memory for `count` more registrations at a time; -1: for any number.
void LimitRegistrations(int count);
// The device has room for `count` more queue pairs; -1: for any number.
void LimitPairs(int count);
// Making a queue pair fails with this errno; 0: it succeeds.
void FailPairs(int error);
// No id tells which attributes the pair of its connection needs, with this errno; 0: they all do.
void FailAttributes(int error);
// Every accept fails with this errno; 0: it succeeds.
void FailAccepts(int error);
// The send queues take `count` more requests and refuse the next ones; -1: they refuse none.
void RefuseSendsAfter(int count);
// The next `count` receives are refused.
void RefuseReceives(int count);
// The next `count` neighbour discoveries time out.
void MissNeighbours(int count);
// The next `count` times that a pair is opened to its peer over an Ethernet port, the discovery
// that the kernel makes then times out, too.
void MissNeighboursAtOpen(int count);
// Until this is false again, that discovery goes on.
void HoldOpens(bool hold);
// Until this is false again, the call by which the dialling side confirms the connection does not
// return; the peer hears of it at once.
void HoldEstablished(bool hold);
// The next `count` connect requests do not reach a host, although the neighbour is there.
void MissHosts(int count);
// The next `count` connect requests meet a connection that the peer still has with a pair of that
// number, or over iWARP one that TCP still has from that port.
void MeetStaleConnections(int count);
// The next `count` accepts meet a connection that the dialling side still has with the accepting
// pair. The dialling side is not notified.
void MeetStaleAnswers(int count);
// The next `count` accepts over iWARP fail, because the peer has hung up meanwhile.
void HangUpOnAccepts(int count);
// Connect requests carry these provider's extensions instead of their own; vendor 0: their own.
void SpeakOfExtensions(uint32_t vendor, uint32_t options);
// The library of mlx5 reports extensions with no options, and takes none, as on an adapter that has
// none. For pairs that are made from now on.
void TakeNoExtensions(bool none);
// Requests do not tell how many reads the requester allows and wants, as those of MPA's revision 1.
void TellNoReads(bool none);
// Connections that begin from now on use port 2.
void UseSecondPort(bool second);
// Connections belong to another device, which has the same address.
void ConnectElsewhere(bool elsewhere);
// Nobody listens any more, and the listeners are not notified. siw may do this; with other devices
// nobody checks for it.
void LoseListeners();
// The next `count` disconnects do not reach the peer until they are repeated; the kernel repeats
// them after a while, if the id still exists.
void LoseDisconnects(int count);
void RepeatDisconnects();
// The next `count` messages take a shared receive and never end; it is flushed with its pair.
void GetMessagesStuck(int count);
// Called while memory is registered or a window made, as if by another thread; null: nothing.
void MeanwhileInMemory(void (*work)());

// Receives that a pair has taken from a shared receive queue are flushed only when this is false
// again.
void FlushLate(bool late);
// The next `count` times the dialling side's confirmation of the connection is lost.
void LoseConfirmations(int count);
// Until this is false again, the driver waits for the peer before it destroys a pair.
void HoldPairs(bool hold);
// Reads are answered only when this is false again; later requests complete first. As with siw.
void HoldReads(bool hold);
// Until this is false again, the host has an ibacm that does not answer requests for a route.
void HoldRoutes(bool hold);
// The library refuses everything that is posted to a pair whose connection is over.
void RefuseAfterTheEnd(bool refuse);

// Completion queues are not destroyed: the call fails with EIO, as on a device that was taken out.
void KeepQueues(bool keep);

// The device reports the failure of a pair that another library of the process has made on it.
void FailForeignPair();

// The numbers of protection domains, queue pairs and windows that exist.
int LiveDomains();
int LivePairs();
int LiveWindows();

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_MISHAPS_H_
