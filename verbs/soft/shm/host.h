// The shared-memory side of this process: its peers, its listeners, its bells. One per process.
//
// The executor owns the peers. Polls read the published list of peers inside an epoch guard;
// sleepers arm the bell of every pair.
//
// Bells. A peer that leaves a mark for us checks the bell of our direction. A sleeper in
// Doorbell::Sleep arms the bell as a futex. While nobody is known to poll, the bell asks for a
// message on the socket instead. The message wakes up the control thread, which collects the marks
// at once and then, for as long as marks come, at every tick of about a millisecond without a
// message. Expect asks for the message again. A ring wakes one sleeper, which collects for all
// (host_sleep.cc).
#ifndef VIADUCT_VERBS_SOFT_SHM_HOST_H_
#define VIADUCT_VERBS_SOFT_SHM_HOST_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbs/base/address.h"
#include "verbs/base/errand.h"
#include "verbs/base/event_loop.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"
#include "verbs/soft/foreign_fd.h"
#include "verbs/soft/shm/descriptor.h"
#include "verbs/soft/shm/peer.h"

namespace viaduct::verbs::shm {

class Host {
 public:
  // The first call in a process creates the Host on `loop`; later calls must pass the same loop.
  // Never destroyed.
  static Host& Get(EventLoop& loop);
  // For Get.
  explicit Host(EventLoop& loop);
  ~Host();
  // Called in a forked child. The parent's other threads may have been in the middle of anything.
  void InForkChild();

  EventLoop& loop() { return loop_; }

  // ------------------------------------------------------------------ wires and doorbells
  // Users are wires: without any, peers that have no connection are dropped. `silence`: how long
  // a requester may leave an accept unanswered; the value of the last wire holds for all.
  void AddUser(Nanos silence);
  void RemoveUser();

  // Connects a socket to the process of this user that listens at `port`. Errors as DialTo. Any
  // thread.
  static absl::StatusOr<Descriptor> Dial(uint16_t port, pid_t* pid);
  // Any thread.
  static bool IsServed(uint16_t port);
  // Continues a dialled request on the executor. The queue pair of `link` gets the outcome.
  void Connect(std::shared_ptr<ShmLink> link, Descriptor socket, pid_t pid, const RequestBody& body,
               std::vector<uint8_t> private_data);

  // Sends the request of `link` on to the port that a Redirect has named. Executor.
  void Follow(const std::shared_ptr<ShmLink>& link, uint16_t port, absl::Span<const uint8_t> note);
  // As IncomingConnection::HandOff, but nothing is moved.
  static absl::Status AskToTake(uint16_t port, absl::Span<const uint8_t> note, Deadline deadline);

  // As Wire::Listen, in three steps. Port 0 takes a free one; the result is the port.
  // AlreadyExists: the port is taken.
  absl::StatusOr<uint16_t> Listen(uint16_t port);
  void StartListening(uint16_t port, const Address& address, ListenerSink* sink);
  void StopListening(uint16_t port);
  // The sink for a request that was dialled at `to`, or null: as over TCP, a listener is at its
  // context's address and at loopback, unless its address is another one of the loopback network.
  // `to` null: the sink for a request that is handed off to `port`, whatever address was dialled.
  // Executor.
  ListenerSink* FindListener(uint16_t port, const Address* to = nullptr);

  // For ShmDoorbell.
  void Collect();
  WaitResult Sleep(std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline);
  void Expect();

  // Makes the next tick call Peer::RingAgain. Any thread.
  void RingAgainSoon() { ticker_->Start(); }

  // ---------------------------------------------------------------------- peers, executor
  void OnRing();
  void Forget(Peer& peer);
  // Drops the peers that are idle, unless there is a user. Any thread.
  void LeaveIdlePeers();
  Nanos silence() const { return silence_.load(std::memory_order_relaxed); }

 private:
  struct PeerList {
    std::vector<std::shared_ptr<Peer>> peers;
    // The summary word of each peer's marks, which every poll that finds nothing reads.
    std::vector<const std::atomic<uint64_t>*> marks;
  };
  struct PortListener {
    Descriptor socket;
    // Set by StartListening.
    Address address;
    ListenerSink* sink = nullptr;
  };
  // An accepted socket whose Hello has not come.
  struct Handshake {
    Descriptor socket;
    pid_t pid;
    uint16_t port;
    Executor::TimerId timer;
  };

  std::shared_ptr<Peer> FindPeer(pid_t pid);
  // With that process, where this one has that side.
  int CountPeers(pid_t pid, int side);
  void Adopt(std::shared_ptr<Peer> peer);
  void Publish(std::unique_ptr<PeerList> list);
  bool HasUsers();
  void LeavePeers();  // unless there is a user again
  void OnAcceptable(uint16_t port);
  // Tells the peers that this process exits and has not crashed.
  void AnnounceExit();
  // Finds or makes the pair with process `pid`, and sends it the request. NotFound: the process has
  // gone meanwhile. ResourceExhausted. May call sinks of other connections, which may destroy the
  // pair of `link`.
  absl::Status Place(const std::shared_ptr<ShmLink>& link, Descriptor socket, pid_t pid,
                     absl::Span<const uint8_t> note);
  void StartHandshake(Descriptor socket, pid_t pid, uint16_t port);
  void OnHello(int socket);
  void AnswerAsk(const Handshake& handshake, const Message& ask);
  NextTick Tick();
  // For a thread that has slept, or was cancelled asleep.
  void EndSleep();
  // These three return whether there are marks already. `change` gets each peer's bell before that
  // peer's marks are checked.
  bool ChangeBells(absl::FunctionRef<void(std::atomic<uint32_t>&)> change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(bell_lock_);
  // From now on the control thread is notified of marks that no sleeper is notified of.
  bool Arm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(bell_lock_);
  // Sets the bells that are off to `armed`; bells that are armed stay as they are.
  bool ArmWhatIsOff(uint32_t armed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(bell_lock_);

  EventLoop& loop_;
  const Descent descent_;
  std::atomic<PeerList*> peers_;                    // never null
  PeerList nobody_;                                 // the list of a forked child,
  const PeerList* parents_ = nullptr;               // and the parent's list in its place
  std::atomic<Nanos> silence_{0};                   // set by AddUser
  absl::flat_hash_map<int, Handshake> handshakes_;  // executor

  Mutex listeners_mutex_;
  // A standard container: Abseil's are corrupt after they failed to allocate memory to grow.
  std::unordered_map<uint16_t, std::shared_ptr<PortListener>> listeners_
      ABSL_GUARDED_BY(listeners_mutex_);
  int users_ ABSL_GUARDED_BY(listeners_mutex_) = 0;
  Errand<&Host::LeavePeers, Host*> leave_errand_;

  SpinLock bell_lock_;
  // Threads in Sleep, and threads that left it by a longjmp.
  int sleepers_ ABSL_GUARDED_BY(bell_lock_) = 0;
  bool ticking_ ABSL_GUARDED_BY(bell_lock_) = false;
  std::atomic<uint32_t> collected_{0};  // counts collections that found marks
  uint32_t collected_at_tick_ = 0;      // executor
  int quiet_ticks_ = 0;
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_HOST_H_
