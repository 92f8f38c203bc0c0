#include "verbs/soft/iwarp/testing_device.h"

#include <dirent.h>

#include <chrono>
#include <utility>

#include "gtest/gtest.h"
#include "verbs/base/control_thread.h"
#include "verbs/soft/context.h"
#include "verbs/soft/iwarp/wire.h"

namespace viaduct::verbs::iwarp {
namespace {

constexpr Nanos kLimit = 60'000'000'000;

std::string TextOf(absl::Span<const uint8_t> data) { return std::string(data.begin(), data.end()); }

absl::Span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

uint8_t Pattern(size_t i, unsigned seed) {
  return static_cast<uint8_t>((i * 131 + seed * 17 + (i >> 8)) ^ (i >> 16));
}

}  // namespace

size_t OpenDescriptors() {
  size_t count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

void TestSink::Add(Event event) {
  std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  changed_.notify_all();
}

void TestSink::OnConnected(QueuePair& pair, absl::Span<const uint8_t> data) {
  if (immediate) pair.EnableImmediate(ImmediateForm::kNative);
  Add({.kind = Event::Kind::kConnected, .data = TextOf(data)});
}

void TestSink::OnConnectFailed(QueuePair&, ConnectOutcome outcome, absl::Span<const uint8_t> data) {
  Add({.kind = Event::Kind::kFailed, .outcome = outcome, .data = TextOf(data)});
}

void TestSink::OnDisconnected(QueuePair&, DisconnectCause cause) {
  Add({.kind = Event::Kind::kDisconnected, .cause = cause, .data = ""});
}

void TestSink::OnDropped(QueuePair&) { Add({.kind = Event::Kind::kDropped, .data = ""}); }

void TestSink::OnRefusedWrite(QueuePair&) { Add({.kind = Event::Kind::kRefusedWrite, .data = ""}); }

void TestSink::OnDamage(QueuePair&, Damage damage) {
  Add({.kind = Event::Kind::kDamage, .data = "", .damage = damage});
}

Event TestSink::Next() {
  std::unique_lock lock(mutex_);
  const bool there = changed_.wait_for(lock, std::chrono::nanoseconds(kLimit),
                                       [this] { return !events_.empty(); });
  EXPECT_TRUE(there) << "no event";
  if (!there) return {.kind = Event::Kind::kDropped, .data = "none"};
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

bool TestSink::Empty() {
  std::lock_guard lock(mutex_);
  return events_.empty();
}

void TestListenerSink::OnRequest(std::unique_ptr<IncomingConnection> request) {
  std::lock_guard lock(mutex_);
  requests_.push_back(std::move(request));
  changed_.notify_all();
}

std::unique_ptr<IncomingConnection> TestListenerSink::Next() {
  std::unique_lock lock(mutex_);
  const bool there = changed_.wait_for(lock, std::chrono::nanoseconds(kLimit),
                                       [this] { return !requests_.empty(); });
  EXPECT_TRUE(there) << "no request";
  if (!there) return nullptr;
  std::unique_ptr<IncomingConnection> request = std::move(requests_.front());
  requests_.pop_front();
  return request;
}

TestEnd::TestEnd(const Options& options) : loop(**ControlThread::Get()), memory(options.memory) {
  const Address address = *Address::Parse("127.0.0.1");
  SoftContext::Options soft;
  soft.address = address;
  soft.executor = &loop;
  IwarpWire::Options wire;
  wire.address = address;
  wire.silence = options.silence;
  wire.first_word = options.first_word;
  wire.nudge = options.nudge;
  wire.crc = options.crc;
  soft.wires.push_back(std::make_unique<IwarpWire>(loop, wire));
  soft.attributes.max_queue_pairs = 1024;
  soft.attributes.max_requests_per_queue = 16384;
  soft.attributes.max_segments = 64;
  soft.attributes.max_reads_in = soft.attributes.max_reads_out = IwarpWire::kMaxReads;
  soft.attributes.max_regions = 1024;
  soft.attributes.max_region_bytes = uint64_t{1} << 40;
  soft.attributes.max_message_bytes = IwarpWire::kMaxMessageBytes;
  soft.attributes.max_private_data = IwarpWire::kMaxPrivateData;
  context = std::make_unique<SoftContext>(std::move(soft));
  domain = *context->CreateDomain(false);
  region = *context->Register(*domain, memory.data(), memory.size(), options.access);
  send_queue = *context->CreateCompletionQueue(nullptr);
  if (options.separate_queues) separate = *context->CreateCompletionQueue(nullptr);
  if (options.shared_receives != 0) {
    shared = *context->CreateSharedReceiveQueue(
        {.domain = domain.get(), .max_receives = options.shared_receives, .max_segments = 8});
  }
  QueuePairOptions pair_options;
  pair_options.domain = domain.get();
  pair_options.send_queue = send_queue.get();
  pair_options.receive_queue = &receive_queue();
  pair_options.shared_receives = shared.get();
  pair_options.sink = &sink;
  pair_options.max_sends = pair_options.max_receives = options.requests;
  pair_options.max_send_segments = pair_options.max_receive_segments = 8;
  pair_options.max_reads_in = pair_options.max_reads_out = options.reads;
  pair_options.no_receive = options.no_receive;
  auto created = context->CreateQueuePair(pair_options);
  EXPECT_TRUE(created.ok()) << created.status();
  pair = *std::move(created);
}

TestEnd::~TestEnd() {
  listener.reset();
  pair.reset();
}

void TestEnd::Listen() {
  auto listening = context->Listen(0, &requests);
  ASSERT_TRUE(listening.ok()) << listening.status();
  listener = *std::move(listening);
}

void TestEnd::Dial(uint16_t port, const std::string& data) {
  ConnectOptions options;
  options.address = *Address::Parse("127.0.0.1");
  options.port = port;
  options.private_data = BytesOf(data);
  const absl::Status status = pair->Connect(options);
  EXPECT_TRUE(status.ok()) << status;
}

void TestEnd::AcceptNext(const std::string& data) {
  std::unique_ptr<IncomingConnection> request = requests.Next();
  ASSERT_NE(request, nullptr);
  if (sink.immediate) pair->EnableImmediate(ImmediateForm::kNative);
  const absl::Status status = request->Accept(*pair, BytesOf(data));
  EXPECT_TRUE(status.ok()) << status;
}

void TestEnd::Fill(size_t at, size_t length, unsigned seed) {
  for (size_t i = 0; i < length; ++i) memory[at + i] = Pattern(i, seed);
  SyncMemory();
}

void TestEnd::SyncMemory() { receive_queue().Poll(nullptr, 0); }

bool TestEnd::Matches(size_t at, size_t length, unsigned seed) {
  SyncMemory();
  size_t i = 0;
  while (i < length && memory[at + i] == Pattern(i, seed)) ++i;
  SyncMemory();
  if (i < length) ADD_FAILURE() << "byte " << i << " of " << length;
  return i == length;
}

void TestEnd::Receive(uint64_t id, size_t at, uint32_t length) {
  const Segment segment = Piece(at, length);
  const ReceiveRequest request = {.id = id, .segments = {&segment, 1}};
  ASSERT_EQ(shared != nullptr ? shared->PostReceive(request) : pair->PostReceive(request),
            PostResult::kOk);
}

void TestEnd::Send(uint64_t id, size_t at, uint32_t length, uint16_t flags, uint32_t immediate) {
  const Segment segment = Piece(at, length);
  SendRequest request;
  request.id = id;
  request.flags = flags;
  request.immediate = immediate;
  request.segments = {&segment, 1};
  ASSERT_EQ(pair->PostSend(request), PostResult::kOk);
}

void TestEnd::Write(uint64_t id, size_t at, uint32_t length, const TestEnd& to, size_t to_at,
                    uint16_t flags, uint32_t immediate) {
  const Segment segment = Piece(at, length);
  SendRequest request;
  request.id = id;
  request.opcode = Opcode::kWrite;
  request.flags = flags;
  request.immediate = immediate;
  request.segments = {&segment, 1};
  request.remote_address = to.address(to_at);
  request.remote_key = to.region->key();
  ASSERT_EQ(pair->PostSend(request), PostResult::kOk);
}

void TestEnd::Read(uint64_t id, size_t at, uint32_t length, const TestEnd& from, size_t from_at,
                   uint16_t flags) {
  const Segment segment = Piece(at, length);
  SendRequest request;
  request.id = id;
  request.opcode = Opcode::kRead;
  request.flags = flags;
  request.segments = {&segment, 1};
  request.remote_address = from.address(from_at);
  request.remote_key = from.region->key();
  ASSERT_EQ(pair->PostSend(request), PostResult::kOk);
}

void TestEnd::ReadFrom(uint64_t id, Key key, uint64_t address) {
  const Segment segment = Piece(0, 8);
  SendRequest request;
  request.id = id;
  request.opcode = Opcode::kRead;
  request.segments = {&segment, 1};
  request.remote_address = address;
  request.remote_key = key;
  ASSERT_EQ(pair->PostSend(request), PostResult::kOk);
}

Completion TestEnd::Next(CompletionQueue& queue) {
  const Deadline deadline = Deadline::After(loop, kLimit);
  Completion completion = {};
  while (queue.Poll(&completion, 1) == 0) {
    if (queue.Wait(deadline, queue.wakes()) == WaitResult::kTimedOut) {
      ADD_FAILURE() << "no completion";
      completion.id = ~uint64_t{0};
      return completion;
    }
  }
  return completion;
}

void ConnectEnds(TestEnd& first, TestEnd& second) {
  second.Listen();
  first.Dial(second.listener->port());
  second.AcceptNext();
  EXPECT_EQ(first.sink.Next().kind, Event::Kind::kConnected);
  EXPECT_EQ(second.sink.Next().kind, Event::Kind::kConnected);
}

}  // namespace viaduct::verbs::iwarp
