#include "tests/conformance/vipl/side.h"

#include <stdlib.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"

namespace viaduct::tests {
namespace {

constexpr VIP_ULONG kLong = 20000;  // ms: never reached unless something is wrong
constexpr size_t kDescriptorRoom = 4096;
constexpr size_t kStride = 4096;

}  // namespace

int64_t NowMilliseconds() { return Now() / 1000000; }

NetAddress::NetAddress(const VIP_UINT8* host, size_t host_length,
                       const std::string& discriminator) {
  get()->HostAddressLen = static_cast<VIP_UINT16>(host_length);
  get()->DiscriminatorLen = static_cast<VIP_UINT16>(discriminator.size());
  unsigned char* at = bytes_ + offsetof(VIP_NET_ADDRESS, HostAddress);
  std::memcpy(at, host, host_length);
  std::memcpy(at + host_length, discriminator.data(), discriminator.size());
}

std::string NetAddress::host() const {
  VIP_UINT16 length;
  std::memcpy(&length, bytes_, sizeof length);
  return std::string(reinterpret_cast<const char*>(bytes_) + 4, length);
}

std::string NetAddress::discriminator() const {
  VIP_UINT16 host_length, length;
  std::memcpy(&host_length, bytes_, sizeof host_length);
  std::memcpy(&length, bytes_ + 2, sizeof length);
  return std::string(reinterpret_cast<const char*>(bytes_) + 4 + host_length, length);
}

std::string Name(int n) { return "v" + std::to_string(Port(n)); }

Nic::Nic(const char* name) {
  EXPECT_EQ(VipOpenNic(name, &handle), VIP_SUCCESS);
  EXPECT_EQ(VipQueryNic(handle, &attributes), VIP_SUCCESS);
}

Nic::~Nic() { VipCloseNic(handle); }

NetAddress Nic::Address(const std::string& discriminator) const {
  return NetAddress(attributes.LocalNicAddress, attributes.NicAddressLen, discriminator);
}

Memory::Memory(const Nic& nic, const VIP_MEM_ATTRIBUTES* attributes, size_t data_bytes)
    : nic_(nic.handle) {
  const size_t size = kDescriptors * kDescriptorRoom + data_bytes;
  EXPECT_EQ(posix_memalign(&bytes_, 64, size), 0);
  std::memset(bytes_, 0, size);
  VIP_MEM_ATTRIBUTES none = {};
  if (attributes != nullptr) none = *attributes;
  EXPECT_EQ(VipRegisterMem(nic_, bytes_, size, &none, &handle_), VIP_SUCCESS);
}

// The result is not checked: the NIC may be closed already.
Memory::~Memory() {
  VipDeregisterMem(nic_, bytes_, handle_);
  free(bytes_);
}

void Memory::Deregister() { EXPECT_EQ(VipDeregisterMem(nic_, bytes_, handle_), VIP_SUCCESS); }

VIP_DESCRIPTOR* Memory::descriptor(int n) const {
  return reinterpret_cast<VIP_DESCRIPTOR*>(static_cast<char*>(bytes_) +
                                           static_cast<size_t>(n) * kDescriptorRoom);
}

char* Memory::data() const { return static_cast<char*>(bytes_) + kDescriptors * kDescriptorRoom; }

VIP_DESCRIPTOR* Memory::Fill(int n, size_t offset, VIP_UINT32 length, VIP_UINT16 control,
                             VIP_UINT32 immediate) const {
  VIP_DESCRIPTOR* d = descriptor(n);
  std::memset(static_cast<void*>(d), 0, sizeof *d);
  d->CS.SegCount = length != 0 ? 1 : 0;
  d->CS.Control = control;
  d->CS.ImmediateData = immediate;
  d->CS.Length = length;
  d->DS[0].Local.Data.Address = data() + offset;
  d->DS[0].Local.Handle = handle_;
  d->DS[0].Local.Length = length;
  return d;
}

VIP_DESCRIPTOR* Memory::FillRdma(int n, VIP_UINT16 operation, size_t offset, VIP_UINT32 length,
                                 VIP_UINT64 remote, VIP_MEM_HANDLE remote_handle) const {
  VIP_DESCRIPTOR* d = Fill(n, offset, length, operation);
  d->CS.SegCount = 2;
  d->DS[1].Local = d->DS[0].Local;
  d->DS[0].Remote.Data.AddressBits = remote;
  d->DS[0].Remote.Handle = remote_handle;
  d->DS[0].Remote.Reserved = 0;
  return d;
}

VIP_VI_ATTRIBUTES Attributes(VIP_RELIABILITY_LEVEL level, VIP_ULONG max_transfer_size) {
  VIP_VI_ATTRIBUTES attributes = {};
  attributes.ReliabilityLevel = level;
  attributes.MaxTransferSize = max_transfer_size;
  return attributes;
}

Side::Side(const VIP_VI_ATTRIBUTES& vi_attributes) : memory(nic) {
  VIP_VI_ATTRIBUTES wanted = vi_attributes;
  EXPECT_EQ(VipCreateVi(nic.handle, &wanted, nullptr, nullptr, &vi), VIP_SUCCESS);
}

Side::~Side() = default;

VIP_VI_STATE Side::State() const {
  VIP_VI_STATE state;
  VIP_VI_ATTRIBUTES attributes;
  VIP_BOOLEAN sends_empty, receives_empty;
  EXPECT_EQ(::VipQueryVi(vi, &state, &attributes, &sends_empty, &receives_empty), VIP_SUCCESS);
  return state;
}

VIP_VI_ATTRIBUTES Side::QueryVi() const {
  VIP_VI_STATE state;
  VIP_VI_ATTRIBUTES attributes;
  VIP_BOOLEAN sends_empty, receives_empty;
  EXPECT_EQ(::VipQueryVi(vi, &state, &attributes, &sends_empty, &receives_empty), VIP_SUCCESS);
  return attributes;
}

VIP_CONN_HANDLE Side::TakeRequest(const std::string& name) {
  NetAddress local = nic.Address(name);
  VIP_CONN_HANDLE connection = nullptr;
  EXPECT_EQ(VipConnectWait(nic.handle, local.get(), kLong, requester.get(), &peer, &connection),
            VIP_SUCCESS);
  return connection;
}

void Side::Accept(int n) {
  const VIP_CONN_HANDLE connection = TakeRequest(Name(n));
  ASSERT_NE(connection, nullptr);
  ASSERT_EQ(VipConnectAccept(connection, vi), VIP_SUCCESS);
}

VIP_RETURN Side::Request(int n, VIP_ULONG timeout) {
  NetAddress local = nic.Address("client");
  NetAddress remote = nic.Address(Name(n));
  return VipConnectRequest(vi, local.get(), remote.get(), timeout, &peer);
}

VIP_RETURN Side::Connect(int n) {
  const int64_t end = NowMilliseconds() + static_cast<int64_t>(kLong);
  VIP_RETURN result;
  do {
    result = Request(n, kLong);
  } while (result == VIP_NO_MATCH && NowMilliseconds() < end);
  EXPECT_EQ(result, VIP_SUCCESS);
  return result;
}

void Side::Receive(int n, VIP_UINT32 length) {
  ASSERT_EQ(PostReceive(memory.Fill(n, static_cast<size_t>(n) * kStride, length)), VIP_SUCCESS);
}

VIP_DESCRIPTOR* Side::NextSend() {
  VIP_DESCRIPTOR* done = nullptr;
  EXPECT_NE(VipSendWait(vi, kLong, &done), VIP_TIMEOUT);
  EXPECT_NE(done, nullptr);
  return done;
}

VIP_DESCRIPTOR* Side::NextReceive() {
  VIP_DESCRIPTOR* done = nullptr;
  EXPECT_NE(VipRecvWait(vi, kLong, &done), VIP_TIMEOUT);
  EXPECT_NE(done, nullptr);
  return done;
}

void Side::SendText(int n, const std::string& text) {
  const size_t offset = static_cast<size_t>(n) * kStride;
  std::memcpy(memory.data() + offset, text.data(), text.size());
  VIP_DESCRIPTOR* d = memory.Fill(n, offset, static_cast<VIP_UINT32>(text.size()));
  ASSERT_EQ(PostSend(d), VIP_SUCCESS);
  VIP_DESCRIPTOR* done = NextSend();
  ASSERT_EQ(done, d);
  EXPECT_EQ(done->CS.Status & VIP_STATUS_ERROR_MASK, 0u);
}

std::string Side::TextOf(const VIP_DESCRIPTOR* descriptor) const {
  if (descriptor == nullptr) return "(no descriptor)";
  if ((descriptor->CS.Status & (VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK)) != VIP_STATUS_DONE) {
    return "(status " + std::to_string(descriptor->CS.Status) + ")";
  }
  return std::string(static_cast<const char*>(descriptor->DS[0].Local.Data.Address),
                     descriptor->CS.Length);
}

int Side::DrainFlushed() {
  int count = 0;
  VIP_DESCRIPTOR* done = nullptr;
  // Everything is flushed once VipDisconnect has returned, or once the state is Error.
  if (const VIP_VI_STATE state = State(); state != VIP_STATE_ERROR) {
    EXPECT_EQ(state, VIP_STATE_IDLE);
  }
  const auto take = [&](VIP_RETURN (*done_call)(VIP_VI_HANDLE, VIP_DESCRIPTOR**)) {
    while (true) {
      const VIP_RETURN result = done_call(vi, &done);
      if (done == nullptr) {
        EXPECT_EQ(result, VIP_DESCRIPTOR_ERROR) << "not everything was flushed";
        return;
      }
      EXPECT_EQ(result, VIP_DESCRIPTOR_ERROR);
      EXPECT_EQ(done->CS.Status & (VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK),
                static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR));
      ++count;
    }
  };
  take(&VipRecvDone);
  take(&VipSendDone);
  return count;
}

void Exchange(Side& side, Peer& peer, bool first) {
  side.Receive(0);
  peer.Tell("posted");
  peer.Await("posted");
  if (first) {
    side.SendText(16, "over");
    EXPECT_EQ(side.TextOf(side.NextReceive()), "back");
    // Over rxe, a process that exits as soon as it has a message may leave its sender without
    // a completion.
    peer.Await("sent");
  } else {
    EXPECT_EQ(side.TextOf(side.NextReceive()), "over");
    side.SendText(16, "back");
    peer.Tell("sent");
  }
}

struct ErrorLog::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<VIP_ERROR_DESCRIPTOR> errors;
};

ErrorLog::ErrorLog(VIP_NIC_HANDLE nic) : shared_(new Shared) {
  EXPECT_EQ(VipErrorCallback(nic, shared_, &Handle), VIP_SUCCESS);
}

void ErrorLog::Handle(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
  auto* shared = static_cast<Shared*>(context);
  const std::lock_guard<std::mutex> hold(shared->mutex);
  shared->errors.push_back(*error);
  shared->changed.notify_all();
}

bool ErrorLog::Next(VIP_ERROR_DESCRIPTOR* error) {
  std::unique_lock<std::mutex> hold(shared_->mutex);
  if (!shared_->changed.wait_for(hold, std::chrono::seconds(10),
                                 [this] { return !shared_->errors.empty(); })) {
    return false;
  }
  *error = shared_->errors.front();
  shared_->errors.pop_front();
  return true;
}

bool ErrorLog::empty() {
  const std::lock_guard<std::mutex> hold(shared_->mutex);
  return shared_->errors.empty();
}

}  // namespace viaduct::tests
