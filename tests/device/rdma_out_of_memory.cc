// What is left at an RDMA device when memory runs out, and what is listed when descriptors do
// (tests/rdma_mock).
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "tests/conformance/harness/sleeper.h"
#include "tests/device/rdma_mishaps.h"
#include "tests/faults/failing_memory.h"
#include "tests/rdma_mock/failing_calls.h"
#include "tests/rdma_mock/mishaps.h"
#include "verbs/base/busy_control_thread.h"
#include "verbs/base/clock.h"
#include "verbs/base/control_thread.h"
#include "verbs/rdma/open.h"

namespace viaduct::verbs {
namespace {

// Runs in a process of its own, because an open device stays open. The process ends with 0, with 1
// if the test has failed there, or with:
constexpr int kNothingFailed = 7;
int OpenWithoutMemory(int n) {
  EventLoop& loop = **ControlThread::Get();
  const auto open = [&loop] {
    const auto opened = rdma::Open(loop, *Address::Parse("10.9.0.1"), "", /*spin=*/0);
    return opened.ok();
  };
  rdma_mock::EndMishaps();  // makes what the mock needs once to destroy a pair
  const std::string before = rdma_mock::LiveObjects();
  tests::FailAllocation(n);
  try {
    open();
  } catch (const std::bad_alloc&) {
  }
  const bool failed = tests::StopFailing();
  const std::string left = rdma_mock::LiveObjects();
  EXPECT_TRUE(open()) << n;
  EXPECT_TRUE(left == before || left == rdma_mock::LiveObjects())
      << n << ": " << left << "; before: " << before;
  if (testing::Test::HasFailure()) return 1;
  return failed ? 0 : kNothingFailed;
}

// Either nothing is left, or the device, which then serves the next open.
TEST(OutOfMemoryOpening, NoDeviceIsLeft) {
  int n = 1;
  for (int ended = 0; ended == 0; ++n) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      _exit(OpenWithoutMemory(n));
    }
    int status;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << n << ": wait status " << status;
    ended = WEXITSTATUS(status);
    EXPECT_TRUE(ended == 0 || ended == kNothingFailed) << n;
  }
  EXPECT_GT(n, 10);
}

// A list that is too short would be taken for what the machine has.
TEST(OutOfDescriptorsListing, TheListIsWholeOrThereIsNone) {
  const size_t whole = rdma::ListPorts().size();
  ASSERT_GT(whole, 0u);
  const int first = dup(STDIN_FILENO);
  ASSERT_GE(first, 0);
  close(first);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  int refused = 0;
  for (rlim_t spare = 0; spare < 16; ++spare) {
    const rlimit few = {static_cast<rlim_t>(first) + spare, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    std::optional<size_t> listed;
    try {
      listed = rdma::ListPorts().size();
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    if (listed) {
      EXPECT_EQ(*listed, whole) << spare << " descriptors";
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 16);
}

using OutOfMemoryTest = MishapsTest;

// The caller may hold what a sink on the control thread waits for.
TEST_F(OutOfMemoryTest, AListenerThatFindsNoMemoryWaitsForNobody) {
  const std::string before = rdma_mock::LiveObjects();
  Requests requests;
  bool failed = true;
  for (int n = 1; failed; ++n) {
    std::unique_ptr<Listener> listener;
    BusyControlThread busy;
    tests::FailAllocation(n);
    try {
      if (auto made = b().Listen(0, &requests); made.ok()) listener = *std::move(made);
    } catch (const std::bad_alloc&) {
    }
    failed = tests::StopFailing();
    busy.LetGo();
    EXPECT_EQ(listener != nullptr, !failed) << n;
  }
  EXPECT_EQ(rdma_mock::LiveObjects(), before);
}

// A completion channel that was opened and that nobody reads would let the queue's waiters sleep.
TEST_F(OutOfMemoryTest, AQueueWhosePairFailedFirstStillWakesItsWaiter) {
  bool failed = true;
  for (int n = 1; failed; ++n) {
    SCOPED_TRACE(n);
    Inbox inbox(b());
    QueuePairOptions options = NewEnd(b()).pair_options();
    options.send_queue = options.receive_queue = &inbox.queue();
    std::unique_ptr<QueuePair> pair;
    tests::FailAllocation(n);
    try {
      if (auto made = b().CreateQueuePair(options); made.ok()) pair = *std::move(made);
    } catch (const std::bad_alloc&) {
    }
    failed = tests::StopFailing();
    EXPECT_EQ(pair != nullptr, !failed);
    pair.reset();

    EndOptions receiver;
    receiver.shared_inbox = &inbox;
    End& from = NewEnd(a());
    End& to = NewEnd(b(), receiver);
    Connect(from, to);
    Forget(to);
    std::atomic<WaitResult> result{WaitResult::kTimedOut};
    tests::Sleeper sleeper([&] {
      const Deadline deadline = Deadline::After(b().executor(), 30 * kNanosPerSecond);
      result = inbox.queue().Wait(deadline, inbox.queue().wakes());
    });
    sleeper.AwaitAsleep();
    ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
    ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
    sleeper.Join();
    ASSERT_EQ(result, WaitResult::kReady);
    Expect(inbox, 1);
    DestroyEnds();
  }
}

TEST_F(OutOfMemoryTest, NoDomainIsLeft) {
  const int before = rdma_mock::LiveDomains();
  bool failed = true;
  for (int n = 1; failed; ++n) {
    bool made = false;
    tests::FailAllocation(n);
    try {
      made = a().CreateDomain(/*wildcard=*/false).ok();
    } catch (const std::bad_alloc&) {
    }
    failed = tests::StopFailing();
    EXPECT_EQ(made, !failed) << n;
    EXPECT_EQ(rdma_mock::LiveDomains(), before) << n;
  }
}

// The memory belongs to another domain, so it is registered once more when it is first sent. A
// request that has taken an id counts as posted, so that it comes out of the queue.
TEST_F(OutOfMemoryTest, APostThatFindsNoMemoryCompletes) {
  class Ids final : public IdSource {
   public:
    bool TakeId(uint64_t* id) override {
      *id = ++taken;
      return true;
    }
    uint64_t taken = 0;
  };
  auto other = a().CreateDomain(/*wildcard=*/false);
  ASSERT_TRUE(other.ok()) << other.status();
  Bytes memory = Pattern(8, 1);
  EndOptions wild;
  wild.wildcard = true;
  End& from = NewEnd(a(), wild);
  End& to = NewEnd(b());
  Connect(from, to);
  auto region = a().Register(**other, memory.data(), memory.size(), kLocalRead);
  ASSERT_TRUE(region.ok()) << region.status();
  const Segment segment = {reinterpret_cast<uint64_t>(memory.data()), (*region)->key(), 8};
  Ids ids;
  SendRequest request;
  request.ids = &ids;
  request.segments = {&segment, 1};
  tests::FailAllocation(1);
  EXPECT_EQ(from.pair().PostSend(request), PostResult::kOk);
  EXPECT_TRUE(tests::StopFailing()) << "it needs none";
  EXPECT_EQ(ids.taken, 1u);
  Expect(from.sends(), 1, Status::kLocalProtection);
  ExpectDisconnected(from, DisconnectCause::kBroken);
}

TEST_F(OutOfMemoryTest, ABindThatFindsNoMemoryChangesNothing) {
  End& end = NewEnd(a());
  End& peer = NewEnd(b());
  Connect(end, peer);
  Bytes memory = Pattern(8, 1);
  auto window = a().CreateWindow(end.domain(), WindowScope::kDomain);
  ASSERT_TRUE(window.ok()) << window.status();
  bool failed = true;
  for (int n = 1; failed; ++n) {
    auto region = a().Register(end.domain(), memory.data(), memory.size(), kAllAccess);
    ASSERT_TRUE(region.ok()) << region.status();
    BindRequest bind;
    bind.window = window->get();
    bind.region = (*region)->key();
    bind.address = reinterpret_cast<uint64_t>(memory.data());
    bind.length = memory.size();
    bind.access = kRemoteRead;
    Key key;
    ASSERT_EQ(end.pair().PostBind(bind, &key), PostResult::kOk);
    Expect(end.sends(), 0);
    ASSERT_EQ(rdma_mock::LiveWindows(), 1) << "the device's own: else this proves nothing";
    tests::FailAllocation(n);
    const PostResult result = end.pair().PostBind(bind, &key);
    failed = tests::StopFailing();
    EXPECT_EQ(result, failed ? PostResult::kNoKey : PostResult::kOk) << n;
    if (result == PostResult::kOk) Expect(end.sends(), 0);
    region->reset();
    EXPECT_EQ(rdma_mock::LiveWindows(), 0) << n << ": it was bound, and ends with its region";
  }
}

}  // namespace
}  // namespace viaduct::verbs
