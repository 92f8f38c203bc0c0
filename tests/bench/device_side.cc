#include "tests/bench/device_side.h"

#include <utility>

#include "verbs/open_device.h"

namespace viaduct::bench {
namespace {

template <typename T>
T Must(const char* what, absl::StatusOr<T> value) {
  if (!value.ok()) {
    fprintf(stderr, "%s: %s\n", what, value.status().ToString().c_str());
    exit(1);
  }
  return *std::move(value);
}

}  // namespace

DeviceSide::DeviceSide(const SideOptions& options)
    : options_(options), block_(2 * Block::RoundUp(options.bytes)) {
  memset(out(), 1, options_.bytes);
  context_ = Must("OpenDevice", verbs::OpenDevice(verbs::Address::V4(INADDR_LOOPBACK)));
  domain_ = Must("CreateDomain", context_->CreateDomain(false));
  region_ = Must("Register", context_->Register(*domain_, block_.start(), block_.bytes(),
                                                verbs::kLocalRead | verbs::kLocalWrite |
                                                    verbs::kRemoteRead | verbs::kRemoteWrite));
  queue_ = Must("CreateCompletionQueue", context_->CreateCompletionQueue(nullptr));
}

DeviceSide::~DeviceSide() {
  listener_.reset();
  {
    verbs::MutexLock lock(&lock_);
    requests_.clear();
  }
  pairs_.clear();
}

void DeviceSide::Listen(uint16_t port) { listener_ = Must("Listen", context_->Listen(port, this)); }

verbs::QueuePair& DeviceSide::AddPair() {
  verbs::QueuePairOptions options;
  options.domain = domain_.get();
  options.send_queue = queue_.get();
  options.receive_queue = queue_.get();
  options.sink = this;
  options.max_sends = options_.depth;
  options.max_receives = options_.depth;
  pairs_.push_back(Must("CreateQueuePair", context_->CreateQueuePair(options)));
  return *pairs_.back();
}

void DeviceSide::AwaitConnected() {
  uint32_t seen;
  while ((seen = connected_.load()) < pairs_.size()) {
    if (failed_.load() != 0) Die("Connect", failed_.load());
    connected_.wait(seen);
  }
}

void DeviceSide::Connect(uint16_t port) {
  verbs::QueuePair& pair = AddPair();
  verbs::ConnectOptions options;
  options.address = context_->address();
  options.port = port;
  if (const absl::Status status = pair.Connect(options); !status.ok()) {
    Die("Connect", static_cast<long>(status.code()));
  }
  AwaitConnected();
}

void DeviceSide::Accept() {
  verbs::QueuePair& pair = AddPair();
  while (arrived_.load() == accepted_) arrived_.wait(accepted_);
  ++accepted_;
  std::unique_ptr<verbs::IncomingConnection> request;
  {
    verbs::MutexLock lock(&lock_);
    request = std::move(requests_.front());
    requests_.pop_front();
  }
  if (const absl::Status status = request->Accept(pair, {}); !status.ok()) {
    Die("Accept", static_cast<long>(status.code()));
  }
  AwaitConnected();
}

bool DeviceSide::WaitReceive(int milliseconds) {
  const uint64_t before = received_;
  const verbs::Deadline deadline =
      verbs::Deadline::After(context_->executor(), int64_t{milliseconds} * 1000000);
  for (Poll(); received_ == before; Poll()) {
    if (queue_->Wait(deadline, queue_->wakes()) == verbs::WaitResult::kTimedOut) {
      Poll();
      return received_ != before;
    }
  }
  return true;
}

bool DeviceSide::WaitBroken(int milliseconds) {
  const verbs::Deadline deadline =
      verbs::Deadline::After(context_->executor(), int64_t{milliseconds} * 1000000);
  verbs::Completion completion;
  while (true) {
    const uint32_t wakes = queue_->wakes();
    if (queue_->Poll(&completion, 1) != 0) break;
    if (queue_->Wait(deadline, wakes) == verbs::WaitResult::kTimedOut) return false;
  }
  return completion.status != verbs::Status::kSuccess;
}

void DeviceSide::OnConnected(verbs::QueuePair&, absl::Span<const uint8_t>) {
  connected_.fetch_add(1);
  connected_.notify_all();
}

void DeviceSide::OnConnectFailed(verbs::QueuePair&, verbs::ConnectOutcome outcome,
                                 absl::Span<const uint8_t>) {
  failed_.store(static_cast<uint32_t>(outcome) + 1);
  connected_.fetch_add(1);
  connected_.notify_all();
}

void DeviceSide::OnDisconnected(verbs::QueuePair&, verbs::DisconnectCause) {}
void DeviceSide::OnDropped(verbs::QueuePair&) {}
void DeviceSide::OnRefusedWrite(verbs::QueuePair&) {}

void DeviceSide::OnRequest(std::unique_ptr<verbs::IncomingConnection> request) {
  {
    verbs::MutexLock lock(&lock_);
    requests_.push_back(std::move(request));
  }
  arrived_.fetch_add(1);
  arrived_.notify_all();
}

}  // namespace viaduct::bench
