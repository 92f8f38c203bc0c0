#include "dat/api/ep_attributes.h"

#include "dat/api/return_code.h"
#include "gtest/gtest.h"

namespace viaduct::dat {
namespace {

verbs::DeviceAttributes Device() {
  verbs::DeviceAttributes device;
  device.max_requests_per_queue = 1000;
  device.max_segments = 32;
  device.max_reads_in = 16;
  device.max_reads_out = 8;
  device.max_message_bytes = 1 << 30;
  return device;
}

class EpAttributes : public ::testing::Test {
 protected:
  DAT_RETURN Apply(const DAT_EP_ATTR& attributes,
                   DAT_EP_PARAM_MASK mask = DAT_EP_FIELD_EP_ATTR_ALL) {
    return ApplyAttributes(attributes, mask, 6, device_, &engine_, &asked_);
  }
  DAT_EP_ATTR Show() const {
    DAT_EP_ATTR shown;
    ShowAttributes(engine_, asked_, device_, &shown);
    return shown;
  }
  verbs::DeviceAttributes device_ = Device();
  core::EndpointAttributes engine_;
  AskedAttributes asked_;
};

TEST_F(EpAttributes, DefaultsAreShown) {
  const DAT_EP_ATTR shown = Show();
  EXPECT_EQ(shown.service_type, DAT_SERVICE_TYPE_RC);
  EXPECT_EQ(shown.max_message_size, 1u << 30);
  EXPECT_EQ(shown.max_rdma_size, 1u << 30);
  EXPECT_EQ(shown.max_recv_dtos, 256);
  EXPECT_EQ(shown.max_rdma_read_in, 16);
  EXPECT_EQ(shown.max_rdma_read_out, 8);
}

// dtest and MVAPICH2 ask for 0 and mean "whatever there is".
TEST_F(EpAttributes, ZeroIsTheDefault) {
  ASSERT_EQ(Apply(DAT_EP_ATTR()), DAT_RETURN{DAT_SUCCESS});
  const DAT_EP_ATTR shown = Show();
  EXPECT_EQ(shown.max_message_size, 1u << 30);
  EXPECT_EQ(shown.max_request_dtos, 256);
  EXPECT_EQ(shown.max_recv_iov, 16);
  EXPECT_EQ(shown.max_rdma_read_iov, 16);
  EXPECT_EQ(shown.srq_soft_hw, static_cast<DAT_COUNT>(DAT_HW_DEFAULT));
}

// Sends, writes and reads share a queue, so the largest of their limits counts.
TEST_F(EpAttributes, TheMostSegmentsOfAnyRequestCount) {
  for (DAT_COUNT DAT_EP_ATTR::*most :
       {&DAT_EP_ATTR::max_request_iov, &DAT_EP_ATTR::max_rdma_read_iov,
        &DAT_EP_ATTR::max_rdma_write_iov}) {
    engine_ = core::EndpointAttributes();
    DAT_EP_ATTR asked = {};
    asked.max_request_iov = asked.max_rdma_read_iov = asked.max_rdma_write_iov = 2;
    asked.*most = 9;
    ASSERT_EQ(Apply(asked), DAT_RETURN{DAT_SUCCESS});
    EXPECT_EQ(Show().max_request_iov, 9);
  }
}

// dat_ep_modify of one of the limits leaves the others what they were.
TEST_F(EpAttributes, WhatTheMaskDoesNotNameKeepsItsSegments) {
  DAT_EP_ATTR asked = {};
  asked.max_request_iov = 4;
  asked.max_rdma_write_iov = 16;
  asked.max_rdma_read_iov = 1;
  ASSERT_EQ(Apply(asked), DAT_RETURN{DAT_SUCCESS});
  ASSERT_EQ(Apply(asked, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV), DAT_RETURN{DAT_SUCCESS});
  EXPECT_EQ(Show().max_rdma_write_iov, 16);
  asked.max_rdma_write_iov = 2;
  ASSERT_EQ(Apply(asked), DAT_RETURN{DAT_SUCCESS});
  EXPECT_EQ(Show().max_rdma_write_iov, 4) << "all are named";
}

// It counts what a message has taken from a shared queue, which may be longer than an endpoint's.
TEST_F(EpAttributes, TheSoftWatermarkMayBeAsHighAsASharedQueueIsLong) {
  device_.max_shared_receives = 3000;
  DAT_EP_ATTR asked = {};
  asked.srq_soft_hw = 3000;
  ASSERT_EQ(Apply(asked), DAT_RETURN{DAT_SUCCESS});
  EXPECT_EQ(Show().srq_soft_hw, 3000);
  asked.srq_soft_hw = 3001;
  EXPECT_NE(Apply(asked), DAT_RETURN{DAT_SUCCESS});
}

TEST_F(EpAttributes, TheDefaultIsNoMoreThanTheDeviceHas) {
  verbs::DeviceAttributes small = Device();
  small.max_requests_per_queue = 100;
  small.max_segments = 4;
  ASSERT_EQ(ApplyAttributes(DAT_EP_ATTR(), DAT_EP_FIELD_EP_ATTR_ALL, 6, small, &engine_, &asked_),
            DAT_RETURN{DAT_SUCCESS});
  EXPECT_EQ(engine_.max_sends, 100u);
  EXPECT_EQ(engine_.max_receives, 100u);
  EXPECT_EQ(engine_.max_send_segments, 4u);
  EXPECT_EQ(engine_.max_receive_segments, 4u);
}

TEST_F(EpAttributes, WhatWasAskedIsShown) {
  DAT_EP_ATTR asked = {};
  asked.max_message_size = 1000;
  asked.max_rdma_size = 2000;
  asked.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
  asked.max_recv_dtos = 10;
  asked.max_request_dtos = 11;
  asked.max_recv_iov = 3;
  asked.max_request_iov = 4;
  asked.max_rdma_read_in = 5;
  asked.max_rdma_read_out = 6;
  asked.max_rdma_read_iov = 2;
  asked.max_rdma_write_iov = 7;
  asked.srq_soft_hw = 8;
  ASSERT_EQ(Apply(asked), DAT_RETURN{DAT_SUCCESS});
  asked_ = AskedAttributes::Unpack(asked_.Pack());
  const DAT_EP_ATTR shown = Show();
  EXPECT_EQ(shown.max_message_size, 1000u);
  EXPECT_EQ(shown.max_rdma_size, 2000u);
  EXPECT_EQ(shown.recv_completion_flags, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
  EXPECT_EQ(shown.request_completion_flags, DAT_COMPLETION_DEFAULT_FLAG);
  EXPECT_EQ(shown.max_recv_dtos, 10);
  EXPECT_EQ(shown.max_request_dtos, 11);
  EXPECT_EQ(shown.max_recv_iov, 3);
  EXPECT_EQ(shown.max_request_iov, 7);  // requests share a queue
  EXPECT_EQ(shown.max_rdma_read_iov, 7);
  EXPECT_EQ(shown.max_rdma_write_iov, 7);
  EXPECT_EQ(shown.max_rdma_read_in, 5);
  EXPECT_EQ(shown.max_rdma_read_out, 6);
  EXPECT_EQ(shown.srq_soft_hw, 8);
  asked.srq_soft_hw = DAT_HW_DEFAULT;
  ASSERT_EQ(Apply(asked, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW), DAT_RETURN{DAT_SUCCESS});
  EXPECT_EQ(Show().srq_soft_hw, static_cast<DAT_COUNT>(DAT_HW_DEFAULT));
}

TEST_F(EpAttributes, OnlyTheMaskIsTaken) {
  DAT_EP_ATTR asked = {};
  asked.max_recv_dtos = -1;
  asked.max_request_dtos = 12;
  ASSERT_EQ(Apply(asked, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS), DAT_RETURN{DAT_SUCCESS});
  EXPECT_EQ(engine_.max_sends, 12u);
  EXPECT_EQ(engine_.max_receives, 256u);
}

TEST_F(EpAttributes, AboveTheDeviceOrNegativeIsInvalid) {
  for (DAT_COUNT DAT_EP_ATTR::*member :
       {&DAT_EP_ATTR::max_recv_dtos, &DAT_EP_ATTR::max_request_dtos, &DAT_EP_ATTR::max_recv_iov,
        &DAT_EP_ATTR::max_request_iov, &DAT_EP_ATTR::max_rdma_read_in,
        &DAT_EP_ATTR::max_rdma_read_out, &DAT_EP_ATTR::max_rdma_read_iov,
        &DAT_EP_ATTR::max_rdma_write_iov, &DAT_EP_ATTR::srq_soft_hw}) {
    for (DAT_COUNT value : {-2, 1001}) {
      DAT_EP_ATTR asked = {};
      asked.max_request_dtos = 17;
      asked.*member = value;
      EXPECT_EQ(Apply(asked), BadParameter(6));
      EXPECT_EQ(engine_.max_sends, 256u) << "changed although it failed";
    }
  }
  DAT_EP_ATTR asked = {};
  asked.max_message_size = (DAT_VLEN{1} << 31) + 1;
  EXPECT_EQ(Apply(asked), BadParameter(6));
  asked = {};
  asked.max_rdma_size = (DAT_VLEN{1} << 31) + 1;
  EXPECT_EQ(Apply(asked), BadParameter(6));
}

// MVAPICH2 asks for InfiniBand's longest message of every device.
TEST_F(EpAttributes, ALengthBeyondTheDevicesIsTheDevices) {
  DAT_EP_ATTR asked = {};
  asked.max_message_size = asked.max_rdma_size = DAT_VLEN{1} << 31;
  ASSERT_EQ(Apply(asked), DAT_RETURN{DAT_SUCCESS});
  EXPECT_EQ(Show().max_message_size, DAT_VLEN{1} << 30);
  EXPECT_EQ(Show().max_rdma_size, DAT_VLEN{1} << 30);
}

TEST_F(EpAttributes, ModelsThatAreNotThere) {
  DAT_EP_ATTR asked = {};
  asked.qos = DAT_QOS_LOW_LATENCY;
  EXPECT_EQ(Apply(asked), Failure(DAT_MODEL_NOT_SUPPORTED));
  asked = {};
  asked.service_type = static_cast<DAT_SERVICE_TYPE>(DAT_SERVICE_TYPE_RC + 1);
  EXPECT_EQ(Apply(asked), Failure(DAT_MODEL_NOT_SUPPORTED));
  EXPECT_EQ(Apply(asked, DAT_EP_FIELD_EP_ATTR_QOS), DAT_RETURN{DAT_SUCCESS});
}

TEST_F(EpAttributes, ModesOfTheStreams) {
  DAT_EP_ATTR asked = {};
  asked.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
  asked.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
  ASSERT_EQ(Apply(asked), DAT_RETURN{DAT_SUCCESS});
  EXPECT_EQ(engine_.receive_mode, core::CompletionMode::kSolicited);
  EXPECT_EQ(engine_.request_mode, core::CompletionMode::kUnsignalled);
  EXPECT_EQ(Show().recv_completion_flags, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
  EXPECT_EQ(Show().request_completion_flags, DAT_COMPLETION_UNSIGNALLED_FLAG);
  asked.request_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;  // as NetPIPE does
  ASSERT_EQ(Apply(asked), DAT_RETURN{DAT_SUCCESS});
  EXPECT_EQ(engine_.request_mode, core::CompletionMode::kDefault);
  EXPECT_EQ(Show().request_completion_flags, DAT_COMPLETION_SUPPRESS_FLAG);
  asked.recv_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;  // receives would be lost
  EXPECT_EQ(Apply(asked), BadParameter(6));
  asked.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
  for (unsigned wrong :
       {DAT_COMPLETION_SOLICITED_WAIT_FLAG + 0u,  // for receives only
        DAT_COMPLETION_UNSIGNALLED_FLAG | (DAT_COMPLETION_EVD_THRESHOLD_FLAG + 0u)}) {
    asked.request_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(wrong);
    EXPECT_EQ(Apply(asked), BadParameter(6));
  }
}

}  // namespace
}  // namespace viaduct::dat
