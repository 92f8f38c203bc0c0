// Requests that a lingering name holds, when a point of the other kind takes the name over.
#include <poll.h>

#include "dat/core/connection_request.h"
#include "dat/core/endpoint.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/protection_zone.h"
#include "dat/core/service_point.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"

namespace viaduct::core {
namespace {

constexpr verbs::Nanos kSecond = 1'000'000'000;

struct Requester {
  Ref<Endpoint> endpoint;
  Ref<EventDispatcher> events;
};

TEST(HeldRequests, AreAnsweredWhenTheNextPointIsFull) {
  const verbs::Address here = *verbs::Address::Parse("127.0.0.1");
  const ServiceName name = ServiceName::FromQualifier(0x1234567890);
  Ref<InterfaceAdapter> adapter;
  ASSERT_TRUE(InterfaceAdapter::Open(here, &adapter).ok());
  Ref<ProtectionZone> zone;
  ASSERT_TRUE(ProtectionZone::Create(*adapter, false, &zone).ok());
  Ref<EventDispatcher> requests;
  ASSERT_TRUE(EventDispatcher::Create(*adapter, 1, kRequestStream, false, &requests).ok());

  // VipConnectWait with a time-out of 0: the name lingers for 300 ms.
  ServicePoint::Options look;
  look.name = name;
  look.shared = look.one_shot = true;
  look.since = adapter->executor().Now();
  look.deadline = adapter->DeadlineAfter(0);
  Ref<ServicePoint> point;
  ASSERT_TRUE(ServicePoint::CreatePublic(*adapter, look, *requests, &point).ok());
  EXPECT_TRUE(point->Free().ok());

  Requester requesters[2];
  for (Requester& r : requesters) {
    ASSERT_TRUE(EventDispatcher::Create(*adapter, 8, kConnectionStream, false, &r.events).ok());
    Endpoint::Parts parts;
    parts.zone = zone;
    parts.connect = r.events;
    ASSERT_TRUE(Endpoint::Create(*adapter, parts, EndpointAttributes(), &r.endpoint).ok());
    ConnectParameters parameters;
    parameters.target = {here, name};
    parameters.deadline = adapter->DeadlineAfter(4 * kSecond);
    ASSERT_TRUE(r.endpoint->Connect(parameters).ok());
  }
  poll(nullptr, 0, 100);  // both are held

  // dat_psp_create with a dispatcher for one.
  ServicePoint::Options served;
  served.name = name;
  ASSERT_TRUE(ServicePoint::CreatePublic(*adapter, served, *requests, &point).ok());
  EXPECT_EQ(requests->Queued(), 1u);
  EXPECT_TRUE(requesters[0].events->Queued() + requesters[1].events->Queued() <= 1);
  int answered = 0;
  Event event;
  for (int i = 0; i < 100 && answered == 0; ++i) {
    poll(nullptr, 0, 10);
    for (Requester& r : requesters) {
      if (!r.events->Dequeue(&event).ok()) continue;
      ++answered;
      EXPECT_EQ(event.type, EventType::kNonPeerRejected);
    }
  }
  EXPECT_EQ(answered, 1) << "the second one is neither offered nor told that the backlog is full";
  // Nor when there is room for it.
  if (answered == 0) {
    ASSERT_TRUE(requests->Dequeue(&event).ok());
    poll(nullptr, 0, 1000);
    EXPECT_EQ(requests->Queued(), 1u) << "nor offered again";
  }
  EXPECT_TRUE(adapter->Close(InterfaceAdapter::CloseMode::kAbrupt).ok());
}

}  // namespace
}  // namespace viaduct::core
