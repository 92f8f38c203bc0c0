// The sending half of a socket. It takes everything it is given: what the socket does not take at
// once is copied, because the memory of a request may be deregistered before the socket has room,
// and because an FPDU that was begun must be finished whatever happens to its request.
#ifndef VIADUCT_VERBS_SOFT_IWARP_TRANSMIT_STREAM_H_
#define VIADUCT_VERBS_SOFT_IWARP_TRANSMIT_STREAM_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace viaduct::verbs::iwarp {

// Not thread-safe. The caller bounds what waits here by giving nothing new while blocked(), except
// small control messages.
class TransmitStream {
 public:
  explicit TransmitStream(int fd) : fd_(fd) {}
  TransmitStream(const TransmitStream&) = delete;
  TransmitStream& operator=(const TransmitStream&) = delete;

  // Sends the parts, after what waits. False: the connection is lost, or there is no memory.
  bool Send(std::span<const iovec> parts);

  // Sends what waits, as far as the socket takes it. False: the connection is lost.
  bool Flush();

  // Something waits for room in the socket.
  bool blocked() const { return begin_ < waiting_.size(); }
  size_t waiting() const { return waiting_.size() - begin_; }

 private:
  // False if there is no memory: then the peer would never get the rest of an FPDU.
  bool Keep(std::span<const iovec> parts, size_t skip);

  const int fd_;
  std::vector<uint8_t> waiting_;  // [begin_, end): in order, not sent yet
  size_t begin_ = 0;
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_TRANSMIT_STREAM_H_
