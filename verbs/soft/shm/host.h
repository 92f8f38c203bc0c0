// The shared-memory side of this process: its peers, its listeners, its bells. One per process.
//
// Peers are the executor's. Polls read the published list of them inside an epoch guard; sleepers
// arm their bells.
//
// Bells. A peer that marks something for us looks at the bell of our direction: a sleeper in
// Doorbell::Sleep has armed it as a futex; otherwise, while nobody is known to look, it asks for
// a message and so for the control thread, which collects the marks at once and then, for as long
// as marks come, at every tick of about a millisecond instead. Who expects something asks for the
// message again. A ring wakes one sleeper, which collects for all (host_sleep.cc).
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
  // The first call in a process starts it on `loop`, which must be the same ever after. Never
  // destroyed.
  static Host& Get(EventLoop& loop);
  // For Get.
  explicit Host(EventLoop& loop);
  ~Host();
  // In a forked child. The threads that it does not have may have been inside anything.
  void InForkChild();

  EventLoop& loop() { return loop_; }

  // ------------------------------------------------------------------ wires and doorbells
  // Wires count themselves: without any, peers that have no connection are let go. `silence`: how
  // long a requester may leave an accept unanswered; the last wire's holds for all.
  void AddUser(Nanos silence);
  void RemoveUser();

  // Is a process of this user listening at `port`? The socket is connected to it then. As DialTo.
  // Any thread.
  static absl::StatusOr<Descriptor> Dial(uint16_t port, pid_t* pid);
  // Any thread.
  static bool IsServed(uint16_t port);
  // Goes on with a dialled request on the executor. Its outcome goes to the pair of `link`.
  void Connect(std::shared_ptr<ShmLink> link, Descriptor socket, pid_t pid, const RequestBody& body,
               std::vector<uint8_t> private_data);

  // Executor: sends the request of `link` to another process's port, as the first one said.
  void Follow(const std::shared_ptr<ShmLink>& link, uint16_t port, absl::Span<const uint8_t> note);
  // As IncomingConnection::HandOff, and nothing is moved.
  static absl::Status AskToTake(uint16_t port, absl::Span<const uint8_t> note, Deadline deadline);

  // As Wire::Listen, in three steps. Port 0 takes a free one; the result is the port.
  // AlreadyExists.
  absl::StatusOr<uint16_t> Listen(uint16_t port);
  void StartListening(uint16_t port, const Address& address, ListenerSink* sink);
  void StopListening(uint16_t port);
  // Who takes what was dialled at `to`: as over TCP, a listener is at its context's address and at
  // loopback, unless it is at another address of the loopback network. `to` null: who takes what is
  // handed off there, whatever address was asked for. Null: nobody. Executor.
  ListenerSink* FindListener(uint16_t port, const Address* to = nullptr);

  // Doorbell's.
  void Collect();
  WaitResult Sleep(std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline);
  void Expect();

  // Some Peer::RingAgain is due at the next tick. Any thread.
  void RingAgainSoon() { ticker_->Start(); }

  // ---------------------------------------------------------------------- peers, executor
  void OnRing();
  void Forget(Peer& peer);
  // Of a peer whose last connection has ended: without a user it is not kept. Any thread.
  void LeaveIdlePeers();
  Nanos silence() const { return silence_.load(std::memory_order_relaxed); }

 private:
  struct PeerList {
    std::vector<std::shared_ptr<Peer>> peers;
    // Where each says that it has left marks: every poll that finds nothing looks there.
    std::vector<const std::atomic<uint64_t>*> marks;
  };
  struct PortListener {
    Descriptor socket;
    // From StartListening on.
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
  void Adopt(std::shared_ptr<Peer> peer);
  void Publish(std::unique_ptr<PeerList> list);
  bool HasUsers();
  void LeavePeers();  // unless there is a user again
  void OnAcceptable(uint16_t port);
  // This is no crash.
  void AnnounceExit();
  // Finds or makes the pair with the process at the other end, and asks it. NotFound: it has gone
  // meanwhile. ResourceExhausted.
  absl::Status Place(const std::shared_ptr<ShmLink>& link, Descriptor socket, pid_t pid,
                     absl::Span<const uint8_t> note);
  void StartHandshake(Descriptor socket, pid_t pid, uint16_t port);
  void OnHello(int socket);
  void AnswerAsk(const Handshake& handshake, const Message& ask);
  NextTick Tick();
  // Of a thread that has slept, or was cancelled asleep.
  void EndSleep();
  // These say whether marks are there already. `change` gets each peer's bell, before its marks are
  // looked for.
  bool ChangeBells(absl::FunctionRef<void(std::atomic<uint32_t>&)> change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(bell_lock_);
  // From now on the control thread is told of what no sleeper is told of.
  bool Arm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(bell_lock_);
  // Bells that were rung say `armed` again; what is armed stays as it is.
  bool ArmWhatIsOff(uint32_t armed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(bell_lock_);

  EventLoop& loop_;
  const Descent descent_;
  std::atomic<PeerList*> peers_;                    // never null
  PeerList nobody_;                                 // what a forked child sees,
  const PeerList* parents_ = nullptr;               // and what was in its place there
  std::atomic<Nanos> silence_{0};                   // AddUser's
  absl::flat_hash_map<int, Handshake> handshakes_;  // executor

  Mutex listeners_mutex_;
  // A standard one: Abseil's are corrupt once they have found no memory to grow.
  std::unordered_map<uint16_t, std::shared_ptr<PortListener>> listeners_
      ABSL_GUARDED_BY(listeners_mutex_);
  int users_ ABSL_GUARDED_BY(listeners_mutex_) = 0;
  Errand<&Host::LeavePeers, Host*> leave_errand_;

  SpinLock bell_lock_;
  // Threads in Sleep, and those that have left it by a jump.
  int sleepers_ ABSL_GUARDED_BY(bell_lock_) = 0;
  bool ticking_ ABSL_GUARDED_BY(bell_lock_) = false;
  std::atomic<uint32_t> collected_{0};  // counts collections that found marks
  uint32_t collected_at_tick_ = 0;      // executor
  int quiet_ticks_ = 0;
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_HOST_H_
