// Two ends of ours, over TCP on loopback.
#include "verbs/soft/iwarp/wire.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "verbs/base/fd.h"
#include "verbs/soft/iwarp/testing_device.h"

namespace viaduct::verbs::iwarp {
namespace {

using Kind = Event::Kind;
constexpr uint32_t kMiB = 1 << 20;

// ------------------------------------------------------------------------------- connecting

// iWARP checklist 12.
TEST(IwarpConnectTest, PrivateDataBothWays) {
  TestEnd client;
  TestEnd server;
  server.Listen();
  client.Dial(server.listener->port(), std::string(252, 'q'));
  std::unique_ptr<IncomingConnection> request = server.requests.Next();
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(std::string(request->private_data().begin(), request->private_data().end()),
            std::string(252, 'q'));
  EXPECT_EQ(request->peer_address().ToString(), "127.0.0.1");
  EXPECT_EQ(request->peer_port(), client.pair->local_port());
  EXPECT_TRUE(client.pair->Heard());
  const std::string answer(252, 'a');
  EXPECT_TRUE(
      request
          ->Accept(*server.pair, {reinterpret_cast<const uint8_t*>(answer.data()), answer.size()})
          .ok());
  const Event connected = client.sink.Next();
  EXPECT_EQ(connected.kind, Kind::kConnected);
  EXPECT_EQ(connected.data, answer);
  EXPECT_EQ(server.sink.Next().kind, Kind::kConnected);
}

TEST(IwarpConnectTest, TooMuchPrivateDataChangesNothing) {
  TestEnd client;
  TestEnd server;
  server.Listen();
  client.Dial(server.listener->port());
  std::unique_ptr<IncomingConnection> request = server.requests.Next();
  const std::string answer(253, 'a');
  const absl::Span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(answer.data()),
                                        answer.size());
  EXPECT_TRUE(absl::IsInvalidArgument(request->Accept(*server.pair, bytes)));
  EXPECT_TRUE(request->Accept(*server.pair, {}).ok());
  EXPECT_EQ(client.sink.Next().kind, Kind::kConnected);
}

// Checklist 13, 62.
TEST(IwarpConnectTest, Rejected) {
  TestEnd client;
  TestEnd server;
  server.Listen();
  client.Dial(server.listener->port());
  const std::string no = "no";
  server.requests.Next()->Reject({reinterpret_cast<const uint8_t*>(no.data()), no.size()});
  const Event event = client.sink.Next();
  EXPECT_EQ(event.kind, Kind::kFailed);
  EXPECT_EQ(event.outcome, ConnectOutcome::kRejected);
  EXPECT_EQ(event.data, "no");
  // Idle again: the same pair can try once more.
  client.Dial(server.listener->port());
  server.AcceptNext();
  EXPECT_EQ(client.sink.Next().kind, Kind::kConnected);
}

TEST(IwarpConnectTest, Refused) {
  TestEnd client;
  TestEnd server;
  server.Listen();
  client.Dial(server.listener->port());
  server.requests.Next()->Refuse();
  Event event = client.sink.Next();
  EXPECT_EQ(event.kind, Kind::kFailed);
  EXPECT_EQ(event.outcome, ConnectOutcome::kRefused);
  client.Dial(server.listener->port());
  server.requests.Next().reset();  // undecided
  EXPECT_EQ(client.sink.Next().outcome, ConnectOutcome::kRefused);
  const uint16_t port = server.listener->port();
  server.listener.reset();
  client.Dial(port);
  EXPECT_EQ(client.sink.Next().outcome, ConnectOutcome::kNobody);
}

TEST(IwarpConnectTest, GivenUpBeforeTheAnswer) {
  TestEnd client;
  TestEnd server;
  server.Listen();
  client.Dial(server.listener->port());
  std::unique_ptr<IncomingConnection> request = server.requests.Next();
  client.pair->Disconnect(DisconnectMode::kAbrupt);
  client.loop.Drain();
  client.loop.Drain();
  EXPECT_TRUE(request->Accept(*server.pair, {}).ok());
  const Event event = server.sink.Next();
  EXPECT_EQ(event.kind, Kind::kFailed);
  EXPECT_EQ(event.outcome, ConnectOutcome::kGone);
  EXPECT_TRUE(client.sink.Empty());
}

TEST(IwarpConnectTest, AcceptNeedsAnIdlePair) {
  TestEnd client;
  TestEnd server;
  ConnectEnds(client, server);
  TestEnd other;
  other.Dial(server.listener->port());
  std::unique_ptr<IncomingConnection> request = server.requests.Next();
  EXPECT_TRUE(absl::IsFailedPrecondition(request->Accept(*server.pair, {})));
  TestEnd second;
  EXPECT_TRUE(request->Accept(*second.pair, {}).ok());
  EXPECT_EQ(other.sink.Next().kind, Kind::kConnected);
  EXPECT_EQ(second.sink.Next().kind, Kind::kConnected);
}

// ------------------------------------------------------------------------------- messages

class IwarpDataTest : public testing::Test {
 protected:
  void Connect(const TestEnd::Options& options = {}, bool immediate = false) {
    a_ = std::make_unique<TestEnd>(options);
    b_ = std::make_unique<TestEnd>(options);
    a_->sink.immediate = b_->sink.immediate = immediate;
    ConnectEnds(*a_, *b_);
  }

  // Gives the loop, and polls if the pair is hot, most likely enough turns to take what TCP has put
  // into the other socket. There is nothing to complete.
  void LetArrive() {
    Completion completion;
    for (int i = 0; i < 5; ++i) {
      b_->loop.Drain();
      EXPECT_EQ(b_->receive_queue().Poll(&completion, 1), 0);
    }
  }

  std::unique_ptr<TestEnd> a_;
  std::unique_ptr<TestEnd> b_;
};

// Checklist 34, 35, 39.
TEST_F(IwarpDataTest, SendsOfManySizes) {
  Connect({.memory = 3 * kMiB});
  unsigned seed = 0;
  for (const uint32_t size : {0u, 1u, 3u, 8u, 1448u, 65535u, 65536u, kMiB, 3 * kMiB}) {
    for (auto [from, to] : {std::pair(a_.get(), b_.get()), std::pair(b_.get(), a_.get())}) {
      ++seed;
      from->Fill(0, size, seed);
      to->Receive(seed, 0, size);
      from->Send(seed + 100, 0, size, size == 8 ? kSolicited : 0);
      const Completion received = to->NextReceive();
      EXPECT_EQ(received.id, seed);
      EXPECT_EQ(received.status, Status::kSuccess);
      EXPECT_EQ(received.length, size);
      EXPECT_EQ(received.solicited, size == 8);
      EXPECT_FALSE(received.has_immediate);
      EXPECT_TRUE(to->Matches(0, size, seed));
      EXPECT_EQ(from->NextSend().id, seed + 100);
    }
  }
}

TEST_F(IwarpDataTest, ScatteredAndGathered) {
  Connect();
  a_->Fill(0, 100, 7);
  const Segment from[] = {a_->Piece(0, 1), a_->Piece(0, 0), a_->Piece(1, 60), a_->Piece(61, 39)};
  const Segment to[] = {b_->Piece(10, 33), b_->Piece(43, 67)};
  ASSERT_EQ(b_->pair->PostReceive({.id = 1, .segments = to}), PostResult::kOk);
  SendRequest request;
  request.segments = from;
  ASSERT_EQ(a_->pair->PostSend(request), PostResult::kOk);
  EXPECT_EQ(b_->NextReceive().length, 100u);
  EXPECT_TRUE(b_->Matches(10, 100, 7));
}

// The program, or one of its peers, may write to the memory of a request that is under way: some
// mixture of the bytes arrives, as from an adapter.
TEST_F(IwarpDataTest, BytesMayChangeWhileTheyAreSent) {
  Connect();
  constexpr uint32_t kBytes = 256 * 1024;
  const Fd file(memfd_create("changing", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), kBytes), 0);
  // Mapped twice, since ThreadSanitizer knows no adapter.
  const auto map = [&] {
    return mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  };
  void* const sent = map();
  void* const changed = map();
  ASSERT_TRUE(sent != MAP_FAILED && changed != MAP_FAILED);
  auto region = a_->context->Register(*a_->domain, sent, kBytes, kLocalRead);
  ASSERT_TRUE(region.ok());
  const Segment segment = {reinterpret_cast<uint64_t>(sent), (*region)->key(), kBytes};
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int value = 0; !stop; ++value) std::memset(changed, value, kBytes);
  });
  for (int i = 0; i < 100; ++i) {
    SendRequest request;
    request.id = static_cast<uint64_t>(i);
    request.flags = kConfirm;
    request.segments = {&segment, 1};
    if (i % 2 == 0) {
      b_->Receive(1, 0, kBytes);
    } else {
      request.opcode = Opcode::kWrite;
      request.remote_key = b_->region->key();
      request.remote_address = b_->address(0);
    }
    ASSERT_EQ(a_->pair->PostSend(request), PostResult::kOk);
    const Status status = a_->NextSend().status;
    if (status != Status::kSuccess) {
      ADD_FAILURE() << i << ": " << static_cast<int>(status);
      break;
    }
    if (i % 2 == 0) {
      EXPECT_EQ(b_->NextReceive().status, Status::kSuccess);
    }
  }
  stop = true;
  writer.join();
  munmap(changed, kBytes);
  region->reset();
  munmap(sent, kBytes);
}

// Checklist 48: completions in posting order, both queues.
TEST_F(IwarpDataTest, ManyMessagesInOrder) {
  constexpr uint32_t kMessages = 3000;
  Connect();
  for (uint32_t i = 0; i < kMessages; ++i) b_->Receive(i, 64 * (i % 1024), 64);
  for (uint32_t i = 0; i < kMessages; ++i) a_->Send(i, 0, i % 64);
  for (uint32_t i = 0; i < kMessages; ++i) {
    const Completion received = b_->NextReceive();
    ASSERT_EQ(received.id, i);
    ASSERT_EQ(received.length, i % 64);
    ASSERT_EQ(a_->NextSend().id, i);
  }
}

TEST_F(IwarpDataTest, WritesAndReads) {
  Connect({.memory = 2 * kMiB});
  unsigned seed = 0;
  for (const uint32_t size : {0u, 1u, 1447u, 65536u, kMiB}) {
    ++seed;
    a_->Fill(0, size, seed);
    a_->Write(1, 0, size, *b_, kMiB, kConfirm);
    EXPECT_EQ(a_->NextSend().status, Status::kSuccess);
    EXPECT_TRUE(b_->Matches(kMiB, size, seed));
    a_->Read(2, kMiB, size, *b_, kMiB);
    const Completion read = a_->NextSend();
    EXPECT_EQ(read.id, 2u);
    EXPECT_EQ(read.status, Status::kSuccess);
    EXPECT_TRUE(a_->Matches(kMiB, size, seed));
  }
}

// Checklist 36: nothing is checked, nothing is touched.
TEST_F(IwarpDataTest, EmptyWriteAndReadNeedNoRegion) {
  Connect();
  SendRequest request;
  request.opcode = Opcode::kWrite;
  request.flags = kConfirm;
  request.remote_key = 0x7f00ba5e;
  request.remote_address = 4711;
  ASSERT_EQ(a_->pair->PostSend(request), PostResult::kOk);
  EXPECT_EQ(a_->NextSend().status, Status::kSuccess);
  request.opcode = Opcode::kRead;
  request.flags = 0;
  ASSERT_EQ(a_->pair->PostSend(request), PostResult::kOk);
  EXPECT_EQ(a_->NextSend().status, Status::kSuccess);
}

// Checklist 40: more reads than may be outstanding wait on this side.
TEST_F(IwarpDataTest, ManyReads) {
  Connect({.reads = 2});
  b_->Fill(0, 64 * 1024, 3);
  for (uint32_t i = 0; i < 64; ++i) a_->Read(i, 1024 * i, 1024, *b_, 1024 * i);
  for (uint32_t i = 0; i < 64; ++i) {
    const Completion read = a_->NextSend();
    ASSERT_EQ(read.id, i);
    ASSERT_EQ(read.status, Status::kSuccess);
  }
  EXPECT_TRUE(a_->Matches(0, 64 * 1024, 3));
}

// Checklist 46.
TEST_F(IwarpDataTest, FencedWriteDoesNotOvertakeARead) {
  Connect();
  b_->Fill(0, 100000, 1);
  a_->Fill(500000, 100000, 2);
  a_->Read(1, 0, 100000, *b_, 0);
  a_->Write(2, 500000, 100000, *b_, 0, kFence | kConfirm);
  EXPECT_EQ(a_->NextSend().id, 1u);
  EXPECT_EQ(a_->NextSend().id, 2u);
  EXPECT_TRUE(a_->Matches(0, 100000, 1));
  EXPECT_TRUE(b_->Matches(0, 100000, 2));
}

// Checklist 47.
TEST_F(IwarpDataTest, LargeReadsBothWaysAtOnce) {
  constexpr uint32_t kSize = 64 * kMiB;
  Connect({.memory = 2 * kSize, .reads = 4});
  a_->Fill(0, kSize, 1);
  b_->Fill(0, kSize, 2);
  a_->Read(1, kSize, kSize, *b_, 0);
  b_->Read(1, kSize, kSize, *a_, 0);
  EXPECT_EQ(a_->NextSend().status, Status::kSuccess);
  EXPECT_EQ(b_->NextSend().status, Status::kSuccess);
  EXPECT_TRUE(a_->Matches(kSize, kSize, 2));
  EXPECT_TRUE(b_->Matches(kSize, kSize, 1));
}

TEST_F(IwarpDataTest, ConfirmedSendsShareFewReads) {
  Connect({.reads = 1});
  for (uint32_t i = 0; i < 200; ++i) b_->Receive(i, 0, 64);
  for (uint32_t i = 0; i < 200; ++i) a_->Send(i, 0, 8, kConfirm);
  for (uint32_t i = 0; i < 200; ++i) {
    const Completion sent = a_->NextSend();
    ASSERT_EQ(sent.id, i);
    ASSERT_EQ(sent.status, Status::kSuccess);
  }
}

// One read is allowed at a time. The program's own takes that place, and its end makes room for the
// confirmation. What follows the first read is sent at once when that ends, so that none of it is
// answered meanwhile.
TEST_F(IwarpDataTest, AConfirmationWaitsForTheReadBeforeIt) {
  for (const bool atomic : {false, true}) {
    SCOPED_TRACE(atomic);
    Connect({.memory = 2 * kMiB,
             .access = kLocalRead | kLocalWrite | kRemoteRead | kRemoteWrite | kRemoteAtomic,
             .reads = 1});
    b_->Receive(1, kMiB, 8);
    a_->Read(1, 0, kMiB, *b_, 0);
    if (atomic) {
      AtomicRequest add;
      add.id = 2;
      add.compare_add = 1;
      add.result = a_->Piece(kMiB, 8);
      add.remote_address = b_->address(kMiB + 64);
      add.remote_key = b_->region->key();
      ASSERT_EQ(a_->pair->PostAtomic(add), PostResult::kOk);
    } else {
      a_->Read(2, kMiB, 8, *b_, kMiB + 64);
    }
    a_->Send(3, 0, 8, kConfirm);
    for (const uint64_t id : {1, 2, 3}) {
      const Completion done = a_->NextSend();
      ASSERT_EQ(done.id, id);
      ASSERT_EQ(done.status, Status::kSuccess);
    }
  }
}

TEST_F(IwarpDataTest, SeparateCompletionQueues) {
  Connect({.separate_queues = true});
  a_->Fill(0, 5000, 9);
  for (int i = 0; i < 20; ++i) {
    b_->Receive(1, 0, 5000);
    a_->Send(2, 0, 5000, kConfirm);
    EXPECT_EQ(b_->NextReceive().length, 5000u);
    EXPECT_EQ(a_->NextSend().status, Status::kSuccess);
    a_->Read(3, 8000, 5000, *b_, 0);
    EXPECT_EQ(a_->NextSend().status, Status::kSuccess);
    EXPECT_TRUE(a_->Matches(8000, 5000, 9));
  }
}

TEST_F(IwarpDataTest, ImmediateData) {
  Connect({}, /*immediate=*/true);
  for (uint32_t i = 0; i < 6; ++i) b_->Receive(i, 4096 * i, 4096);
  a_->Fill(0, 3000, 5);
  a_->Send(0, 0, 3000, kImmediate, 0x01020304);
  a_->Send(1, 0, 0, kImmediate | kSolicited, 5);
  a_->Send(2, 0, 10);
  a_->Write(3, 0, 3000, *b_, 100000, kImmediate, 6);
  a_->Write(4, 0, 0, *b_, 0, kImmediate | kSolicited, 7);
  a_->Write(5, 0, 3000, *b_, 200000);
  a_->Send(6, 0, 1);
  struct Row {
    uint32_t length;
    bool has_immediate;
    uint32_t immediate;
    bool solicited;
    Opcode opcode;
  };
  const Row rows[] = {{3000, true, 0x01020304, false, Opcode::kReceive},
                      {0, true, 5, true, Opcode::kReceive},
                      {10, false, 0, false, Opcode::kReceive},
                      {3000, true, 6, false, Opcode::kReceiveWrite},
                      {0, true, 7, true, Opcode::kReceiveWrite},
                      {1, false, 0, false, Opcode::kReceive}};
  for (uint32_t i = 0; i < 6; ++i) {
    const Completion received = b_->NextReceive();
    EXPECT_EQ(received.id, i);
    EXPECT_EQ(received.status, Status::kSuccess);
    EXPECT_EQ(received.length, rows[i].length) << i;
    EXPECT_EQ(received.has_immediate, rows[i].has_immediate) << i;
    if (rows[i].has_immediate) {
      EXPECT_EQ(received.immediate, rows[i].immediate) << i;
    }
    EXPECT_EQ(received.solicited, rows[i].solicited) << i;
    EXPECT_EQ(received.opcode, rows[i].opcode) << i;
  }
  EXPECT_TRUE(b_->Matches(100000, 3000, 5));
  EXPECT_TRUE(b_->Matches(200000, 3000, 5));
}

// ----------------------------------------------------------------------- without a receive

TEST_F(IwarpDataTest, HeldMessageWaits) {
  Connect();
  a_->Fill(0, 100, 4);
  a_->Send(1, 0, 100, kConfirm);
  // A read and a write pass the held message; the confirmation does not.
  b_->Fill(5000, 10, 8);
  a_->Write(2, 0, 100, *b_, 9000);
  a_->Read(3, 5000, 10, *b_, 5000);
  b_->Send(9, 0, 0);  // and the other direction is free
  a_->Receive(10, 0, 0);
  EXPECT_EQ(a_->Next(*a_->send_queue).id, 10u);
  b_->Receive(4, 0, 100);
  const uint64_t one = b_->Next(*b_->send_queue).id;
  const uint64_t other = b_->Next(*b_->send_queue).id;
  EXPECT_TRUE((one == 4 && other == 9) || (one == 9 && other == 4));
  EXPECT_TRUE(b_->Matches(0, 100, 4));
  for (const uint64_t id : {1, 2, 3}) {
    const Completion sent = a_->Next(*a_->send_queue);
    EXPECT_EQ(sent.id, id);
    EXPECT_EQ(sent.status, Status::kSuccess);
  }
  EXPECT_TRUE(a_->Matches(5000, 10, 8));
}

// More than may be parked: the sender's TCP is stopped, and nothing is lost.
TEST_F(IwarpDataTest, HeldBeyondTheLimit) {
  constexpr uint32_t kMessages = 400;
  constexpr uint32_t kSize = 40000;
  Connect({.memory = kMessages * 64 + 2 * kSize});
  a_->Fill(0, kSize, 6);
  for (uint32_t i = 0; i < kMessages; ++i) a_->Send(i, 0, kSize - i);
  for (uint32_t i = 0; i < kMessages; ++i) {
    b_->Receive(i, 0, kSize);
    const Completion received = b_->NextReceive();
    ASSERT_EQ(received.id, i);
    ASSERT_EQ(received.length, kSize - i);
    ASSERT_TRUE(b_->Matches(0, kSize - i, 6));
  }
  for (uint32_t i = 0; i < kMessages; ++i) ASSERT_EQ(a_->NextSend().id, i);
}

TEST_F(IwarpDataTest, HeldImmediateDataKeepsItsOrder) {
  Connect({}, /*immediate=*/true);
  a_->Fill(0, 64, 1);
  a_->Fill(64, 64, 2);
  a_->Write(1, 0, 64, *b_, 1000, kImmediate, 11);
  a_->Send(2, 0, 64, kImmediate, 12);
  a_->Write(3, 64, 64, *b_, 3000, kImmediate, 13);
  a_->Write(4, 0, 64, *b_, 2000);
  a_->Send(5, 0, 64);
  a_->Send(6, 0, 64);
  for (uint32_t i = 1; i <= 6; ++i) EXPECT_EQ(a_->NextSend().id, i);
  LetArrive();
  const uint32_t values[] = {11, 12, 13, 0};
  for (uint32_t i = 0; i < 4; ++i) {
    b_->Receive(i, 0, 64);
    const Completion received = b_->NextReceive();
    EXPECT_EQ(received.id, i);
    EXPECT_EQ(received.length, 64u);
    EXPECT_EQ(received.has_immediate, i < 3);
    if (i < 3) {
      EXPECT_EQ(received.immediate, values[i]);
    }
    EXPECT_EQ(received.opcode, i == 0 || i == 2 ? Opcode::kReceiveWrite : Opcode::kReceive);
    if (i == 0) {
      EXPECT_TRUE(b_->Matches(1000, 64, 1));
    }
    if (i == 2) {
      EXPECT_TRUE(b_->Matches(3000, 64, 2));
    }
  }
  EXPECT_TRUE(b_->Matches(0, 64, 1));
  b_->Receive(9, 0, 64);  // the last send, after the plain write
  EXPECT_EQ(b_->NextReceive().length, 64u);
  EXPECT_TRUE(b_->Matches(2000, 64, 1));
}

// Some of what was parked is delivered, but a write is still parked. The next write to the same
// place must not overtake it, and a read sees both.
TEST_F(IwarpDataTest, WritesStayBehindAParkedWrite) {
  Connect({}, /*immediate=*/true);
  constexpr size_t kPlace = 2000;
  for (unsigned i = 0; i < 3; ++i) a_->Fill(64 * i, 64, i + 1);
  a_->Write(1, 0, 64, *b_, 1000, kImmediate, 11);
  a_->Send(2, 0, 64);
  a_->Write(3, 64, 64, *b_, kPlace);
  for (uint32_t i = 1; i <= 3; ++i) EXPECT_EQ(a_->NextSend().id, i);
  LetArrive();
  b_->Receive(1, 0, 64);
  EXPECT_EQ(b_->NextReceive().immediate, 11u);
  a_->Write(4, 128, 64, *b_, kPlace);
  EXPECT_EQ(a_->NextSend().id, 4u);
  a_->Read(5, 500, 64, *b_, kPlace);
  LetArrive();
  b_->Receive(2, 0, 64);
  EXPECT_FALSE(b_->NextReceive().has_immediate);
  EXPECT_EQ(a_->NextSend().id, 5u);
  EXPECT_TRUE(a_->Matches(500, 64, 3));
  EXPECT_TRUE(b_->Matches(kPlace, 64, 3));
}

TEST_F(IwarpDataTest, BreakTellsTheSender) {
  Connect({.no_receive = NoReceive::kBreak});
  a_->Send(1, 0, 10, kConfirm);
  const Completion sent = a_->NextSend();
  EXPECT_EQ(sent.id, 1u);
  EXPECT_EQ(sent.status, Status::kReceiverNotReady);
  EXPECT_EQ(a_->sink.Next().cause, DisconnectCause::kBroken);
  EXPECT_EQ(b_->sink.Next().cause, DisconnectCause::kBroken);
}

TEST_F(IwarpDataTest, DropReports) {
  Connect({.no_receive = NoReceive::kDrop});
  a_->Send(1, 0, 10, kConfirm);
  EXPECT_EQ(a_->NextSend().status, Status::kSuccess);
  EXPECT_EQ(b_->sink.Next().kind, Kind::kDropped);
  b_->Receive(2, 0, 10);
  a_->Send(3, 0, 11, kConfirm);  // too long: its receive fails, and nothing else
  EXPECT_EQ(a_->NextSend().status, Status::kSuccess);
  EXPECT_EQ(b_->NextReceive().status, Status::kLocalLength);
  b_->Receive(5, 0, 10);
  a_->Send(4, 0, 9, kConfirm);
  EXPECT_EQ(a_->NextSend().status, Status::kSuccess);
  EXPECT_EQ(b_->NextReceive().length, 9u);
}

// --------------------------------------------------------------------------------- refusals

TEST_F(IwarpDataTest, MessageLongerThanItsReceive) {
  Connect();
  b_->Receive(1, 0, 9);
  a_->Send(2, 0, 10, kConfirm);
  EXPECT_EQ(a_->NextSend().status, Status::kRemoteOperation);
  EXPECT_EQ(b_->NextReceive().status, Status::kLocalLength);
  EXPECT_EQ(a_->sink.Next().cause, DisconnectCause::kBroken);
  EXPECT_EQ(b_->sink.Next().cause, DisconnectCause::kBroken);
}

// Checklist 37, from the initiator's side: it learns the verdict through the confirmation.
TEST_F(IwarpDataTest, RefusedWrites) {
  enum class Fault { kBeyond, kKey, kRight };
  for (const Fault fault : {Fault::kBeyond, Fault::kKey, Fault::kRight}) {
    TestEnd::Options options;
    if (fault == Fault::kRight) options.access = kLocalRead | kLocalWrite | kRemoteRead;
    Connect(options);
    const Segment segment = a_->Piece(0, 16);
    SendRequest request;
    request.id = 5;
    request.opcode = Opcode::kWrite;
    request.flags = kConfirm;
    request.segments = {&segment, 1};
    request.remote_address = b_->address(fault == Fault::kBeyond ? b_->memory.size() - 15 : 0);
    request.remote_key = b_->region->key() ^ (fault == Fault::kKey ? 1 << 20 : 0);
    ASSERT_EQ(a_->pair->PostSend(request), PostResult::kOk);
    const Completion sent = a_->NextSend();
    EXPECT_EQ(sent.id, 5u);
    EXPECT_EQ(sent.status, Status::kRemoteAccess);
    EXPECT_EQ(a_->sink.Next().cause, DisconnectCause::kBroken);
    EXPECT_EQ(b_->sink.Next().kind, Kind::kRefusedWrite);
    EXPECT_EQ(b_->sink.Next().cause, DisconnectCause::kBroken);
  }
}

// Checklist 43.
TEST_F(IwarpDataTest, RefusedRead) {
  Connect({.access = kLocalRead | kLocalWrite | kRemoteWrite});
  a_->Read(1, 0, 16, *b_, 0);
  EXPECT_EQ(a_->NextSend().status, Status::kRemoteAccess);
  EXPECT_EQ(a_->sink.Next().cause, DisconnectCause::kBroken);
  EXPECT_EQ(b_->sink.Next().cause, DisconnectCause::kBroken);
}

TEST_F(IwarpDataTest, LocalProtection) {
  Connect();
  const Segment segment{a_->address(0), a_->region->key() ^ (1 << 20), 16};
  SendRequest request;
  request.segments = {&segment, 1};
  ASSERT_EQ(a_->pair->PostSend(request), PostResult::kOk);
  EXPECT_EQ(a_->NextSend().status, Status::kLocalProtection);
  EXPECT_EQ(a_->sink.Next().cause, DisconnectCause::kBroken);
  EXPECT_EQ(b_->sink.Next().cause, DisconnectCause::kBroken);
}

// --------------------------------------------------------------------------------- the end

// Checklist 54.
TEST_F(IwarpDataTest, GracefulDisconnectDeliversEverything) {
  constexpr uint32_t kSize = 500000;
  Connect({.memory = 8 * kSize});
  a_->Fill(0, kSize, 3);
  for (uint32_t i = 0; i < 8; ++i) b_->Receive(i, i * kSize, kSize);
  b_->Receive(8, 0, 1);
  for (uint32_t i = 0; i < 8; ++i) a_->Send(i, 0, kSize);
  a_->pair->Disconnect(DisconnectMode::kGraceful);
  for (uint32_t i = 0; i < 8; ++i) {
    const Completion received = b_->NextReceive();
    ASSERT_EQ(received.id, i);
    ASSERT_EQ(received.status, Status::kSuccess);
    ASSERT_TRUE(b_->Matches(i * kSize, kSize, 3));
  }
  EXPECT_EQ(b_->NextReceive().status, Status::kFlushed);
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(a_->NextSend().status, Status::kSuccess);
  EXPECT_EQ(a_->sink.Next().cause, DisconnectCause::kLocal);
  EXPECT_EQ(b_->sink.Next().cause, DisconnectCause::kPeer);
}

TEST_F(IwarpDataTest, AbruptDisconnectDeliversWhatWasCompleted) {
  Connect();
  a_->Fill(0, 1000, 3);
  b_->Receive(1, 0, 1000);
  b_->Receive(2, 0, 1000);
  a_->Send(1, 0, 1000);
  EXPECT_EQ(a_->NextSend().status, Status::kSuccess);
  a_->pair->Disconnect(DisconnectMode::kAbrupt);
  EXPECT_EQ(b_->NextReceive().status, Status::kSuccess);
  EXPECT_TRUE(b_->Matches(0, 1000, 3));
  EXPECT_EQ(b_->NextReceive().status, Status::kFlushed);
  EXPECT_EQ(b_->sink.Next().cause, DisconnectCause::kPeer);
  EXPECT_TRUE(a_->sink.Empty());
}

// Checklist 57.
TEST_F(IwarpDataTest, BothDisconnectAtOnce) {
  for (int i = 0; i < 20; ++i) {
    Connect();
    a_->pair->Disconnect(DisconnectMode::kGraceful);
    b_->pair->Disconnect(DisconnectMode::kGraceful);
    EXPECT_NE(a_->sink.Next().cause, DisconnectCause::kBroken);
    EXPECT_NE(b_->sink.Next().cause, DisconnectCause::kBroken);
  }
}

TEST_F(IwarpDataTest, ConnectsAgainAfterReset) {
  TestEnd client;
  TestEnd server;
  server.Listen();
  for (int i = 0; i < 5; ++i) {
    client.Dial(server.listener->port());
    server.AcceptNext();
    EXPECT_EQ(client.sink.Next().kind, Kind::kConnected);
    EXPECT_EQ(server.sink.Next().kind, Kind::kConnected);
    server.Receive(1, 0, 10);
    client.Send(2, 0, 10);
    EXPECT_EQ(server.NextReceive().status, Status::kSuccess);
    EXPECT_EQ(client.NextSend().status, Status::kSuccess);
    client.pair->Disconnect(DisconnectMode::kGraceful);
    EXPECT_EQ(client.sink.Next().cause, DisconnectCause::kLocal);
    EXPECT_EQ(server.sink.Next().cause, DisconnectCause::kPeer);
    client.pair->Reset();
    server.pair->Reset();
  }
}

// Posts and polls are no cancellation points: they hold locks.
TEST_F(IwarpDataTest, ThreadsThatAreCancelledPostAndPoll) {
  constexpr int kRounds = 100;
  TestEnd a({.separate_queues = true});
  TestEnd b;
  ConnectEnds(a, b);
  for (int thread_pair = 0; thread_pair < 5; ++thread_pair) {
    std::atomic<int> returned{0};
    const auto run = [&](TestEnd& end, bool first) {
      pthread_cancel(pthread_self());
      const Deadline deadline = Deadline::After(end.loop, 10'000'000'000);
      const auto poll = [&](CompletionQueue& queue) {
        Completion completion;
        while (queue.Poll(&completion, 1) == 0 && !deadline.Passed(end.loop)) {
          std::this_thread::yield();
        }
      };
      for (int i = 0; i < kRounds; ++i) {
        end.Receive(i, 0, 8);
        if (first) end.Send(i, 8, 8);
        poll(end.receive_queue());
        if (!first) end.Send(i, 8, 8);
        poll(*end.send_queue);
      }
      ++returned;
    };
    std::thread other(run, std::ref(b), false);
    std::thread thread(run, std::ref(a), true);
    thread.join();
    other.join();
    ASSERT_EQ(returned, 2);
  }
  // What they left still serves others.
  b.Receive(1, 0, 8);
  a.Send(1, 8, 8);
  EXPECT_EQ(a.NextSend().status, Status::kSuccess);
  EXPECT_EQ(b.NextReceive().status, Status::kSuccess);
}

// The last message of a connection outlives the pair and its context.
TEST_F(IwarpDataTest, DestructionAfterTheLastSend) {
  Connect();
  b_->Receive(1, 0, 10);
  a_->Send(2, 0, 10);
  EXPECT_EQ(a_->NextSend().status, Status::kSuccess);
  a_.reset();
  EXPECT_EQ(b_->NextReceive().status, Status::kSuccess);
  EXPECT_EQ(b_->sink.Next().cause, DisconnectCause::kPeer);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
