// Whatever cannot be created fails at once and does not wait for the control thread, which may be
// in a callback of the creator's own that waits for something the creator holds.
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/base/busy_control_thread.h"
#include "verbs/base/fd.h"
#include "verbs/device.h"
#include "verbs/soft/open.h"
#include "verbs/soft/rendezvous.h"

namespace viaduct::verbs {
namespace {

class NoRequests final : public ListenerSink {
 public:
  void OnRequest(std::unique_ptr<IncomingConnection>) override { ADD_FAILURE(); }
};

class NoConnections final : public ConnectionSink {
 public:
  void OnConnected(QueuePair&, absl::Span<const uint8_t>) override { ADD_FAILURE(); }
  void OnConnectFailed(QueuePair&, ConnectOutcome, absl::Span<const uint8_t>) override {
    ADD_FAILURE();
  }
  void OnDisconnected(QueuePair&, DisconnectCause) override { ADD_FAILURE(); }
  void OnDropped(QueuePair&) override { ADD_FAILURE(); }
  void OnRefusedWrite(QueuePair&) override { ADD_FAILURE(); }
};

TEST(FailureTest, OfAListenThatOneWireRefuses) {
  auto context = OpenSoftDevice(*Address::Parse("127.0.0.1"), "auto");
  ASSERT_TRUE(context.ok()) << context.status();
  NoRequests sink;
  uint16_t port;
  {
    auto free = (*context)->Listen(0, &sink);
    ASSERT_TRUE(free.ok()) << free.status();
    port = (*free)->port();
  }
  const absl::StatusOr<ListeningFd> taken = ListenAt("viaduct", port);  // shared memory's name only
  ASSERT_TRUE(taken.ok()) << taken.status();
  const BusyControlThread busy;
  testing::internal::CaptureStderr();
  const absl::Status failed = (*context)->Listen(port, &sink).status();
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(absl::IsAlreadyExists(failed)) << failed;
  EXPECT_NE(logged.find(absl::StrCat("viaduct port ", port, " is taken")), std::string::npos)
      << logged;
}

TEST(FailureTest, OfAPairThatIsTooLarge) {
  auto context = OpenSoftDevice(*Address::Parse("127.0.0.1"), "auto");
  ASSERT_TRUE(context.ok()) << context.status();
  auto domain = (*context)->CreateDomain(/*wildcard=*/false);
  auto queue = (*context)->CreateCompletionQueue(nullptr);
  ASSERT_TRUE(domain.ok() && queue.ok());
  NoConnections sink;
  QueuePairOptions options;
  options.domain = domain->get();
  options.send_queue = options.receive_queue = queue->get();
  options.sink = &sink;
  options.max_sends = (*context)->attributes().max_requests_per_queue + 1;
  const BusyControlThread busy;
  const absl::Status failed = (*context)->CreateQueuePair(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(failed)) << failed;
}

// A peer's write into the hole would end the process.
TEST(FailureTest, OfARegionWithAHole) {
  auto context = OpenSoftDevice(*Address::Parse("127.0.0.1"), "auto");
  ASSERT_TRUE(context.ok()) << context.status();
  auto domain = (*context)->CreateDomain(/*wildcard=*/false);
  ASSERT_TRUE(domain.ok());
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const block = mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  char* const start = static_cast<char*>(block);
  const auto registered = [&](size_t from, size_t bytes) {
    return (*context)->Register(**domain, start + from, bytes, kLocalWrite).status();
  };
  EXPECT_TRUE(registered(1, 3 * page - 1).ok()) << "never touched";
  munmap(start + page, page);
  EXPECT_TRUE(registered(0, page).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(registered(page - 1, 2)));
  EXPECT_TRUE(absl::IsInvalidArgument(registered(page, 1)));
  EXPECT_TRUE(absl::IsInvalidArgument(registered(0, 3 * page)));
  EXPECT_TRUE(registered(2 * page + 7, 9).ok());
  munmap(start, page);
  munmap(start + 2 * page, page);
}

}  // namespace
}  // namespace viaduct::verbs
