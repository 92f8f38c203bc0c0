// A hostile process on the other side of shared memory: it knows the formats and breaks them. It
// loses its own connection; the server goes on.
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/faults/siege.h"
#include "verbs/soft/shm/arena_format.h"
#include "verbs/soft/shm/message_format.h"

namespace viaduct::tests {
namespace {

using namespace verbs::shm;  // NOLINT: only the formats

constexpr uint32_t kConnection = 0;  // the first: the creator gives out the lower numbers
constexpr int kCreator = 0, kServer = 1;

template <typename T>
std::string Bytes(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

class OwnFd {
 public:
  explicit OwnFd(int fd) : fd_(fd) { EXPECT_GE(fd, 0) << errno; }
  ~OwnFd() { close(fd_); }
  OwnFd(const OwnFd&) = delete;
  OwnFd& operator=(const OwnFd&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

struct ArenaOptions {
  size_t bytes = kArenaBytes;
  int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  ArenaHeader header = {kArenaMagic, kArenaBytes};
};

int NewArena(const ArenaOptions& options = {}) {
  const int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(ftruncate(fd, static_cast<off_t>(options.bytes)), 0);
  (void)!pwrite(fd, &options.header, sizeof options.header, 0);
  if (options.seals != 0) {
    EXPECT_EQ(fcntl(fd, F_ADD_SEALS, options.seals), 0);
  }
  return fd;
}

std::string MessageOf(MessageType type, uint32_t connection, const std::string& body) {
  return Bytes(MessageHeader{kMessageMagic, type, 0, connection,
                             static_cast<uint32_t>(body.size())}) +
         body;
}
std::string GoodHello() { return MessageOf(MessageType::kHello, 0, Bytes(HelloBody{42, 0, 0})); }

RequestBody GoodRequest() {
  RequestBody body = {};
  body.from.family = AF_INET;
  body.from.bytes[0] = 127;
  body.from.bytes[3] = 1;
  body.to = body.from;
  body.port = Port(0);
  body.from_port = 40000;
  body.reads_in = body.reads_out = 4;
  return body;
}

class Hostile {
 public:
  Hostile() : socket_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    const std::string name = "viaduct-" + std::to_string(geteuid()) + "-" + std::to_string(Port(0));
    sockaddr_un to = {};
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path + 1, name.data(), name.size());
    const size_t length = offsetof(sockaddr_un, sun_path) + 1 + name.size();
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&to), static_cast<socklen_t>(length)), 0)
        << errno;
    const timeval limit{20, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Hostile() {
    if (arena_ != nullptr) munmap(arena_, kArenaBytes);
    close(socket_);
  }
  Hostile(const Hostile&) = delete;
  Hostile& operator=(const Hostile&) = delete;

  // The server may have closed already.
  void Send(const std::string& bytes, const std::vector<int>& fds = {}) {
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
    iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
    msghdr header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (!fds.empty()) {
      header.msg_control = control;
      header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
      std::memcpy(CMSG_DATA(rights), fds.data(), fds.size() * sizeof(int));
    }
    (void)!sendmsg(socket_, &header, MSG_NOSIGNAL);
  }

  // Hello, Welcome, Request, Accept, Established, and the message "m".
  void Connect() {
    OwnFd arena(NewArena());
    Map(arena.get());
    Send(GoodHello(), {arena.get()});
    ASSERT_EQ(Next(), MessageType::kWelcome);
    ConnectAgain(kConnection);
  }
  // Another connection of the same pair of processes.
  void ConnectAgain(uint32_t connection) {
    connection_ = connection;
    position_ = 0;
    Send(MessageOf(MessageType::kRequest, connection_, Bytes(GoodRequest()) + kAttackData));
    MessageType answer;
    do {  // the previous connection may still send something
      answer = Next();
    } while (answer == MessageType::kRing || answer == MessageType::kReleased);
    ASSERT_EQ(answer, MessageType::kAccept);
    Send(MessageOf(MessageType::kEstablished, connection_, ""));
    Put(Op::kSend, kLast | kAcknowledge, 1, 1, "m");
    Ring();
    AwaitConsumed(1);
  }

  // The type of the next message; 0 when the server has hung up.
  MessageType Next() {
    char bytes[kMaxMessage];
    const ssize_t got = recv(socket_, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EAGAIN) {
      ADD_FAILURE() << "the server does nothing";
    }
    if (got < static_cast<ssize_t>(sizeof(MessageHeader))) return MessageType{};
    MessageHeader head;
    std::memcpy(&head, bytes, sizeof head);
    if (head.type == MessageType::kAccept) {
      std::memcpy(&accepted_, bytes + sizeof head, sizeof accepted_);
    }
    return head.type;
  }
  // Waits until the server ends the connection (or everything) by itself.
  void AwaitEnd() {
    MessageType type;
    do {
      type = Next();
    } while (type != MessageType::kClose && type != MessageType{});
  }
  void AwaitHangUp() {
    while (Next() != MessageType{}) {
    }
  }

  // ------------------------------------------------------------------------------- the arena
  unsigned char* arena() { return arena_; }
  DirectionBlock& direction(int side) {
    return reinterpret_cast<DirectionBlock*>(arena_ + kDirectionOffset)[side];
  }
  ConnectionBlock& block() {
    return reinterpret_cast<ConnectionBlock*>(arena_ + kConnectionOffset)[connection_];
  }
  // Wait until the server has filled the n-th slot of either ring in its first lap.
  Word AwaitReply(uint32_t n) { return AwaitWord(block().reply[kCreator][n]); }
  void AwaitSlot(uint32_t n) { AwaitWord(block().data[kCreator][n]); }
  // Puts the first answer to the server.
  void Answer(Op op, uint8_t flags, uint32_t bytes) {
    block().reply[kServer][0].word.store(Word::Pack(op, flags, 1, bytes, Parity<kReplySlots>(0)),
                                         std::memory_order_release);
  }
  // How many reads the server allowed.
  uint32_t allowed_reads() const { return accepted_.reads_in; }
  bool HasRoom() { return position_ - block().credit[kServer].head.load() < kSlots; }
  // The server frees slots of a full ring.
  void AwaitRoom() {
    Ring();
    const uint64_t end = NowMicroseconds() + kPatience;
    while (!HasRoom() && NowMicroseconds() < end) poll(nullptr, 0, 1);
    ASSERT_TRUE(HasRoom());
  }
  // Waits until the server has consumed so many slots since the beginning.
  void AwaitConsumed(uint64_t slots) {
    const std::atomic<uint64_t>& head = block().credit[kServer].head;
    const uint64_t end = NowMicroseconds() + kPatience;
    while (head.load() < slots && NowMicroseconds() < end) poll(nullptr, 0, 1);
    ASSERT_GE(head.load(), slots) << "what was sent is not consumed";
  }
  // The next slots of the ring to the server.
  void Put(Op op, uint8_t flags, uint32_t slots, uint32_t bytes, const std::string& body = "") {
    Slot& slot = block().data[kServer][position_ % kSlots];
    std::memcpy(slot.body, body.data(), body.size());
    slot.word.store(Word::Pack(op, flags, slots, bytes, Parity<kSlots>(position_)),
                    std::memory_order_release);
    position_ += slots;
  }
  // Signals that something came on the connection, and wakes up whoever waits.
  void Ring() {
    DirectionBlock& theirs = direction(kServer);
    theirs.leaf[connection_ / 64].fetch_or(uint64_t{1} << (connection_ % 64));
    theirs.summary.fetch_or(uint64_t{1} << (connection_ / 64));
    theirs.bell.exchange(kBellOff);
    syscall(SYS_futex, &theirs.bell, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
    Send(MessageOf(MessageType::kRing, 0, ""));
  }

 private:
  static Word AwaitWord(const Slot& slot) {
    const uint64_t end = NowMicroseconds() + kPatience;
    while ((slot.word.load() & 1) == 0 && NowMicroseconds() < end) poll(nullptr, 0, 1);
    EXPECT_EQ(slot.word.load() & 1, 1u) << "the server hangs";
    return Word::Unpack(slot.word.load());
  }
  void Map(int fd) {
    void* base = mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ASSERT_NE(base, MAP_FAILED);
    arena_ = static_cast<unsigned char*>(base);
  }

  const int socket_;
  unsigned char* arena_ = nullptr;
  uint32_t connection_ = kConnection;
  uint64_t position_ = 0;
  AcceptBody accepted_ = {};
};

// ------------------------------------------------------------------------------- the handshake

void RefusedHello(Besieger& besieger, const char* what, const std::string& bytes,
                  const std::vector<int>& fds) {
  SCOPED_TRACE(what);
  {
    Hostile hostile;
    hostile.Send(bytes, fds);
    hostile.AwaitHangUp();
  }
  besieger.Check();
}

TEST(HostileHandshake, AnythingButAGoodHelloIsRefused) {
  RunSiege([](Besieger& besieger) {
    OwnFd arena(NewArena());
    const std::vector<int> good = {arena.get()};
    const std::string hello = GoodHello();
    {
      Hostile says_nothing;
      besieger.Check();
    }
    RefusedHello(besieger, "text", "GET / HTTP/1.1\r\n\r\n", {});
    RefusedHello(besieger, "one byte", "x", good);
    RefusedHello(besieger, "cut in the header", hello.substr(0, 15), good);
    RefusedHello(besieger, "cut in the body", hello.substr(0, hello.size() - 1), good);
    RefusedHello(besieger, "too long", hello + std::string(5000, 'x'), good);
    RefusedHello(besieger, "wrong magic", "X" + hello.substr(1), good);
    MessageHeader lies = {kMessageMagic, MessageType::kHello, 0, 0, 0xffffffff};
    RefusedHello(besieger, "wrong length", Bytes(lies) + hello.substr(sizeof lies), good);
    RefusedHello(besieger, "no body", MessageOf(MessageType::kHello, 0, ""), good);
    for (uint16_t type : {0, 2, 3, 4, 8, 9, 10, 11, 12, 14, 15, 65535}) {
      RefusedHello(besieger, "another type first",
                   MessageOf(static_cast<MessageType>(type), 0, hello.substr(16)), good);
    }
    // Questions about a request to hand off: nobody takes one.
    const std::string port = Bytes(RedirectBody{Port(0), 0});
    for (const std::string& ask : {std::string(), port.substr(0, 3), port, port + "note",
                                   port + std::string(24, 0), port + std::string(500, 'x')}) {
      RefusedHello(besieger, "a question", MessageOf(MessageType::kAsk, 0, ask), good);
    }
    RefusedHello(besieger, "no descriptor", hello, {});
    RefusedHello(besieger, "two descriptors", hello, {arena.get(), arena.get()});
  });
}

TEST(HostileHandshake, WhatIsNoArenaIsRefused) {
  RunSiege([](Besieger& besieger) {
    const auto refused = [&](const char* what, int fd) {
      OwnFd arena(fd);
      RefusedHello(besieger, what, GoodHello(), {arena.get()});
    };
    constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    refused("no memory", open("/dev/null", O_RDWR | O_CLOEXEC));
    refused("a folder", open("/", O_RDONLY | O_CLOEXEC));
    refused("an eventfd", eventfd(0, EFD_CLOEXEC));
    refused("no seals", NewArena({.seals = 0}));
    refused("may shrink", NewArena({.seals = F_SEAL_GROW | F_SEAL_SEAL}));
    refused("may grow", NewArena({.seals = F_SEAL_SHRINK | F_SEAL_SEAL}));
    refused("may be sealed further", NewArena({.seals = F_SEAL_SHRINK | F_SEAL_GROW}));
    refused("not writable", NewArena({.seals = kSeals | F_SEAL_WRITE}));
    refused("empty", NewArena({.bytes = 0}));
    refused("a page short", NewArena({.bytes = kArenaBytes - 4096}));
    refused("a byte long", NewArena({.bytes = kArenaBytes + 1}));
    refused("wrong magic", NewArena({.header = {kArenaMagic ^ 1, kArenaBytes}}));
    refused("wrong size inside", NewArena({.header = {kArenaMagic, kArenaBytes - 1}}));
  });
}

// One process, pair after pair: each costs the server descriptors and address space.
TEST(HostileHandshake, ManyPairs) {
  RunSiege([](Besieger& besieger) {
    constexpr int kTried = 100, kAllowed = 32;
    {
      OwnFd arena(NewArena());
      std::vector<std::unique_ptr<Hostile>> pairs;
      int welcome = 0;
      for (int i = 0; i < kTried; ++i) {
        pairs.push_back(std::make_unique<Hostile>());
        pairs.back()->Send(GoodHello(), {arena.get()});
        if (pairs.back()->Next() == MessageType::kWelcome) ++welcome;
      }
      EXPECT_GT(welcome, 0);
      EXPECT_LE(welcome, kAllowed);
      besieger.Check();
    }
    besieger.Check();
  });
}

// ------------------------------------------------------------------------------------- the socket

TEST(HostileSocket, MessagesAfterTheHandshake) {
  RunSiege([](Besieger& besieger) {
    const auto dies = [&](const char* what, const std::string& bytes,
                          const std::vector<int>& fds = {}) {
      SCOPED_TRACE(what);
      besieger.Begin({});
      {
        Hostile hostile;
        hostile.Connect();
        hostile.Send(bytes, fds);
        hostile.AwaitHangUp();
      }
      besieger.AwaitDone();
      besieger.Check();
    };
    const std::string request = Bytes(GoodRequest());
    OwnFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
    dies("text", "GET / HTTP/1.1\r\n\r\n");
    dies("a second hello", GoodHello());
    dies("a welcome", MessageOf(MessageType::kWelcome, 0, std::string(16, 0)));
    dies("unknown type", MessageOf(MessageType{77}, 0, ""));
    dies("a number that is the server's", MessageOf(MessageType::kRequest, 2048, request));
    dies("a number beyond all", MessageOf(MessageType::kRequest, kConnections, request));
    dies("a huge number", MessageOf(MessageType::kClose, 0xffffffff, std::string(24, 0)));
    dies("the number in use", MessageOf(MessageType::kRequest, kConnection, request));
    dies("half a request",
         MessageOf(MessageType::kRequest, 1, request.substr(0, request.size() - 1)));
    dies("too much private data",
         MessageOf(MessageType::kRequest, 1, request + std::string(kMaxPrivateData + 1, 'x')));
    for (WireAddress RequestBody::*address : {&RequestBody::from, &RequestBody::to}) {
      RequestBody strange = GoodRequest();
      (strange.*address).family = AF_UNIX;
      dies("no such family", MessageOf(MessageType::kRequest, 1, Bytes(strange)));
    }
    RequestBody other = GoodRequest();
    for (uint32_t note : {1u, 5u, static_cast<uint32_t>(kMaxNoteBytes) + 1, 0xffffffffu}) {
      other.note = note;
      dies(
          "a note that is not there",
          MessageOf(MessageType::kRequest, 1, Bytes(other) + std::string(note > 5 ? 200 : 0, 'x')));
    }
    const std::string elsewhere = Bytes(RedirectBody{Port(1), 0});
    dies("a redirection of its own request",
         MessageOf(MessageType::kRedirect, kConnection, elsewhere));
    dies("a redirection of nothing", MessageOf(MessageType::kRedirect, 9, elsewhere));
    dies("half a redirection", MessageOf(MessageType::kRedirect, kConnection, "x"));
    dies("a question in the middle", MessageOf(MessageType::kAsk, 0, elsewhere));
    dies("an answer to no question", MessageOf(MessageType::kYes, 0, ""));
    dies("an accept of nothing", MessageOf(MessageType::kAccept, 5, std::string(8, 0)));
    dies("an accept of its own request",
         MessageOf(MessageType::kAccept, kConnection, std::string(8, 0)));
    for (MessageType type : {MessageType::kReject, MessageType::kRefuse, MessageType::kNotHere,
                             MessageType::kEstablished, MessageType::kReleased}) {
      dies("an answer to nothing", MessageOf(type, kConnection, ""));
      dies("an answer to nothing at all", MessageOf(type, 9, ""));
    }
    dies("half a close", MessageOf(MessageType::kClose, kConnection, std::string(23, 0)));
    dies("a descriptor", MessageOf(MessageType::kClose, 9, std::string(24, 0)), {null.get()});
  });
}

// A server thread that rings the peer must not block.
TEST(HostileSocket, APeerThatReadsNothingBlocksNobody) {
  RunSiege([](Besieger& besieger) {
    besieger.Begin({.sends = true});
    {
      Hostile hostile;
      hostile.Connect();
      RequestBody request = GoodRequest();
      request.port = 1;  // nobody listens there: each is answered
      for (uint32_t connection = 1; connection < 1000; ++connection) {
        hostile.Send(MessageOf(MessageType::kRequest, connection, Bytes(request)));
      }
      hostile.direction(kCreator).bell.store(kBellSocket);
      hostile.block().credit[kCreator].armed.store(1);
      hostile.Ring();
      // Waits until the server has rung, or at least sent: then its thread is done or hangs.
      hostile.AwaitSlot(kSlots - 1);
    }
    besieger.AwaitDone();
    besieger.Check();
  });
}

TEST(HostileSocket, CloseWithNonsense) {
  RunSiege([](Besieger& besieger) {
    for (const CloseBody& body :
         {CloseBody{~uint64_t{0}, ~uint64_t{0}, ~uint32_t{0}, 7}, CloseBody{0, 0, 12345, 0}}) {
      besieger.Begin({});
      {
        Hostile hostile;
        hostile.Connect();
        hostile.Send(MessageOf(MessageType::kClose, kConnection, Bytes(body)));
        hostile.AwaitEnd();
      }
      besieger.AwaitDone();
      besieger.Check();
    }
  });
}

// -------------------------------------------------------------------------------------- the rings

// What the attacks below have in common with a good request.
TEST(HostileRing, WhatIsRightIsServed) {
  RunSiege([](Besieger& besieger) {
    const DAT_RMR_TRIPLET& open = besieger.open_memory();
    besieger.Begin({});
    {
      Hostile hostile;
      hostile.Connect();
      hostile.Put(Op::kWrite, kLast, 1, 8,
                  Bytes(Target{open.virtual_address, open.rmr_context, 0}) + Bytes(uint64_t{41}));
      hostile.Put(
          Op::kAtomic, kLast, 1, 32,
          Bytes(AtomicLead{open.virtual_address, open.rmr_context, kAtomicFetchAndAdd, 1, 0}));
      hostile.Put(Op::kRead, kLast, 1, 16,
                  Bytes(ReadLead{open.virtual_address, open.rmr_context, 8}));
      hostile.Ring();
      for (uint32_t n : {0, 1}) {
        const Word word = hostile.AwaitReply(n);
        EXPECT_EQ(word.op, Op::kReply);
        EXPECT_EQ(word.bytes, 8u);
        uint64_t value;
        std::memcpy(&value, hostile.block().reply[kCreator][n].body, sizeof value);
        EXPECT_EQ(value, 41u + n);
      }
    }
    besieger.AwaitDone();
  });
}

// The server ends the connection by itself.
TEST(HostileRing, ASlotThatCannotBeEndsTheConnection) {
  RunSiege([](Besieger& besieger) {
    const uint64_t address = besieger.open_memory().virtual_address;
    const uint32_t key = besieger.open_memory().rmr_context;
    const Target target = {address, key, 0};
    const auto breaks = [&](const char* what, const std::function<void(Hostile&)>& attack) {
      SCOPED_TRACE(what);
      besieger.Begin({});
      {
        Hostile hostile;
        hostile.Connect();
        attack(hostile);
        hostile.Ring();
        hostile.AwaitEnd();
      }
      besieger.AwaitDone();
      besieger.Check();
    };
    const auto slot = [&](const char* what, Op op, uint32_t slots, uint32_t bytes,
                          const std::string& body = "") {
      breaks(what, [&](Hostile& hostile) { hostile.Put(op, kLast, slots, bytes, body); });
    };
    const auto chunk = [](uint32_t number, const Target& to = {}) {
      return Bytes(ChunkLead{to, number, 0});
    };
    for (int op : {0, 10, 99, 127}) slot("no such operation", static_cast<Op>(op), 1, 1);
    slot("a reply in the data ring", Op::kReply, 1, 1);
    slot("a reply's chunk in the data ring", Op::kReplyChunk, 1, 1, chunk(0));
    slot("no slots", Op::kSend, 0, 0);
    slot("more slots than the ring", Op::kSend, 65, 65 * 56);
    slot("all slots there could be", Op::kSend, 65535, 1);
    slot("more bytes than the slot", Op::kSend, 1, 57);
    slot("huge length", Op::kSend, 64, 0xffffffff);
    slot("longer than the receive", Op::kSend, 2, kAttackedReceive + 1);
    slot("chunk 64", Op::kSendChunk, 1, 10, chunk(kChunks));
    slot("huge chunk", Op::kSendChunk, 1, 10, chunk(0xffffffff));
    slot("more than a chunk", Op::kSendChunk, 1, kChunkBytes + 1, chunk(0));
    slot("huge length of a chunk", Op::kSendChunk, 1, 0xffffffff, chunk(0));
    slot("a chunk in two slots", Op::kSendChunk, 2, 10, chunk(0));
    slot("a write without room for its head", Op::kWrite, 1, 41, Bytes(target));
    slot("a write to nowhere", Op::kWrite, 1, 8, Bytes(Target{4096, 0x12345678, 0}));
    slot("a write that wraps", Op::kWrite, 1, 8, Bytes(Target{~uint64_t{0} - 3, key, 0}));
    slot("a write of a huge chunk", Op::kWriteChunk, 1, 8, chunk(77, target));
    slot("a write of a chunk to nowhere", Op::kWriteChunk, 1, 8,
         chunk(0, Target{4096, 0x12345678, 0}));
    slot("a read from nowhere", Op::kRead, 1, 16, Bytes(ReadLead{4096, 0x12345678, 64}));
    slot("a read of everything", Op::kRead, 1, 16, Bytes(ReadLead{address, key, 0xffffffff}));
    slot("a read in two slots", Op::kRead, 2, 16, Bytes(ReadLead{address, key, 1}));
    slot("an atomic of nowhere", Op::kAtomic, 1, 32,
         Bytes(AtomicLead{4096, 0x12345678, kAtomicFetchAndAdd, 1, 0}));
    for (uint32_t kind : {0u, 3u, 0xffffffffu}) {
      slot("an atomic of no kind", Op::kAtomic, 1, 32, Bytes(AtomicLead{address, key, kind, 1, 0}));
    }
    slot("an atomic in two slots", Op::kAtomic, 2, 32,
         Bytes(AtomicLead{address, key, kAtomicFetchAndAdd, 1, 0}));
    slot("the end of no window", Op::kInvalidate, 1, 8, Bytes(InvalidateLead{0x12345678, 0}));
    breaks("an end of a window inside a send", [&](Hostile& hostile) {
      hostile.Put(Op::kSend, 0, 1, 8);
      hostile.Put(Op::kInvalidate, 0, 1, 8, Bytes(InvalidateLead{1, 0}));
    });
    breaks("a write inside a send", [&](Hostile& hostile) {
      hostile.Put(Op::kSend, 0, 1, 8);
      hostile.Put(Op::kWrite, kLast, 1, 8, Bytes(target));
    });
    breaks("a send inside a write", [&](Hostile& hostile) {
      hostile.Put(Op::kWrite, 0, 1, 8, Bytes(target));
      hostile.Put(Op::kSend, 0, 1, 8);
    });
    breaks("a read inside a send", [&](Hostile& hostile) {
      hostile.Put(Op::kSend, 0, 1, 8);
      hostile.Put(Op::kRead, kLast, 1, 16, Bytes(ReadLead{address, key, 1}));
    });
    breaks("a read inside a write", [&](Hostile& hostile) {
      hostile.Put(Op::kWrite, 0, 1, 8, Bytes(target));
      hostile.Put(Op::kRead, kLast, 1, 16, Bytes(ReadLead{address, key, 1}));
    });
    breaks("a message without an end", [&](Hostile& hostile) {
      for (int i = 0; i < 60; ++i) hostile.Put(Op::kSend, 0, 1, kBodyBytes);
    });
    breaks("more reads than were allowed", [&](Hostile& hostile) {
      // Nobody takes the replies, so that none of the reads ends.
      for (uint32_t i = 0; i < hostile.allowed_reads() + kReplySlots + 1; ++i) {
        hostile.AwaitRoom();
        hostile.Put(Op::kRead, kLast, 1, 16, Bytes(ReadLead{4096, 0x12345678, 0}));
      }
    });
  });
}

// False answers to a read by the server, which must not take them for the bytes that it wants.
TEST(HostileRing, AnAnswerThatCannotBeEndsTheConnection) {
  RunSiege([](Besieger& besieger) {
    const auto breaks = [&](const char* what, Op op, uint8_t flags, uint32_t bytes) {
      SCOPED_TRACE(what);
      besieger.Begin({.reads = true});
      {
        Hostile hostile;
        hostile.Connect();
        hostile.AwaitSlot(0);
        hostile.Answer(op, flags, bytes);
        hostile.Ring();
        hostile.AwaitEnd();
      }
      besieger.AwaitDone();
      besieger.Check();
    };
    breaks("too short", Op::kReply, kLast, 8);
    breaks("nothing at all", Op::kReply, kLast, 0);
    breaks("nothing, and more to come", Op::kReply, 0, 0);
    breaks("a chunk that is too short", Op::kReplyChunk, kLast, kAttackedReceive - 1);
    breaks("a chunk that is too long", Op::kReplyChunk, kLast, kAttackedReceive + 1);
    breaks("more than a slot", Op::kReply, kLast, kAttackedReceive);
    breaks("no answer", Op::kSend, kLast, 8);
  });
}

// Each read takes a chunk of the pool before the server sees that the memory does not exist.
TEST(HostileRing, ReadsThatAreRefusedLeaveTheChunks) {
  RunSiege([](Besieger& besieger) {
    const DAT_RMR_TRIPLET& open = besieger.open_memory();
    constexpr uint32_t kBytes = 2 * kAttackedReceive;  // more than a slot
    Hostile hostile;
    for (uint32_t connection = 0; connection <= kChunks; ++connection) {
      SCOPED_TRACE(connection);
      besieger.Begin({});
      if (connection == 0) {
        hostile.Connect();
      } else {
        hostile.ConnectAgain(connection);
      }
      const bool last = connection == kChunks;
      hostile.Put(Op::kRead, kLast, 1, 16,
                  Bytes(ReadLead{last ? open.virtual_address : 4096, open.rmr_context, kBytes}));
      hostile.Ring();
      if (last) {
        EXPECT_EQ(hostile.AwaitReply(0).op, Op::kReplyChunk);
        hostile.Send(MessageOf(MessageType::kClose, connection, std::string(24, 0)));
      }
      hostile.AwaitEnd();
      besieger.AwaitDone();
    }
  });
}

// Pieces of a message without an end. Three fill exactly two laps, so each stands in a slot that is
// read in laps of one parity only, and is new whenever the server comes by: it must not stay with
// this connection.
TEST(HostileRing, EndlessPieces) {
  RunSiege([](Besieger& besieger) {
    const DAT_RMR_TRIPLET& open = besieger.open_memory();
    besieger.Begin({});
    {
      Hostile hostile;
      hostile.Connect();
      const std::string target = Bytes(Target{open.virtual_address, open.rmr_context, 0});
      for (uint32_t slots : {43, 43, 42}) hostile.Put(Op::kWrite, 0, slots, 1, target);
      hostile.Ring();
      hostile.AwaitConsumed(1000 * kSlots);
      hostile.Send(MessageOf(MessageType::kClose, kConnection, std::string(24, 0)));
      hostile.AwaitEnd();
    }
    besieger.AwaitDone();
    besieger.Check();
  });
}

// False positions, which the server trusts no further than its own: it may notice, and must not
// suffer.
TEST(HostileRing, PositionsThatLieDoNoHarm) {
  RunSiege([](Besieger& besieger) {
    const std::vector<std::vector<uint64_t>> rows = {
        {~uint64_t{0}}, {uint64_t{1} << 63}, {65}, {1000000}, {16, 3},
        {64, 0, 64},    {10, ~uint64_t{0}}};
    for (const std::vector<uint64_t>& heads : rows) {
      SCOPED_TRACE(heads[0]);
      besieger.Begin({.sends = true});
      {
        Hostile hostile;
        hostile.Connect();
        // The server fills the ring to us, and then needs credit.
        hostile.AwaitSlot(kSlots - 1);
        CreditLine& mine = hostile.block().credit[kCreator];
        for (uint64_t head : heads) {
          mine.head.store(head);
          mine.reply_head.store(head);
          hostile.Ring();
          poll(nullptr, 0, 20);  // the server may look at this one
        }
      }
      besieger.AwaitDone();
      besieger.Check();
    }
  });
}

// Random words everywhere, written while the server reads them.
TEST(HostileRing, RandomWords) {
  RunSiege([](Besieger& besieger) {
    const unsigned seed = std::random_device()();
    printf("seed: %u\n", seed);
    std::mt19937_64 engine(seed);
    const auto fill = [&](void* to, size_t bytes) {
      auto* words = static_cast<std::atomic<uint64_t>*>(to);
      for (size_t i = 0; i < bytes / 8; ++i) words[i].store(engine(), std::memory_order_relaxed);
    };
    for (int round = 0; round < 10; ++round) {
      SCOPED_TRACE(round);
      besieger.Begin({.may_fill = true, .sends = round % 2 != 0});
      {
        Hostile hostile;
        hostile.Connect();
        for (int i = 0; i < 50; ++i) {
          switch (round / 2) {
            case 0:
              fill(&hostile.block().data[kServer], sizeof(Slot) * kSlots);
              break;
            case 1:
              fill(&hostile.block().credit, sizeof hostile.block().credit);
              break;
            case 2:
              fill(&hostile.direction(0), 2 * sizeof(DirectionBlock));
              break;
            case 3:
              fill(&hostile.block(), sizeof(ConnectionBlock));
              break;
            default:
              fill(hostile.arena(), kPoolOffset / 64 / 8 * 8);  // header, blocks, connections
          }
          hostile.Ring();
        }
      }
      besieger.AwaitDone();
      besieger.Check();
    }
  });
}

}  // namespace
}  // namespace viaduct::tests
