// librdmacm's functions, as far as verbs/rdma calls them: connections inside this process.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "tests/rdma_mock/failures.h"
#include "tests/rdma_mock/mishaps.h"
#include "tests/rdma_mock/objects.h"
#include "verbs/base/fd.h"

namespace viaduct::rdma_mock {
namespace {

// Reasons for a reject, InfiniBand 1.4 table 112.
constexpr int kInvalidServiceId = 8;
constexpr int kStaleConnection = 10;
constexpr int kConsumerDefined = 28;

// The first port that rdma_cm draws.
constexpr uint16_t kFirstPort = 20000;

struct Channel : rdma_event_channel {
  EventPipe events;
};

struct Id : rdma_cm_id {
  Id() : rdma_cm_id() { Made(Kind::kId); }
  ~Id() { Gone(Kind::kId); }
  Id(const Id&) = delete;
  Id& operator=(const Id&) = delete;

  Id* peer = nullptr;  // the other end of the connection or request
  bool listening = false;
  // An accept over iWARP whose peer, who must speak first, has not spoken.
  std::atomic<bool> awaits_peer{false};
  verbs::Fd socket;        // if it listens, with siw
  std::set<Id*> unread;    // if it listens: requests that nobody has read
  Id* listener = nullptr;  // if it is such a request
  ibv_ece local_extensions = {};
  ibv_ece remote_extensions = {};  // those of the request, or of its answer
  bool parted = false;             // rdma_disconnect was called
  bool decided = false;            // rdma_accept was called for this request
  // This end knows that there is a connection. The dialling side knows it when it confirms, the
  // accepting side when it receives the confirmation; over iWARP both know it at once.
  bool confirmed = false;
  uint8_t reads_in = 0;  // of a request or its answer, from the other end
  uint8_t reads_out = 0;
  std::atomic<int> unacknowledged{0};  // events that were read
};

struct Event : rdma_cm_event {
  std::string data;
};

struct Everything {
  Mutex mutex;
  std::map<uint16_t, Id*> listeners ABSL_GUARDED_BY(mutex);
  // Pairs that a connection may get, by the id for which they were made. The id's own `qp` is for
  // the library to change.
  std::map<const rdma_cm_id*, QueuePair*> pairs ABSL_GUARDED_BY(mutex);
  uint16_t last_port ABSL_GUARDED_BY(mutex) = kFirstPort;
  std::set<Id*> ids ABSL_GUARDED_BY(mutex);
  std::set<Id*> unheard ABSL_GUARDED_BY(mutex);  // disconnected, and the peer does not know
};

Everything& All() {
  static Everything* const everything = new Everything;
  return *everything;
}

uint16_t& PortIn(sockaddr& address) {
  return address.sa_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                       : reinterpret_cast<sockaddr_in&>(address).sin_port;
}

socklen_t LengthOf(const sockaddr& address) {
  return address.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

void Keep(const sockaddr* address, sockaddr* to) { std::memcpy(to, address, LengthOf(*address)); }

void Bind(Id& id, const sockaddr* address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(All().mutex) {
  Keep(address, &id.route.addr.src_addr);
  uint16_t& port = PortIn(id.route.addr.src_addr);
  if (port == 0) {
    All().last_port = std::max(static_cast<uint16_t>(All().last_port + 1), kFirstPort);
    port = htons(All().last_port);
  }
  id.verbs = mishaps.elsewhere ? OtherVerbs() : Verbs();
  id.port_num = mishaps.second_port ? 2 : 1;
}

// InfiniBand's messages have no length for private data: the data are padded with zeros to this
// size.
size_t RoomForData(rdma_cm_event_type type) {
  switch (type) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      return 56;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
    case RDMA_CM_EVENT_ESTABLISHED:
      return 196;
    default:
      return 148;  // a reject
  }
}

void Tell(Id& id, rdma_cm_event_type type, int status = 0,
          const rdma_conn_param* parameters = nullptr) {
  if (id.channel == nullptr) return;
  // The kernel has nobody to notify about a request that was not accepted.
  if (id.listener != nullptr && !id.decided && type != RDMA_CM_EVENT_CONNECT_REQUEST) return;
  if (type == RDMA_CM_EVENT_ESTABLISHED || type == RDMA_CM_EVENT_DISCONNECTED) {
    id.awaits_peer = false;
    id.confirmed = true;
  }
  Event* const event = new Event();
  event->id = &id;
  event->event = type;
  event->status = status;
  if (parameters != nullptr) {
    event->param.conn = *parameters;
    event->data.assign(static_cast<const char*>(parameters->private_data),
                       parameters->private_data_len);
    if (!IsIwarp()) event->data.resize(RoomForData(type));
    event->param.conn.private_data = event->data.data();
    event->param.conn.private_data_len = static_cast<uint8_t>(event->data.size());
  }
  static_cast<Channel*>(id.channel)->events.Push(&id, static_cast<rdma_cm_event*>(event));
}

void TellReject(Id& id, int reason, const void* data = nullptr, uint8_t size = 0) {
  rdma_conn_param parameters = {};
  parameters.private_data = data;
  parameters.private_data_len = size;
  Tell(id, RDMA_CM_EVENT_REJECTED, reason, &parameters);
}

// Afterwards neither end has a peer.
void Unlink(Id& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(All().mutex) {
  id.peer->peer = nullptr;
  id.peer = nullptr;
}

void Refuse(Id& id, int reason, const void* data, uint8_t size)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(All().mutex) {
  if (id.peer == nullptr) return;
  TellReject(*id.peer, reason, data, size);
  Unlink(id);
}

void ForgetEventsOf(Id& id) {
  if (id.channel == nullptr) return;
  for (void* event : static_cast<Channel*>(id.channel)->events.Forget(&id)) {
    delete static_cast<Event*>(static_cast<rdma_cm_event*>(event));
  }
}

// The id's current pair, or else the pair with this number, is the one for its connection.
void BindPair(const Id& id, uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(All().mutex) {
  QueuePair*& pair = All().pairs[&id];
  pair = static_cast<QueuePair*>(id.qp);
  if (pair != nullptr) return;
  Existing<QueuePair>().ForEach([&pair, number](QueuePair& other) {
    if (other.qp_num == number) pair = &other;
  });
}

// Whether somebody else opens the pair: librdmacm does so for the pair of an id, and a driver of
// iWARP for every pair.
bool IsOpenedFor(const Id& id) { return IsIwarp() || id.qp != nullptr; }

bool IsOpen(const Id& id, const QueuePair& pair) {
  return IsOpenedFor(id) || pair.now == IBV_QPS_RTS;
}

// Null: the id has no pair, or one that can have no connection any more.
QueuePair* PairOf(const Id& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(All().mutex) {
  const auto found = All().pairs.find(&id);
  return found != All().pairs.end() ? found->second : nullptr;
}

// siw listens at a TCP socket of the host. The port may be taken there, because rdma_cm draws the
// number without asking TCP. Whether the address is the host's does not matter.
bool ListenAtSocket(Id& id) {
  const sockaddr& address = id.route.addr.src_addr;
  verbs::Fd bound(socket(address.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int one = 1;
  setsockopt(bound.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  setsockopt(bound.get(), SOL_IP, IP_FREEBIND, &one, sizeof one);
  if (bind(bound.get(), &address, LengthOf(address)) != 0 || listen(bound.get(), 1) != 0) {
    return false;
  }
  id.socket = verbs::MoveHigh(std::move(bound));
  return true;
}

void Silence(Id& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(All().mutex) {
  if (id.listening) All().listeners.erase(ntohs(PortIn(id.route.addr.src_addr)));
  id.listening = false;
  id.socket.Reset();
}

// The effects on others of destroying the id.
void End(Id* id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(All().mutex) {
  Silence(*id);
  for (Id* request : id->unread) {
    Refuse(*request, kConsumerDefined, nullptr, 0);
    ForgetEventsOf(*request);
    All().ids.erase(request);
    delete request;
  }
  const bool answers = id->listener != nullptr || (id->peer != nullptr && id->peer->decided);
  if (answers && !id->confirmed) Refuse(*id, kConsumerDefined, nullptr, 0);
  const bool unheard = All().unheard.erase(id) != 0;
  if (id->peer != nullptr) {
    if (!unheard) Tell(*id->peer, RDMA_CM_EVENT_DISCONNECTED);
    id->peer->peer = nullptr;
  }
  ForgetEventsOf(*id);
  All().ids.erase(id);
  All().pairs.erase(id);
}

// The dialling side confirms that the connection is there.
void Confirm(Id& dial) ABSL_EXCLUSIVE_LOCKS_REQUIRED(All().mutex) {
  Id& request = *dial.peer;
  dial.confirmed = request.confirmed = true;
  QueuePair* const pair = PairOf(request);
  QueuePair* const peer = PairOf(dial);
  if (pair != nullptr && peer != nullptr) {
    Join(*pair, *peer);
    if (pair->reads_out > peer->reads_in || peer->reads_out > pair->reads_in) {
      asked.crossed_reads = true;
    }
  }
  Outcome outcome;
  // Over iWARP there is no such message.
  if (!IsIwarp() && Spoilt("a confirmation",
                           {{RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT},
                            {RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL},
                            {RDMA_CM_EVENT_DEVICE_REMOVAL, 0}},
                           &outcome)) {
    Tell(request, outcome.type, outcome.status);
  } else if (mishaps.lost_confirmations > 0) {
    --mishaps.lost_confirmations;
    request.awaits_peer = request.confirmed = IsIwarp();
  } else {
    Tell(request, RDMA_CM_EVENT_ESTABLISHED);
  }
}

void NoteRead(void* event) {
  ++static_cast<Id*>(static_cast<rdma_cm_event*>(event)->id)->unacknowledged;
}

}  // namespace

void Unbind(const QueuePair& pair) {
  MutexLock lock(&All().mutex);
  std::erase_if(All().pairs, [&pair](const auto& bound) {
    if (bound.second != &pair) return false;
    if (static_cast<const Id*>(bound.first)->awaits_peer) ++asked.endless_calls;
    return true;
  });
}

void TellIds(Ids which, rdma_cm_event_type type, int status) {
  MutexLock lock(&All().mutex);
  for (Id* id : All().ids) {
    const Ids its = id->listening                                    ? Ids::kListening
                    : id->listener != nullptr                        ? Ids::kRequested
                    : id->route.addr.dst_addr.sa_family != AF_UNSPEC ? Ids::kDialling
                                                                     : Ids::kBound;
    if (its == which) Tell(*id, type, status);
  }
}

void TellRequest(uint16_t port) {
  rdma_cm_id* dial;
  if (rdma_create_id(nullptr, &dial, nullptr, RDMA_PS_TCP) != 0) return;
  dial->route.addr.dst_addr.sa_family = AF_INET;
  PortIn(dial->route.addr.dst_addr) = htons(port);
  rdma_conn_param parameters = {};
  rdma_connect(dial, &parameters);
  rdma_destroy_id(dial);
}

void LoseListeners() {
  MutexLock lock(&All().mutex);
  while (!All().listeners.empty()) Silence(*All().listeners.begin()->second);
}

void RepeatDisconnects() {
  MutexLock lock(&All().mutex);
  for (Id* id : std::exchange(All().unheard, {})) {
    if (id->peer != nullptr) Tell(*id->peer, RDMA_CM_EVENT_DISCONNECTED);
  }
}

}  // namespace viaduct::rdma_mock

using namespace viaduct::rdma_mock;  // NOLINT: the library's own names are C's

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
  if (ErrorOf("rdma_create_event_channel", {EMFILE, ENOMEM, EACCES}) != 0) return nullptr;
  Channel* const channel = new Channel();
  channel->fd = channel->events.reading_end();
  return channel;
}

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** out, void* context,
                   rdma_port_space space) try {
  if (ErrorOf("rdma_create_id", {ENOMEM, EMFILE, ENODEV}) != 0) return -1;
  auto id = std::make_unique<Id>();
  id->channel = channel;
  id->context = context;
  id->ps = space;
  {
    MutexLock lock(&All().mutex);
    All().ids.insert(id.get());
  }
  *out = id.release();
  return 0;
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  return -1;
}

// As in librdmacm, whoever has read an event of the id must first acknowledge it.
int rdma_destroy_id(rdma_cm_id* handle) {
  Id* const id = static_cast<Id*>(handle);
  {
    MutexLock lock(&All().mutex);
    if (id->awaits_peer) ++asked.endless_calls;
    End(id);
  }
  while (id->unacknowledged != 0) sched_yield();
  delete id;
  return 0;
}

int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) try {
  if (ErrorOf("rdma_bind_addr", {ENOMEM, EADDRINUSE, EADDRNOTAVAIL}) != 0) return -1;
  MutexLock lock(&All().mutex);
  Bind(*static_cast<Id*>(id), address);
  return 0;
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  return -1;
}

int rdma_listen(rdma_cm_id* handle, int) try {
  if (ErrorOf("rdma_listen", {ENOMEM, EADDRINUSE, EIO}) != 0) return -1;
  Id* const id = static_cast<Id*>(handle);
  MutexLock lock(&All().mutex);
  const uint16_t port = ntohs(PortIn(id->route.addr.src_addr));
  if (All().listeners.contains(port)) {
    errno = EADDRINUSE;
    return -1;
  }
  if (IsSiw() && !ListenAtSocket(*id)) return -1;
  All().listeners[port] = id;
  id->listening = true;
  return 0;
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  return -1;
}

int rdma_resolve_addr(rdma_cm_id* handle, sockaddr* from, sockaddr* to, int) {
  if (ErrorOf("rdma_resolve_addr", {ENOMEM, ENETUNREACH, EADDRNOTAVAIL}) != 0) return -1;
  Id* const id = static_cast<Id*>(handle);
  MutexLock lock(&All().mutex);
  Bind(*id, from);
  Keep(to, &id->route.addr.dst_addr);
  if (mishaps.missed_neighbours > 0) {
    --mishaps.missed_neighbours;
    Tell(*id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
  } else {
    Outcome outcome = {RDMA_CM_EVENT_ADDR_RESOLVED, 0};
    Spoilt("ADDR_RESOLVED",
           {{RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT},
            {RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH},
            {RDMA_CM_EVENT_DEVICE_REMOVAL, 0}},
           &outcome);
    Tell(*id, outcome.type, outcome.status);
  }
  return 0;
}

// There seems to be an ibacm as long as routes are held, during which it does not answer.
int access(const char* path, int mode) noexcept {
  if (std::strncmp(path, "/run/ibacm.", 11) != 0) {
    return static_cast<int>(syscall(SYS_faccessat, AT_FDCWD, path, mode));
  }
  errno = ENOENT;
  return mishaps.held_routes ? 0 : -1;
}

int rdma_resolve_route(rdma_cm_id* id, int) {
  while (mishaps.held_routes) sched_yield();
  if (ErrorOf("rdma_resolve_route", {ENOMEM, EINVAL, ENODEV}) != 0) return -1;
  Outcome outcome = {RDMA_CM_EVENT_ROUTE_RESOLVED, 0};
  Spoilt("ROUTE_RESOLVED",
         {{RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT},
          {RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL},
          {RDMA_CM_EVENT_DEVICE_REMOVAL, 0}},
         &outcome);
  Tell(*static_cast<Id*>(id), outcome.type, outcome.status);
  return 0;
}

int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* attributes, int* mask) {
  const Id& request = *static_cast<Id*>(id);
  MutexLock lock(&All().mutex);
  if (request.listener != nullptr && request.peer == nullptr) {
    errno = EINVAL;  // its connection is over
    return -1;
  }
  if (const int error = mishaps.attributes_error; error != 0) {
    errno = error;
    return -1;
  }
  if (ErrorOf("rdma_init_qp_attr", {ENOMEM, EIO}) != 0) return -1;
  attributes->port_num = id->port_num;
  *mask = AttributesOf(attributes->qp_state);
  attributes->max_dest_rd_atomic = request.reads_in;
  attributes->max_rd_atomic = request.reads_out;
  const bool agreed =
      request.peer != nullptr && (request.listener != nullptr || request.peer->decided);
  attributes->pkey_index = agreed && IsInfiniband(id->port_num) ? kAgreedPartition : 0;
  if (IsInfiniband(id->port_num) && attributes->qp_state == IBV_QPS_RTR) *mask |= kKernelsOwn;
  if (attributes->qp_state == IBV_QPS_INIT) {
    attributes->qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    return 0;
  }
  if (agreed) return 0;
  errno = EINVAL;  // no peer is known that would reach the pair
  return -1;
}

// As in librdmacm, it fails for an id that has a pair.
int rdma_get_remote_ece(rdma_cm_id* id, ibv_ece* extensions) {
  if (ErrorOf("rdma_get_remote_ece", {EINVAL}) != 0) return -1;
  if (id->qp != nullptr) {
    errno = EINVAL;
    return -1;
  }
  *extensions = static_cast<Id*>(id)->remote_extensions;
  return 0;
}

int rdma_set_local_ece(rdma_cm_id* id, ibv_ece* extensions) {
  if (ErrorOf("rdma_set_local_ece", {EINVAL}) != 0) return -1;
  if (id->qp != nullptr || extensions->vendor_id == 0 || extensions->comp_mask != 0) {
    errno = EINVAL;
    return -1;
  }
  static_cast<Id*>(id)->local_extensions = *extensions;
  return 0;
}

int rdma_create_qp(rdma_cm_id* id, ibv_pd* domain, ibv_qp_init_attr* wanted) {
  ibv_qp* const pair = ibv_create_qp(domain, wanted);
  if (pair == nullptr) return -1;
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  int mask;
  if (rdma_init_qp_attr(id, &attributes, &mask) != 0 ||
      ibv_modify_qp(pair, &attributes, mask) != 0) {
    ibv_destroy_qp(pair);
    return -1;
  }
  id->qp = pair;
  return 0;
}

int rdma_connect(rdma_cm_id* handle, rdma_conn_param* parameters) {
  Id* const id = static_cast<Id*>(handle);
  MutexLock lock(&All().mutex);
  if (ErrorOf("rdma_connect", {ENOMEM, EINVAL, EADDRNOTAVAIL}) != 0) return -1;
  BindPair(*id, parameters->qp_num);
  Outcome outcome;
  if (Spoilt("a request",
             {{RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT},
              {RDMA_CM_EVENT_CONNECT_ERROR, -ENOMEM},
              {RDMA_CM_EVENT_DEVICE_REMOVAL, 0}},
             &outcome)) {
    Tell(*id, outcome.type, outcome.status);
    return 0;
  }
  if (mishaps.missed_hosts > 0) {
    --mishaps.missed_hosts;
    Tell(*id, RDMA_CM_EVENT_UNREACHABLE, -EHOSTUNREACH);
    return 0;
  }
  if (mishaps.stale_connections > 0) {
    --mishaps.stale_connections;
    if (IsIwarp()) {
      errno = EADDRNOTAVAIL;
      return -1;
    }
    TellReject(*id, kStaleConnection);
    return 0;
  }
  const auto found = All().listeners.find(ntohs(PortIn(id->route.addr.dst_addr)));
  if (found == All().listeners.end()) {
    TellReject(*id, kInvalidServiceId);
    return 0;
  }
  Id& listener = *found->second;
  Id* const request = new Id();
  request->channel = listener.channel;
  request->context = listener.context;
  request->ps = listener.ps;
  request->peer = id;
  request->verbs = Verbs();
  request->port_num = id->port_num;
  request->route.addr.src_storage = id->route.addr.dst_storage;
  request->route.addr.dst_storage = id->route.addr.src_storage;
  id->peer = request;
  request->listener = &listener;
  asked.extensions = id->local_extensions.options;
  request->remote_extensions = id->local_extensions;
  if (const uint32_t vendor = mishaps.spoken_vendor; vendor != 0) {
    request->remote_extensions = {vendor, mishaps.spoken_options, 0};
  }
  listener.unread.insert(request);
  All().ids.insert(request);
  rdma_conn_param seen = *parameters;
  std::swap(seen.initiator_depth, seen.responder_resources);
  if (mishaps.untold_reads) seen.initiator_depth = seen.responder_resources = 0;
  request->reads_in = seen.responder_resources;
  request->reads_out = seen.initiator_depth;
  Tell(*request, RDMA_CM_EVENT_CONNECT_REQUEST, 0, &seen);
  return 0;
}

int rdma_accept(rdma_cm_id* handle, rdma_conn_param* parameters) {
  Id& id = *static_cast<Id*>(handle);
  MutexLock lock(&All().mutex);
  int error = mishaps.accept_error;
  if (error == 0) error = ErrorOf("rdma_accept", {ENOMEM, EINVAL, EIO});
  if (error != 0) {
    // The kernel then decides the request.
    Refuse(id, kConsumerDefined, nullptr, 0);
    errno = error;
    return -1;
  }
  BindPair(id, parameters->qp_num);
  QueuePair* const pair = PairOf(id);
  QueuePair* const peer = id.peer != nullptr ? PairOf(*id.peer) : nullptr;
  // A side that has given up may take its time to destroy its id.
  if (pair == nullptr || peer == nullptr) {
    errno = ECONNRESET;
    return -1;
  }
  asked.reads_in = parameters->responder_resources;
  asked.reads_out = parameters->initiator_depth;
  asked.agreed_extensions = id.local_extensions.options;
  if (!IsOpen(id, *pair)) {
    errno = EINVAL;  // librdmacm does not check, and the connection would be dead
    return -1;
  }
  id.decided = true;
  if (mishaps.stale_answers > 0) {
    --mishaps.stale_answers;
    TellReject(id, kStaleConnection);
    Unlink(id);
    return 0;
  }
  if (IsIwarp() && mishaps.hung_up_accepts > 0) {
    --mishaps.hung_up_accepts;
    Tell(*id.peer, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    // As qedr's driver does it.
    Tell(id, RDMA_CM_EVENT_ESTABLISHED, -ECONNRESET);
    Tell(id, RDMA_CM_EVENT_DISCONNECTED);
    Unlink(id);
    return 0;
  }
  Outcome outcome;
  if (IsIwarp() && Spoilt("an answer",
                          {{RDMA_CM_EVENT_CONNECT_ERROR, -ENOMEM},
                           {RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL},
                           {RDMA_CM_EVENT_DEVICE_REMOVAL, 0}},
                          &outcome)) {
    Tell(*id.peer, outcome.type, outcome.status);
    Tell(id, RDMA_CM_EVENT_ESTABLISHED);
    Tell(id, RDMA_CM_EVENT_DISCONNECTED);
    Unlink(id);
    return 0;
  }
  id.peer->remote_extensions = id.local_extensions;
  id.peer->reads_in = parameters->initiator_depth;
  id.peer->reads_out = parameters->responder_resources;
  if (IsOpenedFor(*id.peer)) {
    Confirm(*id.peer);
    Tell(*id.peer, RDMA_CM_EVENT_ESTABLISHED, 0, parameters);
  } else {
    Tell(*id.peer, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, parameters);
  }
  return 0;
}

int rdma_establish(rdma_cm_id* handle) {
  Id& id = *static_cast<Id*>(handle);
  {
    MutexLock lock(&All().mutex);
    if (ErrorOf("rdma_establish", {ENOMEM, EINVAL}) != 0) return -1;
    const QueuePair* const pair = PairOf(id);
    if (id.qp != nullptr || id.peer == nullptr || !id.peer->decided || pair == nullptr ||
        !IsOpen(id, *pair)) {
      errno = EINVAL;
      return -1;
    }
    Confirm(id);
  }
  while (mishaps.held_established) sched_yield();
  return 0;
}

void rdma_destroy_event_channel(rdma_event_channel* channel) {
  close(channel->fd);
  delete static_cast<Channel*>(channel);
}

int rdma_reject(rdma_cm_id* id, const void* data, uint8_t size) {
  if (ErrorOf("rdma_reject", {ENOMEM, EINVAL}) != 0) return -1;
  MutexLock lock(&All().mutex);
  Refuse(*static_cast<Id*>(id), kConsumerDefined, data, size);
  return 0;
}

int rdma_reject_ece(rdma_cm_id* id, const void* data, uint8_t size) {
  if (ErrorOf("rdma_reject_ece", {ENOMEM, EINVAL}) != 0) return -1;
  MutexLock lock(&All().mutex);
  Refuse(*static_cast<Id*>(id), kConsumerDefined + 1, data, size);
  return 0;
}

int rdma_disconnect(rdma_cm_id* handle) {
  Id& id = *static_cast<Id*>(handle);
  // librdmacm does not call the kernel if it cannot bring the pair into the error state.
  if (id.qp != nullptr && ErrorOf("rdma_disconnect", {ENOMEM, EIO}) != 0) return -1;
  MutexLock lock(&All().mutex);
  if (id.awaits_peer) ++asked.endless_calls;
  if (QueuePair* const pair = PairOf(id)) Part(*pair);
  // The kernel sends nothing for a request whose accept nobody has confirmed.
  if (id.listener != nullptr && !id.confirmed) return 0;
  if (id.peer == nullptr || std::exchange(id.parted, true)) return 0;
  if (mishaps.lost_disconnects > 0) {
    --mishaps.lost_disconnects;
    All().unheard.insert(&id);
  } else {
    Tell(*id.peer, RDMA_CM_EVENT_DISCONNECTED);
  }
  return 0;
}

int rdma_get_cm_event(rdma_event_channel* handle, rdma_cm_event** event) {
  Channel* const channel = static_cast<Channel*>(handle);
  *event = static_cast<rdma_cm_event*>(channel->events.Pop(channel->fd, NoteRead));
  if (*event == nullptr) return -1;
  if ((*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    Id& request = *static_cast<Id*>((*event)->id);
    MutexLock lock(&All().mutex);
    request.listener->unread.erase(&request);
  }
  return 0;
}

int rdma_ack_cm_event(rdma_cm_event* event) {
  --static_cast<Id*>(event->id)->unacknowledged;
  delete static_cast<Event*>(event);
  return 0;
}

const char* rdma_event_str(rdma_cm_event_type) { return "an event"; }

uint16_t rdma_get_src_port(rdma_cm_id* id) { return PortIn(id->route.addr.src_addr); }

uint16_t rdma_get_dst_port(rdma_cm_id* id) { return PortIn(id->route.addr.dst_addr); }
}
