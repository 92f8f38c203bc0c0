#include "verbs/rdma/completion_channel.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "verbs/base/at_fork.h"
#include "verbs/base/cancellation.h"
#include "verbs/base/fd.h"
#include "verbs/base/fd_table.h"

namespace viaduct::verbs::rdma {
namespace {

// Each channel takes two descriptors, and a process may have only 1024. All further queues share
// their device's channel.
constexpr int kMostChannels = 64;
constinit std::atomic<int> channels{0};

constinit FdTable descriptors;

const AtFork at_fork(nullptr, nullptr, [] { descriptors.CloseInForkChild(); });

}  // namespace

// On a device that was removed ibv_destroy_cq has failed (EIO), and libibverbs would never close
// a channel that still has queues. Nobody reads it any more, so its descriptor is closed.
void CompletionChannel::Close(ibv_comp_channel* channel, EventFd rouse) {
  const FdChange change;
  const int fd = channel->fd;
  for (int closed : {fd, rouse.get()}) descriptors.Remove(closed);
  rouse = EventFd();
  if (ibv_destroy_comp_channel(channel) != 0) close(fd);
}

CompletionChannel::~CompletionChannel() {
  if (own_ == nullptr) return;
  device_.loop().Unwatch(own_->fd);
  Close(own_, std::move(rouse_));
  channels.fetch_sub(1);
}

void CompletionChannel::Open() {
  if (own_ != nullptr) return;
  const int others = channels.fetch_add(1);
  absl::Cleanup give_back = [] { channels.fetch_sub(1); };
  if (others < kMostChannels && MakeOwn()) std::move(give_back).Cancel();
}

bool CompletionChannel::MakeOwn() {
  EventFd rouse;
  ibv_comp_channel* made = nullptr;
  absl::Cleanup close = [&] {
    if (made != nullptr) Close(made, std::move(rouse));
  };
  {
    const FdChange change;
    rouse = EventFd::OpenHigh();
    if (rouse.valid()) made = ibv_create_comp_channel(device_.verbs());
    if (made == nullptr) return false;
    made->fd = MoveHigh(Fd(made->fd)).Release();
    for (int fd : {made->fd, rouse.get()}) descriptors.Add(fd);
  }
  MakeNonBlocking(made->fd);
  // The control thread may be about to call Watch.
  MutexLock lock(&mutex_);
  own_ = made;
  absl::Cleanup disown = [this] { own_ = nullptr; };
  const auto read = [this](uint32_t events) { OnEvents(events); };
  if (!device_.loop().Watch(made->fd, EPOLLIN, read).ok()) return false;
  std::move(disown).Cancel();
  std::move(close).Cancel();
  rouse_ = std::move(rouse);
  watched_ = true;
  usable_.store(true, std::memory_order_release);
  return true;
}

bool CompletionChannel::Enter() {
  if (!usable()) return false;
  MutexLock lock(&mutex_);
  const pthread_t sleeper = sleeper_.load(std::memory_order_relaxed);
  if (sleeper != kNobody && !pthread_equal(sleeper, pthread_self())) return false;
  // A full fence: either this thread's next check sees the reason for Rouse, or Rouse sees it here.
  sleeper_.exchange(pthread_self());
  if (std::exchange(watched_, false)) device_.loop().SetEvents(own_->fd, 0);
  return true;
}

FutexResult CompletionChannel::Sleep(Deadline deadline) {
  pollfd entries[] = {{own_->fd, POLLIN, 0}, {rouse_.get(), POLLIN, 0}};
  timespec left = {};
  if (!deadline.infinite()) {
    const Nanos time = std::max<Nanos>(deadline.at() - device_.loop().Now(), 0);
    left = {static_cast<time_t>(time / kNanosPerSecond), static_cast<long>(time % kNanosPerSecond)};
  }
  const int saved = errno;
  const long ready = SleepIn(SYS_ppoll, reinterpret_cast<long>(entries), std::size(entries),
                             deadline.infinite() ? 0 : reinterpret_cast<long>(&left), 0, 0, 0);
  FutexResult result = FutexResult::kWoken;
  if (ready == 0) result = FutexResult::kTimedOut;
  if (ready < 0 && errno == EINTR) result = FutexResult::kInterrupted;
  errno = saved;
  if (ready <= 0) return result;
  if ((entries[0].revents & POLLIN) != 0) TakeEvent();
  if ((entries[1].revents & POLLIN) != 0) rouse_.Clear();
  if (((entries[0].revents | entries[1].revents) & ~POLLIN) != 0) usable_.store(false);
  return result;
}

void CompletionChannel::Leave() {
  MutexLock lock(&mutex_);
  sleeper_.store(kNobody);
}

void CompletionChannel::Rouse() {
  if (occupied() && usable()) rouse_.Set();
}

void CompletionChannel::Watch() {
  MutexLock lock(&mutex_);
  if (own_ == nullptr || occupied() || std::exchange(watched_, true)) return;
  device_.loop().SetEvents(own_->fd, EPOLLIN);
}

// In a forked child the numbers of the descriptors may be those of other files; it has no channels.
bool CompletionChannel::usable() const {
  return usable_.load(std::memory_order_acquire) && !Device::InheritedAny();
}

void CompletionChannel::TakeEvent() {
  const int saved = errno;
  ibv_cq* queue;
  void* handler;
  if (ibv_get_cq_event(own_, &queue, &handler) == 0) ibv_ack_cq_events(queue, 1);
  errno = saved;
}

// Takes one event; if there are more, epoll reports them again. When a device is removed the kernel
// closes its channel, which epoll would report for ever.
void CompletionChannel::OnEvents(uint32_t events) {
  TakeEvent();
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
    usable_.store(false);
    device_.loop().Unwatch(own_->fd);
  }
  handler_.OnCqEvent();  // may destroy the queue, and this channel with it
}

}  // namespace viaduct::verbs::rdma
