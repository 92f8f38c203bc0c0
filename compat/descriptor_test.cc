#include "compat/descriptor.h"

#include <utility>

#include "gtest/gtest.h"

namespace viaduct::compat {
namespace {

// VIPL checklist C57.
static_assert(sizeof(VIP_DESCRIPTOR) == 64);
static_assert(DescriptorBytes(2) == sizeof(VIP_DESCRIPTOR));

constexpr DescriptorLimits kLimits = {252, 1 << 20, verbs::kConfirm, true};

class DescriptorTest : public ::testing::Test {
 protected:
  void Segment(int index, VIP_UINT64 address, VIP_MEM_HANDLE handle, VIP_UINT32 length) {
    descriptor_.DS[index].Local.Data.AddressBits = address;
    descriptor_.DS[index].Local.Handle = handle;
    descriptor_.DS[index].Local.Length = length;
  }
  uint32_t Send() { return ReadSend(descriptor_, SegmentCountOf(descriptor_), kLimits, &send_); }
  uint32_t Receive() {
    return ReadReceive(descriptor_, SegmentCountOf(descriptor_), kLimits, &receive_);
  }

  VIP_DESCRIPTOR descriptor_ = {};
  verbs::SendRequest send_;
  verbs::ReceiveRequest receive_;
};

TEST_F(DescriptorTest, SendTakesTheSegmentsAsTheyStand) {
  Segment(0, 0x1000, 7, 10);
  Segment(1, 0x2000, 8, 20);
  descriptor_.CS.SegCount = 2;
  descriptor_.CS.Length = 30;
  descriptor_.CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
  descriptor_.CS.ImmediateData = 42;
  ASSERT_EQ(Send(), 0u);
  EXPECT_EQ(send_.opcode, verbs::Opcode::kSend);
  EXPECT_EQ(send_.flags, verbs::kConfirm | verbs::kImmediate);
  EXPECT_EQ(send_.immediate, 42u);
  ASSERT_EQ(send_.segments.size(), 2u);
  EXPECT_EQ(static_cast<const void*>(send_.segments.data()), &descriptor_.DS[0]);
  EXPECT_EQ(send_.segments[1].address, 0x2000u);
  EXPECT_EQ(send_.segments[1].key, 8u);
  EXPECT_EQ(send_.segments[1].length, 20u);
}

TEST_F(DescriptorTest, RdmaBeginsWithTheAddressSegment) {
  descriptor_.DS[0].Remote.Data.AddressBits = 0xabc;
  descriptor_.DS[0].Remote.Handle = 99;
  Segment(1, 0x2000, 8, 20);
  descriptor_.CS.SegCount = 2;
  descriptor_.CS.Length = 20;
  descriptor_.CS.Control = VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_QFENCE;
  ASSERT_EQ(Send(), 0u);
  EXPECT_EQ(send_.opcode, verbs::Opcode::kWrite);
  EXPECT_EQ(send_.remote_address, 0xabcu);
  EXPECT_EQ(send_.remote_key, 99u);
  EXPECT_EQ(send_.segments.size(), 1u);
  EXPECT_EQ(send_.flags, verbs::kConfirm | verbs::kFence);
  descriptor_.CS.Control = VIP_CONTROL_OP_RDMAREAD;
  ASSERT_EQ(Send(), 0u);
  EXPECT_EQ(send_.opcode, verbs::Opcode::kRead);
}

TEST_F(DescriptorTest, NoSegmentsIsAMessage) {
  descriptor_.CS.Control = VIP_CONTROL_IMMEDIATE;
  EXPECT_EQ(Send(), 0u);
  EXPECT_EQ(send_.segments.size(), 0u);
}

// VIPL checklist C73.
TEST_F(DescriptorTest, MalformedDescriptors) {
  descriptor_.CS.Control = VIP_CONTROL_OP_RESERVED;
  EXPECT_EQ(Send(), static_cast<uint32_t>(VIP_STATUS_FORMAT_ERROR));
  EXPECT_EQ(Receive(), static_cast<uint32_t>(VIP_STATUS_FORMAT_ERROR));
  descriptor_.CS.Control = 0x10;
  EXPECT_EQ(Send(), static_cast<uint32_t>(VIP_STATUS_FORMAT_ERROR));
  EXPECT_EQ(Receive(), static_cast<uint32_t>(VIP_STATUS_FORMAT_ERROR));
  descriptor_.CS.Control = VIP_CONTROL_OP_RDMAWRITE;  // without an address segment
  EXPECT_EQ(Send(), static_cast<uint32_t>(VIP_STATUS_FORMAT_ERROR));
  descriptor_.CS.Control = VIP_CONTROL_OP_RDMAREAD | VIP_CONTROL_IMMEDIATE;
  descriptor_.CS.SegCount = 1;
  EXPECT_EQ(Send(), static_cast<uint32_t>(VIP_STATUS_FORMAT_ERROR));
  descriptor_.CS.Control = 0;
  descriptor_.CS.SegCount = 253;
  EXPECT_EQ(Send(), static_cast<uint32_t>(VIP_STATUS_FORMAT_ERROR));
  EXPECT_EQ(Receive(), static_cast<uint32_t>(VIP_STATUS_FORMAT_ERROR));
  descriptor_.CS.Control = VIP_CONTROL_OP_RDMAWRITE;
  EXPECT_EQ(Receive(), static_cast<uint32_t>(VIP_STATUS_FORMAT_ERROR));
}

TEST_F(DescriptorTest, AMalformedRdmaHasItsOpcode) {
  for (const auto& [operation, opcode] :
       {std::pair(VIP_CONTROL_OP_RDMAWRITE, verbs::Opcode::kWrite),
        std::pair(VIP_CONTROL_OP_RDMAREAD, verbs::Opcode::kRead)}) {
    descriptor_.CS.SegCount = 1;
    descriptor_.CS.Length = 5;
    descriptor_.CS.Control = static_cast<VIP_UINT16>(operation);
    send_ = verbs::SendRequest();
    EXPECT_EQ(Send(), static_cast<uint32_t>(VIP_STATUS_LENGTH_ERROR));
    EXPECT_EQ(send_.opcode, opcode);
    for (const auto& [control, segments] :
         {std::pair(0x10, 1), std::pair(0, 0), std::pair(0, 253)}) {
      descriptor_.CS.Control = static_cast<VIP_UINT16>(operation | control);
      descriptor_.CS.SegCount = static_cast<VIP_UINT16>(segments);
      send_ = verbs::SendRequest();
      EXPECT_EQ(Send(), static_cast<uint32_t>(VIP_STATUS_FORMAT_ERROR)) << control << segments;
      EXPECT_EQ(send_.opcode, opcode) << control << segments;
    }
  }
}

TEST_F(DescriptorTest, ImmediateDataOfUnmarkedSends) {
  DescriptorLimits limits = kLimits;
  limits.all_immediate = true;
  descriptor_.CS.SegCount = 1;
  for (const auto& [control, carried] :
       {std::pair(VIP_CONTROL_OP_SENDRECV, true), std::pair(VIP_CONTROL_OP_RDMAWRITE, false),
        std::pair(VIP_CONTROL_OP_RDMAREAD, false)}) {
    descriptor_.CS.Control = static_cast<VIP_UINT16>(control);
    ASSERT_EQ(ReadSend(descriptor_, 1, limits, &send_), 0u) << control;
    EXPECT_EQ((send_.flags & verbs::kImmediate) != 0, carried) << control;
  }
}

TEST_F(DescriptorTest, RdmaReadWhereTheLevelHasNone) {
  DescriptorLimits limits = kLimits;
  limits.rdma_read = false;
  descriptor_.CS.SegCount = 1;
  descriptor_.CS.Control = VIP_CONTROL_OP_RDMAREAD;
  EXPECT_EQ(ReadSend(descriptor_, SegmentCountOf(descriptor_), limits, &send_),
            static_cast<uint32_t>(VIP_STATUS_FORMAT_ERROR));
  EXPECT_EQ(send_.opcode, verbs::Opcode::kRead);
}

// A peer may write SegCount when the caller has checked how many segments are readable.
TEST_F(DescriptorTest, SegCountIsNotReadAgain) {
  Segment(0, 0x1000, 7, 10);
  descriptor_.CS.SegCount = 200;
  descriptor_.CS.Length = 10;
  ASSERT_EQ(ReadSend(descriptor_, 1, kLimits, &send_), 0u);
  EXPECT_EQ(send_.segments.size(), 1u);
  ASSERT_EQ(ReadReceive(descriptor_, 1, kLimits, &receive_), 0u);
  EXPECT_EQ(receive_.segments.size(), 1u);
}

// VIPL checklist C72.
TEST_F(DescriptorTest, LengthsOfSends) {
  Segment(0, 0x1000, 7, 10);
  descriptor_.CS.SegCount = 1;
  descriptor_.CS.Length = 11;
  EXPECT_EQ(Send(), static_cast<uint32_t>(VIP_STATUS_LENGTH_ERROR));
  Segment(0, 0x1000, 7, (1 << 20) + 1);
  descriptor_.CS.Length = (1 << 20) + 1;
  EXPECT_EQ(Send(), static_cast<uint32_t>(VIP_STATUS_LENGTH_ERROR));
}

TEST_F(DescriptorTest, LengthOfAReceiveIsItsSegments) {
  Segment(0, 0x1000, 7, 10);
  descriptor_.CS.SegCount = 1;
  descriptor_.CS.Length = 3;  // what the last message left there
  EXPECT_EQ(Receive(), 0u);
  EXPECT_EQ(receive_.segments[0].length, 10u);
}

TEST_F(DescriptorTest, OneErrorBitForEachStatus) {
  using verbs::Status;
  const auto bits = [](Status status) {
    return ErrorBitsOf(status, VIP_SERVICE_RELIABLE_RECEPTION);
  };
  EXPECT_EQ(bits(Status::kSuccess), 0u);
  EXPECT_EQ(bits(Status::kFlushed), 0x20u);
  EXPECT_EQ(bits(Status::kLocalLength), 0x8u);
  EXPECT_EQ(bits(Status::kLocalProtection), 0x4u);
  EXPECT_EQ(bits(Status::kRemoteAccess), 0x80u);
  EXPECT_EQ(bits(Status::kRemoteOperation), 0x100u);
  EXPECT_EQ(bits(Status::kReceiverNotReady), 0x100u);
  EXPECT_EQ(bits(Status::kTransport), 0x40u);
}

TEST_F(DescriptorTest, OneOperationForEachOpcode) {
  EXPECT_EQ(OperationOf(verbs::Opcode::kSend), 0u);
  EXPECT_EQ(OperationOf(verbs::Opcode::kReceive), 0x10000u);
  EXPECT_EQ(OperationOf(verbs::Opcode::kReceiveInvalidate), 0x10000u);
  EXPECT_EQ(OperationOf(verbs::Opcode::kWrite), 0x20000u);
  EXPECT_EQ(OperationOf(verbs::Opcode::kReceiveWrite), 0x30000u);
  EXPECT_EQ(OperationOf(verbs::Opcode::kRead), 0x40000u);
}

TEST_F(DescriptorTest, ReliableDeliveryDoesNotKnowTheRemoteReceive) {
  EXPECT_EQ(ErrorBitsOf(verbs::Status::kRemoteOperation, VIP_SERVICE_RELIABLE_DELIVERY), 0x40u);
  EXPECT_EQ(ErrorBitsOf(verbs::Status::kReceiverNotReady, VIP_SERVICE_RELIABLE_DELIVERY), 0x40u);
}

}  // namespace
}  // namespace viaduct::compat
