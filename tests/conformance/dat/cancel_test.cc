// Threads that are cancelled while they wait, as MVAPICH2's connection server is when all of its
// peers are there: POSIX, Thread Cancellation. What they waited for serves other threads as before.
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <atomic>

#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/sleeper.h"

namespace viaduct::tests {
namespace {

DAT_EVD_HANDLE NewSoftwareEvd(const Side& side, DAT_CNO_HANDLE cno = DAT_HANDLE_NULL) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  Must(dat_evd_create(side.ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
  return evd;
}

void Post(DAT_EVD_HANDLE evd) {
  DAT_EVENT event = {};
  event.event_number = DAT_SOFTWARE_EVENT;
  Must(dat_evd_post_se(evd, &event));
}

TEST(EvdWait, S_ASleepingThreadCanBeCancelled) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kLosesTheCancelled;
  RunAlone([] {
    Side side;
    const DAT_EVD_HANDLE evd = NewSoftwareEvd(side);
    for (const int type : {PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS}) {
      CancelAsleep(type, [&] {
        DAT_EVENT event;
        DAT_COUNT more;
        dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
      });
      DAT_EVENT event;
      DAT_COUNT more;
      EXPECT_TRUE(Fails(dat_evd_wait(evd, 1000, 1, &event, &more), DAT_TIMEOUT_EXPIRED));
      Post(evd);
      Must(dat_evd_wait(evd, kPatience, 1, &event, &more));
    }
    Must(dat_evd_free(evd));
  });
}

std::atomic<bool> in_handler, goes_on;

// An event that comes while a thread owns the dispatcher is that thread's. If the thread ends
// before it has seen the event, the notifier is told.
TEST(EvdWait, S_WhatACancelledThreadHasNotSeenIsToldToTheCno) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kLosesTheCancelled;
  RunAlone([] {
    Side side;
    DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
    Must(dat_cno_create(side.ia, {nullptr, nullptr}, &cno));
    const DAT_EVD_HANDLE evd = NewSoftwareEvd(side, cno);
    signal(SIGUSR1, [](int) {  // keeps the thread from seeing it
      in_handler = true;
      while (!goes_on) sched_yield();
    });
    std::atomic<pthread_t> thread;
    Sleeper sleeper([&] {
      thread = pthread_self();
      DAT_EVENT event;
      DAT_COUNT more;
      dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
    });
    sleeper.AwaitAsleep();
    pthread_kill(thread, SIGUSR1);
    while (!in_handler) sched_yield();
    Post(evd);
    sleeper.Cancel();
    goes_on = true;
    sleeper.Join();
    DAT_EVD_HANDLE told = DAT_HANDLE_NULL;
    Must(dat_cno_wait(cno, 2000000, &told));
    EXPECT_EQ(told, evd);
    DAT_EVENT event;
    Must(dat_evd_dequeue(evd, &event));
    Must(dat_evd_free(evd));
    Must(dat_cno_free(cno));
  });
}

TEST(EvdWait, S_CancellationThatIsDisabledWaits) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kLosesTheCancelled;
  RunAlone([] {
    Side side;
    const DAT_EVD_HANDLE evd = NewSoftwareEvd(side);
    bool returned = false;
    Sleeper sleeper([&] {
      int old;
      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
      DAT_EVENT event;
      DAT_COUNT more;
      Must(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more));
      returned = true;
    });
    sleeper.AwaitAsleep();
    sleeper.Cancel();
    Post(evd);
    sleeper.Join();
    EXPECT_TRUE(returned);
  });
}

TEST(CnoWait, S_ASleepingThreadCanBeCancelled) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kLosesTheCancelled;
  RunAlone([] {
    Side side;
    DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
    Must(dat_cno_create(side.ia, {nullptr, nullptr}, &cno));
    const DAT_EVD_HANDLE evd = NewSoftwareEvd(side, cno);
    for (const int type : {PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS}) {
      CancelAsleep(type, [&] {
        DAT_EVD_HANDLE told;
        dat_cno_wait(cno, DAT_TIMEOUT_INFINITE, &told);
      });
      Post(evd);
      DAT_EVD_HANDLE told = DAT_HANDLE_NULL;
      Must(dat_cno_wait(cno, kPatience, &told));
      EXPECT_EQ(told, evd);
      DAT_EVENT event;
      Must(dat_evd_dequeue(evd, &event));
    }
    Must(dat_evd_free(evd));
    Must(dat_cno_free(cno));
  });
}

}  // namespace
}  // namespace viaduct::tests
