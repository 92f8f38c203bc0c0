// What a DAT program has before its first connection, and short names for what every test does.
//
// A call that must work goes through Must: if it fails, the failure is recorded and the body of
// the test ends.
#ifndef VIADUCT_TESTS_CONFORMANCE_DAT_SIDE_H_
#define VIADUCT_TESTS_CONFORMANCE_DAT_SIDE_H_

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/dat/dat.h"
#include "tests/conformance/harness/harness.h"

namespace viaduct::tests {

inline constexpr DAT_TIMEOUT kMillisecond = 1000;
inline constexpr DAT_TIMEOUT kSecond = 1000 * kMillisecond;
inline constexpr DAT_TIMEOUT kPatience = 10 * kSecond;

std::string Describe(DAT_RETURN value);

#define Must(call) ::viaduct::tests::MustSucceed((call), #call, __FILE__, __LINE__)
void MustSucceed(DAT_RETURN value, const char* call, const char* file, int line);

// Whether `value` is of class ERROR and this type (DAT_INVALID_STATE ...), whatever the subtype.
::testing::AssertionResult Fails(DAT_RETURN value, DAT_UINT32 type);
// The same with the subtype.
::testing::AssertionResult Fails(DAT_RETURN value, DAT_UINT32 type, DAT_UINT32 subtype);

sockaddr_in Ipv4(const char* address);
DAT_IA_ADDRESS_PTR Pointer(sockaddr_in& address);
DAT_DTO_COOKIE Cookie(uint64_t value);
std::vector<uint8_t> Pattern(size_t size, uint8_t seed = 1);
// The harness's Now() in microseconds.
uint64_t NowMicroseconds();

// The next event; a time-out ends the body.
DAT_EVENT Next(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout = kPatience);
// The same; the event must have this number.
DAT_EVENT Next(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_TIMEOUT timeout = kPatience);
// The same; the event must be a connection event of `ep`.
DAT_CONNECTION_EVENT_DATA NextConnection(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number,
                                         DAT_EP_HANDLE ep, DAT_TIMEOUT timeout = kPatience);
DAT_CR_ARRIVAL_EVENT_DATA NextRequest(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout = kPatience);
DAT_DTO_COMPLETION_EVENT_DATA NextCompletion(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout = kPatience);
// Whether no event is there now; if one is, it is taken.
::testing::AssertionResult IsEmpty(DAT_EVD_HANDLE evd);

DAT_EP_STATE StateOf(DAT_EP_HANDLE ep);
DAT_EP_PARAM ParametersOf(DAT_EP_HANDLE ep);
DAT_CR_PARAM ParametersOf(const DAT_CR_ARRIVAL_EVENT_DATA& request);
std::vector<uint8_t> PrivateDataOf(const DAT_CR_PARAM& param);
std::vector<uint8_t> PrivateDataOf(const DAT_CONNECTION_EVENT_DATA& event);

class Side {
 public:
  Side();
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  DAT_EVD_HANDLE NewEvd(DAT_EVD_FLAGS flags, DAT_COUNT length = 64);
  // An endpoint with this side's zone and dispatchers.
  DAT_EP_HANDLE NewEp(const DAT_EP_ATTR* attributes = nullptr);
  DAT_PSP_HANDLE Listen(DAT_CONN_QUAL qualifier, DAT_PSP_FLAGS flags = DAT_PSP_CONSUMER_FLAG);

  DAT_RETURN TryConnect(DAT_EP_HANDLE ep, DAT_CONN_QUAL qualifier, DAT_TIMEOUT timeout = kPatience,
                        const std::vector<uint8_t>& data = {});
  void Connect(DAT_EP_HANDLE ep, DAT_CONN_QUAL qualifier, DAT_TIMEOUT timeout = kPatience,
               const std::vector<uint8_t>& data = {});
  DAT_RETURN TryAccept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, const std::vector<uint8_t>& data = {});

  // Connects `ep` with the endpoint of the peer, which calls the other function on the same
  // qualifier; both return when they are connected.
  void AcceptFrom(Peer& peer, DAT_EP_HANDLE ep, DAT_CONN_QUAL qualifier);
  void ConnectTo(Peer& peer, DAT_EP_HANDLE ep, DAT_CONN_QUAL qualifier);

  // Posts a receive or a send of one byte; the buffer lives as long as the side.
  void PostReceive(DAT_EP_HANDLE ep, uint64_t cookie);
  DAT_RETURN TrySend(DAT_EP_HANDLE ep, uint64_t cookie,
                     DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG);
  // The receives that were posted with cookies first..last must complete as flushed, in that order.
  void ExpectFlushedReceives(DAT_EP_HANDLE ep, uint64_t first, uint64_t last);

  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE cr_evd = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE connect_evd = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE receive_evd = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE request_evd = DAT_HANDLE_NULL;
  DAT_IA_ATTR attributes;
  DAT_PROVIDER_ATTR provider;

 private:
  // A byte to receive into and one to send.
  uint8_t bytes_[2] = {0x5a, 0x5a};
  DAT_LMR_TRIPLET in_;
  DAT_LMR_TRIPLET out_;
};

// Memory that is registered as long as it exists: the peer may access it until then.
class Memory {
 public:
  Memory(const Side& side, size_t size, DAT_MEM_PRIV_FLAGS privileges = DAT_MEM_PRIV_ALL_FLAG);
  ~Memory() { (void)dat_lmr_free(lmr); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  DAT_LMR_TRIPLET Local(size_t offset, size_t length) const {
    return Triplet(bytes.data() + offset, length, lmr_context);
  }
  DAT_RMR_TRIPLET Remote() const {
    return RemoteTriplet(reinterpret_cast<uintptr_t>(bytes.data()), bytes.size(), rmr_context);
  }

  std::vector<uint8_t> bytes;
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT lmr_context = 0;
  DAT_RMR_CONTEXT rmr_context = 0;
};

// Sends all of `memory` on `ep`, again and again, until one send does not complete for a while, or
// `most` have. Returns how many have.
int SendUntilFull(const Side& side, DAT_EP_HANDLE ep, const Memory& memory, int most);

// A side whose endpoint is connected with that of a peer, which constructs the other class.
class AcceptingSide : public Side {
 public:
  explicit AcceptingSide(Peer& peer) { AcceptFrom(peer, ep, Port(0)); }
  const DAT_EP_HANDLE ep = NewEp();
};
class ConnectingSide : public Side {
 public:
  explicit ConnectingSide(Peer& peer) { ConnectTo(peer, ep, Port(0)); }
  const DAT_EP_HANDLE ep = NewEp();
};

// The client of a server that tells it where it may read and write.
class InitiatingSide : public ConnectingSide {
 public:
  explicit InitiatingSide(Peer& peer)
      : ConnectingSide(peer), remote(peer.Receive<DAT_RMR_TRIPLET>()) {}
  // Reads into its memory and waits.
  DAT_DTO_COMPLETION_STATUS Read(size_t offset, size_t length);

  Memory memory{*this, 256};
  DAT_RMR_TRIPLET remote;
};

// Keeps the peer's process stopped, so that it answers nothing.
class StoppedPeer {
 public:
  explicit StoppedPeer(const Peer& peer);
  ~StoppedPeer() { Continue(); }
  void Continue();

 private:
  pid_t pid_;
};

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_CONFORMANCE_DAT_SIDE_H_
