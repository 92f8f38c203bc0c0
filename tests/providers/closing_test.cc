// Opening and closing adapters of other people's providers: when a library may go, without memory,
// beside a fork.
#include <dat2/udat.h>
// Must come after udat.h.
#include <dat2/dat_registry.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/faults/failing_memory.h"
#include "tests/providers/own_provider.h"
#include "tests/providers/registry.h"

namespace viaduct::tests {
namespace {

// Fails each allocation of an open once; `open` is the number of adapters that the provider has.
void FailEachOpen(const char* name, const int& open) {
  const int before = open;
  int n = 0;
  for (bool failed = true; failed;) {
    SCOPED_TRACE(++n);
    DAT_IA_HANDLE ia;
    FailAllocation(n);
    const DAT_RETURN result = Open(name, &ia);
    failed = StopFailing();
    if (result == DAT_SUCCESS) {
      EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    } else {
      EXPECT_TRUE(failed);
      EXPECT_EQ(DAT_GET_TYPE(result), DAT_UINT32{DAT_INSUFFICIENT_RESOURCES});
    }
    EXPECT_EQ(open, before);
  }
  EXPECT_GT(n, 1) << "the library allocates elsewhere";
}

TEST(Closing, WithoutMemoryNoAdapterStaysOpen) {
  RunAlone([] {
    UseConf(Line("probe0", Probe()));
    ProbeFacts* const facts = Facts();
    DAT_IA_HANDLE first;  // keeps the library, which allocates when it is loaded
    ASSERT_EQ(Open("probe0", &first), DAT_SUCCESS);
    FailEachOpen("probe0", facts->adapters);
    EXPECT_EQ(dat_ia_close(first, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    EXPECT_EQ(facts->finis, 1);

    OwnProvider own;
    ASSERT_EQ(dat_registry_add_provider(&own.table, &own.info), DAT_SUCCESS);
    FailEachOpen("own", own.adapters);
    EXPECT_EQ(dat_registry_remove_provider(&own.table, &own.info), DAT_SUCCESS);
  });
}

// A library that registers more than its entry's adapter stays as long as one of them is open.
TEST(Closing, ALibraryStaysForTheOthersThatItRegistered) {
  RunAlone([] {
    UseConf(Line("probe0", Probe(), "twin"));
    ProbeFacts* const facts = Facts();
    DAT_IA_HANDLE first, twin;
    ASSERT_EQ(Open("probe0", &first), DAT_SUCCESS);
    ASSERT_EQ(Open("twin", &twin), DAT_SUCCESS);
    EXPECT_EQ(dat_ia_close(first, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    EXPECT_EQ(facts->finis, 0);
    EXPECT_EQ(dat_ia_close(twin, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    EXPECT_EQ(facts->finis, 1);
    EXPECT_EQ(facts->adapters, 0);
  });
}

// The last close ends the waits of other threads, and the library must not be gone before they have
// left it.
TEST(Closing, ALibraryStaysUntilAWaitHasLeftIt) {
  RunAlone([] {
    UseConf(Line("probe0", Probe(), "waiting"));
    DAT_IA_HANDLE ia;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    ASSERT_EQ(Open("probe0", &ia, &async), DAT_SUCCESS);
    ProbeWait wait;
    sem_init(&wait.inside, 0, 0);
    sem_init(&wait.leave, 0, 0);
    DAT_RETURN waited = DAT_SUCCESS;
    std::thread waiter([&] {
      DAT_COUNT more;
      waited =
          dat_evd_wait(async, DAT_TIMEOUT_INFINITE, 1, reinterpret_cast<DAT_EVENT*>(&wait), &more);
    });
    sem_wait(&wait.inside);
    EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    sem_post(&wait.leave);
    waiter.join();
    EXPECT_EQ(waited, Error(DAT_ABORT));
    ASSERT_EQ(Open("probe0", &ia), DAT_SUCCESS);
    EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
  });
}

// The same for a close of a handle that is no open adapter's, or no more.
TEST(Closing, ALibraryStaysUntilACloseHasLeftIt) {
  RunAlone([] {
    UseConf(Line("probe0", Probe(), "waiting"));
    DAT_IA_HANDLE ia;
    ASSERT_EQ(Open("probe0", &ia), DAT_SUCCESS);
    ProbeWaitingClose closing;
    closing.provider = *static_cast<const void* const*>(ia);
    sem_init(&closing.wait.inside, 0, 0);
    sem_init(&closing.wait.leave, 0, 0);
    DAT_RETURN closed = DAT_SUCCESS;
    std::thread closer([&] { closed = dat_ia_close(&closing, DAT_CLOSE_GRACEFUL_FLAG); });
    sem_wait(&closing.wait.inside);
    EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    sem_post(&closing.wait.leave);
    closer.join();
    EXPECT_EQ(closed, Error(DAT_INVALID_STATE));
  });
}

// A thread of the parent that unloads the library is not in the child, which loads it anew.
TEST(Closing, AChildOpensWhatAThreadOfItsParentWasUnloading) {
  RunAlone([] {
    UseConf(Line("probe0", Probe()));
    ProbeFacts* const facts = Facts();
    static int status;
    status = -1;
    facts->after_fini = [] {
      std::thread([] {
        const pid_t child = fork();
        if (child == 0) {
          alarm(60);  // ends it if it hangs
          DAT_IA_HANDLE ia;
          _exit(Open("probe0", &ia) == DAT_SUCCESS ? 0 : 1);
        }
        waitpid(child, &status, 0);
      }).join();
    };
    DAT_IA_HANDLE ia;
    ASSERT_EQ(Open("probe0", &ia), DAT_SUCCESS);
    EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    EXPECT_EQ(facts->finis, 1);
    EXPECT_EQ(status, 0);
  });
}

DAT_RETURN DequeueNothing(DAT_EVD_HANDLE, DAT_EVENT*) { return Error(DAT_QUEUE_EMPTY); }

TEST(Closing, AChildWaitsForNothingThatAThreadOfItsParentHad) {
  RunAlone([] {
    UseConf("");
    OwnProvider own;
    own.table.evd_dequeue_func = DequeueNothing;
    ASSERT_EQ(dat_registry_add_provider(&own.table, &own.info), DAT_SUCCESS);
    std::atomic<bool> stop{false};
    std::vector<std::thread> pollers;
    for (int i = 0; i < 2; ++i) {
      pollers.emplace_back([&] {
        DAT_EVENT event;
        while (!stop) (void)dat_evd_dequeue(&own.adapter, &event);
      });
    }
    for (int i = 0; i < 200; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(60);  // ends it if it hangs
        DAT_IA_HANDLE ia;
        _exit(Open("own", &ia) == DAT_SUCCESS ? 0 : 1);
      }
      int status = -1;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_EQ(status, 0) << i;
    }
    stop = true;
    for (std::thread& poller : pollers) poller.join();
  });
}

// A close that is refused needs none either.
TEST(Closing, ACloseNeedsNoMemory) {
  RunAlone([] {
    UseConf("");
    OwnProvider own;
    ASSERT_EQ(dat_registry_add_provider(&own.table, &own.info), DAT_SUCCESS);
    DAT_IA_HANDLE ia;
    ASSERT_EQ(Open("own", &ia), DAT_SUCCESS);
    FailAllocation(1);
    const DAT_RETURN refused = dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG);
    const DAT_RETURN removed = dat_registry_remove_provider(&own.table, &own.info);
    const DAT_RETURN closed = dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
    EXPECT_FALSE(StopFailing()) << "it allocates";
    EXPECT_EQ(refused, Error(DAT_INVALID_STATE));
    EXPECT_EQ(removed, Error(DAT_PROVIDER_IN_USE));
    EXPECT_EQ(closed, DAT_SUCCESS);
    EXPECT_EQ(dat_registry_remove_provider(&own.table, &own.info), DAT_SUCCESS);
  });
}

// While a close that will be refused is under way, another thread's close succeeds.
TEST(Closing, OfTwoClosesAtOnceOneGivesTheAdapterBack) {
  RunAlone([] {
    UseConf("");
    OwnProvider own;
    static DAT_IA_HANDLE ia;
    static DAT_RETURN abrupt;
    own.table.ia_close_func = [](DAT_IA_HANDLE handle, DAT_CLOSE_FLAGS flags) {
      if (flags == DAT_CLOSE_GRACEFUL_FLAG) {
        std::thread([] { abrupt = dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG); }).join();
      }
      return OwnProvider::Close(handle, flags);
    };
    ASSERT_EQ(dat_registry_add_provider(&own.table, &own.info), DAT_SUCCESS);
    ASSERT_EQ(Open("own", &ia), DAT_SUCCESS);
    EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), Error(DAT_INVALID_STATE));
    EXPECT_EQ(abrupt, DAT_SUCCESS);
    EXPECT_EQ(own.adapters, 0);
    EXPECT_EQ(dat_registry_remove_provider(&own.table, &own.info), DAT_SUCCESS);
  });
}

}  // namespace
}  // namespace viaduct::tests
