#include "verbs/rdma/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "verbs/base/log.h"
#include "verbs/rdma/errors.h"
#include "verbs/rdma/patience.h"
#include "verbs/rdma/shared_receive_queue.h"

namespace viaduct::verbs::rdma {
Connection* Connection::ForDial(Device& device, ConnectionOwner* owner, absl::Status* status) {
  Connection* connection = new Connection(device, nullptr);
  connection->SetOwner(owner);
  if (rdma_create_id(device.connections(), &connection->id_, static_cast<CmHandler*>(connection),
                     RDMA_PS_TCP) != 0) {
    *status = ErrnoStatus(errno, "rdma_create_id");
    delete connection;
    return nullptr;
  }
  return connection;
}

Connection* Connection::ForRequest(Device& device, rdma_cm_id* id) {
  Connection* connection = new Connection(device, id);
  id->context = static_cast<CmHandler*>(connection);
  return connection;
}

void Connection::DestroyPair() {
  if (pair_ == nullptr) return;
  if (options_.shared != nullptr) {
    // Who harvests may have looked it up there, and is at work on it.
    SpinLockHolder guard(&options_.queues[kReceives]->lock);
    options_.shared->Leave(pair_->qp_num);
  }
  ibv_destroy_qp(pair_);
  pair_ = nullptr;
}

void Connection::DestroyId() {
  if (id_ == nullptr) return;
  DestroyPair();
  rdma_destroy_id(id_);
  id_ = nullptr;
}

Connection::~Connection() {
  DestroyId();
  for (Landing& bounce : bounces_) options_.domain->bounces().GiveBack(bounce.memory);
  for (Bounce& bounce : left_) options_.domain->bounces().GiveBack(bounce);
  for (FrameSlots& frames : frames_) {
    if (!frames.empty()) frames.GiveBack(options_.domain->bounces());
  }
  for (int i = 0; i < 2; ++i) {
    if (numbers_[i] >= 0) options_.queues[i]->Release(numbers_[i], reserved_[i]);
  }
}

void Connection::SetOwner(ConnectionOwner* owner) {
  MutexLock lock(&mutex_);
  owner_ = owner;
}

ConnectionOwner* Connection::owner() {
  MutexLock lock(&mutex_);
  return owner_;
}

absl::Status Connection::MakePair(const PairOptions& options, WorkQueue* sends,
                                  WorkQueue* receives) {
  options_ = options;
  const ibv_device_attr& limits = device_.limits();
  const uint32_t most_requests = static_cast<uint32_t>(limits.max_qp_wr);
  const uint32_t most_segments = static_cast<uint32_t>(limits.max_sge);
  const uint32_t lead = options.may_frame ? 1 : 0;
  ibv_qp_init_attr wanted = {};
  wanted.qp_context = static_cast<QpHandler*>(this);
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  wanted.cap.max_send_wr = std::clamp(options.max_sends, 1u, most_requests);
  wanted.cap.max_recv_wr = std::clamp(options.max_receives, 1u, most_requests);
  wanted.cap.max_send_sge = std::clamp(options.max_send_segments + lead, 1u, most_segments);
  wanted.cap.max_recv_sge = std::clamp(options.max_receive_segments + lead, 1u, most_segments);
  wanted.cap.max_inline_data = device_.max_inline();
  reserved_[kSends] = wanted.cap.max_send_wr;
  reserved_[kReceives] = wanted.cap.max_recv_wr;
  if (options.shared != nullptr) {
    wanted.srq = options.shared->handle();
    wanted.cap.max_recv_wr = 0;
    reserved_[kReceives] = options.shared->depth();
  }
  for (int i = 0; i < 2; ++i) {
    numbers_[i] = options.queues[i]->Reserve(reserved_[i]);
    if (numbers_[i] < 0) return absl::ResourceExhaustedError("no room for completions");
  }
  WorkQueue* const queues[2] = {sends, receives};
  if (options.may_frame) {
    for (int i = 0; i < 2; ++i) {
      if (!frames_[i].Allocate(options.domain->bounces(), queues[i]->slots())) {
        return absl::ResourceExhaustedError("no memory for frames");
      }
    }
  }
  wanted.send_cq = options.queues[kSends]->handle(numbers_[kSends]);
  wanted.recv_cq = options.queues[kReceives]->handle(numbers_[kReceives]);
  send_depth_ = wanted.cap.max_send_wr;
  max_segments_[kSends] = wanted.cap.max_send_sge;
  max_segments_[kReceives] = wanted.cap.max_recv_sge;
  if (rdma_create_qp(id_, options.domain->handle, &wanted) != 0) {
    // With limits that the device has shown: the id's connection is over.
    if (errno == EINVAL) return absl::AbortedError("the peer has given up");
    return ErrnoStatus(errno, "rdma_create_qp");
  }
  pair_ = id_->qp;
  if (options.shared != nullptr) options.shared->Join(pair_->qp_num, this);
  for (int i = 0; i < 2; ++i) {
    SpinLockHolder guard(&options_.queues[i]->lock);
    queues_[i] = queues[i];
  }
  return absl::OkStatus();
}

bool Connection::ReceiveIntoBounces(int count, uint32_t bytes) {
  std::vector<Landing> bounces(count);
  for (Landing& bounce : bounces) {
    bounce.memory = options_.domain->bounces().Take(bytes);
    if (bounce.memory.memory == nullptr) {
      for (Landing& taken : bounces) options_.domain->bounces().GiveBack(taken.memory);
      return false;
    }
  }
  SpinLockHolder guard(&options_.queues[kReceives]->lock);
  bounces_ = std::move(bounces);
  queues_[kReceives]->Set(WorkQueue::kBounced);
  for (uint32_t slot = 0; slot < bounces_.size(); ++slot) PostBounce(slot);
  return true;
}

bool Connection::PostBounce(uint32_t slot) {
  if (stopping_) return false;
  const Bounce& bounce = bounces_[slot].memory;
  ibv_sge segments[2] = {};
  int count = 0;
  bounces_[slot].leads = may_frame();
  if (may_frame()) segments[count++] = frames_[kReceives].SegmentAt(slot);
  segments[count++] = {reinterpret_cast<uint64_t>(bounce.memory), bounce.size,
                       bounce.registration->lkey};
  ibv_recv_wr request = {};
  request.wr_id = WorkId::Of(this, kReceives);
  request.sg_list = segments;
  request.num_sge = count;
  ibv_recv_wr* bad;
  if (ibv_post_recv(pair_, &request, &bad) != 0) return false;
  Posted(kReceives, 1);
  return true;
}

void Connection::Connect(rdma_conn_param parameters, absl::Span<const uint8_t> private_data) {
  const std::string data(private_data.begin(), private_data.end());
  auto connect = [this, parameters, data]() mutable {
    parameters.private_data = data.data();
    parameters.private_data_len = static_cast<uint8_t>(data.size());
    const int error = rdma_connect(id_, &parameters) == 0 ? 0 : errno;
    device_.loop().Post([this, error] {
      dialing_ = false;
      if (buried_) return TryToDestroy(0);
      if (error == 0) return;
      CmEvent event;
      event.type = RDMA_CM_EVENT_ADDR_ERROR;
      event.status = -error;
      OnCmEvent(event);
    });
  };
  dialing_ = dialled_ = true;
  if (!device_.iwarp()) {
    connect();
  } else if (!Device::RunAside(connect)) {
    device_.loop().Post([this] {
      dialing_ = false;
      if (buried_) return TryToDestroy(0);
      CmEvent event;
      event.type = RDMA_CM_EVENT_ADDR_ERROR;
      event.status = -ENOMEM;
      OnCmEvent(event);
    });
  }
}

// -------------------------------------------------------------------------------- completions

void Connection::Complete(Direction direction, const ibv_wc& completion) {
  CountSeen(direction);
  WorkQueue* const queue = queues_[direction];
  if (queue == nullptr) return;  // released
  // What a failed attempt flushes is still posted.
  if (completion.status == IBV_WC_WR_FLUSH_ERR && !established_) return;
  if (completion.status != IBV_WC_SUCCESS) NoteFailure(completion);
  if (direction == kReceives && may_frame() && framing() == Framing::kUnknown) {
    early_.push_back(completion);
    return;
  }
  Take(direction, *queue, completion);
}

void Connection::SetFramed(bool framed) {
  if (!may_frame()) return;
  framing_.store(framed ? Framing::kFramed : Framing::kUnframed, std::memory_order_relaxed);
  for (const ibv_wc& completion : std::exchange(early_, {})) {
    if (queues_[kReceives] != nullptr) Take(kReceives, *queues_[kReceives], completion);
  }
}

void Connection::Take(Direction direction, WorkQueue& queue, const ibv_wc& completion) {
  if (direction == kReceives && bouncing()) {
    ReceiveBounced(queue, completion);
    return;
  }
  WorkRecord* const record = queue.OldestAtDevice();
  if (record == nullptr) return;
  Status status = CompletionStatus(completion.status);
  if (status == Status::kFlushed && AnswerIsMissing(*record)) {
    status = Status::kTransport;
    set_failed();
  }
  if (direction == kReceives && status != Status::kSuccess && status != Status::kFlushed) {
    status = ReceiveError(queue, *record);
  }
  if (record->status == Status::kSuccess) record->status = status;
  if (direction == kReceives && status == Status::kSuccess) {
    Receive(*record, completion);
    if (record->rest == WorkRecord::Rest::kFrame) {
      record->status = framing() == Framing::kFramed
                           ? ReceiveBehindFrame(queue, *record, completion.byte_len)
                           : ReceiveUnframed(queue, *record, completion.byte_len);
    } else if (record->bounce.memory != nullptr && record->opcode != Opcode::kReceiveWrite) {
      record->status =
          Scatter(*record, queue.SegmentsOf(*record), record->bounce.memory, completion.byte_len);
    }
  }
  if (--record->parts == 0) Finish(direction, queue, *record);
}

// What the device did not see fail: a request that it refused, a message that is no frame.
void Connection::Break() {
  set_failed();
  if (options_.ended != nullptr) *options_.ended = true;
  Signal(ConnectionOwner::kFailed);
}

bool Connection::TakeFrame(std::span<const uint8_t, kFrameBytes> frame, uint32_t bytes,
                           WorkRecord* record) {
  const std::optional<Frame> parsed =
      bytes >= kFrameBytes ? ParseFrame(frame, bytes - kFrameBytes) : std::nullopt;
  record->length = 0;
  if (!parsed.has_value()) return false;
  const bool write = parsed->kind == FrameKind::kWrite;
  if (write) record->opcode = Opcode::kReceiveWrite;
  record->length = write ? parsed->length : bytes - static_cast<uint32_t>(kFrameBytes);
  record->has_immediate = parsed->has_immediate();
  record->immediate = parsed->immediate;
  return true;
}

Status Connection::ReceiveBehindFrame(WorkQueue& queue, WorkRecord& record, uint32_t bytes) {
  if (!TakeFrame(frames_[kReceives].At(queue.SlotOf(record)), bytes, &record)) {
    Break();
    return Status::kTransport;
  }
  if (record.bounce.memory == nullptr || bytes == kFrameBytes) return Status::kSuccess;
  return Scatter(record, queue.SegmentsOf(record), record.bounce.memory, record.length);
}

// The message has no frame: its beginning lies where one would be, and the rest too far ahead. The
// few receives that were posted before the answer came are copied twice for that.
Status Connection::ReceiveUnframed(WorkQueue& queue, WorkRecord& record, uint32_t bytes) {
  const std::span<const uint8_t> lead =
      std::span<const uint8_t>(frames_[kReceives].At(queue.SlotOf(record)))
          .first(std::min<size_t>(bytes, kFrameBytes));
  const Segment* const segments = queue.SegmentsOf(record);
  const std::unique_ptr<unsigned char[]> whole(new (std::nothrow) unsigned char[bytes + 1]);
  Status status = whole != nullptr ? Status::kSuccess : Status::kLocalLength;
  if (status == Status::kSuccess) {
    std::copy(lead.begin(), lead.end(), whole.get());
    unsigned char* const rest = whole.get() + lead.size();
    const auto left = static_cast<uint32_t>(bytes - lead.size());
    if (record.bounce.memory != nullptr) {
      std::memcpy(rest, record.bounce.memory, left);
    } else {
      status = Gather(record, segments, rest, left);
    }
  }
  if (status == Status::kSuccess) status = Scatter(record, segments, whole.get(), bytes);
  if (status != Status::kSuccess) Break();
  return status;
}

void Connection::NoteFailure(const ibv_wc& completion) {
  Log(LogLevel::kDebug, device_.name(), ": ", ibv_wc_status_str(completion.status));
  // A message that no receive could take has come before the news that there is a connection.
  if (!established_) {
    if (completion.status != IBV_WC_WR_FLUSH_ERR) set_failed();
    return;
  }
  // An InfiniBand device flushes by itself only after an error; on iWARP that is how every
  // connection ends, and the connection manager tells which way.
  if (!stopping_ && options_.ended != nullptr) *options_.ended = true;
  if (completion.status == IBV_WC_WR_FLUSH_ERR && device_.iwarp()) return;
  set_failed();
  Signal(ConnectionOwner::kFailed);
}

// iWARP flushes everything however the connection ended. A read that the peer has not answered, or
// a request that it has not confirmed, was cut off by that end.
bool Connection::AnswerIsMissing(const WorkRecord& record) const {
  return device_.iwarp() && !stopping_ && !failed() &&
         (record.opcode == Opcode::kRead || (record.flags & kConfirm) != 0);
}

// Drivers name the two ways in which a receive fails as they like; its memory tells them apart.
Status Connection::ReceiveError(WorkQueue& queue, const WorkRecord& record) const {
  const Segment* const segments = queue.SegmentsOf(record);
  for (uint16_t i = 0; i < record.segments; ++i) {
    if (segments[i].length != 0 &&
        options_.memory->Resolve(*options_.domain, segments[i].key, segments[i].address,
                                 segments[i].length, kLocalWrite) == nullptr) {
      return Status::kLocalProtection;
    }
  }
  return Status::kLocalLength;
}

// The caller holds the lock of the queue's completions: clang cannot name it by the direction.
void Connection::Finish(Direction direction, WorkQueue& queue,
                        WorkRecord& record) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  options_.domain->bounces().GiveBack(record.bounce);
  queue.Done(record, record.status);
  if (queue.HasNews()) options_.queues[direction]->List(queue);
  if (direction == kSends) CheckTurn(queue);
}

void Connection::CheckTurn(WorkQueue& sends) {
  if (sends.open() != 0) return;
  if (sends.Take(WorkQueue::kDrainAwaited)) Signal(ConnectionOwner::kDrained);
  if (!sends.Take(WorkQueue::kBreakAwaited)) return;
  if (options_.ended != nullptr) *options_.ended = true;
  Signal(ConnectionOwner::kFailed);
}

void Connection::BreakInTurn(WorkQueue& sends) {
  set_failed();
  sends.Set(WorkQueue::kBreakAwaited);
  CheckTurn(sends);
}

void Connection::Refused(Direction direction, WorkQueue& queue, WorkRecord& record,
                         uint32_t count) {
  record.parts = static_cast<uint16_t>(record.parts - count);
  if (record.status == Status::kSuccess) record.status = Status::kTransport;
  Break();
  if (record.parts == 0) Finish(direction, queue, record);
}

void Connection::AwaitDrain(WorkQueue& sends) {
  sends.Set(WorkQueue::kDrainAwaited);
  CheckTurn(sends);
}

// Calls copy(memory, at, bytes) for the pieces of the receive's first `length` bytes.
template <typename Copy>
Status Connection::Walk(const WorkRecord& record, const Segment* segments, uint32_t length,
                        Copy&& copy) {
  uint32_t at = 0;
  for (uint16_t i = 0; i < record.segments && at != length; ++i) {
    const uint32_t piece = std::min(length - at, segments[i].length);
    if (piece == 0) continue;
    // All of the segment must be there, as a device asks it.
    unsigned char* const memory = options_.memory->Resolve(
        *options_.domain, segments[i].key, segments[i].address, segments[i].length, kLocalWrite);
    if (memory == nullptr) return Status::kLocalProtection;
    copy(memory, at, piece);
    at += piece;
  }
  return at == length ? Status::kSuccess : Status::kLocalLength;
}

Status Connection::Scatter(const WorkRecord& record, const Segment* segments,
                           const unsigned char* from, uint32_t length) {
  return Walk(record, segments, length, [from](unsigned char* to, uint32_t at, uint32_t bytes) {
    std::memcpy(to, from + at, bytes);
  });
}

Status Connection::Gather(const WorkRecord& record, const Segment* segments, unsigned char* to,
                          uint32_t length) {
  return Walk(record, segments, length,
              [to](const unsigned char* from, uint32_t at, uint32_t bytes) {
                std::memcpy(to + at, from, bytes);
              });
}

void Connection::ReceiveBounced(WorkQueue& queue,
                                const ibv_wc& completion) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const uint32_t slot = next_bounce_++ % static_cast<uint32_t>(bounces_.size());
  if (completion.status != IBV_WC_SUCCESS) return;
  if (WorkRecord* const record = queue.OldestOpen(); record != nullptr) {
    queue.Done(*record, CopyBounced(queue, *record, slot, completion));
    if (queue.HasNews()) options_.queues[kReceives]->List(queue);
  } else {
    dropped_.fetch_add(1);
    Signal(ConnectionOwner::kDropped);
  }
  PostBounce(slot);
}

Status Connection::CopyBounced(WorkQueue& queue, WorkRecord& record, uint32_t slot,
                               const ibv_wc& completion) {
  unsigned char* const message = bounces_[slot].memory.memory;
  uint32_t bytes = completion.byte_len;
  Receive(record, completion);
  if (bounces_[slot].leads) {
    const std::span<const uint8_t, kFrameBytes> frame = frames_[kReceives].At(slot);
    if (framing() == Framing::kUnframed) {
      // It may lie in the slot and in all of the bounce.
      if (bytes > bounces_[slot].memory.size) {
        record.length = 0;
        return Status::kLocalLength;
      }
      const uint32_t lead = std::min(bytes, static_cast<uint32_t>(kFrameBytes));
      std::memmove(message + lead, message, bytes - lead);
      std::copy_n(frame.data(), lead, message);
    } else if (TakeFrame(frame, bytes, &record)) {
      bytes -= kFrameBytes;
    } else {
      Break();
      return Status::kTransport;
    }
  }
  if (record.opcode == Opcode::kReceiveWrite) return Status::kSuccess;
  const Segment* const segments = queue.SegmentsOf(record);
  uint64_t room = 0;
  for (uint16_t i = 0; i < record.segments; ++i) room += segments[i].length;
  const Status status =
      room < bytes ? Status::kLocalLength : Scatter(record, segments, message, bytes);
  if (status != Status::kSuccess) record.length = 0;
  return status;
}

bool Connection::CompleteShared(const SharedReceive& receive, const ibv_wc& completion) {
  WorkQueue* const queue = queues_[kReceives];
  if (queue == nullptr) return false;
  if (completion.status != IBV_WC_SUCCESS) NoteFailure(completion);
  if (queue->full() && !queue->Resize(2 * (queue->tail() - queue->head()), 0)) return false;
  WorkRecord& record = queue->Next();
  record = WorkRecord();
  record.id = receive.id;
  record.quiet = receive.quiet;
  record.opcode = Opcode::kReceive;
  record.parts = 1;
  queue->Publish();
  if (completion.status == IBV_WC_SUCCESS) {
    Receive(record, completion);
  } else {
    record.status = CompletionStatus(completion.status);
  }
  record.parts = 0;
  Finish(kReceives, *queue, record);
  return true;
}

// ------------------------------------------------------------------------------ control thread

void Connection::Signal(uint32_t signals) {
  if (signals_.fetch_or(signals) != 0) return;
  device_.loop().Post([this] {
    const uint32_t signals = signals_.exchange(0);
    if (ConnectionOwner* const owner = this->owner()) owner->OnSignals(*this, signals);
  });
}

void Connection::OnCmEvent(const CmEvent& event) {
  const bool awaited = half_open();
  heard_ = true;
  if (ConnectionOwner* const owner = this->owner()) {
    owner->OnConnectionEvent(*this, event);
  } else if (buried_ && awaited) {
    TryToDestroy(0);
  }
}

void Connection::Tell(CmEvent event) {
  event.id = id_;
  device_.loop().Post([this, event = std::move(event)] { OnCmEvent(event); });
}

void Connection::OnQpEvent(ibv_event_type type) {
  set_failed();
  Signal(ConnectionOwner::kFailed |
         (type == IBV_EVENT_QP_ACCESS_ERR ? ConnectionOwner::kRefusedWrite : 0u));
}

// ----------------------------------------------------------------------------------------- end

void Connection::Stop(bool established) {
  stopping_ = true;
  unstopped_ = half_open();
  if (unstopped_) return;
  if (established) rdma_disconnect(id_);
  if (pair_ == nullptr) return;
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(pair_, &attributes, IBV_QP_STATE);
  HarvestAll();
}

void Connection::HarvestAll() {
  for (const std::shared_ptr<CompletionCore>& queue : options_.queues) {
    if (queue == nullptr) continue;
    SpinLockHolder guard(&queue->lock);
    for (int passes = 0; passes < kHarvests && queue->Harvest(); ++passes) {
    }
  }
}

void Connection::Release(Direction direction, bool keep) {
  CompletionCore* const core = options_.queues[direction].get();
  if (core == nullptr) return;  // no pair was made
  {
    SpinLockHolder guard(&core->lock);
    WorkQueue* const queue = queues_[direction];
    queues_[direction] = nullptr;
    if (queue == nullptr) return;
    queue->ClearOfConnection();
    for (uint32_t i = queue->head(), end = queue->tail(); i != end; ++i) {
      WorkRecord& record = queue->At(i);
      if (record.done) continue;
      // The device may still write to it.
      if (record.bounce.memory != nullptr) left_.push_back(std::exchange(record.bounce, Bounce()));
      record.parts = 0;
      record.rest = WorkRecord::Rest::kSome;
      if (keep) continue;
      queue->Done(record, record.status != Status::kSuccess ? record.status : Status::kFlushed);
    }
    if (queue->HasNews()) core->List(*queue);
  }
  core->Notify();
}

void Connection::Bury() {
  SetOwner(nullptr);
  device_.loop().Post([this] { TryToDestroy(0); });
}

// What the device completes later is looked up here.
bool Connection::Dead() {
  HarvestAll();
  return posted_[kSends].load() == seen_[kSends].load() &&
         posted_[kReceives].load() == seen_[kReceives].load();
}

// To destroy an id whose request waits for an answer is to wait for the answer in iw_cm, or for
// siw's own time-out of seconds: not on the control thread. Deleted behind what is posted to it.
void Connection::Destroy() {
  const auto destroy = [this] {
    DestroyId();
    device_.loop().Post([this] { delete this; });
  };
  const bool unanswered = device_.iwarp() && dialled_ && !established_;
  if (!unanswered || !Device::RunAside(destroy)) destroy();
}

void Connection::TryToDestroy(int tries) {
  buried_ = true;
  if (dialing_ || half_open()) return;  // what ends that comes back here
  if (unstopped_) Stop(true);
  // librdmacm, which reads events on this thread, changes the state of the pair that an id has.
  id_->qp = nullptr;
  if (Dead()) {
    Destroy();
    return;
  }
  if (tries == kBurialTries) {
    // siw flushes a pair once, and never what is posted behind that. A pair that is no more
    // completes nothing.
    Log(LogLevel::kDebug, device_.name(), ": a queue pair does not give its requests back");
    DestroyPair();
    HarvestAll();
    Destroy();
    return;
  }
  device_.loop().RunAt(device_.loop().Now() + kBurialInterval,
                       [this, next = tries + 1] { TryToDestroy(next); });
}

}  // namespace viaduct::verbs::rdma
