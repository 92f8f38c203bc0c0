#include "verbs/soft/iwarp/wire.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "verbs/soft/iwarp/acceptor.h"
#include "verbs/soft/iwarp/exit.h"
#include "verbs/soft/iwarp/handoff.h"
#include "verbs/soft/iwarp/linger.h"
#include "verbs/soft/iwarp/link.h"
#include "verbs/soft/iwarp/mpa_negotiation.h"
#include "verbs/soft/iwarp/socket.h"
#include "verbs/soft/iwarp/startup_io.h"
#include "verbs/soft/iwarp/tcp.h"
#include "verbs/soft/rendezvous.h"

namespace viaduct::verbs::iwarp {
namespace {

constexpr size_t kMostRejected = 256;

class Incoming final : public IncomingConnection {
 public:
  Incoming(std::shared_ptr<LinkShared> shared, ReceivedRequest received,
           std::vector<uint8_t> note = {})
      : shared_(std::move(shared)),
        socket_(std::move(received.socket)),
        request_(std::move(received.request)),
        note_(std::move(note)),
        peer_(received.peer) {}
  ~Incoming() override { Refuse(); }

  const Address& peer_address() const override { return peer_.address; }
  uint16_t peer_port() const override { return peer_.port; }
  absl::Span<const uint8_t> private_data() const override {
    const std::span<const uint8_t> data = request_->frame().private_data;
    return {data.data(), data.size()};
  }

  absl::Status Accept(QueuePair& pair, absl::Span<const uint8_t> private_data) override {
    if (!socket_.valid()) return absl::FailedPreconditionError("decided already");
    return IwarpLink::Answer(shared_, static_cast<SoftQueuePair&>(pair), &socket_,
                             request_->frame(), private_data);
  }

  void Reject(absl::Span<const uint8_t> private_data) override {
    if (!socket_.valid()) return;
    const MpaFrame& request = request_->frame();
    const bool enhanced = request.depths.has_value();
    MpaFrame reply = MakeReject(request.revision, enhanced);
    reply.private_data = std::span(private_data.data(), private_data.size());
    const size_t most = MpaMaxPrivateData(MpaKind::kReply, enhanced);
    if (reply.private_data.size() > most) reply.private_data = reply.private_data.first(most);
    SendFrame(socket_.get(), reply);
    CloseBehindPeer(shared_->loop, std::move(socket_), kRejectLinger, kMostRejected);
  }

  // FIN without a reply. A reset would make some initiators try again with revision 1.
  void Refuse() override { socket_.Reset(); }

  absl::Status HandOff(uint16_t port, absl::Span<const uint8_t> note, Deadline deadline) override {
    if (!socket_.valid()) return absl::FailedPreconditionError("decided already");
    absl::Status status = HandOver(port, {note.data(), note.size()}, deadline, *request_, socket_);
    if (status.ok()) socket_.Reset();  // the other process has its own
    return status;
  }
  absl::Span<const uint8_t> note() const override { return note_; }

 private:
  const std::shared_ptr<LinkShared> shared_;
  Socket socket_;  // invalid: the request is decided
  const std::unique_ptr<MpaParser> request_;
  const std::vector<uint8_t> note_;
  const SocketName peer_;
};

class IwarpListener final : public WireListener {
 public:
  IwarpListener(std::unique_ptr<Acceptor> acceptor, std::unique_ptr<HandOffListener> hand_off)
      : acceptor_(std::move(acceptor)), hand_off_(std::move(hand_off)) {}
  uint16_t port() const override { return acceptor_->port(); }
  void Start() override {
    acceptor_->Start();
    if (hand_off_ != nullptr) hand_off_->Start();
  }

 private:
  const std::unique_ptr<Acceptor> acceptor_;
  const std::unique_ptr<HandOffListener> hand_off_;
};

}  // namespace

IwarpWire::IwarpWire(EventLoop& loop, const Options& options)
    : options_(options), shared_(std::make_shared<LinkShared>(loop, options)) {
  EndConnectionsAtExit(loop);
}

IwarpWire::~IwarpWire() = default;

bool IwarpWire::Reaches(const Address& address) const {
  return address.family() == AF_INET || address.family() == AF_INET6;
}

Link* IwarpWire::Connect(SoftQueuePair& pair, const ConnectOptions& options) {
  if (options.private_data.size() > MpaMaxPrivateData(MpaKind::kRequest, /*enhanced=*/true)) {
    return nullptr;
  }
  return IwarpLink::Dial(shared_, pair, options_.address, options);
}

absl::StatusOr<std::unique_ptr<WireListener>> IwarpWire::Listen(SoftContext&, uint16_t port,
                                                                ListenerSink* sink) {
  std::vector<Address> addresses;
  if (!options_.loopback_only && !options_.address.IsLoopback()) {
    addresses.push_back(options_.address);
  }
  // An adapter on loopback listens on its own address, which need not be 127.0.0.1. Other adapters
  // do without loopback if its interface is down.
  addresses.push_back(options_.address.IsLoopback() ? options_.address
                                                    : LoopbackOf(options_.address));
  AcceptorOptions acceptor_options;
  acceptor_options.silence = options_.silence;
  absl::StatusOr<std::unique_ptr<Acceptor>> acceptor =
      Acceptor::Open(shared_->loop, addresses, port, acceptor_options,
                     [shared = shared_, sink](ReceivedRequest received) {
                       sink->OnRequest(std::make_unique<Incoming>(shared, std::move(received)));
                     });
  if (!acceptor.ok()) return acceptor.status();
  // The unix socket for hand-offs may belong to a process of this user that listens at this port of
  // another address, or a filter may refuse unix sockets: then nothing can be handed off to here.
  absl::StatusOr<std::unique_ptr<HandOffListener>> hand_off = HandOffListener::Open(
      shared_->loop, (*acceptor)->port(), options_.silence,
      [sink](std::span<const uint8_t> note) {
        return sink->TakesHandOff({note.data(), note.size()});
      },
      [shared = shared_, sink](ReceivedRequest received, std::vector<uint8_t> note) {
        sink->OnRequest(std::make_unique<Incoming>(shared, std::move(received), std::move(note)));
      });
  if (!hand_off.ok() && !absl::IsAlreadyExists(hand_off.status()) && MayRendezvous()) {
    return hand_off.status();
  }
  return std::make_unique<IwarpListener>(*std::move(acceptor),
                                         hand_off.ok() ? *std::move(hand_off) : nullptr);
}

}  // namespace viaduct::verbs::iwarp
