#include "verbs/soft/shm/wire.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "verbs/base/fd.h"
#include "verbs/base/futex.h"
#include "verbs/base/interfaces.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/shm/fence.h"
#include "verbs/soft/shm/link.h"

namespace viaduct::verbs::shm {
namespace {

class ShmListener final : public WireListener {
 public:
  ShmListener(Host& host, uint16_t port, const Address& address, ListenerSink* sink)
      : host_(host), port_(port), address_(address), sink_(sink) {}
  ~ShmListener() override { host_.StopListening(port_); }
  uint16_t port() const override { return port_; }
  void Start() override { host_.StartListening(port_, address_, sink_); }

 private:
  Host& host_;
  const uint16_t port_;
  const Address address_;
  ListenerSink* const sink_;
};

// The requester's port, as the listener sees it. It is like a TCP port, but nothing listens there,
// and a living connection may have the same one.
uint16_t NextPort() {
  constexpr uint32_t kFirst = 32768;
  constexpr uint32_t kCount = 28232;  // to 60999
  static std::atomic<uint32_t> next{0};
  return static_cast<uint16_t>(kFirst +
                               (static_cast<uint32_t>(getpid()) * 61 + next.fetch_add(1)) % kCount);
}

// An address that cannot be bound is not this host's. Null as from ListInterfaces.
std::optional<bool> CanBind(const Address& address) {
  sockaddr_storage storage;
  const socklen_t length = address.ToSockaddr(0, &storage);
  Fd probe(socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe.valid() && IsShortage(errno)) return std::nullopt;
  return probe.valid() &&
         bind(probe.get(), reinterpret_cast<const sockaddr*>(&storage), length) == 0;
}

}  // namespace

ShmWire::ShmWire(EventLoop& loop, const Address& address, Nanos silence)
    : host_(Host::Get(loop)), address_(address) {
  host_.AddUser(silence);
}

ShmWire::~ShmWire() { host_.RemoveUser(); }

std::optional<bool> ShmWire::IsOurs(const Address& address) const {
  if (address.IsLoopback() || address == address_) return true;
  const std::optional<bool> bound = CanBind(address);
  if (bound != true) return bound;
  // With ip_nonlocal_bind any address can be bound. It counts as off if no interface is listed.
  const std::optional<Interfaces> interfaces = ListInterfaces();
  if (!interfaces) return std::nullopt;
  return interfaces->empty() || HasAddress(*interfaces, address);
}

bool ShmWire::Reaches(const Address& address) const { return IsOurs(address).value_or(true); }

Link* ShmWire::Connect(SoftQueuePair& pair, const ConnectOptions& options) {
  // Checked again: no port of this host may be dialled for an address that may be another host's.
  const std::optional<bool> ours = IsOurs(options.address);
  if (!ours.has_value()) pair.NoteNoResources();
  if (ours != true) return nullptr;
  pair.NotePeerHeard();  // whatever the outcome, this host is up
  pid_t pid;
  absl::StatusOr<Descriptor> socket = Host::Dial(options.port, &pid);
  if (absl::IsResourceExhausted(socket.status())) pair.NoteNoResources();
  if (absl::IsUnavailable(socket.status())) pair.NoteBacklogFull();
  if (!socket.ok() || options.private_data.size() > kMaxPrivateData) return nullptr;
  const uint16_t from_port = NextPort();
  pair.SetLocalPort(from_port);
  // As over TCP: the peer sees an address of the family that it was asked at.
  const bool same_family = address_.family() == options.address.family();
  const RequestBody body = {ToWire(same_family ? address_ : options.address),
                            ToWire(options.address),
                            options.port,
                            from_port,
                            pair.max_reads_in(),
                            pair.max_reads_out(),
                            0};
  auto link = ShmLink::Make(host_.loop());
  link->Hold(pair);
  absl::Cleanup let_go = [&] { link->LetGo(); };  // if memory runs out
  host_.Connect(link, *std::move(socket), pid, body,
                std::vector<uint8_t>(options.private_data.begin(), options.private_data.end()));
  std::move(let_go).Cancel();
  return link.get();
}

absl::StatusOr<std::unique_ptr<WireListener>> ShmWire::Listen(SoftContext&, uint16_t port,
                                                              ListenerSink* sink) {
  absl::StatusOr<uint16_t> listening = host_.Listen(port);
  if (!listening.ok()) return listening.status();
  absl::Cleanup stop = [&] { host_.StopListening(*listening); };  // if memory runs out
  auto listener = std::make_unique<ShmListener>(host_, *listening, address_, sink);
  std::move(stop).Cancel();
  return listener;
}

bool ShmWire::IsServed(uint16_t port) const { return Host::IsServed(port); }

TakeAnswer ShmWire::WouldTake(uint16_t port, absl::Span<const uint8_t> note,
                              Deadline deadline) const {
  return AnswerOf(Host::AskToTake(port, note, deadline));
}

void ShmDoorbell::Wake(std::atomic<uint32_t>& word) { FutexWake(word, INT_MAX); }

void ShmDoorbell::HeavyFence() { GlobalFence(); }

}  // namespace viaduct::verbs::shm
