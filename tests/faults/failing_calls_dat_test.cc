// Each system call in the life of a DAT program fails once: the program gets an error, or never
// notices, but nothing hangs, crashes or stays behind, and its peer, one process for all lives,
// goes on. The peer also goes on if the program is killed at the call.
#include <functional>

#include "absl/cleanup/cleanup.h"
#include "gtest/gtest.h"
#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/harness.h"
#include "tests/faults/lives.h"

namespace viaduct::tests {
namespace {

constexpr int kRounds = 3;

DAT_TIMEOUT TimeoutOf(Patience patience) {
  if (patience == Patience::kForever) return DAT_TIMEOUT_INFINITE;
  return patience == Patience::kLong ? 2 * kPatience : 2 * kSecond;
}

void Try(DAT_RETURN value, const char* call) {
  if (value != DAT_SUCCESS) throw Refused(call);
}

// Expects that what is waited for comes, or that a call reports that it will not.
void TryWait(DAT_RETURN value, const char* what) {
  if (Fails(value, DAT_TIMEOUT_EXPIRED)) ADD_FAILURE() << what << " never came";
  Try(value, what);
}
DAT_EVENT Await(DAT_EVD_HANDLE evd, const char* what, Patience patience = Patience::kLong) {
  DAT_EVENT event;
  DAT_COUNT more;
  TryWait(dat_evd_wait(evd, TimeoutOf(patience), 1, &event, &more), what);
  return event;
}

// A program that checks every return value.
class Program {
 public:
  Program() {
    char name[] = "soft0";
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    Try(dat_ia_open(name, 8, &async, &ia_), "dat_ia_open");
    try {
      Prepare();
    } catch (const Refused&) {
      Close();
      throw;
    }
  }
  ~Program() { Close(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  char Serve(char say, Patience patience) {
    if (psp_ == DAT_HANDLE_NULL) {
      Try(dat_psp_create(ia_, Port(0), requests_, DAT_PSP_CONSUMER_FLAG, &psp_), "dat_psp_create");
    }
    const DAT_EVENT request = Await(requests_, "a request", patience);
    const DAT_CR_HANDLE cr = request.event_data.cr_arrival_event_data.cr_handle;
    return Live([&](DAT_EP_HANDLE ep) { return dat_cr_accept(cr, ep, 0, nullptr); }, say, false);
  }
  char Call(char say, Patience patience) {
    sockaddr_in to = Ipv4("127.0.0.1");
    return Live(
        [&](DAT_EP_HANDLE ep) {
          return dat_ep_connect(ep, Pointer(to), Port(0), TimeoutOf(patience), 0, nullptr,
                                DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
        },
        say, true);
  }

 private:
  void Prepare() {
    Try(dat_pz_create(ia_, &pz_), "dat_pz_create");
    Try(dat_cno_create(ia_, DAT_OS_WAIT_PROXY_AGENT_NULL, &notifier_), "dat_cno_create");
    NewEvd(DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests_);
    NewEvd(DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &connections_);
    NewEvd(notifier_, DAT_EVD_DTO_FLAG, &sends_);
    NewEvd(DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &receives_);
    DAT_REGION_DESCRIPTION region;
    region.for_va = bytes_;
    DAT_LMR_HANDLE lmr;
    Try(dat_lmr_create(ia_, DAT_MEM_TYPE_VIRTUAL, region, sizeof bytes_, pz_, DAT_MEM_PRIV_ALL_FLAG,
                       DAT_VA_TYPE_VA, &lmr, &lmr_context_, nullptr, nullptr, nullptr),
        "dat_lmr_create");
  }
  void NewEvd(DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE* evd) {
    Try(dat_evd_create(ia_, 16, cno, flags, evd), "dat_evd_create");
  }
  void Close() { EXPECT_EQ(dat_ia_close(ia_, DAT_CLOSE_ABRUPT_FLAG), DAT_RETURN{DAT_SUCCESS}); }

  char Live(const std::function<DAT_RETURN(DAT_EP_HANDLE)>& begin, char say, bool first) {
    DAT_EP_HANDLE ep;
    Try(dat_ep_create(ia_, pz_, receives_, sends_, connections_, nullptr, &ep), "dat_ep_create");
    absl::Cleanup free = [&] {
      EXPECT_EQ(dat_ep_free(ep), DAT_RETURN{DAT_SUCCESS});
      DAT_EVENT left;
      for (DAT_EVD_HANDLE evd : {connections_, sends_, receives_}) {
        while (dat_evd_dequeue(evd, &left) == DAT_SUCCESS) {
        }
      }
    };
    for (int round = 0; round < kRounds; ++round) {
      DAT_LMR_TRIPLET in = Triplet(&bytes_[1], 1, lmr_context_);
      Try(dat_ep_post_recv(ep, 1, &in, Cookie(0), DAT_COMPLETION_DEFAULT_FLAG), "a receive");
    }
    Try(begin(ep), "connecting");
    if (Await(connections_, "the begin").event_number != DAT_CONNECTION_EVENT_ESTABLISHED) {
      throw Refused("no connection");
    }
    bytes_[0] = say;
    for (int round = 0; round < kRounds; ++round) {
      if (first) Say(ep);
      Complete(Await(receives_, "a message"));
      if (!first) Say(ep);
    }
    if (first) Try(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
    (void)Await(connections_, "the end");
    return bytes_[1];
  }
  void Say(DAT_EP_HANDLE ep) {
    DAT_LMR_TRIPLET out = Triplet(&bytes_[0], 1, lmr_context_);
    Try(dat_ep_post_send(ep, 1, &out, Cookie(0), DAT_COMPLETION_DEFAULT_FLAG), "a send");
    Complete(AwaitSend());
  }
  DAT_EVENT AwaitSend() {
    DAT_EVENT event;
    while (dat_evd_dequeue(sends_, &event) != DAT_SUCCESS) {
      DAT_EVD_HANDLE evd;
      TryWait(dat_cno_wait(notifier_, TimeoutOf(Patience::kLong), &evd), "the notifier's word");
    }
    return event;
  }
  // A transfer that fails ends the connection, and the end is reported.
  void Complete(const DAT_EVENT& event) {
    if (event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS) return;
    (void)Await(connections_, "the end");
    throw Refused("the connection is lost");
  }

  DAT_IA_HANDLE ia_ = DAT_HANDLE_NULL;
  DAT_PZ_HANDLE pz_ = DAT_HANDLE_NULL;
  DAT_CNO_HANDLE notifier_ = DAT_HANDLE_NULL;
  DAT_PSP_HANDLE psp_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE requests_ = DAT_HANDLE_NULL, connections_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE sends_ = DAT_HANDLE_NULL, receives_ = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT lmr_context_ = 0;
  char bytes_[2] = {};
};

TEST(FailingCalls, OfAClient) { TryEachCallOfAClient<Program>(FailEachCall); }
TEST(FailingCalls, OfAServer) { TryEachCallOfAServer<Program>(FailEachCall); }

TEST(LastCall, OfAClient) { TryEachCallOfAClient<Program>(DieAtEachCall); }
TEST(LastCall, OfAServer) { TryEachCallOfAServer<Program>(DieAtEachCall); }

}  // namespace
}  // namespace viaduct::tests
