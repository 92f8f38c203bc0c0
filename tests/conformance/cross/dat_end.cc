#include "tests/conformance/cross/dat_end.h"

#include <cstring>

#include "gtest/gtest.h"

namespace viaduct::tests {
namespace {

constexpr DAT_TIMEOUT kLong = 10000000;  // us
constexpr size_t kHalf = 4096;           // sends in front, receives behind
constexpr DAT_RETURN kSuccess = DAT_SUCCESS;

}  // namespace

DatEnd::DatEnd() {
  char name[] = "soft0";
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  EXPECT_EQ(dat_ia_open(name, 8, &async, &ia_), kSuccess);
  EXPECT_EQ(dat_pz_create(ia_, &pz_), kSuccess);
  requests_ = NewEvd(DAT_EVD_CR_FLAG);
  connections_ = NewEvd(DAT_EVD_CONNECTION_FLAG);
  receives_ = NewEvd(DAT_EVD_DTO_FLAG);
  sends_ = NewEvd(DAT_EVD_DTO_FLAG);
  EXPECT_EQ(dat_ep_create(ia_, pz_, receives_, sends_, connections_, nullptr, &ep), kSuccess);
  DAT_REGION_DESCRIPTION region;
  region.for_va = bytes_;
  DAT_LMR_HANDLE lmr;
  EXPECT_EQ(
      dat_lmr_create(ia_, DAT_MEM_TYPE_VIRTUAL, region, sizeof bytes_, pz_, DAT_MEM_PRIV_ALL_FLAG,
                     DAT_VA_TYPE_VA, &lmr, &context_, nullptr, nullptr, nullptr),
      kSuccess);
}

DatEnd::~DatEnd() { EXPECT_EQ(dat_ia_close(ia_, DAT_CLOSE_ABRUPT_FLAG), kSuccess); }

DAT_EVD_HANDLE DatEnd::NewEvd(DAT_EVD_FLAGS flags) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  EXPECT_EQ(dat_evd_create(ia_, 16, DAT_HANDLE_NULL, flags, &evd), kSuccess);
  return evd;
}

DAT_LMR_TRIPLET DatEnd::Segment(size_t offset, size_t length) {
  DAT_LMR_TRIPLET segment = {};
  segment.virtual_address = reinterpret_cast<uintptr_t>(bytes_ + offset);
  segment.segment_length = length;
  segment.lmr_context = context_;
  return segment;
}

void DatEnd::Listen(DAT_CONN_QUAL qualifier) {
  DAT_PSP_HANDLE psp;
  ASSERT_EQ(dat_psp_create(ia_, qualifier, requests_, DAT_PSP_CONSUMER_FLAG, &psp), kSuccess);
}

DAT_RETURN DatEnd::TryToListen(DAT_CONN_QUAL qualifier) {
  DAT_PSP_HANDLE psp;
  const DAT_RETURN result = dat_psp_create(ia_, qualifier, requests_, DAT_PSP_CONSUMER_FLAG, &psp);
  if (result == kSuccess) {
    EXPECT_EQ(dat_psp_free(psp), kSuccess);
  }
  return result;
}

DAT_CR_HANDLE DatEnd::NextRequest(DAT_CR_PARAM* shown) {
  DAT_EVENT event;
  DAT_COUNT more;
  if (dat_evd_wait(requests_, kLong, 1, &event, &more) != kSuccess) {
    ADD_FAILURE() << "no connection request";
    return DAT_HANDLE_NULL;
  }
  const DAT_CR_HANDLE request = event.event_data.cr_arrival_event_data.cr_handle;
  EXPECT_EQ(dat_cr_query(request, DAT_CR_FIELD_ALL, shown), kSuccess);
  return request;
}

void DatEnd::Accept(DAT_CR_HANDLE request) {
  ASSERT_EQ(dat_cr_accept(request, ep, 0, nullptr), kSuccess);
  ASSERT_EQ(NextConnectionEvent(), static_cast<DAT_EVENT_NUMBER>(DAT_CONNECTION_EVENT_ESTABLISHED));
}

DAT_RETURN DatEnd::Connect(DAT_CONN_QUAL qualifier) {
  DAT_IA_ATTR attributes;
  EXPECT_EQ(
      dat_ia_query(ia_, nullptr, DAT_IA_FIELD_ALL, &attributes, DAT_PROVIDER_FIELD_NONE, nullptr),
      kSuccess);
  return dat_ep_connect(ep, attributes.ia_address_ptr, qualifier, kLong, 0, nullptr,
                        DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

void DatEnd::Reset() {
  ASSERT_EQ(dat_ep_reset(ep), kSuccess);
  DAT_EVENT event;
  while (dat_evd_dequeue(receives_, &event) == kSuccess) {
  }
}

DAT_EVENT_NUMBER DatEnd::NextConnectionEvent() {
  DAT_EVENT event;
  DAT_COUNT more;
  return dat_evd_wait(connections_, kLong, 1, &event, &more) == kSuccess
             ? event.event_number
             : static_cast<DAT_EVENT_NUMBER>(0);
}

void DatEnd::PostReceive() {
  DAT_LMR_TRIPLET segment = Segment(kHalf, kHalf);
  DAT_DTO_COOKIE cookie = {};
  ASSERT_EQ(dat_ep_post_recv(ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG), kSuccess);
}

std::string DatEnd::NextMessage() {
  DAT_EVENT event;
  DAT_COUNT more;
  if (dat_evd_wait(receives_, kLong, 1, &event, &more) != kSuccess) return "(nothing)";
  const DAT_DTO_COMPLETION_EVENT_DATA& done = event.event_data.dto_completion_event_data;
  if (done.status != DAT_DTO_SUCCESS) return "(status " + std::to_string(done.status) + ")";
  return std::string(bytes_ + kHalf, done.transfered_length);
}

void DatEnd::Send(const std::string& text) {
  std::memcpy(bytes_, text.data(), text.size());
  DAT_LMR_TRIPLET segment = Segment(0, text.size());
  DAT_DTO_COOKIE cookie = {};
  ASSERT_EQ(dat_ep_post_send(ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG), kSuccess);
  DAT_EVENT event;
  DAT_COUNT more;
  ASSERT_EQ(dat_evd_wait(sends_, kLong, 1, &event, &more), kSuccess);
  EXPECT_EQ(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}

}  // namespace viaduct::tests
