// An endpoint whose sends and receives complete in queues of their own, each with a thread: the one
// that polls for receives is interrupted at any place, by a signal, while the other one goes round
// the ring of requests as fast as it can. Every send arrives once and in order, and every read
// brings what it asked for.
//
// Three seconds; a minute with VIADUCT_LONG in the environment.
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "gtest/gtest.h"
#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/harness.h"

namespace viaduct::tests {
namespace {

constexpr uint64_t kWindow = 16;  // the number of places that a ring has at first
constexpr uint64_t kReceives = 200;
constexpr uint64_t kShown = 4096;
constexpr uint64_t kEnd = ~uint64_t{0};
constexpr size_t kWord = sizeof(uint64_t);

uint64_t WordAt(const Memory& memory, uint64_t n) {
  uint64_t word;
  std::memcpy(&word, &memory.bytes[n * kWord], kWord);
  return word;
}
void SetWordAt(Memory& memory, uint64_t n, uint64_t word) {
  std::memcpy(&memory.bytes[n * kWord], &word, kWord);
}
uint64_t ShownAt(uint64_t n) { return n * 7 + 3; }

timespec Microseconds(long n) { return {0, n * 1000}; }

void Dawdle(int) {
  timespec now, until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += 8000;
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec == until.tv_sec && now.tv_nsec < until.tv_nsec);
}

// The calling thread is interrupted all the time, as long as this lives.
class Interruptions {
 public:
  Interruptions() {
    struct sigaction action = {};
    action.sa_handler = Dawdle;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, nullptr);
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGUSR1;
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    EXPECT_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer_), 0);
    const itimerspec often = {Microseconds(24), Microseconds(24)};
    EXPECT_EQ(timer_settime(timer_, 0, &often, nullptr), 0);
  }
  ~Interruptions() { timer_delete(timer_); }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

 private:
  timer_t timer_;
};

void PostReceive(DAT_EP_HANDLE ep, const Memory& memory, uint64_t n) {
  DAT_LMR_TRIPLET local = memory.Local(n * kWord, kWord);
  Must(dat_ep_post_recv(ep, 1, &local, Cookie(n), DAT_COMPLETION_DEFAULT_FLAG));
}

void Serve(Peer& peer) {
  Side side;
  Memory shown(side, kShown * kWord), received(side, kReceives * kWord);
  for (uint64_t n = 0; n < kShown; ++n) SetWordAt(shown, n, ShownAt(n));
  const DAT_EP_HANDLE ep = side.NewEp();
  for (uint64_t n = 0; n < kReceives; ++n) PostReceive(ep, received, n);
  side.AcceptFrom(peer, ep, Port(0));
  peer.Send(shown.Remote());
  for (uint64_t expected = 0;; ++expected) {
    const DAT_DTO_COMPLETION_EVENT_DATA done = NextCompletion(side.receive_evd);
    ASSERT_EQ(done.status, DAT_DTO_SUCCESS);
    const uint64_t number = WordAt(received, done.user_cookie.as_64);
    if (number == kEnd) break;
    ASSERT_EQ(number, expected);
    PostReceive(ep, received, done.user_cookie.as_64);
  }
  peer.Tell("all came");
}

// Posts two sends and a read, and so on.
class Client {
 public:
  explicit Client(Peer& peer) : ep_(side_.NewEp()) {
    side_.ConnectTo(peer, ep_, Port(0));
    remote_ = peer.Receive<DAT_RMR_TRIPLET>();
  }

  void GoRoundFor(int seconds) {
    const uint64_t end = NowMicroseconds() + static_cast<uint64_t>(seconds) * kSecond;
    while (NowMicroseconds() < end && !testing::Test::HasFailure()) {
      while (posted_ - done_ < kWindow) Post(sends_);
      Take();
    }
    TakeAll();
    posted_ = done_ = 0;  // so that the next request is a send
    Post(kEnd);
    TakeAll();
  }
  Side& side() { return side_; }

 private:
  void Post(uint64_t number) {
    const uint64_t n = posted_++;
    DAT_LMR_TRIPLET local = memory_.Local(n % kWindow * kWord, kWord);
    if (n % 3 == 2) {
      DAT_RMR_TRIPLET from = remote_;
      from.virtual_address += n % kShown * kWord;
      from.segment_length = kWord;
      SetWordAt(memory_, n % kWindow, kEnd);
      Must(dat_ep_post_rdma_read(ep_, 1, &local, Cookie(n), &from, DAT_COMPLETION_DEFAULT_FLAG));
    } else {
      SetWordAt(memory_, n % kWindow, number);
      ++sends_;
      Must(dat_ep_post_send(ep_, 1, &local, Cookie(n), DAT_COMPLETION_DEFAULT_FLAG));
    }
  }
  void TakeAll() {
    while (done_ != posted_ && !testing::Test::HasFailure()) Take();
  }
  // The next completion, if it is there.
  void Take() {
    DAT_EVENT event;
    if (dat_evd_dequeue(side_.request_evd, &event) != DAT_SUCCESS) return;
    const DAT_DTO_COMPLETION_EVENT_DATA& done = event.event_data.dto_completion_event_data;
    ASSERT_EQ(done.status, DAT_DTO_SUCCESS);
    ASSERT_EQ(done.user_cookie.as_64, done_);
    if (done_ % 3 == 2) {
      ASSERT_EQ(WordAt(memory_, done_ % kWindow), ShownAt(done_ % kShown)) << "another read's";
    }
    ++done_;
  }

  Side side_;
  Memory memory_{side_, kWindow* kWord};
  const DAT_EP_HANDLE ep_;
  DAT_RMR_TRIPLET remote_;
  uint64_t posted_ = 0, done_ = 0, sends_ = 0;
};

TEST(TwoQueues, APlaceIsTakenForItsOwnRequestOnly) {
  const int seconds = getenv("VIADUCT_LONG") != nullptr ? 60 : 3;
  RunPair(Serve,
          [seconds](Peer& peer) {
            Client client(peer);
            std::atomic<bool> stop{false};
            std::thread poller([&] {
              const Interruptions interruptions;
              DAT_EVENT event;
              while (!stop) (void)dat_evd_dequeue(client.side().receive_evd, &event);
            });
            client.GoRoundFor(seconds);
            stop = true;
            poller.join();
            peer.Await("all came");
          },
          {.seconds = seconds + 60});
}

}  // namespace
}  // namespace viaduct::tests
