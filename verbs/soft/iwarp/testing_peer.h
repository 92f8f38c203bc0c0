#ifndef VIADUCT_VERBS_SOFT_IWARP_TESTING_PEER_H_
#define VIADUCT_VERBS_SOFT_IWARP_TESTING_PEER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "verbs/base/fd.h"

// For tests: the other end of a connection as a plain blocking socket on 127.0.0.1, which sends
// exactly the bytes that a test wants. Every wait ends after ten seconds.

namespace viaduct::verbs::iwarp {

class TestPeer {
 public:
  // Connects to a port; fails the test if nobody listens.
  static TestPeer Dial(uint16_t port);
  explicit TestPeer(Fd socket);

  void Send(std::span<const uint8_t> bytes);
  void SendHex(std::string_view hex);
  // One byte per send, so that the bytes arrive in pieces.
  void SendBytewise(std::span<const uint8_t> bytes);

  // Waits until everything sent is in the other end's socket.
  void AwaitTaken();

  // Exactly n bytes in hexadecimal; fewer if the connection ends first.
  std::string ReceiveHex(size_t n);
  // What one recv() returns.
  std::string ReceiveSomeHex();
  // Whether something arrives within a tenth of a second, which is time enough for what is to come.
  bool Readable();
  // One whole FPDU as it came, CRC included.
  std::string ReceiveFpduHex();
  // Reads n bytes and discards them. Returns how many came before the connection ended.
  size_t Discard(size_t n);
  // Everything until the connection ends; `reset` tells RST from FIN.
  struct End {
    std::string hex;
    bool reset = false;
    bool timed_out = false;
  };
  End ReceiveEnd();

  // From now on little fits into this end's receive buffer.
  void KeepLittle();

  void Shutdown();  // FIN
  void Close();     // FIN, or RST if input is unread
  void Reset();     // RST
  uint16_t remote_port() const;
  // How many TCP segments with data have come.
  uint32_t segments() const;

 private:
  Fd socket_;
};

// A listening plain socket.
class TestListener {
 public:
  TestListener();
  uint16_t port() const { return port_; }
  // From now on, whoever connects sends TCP segments of at most `mss` bytes.
  void LimitSegments(int mss);
  TestPeer Accept();
  // Fills the backlog: while the result lives, nobody else who dials gets an answer.
  TestPeer Fill();

 private:
  Fd socket_;
  uint16_t port_ = 0;
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_TESTING_PEER_H_
