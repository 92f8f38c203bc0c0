// A simulated connection: two links and what is in flight between them.
//
// Each message is one packet. Messages (sends, writes, requests to read) wait in order at the
// receiver until its pair takes them; answers (read data, confirmations) have a queue of their
// own, so that a held message delays neither them nor the report that the peer has left.
#ifndef VIADUCT_VERBS_SIM_CONNECTION_H_
#define VIADUCT_VERBS_SIM_CONNECTION_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "verbs/device.h"
#include "verbs/sim/network.h"
#include "verbs/soft/link.h"
#include "verbs/soft/queue_pair.h"

namespace viaduct::verbs {

using SimBytes = std::vector<uint8_t>;

class SimConnection;

class SimEnd final : public Link {
 public:
  SimEnd(SimConnection& connection, bool active) : connection_(connection), active_(active) {}
  ~SimEnd() override = default;

  void Pump() override;
  bool Poll(int budget) override;
  bool Arrived() const override;
  void Start() override;
  void Heat() override {}
  bool Cool() override { return false; }
  void Disconnect(Status verdict) override;
  bool AllTaken() const override { return messages_.empty(); }

 private:
  friend class SimConnection;

  struct Message {
    Opcode opcode = Opcode::kSend;
    uint16_t flags = 0;
    uint32_t immediate = 0;
    Operands operands = {};  // of an atomic
    uint32_t length = 0;     // of a read: how much is wanted
    uint64_t remote_address = 0;
    Key remote_key = 0;
    uint64_t position = 0;  // at the sender, for the confirmation
    SimBytes bytes;
    bool refused = false;  // a write whose verdict is known while it waits for its receive
    bool placed = false;
  };
  struct Answer {
    bool read = false;  // else a confirmation
    uint64_t position = 0;
    Status status = Status::kSuccess;
    SimBytes bytes;
  };

  SimEnd& peer();
  bool TakeAnswer(const Answer& answer);
  Inbound Take(Message& message);
  Inbound TakeSend(const Message& message);
  Inbound TakeWrite(Message& message);
  Inbound ServeRead(const Message& message);
  Inbound ServeAtomic(const Message& message);
  void SendAnswer(SimBytes bytes);
  void Confirm(const Message& message, Status status);
  void Consumed();
  void Closed(Status verdict);
  void Broken();
  SoftQueuePair* Detach();

  SimConnection& connection_;
  const bool active_;
  SimLane lane_;  // to the peer
  SoftQueuePair* pair_ = nullptr;
  bool open_ = false;     // established
  bool started_ = false;  // Poll may be called
  bool held_ = false;     // the first message waits for a receive
  bool peer_left_ = false;
  uint32_t on_the_way_ = 0;
  std::deque<Message> messages_;
  std::deque<Answer> answers_;
};

class SimConnection : public std::enable_shared_from_this<SimConnection> {
 public:
  SimConnection(Network& network, SimNode& from, SimNode* to, uint16_t port, SoftQueuePair& pair,
                absl::Span<const uint8_t> private_data);

  SimEnd& active() { return active_; }
  SimEnd& passive() { return passive_; }
  bool Joins(const SimNode& a, const SimNode& b) const;

  // Sends the request; the outcome comes to the pair.
  void Dial();
  // The decision on the request, from its listener's side.
  absl::Status Accept(SoftQueuePair& pair, absl::Span<const uint8_t> private_data);
  void Decline(ConnectOutcome outcome, absl::Span<const uint8_t> private_data);

  // Faults.
  void TellDeathOf(const SimNode& node);
  void Reset();

  const SimNode& from() const { return from_; }
  uint16_t from_port() const { return from_port_; }
  const SimBytes& private_data() const { return private_data_; }

 private:
  friend class SimEnd;

  // Delivers to the peer of `end`, unless the connection is reset meanwhile.
  void Send(SimEnd& end, absl::string_view what, size_t bytes, std::function<void()> deliver);
  void FailAttempt(ConnectOutcome outcome, const SimBytes& private_data);
  void Accepted(const SimBytes& private_data, uint32_t reads_in);
  void Ready();
  void RemoveIfOver();

  Network& network_;
  SimNode& from_;
  SimNode* const to_;  // null: no such host
  const uint16_t from_port_;
  const uint16_t port_;
  const SimBytes private_data_;
  uint32_t reads_in_;  // what the active side serves at once
  bool gone_ = false;  // the active side gave up before the request was decided
  bool reset_ = false;
  SimEnd active_{*this, true};
  SimEnd passive_{*this, false};
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SIM_CONNECTION_H_
