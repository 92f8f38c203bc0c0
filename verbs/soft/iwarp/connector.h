// The active side up to the reply: a TCP connection, a request frame, the peer's answer.
#ifndef VIADUCT_VERBS_SOFT_IWARP_CONNECTOR_H_
#define VIADUCT_VERBS_SOFT_IWARP_CONNECTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "verbs/base/address.h"
#include "verbs/base/clock.h"
#include "verbs/base/event_loop.h"
#include "verbs/soft/iwarp/mpa.h"
#include "verbs/soft/iwarp/mpa_negotiation.h"
#include "verbs/soft/iwarp/socket.h"
#include "verbs/soft/iwarp/tcp.h"

namespace viaduct::verbs::iwarp {

struct ConnectorOptions {
  Address from = {};  // bound if of the family of `to`, unless only `from` is loopback
  Address to = {};
  uint16_t port = 0;
  std::vector<uint8_t> private_data = {};  // at most MpaMaxPrivateData of an enhanced request
  MpaWish wish = {};
  Nanos reply_time = 10'000'000'000;  // from the first byte of the reply to the last
  Nanos silence = 10'000'000'000;     // SetConnectionOptions; also the limit for a second dial
  // Called on the loop when the source port is known and when the peer's host has answered.
  std::function<void(uint16_t local_port, bool heard)> on_progress = {};
  // Asked on the loop when TCP is connected and nothing has been sent yet: is the peer to be
  // reached another way?
  std::function<bool()> served_nearer = {};
};

// One attempt. Keeps itself alive until it is cancelled or has answered. There is no limit on the
// time until the peer's first byte: the peer's consumer may take its time, and the caller has the
// deadline. For the same reason a lost SYN is repeated for ever, except when a peer that has reset
// the first connection is dialled again: that peer was there a moment ago.
class Connector : public std::enable_shared_from_this<Connector> {
 public:
  enum class Outcome : uint8_t {
    kConnected,
    kRejected,
    kRefused,
    kNobody,
    kUnreachable,
    kNoResources,
    kServedNearer,  // ConnectorOptions::served_nearer returned true
  };
  // `socket` (kConnected) is not watched, and nothing after the reply has been read from it.
  // `reply` (kConnected, kRejected) holds the peer's private data.
  struct Answer {
    Outcome outcome = Outcome::kRefused;
    Socket socket = {};
    MpaAgreement agreement = {};
    std::unique_ptr<MpaParser> reply = {};
    bool heard = false;  // the peer's host has answered, over TCP
  };
  using Handler = std::function<void(Answer)>;

  // `socket`: from NewTcpSocket, of the family of `to`; or invalid, then one is made here. The
  // handler is called once, on the loop and not before Start has returned.
  static std::shared_ptr<Connector> Start(EventLoop& loop, Socket socket, ConnectorOptions options,
                                          Handler handler);

  // On the loop. The handler is not called any more; the peer sees the connection closed.
  void Cancel();

 private:
  Connector(EventLoop& loop, Socket socket, ConnectorOptions options, Handler handler);

  void Dial();
  // Dials again, with a new socket.
  void Redial();
  void OnEvent(uint32_t events);
  void OnConnected(const SocketName& peer);
  void OnReply();
  void OnSocketError(int error);
  void Report();
  void Finish(Answer answer);
  void CloseSocket();

  EventLoop& loop_;
  const ConnectorOptions options_;
  Address to_;
  Handler handler_;  // null: finished or cancelled
  bool enhanced_ = true;
  bool connected_ = false;
  Socket socket_;
  MpaFrame request_;
  std::unique_ptr<MpaParser> reply_;
  EventLoop::TimerId timer_ = 0;
  bool heard_ = false;
  uint16_t local_port_ = 0;
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_CONNECTOR_H_
