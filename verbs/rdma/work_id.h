// What the wr_id of a work request says: whose request it is, and what kind of completion it gets.
#ifndef VIADUCT_VERBS_RDMA_WORK_ID_H_
#define VIADUCT_VERBS_RDMA_WORK_ID_H_

#include <cstdint>

namespace viaduct::verbs::rdma {

class Connection;
struct SharedReceive;

enum Direction { kSends = 0, kReceives = 1 };

// Connections and shared receives are aligned to 8.
class WorkId {
 public:
  static uint64_t Of(Connection* connection, Direction direction) {
    return reinterpret_cast<uint64_t>(connection) | direction;
  }
  // Of a read in the send queue.
  static uint64_t OfRead(Connection* connection) { return Of(connection, kSends) | kRead; }
  static uint64_t OfShared(SharedReceive* receive) {
    return reinterpret_cast<uint64_t>(receive) | kShared;
  }
  // Of a nudge: a connection's own write of no bytes.
  static uint64_t OfNudge(Connection* connection) {
    return reinterpret_cast<uint64_t>(connection) | kNudge;
  }
  // Of a shared receive, or a nudge.
  static bool IsSpecial(uint64_t id) { return (id & kShared) != 0; }
  static bool IsNudge(uint64_t id) { return (id & kNudge) == kNudge; }
  static Connection* ConnectionOf(uint64_t id) {
    return reinterpret_cast<Connection*>(id & ~uint64_t{7});
  }
  static Direction DirectionOf(uint64_t id) { return static_cast<Direction>(id & 1); }
  static bool IsRead(uint64_t id) { return (id & kRead) != 0; }
  static SharedReceive* SharedOf(uint64_t id) {
    return reinterpret_cast<SharedReceive*>(id & ~uint64_t{7});
  }

 private:
  static constexpr uint64_t kShared = 2;
  static constexpr uint64_t kRead = 4;
  static constexpr uint64_t kNudge = kShared | kRead;
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_WORK_ID_H_
