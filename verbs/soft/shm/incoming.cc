#include "verbs/soft/shm/incoming.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "verbs/soft/shm/host.h"
#include "verbs/soft/shm/peer.h"

namespace viaduct::verbs::shm {

ShmIncoming::ShmIncoming(EventLoop& loop, std::shared_ptr<ShmLink> link, const Address& from,
                         const RequestBody& body, std::vector<uint8_t> note,
                         std::vector<uint8_t> private_data)
    : loop_(loop),
      link_(std::move(link)),
      from_(from),
      body_(body),
      note_(std::move(note)),
      private_data_(std::move(private_data)) {}

ShmIncoming::~ShmIncoming() { Refuse(); }

absl::Status ShmIncoming::Accept(QueuePair& queue_pair, absl::Span<const uint8_t> private_data) {
  if (decided_) return absl::FailedPreconditionError("the request is decided");
  if (private_data.size() > kMaxPrivateData) return absl::InvalidArgumentError("private data");
  auto& pair = static_cast<SoftQueuePair&>(queue_pair);
  // Allocated before anything has happened: memory may run out.
  ShmLink::Answer answer = {.type = MessageType::kAccept,
                            .private_data = {private_data.begin(), private_data.end()}};
  link_->SetReadsIn(pair.max_reads_in());
  link_->Hold(pair);
  absl::Cleanup let_go = [this] { link_->LetGo(); };
  if (absl::Status attached = pair.Attach(*link_); !attached.ok()) return attached;
  std::move(let_go).Cancel();
  decided_ = true;
  pair.NotePeerHeard();
  pair.SetLocalPort(body_.port);
  pair.SetReadsOut(std::min(pair.max_reads_out(), body_.reads_in));
  answer.terms = {pair.max_reads_in(), pair.max_reads_out()};
  link_->GiveAnswer(std::move(answer));
  return absl::OkStatus();
}

void ShmIncoming::TurnDown(MessageType type, absl::Span<const uint8_t> private_data) {
  if (decided_) return;
  const absl::Span<const uint8_t> data = private_data.subspan(0, kMaxPrivateData);
  link_->GiveAnswer({.type = type, .private_data = {data.begin(), data.end()}});
  decided_ = true;
}

void ShmIncoming::Reject(absl::Span<const uint8_t> private_data) {
  TurnDown(MessageType::kReject, private_data);
}

// The requester asks the other process itself, which is of the same host and user: the rings of a
// connection lie in the memory of the two processes that it joins.
absl::Status ShmIncoming::HandOff(uint16_t port, absl::Span<const uint8_t> note,
                                  Deadline deadline) {
  if (decided_) return absl::FailedPreconditionError("the request is decided");
  absl::Status asked = Host::AskToTake(port, note, deadline);
  if (!asked.ok()) return asked;
  decided_ = true;
  // Done before this returns, since the process may end then.
  loop_.RunAndWait([&] { link_->peer->Redirect(link_, port, note); });
  return absl::OkStatus();
}

void ShmIncoming::Refuse() { TurnDown(MessageType::kRefuse, {}); }

}  // namespace viaduct::verbs::shm
