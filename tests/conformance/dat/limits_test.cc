// Many threads, many objects, forked children; DAT checklist 5, 134-136, and the addresses of IPv6.
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/process_facts.h"

namespace viaduct::tests {
namespace {

// In kilobytes.
long ResidentMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::atol(line.c_str() + 6);
  }
  return 0;
}

// Thousands of leaked objects or connections would be well above the limit. AddressSanitizer keeps
// freed memory for a while, and finds leaks itself. ThreadSanitizer has four bytes of shadow for
// each byte that was touched.
void ExpectMemoryBackTo([[maybe_unused]] long before) {
#ifndef __SANITIZE_ADDRESS__
  constexpr long kMost = 20'000 * (kSeesThreadsOnly ? 5 : 1);
  EXPECT_LT(ResidentMemory(), before + kMost);
#endif
}

struct Holdings {
  int descriptors = OpenDescriptors();
  int threads = Threads();
};

// Waits, because the library's own thread releases what has ended.
void ExpectBackTo(const Holdings& start) {
  const uint64_t until = NowMicroseconds() + kPatience;
  Holdings now;
  while ((now.descriptors > start.descriptors || now.threads > start.threads) &&
         NowMicroseconds() < until) {
    sched_yield();
    now = Holdings();
  }
  EXPECT_LE(now.descriptors, start.descriptors);
  EXPECT_LE(now.threads, start.threads);
}

constexpr int kThreads = 4;
constexpr int kConnections = 1000;

DAT_EP_ATTR Small() {
  DAT_EP_ATTR attributes = {};
  attributes.max_recv_dtos = attributes.max_request_dtos = 4;
  attributes.max_recv_iov = attributes.max_request_iov = 1;
  return attributes;
}

// The patience for a thousand connections at once.
DAT_TIMEOUT LongPatience() { return 3 * kPatience * static_cast<DAT_TIMEOUT>(Slowness()); }

// Accepts every request and sees each connection begin and end once.
void AcceptAll(Side& side, Peer& peer, int rounds) {
  DAT_EVD_HANDLE requests = side.NewEvd(DAT_EVD_CR_FLAG, 2 * kConnections);
  DAT_EVD_HANDLE events = side.NewEvd(DAT_EVD_CONNECTION_FLAG, 4 * kConnections);
  const DAT_EP_ATTR attributes = Small();
  DAT_PSP_HANDLE psp;
  Must(dat_psp_create(side.ia, Port(0), requests, DAT_PSP_CONSUMER_FLAG, &psp));
  for (int round = 0; round < rounds; ++round) {
    peer.Tell("listening");
    std::future<void> acceptor = std::async(std::launch::async, [&] {
      for (int i = 0; i < kConnections; ++i) {
        const auto request = NextRequest(requests, LongPatience());
        DAT_EP_HANDLE ep;
        Must(dat_ep_create(side.ia, side.pz, side.receive_evd, side.request_evd, events,
                           &attributes, &ep));
        Must(dat_cr_accept(request.cr_handle, ep, 0, nullptr));
      }
    });
    std::map<DAT_EP_HANDLE, int> seen;  // 1: begun, 2: ended
    for (int ended = 0; ended < kConnections;) {
      const DAT_EVENT event = Next(events, LongPatience());
      int& state = seen[event.event_data.connect_event_data.ep_handle];
      switch (event.event_number) {
        case DAT_CONNECTION_EVENT_ESTABLISHED:
          EXPECT_EQ(state++, 0);
          break;
        case DAT_CONNECTION_EVENT_DISCONNECTED:
          EXPECT_EQ(state++, 1);
          ++ended;
          break;
        case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR:  // it disconnected before this side knew
          EXPECT_EQ(state, 0);
          state = 2;
          ++ended;
          break;
        default:
          FAIL() << "event 0x" << std::hex << event.event_number;
      }
    }
    acceptor.get();
    EXPECT_TRUE(IsEmpty(events));
    EXPECT_TRUE(IsEmpty(requests));
    EXPECT_EQ(static_cast<int>(seen.size()), kConnections);
    for (auto [ep, count] : seen) Must(dat_ep_free(ep));
  }
  Must(dat_psp_free(psp));
  Must(dat_evd_free(requests));
  Must(dat_evd_free(events));
}

// kThreads threads that connect all at once, and then disconnect all.
void ConnectAll(Side& side, Peer& peer, int rounds) {
  const DAT_EP_ATTR attributes = Small();
  for (int round = 0; round < rounds; ++round) {
    peer.Await("listening");
    std::vector<std::future<void>> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.push_back(std::async(std::launch::async, [&] {
        DAT_EVD_HANDLE events = side.NewEvd(DAT_EVD_CONNECTION_FLAG, kConnections);
        std::map<DAT_EP_HANDLE, int> seen;
        for (int i = 0; i < kConnections / kThreads; ++i) {
          DAT_EP_HANDLE ep;
          Must(dat_ep_create(side.ia, side.pz, side.receive_evd, side.request_evd, events,
                             &attributes, &ep));
          side.Connect(ep, Port(0), LongPatience());
          seen[ep] = 0;
        }
        for (size_t i = 0; i < seen.size(); ++i) {
          const DAT_EVENT event = Next(events, DAT_CONNECTION_EVENT_ESTABLISHED, LongPatience());
          EXPECT_EQ(seen[event.event_data.connect_event_data.ep_handle]++, 0);
        }
        for (auto& [ep, count] : seen) Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
        for (size_t i = 0; i < seen.size(); ++i) {
          const DAT_EVENT event = Next(events, DAT_CONNECTION_EVENT_DISCONNECTED, LongPatience());
          EXPECT_EQ(seen[event.event_data.connect_event_data.ep_handle]++, 1);
        }
        EXPECT_TRUE(IsEmpty(events));
        for (auto& [ep, count] : seen) Must(dat_ep_free(ep));
        Must(dat_evd_free(events));
      }));
    }
    for (std::future<void>& thread : threads) thread.get();
  }
}

// The first round creates what stays: threads, caches of the allocator. The later rounds leave
// nothing.
TEST(Limits, C134_ThousandConnectionsFromFourThreads) {
  PairOptions options;
  options.seconds = 120;
  auto measured = [](Side& side, Peer& peer, void (*run)(Side&, Peer&, int)) {
    run(side, peer, 1);
    const Holdings start;
    const long memory = ResidentMemory();
    run(side, peer, 2);
    ExpectBackTo(start);
    ExpectMemoryBackTo(memory);
  };
  RunPair(
      [&](Peer& peer) {
        Side side;
        measured(side, peer, &AcceptAll);
        peer.Tell("done");
      },
      [&](Peer& peer) {
        Side side;
        measured(side, peer, &ConnectAll);
        peer.Await("done");
      },
      options);
}

TEST(Limits, C135_TenThousandEndpoints) {
  RunAlone([] {
    constexpr int kObjects = 10'000;
    Side side;
    EXPECT_GE(side.attributes.max_eps, kObjects);
    EXPECT_GE(side.attributes.max_evd_qlen, 65536);
    const DAT_EP_ATTR attributes = Small();
    Holdings start;
    long memory = 0;
    for (int round = 0; round < 3; ++round) {
      std::vector<DAT_EP_HANDLE> eps(kObjects);
      std::vector<DAT_EVD_HANDLE> evds(1000);
      std::vector<DAT_CNO_HANDLE> cnos(1000);
      for (DAT_EP_HANDLE& ep : eps) {
        Must(dat_ep_create(side.ia, side.pz, side.receive_evd, side.request_evd, side.connect_evd,
                           &attributes, &ep));
      }
      for (size_t i = 0; i < evds.size(); ++i) {
        Must(dat_cno_create(side.ia, {nullptr, nullptr}, &cnos[i]));
        Must(dat_evd_create(side.ia, 65536, cnos[i], DAT_EVD_SOFTWARE_FLAG, &evds[i]));
      }
      for (DAT_EP_HANDLE ep : eps) Must(dat_ep_free(ep));
      for (DAT_EVD_HANDLE evd : evds) Must(dat_evd_free(evd));
      for (DAT_CNO_HANDLE cno : cnos) Must(dat_cno_free(cno));
      if (round == 0) {
        start = Holdings();
        memory = ResidentMemory();
      }
    }
    ExpectBackTo(start);
    ExpectMemoryBackTo(memory);
  });
}

// Registers one page again and again until the adapter refuses; returns how often that succeeded.
int RegisterUntilRefused(const Side& side, std::vector<DAT_LMR_HANDLE>* lmrs) {
  static char page[4096];
  DAT_REGION_DESCRIPTION region;
  region.for_va = page;
  lmrs->clear();
  while (static_cast<int>(lmrs->size()) <= side.attributes.max_lmrs) {
    DAT_LMR_HANDLE lmr;
    const DAT_RETURN status =
        CreateLmr(side.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof page, side.pz,
                  DAT_MEM_PRIV_ALL_FLAG, &lmr, nullptr, nullptr, nullptr, nullptr);
    if (status != DAT_SUCCESS) {
      EXPECT_TRUE(Fails(status, DAT_INSUFFICIENT_RESOURCES));
      break;
    }
    lmrs->push_back(lmr);
  }
  return static_cast<int>(lmrs->size());
}

TEST(Limits, C135_RegionsUntilThereAreNoMore) {
  RunAlone([] {
    Side side;
    std::vector<DAT_LMR_HANDLE> lmrs;
    const int most = RegisterUntilRefused(side, &lmrs);
    EXPECT_LE(most, side.attributes.max_lmrs);
    EXPECT_GT(most, side.attributes.max_lmrs / 2);
    const Holdings start;
    const long memory = ResidentMemory();
    for (DAT_LMR_HANDLE lmr : lmrs) Must(dat_lmr_free(lmr));
    EXPECT_EQ(RegisterUntilRefused(side, &lmrs), most) << "what was freed was not given back";
    ExpectBackTo(start);
    ExpectMemoryBackTo(memory);
    for (DAT_LMR_HANDLE lmr : lmrs) Must(dat_lmr_free(lmr));
  });
}

// Forked children, some of which exec, come and go while a connection is in use.
TEST(Limits, C136_ForkedChildrenDoNotDisturb) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        for (uint64_t i = 0; i < 20; ++i) side.PostReceive(ep, i);
        side.AcceptFrom(peer, ep, Port(0));
        for (uint64_t i = 0; i < 20; ++i) {
          EXPECT_EQ(NextCompletion(side.receive_evd).user_cookie.as_64, i);
        }
        EXPECT_TRUE(IsEmpty(side.connect_evd)) << "the child's end was taken for the parent's";
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        for (uint64_t i = 0; i < 20; ++i) {
          const pid_t child = fork();
          ASSERT_GE(child, 0);
          if (child == 0) {
            // The adapter is the parent's: an error, no crash, and nothing reaches the peer.
            if (i % 2 == 0) _exit(side.TrySend(ep, 1000 + i) == DAT_SUCCESS ? 1 : 0);
            execl("/bin/true", "true", static_cast<char*>(nullptr));
            _exit(2);
          }
          int status = -1;
          ASSERT_EQ(waitpid(child, &status, 0), child);
          EXPECT_EQ(status, 0);
          Must(side.TrySend(ep, i));
          EXPECT_EQ(NextCompletion(side.request_evd).user_cookie.as_64, i);
        }
        peer.Await("done");
      });
}

// Some failure of each chapter.
TEST(Limits, C005_EveryFailureHasTheClass) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    DAT_EVENT event;
    DAT_COUNT more;
    DAT_HANDLE out;
    const DAT_RETURN failures[] = {
        dat_evd_dequeue(side.request_evd, &event),
        dat_evd_wait(side.request_evd, 0, 1, &event, &more),
        dat_evd_post_se(side.request_evd, nullptr),
        dat_evd_free(side.request_evd),
        dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG),
        dat_ep_free(nullptr),
        side.TrySend(ep, 1),
        side.TryConnect(ep, Port(0), 0),
        dat_psp_create(side.ia, 1, side.request_evd, DAT_PSP_CONSUMER_FLAG, &out),
        dat_pz_free(side.pz),
        dat_ia_close(side.ia, DAT_CLOSE_GRACEFUL_FLAG),
        dat_cno_wait(nullptr, 0, &out),
    };
    for (DAT_RETURN value : failures)
      EXPECT_EQ(value & 0xC0000000u, 0x80000000u) << Describe(value);
  });
}

bool HasIpv6Loopback() {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool bound =
      fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (fd >= 0) close(fd);
  return bound;
}

// An adapter at an IPv6 address listens, connects and shows its address.
TEST(Ipv6, S_ConnectAndQuery) {
  if (Wire() == "rdma") GTEST_SKIP() << "no RDMA device has ::1";
  if (!HasIpv6Loopback()) GTEST_SKIP() << "no IPv6 on this machine's loopback interface";
  static const std::string line =
      "v6 u" + std::to_string(VIADUCT_TEST_DAT / 10) + "." + std::to_string(VIADUCT_TEST_DAT % 10) +
      " nonthreadsafe default libdapl-viaduct.so.2 viaduct.1.0 \"::1\" \"\"\n";
  struct V6 {
    V6() {
      char path[] = "/tmp/viaduct-conf-XXXXXX";
      const int fd = mkstemp(path);
      EXPECT_EQ(write(fd, line.data(), line.size()), static_cast<ssize_t>(line.size()));
      close(fd);
      setenv("DAT_OVERRIDE", path, 1);
      char name[] = "v6";
      DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
      Must(dat_ia_open(name, 8, &async, &ia));
      unlink(path);
      Must(dat_ia_query(ia, nullptr, DAT_IA_FIELD_ALL, &attributes, 0, nullptr));
      EXPECT_EQ(attributes.ia_address_ptr->sa_family, AF_INET6);
      Must(dat_pz_create(ia, &pz));
      Must(dat_evd_create(ia, 32, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &evd));
      Must(dat_ep_create(ia, pz, evd, evd, evd, nullptr, &ep));
    }
    ~V6() { (void)dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG); }
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_IA_ATTR attributes;
    DAT_PZ_HANDLE pz;
    DAT_EVD_HANDLE evd;
    DAT_EP_HANDLE ep;
  };
  auto is_own = [](const sockaddr* address) {
    sockaddr_in6 v6;
    memcpy(&v6, address, sizeof v6);
    return v6.sin6_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
  };
  RunPair(
      [&](Peer& peer) {
        V6 side;
        DAT_PSP_HANDLE psp;
        Must(dat_psp_create(side.ia, Port(0), side.evd, DAT_PSP_CONSUMER_FLAG, &psp));
        peer.Tell("listening");
        const auto request = NextRequest(side.evd);
        EXPECT_TRUE(is_own(request.local_ia_address_ptr));
        EXPECT_TRUE(is_own(ParametersOf(request).remote_ia_address_ptr));
        Must(dat_cr_accept(request.cr_handle, side.ep, 0, nullptr));
        NextConnection(side.evd, DAT_CONNECTION_EVENT_ESTABLISHED, side.ep);
        EXPECT_TRUE(is_own(ParametersOf(side.ep).remote_ia_address_ptr));
        peer.Await("done");
      },
      [&](Peer& peer) {
        V6 side;
        peer.Await("listening");
        Must(dat_ep_connect(side.ep, side.attributes.ia_address_ptr, Port(0), kPatience, 0, nullptr,
                            DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
        NextConnection(side.evd, DAT_CONNECTION_EVENT_ESTABLISHED, side.ep);
        const DAT_EP_PARAM param = ParametersOf(side.ep);
        EXPECT_TRUE(is_own(param.remote_ia_address_ptr));
        EXPECT_TRUE(is_own(param.local_ia_address_ptr));
        EXPECT_EQ(param.remote_port_qual, Port(0));
#if VIADUCT_TEST_DAT == 20
        EXPECT_EQ(param.comm.domain, AF_INET6);
#endif
        peer.Tell("done");
      });
}

}  // namespace
}  // namespace viaduct::tests
