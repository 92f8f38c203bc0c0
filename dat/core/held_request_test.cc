// Requests that a lingering name holds, when a point of the other kind takes the name over.
#include <poll.h>

#include "dat/core/connection_request.h"
#include "dat/core/endpoint.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/handle_table.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/protection_zone.h"
#include "dat/core/service_point.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"

namespace viaduct::core {
namespace {

constexpr verbs::Nanos kSecond = 1'000'000'000;
constexpr int kTries = 20;

struct Requester {
  Ref<Endpoint> endpoint;
  Ref<EventDispatcher> events;
};

class HeldRequests : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(InterfaceAdapter::Open(here_, &adapter_).ok());
    ASSERT_TRUE(ProtectionZone::Create(*adapter_, false, &zone_).ok());
    ASSERT_TRUE(EventDispatcher::Create(*adapter_, 1, kRequestStream, false, &requests_).ok());
  }
  void TearDown() override {
    EXPECT_TRUE(adapter_->Close(InterfaceAdapter::CloseMode::kAbrupt).ok());
  }

  // Does what VipConnectWait does with a time-out of 0: the name then lingers for 300 ms.
  void Look(const ServiceName& name) {
    ServicePoint::Options look;
    look.name = name;
    look.shared = look.one_shot = true;
    look.since = adapter_->executor().Now();
    look.deadline = adapter_->DeadlineAfter(0);
    Ref<ServicePoint> point;
    ASSERT_TRUE(ServicePoint::CreatePublic(*adapter_, look, *requests_, &point).ok());
    EXPECT_TRUE(point->Free().ok());
  }
  void Ask(const ServiceName& name, Requester* requester) {
    ASSERT_TRUE(
        EventDispatcher::Create(*adapter_, 8, kConnectionStream, false, &requester->events).ok());
    Endpoint::Parts parts;
    parts.zone = zone_;
    parts.connect = requester->events;
    ASSERT_TRUE(
        Endpoint::Create(*adapter_, parts, EndpointAttributes(), &requester->endpoint).ok());
    ConnectParameters parameters;
    parameters.target = {here_, name};
    parameters.deadline = adapter_->DeadlineAfter(60 * kSecond);
    ASSERT_TRUE(requester->endpoint->Connect(parameters).ok());
  }

  const verbs::Address here_ = *verbs::Address::Parse("127.0.0.1");
  Ref<InterfaceAdapter> adapter_;
  Ref<ProtectionZone> zone_;
  Ref<EventDispatcher> requests_;  // has room for one
};

// dat_psp_create takes the name over: the first request fills its backlog, the second is refused.
TEST_F(HeldRequests, AreAnsweredWhenTheNextPointIsFull) {
  bool held = false;
  for (uint64_t i = 0; !held && i < kTries; ++i) {
    const ServiceName name = ServiceName::FromQualifier(0x1234567890 + i);
    Requester requesters[2];
    ASSERT_NO_FATAL_FAILURE(Look(name));
    for (Requester& requester : requesters) ASSERT_NO_FATAL_FAILURE(Ask(name, &requester));
    poll(nullptr, 0, 50);  // time to be held, which nothing reports
    ServicePoint::Options served;
    served.name = name;
    Ref<ServicePoint> point;
    ASSERT_TRUE(ServicePoint::CreatePublic(*adapter_, served, *requests_, &point).ok());
    // On a machine that stood still, the name may linger no more, or the requests may be late.
    held = requests_->Queued() == 1;
    if (held) {
      Event event;
      const verbs::Deadline patience = adapter_->DeadlineAfter(10 * kSecond);
      bool answered = false;
      while (!answered && !patience.Passed(adapter_->executor())) {
        for (Requester& r : requesters) answered |= r.events->Dequeue(&event).ok();
        poll(nullptr, 0, 1);
      }
      ASSERT_TRUE(answered) << "neither offered nor told that the backlog is full";
      EXPECT_EQ(event.type, EventType::kNonPeerRejected);
    }
    EXPECT_TRUE(point->Free().ok());
    for (Requester& requester : requesters) EXPECT_TRUE(requester.endpoint->Free().ok());
    while (requests_->Queued() != 0) {
      Event event;
      if (!requests_->Dequeue(&event).ok()) break;
      if (const auto request = ShareObject<ConnectionRequest>(event.subject)) request->Destroy();
    }
  }
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace viaduct::core
