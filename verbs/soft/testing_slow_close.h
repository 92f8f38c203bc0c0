// For tests: an open file whose last close blocks, and tools to check that no event loop waits for
// it.
#ifndef VIADUCT_VERBS_SOFT_TESTING_SLOW_CLOSE_H_
#define VIADUCT_VERBS_SOFT_TESTING_SLOW_CLOSE_H_

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "verbs/base/event_loop.h"
#include "verbs/base/fd.h"

namespace viaduct::verbs {

// A TCP connection within this process. One end has more to send than the other takes. Its last
// close waits until all has been sent or the other end is closed, but at most half a minute.
class SlowToClose {
 public:
  SlowToClose() {
    const Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof address;
    EXPECT_EQ(bind(listener.get(), any, length), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), any, &length), 0);
    far_.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(far_.get(), any, length), 0);
    near_.Reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const std::string bytes(1 << 16, 'x');
    while (send(near_.get(), bytes.data(), bytes.size(), 0) > 0) {
    }
    const linger slow = {1, 30};
    EXPECT_EQ(setsockopt(near_.get(), SOL_SOCKET, SO_LINGER, &slow, sizeof slow), 0);
  }
  // The end whose close waits; no copy is left here. A caller that has sent a copy to somebody must
  // close its own first (OccupiedLoop), or its close is the last one, and waits.
  Fd Take() { return std::move(near_); }
  // From now on that close does not wait.
  void LetGo() { far_.Reset(); }

 private:
  Fd near_;
  Fd far_;
};

// Keeps `loop` busy until LetGo; whatever arrives meanwhile is all there by then.
class OccupiedLoop {
 public:
  explicit OccupiedLoop(EventLoop& loop) {
    auto begun = std::make_shared<std::promise<void>>();
    loop.Post([begun, over = over_.get_future().share()] {
      begun->set_value();
      over.wait();
    });
    begun->get_future().wait();
  }
  void LetGo() { over_.set_value(); }

 private:
  std::promise<void> over_;
};

// Does `loop` run a task that is posted to it, within ten seconds?
inline bool Answers(EventLoop& loop) {
  const auto answer = std::make_shared<std::promise<void>>();
  loop.Post([answer] { answer->set_value(); });
  return answer->get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready;
}

// Sends `bytes` and the descriptor `fd` over a unix socket. False: errno tells why.
inline bool SendWith(int channel, const std::string& bytes, int fd) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  return sendmsg(channel, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_TESTING_SLOW_CLOSE_H_
