#include "tests/faults/siege.h"

#include <dat2/dat_ib_extensions.h>

#include <string>

#include "gtest/gtest.h"
#include "tests/faults/leftovers.h"

namespace viaduct::tests {
namespace {

constexpr uint64_t kOld = 1, kFresh = 2, kAttacked = 3;  // cookies of receives
constexpr char kGoodData[] = "good";
// Memory for an attacked endpoint's receives, followed by what the attacker may reach.
constexpr size_t kReceives = 2 * kAttackedReceive, kOpen = 2 * kAttackedReceive;
constexpr auto kEveryPrivilege = static_cast<DAT_MEM_PRIV_FLAGS>(
    DAT_MEM_PRIV_ALL_FLAG | static_cast<int>(DAT_IB_MEM_PRIV_REMOTE_ATOMIC));

struct Order {
  enum { kCheck, kAttack, kEnd } kind;
  Attack attack;
};

class Server {
 public:
  explicit Server(Peer& peer) : peer_(peer), memory_(side_, kReceives + kOpen, kEveryPrivilege) {
    sends_ = side_.NewEvd(DAT_EVD_DTO_FLAG, 2 * kAttackedSends);
    old_ = side_.NewEp();
    side_.PostReceive(old_, kOld);
    side_.Listen(Port(0));
    peer.Tell("listening");
    Accept(old_, kGoodData);
    NextConnection(side_.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, old_);
  }

  void Run() {
    Check();
    const Holdings before = HoldingsNow();
    peer_.Tell("done");
    DAT_RMR_TRIPLET open = memory_.Remote();
    open.virtual_address += kReceives;
    open.segment_length = kOpen;
    peer_.Send(open);
    for (;;) {
      const Order order = peer_.Receive<Order>();
      if (order.kind == Order::kEnd) break;
      if (order.kind == Order::kCheck) {
        Check();
      } else {
        Suffer(order.attack);
      }
      peer_.Tell("done");
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_TRUE(HoldsAtMost(before));
  }

 private:
  void Accept(DAT_EP_HANDLE ep, const std::string& data) {
    const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(side_.cr_evd);
    const std::vector<uint8_t> got = PrivateDataOf(ParametersOf(request));
    EXPECT_EQ(std::string(got.begin(), got.end()), data);
    Must(side_.TryAccept(request.cr_handle, ep));
  }
  void ExpectMessage(DAT_EP_HANDLE ep, uint64_t cookie) {
    const auto done = NextCompletion(side_.receive_evd);
    EXPECT_EQ(done.ep_handle, ep);
    EXPECT_EQ(done.user_cookie.as_64, cookie);
    EXPECT_EQ(done.status, DAT_DTO_SUCCESS);
  }

  void Check() {
    EXPECT_EQ(StateOf(old_), DAT_EP_STATE_CONNECTED);
    ExpectMessage(old_, kOld);
    side_.PostReceive(old_, kOld);
    const DAT_EP_HANDLE ep = side_.NewEp();
    side_.PostReceive(ep, kFresh);
    Accept(ep, kGoodData);
    NextConnection(side_.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
    ExpectMessage(ep, kFresh);
    NextConnection(side_.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
    Must(dat_ep_free(ep));
    EXPECT_TRUE(IsEmpty(side_.connect_evd));
  }

  void Suffer(const Attack& attack) {
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    Must(dat_ep_create(side_.ia, side_.pz, side_.receive_evd, sends_, side_.connect_evd, nullptr,
                       &ep));
    for (size_t i = 0; i < 2; ++i) {
      DAT_LMR_TRIPLET piece = memory_.Local(i * kAttackedReceive, kAttackedReceive);
      Must(dat_ep_post_recv(ep, 1, &piece, Cookie(kAttacked), DAT_COMPLETION_DEFAULT_FLAG));
    }
    Accept(ep, kAttackData);
    if (attack.message) {
      ExpectMessage(ep, kAttacked);
      EXPECT_EQ(memory_.bytes[0], 'm');
    }
    int sent = 0;
    while (attack.sends && sent < kAttackedSends && side_.TrySend(ep, kAttacked) == DAT_SUCCESS) {
      ++sent;
    }
    if (attack.reads) {
      DAT_LMR_TRIPLET into = memory_.Local(kAttackedReceive, kAttackedReceive);
      DAT_RMR_TRIPLET from = RemoteTriplet(4096, kAttackedReceive, 1);
      Must(dat_ep_post_rdma_read(ep, 1, &into, Cookie(kAttacked), &from,
                                 DAT_COMPLETION_DEFAULT_FLAG));
    }
    DAT_EVENT event = Next(side_.connect_evd);
    if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED) event = Next(side_.connect_evd);
    EXPECT_TRUE(
        event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
        event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
        (!attack.message && event.event_number == DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR))
        << std::hex << event.event_number;
    EXPECT_EQ(event.event_data.connect_event_data.ep_handle, ep);
    for (int left = attack.message ? 1 : 2; left > 0; --left) {
      const auto done = NextCompletion(side_.receive_evd);
      EXPECT_EQ(done.ep_handle, ep);
      EXPECT_TRUE(done.status != DAT_DTO_SUCCESS || attack.may_fill);
    }
    for (; sent > 0; --sent) EXPECT_EQ(NextCompletion(sends_).ep_handle, ep);
    if (attack.reads) {
      EXPECT_NE(NextCompletion(sends_).status, DAT_DTO_SUCCESS);
    }
    Must(dat_ep_free(ep));
    EXPECT_TRUE(IsEmpty(side_.connect_evd)) << "more than one end";
    EXPECT_TRUE(IsEmpty(sends_));
  }

  Peer& peer_;
  Side side_;
  Memory memory_;
  DAT_EVD_HANDLE sends_ = DAT_HANDLE_NULL;
  DAT_EP_HANDLE old_ = DAT_HANDLE_NULL;
};

}  // namespace

Besieger::Besieger(Peer& peer) : peer_(peer) {
  peer.Await("listening");
  old_ = Connect();
  UseBoth();
  AwaitDone();
  open_memory_ = peer.Receive<DAT_RMR_TRIPLET>();
}
void Besieger::Finish() { peer_.Send(Order{Order::kEnd, {}}); }

void Besieger::Check() {
  peer_.Send(Order{Order::kCheck, {}});
  UseBoth();
  AwaitDone();
}
void Besieger::Begin(const Attack& attack) { peer_.Send(Order{Order::kAttack, attack}); }
void Besieger::AwaitDone() { peer_.Await("done"); }

DAT_EP_HANDLE Besieger::Connect() {
  const DAT_EP_HANDLE ep = side_.NewEp();
  side_.Connect(ep, Port(0), kPatience, {'g', 'o', 'o', 'd'});
  NextConnection(side_.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
  return ep;
}
void Besieger::Send(DAT_EP_HANDLE ep) {
  Must(side_.TrySend(ep, 0));
  EXPECT_EQ(NextCompletion(side_.request_evd).status, DAT_DTO_SUCCESS);
}
void Besieger::UseBoth() {
  Send(old_);
  const DAT_EP_HANDLE ep = Connect();
  Send(ep);
  Must(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
  NextConnection(side_.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
  Must(dat_ep_free(ep));
}

void RunSiege(const std::function<void(Besieger&)>& body) {
  PairOptions options;
  options.seconds = 100;
  RunPair([](Peer& peer) { Server(peer).Run(); },
          [&body](Peer& peer) {
            Besieger besieger(peer);
            body(besieger);
            besieger.Finish();
          },
          options);
  if (HasOwnNetwork()) {
    EXPECT_TRUE(NetworkIsEmpty());
  }
}

}  // namespace viaduct::tests
