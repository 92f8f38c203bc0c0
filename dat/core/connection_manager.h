// ConnectionManager: maps names to ports and requests to service points. One for each device
// context.
//
// A shared name (VIPL's, whose service points serve one request each) lingers: after its last point
// has gone, its port stays open for a while, so that the next VipConnectWait takes it over. A
// request that comes in between is held for that point, no longer than the port lingers. Then, or
// at once if another process seems to wait for the name, the requester is told that nobody is here,
// and tries the next port.
//
// Several processes that wait for one shared name stand in line at its ports: waiting_line.cc.
//
// Threads: calls from any thread; requests of the device come on the executor. Its lock is taken
// before an adapter's, an endpoint's and a dispatcher's.
#ifndef VIADUCT_DAT_CORE_CONNECTION_MANAGER_H_
#define VIADUCT_DAT_CORE_CONNECTION_MANAGER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "dat/core/connection_header.h"
#include "dat/core/connection_request.h"
#include "dat/core/error.h"
#include "dat/core/service_name.h"
#include "dat/core/service_point.h"
#include "verbs/base/lock.h"
#include "verbs/base/name_claim.h"
#include "verbs/device.h"

namespace viaduct::core {

class PeerListening;

class ConnectionManager {
 public:
  struct Ports {
    uint16_t base = 61000;
    uint16_t range = 4536;
    // Claim a name with hashed ports that is not shared for the whole host. False in a simulation,
    // whose hosts are all on one real host.
    bool claim_names = false;
  };

  // How long the port of a shared name outlives its last point, and a request waits for the next.
  static constexpr verbs::Nanos kLinger = 5 * verbs::kNanosPerMilli;
  // After a short wait, that is, after a point that met nobody and went within kShortWait, the port
  // lingers longer: such a server does something else between two waits, and comes back.
  static constexpr verbs::Nanos kShortWait = 50 * verbs::kNanosPerMilli;
  static constexpr verbs::Nanos kShortWaitLinger = 300 * verbs::kNanosPerMilli;
  // How long to wait for an answer of another process of the host, which its control thread gives:
  // the process may be stopped. A waiter whose own time ends before waits less.
  static constexpr verbs::Nanos kLongestAnswer = verbs::kNanosPerSecond;
  static constexpr verbs::Nanos kShortestAnswer = 250 * verbs::kNanosPerMilli;

  // Gets this process's manager of the device of that name at `address`, which is made on first use
  // and kept while an adapter is open on it. kNotFound: no interface has the address, or there is
  // no such device; kInsufficientResources.
  static Error Get(const verbs::Address& address, const std::string& device,
                   std::shared_ptr<ConnectionManager>* out);

  ConnectionManager(std::unique_ptr<verbs::Context> context, Ports ports);
  ~ConnectionManager();

  verbs::Context& context() const { return *context_; }
  std::vector<uint16_t> PortsOf(const ServiceName& name) const {
    return name.Ports(ports_.base, ports_.range);
  }

  std::vector<uint16_t> PeerPortsOf(const ServiceName& name) const {
    return name.HashedPorts(ports_.base, ports_.range);
  }

  // Listens on the first free port of the point's name. kConnQualInUse: the name is served
  // already and not shared, or its ports are taken; kConnQualUnavailable: the adapter's address has
  // gone. May block; not on the executor.
  Error Serve(ServicePoint& point);
  // Takes a free direct port for the point, whose name becomes that qualifier.
  // kConnQualUnavailable.
  Error ServeAny(ServicePoint& point, uint64_t* qualifier);
  // After the return no request reaches `point`. False: it did not serve, or was spent.
  bool Withdraw(ServicePoint& point);
  enum class Delivery {
    kTaken,   // by a point; or held, if `may_wait`
    kNobody,  // no point serves the name; the request stays with the caller
    kFull,    // served, but there is no room for it; the request stays with the caller
  };
  // Brings a request to the point that serves its name.
  Delivery Deliver(Arrival* arrival, bool may_wait);
  // Hands a request to the process of this host and user that serves `name`. kInvalidParameter(2):
  // there is none; then nothing has happened. Blocks; not on the executor.
  Error HandOff(verbs::IncomingConnection& incoming, const ServiceName& name);
  // Hands a request to another process of the host and user where somebody has waited for the name
  // longer than `waiter`. False: there is none, or none takes it. Blocks; not on the executor.
  bool PassToEarlierWaiter(verbs::IncomingConnection& incoming,
                           const ServicePoint::Options& waiter);

 private:
  friend class PeerListening;
  class Port;
  struct Service {
    // From 1. By which a task of its timers, and who passes a request on, know it: who is late may
    // find another one of its name.
    uint64_t serial = 0;
    std::shared_ptr<Port> port;
    std::optional<verbs::NameClaim> claim;
    std::deque<ServicePoint*> points;  // the longest waiting first
    size_t place = 0;                  // index of `port` among the ports that the name may have
    int rounds_alone = 0;              // rounds along the line, in a row, that met nobody
    int passing = 0;                   // waiters that are passing a request on
    verbs::Executor::TimerId move_up_timer = 0;
    // Places that looked free but could not be had; not tried again while just these look free.
    std::vector<size_t> refused;
    verbs::Nanos refused_until = 0;  // then they are tried again
    // While there is no point: the requests that the next one gets, and how long the port waits for
    // it.
    std::deque<Arrival> held;
    verbs::Nanos linger = kLinger;
    verbs::Nanos lingers_until = 0;
    verbs::Executor::TimerId timer = 0;  // 0: none
    verbs::Nanos timer_at = 0;           // lingers_until or earlier
  };
  // Not an Abseil map, which does not survive an insertion that runs out of memory.
  using Services = std::unordered_map<ServiceName, Service, absl::Hash<ServiceName>>;

  // ---- connection_manager.cc
  bool Serves(const ServiceName& name);
  // Another process seems to serve the name, at another of its ports.
  bool OthersServe(const ServiceName& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void OnRequest(uint16_t port, std::unique_ptr<verbs::IncomingConnection> incoming);
  // This process listens at `port`.
  bool IsOpen(uint16_t port) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Gets the listener of port `number`, which all services on it share. AlreadyExists: somebody
  // else has the port; Aborted: this process is closing it.
  // `*port` must outlive the lock: closing the port, even if only because memory is lacking, waits
  // for a request that is being delivered, which waits for the lock.
  absl::Status OpenPort(uint16_t number, std::shared_ptr<Port>* port)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Opens the first of `ports` that can be had, with `*port` as in OpenPort; `ahead` gets those
  // before it. kConnQualInUse, kConnQualUnavailable, kInsufficientResources; sets `*closing` if it
  // failed because this process is closing one of them.
  Error OpenFirst(const std::vector<uint16_t>& ports, std::vector<uint16_t>* ahead,
                  std::shared_ptr<Port>* port, bool* closing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Repeats `attempt` until no port that it wants is being closed. Not on the executor.
  Error RetryWhileClosing(absl::FunctionRef<Error(bool* closing)> attempt);
  // From now on `number` can be opened again.
  void OnClosed(uint16_t number);
  // Serves `point` at the first free one of `ports`; `ahead` gets those before it.
  Error ServeAt(ServicePoint& point, const std::vector<uint16_t>& ports,
                std::vector<uint16_t>* ahead);
  Error TryToServeAt(ServicePoint& point, const std::vector<uint16_t>& ports,
                     std::vector<uint16_t>* ahead, bool* closing);
  Error OpenService(ServicePoint& point, const std::vector<uint16_t>& ports,
                    std::vector<uint16_t>* ahead, std::shared_ptr<Port>* port, bool* closing)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Hands the request to the first of `ports` whose process takes it; all of them share the time
  // until `answer`. NotFound, ResourceExhausted.
  absl::Status HandToFirst(verbs::IncomingConnection& incoming, absl::Span<const uint16_t> ports,
                           absl::Span<const uint8_t> note, verbs::Deadline answer);
  Error ClaimName(const ServicePoint::Options& options, std::optional<verbs::NameClaim>* claim);
  // Offers a request to the service's points in their order. Removes the point that takes it if it
  // serves one request only; `spent` gets a reserved point, which ends with its request and must
  // not be destroyed under the lock.
  bool DeliverTo(Service& service, Arrival* arrival, Ref<ServicePoint>* spent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // The last point has gone: the service lingers, or the caller gets its port to close.
  std::shared_ptr<Port> LingerOrRemove(Services::iterator service, bool shared)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // The end of a linger that begins now. It lasts at least the device's listener_rest.
  verbs::Nanos LingersUntil(const Service& service) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Schedules OnLingered, at lingers_until.
  void LingerLater(const ServiceName& name, Service& service) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void OnLingered(const ServiceName& name, uint64_t serial);
  // For a service that goes: a task that is running already finds none, or another one.
  void CancelTimers(const Service& service) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Answers a request that nobody takes.
  static void TurnAway(Arrival arrival, Delivery why);
  // Makes the request's object and event. False, with `arrival` unchanged, if the point's backlog
  // is full.
  bool Offer(ServicePoint& point, Arrival* arrival) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  // ---- peer_listening.cc
  // Offers a peer-to-peer request to the attempts that wait here. True if one has decided it.
  bool OfferToPeers(Arrival* arrival);

  // ---- waiting_line.cc
  Error JoinLine(ServicePoint& point);
  // All ports of a line: the name's own ones and, after a direct port, the hashed ports where later
  // waiters stand.
  std::vector<uint16_t> LinePortsOf(const ServiceName& name) const;
  std::vector<uint8_t> LineNoteFor(const ServiceName& name, uint64_t since) const;
  // Until when a waiter that waits until `deadline` may wait for answers from others in the line.
  verbs::Deadline AnswerFor(verbs::Deadline deadline) const;
  bool TakesFromLine(const ServiceName& name, const LineNote& note);
  // Schedules MoveUp, for a service that is not at the first of its ports.
  void MoveUpLater(const ServiceName& name, Service& service) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Moves the service to the first port before its own that has become free.
  void MoveUp(const ServiceName& name, uint64_t serial);
  // Places among the name's ports that nobody serves: the front, and those right before `own`.
  std::vector<size_t> FreePlacesBefore(size_t own, const std::vector<uint16_t>& ports);

  const std::unique_ptr<verbs::Context> context_;
  const Ports ports_;
  verbs::Mutex lock_;
  Services services_ ABSL_GUARDED_BY(lock_);
  uint64_t last_serial_ ABSL_GUARDED_BY(lock_) = 0;           // of a service
  std::vector<PeerListening*> peers_ ABSL_GUARDED_BY(lock_);  // the longest waiting first
  // Ports stay in here until they are closed; while one is being closed its pointer is expired.
  std::unordered_map<uint16_t, std::weak_ptr<Port>> open_ports_ ABSL_GUARDED_BY(lock_);
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_CONNECTION_MANAGER_H_
