// Another process (or this one): its socket, its arena, its death, and the connections to it.
//
// Everything but the data-path part runs on the executor.
#ifndef VIADUCT_VERBS_SOFT_SHM_PEER_H_
#define VIADUCT_VERBS_SOFT_SHM_PEER_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "verbs/base/event_loop.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"
#include "verbs/soft/shm/arena.h"
#include "verbs/soft/shm/chunk_pool.h"
#include "verbs/soft/shm/descriptor.h"
#include "verbs/soft/shm/link.h"
#include "verbs/soft/shm/message.h"

namespace viaduct::verbs::shm {

class Host;

class Peer : public std::enable_shared_from_this<Peer> {
 public:
  // `side` 0 created the arena and owns the connection numbers below the half.
  Peer(Host& host, EventLoop& loop, int side, Descriptor socket, pid_t pid,
       std::shared_ptr<Arena> arena);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // ---------------------------------------------------------------- data path, any thread
  Arena& arena() { return *arena_; }
  ChunkPool& pool() { return pool_; }
  const unsigned char* inbound_chunk(uint32_t chunk) const { return arena_->chunk(side_, chunk); }
  int side() const { return side_; }
  bool needs_fence() const { return needs_fence_.load(std::memory_order_relaxed); }
  // Hands back chunks that we have consumed.
  void ReturnChunks(uint64_t mask) {
    arena_->direction(side_).returned.fetch_or(mask, std::memory_order_release);
  }
  // Tells the peer, which does not poll, that connection `id` has something for it.
  void MarkPeer(uint32_t id);
  // Repeats a Ring that the kernel had no memory for.
  void RingAgain();
  // Takes the peer's marks and passes them on to the links.
  void CollectMarks();
  bool HasMarks() const { return my_marks().load(std::memory_order_seq_cst) != 0; }
  const std::atomic<uint64_t>& my_marks() const { return arena_->direction(side_).summary; }
  std::atomic<uint32_t>& my_bell() { return arena_->direction(side_).bell; }

  // ---------------------------------------------------------------------------- executor
  pid_t pid() const { return pid_; }
  bool dead() const { return dead_; }
  // No connection, and nothing that the other process has yet to be told.
  bool idle() const { return links_.empty() && outbox_.empty(); }
  uint64_t token() const { return token_; }
  std::shared_ptr<Arena> shared_arena() const { return arena_; }
  // A connection number is left to give out; TakeId pays for the memory of a new one.
  bool HasRoom() const { return !free_ids_.empty() || next_id_ != id_end_; }

  // Side 0: sends the Hello. False: no memory or descriptors, or the peer is gone.
  bool StartAsCreator();
  // Side 1: answers the Hello that was received. False as above.
  bool StartAsAcceptor(const HelloBody& hello);

  // Requests the connection that `link->wanted` describes, with a note if the request was handed
  // off. False: no memory, no number, or the peer is dead.
  bool Request(const std::shared_ptr<ShmLink>& link, absl::Span<const uint8_t> note);
  void Accept(const std::shared_ptr<ShmLink>& link, const AcceptBody& body,
              absl::Span<const uint8_t> private_data);
  // kReject, kRefuse or kNotHere.
  void TurnDown(const std::shared_ptr<ShmLink>& link, MessageType type,
                absl::Span<const uint8_t> private_data);
  // Sends the requester on to another process.
  void Redirect(const std::shared_ptr<ShmLink>& link, uint16_t port,
                absl::Span<const uint8_t> note);
  void CloseLink(const std::shared_ptr<ShmLink>& link, Status verdict);
  // Has the other process hung up? If so, handles what it sent before, and dies.
  bool HearHangUp();
  // The other process sees it at once. This side dies when its loop sees it, if not before.
  void HangUp();
  // Ends the pair, which nobody needs any more or whose other process is gone.
  void Die();
  // This process exits: the peer's connections end as if disconnected. Any thread.
  void AnnounceExit() { arena_->direction(side_).exits.store(1, std::memory_order_seq_cst); }

 private:
  bool Watch();
  // Notifies the peer of marks, if its bell asks for that.
  void RingBell();
  // Sends a Ring. False: the kernel has no memory for it.
  bool Ring();
  void OnSocket(uint32_t events);
  void ReadMessages(uint32_t events);
  void OnMessage(Message& message);
  void OnWelcome(Message& message);
  void OnRequest(Message& message);
  void OnAccept(Message& message);
  void OnRefusal(Message& message);
  void OnRedirect(Message& message);
  void OnEstablished(Message& message);
  void OnSilence(const std::shared_ptr<ShmLink>& link);
  void StopWaiting(ShmLink& link);
  void OnClose(Message& message);
  void OnReleased(Message& message);
  void Drain(ShmLink& link);
  void SendClose(ShmLink& link, Status verdict);
  void Finish(const std::shared_ptr<ShmLink>& link);
  bool Owns(uint32_t id) const { return (id < kConnections / 2) == (side_ == 0); }
  bool TakeId(uint32_t* id);
  void FreeId(uint32_t id);
  void Send(std::string message);
  void FlushOutbox();
  void AwaitRoom(bool awaits);
  std::shared_ptr<ShmLink> Find(uint32_t id) const;
  void Enter(const std::shared_ptr<ShmLink>& link, uint32_t id);
  void RemoveLink(uint32_t id);
  void ForgetMarks(uint32_t id);

  Host& host_;
  EventLoop& loop_;
  const int side_;
  const pid_t pid_;
  const std::shared_ptr<Arena> arena_;
  ChunkPool pool_;
  std::atomic<bool> unrung_{false};      // the bell asks for a Ring that could not be sent
  std::atomic<bool> needs_fence_{true};  // until the peer says that it is registered
  uint64_t token_ = 0;

  // Open as long as *this exists, since any thread may ring on it. Shut down when the peer dies.
  Descriptor socket_;
  Descriptor pidfd_;
  bool dead_ = false;
  bool greeted_ = false;  // Hello and Welcome are done
  std::deque<std::string> outbox_;
  bool awaits_room_ = false;  // watches for EPOLLOUT, to send the outbox

  // By number, for CollectMarks; entries change under marks_lock_.
  SpinLock marks_lock_;
  std::unique_ptr<ShmLink*[]> marked_links_;

  absl::flat_hash_map<uint32_t, std::shared_ptr<ShmLink>> links_;
  absl::flat_hash_set<uint32_t> closing_ids_;  // our numbers that the peer has yet to release
  std::vector<uint32_t> free_ids_;
  uint32_t next_id_;
  uint32_t id_end_;
};

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_PEER_H_
