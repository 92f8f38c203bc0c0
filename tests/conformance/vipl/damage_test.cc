// Incoming RDMA writes that break off: VIP_ERROR_RDMAW_ABORT, VIP_ERROR_RDMAW_DATA and
// VIP_ERROR_RDMA_TRANSPORT, from a peer that is killed, and from one that composes its own bytes.
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vipl.h>

#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

constexpr VIP_ULONG kLong = 20000;

struct Target {
  VIP_UINT64 address;
  VIP_MEM_HANDLE handle;
};

// The errors that the side under test gets until its connection is lost.
std::vector<VIP_ERROR_CODE> ErrorsUntilTheEnd(Side& side, ErrorLog& errors) {
  std::vector<VIP_ERROR_CODE> codes;
  VIP_ERROR_DESCRIPTOR error;
  do {
    if (!errors.Next(&error)) {
      ADD_FAILURE() << "nothing is told";
      return codes;
    }
    codes.push_back(error.ErrorCode);
    EXPECT_EQ(error.ResourceCode, VIP_RESOURCE_VI);
    EXPECT_EQ(error.NicHandle, side.nic.handle);
    EXPECT_EQ(error.ViHandle, side.vi);
  } while (error.ErrorCode != VIP_ERROR_CONN_LOST);
  EXPECT_EQ(side.State(), VIP_STATE_ERROR);
  EXPECT_TRUE(errors.empty());
  return codes;
}

// ----------------------------------------------------------------------- a peer that is killed

constexpr int kReceives = 60;

// Takes the receives of writes with immediate data, and the flushed rest. Returns whether one of
// the writes broke off.
bool TakeReceives(Side& side) {
  constexpr VIP_UINT32 kMask = VIP_STATUS_OP_MASK | VIP_STATUS_ERROR_MASK | VIP_STATUS_IMMEDIATE;
  VIP_DESCRIPTOR* done = nullptr;
  int taken = 1;
  for (; VipRecvDone(side.vi, &done) == VIP_SUCCESS; ++taken) {
    EXPECT_EQ(done->CS.Status & kMask,
              static_cast<VIP_UINT32>(VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE));
  }
  if (done == nullptr) {
    ADD_FAILURE() << "all receives were used";
    return false;
  }
  EXPECT_EQ(taken + side.DrainFlushed(), kReceives);
  const VIP_UINT32 status = done->CS.Status & kMask;
  if ((status & VIP_STATUS_ERROR_MASK) == VIP_STATUS_DESC_FLUSHED_ERROR) return false;
  EXPECT_EQ(status,
            static_cast<VIP_UINT32>(VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_TRANSPORT_ERROR));
  return true;
}

// Kills a peer that is writing; once in a while that happens between two writes.
void KillTheWriter(VIP_RELIABILITY_LEVEL level, bool immediate, bool* met_a_write) {
  constexpr VIP_UINT32 kBytes = 8 << 20;
  PairOptions options;
  options.client_is_killed = true;
  RunPair(
      [=](Peer& peer) {
        VIP_VI_ATTRIBUTES attributes = Attributes(level, kBytes);
        attributes.EnableRdmaWrite = VIP_TRUE;
        Side side(attributes);
        ErrorLog errors(side.nic.handle);
        VIP_MEM_ATTRIBUTES rights = {nullptr, VIP_TRUE, VIP_FALSE};
        Memory target(side.nic, &rights, kBytes);
        for (int n = 0; n < kReceives; ++n) side.Receive(n);
        side.Accept();
        peer.Send(Target{reinterpret_cast<VIP_UINT64>(target.data()), target.handle()});
        peer.Await("writing");
        kill(peer.pid(), SIGKILL);  // it may have written everything and be gone
        const std::vector<VIP_ERROR_CODE> codes = ErrorsUntilTheEnd(side, errors);
        if (immediate) {
          *met_a_write = TakeReceives(side);
          EXPECT_EQ(codes.size(), 1u) << "its receive tells";
          return;
        }
        EXPECT_EQ(side.DrainFlushed(), kReceives);
        if (codes.size() == 2) {
          EXPECT_EQ(codes[0], VIP_ERROR_RDMAW_ABORT);
          *met_a_write = true;
        } else {
          EXPECT_EQ(codes.size(), 1u);
        }
      },
      [=](Peer& peer) {
        Side side(Attributes(level, kBytes));
        Memory source(side.nic, nullptr, kBytes);
        side.Connect();
        const Target target = peer.Receive<Target>();
        const int control = VIP_CONTROL_OP_RDMAWRITE | (immediate ? VIP_CONTROL_IMMEDIATE : 0);
        for (int n = 0; n < kReceives - 1; ++n) {
          VIP_DESCRIPTOR* d = source.FillRdma(0, static_cast<VIP_UINT16>(control), 0, kBytes,
                                              target.address, target.handle);
          if (VipPostSend(side.vi, d, source.handle()) != VIP_SUCCESS) return;
          if (n == 2) peer.Tell("writing");
          VIP_DESCRIPTOR* done;
          if (VipSendWait(side.vi, kLong, &done) != VIP_SUCCESS) return;
        }
      },
      options);
}

void KillWritersAtEachLevel(bool immediate) {
  auto* met_a_write = static_cast<bool*>(
      mmap(nullptr, sizeof(bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(met_a_write, MAP_FAILED);
  for (VIP_RELIABILITY_LEVEL level :
       {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION}) {
    *met_a_write = false;
    for (int round = 0; round < 10 && !*met_a_write && !testing::Test::HasFailure(); ++round) {
      KillTheWriter(level, immediate, met_a_write);
    }
    EXPECT_TRUE(*met_a_write) << "level " << level;
  }
  munmap(met_a_write, sizeof(bool));
}

TEST(Damage, AWriterThatDiesInsideAWriteIsAnAbort) { KillWritersAtEachLevel(false); }

TEST(Damage, AWriterThatDiesInsideAWriteWithImmediateDataFailsItsReceive) {
  KillWritersAtEachLevel(true);
}

// ------------------------------------------------------------ a peer that composes its own bytes

uint32_t Crc32c(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

std::string Big(uint64_t value, int bytes) {
  std::string out;
  while (bytes-- > 0) out.push_back(static_cast<char>(value >> 8 * bytes));
  return out;
}

// An FPDU with one segment of an RDMA Write: RFC 5044, 5041, 5040.
std::string WriteFpdu(const Target& target, const std::string& payload, bool last) {
  std::string fpdu = Big(14 + payload.size(), 2) + (last ? '\xc1' : '\x81') + '\x40' +
                     Big(target.handle, 4) + Big(target.address, 8) + payload;
  fpdu.resize((fpdu.size() + 3) / 4 * 4);
  const uint32_t crc = Crc32c(fpdu);
  for (int i = 0; i < 4; ++i) fpdu.push_back(static_cast<char>(crc >> 8 * i));
  return fpdu;
}

// A stranger that connects to Port(0) without private data, and without Viaduct.
class Stranger {
 public:
  Stranger() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(Port(0));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int64_t end = NowMilliseconds() + static_cast<int64_t>(kLong);
    while (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      if (NowMilliseconds() > end) {
        ADD_FAILURE() << "nobody listens";
        break;
      }
      usleep(1000);
    }
    Say(std::string("MPA ID Req Frame") + std::string("\x40\x01\0\0", 4));
    char reply[20];
    EXPECT_EQ(recv(socket_, reply, sizeof reply, MSG_WAITALL), 20);
    EXPECT_EQ(std::string(reply, 16), "MPA ID Rep Frame");
  }
  ~Stranger() { close(socket_); }
  void Say(const std::string& bytes) {
    EXPECT_EQ(send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

 private:
  const int socket_;
};

// A stranger sends `bytes(target)` and leaves; the server must get exactly the errors `expected`.
void HearStranger(const std::function<std::string(const Target&)>& bytes,
                  const std::vector<VIP_ERROR_CODE>& expected) {
  RunPair(
      [&](Peer& peer) {
        VIP_VI_ATTRIBUTES attributes = Attributes();
        attributes.EnableRdmaWrite = VIP_TRUE;
        Side side(attributes);
        ErrorLog errors(side.nic.handle);
        VIP_MEM_ATTRIBUTES rights = {nullptr, VIP_TRUE, VIP_FALSE};
        Memory target(side.nic, &rights, 65536);
        side.Receive(0);
        peer.Send(Target{reinterpret_cast<VIP_UINT64>(target.data()), target.handle()});
        const uint16_t port = Port(0);
        const VIP_CONN_HANDLE connection = side.TakeRequest(std::string(6, '\0') + Big(port, 2));
        ASSERT_EQ(VipConnectAccept(connection, side.vi), VIP_SUCCESS);
        EXPECT_EQ(ErrorsUntilTheEnd(side, errors), expected);
        EXPECT_EQ(side.DrainFlushed(), 1);
        EXPECT_EQ(std::string(target.data(), 8), "whole so") << "what came before is in place";
      },
      [&](Peer& peer) {
        const auto target = peer.Receive<Target>();
        Stranger stranger;
        stranger.Say(WriteFpdu(target, "whole so", true) + bytes(target));
      });
}

Target Behind(const Target& target, int bytes) {
  return {target.address + static_cast<VIP_UINT64>(bytes), target.handle};
}
std::string Corrupt(std::string fpdu) {
  fpdu.back() = static_cast<char>(fpdu.back() ^ 1);
  return fpdu;
}

TEST(Damage, AStrangerWhoLeavesInsideAWrite) {
  if (Wire() != "iwarp") GTEST_SKIP() << "iWARP over TCP";
  ASSERT_EQ(WriteFpdu({0, 1}, "", true),
            std::string("\0\x0e\xc1\x40\0\0\0\1\0\0\0\0\0\0\0\0\xeb\xd3\x4c\x5f", 20));
  // It leaves after a segment, and inside one.
  HearStranger([](const Target& at) { return WriteFpdu(Behind(at, 8), "half", false); },
               {VIP_ERROR_RDMAW_ABORT, VIP_ERROR_CONN_LOST});
  HearStranger(
      [](const Target& at) {
        return WriteFpdu(Behind(at, 8), "half", false) +
               WriteFpdu(Behind(at, 12), "less", true).substr(0, 18);
      },
      {VIP_ERROR_RDMAW_ABORT, VIP_ERROR_CONN_LOST});
  HearStranger([](const Target&) { return std::string(); }, {VIP_ERROR_CONN_LOST});
}

TEST(Damage, CorruptWrites) {
  if (Wire() != "iwarp") GTEST_SKIP() << "iWARP over TCP";
  HearStranger(
      [](const Target& at) {
        return WriteFpdu(Behind(at, 8), "half", false) +
               Corrupt(WriteFpdu(Behind(at, 12), "less", true));
      },
      {VIP_ERROR_RDMAW_DATA, VIP_ERROR_CONN_LOST});
  HearStranger([](const Target& at) { return Corrupt(WriteFpdu(Behind(at, 8), "none", true)); },
               {VIP_ERROR_RDMA_TRANSPORT, VIP_ERROR_CONN_LOST});
}

}  // namespace
}  // namespace viaduct::tests
