// A peer process that the test plays at its end of the socket, message by message.
#ifndef VIADUCT_VERBS_SOFT_SHM_TESTING_BARE_PEER_H_
#define VIADUCT_VERBS_SOFT_SHM_TESTING_BARE_PEER_H_

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/base/control_thread.h"
#include "verbs/base/fd.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/shm/arena.h"
#include "verbs/soft/shm/descriptor.h"
#include "verbs/soft/shm/host.h"
#include "verbs/soft/shm/link.h"
#include "verbs/soft/shm/message.h"
#include "verbs/soft/shm/peer.h"
#include "verbs/soft/shm/testing_node.h"

namespace viaduct::verbs::shm {

inline constexpr uint32_t kTheirs = kConnections / 2;  // a number that side 1 gives out
inline constexpr HelloBody kGreeting = {1, 0, 0};

inline RequestBody RequestFor(uint16_t port) {
  RequestBody body = {};
  body.from = body.to = ToWire(*Address::Parse("127.0.0.1"));
  body.port = port;
  return body;
}

// What the host takes for another process; the test is at the other end of its socket.
class BarePeer {
 public:
  explicit BarePeer(int side, pid_t pid = getpid()) : arena_(Arena::Create()) {
    int sockets[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
    theirs_ = Fd(sockets[1]);
    peer_ = std::make_shared<Peer>(Host::Get(loop_), loop_, side,
                                   OpenHighAs<Descriptor>([&] { return sockets[0]; }), pid, arena_);
    loop_.RunAndWait([&] {
      EXPECT_TRUE(side == 0 ? peer_->StartAsCreator() : peer_->StartAsAcceptor(kGreeting));
    });
    EXPECT_EQ(Next(), side == 0 ? MessageType::kHello : MessageType::kWelcome);
  }
  ~BarePeer() {
    loop_.RunAndWait([this] { peer_->Die(); });
  }

  ControlThread& loop() { return loop_; }
  Arena& arena() { return *arena_; }
  Peer& peer() { return *peer_; }

  // Makes the host request a connection, for `pair` if not null, and receives the request.
  std::shared_ptr<ShmLink> BeAsked(SoftQueuePair* pair = nullptr) {
    std::shared_ptr<ShmLink> link = ShmLink::Make(loop_);
    link->wanted = std::make_unique<ShmLink::Wanted>();
    link->wanted->body = RequestFor(1);
    if (pair != nullptr) {
      link->Hold(*pair);
      EXPECT_TRUE(pair->Attach(*link).ok());
    }
    loop_.RunAndWait([&] { EXPECT_TRUE(peer_->Request(link, {})); });
    EXPECT_EQ(Next(), MessageType::kRequest);
    return link;
  }

  void HangUp() { theirs_.Reset(); }
  // What the host says from now on meets EPIPE, but it sees no hang-up.
  void StopReading() { shutdown(theirs_.get(), SHUT_RD); }
  // False: the host has hung up.
  bool Say(const std::string& message, absl::Span<const int> fds = {}) {
    for (;;) {
      const SocketResult sent = SendMessage(theirs_.get(), message, fds);
      if (sent != SocketResult::kAgain) return sent == SocketResult::kDone;
      loop_.Drain();  // the host reads
    }
  }
  // The type of the next message; 0 if the host has hung up.
  MessageType Next() {
    pollfd entry = {theirs_.get(), POLLIN, 0};
    EXPECT_EQ(poll(&entry, 1, 20'000), 1) << "nothing comes";
    Message message;
    return ReceiveMessage(theirs_.get(), &message) == SocketResult::kDone ? message.type
                                                                          : MessageType{};
  }

 private:
  ControlThread& loop_ = **ControlThread::Get();
  const std::shared_ptr<Arena> arena_;
  Fd theirs_;
  std::shared_ptr<Peer> peer_;
};

// A request to a port where nobody listens.
inline std::string RequestInVain(uint32_t connection) {
  return BuildMessage(MessageType::kRequest, connection, RequestFor(1));
}

// A connection that the bare peer has requested and this process has accepted.
class Accepted {
 public:
  explicit Accepted(uint32_t reads_in = 0)
      : context_(OpenForTest()),
        end_(*context_),
        listener_(*context_, [this]() -> QueuePair& { return end_.pair(); }),
        bare_(1) {
    EXPECT_TRUE(bare_.arena().PayConnection(0));
    RequestBody request = RequestFor(listener_.port());
    request.reads_in = reads_in;
    bare_.Say(BuildMessage(MessageType::kRequest, 0, request));
    EXPECT_EQ(bare_.Next(), MessageType::kAccept);
    bare_.Say(BuildMessage(MessageType::kEstablished, 0, {}, {}));
    end_.Await(end_.connected);
  }

  TestEnd& end() { return end_; }
  BarePeer& bare() { return bare_; }
  // Puts a one-byte message into the first slot, and notifies nobody.
  void PutMessage() {
    bare_.arena().connection(0).data[1][0].word.store(
        Word::Pack(Op::kSend, kLast, 1, 1, Parity<kSlots>(0)), std::memory_order_release);
  }

 private:
  const std::unique_ptr<Context> context_;
  TestEnd end_;
  TestListener listener_;
  BarePeer bare_;
};

// A connection that this process has requested and the bare peer has accepted.
class Answered {
 public:
  explicit Answered(uint32_t reads_in)
      : context_(OpenForTest()),
        end_(*context_),
        bare_(0),
        link_(bare_.BeAsked(static_cast<SoftQueuePair*>(&end_.pair()))) {
    bare_.Say(BuildMessage(MessageType::kWelcome, 0, kGreeting));
    bare_.Say(BuildMessage(MessageType::kAccept, link_->id, AcceptBody{reads_in, 1}));
    EXPECT_EQ(bare_.Next(), MessageType::kEstablished);
    end_.Await(end_.connected);
  }

  TestEnd& end() { return end_; }
  BarePeer& bare() { return bare_; }
  uint32_t id() const { return link_->id; }

 private:
  const std::unique_ptr<Context> context_;
  TestEnd end_;
  BarePeer bare_;
  const std::shared_ptr<ShmLink> link_;
};

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_TESTING_BARE_PEER_H_
