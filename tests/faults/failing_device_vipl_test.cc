// failing_device_dat_test.cc for VIPL programs. Whatever fails, each descriptor comes back once, a
// VI that loses its connection is notified, and the two VIs connect once more and exchange all of
// their messages.
#include <unistd.h>
#include <vipl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/faults/failing_device.h"

namespace viaduct::tests {
namespace {

constexpr VIP_ULONG kPatience = 20'000;  // ms
constexpr int kReceives = 4;             // posted at a time
constexpr int kSlots = 16;               // descriptors of an end, half of them for receives
constexpr int kFew = 2, kMany = 20;      // segments; the device takes fewer than kMany
constexpr VIP_UINT32 kRoom = 1024;       // bytes of a message at most

enum Side { kSend, kReceive };

// The connection has ended early: the program may begin once more.
class Interrupted : public Refused {
 public:
  using Refused::Refused;
};

void Try(VIP_RETURN value, const char* call) {
  if (value == VIP_SUCCESS) return;
  EXPECT_EQ(value, VIP_ERROR_RESOURCE) << call;
  throw Refused(call + (": " + std::to_string(value)));
}
void Must(VIP_RETURN value, const char* call) { EXPECT_EQ(value, VIP_SUCCESS) << call; }

struct Kind {
  const char* name;
  VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY;
  bool cq = false;          // one for all queues
  bool rejects = false;     // the server
  bool takes_back = false;  // memory of posted descriptors
  bool abandons = false;    // leaves all it has to VipCloseNic
};

// Collects the arguments of the handlers.
class News {
 public:
  static void OnError(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    News& news = *static_cast<News*>(context);
    news.Note([&] {
      switch (error->ErrorCode) {
        case VIP_ERROR_CONN_LOST:
          ++news.lost_[error->ViHandle];
          break;
        case VIP_ERROR_VI_OVERRUN:
        case VIP_ERROR_COMP_PROT:
          news.untold_.insert(error->DescriptorPtr);
          break;
        default:
          ADD_FAILURE() << "asynchronous error " << error->ErrorCode;
      }
    });
  }
  static void OnDescriptor(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE,
                           VIP_DESCRIPTOR* descriptor) {
    News& news = *static_cast<News*>(context);
    news.Note([&] { news.descriptors_.push_back(descriptor); });
  }
  static void OnEntry(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE vi, VIP_BOOLEAN receive) {
    News& news = *static_cast<News*>(context);
    news.Note([&] { news.entries_.emplace_back(vi, receive); });
  }

  int Lost(VIP_VI_HANDLE vi) {
    const std::lock_guard<std::mutex> hold(mutex_);
    return lost_[vi];
  }
  bool AwaitLost(VIP_VI_HANDLE vi, int times) {
    return Await([&] { return lost_[vi] >= times; });
  }
  // The error of a descriptor that was not taken, or into which nothing could be written.
  bool AwaitUntold(VIP_DESCRIPTOR* descriptor) {
    return Await([&] { return untold_.erase(descriptor) != 0; });
  }
  bool AwaitDescriptor(VIP_DESCRIPTOR** descriptor) {
    return Await([&] { return Pop(descriptors_, descriptor); });
  }
  using Entry = std::pair<VIP_VI_HANDLE, VIP_BOOLEAN>;
  bool AwaitEntry(Entry* entry) {
    return Await([&] { return Pop(entries_, entry); });
  }

 private:
  template <typename T>
  static bool Pop(std::deque<T>& from, T* first) {
    if (from.empty()) return false;
    *first = from.front();
    from.pop_front();
    return true;
  }
  void Note(const std::function<void()>& note) {
    const std::lock_guard<std::mutex> hold(mutex_);
    note();
    changed_.notify_all();
  }
  bool Await(const std::function<bool()>& come) {
    std::unique_lock<std::mutex> hold(mutex_);
    return changed_.wait_for(hold, std::chrono::milliseconds(kPatience), come);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<VIP_VI_HANDLE, int> lost_;
  std::set<VIP_DESCRIPTOR*> untold_;
  std::deque<VIP_DESCRIPTOR*> descriptors_;
  std::deque<Entry> entries_;
};

struct alignas(VIP_DESCRIPTOR_ALIGNMENT) Slot {
  VIP_DESCRIPTOR descriptor;
  VIP_DESCRIPTOR_SEGMENT more[kMany];
};

struct Posted {
  VIP_DESCRIPTOR* descriptor;
  VIP_UINT32 operation;  // as in its Status
  bool told = true;      // its memory is still registered
};

struct End {
  VIP_VI_HANDLE vi = nullptr;
  Slot* slots = nullptr;
  char* bytes = nullptr;  // kRoom for each slot
  int next[2] = {};       // slots
  std::deque<Posted> posted[2];
  int lost = 0;  // connections
};

// A VIP_NET_ADDRESS of this process.
class Address {
 public:
  Address(const VIP_NIC_ATTRIBUTES& nic, VIP_UINT16 name) {
    get()->HostAddressLen = nic.NicAddressLen;
    memcpy(get()->HostAddress, nic.LocalNicAddress, nic.NicAddressLen);
    get()->DiscriminatorLen = 6;
    const pid_t process = getpid();
    memcpy(get()->HostAddress + nic.NicAddressLen, &process, 4);
    memcpy(get()->HostAddress + nic.NicAddressLen + 4, &name, 2);
  }
  VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes_); }

 private:
  alignas(8) char bytes_[64] = {};
};

// Both ends of a connection, in one process.
class Program {
 public:
  explicit Program(const Kind& kind) : kind_(kind) {
    const VIP_RETURN opened = VipOpenNic("nic0", &nic_);
    // librdmacm does not report why it knows no device.
    if (opened == VIP_INVALID_PARAMETER) throw Refused("VipOpenNic");
    Try(opened, "VipOpenNic");
    Must(VipQueryNic(nic_, &attributes_), "VipQueryNic");
    Must(VipErrorCallback(nic_, &news_, News::OnError), "VipErrorCallback");
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  ~Program() {
    if (!kind_.abandons) {
      for (End* end : {&from_, &to_}) {
        if (end->vi == nullptr) continue;
        Must(VipDisconnect(end->vi), "VipDisconnect");
        Drain(*end);
        Must(VipDestroyVi(end->vi), "VipDestroyVi");
      }
      if (cq_ != nullptr) Must(VipDestroyCQ(cq_), "VipDestroyCQ");
      for (const auto& [memory, handle] : registered_) {
        Must(VipDeregisterMem(nic_, memory, handle), "VipDeregisterMem");
      }
    }
    Must(VipCloseNic(nic_), "VipCloseNic");
  }

  void Live() {
    Make();
    std::string early;
    for (bool done = false; !done;) {
      try {
        Begin();
        if (kind_.rejects) break;
        Talk();
        if (kind_.takes_back) TakeBack();
        done = true;
      } catch (const Interrupted& interrupted) {
        ASSERT_EQ(early, "") << "then: " << interrupted.what();
        early = interrupted.what();
      }
    }
    if (!kind_.rejects && !kind_.abandons) Finish();
    for (End* end : {&from_, &to_}) {
      if (!reliable()) break;  // what has failed need not end the connection
      EXPECT_EQ(news_.Lost(end->vi), end->lost) << (end == &from_ ? "active" : "passive");
    }
    if (!early.empty()) throw Refused(early);
  }

 private:
  bool reliable() const { return kind_.level != VIP_SERVICE_UNRELIABLE; }
  End& Other(End& end) { return &end == &from_ ? to_ : from_; }

  VIP_MEM_HANDLE Register(void* memory, VIP_ULONG bytes) {
    VIP_MEM_ATTRIBUTES all = {nullptr, VIP_TRUE, VIP_TRUE};
    VIP_MEM_HANDLE handle = 0;
    Try(VipRegisterMem(nic_, memory, bytes, &all, &handle), "VipRegisterMem");
    registered_.emplace_back(memory, handle);
    return handle;
  }
  void Make() {
    handle_ = Register(&memory_, sizeof memory_);
    if (kind_.cq) Try(VipCreateCQ(nic_, 64, &cq_), "VipCreateCQ");
    VIP_VI_ATTRIBUTES attributes = {kind_.level, 65536, nullptr, nullptr, VIP_TRUE, reliable()};
    for (int i = 0; i < 2; ++i) {
      End& end = i == 0 ? from_ : to_;
      Try(VipCreateVi(nic_, &attributes, cq_, cq_, &end.vi), "VipCreateVi");
      end.slots = memory_.slots[i];
      end.bytes = memory_.bytes[i];
    }
  }

  // Spreads `length` bytes over `segments` segments.
  static void Spread(VIP_DESCRIPTOR* descriptor, int first, int segments, char* bytes,
                     VIP_UINT32 length, VIP_MEM_HANDLE handle) {
    const VIP_UINT32 piece = length / static_cast<VIP_UINT32>(segments);
    for (int i = 0; i < segments; ++i) {
      VIP_DATA_SEGMENT& segment = descriptor->DS[first + i].Local;
      segment.Data.Address = bytes;
      segment.Handle = handle;
      segment.Length = i + 1 < segments ? piece : length;
      bytes += piece;
      length -= piece;
    }
    descriptor->CS.SegCount = static_cast<VIP_UINT16>(first + segments);
  }
  void PostReceive(End& end, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE handle, bool told) {
    Must(VipPostRecv(end.vi, descriptor, handle), "VipPostRecv");
    end.posted[kReceive].push_back({descriptor, VIP_STATUS_OP_RECEIVE, told});
  }
  void Receive(End& end) {
    const int slot = end.next[kReceive]++ % (kSlots / 2);
    VIP_DESCRIPTOR* const descriptor = &end.slots[slot].descriptor;
    *descriptor = {};
    char* const bytes = end.bytes + slot * kRoom;
    memset(bytes, 0, kRoom);
    Spread(descriptor, 0, slot % 2 == 0 ? kFew : kMany, bytes, kRoom, handle_);
    PostReceive(end, descriptor, handle_, true);
  }
  void Prepare() {
    for (End* end : {&from_, &to_}) {
      while (end->posted[kReceive].size() < kReceives) Receive(*end);
    }
  }

  VIP_VI_STATE State(End& end, bool* no_sends = nullptr, bool* no_receives = nullptr) {
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN sends = VIP_FALSE, receives = VIP_FALSE;
    Must(VipQueryVi(end.vi, &state, &attributes, &sends, &receives), "VipQueryVi");
    if (no_sends != nullptr) *no_sends = sends == VIP_TRUE;
    if (no_receives != nullptr) *no_receives = receives == VIP_TRUE;
    return state;
  }
  bool IsEmpty(End& end, Side side) {
    bool none[2];
    State(end, &none[kSend], &none[kReceive]);
    return none[side];
  }

  // ---- connecting

  void Begin() {
    Prepare();
    Address here(attributes_, 1), there(attributes_, 2);
    VIP_RETURN asked = VIP_NOT_DONE, answered = VIP_NOT_DONE;
    std::atomic<bool> decided{false};
    // From now on there is a listener.
    VIP_CONN_HANDLE request = nullptr;
    Wait(there, 0, &request);
    std::thread client([&] {
      VIP_VI_ATTRIBUTES theirs;
      asked = VipConnectRequest(from_.vi, here.get(), there.get(), kPatience, &theirs);
      decided = true;
    });
    while (answered != VIP_SUCCESS && !decided) {
      if (Wait(there, 2, &request)) answered = Answer(request);
      if (kind_.rejects && answered == VIP_REJECT) break;
    }
    client.join();
    if (kind_.rejects) {
      Unconnected(asked, from_);
      if (asked != VIP_REJECT) throw Refused("rejected: " + std::to_string(asked));
      return;
    }
    if (asked == VIP_SUCCESS && answered == VIP_SUCCESS) return;
    const std::string how =
        "no connection: " + std::to_string(asked) + ", " + std::to_string(answered);
    if (answered == VIP_SUCCESS) Lose(to_);
    if (asked == VIP_SUCCESS) {
      Lose(from_);
    } else {
      Unconnected(asked, from_);
    }
    throw Interrupted(how);
  }
  // Returns false if there is no request.
  bool Wait(Address& name, VIP_ULONG timeout, VIP_CONN_HANDLE* request) {
    Address of(attributes_, 0);
    VIP_VI_ATTRIBUTES theirs;
    const VIP_RETURN code = VipConnectWait(nic_, name.get(), timeout, of.get(), &theirs, request);
    EXPECT_TRUE(code == VIP_SUCCESS || code == VIP_TIMEOUT || code == VIP_ERROR_RESOURCE) << code;
    return code == VIP_SUCCESS;
  }
  VIP_RETURN Answer(VIP_CONN_HANDLE request) {
    if (!kind_.rejects) {
      const VIP_RETURN code = VipConnectAccept(request, to_.vi);
      if (code == VIP_SUCCESS) return code;
      EXPECT_TRUE(code == VIP_TIMEOUT || code == VIP_ERROR_RESOURCE) << code;
      Unconnected(code, to_);
      EXPECT_EQ(VipConnectAccept(request, to_.vi), VIP_TIMEOUT) << "it is decided, and the VI Idle";
      Must(VipConnectReject(request), "VipConnectReject");
      return code;
    }
    Must(VipConnectReject(request), "VipConnectReject");
    return VIP_REJECT;
  }
  // Checks the state after a failed attempt.
  void Unconnected(VIP_RETURN code, End& end) {
    SCOPED_TRACE(&end == &from_ ? "VipConnectRequest" : "VipConnectAccept");
    const std::set<VIP_RETURN> known = {VIP_TIMEOUT, VIP_REJECT, VIP_NO_MATCH, VIP_NOT_REACHABLE,
                                        VIP_ERROR_RESOURCE};
    EXPECT_TRUE(known.contains(code)) << code;
    if (code == VIP_NOT_REACHABLE && reliable()) {
      EXPECT_EQ(State(end), VIP_STATE_ERROR);
      Leave(end);
      return;
    }
    EXPECT_EQ(State(end), VIP_STATE_IDLE);
    EXPECT_FALSE(IsEmpty(end, kReceive)) << "the receives are gone";
  }

  // ---- descriptors

  struct Done {
    VIP_UINT32 status;
    VIP_DESCRIPTOR* descriptor;  // null: it was not taken
    bool ok() const { return descriptor != nullptr && (status & VIP_STATUS_ERROR_MASK) == 0; }
  };

  [[noreturn]] static void NeverCame(const char* what) {
    ADD_FAILURE() << what << " never came";
    throw Refused(what);
  }

  // Takes the oldest descriptor of a queue, which has to come.
  Done Next(End& end, Side side) {
    const Posted oldest = end.posted[side].front();
    end.posted[side].pop_front();
    if (IsEmpty(end, side)) {
      if (!news_.AwaitUntold(oldest.descriptor)) NeverCame("the word of a descriptor not taken");
      return {0, nullptr};
    }
    VIP_DESCRIPTOR* descriptor = nullptr;
    const VIP_RETURN code = kind_.cq ? TakeByEntry(end, side, &descriptor)
                                     : Take(end, side, oldest.told ? turn_++ % 3 : 1, &descriptor);
    EXPECT_EQ(descriptor, oldest.descriptor);
    if (descriptor != oldest.descriptor) throw Refused("another descriptor");
    if (!oldest.told) {
      if (!news_.AwaitUntold(descriptor)) NeverCame("the word of memory that is not registered");
      return {code == VIP_SUCCESS ? 0u : VIP_STATUS_DESC_FLUSHED_ERROR, descriptor};
    }
    const VIP_UINT32 status = descriptor->CS.Status;
    Check(end, oldest, status);
    if (code != VIP_NOT_DONE) {
      EXPECT_EQ(code == VIP_SUCCESS, (status & VIP_STATUS_ERROR_MASK) == 0) << code;
    }
    return {status, descriptor};
  }
  void Check(End&, const Posted& posted, VIP_UINT32 status) {
    EXPECT_TRUE((status & VIP_STATUS_DONE) != 0) << std::hex << status;
    const bool receive = posted.operation == VIP_STATUS_OP_RECEIVE;
    VIP_UINT32 known = VIP_STATUS_PROTECTION_ERROR | VIP_STATUS_LENGTH_ERROR |
                       VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_TRANSPORT_ERROR;
    if (!receive) {
      known |= VIP_STATUS_RDMA_PROT_ERROR;
      if (kind_.level == VIP_SERVICE_RELIABLE_RECEPTION) known |= VIP_STATUS_REMOTE_DESC_ERROR;
    }
    const VIP_UINT32 errors = status & VIP_STATUS_ERROR_MASK;
    EXPECT_EQ(errors & ~known, 0u) << std::hex << status;
    EXPECT_EQ(errors & (errors - 1), 0u) << std::hex << status;
    EXPECT_EQ(status & VIP_STATUS_RESERVED, 0u) << std::hex << status;
    const VIP_UINT32 operation = status & VIP_STATUS_OP_MASK;
    EXPECT_TRUE(operation == posted.operation ||
                (receive && operation == VIP_STATUS_OP_REMOTE_RDMA_WRITE))
        << std::hex << status;
  }

  // Takes a descriptor in one of three ways. Returns VIP_NOT_DONE if the handler has got it.
  VIP_RETURN Take(End& end, Side side, int way, VIP_DESCRIPTOR** descriptor) {
    const bool sends = side == kSend;
    VIP_RETURN code = VIP_NOT_DONE;
    if (way == 0) {
      for (int i = 0; code == VIP_NOT_DONE && i < 100'000; ++i) {
        code = (sends ? VipSendDone : VipRecvDone)(end.vi, descriptor);
        if (code == VIP_NOT_DONE) usleep(i < 1000 ? 0 : 200);
      }
    } else if (way == 1) {
      code = (sends ? VipSendWait : VipRecvWait)(end.vi, kPatience, descriptor);
    } else {
      Must((sends ? VipSendNotify : VipRecvNotify)(end.vi, &news_, News::OnDescriptor), "a notify");
      (void)news_.AwaitDescriptor(descriptor);
    }
    if (*descriptor == nullptr) NeverCame("a completion");
    EXPECT_TRUE(code == VIP_SUCCESS || code == VIP_DESCRIPTOR_ERROR || way == 2) << code;
    return code;
  }
  VIP_RETURN TakeByEntry(End& end, Side side, VIP_DESCRIPTOR** descriptor) {
    const News::Entry wanted = {end.vi, side == kReceive ? VIP_TRUE : VIP_FALSE};
    for (;;) {
      const auto found = std::find(entries_.begin(), entries_.end(), wanted);
      if (found != entries_.end()) {
        entries_.erase(found);
        break;
      }
      entries_.push_back(NextEntry(turn_++ % 3));
    }
    const VIP_RETURN code = (side == kSend ? VipSendDone : VipRecvDone)(end.vi, descriptor);
    EXPECT_TRUE(code == VIP_SUCCESS || code == VIP_DESCRIPTOR_ERROR) << code;
    return code;
  }
  News::Entry NextEntry(int way) {
    News::Entry entry = {};
    VIP_RETURN code = VIP_NOT_DONE;
    if (way == 0) {
      for (int i = 0; code == VIP_NOT_DONE && i < 100'000; ++i) {
        code = VipCQDone(cq_, &entry.first, &entry.second);
        if (code == VIP_NOT_DONE) usleep(i < 1000 ? 0 : 200);
      }
    } else if (way == 1) {
      code = VipCQWait(cq_, kPatience, &entry.first, &entry.second);
    } else {
      Must(VipCQNotify(cq_, &news_, News::OnEntry), "VipCQNotify");
      if (news_.AwaitEntry(&entry)) code = VIP_SUCCESS;
    }
    if (code != VIP_SUCCESS) NeverCame("an entry");
    return entry;
  }

  // Everything that is posted comes back, and nothing else.
  void Drain(End& end) {
    for (const Side side : {kSend, kReceive}) {
      while (!end.posted[side].empty()) Next(end, side);
      VIP_DESCRIPTOR* more = nullptr;
      EXPECT_EQ((side == kSend ? VipSendDone : VipRecvDone)(end.vi, &more), VIP_DESCRIPTOR_ERROR);
      EXPECT_EQ(more, nullptr);
    }
  }

  // ---- the end of a connection

  // The connection is lost, of which `end` is notified once.
  void Lose(End& end) {
    SCOPED_TRACE(&end == &from_ ? "active" : "passive");
    if (!news_.AwaitLost(end.vi, ++end.lost)) NeverCame("VIP_ERROR_CONN_LOST");
    EXPECT_EQ(State(end), VIP_STATE_ERROR);
    Receive(end);
    Leave(end);
  }
  // Takes the VI from Error, where all is flushed, to Idle.
  void Leave(End& end) {
    Drain(end);
    Must(VipDisconnect(end.vi), "VipDisconnect");
    EXPECT_EQ(State(end), VIP_STATE_IDLE);
  }
  [[noreturn]] void Break(const std::string& why) {
    SCOPED_TRACE(why);
    for (End* end : {&from_, &to_}) {
      if (reliable()) {
        Lose(*end);
        continue;
      }
      // An unreliable connection may go on without what has failed.
      Must(VipDisconnect(end->vi), "VipDisconnect");
      Drain(*end);
    }
    throw Interrupted("the connection is lost: " + why);
  }
  void Finish() {
    Must(VipDisconnect(from_.vi), "VipDisconnect");
    EXPECT_EQ(State(from_), VIP_STATE_IDLE);
    Drain(from_);
    Lose(to_);
  }

  // ---- talking

  void Post(End& end, int operation, int segments, VIP_UINT32 bytes, bool immediate) {
    const int slot = kSlots / 2 + end.next[kSend]++ % (kSlots / 2);
    VIP_DESCRIPTOR* const descriptor = &end.slots[slot].descriptor;
    *descriptor = {};
    descriptor->CS.Control = static_cast<VIP_UINT16>(operation);
    if (immediate) descriptor->CS.Control |= VIP_CONTROL_IMMEDIATE;
    descriptor->CS.ImmediateData = ++value_;
    descriptor->CS.Length = bytes;
    char* const own = end.bytes + slot * kRoom;
    char* const there = memory_.remote;
    char* const source = operation == VIP_CONTROL_OP_RDMAREAD ? there : own;
    char* const sink = operation == VIP_CONTROL_OP_RDMAREAD ? own : there;
    memset(sink, 0, kRoom);
    for (VIP_UINT32 i = 0; i < bytes; ++i) source[i] = static_cast<char>(value_ + 7 * i);
    const bool rdma = operation != VIP_CONTROL_OP_SENDRECV;
    if (rdma) {
      descriptor->DS[0].Remote.Data.Address = there;
      descriptor->DS[0].Remote.Handle = handle_;
    }
    Spread(descriptor, rdma ? 1 : 0, segments, own, bytes, handle_);
    Must(VipPostSend(end.vi, descriptor, handle_), "VipPostSend");
    const VIP_UINT32 operations[] = {VIP_STATUS_OP_SEND, VIP_STATUS_OP_RDMA_WRITE,
                                     VIP_STATUS_OP_RDMA_READ};
    end.posted[kSend].push_back({descriptor, operations[operation]});
  }
  void Said(End& end, const char* what) {
    const Done done = Next(end, kSend);
    if (!done.ok()) Break(what + (": " + std::to_string(done.status)));
  }
  void Heard(End& end, VIP_UINT32 operation, VIP_UINT32 bytes, bool immediate, VIP_UINT32 value) {
    const Done done = Next(end, kReceive);
    if (!done.ok()) Break("a receive: " + std::to_string(done.status));
    EXPECT_EQ(done.status, VIP_STATUS_DONE | operation | (immediate ? VIP_STATUS_IMMEDIATE : 0));
    EXPECT_EQ(done.descriptor->CS.Length, bytes);
    if (immediate) {
      EXPECT_EQ(done.descriptor->CS.ImmediateData, value);
    }
    const char* const memory = operation == VIP_STATUS_OP_RECEIVE
                                   ? static_cast<char*>(done.descriptor->DS[0].Local.Data.Address)
                                   : memory_.remote;
    EXPECT_TRUE(Came(memory, bytes, value));
  }
  static bool Came(const char* memory, VIP_UINT32 bytes, VIP_UINT32 value) {
    for (VIP_UINT32 i = 0; i < bytes; ++i) {
      if (memory[i] != static_cast<char>(value + 7 * i)) return false;
    }
    return true;
  }

  void Say(End& end, int segments, VIP_UINT32 bytes, bool immediate) {
    Post(end, VIP_CONTROL_OP_SENDRECV, segments, bytes, immediate);
    Said(end, "a send");
    Heard(Other(end), VIP_STATUS_OP_RECEIVE, bytes, immediate, value_);
  }
  void Write(End& end, int segments, VIP_UINT32 bytes, bool immediate) {
    Post(end, VIP_CONTROL_OP_RDMAWRITE, segments, bytes, immediate);
    Said(end, "a write");
    if (immediate) {
      Heard(Other(end), VIP_STATUS_OP_REMOTE_RDMA_WRITE, bytes, true, value_);
    } else {
      EXPECT_TRUE(Came(memory_.remote, bytes, value_));
    }
  }
  void Read(End& end, int segments, VIP_UINT32 bytes) {
    Post(end, VIP_CONTROL_OP_RDMAREAD, segments, bytes, false);
    const VIP_DESCRIPTOR* const read = end.posted[kSend].back().descriptor;
    Said(end, "a read");
    EXPECT_TRUE(Came(static_cast<const char*>(read->DS[1].Local.Data.Address), bytes, value_));
  }
  void Talk() {
    Say(from_, 1, 40, true);
    Say(to_, kMany, 900, false);
    Prepare();
    Write(from_, 1, 300, false);
    Write(from_, kFew, 200, true);
    Write(to_, kMany, 1000, true);
    Prepare();
    if (reliable()) {
      Read(to_, 1, 100);
      Read(from_, kMany, 1000);
    }
    // Several at a time.
    for (int i = 0; i < 3; ++i) Post(from_, VIP_CONTROL_OP_SENDRECV, kFew + i, 500, i % 2 == 0);
    for (int i = 0; i < 3; ++i) Said(from_, "one of several sends");
    for (int i = 0; i < 3; ++i) {
      Heard(to_, VIP_STATUS_OP_RECEIVE, 500, i % 2 == 0, value_ - 2 + static_cast<VIP_UINT32>(i));
    }
  }

  // Deregisters memory of posted receives: the data of the first, the descriptor of the second.
  void TakeBack() {
    while (!to_.posted[kReceive].empty()) Say(from_, 1, 20, false);
    const VIP_MEM_HANDLE handle = Register(&spare_, sizeof spare_);
    VIP_DESCRIPTOR* const first = &to_.slots[0].descriptor;
    VIP_DESCRIPTOR* const second = &spare_.slot.descriptor;
    *first = *second = {};
    Spread(first, 0, 1, spare_.bytes, kRoom, handle);
    Spread(second, 0, 1, to_.bytes, kRoom, handle_);
    PostReceive(to_, first, handle_, true);
    PostReceive(to_, second, handle, false);
    registered_.pop_back();
    Must(VipDeregisterMem(nic_, &spare_, handle), "VipDeregisterMem");
    for (int i = 0; i < 2; ++i) Post(from_, VIP_CONTROL_OP_SENDRECV, 1, 20, false);
    bool ok = true;
    for (int i = 0; i < 2; ++i) ok = Next(to_, kReceive).ok() && ok;
    for (int i = 0; i < 2; ++i) ok = Next(from_, kSend).ok() && ok;
    if (!ok) Break("memory was taken back");
  }

  const Kind kind_;
  News news_;
  VIP_NIC_HANDLE nic_ = nullptr;
  VIP_NIC_ATTRIBUTES attributes_ = {};
  VIP_MEM_HANDLE handle_ = 0;
  VIP_CQ_HANDLE cq_ = nullptr;
  std::vector<std::pair<void*, VIP_MEM_HANDLE>> registered_;
  End from_, to_;
  int turn_ = 0;  // selects the way to take
  std::vector<News::Entry> entries_;
  VIP_UINT32 value_ = 0;
  struct {
    Slot slots[2][kSlots];
    char bytes[2][kSlots * kRoom];
    char remote[kRoom];
  } memory_ = {};
  struct {
    Slot slot;
    char bytes[kRoom];
  } spare_ = {};
};

class FailingDevice : public testing::TestWithParam<Kind> {};

TEST_P(FailingDevice, EachCallFails) {
  FailEachCallOfTheDevice([] { std::make_unique<Program>(GetParam())->Live(); });
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, FailingDevice,
    testing::Values(
        Kind{.name = "Delivery", .takes_back = true},
        Kind{.name = "Reception", .level = VIP_SERVICE_RELIABLE_RECEPTION, .cq = true},
        Kind{.name = "Unreliable", .level = VIP_SERVICE_UNRELIABLE, .cq = true, .abandons = true},
        Kind{.name = "Rejected", .rejects = true}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace viaduct::tests
