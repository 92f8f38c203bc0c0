// Owners of descriptors whose close may take as long as another process likes.
//
// The last close of an open file waits where its maker wants it to: a TCP socket with SO_LINGER for
// its peer, a file of a FUSE for its server. So does the close of a unix socket in which a message
// with such a descriptor lies unread, whoever has sent it: at an abstract name that is anybody of
// this host, before one has looked who that is. Hence neither is closed by a thread that others
// need, but by one of its own, which may hang.
#ifndef VIADUCT_VERBS_SOFT_FOREIGN_FD_H_
#define VIADUCT_VERBS_SOFT_FOREIGN_FD_H_

#include <utility>

#include "verbs/base/fd.h"

namespace viaduct::verbs {

// Returns at once; without memory or a thread it closes here. Any thread. A forked child closes
// nothing of what waited then.
void CloseElsewhere(Fd fd);

// True: so many wait that no more may be taken in. They get fewer when a close that hangs ends.
bool TooManyToClose();

// What comes before the close of a descriptor. True: that keeps nobody; else it is for
// CloseElsewhere. Not in a forked child, whose copy would end what is the parent's.

// What another process has sent.
bool EndGiven(int fd);

// Of a connected unix socket of ours. The other end hears of it at once. False: something lies
// unread.
bool EndChannel(int socket);

// The same of a listening one, and of all that nobody has accepted. Its name is free when it is
// closed. False: descriptors are short.
bool EndListener(int socket);

// Move-only; kEnd gets what it owns, before the close. -1 owns nothing.
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
  // To be closed as any other.
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
