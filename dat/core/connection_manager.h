// ConnectionManager: names to ports, requests to service points. One for each device context.
//
// A shared name (VIPL's, whose service points serve one request each) lingers: after its last point
// has gone its port stays open for a while, so that the next VipConnectWait takes it over. A
// request that comes in between is held for that point, no longer than the port lingers. Then, or
// at once if another process seems to wait for the name, it is told that nobody is here, and goes
// on to the next port.
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
    // A name with hashed ports that is not shared is claimed for the whole host. Not in a
    // simulation, whose hosts are one.
    bool claim_names = false;
  };

  // How long the port of a shared name outlives its last point, and a request waits for the next.
  static constexpr verbs::Nanos kLinger = 5 * verbs::kNanosPerMilli;
  // The same after a short wait: a point that met nobody and went within kShortWait. Whoever waits
  // for no longer does something else between two waits, and comes back.
  static constexpr verbs::Nanos kShortWait = 50 * verbs::kNanosPerMilli;
  static constexpr verbs::Nanos kShortWaitLinger = 300 * verbs::kNanosPerMilli;
  // How long another process of the host is given for a word, which its control thread says: a
  // process may be stopped. A waiter whose own time ends before may not wait for the whole of it.
  static constexpr verbs::Nanos kLongestAnswer = verbs::kNanosPerSecond;
  static constexpr verbs::Nanos kShortestAnswer = 250 * verbs::kNanosPerMilli;

  // The process's manager of the device of that name at `address`, made on first use and kept
  // while an adapter is open on it. kNotFound: no interface has the address, or there is no such
  // device; kInsufficientResources.
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
  // No request reaches `point` after it returned. False: it did not serve, or was spent.
  bool Withdraw(ServicePoint& point);
  enum class Delivery {
    kTaken,   // by a point; or held, if `may_wait`
    kNobody,  // serves the name; nothing moved
    kFull,    // nobody who serves it can take another request; nothing moved
  };
  // Brings a request to the point that serves its name.
  Delivery Deliver(Arrival* arrival, bool may_wait);
  // Brings a request to the process of this host and user that serves `name`. kInvalidParameter(2):
  // there is none; then nothing has happened. Blocks; not on the executor.
  Error HandOff(verbs::IncomingConnection& incoming, const ServiceName& name);
  // Hands the request to another process of the host and user where somebody has waited for the
  // name longer than `waiter`. False: there is none, or none takes it. Blocks; not on the executor.
  bool PassToEarlierWaiter(verbs::IncomingConnection& incoming,
                           const ServicePoint::Options& waiter);

 private:
  friend class PeerListening;
  class Port;
  struct Service {
    std::shared_ptr<Port> port;
    std::optional<verbs::NameClaim> claim;
    std::deque<ServicePoint*> points;  // the longest waiting first
    size_t place = 0;                  // of the port among those that it may have
    int rounds_alone = 0;              // along the line, in a row, that met nobody
    int passing = 0;                   // points that are away to pass a request on
    verbs::Executor::TimerId move_up_timer = 0;
    std::vector<size_t> refused;  // places that looked free and were not, as long as they look so
    verbs::Nanos refused_until = 0;  // then they are tried again
    // While there is no point: what the next one gets, and how long it may take to come.
    std::deque<Arrival> held;
    verbs::Nanos linger = kLinger;
    verbs::Nanos lingers_until = 0;
    verbs::Executor::TimerId timer = 0;  // 0: none
    verbs::Nanos timer_at = 0;           // lingers_until or earlier
  };
  // Not Abseil's: those do not survive an insertion for which there is no memory.
  using Services = std::unordered_map<ServiceName, Service, absl::Hash<ServiceName>>;

  bool Serves(const ServiceName& name);
  // Another process seems to serve the name, at another of its ports.
  bool OthersServe(const ServiceName& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // A request for a peer: true if one that waits here took it, with whatever outcome.
  bool OfferToPeers(Arrival* arrival);
  void OnRequest(uint16_t port, std::unique_ptr<verbs::IncomingConnection> incoming);
  // This process listens at `port`.
  bool IsOpen(uint16_t port) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // The listener of `number`, shared by the services on it. AlreadyExists: somebody else has it;
  // Aborted: this process is closing it.
  // `*port` outlives the lock: if a port is closed after all, for want of memory as well, that
  // waits for a request being delivered, which waits for the lock.
  absl::Status OpenPort(uint16_t number, std::shared_ptr<Port>* port)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // The first of `ports` that can be had, into `*port` as with OpenPort; `ahead` gets those before
  // it. kConnQualInUse, kConnQualUnavailable, kInsufficientResources; *closing if it was this
  // process that is closing one.
  Error OpenFirst(const std::vector<uint16_t>& ports, std::vector<uint16_t>* ahead,
                  std::shared_ptr<Port>* port, bool* closing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Makes the attempt again until no port that it wants is being closed. Not on the executor.
  Error RetryWhileClosing(absl::FunctionRef<Error(bool* closing)> attempt);
  // `number` can be opened anew.
  void OnClosed(uint16_t number);
  // At the first free one of `ports`; `ahead` gets those before it.
  Error ServeAt(ServicePoint& point, const std::vector<uint16_t>& ports,
                std::vector<uint16_t>* ahead);
  Error TryToServeAt(ServicePoint& point, const std::vector<uint16_t>& ports,
                     std::vector<uint16_t>* ahead, bool* closing);
  Error OpenService(ServicePoint& point, const std::vector<uint16_t>& ports,
                    std::vector<uint16_t>* ahead, std::shared_ptr<Port>* port, bool* closing)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // To the first of `ports` whose process takes it; all of them share the time until `answer`.
  // NotFound, ResourceExhausted.
  absl::Status HandToFirst(verbs::IncomingConnection& incoming, absl::Span<const uint16_t> ports,
                           absl::Span<const uint8_t> note, verbs::Deadline answer);
  // ---- waiting_line.cc
  Error JoinLine(ServicePoint& point);
  // The name's own ports, and for a direct one those behind which others wait.
  std::vector<uint16_t> LinePortsOf(const ServiceName& name) const;
  std::vector<uint8_t> LineNoteFor(const ServiceName& name, uint64_t since) const;
  // Until when others in the line are asked, by one that waits until `deadline`.
  verbs::Deadline AnswerFor(verbs::Deadline deadline) const;
  bool TakesFromLine(const ServiceName& name, const LineNote& note);
  // While the service is not at the first of its ports: MoveUp, in a while.
  void MoveUpLater(const ServiceName& name, Service& service) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // To the first port that has become free before its own.
  void MoveUp(const ServiceName& name);
  // Of the name's ports: the front, and those right before `own`, as far as nobody serves them.
  std::vector<size_t> FreePlacesBefore(size_t own, const std::vector<uint16_t>& ports);
  Error ClaimName(const ServicePoint::Options& options, std::optional<verbs::NameClaim>* claim);
  // Offers a request to the service's points in their order. One that serves no more is taken
  // away; `spent` gets it if it ends with its request, which it must not do under the lock.
  bool DeliverTo(Service& service, Arrival* arrival, Ref<ServicePoint>* spent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // The last point has gone: the service lingers, or its port is for the caller to close.
  std::shared_ptr<Port> LingerOrRemove(Services::iterator service, bool shared)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // From now on; as long as the device keeps a listener, if that is longer.
  verbs::Nanos LingersUntil(const Service& service) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void OnLingered(const ServiceName& name);
  // Nobody takes it.
  static void TurnAway(Arrival arrival, Delivery why);
  // Makes the request's object and event. Fails, and leaves `arrival` whole, if the point's
  // backlog is full.
  bool Offer(ServicePoint& point, Arrival* arrival) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  const std::unique_ptr<verbs::Context> context_;
  const Ports ports_;
  verbs::Mutex lock_;
  Services services_ ABSL_GUARDED_BY(lock_);
  std::vector<PeerListening*> peers_ ABSL_GUARDED_BY(lock_);  // the longest waiting first
  // Until they are closed; expired meanwhile.
  std::unordered_map<uint16_t, std::weak_ptr<Port>> open_ports_ ABSL_GUARDED_BY(lock_);
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_CONNECTION_MANAGER_H_
