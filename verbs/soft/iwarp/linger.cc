#include "verbs/soft/iwarp/linger.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <utility>

#include "verbs/base/at_fork.h"
#include "verbs/soft/iwarp/ending.h"
#include "verbs/soft/iwarp/tcp.h"

namespace viaduct::verbs::iwarp {
namespace {

constinit std::atomic<size_t> behind_peers{0};  // sockets that wait for their peer's FIN

// Those that a forked child inherits are the parent's, and the child never closes them.
const AtFork at_fork(nullptr, nullptr, [] { behind_peers.store(0); });

// Kept alive by what the loop holds: the handler of its socket and the task of its timer.
class Lingering final : public std::enable_shared_from_this<Lingering>, private Ending {
 public:
  Lingering(EventLoop& loop, Socket socket, bool finish)
      : loop_(loop), socket_(std::move(socket)), finish_(finish) {
    if (!finish_) ++behind_peers;
  }
  ~Lingering() {
    if (!finish_) --behind_peers;
  }

  // On the loop, like everything that follows.
  void Start(Nanos limit) {
    auto self = shared_from_this();
    if (!loop_.Watch(socket_.get(), EPOLLIN | EPOLLRDHUP, [self](uint32_t) { self->Discard(); })
             .ok()) {
      return;
    }
    if (!finish_) {
      timer_ = loop_.RunAt(loop_.Now() + limit, [self] { self->Finish(); });
      return;
    }
    shutdown(socket_.get(), SHUT_WR);
    Await(limit);
    Enter();
  }

 private:
  // Waits again while the peer takes something: much may be in flight through a slow network.
  void Await(Nanos limit) {
    auto self = shared_from_this();
    timer_ = loop_.RunAt(loop_.Now() + limit,
                         [self, limit, before = UnacknowledgedBytes(socket_.get())] {
                           if (!self->socket_.valid()) return;
                           const bool takes = UnacknowledgedBytes(self->socket_.get()) < before;
                           takes ? self->Await(limit) : self->Finish();
                         });
  }

  void Discard() {
    // A bounded piece at a time: the loop calls again while there is more.
    const ssize_t n = DiscardInput(socket_.get());
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;
    GiveWay();
  }

  void GiveWay() override {
    loop_.Cancel(timer_);
    Finish();
  }

  void Finish() {
    if (!socket_.valid()) return;
    const auto self = shared_from_this();  // Unwatch drops the handler
    Leave();
    loop_.Unwatch(socket_.get());
    socket_.Reset();
  }

  EventLoop& loop_;
  Socket socket_;
  const bool finish_;
  EventLoop::TimerId timer_ = 0;
};

void Close(EventLoop& loop, Socket socket, Nanos limit, bool finish) {
  if (!socket.valid()) return;
  auto lingering = std::make_shared<Lingering>(loop, std::move(socket), finish);
  loop.Post([lingering, limit] { lingering->Start(limit); });
}

}  // namespace

void CloseLingering(EventLoop& loop, Socket socket, Nanos limit) {
  Close(loop, std::move(socket), limit, /*finish=*/true);
}

void CloseBehindPeer(EventLoop& loop, Socket socket, Nanos limit, size_t most) {
  if (behind_peers.load() >= most) return;
  Close(loop, std::move(socket), limit, /*finish=*/false);
}

}  // namespace viaduct::verbs::iwarp
