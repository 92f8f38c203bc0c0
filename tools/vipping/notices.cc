#include "tools/vipping/notices.h"

#include <chrono>

#include "tools/vipping/end.h"

namespace viaduct::vipping {

Notices& Notices::Box() {
  static Notices& box = *new Notices;
  return box;
}

void Notices::Begin(VIP_VI_HANDLE vi) {
  const std::lock_guard<std::mutex> hold(mutex_);
  vi_ = vi;
  ++turn_;
  registered_[0] = registered_[1] = false;
  notices_.clear();
}

std::optional<Notice> Notices::Next(bool receive, int seconds) {
  std::unique_lock<std::mutex> hold(mutex_);
  if (notices_.empty() && !registered_[receive]) {
    registered_[receive] = true;
    hold.unlock();
    Register(receive);
    hold.lock();
  }
  if (!changed_.wait_for(hold, std::chrono::seconds(seconds), [&] { return !notices_.empty(); })) {
    return std::nullopt;
  }
  const Notice notice = notices_.front();
  notices_.pop_front();
  return notice;
}

// The context is not a pointer; it says which VI and which queue.
void Notices::Register(bool receive) {
  const auto context = reinterpret_cast<VIP_PVOID>(turn_ << 1 | uintptr_t{receive});
  if (receive) {
    Must("VipRecvNotify", VipRecvNotify(vi_, context, &Take));
  } else {
    Must("VipSendNotify", VipSendNotify(vi_, context, &Take));
  }
}

void Notices::Take(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR* descriptor) {
  const auto number = reinterpret_cast<uintptr_t>(context);
  const bool receive = (number & 1) != 0;
  Notices& box = Box();
  const std::lock_guard<std::mutex> hold(box.mutex_);
  if (number >> 1 != box.turn_) return;
  box.registered_[receive] = false;
  box.notices_.push_back({receive, descriptor});
  box.changed_.notify_one();
}

}  // namespace viaduct::vipping
