#include "tests/sim/engine.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "dat/core/handle_table.h"

namespace viaduct::core {
namespace {

const char* StatusWord(verbs::Status status) {
  switch (status) {
    case verbs::Status::kSuccess:
      return "ok";
    case verbs::Status::kFlushed:
      return "flushed";
    case verbs::Status::kLocalLength:
      return "local length";
    case verbs::Status::kLocalProtection:
      return "local protection";
    case verbs::Status::kRemoteAccess:
      return "remote access";
    case verbs::Status::kRemoteOperation:
      return "remote operation";
    case verbs::Status::kReceiverNotReady:
      return "receiver not ready";
    case verbs::Status::kTransport:
      return "transport";
  }
  return "?";
}

const char* TypeWord(EventType type) {
  switch (type) {
    case EventType::kCompletion:
      return "completion";
    case EventType::kConnectionRequest:
      return "request";
    case EventType::kEstablished:
      return "established";
    case EventType::kPeerRejected:
      return "peer rejected";
    case EventType::kNonPeerRejected:
      return "non-peer rejected";
    case EventType::kAcceptCompletionError:
      return "accept completion error";
    case EventType::kDisconnected:
      return "disconnected";
    case EventType::kBroken:
      return "broken";
    case EventType::kTimedOut:
      return "timed out";
    case EventType::kUnreachable:
      return "unreachable";
    case EventType::kNoResources:
      return "no resources";
    case EventType::kSoftware:
      return "software";
    case EventType::kAsyncEndpointBroken:
      return "asynchronous error";
    case EventType::kAsyncHighWatermark:
      return "high watermark";
    case EventType::kAsyncOverflow:
      return "overflow";
    case EventType::kAsyncSharedReceivesLow:
      return "shared receives low";
    case EventType::kAsyncAdapterFailed:
      return "adapter failed";
  }
  return "?";
}

}  // namespace

absl::Span<const uint8_t> Bytes(const std::string& text) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

std::string Text(absl::Span<const uint8_t> bytes) {
  return std::string(bytes.begin(), bytes.end());
}

std::string Word(const Event& event) {
  if (event.type == EventType::kCompletion) {
    return absl::StrCat(event.cookie, " ", StatusWord(event.status));
  }
  std::string word = TypeWord(event.type);
  if (event.private_data_size != 0) {
    absl::StrAppend(
        &word, " ",
        absl::string_view(static_cast<const char*>(event.private_data), event.private_data_size));
  }
  return word;
}

// ---------------------------------------------------------------------------------------- Node

Node::Node(verbs::Simulation& simulation) {
  auto manager =
      std::make_shared<ConnectionManager>(simulation.NewNode(), ConnectionManager::Ports());
  remains_ = manager;
  EXPECT_TRUE(InterfaceAdapter::Open(std::move(manager), &adapter_).ok());
  EXPECT_TRUE(ProtectionZone::Create(*adapter_, false, &zone_).ok());
  requests_ = MakeDispatcher();
}

Node::~Node() {
  (void)adapter_->Close(InterfaceAdapter::CloseMode::kAbrupt);
  zone_ = {};
  requests_ = {};
  adapter_ = {};
  EXPECT_TRUE(remains_.expired()) << "something still refers to the adapter";
}

Ref<EventDispatcher> Node::MakeDispatcher(uint32_t length, bool eager) {
  Ref<EventDispatcher> made;
  EXPECT_TRUE(EventDispatcher::Create(*adapter_, length, kAllStreams, eager, &made).ok());
  return made;
}

Ref<ServicePoint> Node::Listen(const ServicePoint::Options& options) {
  Ref<ServicePoint> point;
  EXPECT_TRUE(ServicePoint::CreatePublic(*adapter_, options, *requests_, &point).ok());
  return point;
}

Ref<ServicePoint> Node::Listen(const ServiceName& name) {
  ServicePoint::Options options;
  options.name = name;
  return Listen(options);
}

Ref<ConnectionRequest> Node::NextRequest(Event* event) {
  Event taken;
  if (!requests_->Dequeue(&taken).ok()) return {};
  if (event != nullptr) *event = taken;
  return ShareObject<ConnectionRequest>(taken.subject);
}

// ----------------------------------------------------------------------------------------- End

End::End(Node& node, const EndpointAttributes& attributes)
    : node_(node), events_(node.MakeDispatcher()) {
  EXPECT_TRUE(MemoryRegion::Create(node.adapter(), node.zone(), memory_.data(), memory_.size(),
                                   verbs::kLocalRead | verbs::kLocalWrite, &region_)
                  .ok());
  EXPECT_TRUE(Endpoint::Create(node.adapter(), Parts(), attributes, &endpoint_).ok());
}

End::~End() {
  endpoint_->Destroy();
  EXPECT_EQ(events_->kept_room(), 0u) << "for events that do not come";
  region_->Destroy();
  events_->Destroy();
}

Endpoint::Parts End::Parts() const {
  Endpoint::Parts parts;
  parts.zone = Ref<ProtectionZone>::Share(&node_.zone());
  parts.receive = parts.request = parts.connect = events_;
  return parts;
}

Error End::Connect(Node& to, const ServiceName& name, const std::string& data,
                   verbs::Deadline deadline, verbs::Nanos grace) {
  ConnectParameters parameters;
  parameters.target.address = to.address();
  parameters.target.name = name;
  parameters.deadline = deadline;
  parameters.grace = grace;
  parameters.private_data = Bytes(data);
  return endpoint_->Connect(parameters);
}

Error End::ConnectVipl(Node& to, const ServiceName& name, verbs::Nanos grace,
                       verbs::Deadline deadline) {
  ConnectionHeader header;
  header.kind = HeaderKind::kViplRequest;
  header.remote = name;
  header.local = *ServiceName::FromBytes("client", 6);
  header.profile = endpoint_->profile();
  ConnectParameters parameters;
  parameters.target.address = to.address();
  parameters.target.name = name;
  parameters.deadline = deadline;
  parameters.header = &header;
  parameters.grace = grace;
  return endpoint_->Connect(parameters);
}

Error End::Send(uint64_t id, uint16_t flags) {
  const verbs::Segment segment = {reinterpret_cast<uint64_t>(memory_.data()), region_->key(), 8};
  verbs::SendRequest request;
  request.id = id;
  request.flags = flags;
  request.segments = absl::MakeConstSpan(&segment, 1);
  return endpoint_->PostSend(request, segment.length);
}

Error End::Receive(uint64_t id) {
  const verbs::Segment segment = {reinterpret_cast<uint64_t>(memory_.data()), region_->key(), 64};
  verbs::ReceiveRequest request;
  request.id = id;
  request.segments = absl::MakeConstSpan(&segment, 1);
  return endpoint_->PostReceive(request);
}

Words End::Listen() {
  Words words;
  Event event;
  while (events_->Dequeue(&event).ok()) words.push_back(Word(event));
  return words;
}

// ---------------------------------------------------------------------------------- EngineTest

EngineTest::EngineTest(const verbs::SimOptions& options)
    : handles_(HandleTable::Size()),
      simulation_(options),
      a_(std::make_unique<Node>(simulation_)),
      b_(std::make_unique<Node>(simulation_)) {}

EngineTest::~EngineTest() {
  a_.reset();
  b_.reset();
  EXPECT_EQ(HandleTable::Size(), handles_) << "handles that nobody freed";
}

void EngineTest::RunFor(verbs::Nanos duration) {
  executor().RunUntil([] { return false; }, In(duration));
}

void EngineTest::RunUntil(absl::FunctionRef<bool()> done) {
  ASSERT_TRUE(executor().RunUntil(done, In(10 * kSecond))) << "it never came";
}

Ref<ConnectionRequest> EngineTest::AwaitRequest(Node& node) {
  RunUntil([&] { return node.requests().Queued() != 0; });
  return node.NextRequest();
}

void EngineTest::Join(End& active, Node& to, End& passive, const ServiceName& name) {
  const Ref<ServicePoint> point = to.Listen(name);
  ASSERT_TRUE(active.Connect(to, name).ok());
  const Ref<ConnectionRequest> request = AwaitRequest(to);
  ASSERT_TRUE(request);
  ASSERT_TRUE(request->Accept(&*passive, {}).ok());
  ASSERT_TRUE(point->Free().ok());
  RunUntil([&] { return active.Heard() && passive.Heard(); });
  ASSERT_EQ(active.Listen(), Words{"established"});
  ASSERT_EQ(passive.Listen(), Words{"established"});
}

std::vector<verbs::Nanos> EngineTest::RequestTimes(int from) {
  std::vector<verbs::Nanos> times;
  for (const std::string& line : simulation_.trace()) {
    if (!absl::StrContains(line, absl::StrCat(" ", from, ">")) ||
        !absl::StrContains(line, " request ")) {
      continue;
    }
    times.push_back(std::atoll(line.c_str()) / kMilli);
  }
  return times;
}

}  // namespace viaduct::core
