#include <dat2/udat.h>
#include <netinet/in.h>
#include <string.h>

#include <vector>

#include "tests/hotpath/no_shared_lock.h"

namespace viaduct::hotpath {
namespace {

constexpr DAT_TIMEOUT kTimeoutMicroseconds = 20000000;
constexpr DAT_CONN_QUAL kQualifier = 0x10c5;

void Must(DAT_RETURN result) { ASSERT_EQ(result, DAT_SUCCESS); }

// One adapter, one zone, one region; for each connection two endpoints with an event dispatcher
// each.
class DatProgram {
 public:
  explicit DatProgram(int connections) : lines_(static_cast<size_t>(connections)) {
    DAT_EVD_HANDLE asynchronous = DAT_HANDLE_NULL;
    char name[] = "soft0";
    Must(dat_ia_open(name, 8, &asynchronous, &ia_));
    DAT_IA_ATTR attributes;
    Must(dat_ia_query(ia_, nullptr, DAT_IA_FIELD_ALL, &attributes, 0, nullptr));
    memcpy(&address_, attributes.ia_address_ptr, sizeof(sockaddr_in));
    Must(dat_pz_create(ia_, &zone_));
    DAT_REGION_DESCRIPTION region;
    region.for_va = lines_.data();
    DAT_LMR_HANDLE memory;
    DAT_RMR_CONTEXT remote;
    DAT_VLEN length;
    DAT_VADDR start;
    Must(dat_lmr_create(ia_, DAT_MEM_TYPE_VIRTUAL, region, lines_.size() * sizeof(Line), zone_,
                        static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_LOCAL_READ_FLAG |
                                                        DAT_MEM_PRIV_LOCAL_WRITE_FLAG),
                        DAT_VA_TYPE_VA, &memory, &context_, &remote, &length, &start));
    requests_ = Dispatcher(DAT_EVD_CR_FLAG);
    connects_ = Dispatcher(DAT_EVD_CONNECTION_FLAG);
    DAT_PSP_HANDLE service_point;
    Must(dat_psp_create(ia_, kQualifier, requests_, DAT_PSP_CONSUMER_FLAG, &service_point));
    for (Line& line : lines_) Connect(line);
  }
  ~DatProgram() { dat_ia_close(ia_, DAT_CLOSE_ABRUPT_FLAG); }

  void Exchange(int c) {
    Line& line = lines_[static_cast<size_t>(c)];
    const DAT_DTO_COOKIE cookie = {};
    DAT_LMR_TRIPLET in = Local(line.in), out = Local(line.out);
    Must(dat_ep_post_recv(line.to.endpoint, 1, &in, cookie, DAT_COMPLETION_DEFAULT_FLAG));
    Must(dat_ep_post_send(line.from.endpoint, 1, &out, cookie, DAT_COMPLETION_DEFAULT_FLAG));
    Take(line.to.completions);
    Take(line.from.completions);
  }

 private:
  struct End {
    DAT_EP_HANDLE endpoint;
    DAT_EVD_HANDLE completions;
  };
  struct Line {
    char in[64];
    char out[64];
    End from;
    End to;
  };

  DAT_EVD_HANDLE Dispatcher(DAT_EVD_FLAGS streams) {
    DAT_EVD_HANDLE made = DAT_HANDLE_NULL;
    Must(dat_evd_create(ia_, 64, DAT_HANDLE_NULL, streams, &made));
    return made;
  }
  void Make(End& end) {
    end.completions = Dispatcher(DAT_EVD_DTO_FLAG);
    Must(dat_ep_create(ia_, zone_, end.completions, end.completions, connects_, nullptr,
                       &end.endpoint));
  }
  void Connect(Line& line) {
    Make(line.from);
    Make(line.to);
    Must(dat_ep_connect(line.from.endpoint, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address_),
                        kQualifier, kTimeoutMicroseconds, 0, nullptr, DAT_QOS_BEST_EFFORT,
                        DAT_CONNECT_DEFAULT_FLAG));
    DAT_EVENT event;
    DAT_COUNT more;
    Must(dat_evd_wait(requests_, kTimeoutMicroseconds, 1, &event, &more));
    Must(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, line.to.endpoint, 0,
                       nullptr));
    for (int i = 0; i < 2; ++i) {
      Must(dat_evd_wait(connects_, kTimeoutMicroseconds, 1, &event, &more));
      ASSERT_EQ(event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
    }
  }
  DAT_LMR_TRIPLET Local(char* data) const {
    DAT_LMR_TRIPLET triplet = {};
    triplet.virtual_address = reinterpret_cast<uint64_t>(data);
    triplet.segment_length = 8;
    triplet.lmr_context = context_;
    return triplet;
  }
  static void Take(DAT_EVD_HANDLE completions) {
    DAT_EVENT event;
    DAT_RETURN result;
    while (DAT_GET_TYPE(result = dat_evd_dequeue(completions, &event)) == DAT_QUEUE_EMPTY) {
    }
    Must(result);
    ASSERT_EQ(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
  }

  DAT_IA_HANDLE ia_ = DAT_HANDLE_NULL;
  sockaddr_in address_ = {};
  DAT_PZ_HANDLE zone_ = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT context_ = 0;
  DAT_EVD_HANDLE requests_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE connects_ = DAT_HANDLE_NULL;
  std::vector<Line> lines_;
};

TEST(NoSharedLock, Dat) { NobodyWaitsForAStoppedThread<DatProgram>(); }

}  // namespace
}  // namespace viaduct::hotpath
