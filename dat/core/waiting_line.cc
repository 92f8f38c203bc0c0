// The line of several processes that wait for one name (VipConnectWait).
//
// Each waiter listens at the first port of the name that it finds free, so the waiters stand in
// line at the name's ports. Requesters try a name that spells a port only at that port. If another
// waiter has it, whoever comes later stands at the name's hashed ports, where no requester looks.
//
// First come, first served. A waiter that gets a request asks along the line, in the thread that
// waited, whether somebody has waited for longer, and hands the request to that process, which does
// the same. So a request may pass through the whole line, which is shorter than
// verbs::kMostHandOffs. All times are of one clock, the host's. A waiter that is alone in the line
// asks nobody: a process that joins announces itself to everybody ahead of it, and one that opens a
// port asks in any case. A waiter counts as alone after two rounds that met nobody, since somebody
// may join during the first. While it asks, its place is kept, and requests that come there are
// held.
//
// The line closes up: every kMoveUpInterval a waiter that is not at the first port checks whether
// that port, or one right before its own, has become free, and moves there. So the place of a
// process that has gone, killed or not, is given away, and nobody has to keep account of who is
// there. Checking a port dials it, and wakes up the process there: so the ports in between are left
// to the waiters right behind them. A port that looks free may be a stranger's, and on an RDMA
// device, which knows of no other process, all ports of others look free. Such ports are tried
// again after kRefusedFor.
//
// A stopped process does not answer. It is passed over, and hears what it was told when it goes on;
// whoever asks waits for all answers together no longer than AnswerFor allows. If a stopped process
// has the port that the name spells, whoever comes later takes it for a waiter, and stands behind
// it.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "dat/core/connection_manager.h"

namespace viaduct::core {
namespace {

using verbs::MutexLock;

constexpr verbs::Nanos kMoveUpInterval = 10 * verbs::kNanosPerMilli;
constexpr verbs::Nanos kRefusedFor = verbs::kNanosPerSecond;
constexpr int kRoundsToBeAlone = 2;

}  // namespace

std::vector<uint16_t> ConnectionManager::LinePortsOf(const ServiceName& name) const {
  std::vector<uint16_t> ports = PortsOf(name);
  if (const std::optional<uint16_t> direct = name.direct_port()) {
    for (const uint16_t port : PeerPortsOf(name)) {
      if (port != *direct) ports.push_back(port);
    }
  }
  return ports;
}

std::vector<uint8_t> ConnectionManager::LineNoteFor(const ServiceName& name, uint64_t since) const {
  return EncodeLineNote({since, context_->address().v4()}, name);
}

verbs::Deadline ConnectionManager::AnswerFor(verbs::Deadline deadline) const {
  const verbs::Nanos now = context_->executor().Now();
  return verbs::Deadline::At(
      std::clamp(deadline.at(), now + kShortestAnswer, now + kLongestAnswer));
}

Error ConnectionManager::JoinLine(ServicePoint& point) {
  const ServiceName& name = point.options().name;
  const verbs::Deadline answer = AnswerFor(point.options().deadline);
  const std::vector<uint8_t> joins = LineNoteFor(name, LineNote::kJoins);
  std::vector<uint16_t> ahead;
  Error error = ServeAt(point, PortsOf(name), &ahead);
  const std::optional<uint16_t> direct = name.direct_port();
  if (error.code == Code::kConnQualInUse && direct.has_value()) {
    const verbs::TakeAnswer has_it = context_->WouldTake(*direct, joins, answer);
    if (has_it == verbs::TakeAnswer::kNo) return error;  // a stranger's, or DAT's
    error = ServeAt(point, LinePortsOf(name), &ahead);
  }
  if (!error.ok()) return error;
  for (const uint16_t port : ahead) (void)context_->WouldTake(port, joins, answer);
  return Ok();
}

bool ConnectionManager::TakesFromLine(const ServiceName& name, const LineNote& note) {
  MutexLock lock(&lock_);
  const auto found = services_.find(name);
  if (found == services_.end() || note.address != context_->address().v4()) return false;
  Service& service = found->second;
  if (!service.points.empty() && !service.points.front()->options().shared) return false;
  service.rounds_alone = 0;
  if (note.since == LineNote::kJoins) return true;
  return !service.points.empty() &&
         static_cast<uint64_t>(service.points.front()->options().since) < note.since;
}

bool ConnectionManager::PassToEarlierWaiter(verbs::IncomingConnection& incoming,
                                            const ServicePoint::Options& waiter) {
  const ServiceName& name = waiter.name;
  const verbs::Deadline answer = AnswerFor(waiter.deadline);
  const std::vector<uint8_t> note = LineNoteFor(name, static_cast<uint64_t>(waiter.since));
  std::vector<uint16_t> others = LinePortsOf(name);
  // From the back, as the others move up: so a waiter that moves is still ahead, and is not missed.
  std::reverse(others.begin(), others.end());
  uint64_t serial = 0;
  {
    MutexLock lock(&lock_);
    // A waiter that is scheduled late may find its place gone, and asks like any other.
    if (const auto found = services_.find(name); found != services_.end()) {
      if (found->second.rounds_alone == kRoundsToBeAlone) return false;
      ++found->second.passing;
      serial = found->second.serial;
    }
    std::erase_if(others, [this](uint16_t port)
                              ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) { return IsOpen(port); });
  }
  bool met = false;
  const absl::Cleanup back = [&] {
    MutexLock lock(&lock_);
    const auto found = services_.find(name);
    // Not if a point that does not share the name has served it meanwhile.
    if (found == services_.end() || found->second.serial != serial) return;
    Service& service = found->second;
    --service.passing;
    service.lingers_until = LingersUntil(service);
    service.rounds_alone = met ? 0 : std::min(service.rounds_alone + 1, kRoundsToBeAlone);
  };
  const auto is_served = [this](uint16_t port) { return context_->IsServed(port); };
  while (true) {
    // Check again: a waiter that moved up before it was asked stands at a port where nobody was.
    const auto unasked = std::stable_partition(others.begin(), others.end(), is_served);
    const std::vector<uint16_t> asked(others.begin(), unasked);
    if (asked.empty()) return false;
    others.erase(others.begin(), unasked);
    met = true;
    if (HandToFirst(incoming, asked, note, answer).ok()) return true;
  }
}

void ConnectionManager::MoveUpLater(const ServiceName& name, Service& service) {
  service.move_up_timer =
      context_->executor().RunAt(context_->executor().Now() + kMoveUpInterval,
                                 [this, name, serial = service.serial] { MoveUp(name, serial); });
}

std::vector<size_t> ConnectionManager::FreePlacesBefore(size_t own,
                                                        const std::vector<uint16_t>& ports) {
  size_t first = own;
  while (first > 0 && !context_->IsServed(ports[first - 1])) --first;
  std::vector<size_t> free;
  // Try the front, too: whoever serves a port in between may serve another name, and never move.
  if (first > 1 && !context_->IsServed(ports[0])) free.push_back(0);
  for (size_t place = first; place < own; ++place) free.push_back(place);
  return free;
}

void ConnectionManager::MoveUp(const ServiceName& name, uint64_t serial) {
  std::shared_ptr<Port> left;  // outside the lock
  MutexLock lock(&lock_);
  const auto found = services_.find(name);
  if (found == services_.end() || found->second.serial != serial) return;
  Service& service = found->second;
  const std::vector<uint16_t> ports = LinePortsOf(name);
  std::vector<size_t> free = FreePlacesBefore(service.place, ports);
  const verbs::Nanos now = context_->executor().Now();
  if (free != service.refused || now >= service.refused_until) {
    for (const size_t place : free) {
      if (!OpenPort(ports[place], &left).ok()) continue;
      service.port.swap(left);
      service.place = place;
      service.rounds_alone = 0;
      break;
    }
    service.refused = std::move(free);
    service.refused_until = now + kRefusedFor;
  }
  service.move_up_timer = 0;
  if (service.place != 0) MoveUpLater(name, service);
}

}  // namespace viaduct::core
