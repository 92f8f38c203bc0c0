#include "tests/device/ends.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace viaduct::verbs {

Bytes Pattern(size_t size, int seed) {
  Bytes bytes(size);
  uint32_t state = 2463534242u + static_cast<uint32_t>(seed) * 2654435761u;
  for (uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

ReadOnlyPage::ReadOnlyPage()
    : size_(static_cast<size_t>(sysconf(_SC_PAGESIZE))),
      data_(mmap(nullptr, size_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  EXPECT_NE(data_, MAP_FAILED);
}

ReadOnlyPage::~ReadOnlyPage() { munmap(data_, size_); }

Inbox::Inbox(Context& context, CompletionSink* sink) {
  auto queue = context.CreateCompletionQueue(sink);
  EXPECT_TRUE(queue.ok()) << queue.status();
  queue_ = *std::move(queue);
}

void Inbox::Poll() {
  Completion completions[16];
  int count;
  do {
    count = queue_->Poll(completions, 16);
    ASSERT_GE(count, 0);
    ASSERT_LE(count, 16);
    got_.insert(got_.end(), completions, completions + count);
  } while (count == 16);
}

size_t Events::count() const {
  MutexLock lock(&mutex_);
  return events_.size();
}

size_t Events::CountOf(Event::Kind kind) const {
  MutexLock lock(&mutex_);
  return std::count_if(events_.begin(), events_.end(),
                       [kind](const Event& event) { return event.kind == kind; });
}

Event Events::Take() {
  MutexLock lock(&mutex_);
  if (events_.empty()) return Event();
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void Events::Add(Event event) {
  // The hook may destroy the pair, but not this object. It runs first, so that whoever sees the
  // event also sees what the hook has done.
  if (hook) hook(event);
  MutexLock lock(&mutex_);
  events_.push_back(std::move(event));
}

void Events::OnConnected(QueuePair&, absl::Span<const uint8_t> private_data) {
  Event event;
  event.kind = Event::kConnected;
  event.private_data.assign(private_data.begin(), private_data.end());
  Add(std::move(event));
}

void Events::OnConnectFailed(QueuePair&, ConnectOutcome outcome,
                             absl::Span<const uint8_t> private_data) {
  Event event;
  event.kind = Event::kConnectFailed;
  event.outcome = outcome;
  event.private_data.assign(private_data.begin(), private_data.end());
  Add(std::move(event));
}

void Events::OnDisconnected(QueuePair&, DisconnectCause cause) {
  Event event;
  event.kind = Event::kDisconnected;
  event.cause = cause;
  Add(std::move(event));
}

void Events::OnDropped(QueuePair&) {
  Event event;
  event.kind = Event::kDropped;
  Add(std::move(event));
}

void Events::OnRefusedWrite(QueuePair&) {
  Event event;
  event.kind = Event::kRefusedWrite;
  Add(std::move(event));
}

void Events::OnRefusedRead(QueuePair&) {
  Event event;
  event.kind = Event::kRefusedRead;
  Add(std::move(event));
}

size_t Requests::count() const {
  MutexLock lock(&mutex_);
  return requests_.size();
}

std::unique_ptr<IncomingConnection> Requests::Take() {
  MutexLock lock(&mutex_);
  if (requests_.empty()) return nullptr;
  std::unique_ptr<IncomingConnection> request = std::move(requests_.front());
  requests_.pop_front();
  return request;
}

void Requests::OnRequest(std::unique_ptr<IncomingConnection> request) {
  MutexLock lock(&mutex_);
  requests_.push_back(std::move(request));
}

End::End(Context& context, const EndOptions& options) : context_(context) {
  memory_.resize(options.memory);
  domain_ = options.domain;
  if (domain_ == nullptr) {
    auto domain = context.CreateDomain(options.wildcard);
    EXPECT_TRUE(domain.ok()) << domain.status();
    own_domain_ = *std::move(domain);
    domain_ = own_domain_.get();
  }
  auto region = context.Register(*domain_, memory_.data(), memory_.size(), options.region_access);
  EXPECT_TRUE(region.ok()) << region.status();
  region_ = *std::move(region);
  key_ = region_->key();
  if (options.shared_inbox != nullptr) {
    sends_ = receives_ = options.shared_inbox;
  } else {
    own_sends_ = std::make_unique<Inbox>(context, options.sink);
    own_receives_ = std::make_unique<Inbox>(context, options.sink);
    sends_ = own_sends_.get();
    receives_ = own_receives_.get();
  }
  pair_options_.domain = domain_;
  pair_options_.shared_receives = options.shared_receives;
  pair_options_.send_queue = &sends_->queue();
  pair_options_.receive_queue = &receives_->queue();
  pair_options_.sink = &events_;
  pair_options_.context = this;
  pair_options_.max_sends = options.max_sends;
  pair_options_.max_receives = options.max_receives;
  pair_options_.max_send_segments = options.max_segments;
  pair_options_.max_receive_segments = options.max_segments;
  pair_options_.max_reads_out = options.max_reads_out;
  pair_options_.no_receive = options.no_receive;
  pair_options_.remote_access = options.remote_access;
  auto pair = context.CreateQueuePair(pair_options_);
  EXPECT_TRUE(pair.ok()) << pair.status();
  pair_ = *std::move(pair);
}

void End::Poll() {
  sends_->Poll();
  if (receives_ != sends_) receives_->Poll();
}

uint64_t End::Address(size_t offset) const {
  return reinterpret_cast<uint64_t>(memory_.data()) + offset;
}

Segment End::At(size_t offset, size_t length) const {
  return Segment{Address(offset), key_, static_cast<uint32_t>(length)};
}

void End::Put(size_t offset, const Bytes& bytes) {
  Agree();
  std::copy(bytes.begin(), bytes.end(), memory_.begin() + offset);
}

Bytes End::Get(size_t offset, size_t length) const {
  Agree();
  return Bytes(memory_.begin() + offset, memory_.begin() + offset + length);
}

PostResult End::Receive(uint64_t id, size_t offset, size_t length) {
  const Segment segment = At(offset, length);
  return Receive(id, absl::MakeConstSpan(&segment, 1));
}

PostResult End::Receive(uint64_t id, absl::Span<const Segment> segments) {
  ReceiveRequest request;
  request.id = id;
  request.segments = segments;
  return pair_->PostReceive(request);
}

PostResult End::Post(Opcode opcode, uint64_t id, absl::Span<const Segment> segments, uint16_t flags,
                     uint32_t immediate, uint64_t remote_address, Key remote_key) {
  SendRequest request;
  request.id = id;
  request.opcode = opcode;
  request.flags = flags;
  request.immediate = immediate;
  request.segments = segments;
  request.remote_address = remote_address;
  request.remote_key = remote_key;
  return pair_->PostSend(request);
}

PostResult End::Send(uint64_t id, size_t offset, size_t length, uint16_t flags,
                     uint32_t immediate) {
  const Segment segment = At(offset, length);
  return Post(Opcode::kSend, id, absl::MakeConstSpan(&segment, 1), flags, immediate, 0, 0);
}

PostResult End::Send(uint64_t id, absl::Span<const Segment> segments) {
  return Post(Opcode::kSend, id, segments, 0, 0, 0, 0);
}

PostResult End::Write(uint64_t id, size_t offset, size_t length, const End& other, size_t at,
                      uint16_t flags, uint32_t immediate) {
  other.Agree();
  const Segment segment = At(offset, length);
  return Post(Opcode::kWrite, id, absl::MakeConstSpan(&segment, 1), flags, immediate,
              other.Address(at), other.key_);
}

PostResult End::Read(uint64_t id, size_t offset, size_t length, const End& other, size_t at,
                     uint16_t flags) {
  other.Agree();
  const Segment segment = At(offset, length);
  return Post(Opcode::kRead, id, absl::MakeConstSpan(&segment, 1), flags, 0, other.Address(at),
              other.key_);
}

PostResult End::ReadInto(const Segment& sink, uint64_t id, const End& other, size_t at) {
  other.Agree();
  return Post(Opcode::kRead, id, absl::MakeConstSpan(&sink, 1), 0, 0, other.Address(at),
              other.key_);
}

BindRequest End::ToBind(uint64_t id, MemoryWindow& window, size_t offset, size_t length,
                        uint32_t access) const {
  BindRequest request;
  request.id = id;
  request.window = &window;
  request.region = region_->key();
  request.address = Address(offset);
  request.length = length;
  request.access = access;
  return request;
}

PostResult End::PostTo(Opcode opcode, uint64_t id, size_t length, uint64_t address, Key key,
                       uint16_t flags) {
  const Segment segment = At(0, length);
  return Post(opcode, id, absl::MakeConstSpan(&segment, 1), flags, 0, address, key);
}

DeviceTest::DeviceTest() : device_(DeviceUnderTest::Make()) {}

DeviceTest::~DeviceTest() { DestroyEnds(); }

void DeviceTest::DrainExecutors() {
  a().executor().Drain();
  b().executor().Drain();
}

void DeviceTest::DestroyEnds() {
  polled_.clear();
  DrainExecutors();
  // Pairs first, so that no sink call meets an end that is half gone.
  for (std::unique_ptr<End>& end : ends_) end->DestroyPair();
  while (!ends_.empty()) ends_.pop_back();
}

End& DeviceTest::NewEnd(Context& context, const EndOptions& options) {
  ends_.push_back(std::make_unique<End>(context, options));
  polled_.push_back(ends_.back().get());
  return *ends_.back();
}

void DeviceTest::Forget(End& end) {
  polled_.erase(std::remove(polled_.begin(), polled_.end(), &end), polled_.end());
}

void DeviceTest::PollEnds() {
  for (End* end : polled_) end->Poll();
}

bool DeviceTest::Run(absl::FunctionRef<bool()> done) {
  return device_->RunUntil([&] {
    PollEnds();
    return done();
  });
}

void DeviceTest::Settle() {
  device_->Settle([this] { PollEnds(); });
  DrainExecutors();
  PollEnds();
}

Completion DeviceTest::Await(Inbox& inbox) {
  if (!Run([&] {
        inbox.Poll();
        return !inbox.got().empty();
      })) {
    ADD_FAILURE() << "no completion came";
    Completion none = {};
    none.id = ~uint64_t{0};
    none.status = Status::kTransport;
    return none;
  }
  Completion completion = inbox.got().front();
  inbox.got().pop_front();
  return completion;
}

Completion DeviceTest::Expect(Inbox& inbox, uint64_t id, Status status) {
  Completion completion = Await(inbox);
  EXPECT_EQ(completion.id, id);
  EXPECT_EQ(completion.status, status);
  return completion;
}

Event DeviceTest::AwaitEvent(End& end) {
  if (!Run([&] { return end.events().count() != 0; })) ADD_FAILURE() << "no event came";
  return end.events().Take();
}

std::unique_ptr<IncomingConnection> DeviceTest::AwaitRequest(Requests& requests) {
  if (!Run([&] { return requests.count() != 0; })) ADD_FAILURE() << "no request came";
  return requests.Take();
}

void DeviceTest::ExpectDisconnected(End& end, DisconnectCause cause) {
  const Event event = AwaitEvent(end);
  EXPECT_EQ(event.kind, Event::kDisconnected);
  EXPECT_EQ(event.cause, cause);
}

void DeviceTest::ExpectBroken(End& end) {
  Event event = AwaitEvent(end);
  while (event.kind == Event::kRefusedWrite || event.kind == Event::kRefusedRead) {
    event = AwaitEvent(end);
  }
  EXPECT_EQ(event.kind, Event::kDisconnected);
  EXPECT_EQ(event.cause, DisconnectCause::kBroken);
}

absl::Status DeviceTest::Dial(End& active, Context& to, uint16_t port, const Bytes& private_data,
                              bool may_frame) {
  ConnectOptions options;
  options.address = to.address();
  options.port = port;
  options.private_data = private_data;
  options.may_frame = may_frame;
  return active.pair().Connect(options);
}

std::unique_ptr<IncomingConnection> DeviceTest::Ask(End& active, Context& to, bool may_frame) {
  Requests requests;
  auto listener = to.Listen(0, &requests);
  EXPECT_TRUE(listener.ok()) << listener.status();
  if (!listener.ok()) return nullptr;
  EXPECT_TRUE(Dial(active, to, (*listener)->port(), {}, may_frame).ok());
  return AwaitRequest(requests);
}

void DeviceTest::Connect(End& active, End& passive) {
  ConnectAs(active, passive, device().usual_form());
}

void DeviceTest::ConnectWithImmediate(End& active, End& passive) {
  ConnectAs(active, passive, device().immediate_form());
}

void DeviceTest::ConnectAs(End& active, End& passive, ImmediateForm form, bool may_frame) {
  active.events().hook = [&active, form](const Event& event) {
    if (event.kind == Event::kConnected) active.pair().EnableImmediate(form);
  };
  may_frame = may_frame || form == ImmediateForm::kFramed;
  const auto request = Ask(active, passive.context(), may_frame);
  ASSERT_NE(request, nullptr);
  passive.pair().EnableImmediate(form);
  ASSERT_TRUE(request->Accept(passive.pair(), {}).ok());
  ASSERT_EQ(AwaitEvent(active).kind, Event::kConnected);
  ASSERT_EQ(AwaitEvent(passive).kind, Event::kConnected);
}

}  // namespace viaduct::verbs
