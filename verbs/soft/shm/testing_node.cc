#include "verbs/soft/shm/testing_node.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "verbs/base/control_thread.h"
#include "verbs/soft/context.h"
#include "verbs/soft/shm/wire.h"

namespace viaduct::verbs::shm {
namespace {

constexpr Nanos kLimit = 60'000'000'000;

[[noreturn]] void Give(const char* what) {
  std::fprintf(stderr, "[%d] %s\n", getpid(), what);
  std::abort();
}

ControlThread& Loop() { return **ControlThread::Get(); }

}  // namespace

std::unique_ptr<Context> OpenForTest(absl::string_view address, Nanos silence) {
  SoftContext::Options options;
  options.address = *Address::Parse(address);
  options.executor = &Loop();
  options.doorbell = std::make_unique<ShmDoorbell>(Loop(), 20'000);
  options.wires.push_back(std::make_unique<ShmWire>(Loop(), options.address, silence));
  options.attributes.device = "soft";
  options.attributes.max_queue_pairs = 65536;
  options.attributes.max_requests_per_queue = 16384;
  options.attributes.max_segments = 256;
  options.attributes.max_reads_in = options.attributes.max_reads_out = 32;
  options.attributes.max_regions = 65536;
  options.attributes.max_region_bytes = uint64_t{1} << 40;
  options.attributes.max_message_bytes = 0x7fffffff;
  options.attributes.max_private_data = 504;
  return std::make_unique<SoftContext>(std::move(options));
}

SharedReceives::SharedReceives(Context& context)
    : domain(*context.CreateDomain(false)),
      queue(*context.CreateSharedReceiveQueue({.domain = domain.get(), .max_receives = 64})) {}

TestEnd::TestEnd(Context& context, size_t memory, uint32_t depth, bool one_queue,
                 NoReceive no_receive, SharedReceives* shared)
    : one_queue_(one_queue), shared_(shared), memory_(memory) {
  if (shared_ == nullptr) domain_ = *context.CreateDomain(false);
  region_ = *context.Register(domain(), memory_.data(), memory_.size(),
                              kLocalRead | kLocalWrite | kRemoteRead | kRemoteWrite);
  send_queue_ = *context.CreateCompletionQueue(nullptr);
  if (!one_queue) receive_queue_ = *context.CreateCompletionQueue(nullptr);
  QueuePairOptions options;
  options.domain = &domain();
  if (shared_ != nullptr) options.shared_receives = shared_->queue.get();
  options.send_queue = send_queue_.get();
  options.receive_queue = &receives();
  options.sink = this;
  options.context = this;
  options.max_sends = options.max_receives = depth;
  options.max_send_segments = options.max_receive_segments = 4;
  options.no_receive = no_receive;
  pair_ = *context.CreateQueuePair(options);
}

TestEnd::~TestEnd() = default;

void TestEnd::Send(uint64_t id, size_t offset, uint32_t length, uint16_t flags) {
  const Segment segment = {reinterpret_cast<uint64_t>(memory_.data() + offset), key(), length};
  SendRequest request;
  request.id = id;
  request.flags = flags;
  request.segments = {&segment, 1};
  if (pair_->PostSend(request) != PostResult::kOk) Give("PostSend");
}

void TestEnd::Receive(uint64_t id, size_t offset, uint32_t length) {
  const Segment segment = {reinterpret_cast<uint64_t>(memory_.data() + offset), key(), length};
  ReceiveRequest request;
  request.id = id;
  request.segments = {&segment, 1};
  const PostResult posted =
      shared_ != nullptr ? shared_->queue->PostReceive(request) : pair_->PostReceive(request);
  if (posted != PostResult::kOk) Give("PostReceive");
}

void TestEnd::OneSided(Opcode opcode, uint64_t id, size_t offset, uint32_t length, uint64_t remote,
                       Key remote_key, uint16_t flags) {
  const Segment segment = {reinterpret_cast<uint64_t>(memory_.data() + offset), key(), length};
  SendRequest request;
  request.id = id;
  request.opcode = opcode;
  request.flags = flags;
  request.segments = {&segment, 1};
  request.remote_address = remote;
  request.remote_key = remote_key;
  if (pair_->PostSend(request) != PostResult::kOk) Give("PostSend");
}

Completion TestEnd::Next(CompletionQueue& queue) {
  const Nanos end = Loop().Now() + kLimit;
  Completion completion;
  while (queue.Poll(&completion, 1) == 0) {
    if (Loop().Now() > end) Give("no completion");
    queue.Wait(Deadline::At(end), queue.wakes());
  }
  return completion;
}

void TestEnd::Await(const std::atomic<int>& count, int at_least) {
  const Nanos end = Loop().Now() + kLimit;
  while (count.load() < at_least) {
    if (Loop().Now() > end) Give("no event");
    sched_yield();
  }
}

TestListener::TestListener(Context& context, std::function<QueuePair&()> next, uint16_t port)
    : next_(std::move(next)), listener_(*context.Listen(port, this)) {}

void TestListener::OnRequest(std::unique_ptr<IncomingConnection> request) {
  if (!request->Accept(next_(), {}).ok()) Give("Accept");
}

void DialForTest(QueuePair& pair, uint16_t port) {
  ConnectOptions options;
  options.address = *Address::Parse("127.0.0.1");
  options.port = port;
  if (!pair.Connect(options).ok()) Give("Connect");
}

ChildProcess::ChildProcess(const std::function<int(ChildProcess&)>& body) {
  int down[2], up[2];
  if (pipe(down) != 0 || pipe(up) != 0) Give("pipe");
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(down[1]);
    close(up[0]);
    in_ = down[0];
    out_ = up[1];
    reaped_ = true;
    _exit(body(*this));
  }
  close(down[0]);
  close(up[1]);
  in_ = up[0];
  out_ = down[1];
}

ChildProcess::~ChildProcess() {
  if (!reaped_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(in_);
  close(out_);
}

void ChildProcess::Put(const void* data, size_t size) {
  if (write(out_, data, size) != static_cast<ssize_t>(size)) Give("pipe");
}

void ChildProcess::Get(void* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = read(in_, static_cast<char*>(data) + done, size - done);
    if (got <= 0) Give("the other process is gone");
    done += got;
  }
}

int ChildProcess::Wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  reaped_ = true;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void ChildProcess::Kill() {
  kill(pid_, SIGKILL);
  Wait();
}

}  // namespace viaduct::verbs::shm
