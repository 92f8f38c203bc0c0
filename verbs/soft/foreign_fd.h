// Owners of descriptors whose close may take as long as another process likes.
//
// The last close of an open file may block if its creator arranged that: a TCP socket with
// SO_LINGER waits for its peer, a file of a FUSE for its server. The close of a unix socket blocks
// in the same way while a message with such a descriptor lies unread in it. At an abstract name
// anybody on this host can have sent that message, before the receiver has checked who it is. Hence
// neither is closed by a thread that others need, but by a separate thread, which may hang.
#ifndef VIADUCT_VERBS_SOFT_FOREIGN_FD_H_
#define VIADUCT_VERBS_SOFT_FOREIGN_FD_H_

#include <utility>

#include "verbs/base/fd.h"

namespace viaduct::verbs {

// Returns at once. Without memory or a thread, it closes `fd` in the calling thread instead. Any
// thread. A forked child does not close what was waiting at the fork.
void CloseElsewhere(Fd fd);

// True: so many descriptors wait for their close that no more may be accepted. The number falls
// when a close that hangs ends.
bool TooManyToClose();

// The following run before a descriptor is closed. True: its close cannot block; false: leave it to
// CloseElsewhere. Not called in a forked child, whose copy would shut down what the parent uses.

// For a descriptor that another process has sent.
bool EndGiven(int fd);

// For a connected unix socket of ours. The other end is notified at once. False: something lies
// unread.
bool EndChannel(int socket);

// For a listening socket, and for all connections to it that nobody has accepted. Its name is free
// once it is closed. False: the process is short of descriptors.
bool EndListener(int socket);

// Move-only; passes the descriptor to kEnd before the close. -1 owns nothing.
template <bool (*kEnd)(int)>
class ForeignFd {
 public:
  ForeignFd() = default;
  explicit ForeignFd(Fd fd) : fd_(std::move(fd)) {}
  explicit ForeignFd(int fd) : fd_(fd) {}
  ForeignFd(ForeignFd&& other) noexcept : fd_(other.Release()) {}
  ForeignFd& operator=(ForeignFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = other.Release();
    }
    return *this;
  }
  ForeignFd(const ForeignFd&) = delete;
  ForeignFd& operator=(const ForeignFd&) = delete;
  ~ForeignFd() { Reset(); }

  int get() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  // The caller closes it like any other descriptor.
  Fd Release() { return std::move(fd_); }
  void Reset() {
    if (fd_.valid() && !kEnd(fd_.get())) CloseElsewhere(std::move(fd_));
    fd_.Reset();
  }

 private:
  Fd fd_;
};

using GivenFd = ForeignFd<&EndGiven>;
using ChannelFd = ForeignFd<&EndChannel>;
using ListeningFd = ForeignFd<&EndListener>;

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_FOREIGN_FD_H_
