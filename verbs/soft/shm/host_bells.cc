// Collecting marks, and arming bells.
#include "verbs/base/epoch.h"
#include "verbs/soft/shm/host.h"

namespace viaduct::verbs::shm {
namespace {

constexpr int kQuietTicks = 3;  // then the control thread sleeps again

}  // namespace

void Host::Collect() {
  EpochGuard guard;
  bool found = false;
  const PeerList& list = *peers_.load(std::memory_order_acquire);
  for (size_t i = 0; i < list.marks.size(); ++i) {
    if (list.marks[i]->load(std::memory_order_relaxed) == 0) continue;
    list.peers[i]->CollectMarks();
    found = true;
  }
  if (found) collected_.fetch_add(1, std::memory_order_relaxed);
}

bool Host::ChangeBells(absl::FunctionRef<void(std::atomic<uint32_t>&)> change) {
  bool marks = false;
  for (const std::shared_ptr<Peer>& peer : peers_.load(std::memory_order_acquire)->peers) {
    change(peer->my_bell());
    marks |= peer->HasMarks();
  }
  return marks;
}

bool Host::Arm() {
  // The bells that a sleeper has armed stay its own; it does not know of the others.
  if (sleepers_ != 0) return ArmWhatIsOff(kBellSocket);
  return ChangeBells(
      [](std::atomic<uint32_t>& bell) { bell.exchange(kBellSocket, std::memory_order_seq_cst); });
}

bool Host::ArmWhatIsOff(uint32_t armed) {
  return ChangeBells([armed](std::atomic<uint32_t>& bell) {
    uint32_t off = kBellOff;
    bell.compare_exchange_strong(off, armed, std::memory_order_seq_cst);
  });
}

// Some peer has rung.
void Host::OnRing() {
  {
    SpinLockHolder holder(&bell_lock_);
    ticking_ = true;
  }
  ticker_->Start();
  quiet_ticks_ = 0;
  Collect();
}

NextTick Host::Tick() {
  for (const std::shared_ptr<Peer>& peer : peers_.load()->peers) peer->RingAgain();
  Collect();
  const uint32_t collected = collected_.load(std::memory_order_relaxed);
  if (collected != collected_at_tick_) {
    collected_at_tick_ = collected;
    quiet_ticks_ = 0;
    return NextTick::kSoon;
  }
  if (++quiet_ticks_ < kQuietTicks) return NextTick::kSoon;
  bool marks = false;
  {
    EpochGuard guard;
    SpinLockHolder holder(&bell_lock_);
    ticking_ = marks = Arm();
  }
  return marks ? NextTick::kSoon : NextTick::kNever;
}

void Host::Expect() {
  if (descent_.inherited()) return;
  bool marks = false;
  {
    EpochGuard guard;
    SpinLockHolder holder(&bell_lock_);
    marks = Arm();
  }
  if (marks) Collect();
}

}  // namespace viaduct::verbs::shm
