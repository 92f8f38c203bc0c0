// Garbage on the TCP port of a listener: only the connection that it came on dies.
//
// The raw sockets implement the wire format themselves, without code of the library.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/harness.h"
#include "tests/faults/siege.h"

namespace viaduct::tests {
namespace {

// ------------------------------------------------------------------------------ the raw side

class RawSocket {
 public:
  explicit RawSocket(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to = Ipv4("127.0.0.1");
    to.sin_port = htons(port);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0) << errno;
    const timeval limit{20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~RawSocket() { close(fd_); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  // The server may have closed already.
  void Send(const std::string& bytes) {
    (void)!send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  std::string Receive(size_t size) {
    std::string bytes(size, 0);
    const ssize_t got = recv(fd_, bytes.data(), size, MSG_WAITALL);
    bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return bytes;
  }
  void Finish() { shutdown(fd_, SHUT_WR); }
  void ResetOnClose() {
    const linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  // The server closes, by FIN or RST, after whatever it still sends.
  ::testing::AssertionResult Ends() {
    char buffer[4096];
    ssize_t got;
    do {
      got = recv(fd_, buffer, sizeof buffer, 0);
    } while (got > 0);
    if (got == 0 || errno == ECONNRESET) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "the server did not close: errno " << errno;
  }

 private:
  const int fd_;
};

std::string BigEndian(uint64_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string Random(size_t size, unsigned seed) {
  std::mt19937 engine(seed);
  std::string bytes(size, 0);
  for (char& byte : bytes) byte = static_cast<char>(engine());
  return bytes;
}

// RFC 5044 7.1: a startup frame.
std::string Startup(const std::string& key, unsigned flags, unsigned revision, size_t length,
                    const std::string& data) {
  return key + static_cast<char>(flags) + static_cast<char>(revision) + BigEndian(length, 2) + data;
}
const std::string kRequestKey = "MPA ID Req Frame";

// CRC32C bit by bit.
std::string Crc(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
  }
  crc = ~crc;
  std::string out;
  for (int i = 0; i < 4; ++i) out += static_cast<char>(crc >> (8 * i));
  return out;
}

// RFC 5044 4.1; `length` is the length that the frame claims.
std::string FpduOfLength(size_t length, const std::string& segment) {
  std::string fpdu = BigEndian(length, 2) + segment;
  fpdu.resize((fpdu.size() + 3) / 4 * 4);
  return fpdu + Crc(fpdu);
}
std::string Fpdu(const std::string& segment) { return FpduOfLength(segment.size(), segment); }

// RFC 5041: segments.
struct Untagged {
  unsigned control = 0x41;  // last, version 1
  unsigned opcode = 3;      // Send
  uint32_t queue = 0, sequence = 1, offset = 0;
};
std::string Segment(const Untagged& header, const std::string& payload) {
  return BigEndian(header.control, 1) + BigEndian(0x40 | header.opcode, 1) + BigEndian(0, 4) +
         BigEndian(header.queue, 4) + BigEndian(header.sequence, 4) + BigEndian(header.offset, 4) +
         payload;
}
std::string Write(uint32_t stag, uint64_t offset, const std::string& payload, unsigned opcode = 0) {
  return BigEndian(0xC1, 1) + BigEndian(0x40 | opcode, 1) + BigEndian(stag, 4) +
         BigEndian(offset, 8) + payload;
}
std::string ReadRequest(uint32_t size, uint32_t stag, uint64_t offset) {
  Untagged header;
  header.opcode = 1;
  header.queue = 1;
  return Segment(header, BigEndian(1, 4) + BigEndian(0, 8) + BigEndian(size, 4) +
                             BigEndian(stag, 4) + BigEndian(offset, 8));
}

// -------------------------------------------------------------------------------- the attacker

class Attacker {
 public:
  explicit Attacker(Besieger& besieger) : besieger_(besieger) {}

  // Sends `bytes` in place of a request; the server must close by itself, or the attacker closes.
  void InsteadOfRequest(const char* what, const std::string& bytes, bool server_closes = true) {
    SCOPED_TRACE(what);
    {
      RawSocket raw(Port(0));
      raw.Send(bytes);
      if (server_closes) {
        EXPECT_TRUE(raw.Ends());
      }
    }
    besieger_.Check();
  }

  // Sends `bytes` after a good handshake and perhaps one good message.
  enum class End { kByServer, kFin, kReset };
  void BehindHandshake(const std::string& what, const std::string& bytes, End end = End::kByServer,
                       bool with_message = true) {
    SCOPED_TRACE(what);
    besieger_.Begin({.message = with_message});
    {
      RawSocket raw(Port(0));
      raw.Send(Startup(kRequestKey, 0x40, 1, 4, kAttackData));
      const std::string reply = raw.Receive(20);
      ASSERT_EQ(reply.substr(0, 16), "MPA ID Rep Frame");
      ASSERT_EQ(reply[16] & 0x20, 0) << "rejected";
      if (with_message) raw.Send(Fpdu(Segment({}, "m")));
      raw.Send(bytes);
      if (end == End::kReset) {
        raw.ResetOnClose();
      } else {
        if (end == End::kFin) raw.Finish();
        EXPECT_TRUE(raw.Ends());
      }
    }
    besieger_.AwaitDone();
    besieger_.Check();
  }
  void Check() { besieger_.Check(); }
  const DAT_RMR_TRIPLET& open_memory() const { return besieger_.open_memory(); }

 private:
  Besieger& besieger_;
};

void WithServer(const std::function<void(Attacker&)>& body) {
  RunSiege([&body](Besieger& besieger) {
    Attacker attacker(besieger);
    body(attacker);
  });
}

TEST(Garbage, InsteadOfARequest) {
  WithServer([](Attacker& attacker) {
    attacker.InsteadOfRequest("nothing", "", false);
    attacker.InsteadOfRequest("HTTP", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    attacker.InsteadOfRequest("zeros", std::string(4096, 0));
    for (unsigned seed = 1; seed <= 3; ++seed) {
      attacker.InsteadOfRequest("random bytes", Random(10000, seed));
    }
  });
}

TEST(Garbage, WrongRequests) {
  WithServer([](Attacker& attacker) {
    const auto request = [](unsigned flags, unsigned revision, size_t length, size_t data) {
      return Startup(kRequestKey, flags, revision, length, std::string(data, 'x'));
    };
    attacker.InsteadOfRequest("a reply", Startup("MPA ID Rep Frame", 0x40, 1, 0, ""));
    attacker.InsteadOfRequest("a key that is wrong at its end",
                              Startup("MPA ID Req Framf", 0x40, 1, 0, ""));
    attacker.InsteadOfRequest("revision 3", request(0x40, 3, 0, 0));
    attacker.InsteadOfRequest("513 bytes of private data", request(0x40, 1, 513, 513));
    attacker.InsteadOfRequest("65535 bytes of private data", request(0x40, 1, 65535, 65535));
    attacker.InsteadOfRequest("enhanced without its word", request(0x50, 2, 0, 0));
    attacker.InsteadOfRequest("markers", request(0xC0, 1, 0, 0));
  });
}

TEST(Garbage, HalfARequest) {
  WithServer([](Attacker& attacker) {
    const std::string request = Startup(kRequestKey, 0x40, 1, 4, kAttackData);
    for (size_t cut : {1, 15, 16, 17, 18, 19, 20, 23}) {
      attacker.InsteadOfRequest("cut and closed", request.substr(0, cut), false);
    }
    // Silent connections stay open while others connect.
    RawSocket silent[] = {RawSocket(Port(0)), RawSocket(Port(0)), RawSocket(Port(0))};
    silent[1].Send(request.substr(0, 1));
    silent[2].Send(request.substr(0, 21));
    attacker.Check();
    for (RawSocket& raw : silent) EXPECT_TRUE(raw.Ends()) << "a request has five seconds";
    attacker.Check();
  });
}

TEST(Garbage, FramesCutAtEachField) {
  WithServer([](Attacker& attacker) {
    Untagged second;
    second.sequence = 2;
    const std::string fpdu = Fpdu(Segment(second, "twelve bytes"));
    for (size_t cut : {1, 2, 3, 4, 8, 12, 16, 20, 26, 32, 33, 35}) {
      ASSERT_LT(cut, fpdu.size());
      attacker.BehindHandshake("FIN at " + std::to_string(cut), fpdu.substr(0, cut),
                               Attacker::End::kFin);
    }
    attacker.BehindHandshake("reset at 20, first frame", fpdu.substr(0, 20), Attacker::End::kReset,
                             false);
    attacker.BehindHandshake("FIN at 20, first frame", fpdu.substr(0, 20), Attacker::End::kFin,
                             false);
  });
}

TEST(Garbage, WrongFrames) {
  WithServer([](Attacker& attacker) {
    const auto with = [](auto change) {
      Untagged header;
      header.sequence = 2;
      change(header);
      return Fpdu(Segment(header, "payload"));
    };
    attacker.BehindHandshake("random bytes", Random(70000, 4));
    attacker.BehindHandshake("oversized: more than the receive", [] {
      Untagged header;
      header.sequence = 2;
      return Fpdu(Segment(header, std::string(65000, 'x')));
    }());
    attacker.BehindHandshake("a length of 65535 with nonsense",
                             FpduOfLength(65535, std::string(65535, 0x55)));
    for (size_t length : {0, 1, 13}) {
      attacker.BehindHandshake("too short: " + std::to_string(length),
                               FpduOfLength(length, std::string(length, 0x41)));
    }
    std::string corrupt = with([](Untagged&) {});
    corrupt[22] ^= 1;
    attacker.BehindHandshake("checksum", corrupt);
    attacker.BehindHandshake("DDP version", with([](Untagged& h) { h.control = 0x42; }));
    attacker.BehindHandshake("queue", with([](Untagged& h) { h.queue = 3; }));
    attacker.BehindHandshake("sequence", with([](Untagged& h) { h.sequence = 7; }));
    attacker.BehindHandshake("offset", with([](Untagged& h) { h.offset = 4; }));
    for (unsigned opcode : {8, 10, 15}) {
      attacker.BehindHandshake("opcode " + std::to_string(opcode),
                               with([opcode](Untagged& h) { h.opcode = opcode; }));
    }
    const DAT_RMR_TRIPLET& open = attacker.open_memory();
    const uint64_t end = open.virtual_address + open.segment_length;
    attacker.BehindHandshake("a write to nowhere", Fpdu(Write(0x12345678, 4096, "payload")));
    attacker.BehindHandshake("a write that wraps",
                             Fpdu(Write(open.rmr_context, ~uint64_t{0} - 2, "payload")));
    attacker.BehindHandshake("a write over the end",
                             Fpdu(Write(open.rmr_context, end - 6, "payload")));
    attacker.BehindHandshake("an answer to no question", Fpdu(Write(1, 0, "payload", 2)));
    attacker.BehindHandshake("a read from nowhere", Fpdu(ReadRequest(64, 0x12345678, 4096)));
    attacker.BehindHandshake("a read that wraps",
                             Fpdu(ReadRequest(64, open.rmr_context, ~uint64_t{0} - 16)));
    attacker.BehindHandshake("a read of everything",
                             Fpdu(ReadRequest(0xffffffff, open.rmr_context, open.virtual_address)));
    attacker.BehindHandshake("half a read request", [] {
      Untagged header;
      header.opcode = 1;
      header.queue = 1;
      return Fpdu(Segment(header, std::string(20, 0)));
    }());
    attacker.BehindHandshake("an empty terminate", [] {
      Untagged header;
      header.opcode = 7;
      header.queue = 2;
      return Fpdu(Segment(header, ""));
    }());
  });
}

}  // namespace
}  // namespace viaduct::tests
