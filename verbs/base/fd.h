// The owner of a descriptor.
#ifndef VIADUCT_VERBS_BASE_FD_H_
#define VIADUCT_VERBS_BASE_FD_H_

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace viaduct::verbs {

// Move-only; closes what it owns. -1 owns nothing.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.Release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1) {
    // EINTR or not, Linux has freed the number when close returns.
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

// Does this errno say that descriptors or memory are short?
inline bool IsShortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// Old programs use select(), whose sets end at 1024, and expect small numbers for their own files.
constexpr int kHighFd = 1024;

// Moves a descriptor away from the numbers of the standard streams, which a daemon may have closed
// and still write to. A close-on-exec descriptor stays so.
inline Fd MoveOffStandard(Fd fd) {
  if (!fd.valid() || fd.get() > STDERR_FILENO) return fd;
  const int other = fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  return other >= 0 ? Fd(other) : std::move(fd);
}

// Moves a descriptor to kHighFd or above if RLIMIT_NOFILE allows it, else off the standard streams.
// Close-on-exec either way.
inline Fd MoveHigh(Fd fd) {
  if (!fd.valid() || fd.get() >= kHighFd) return fd;
  const int high = fcntl(fd.get(), F_DUPFD_CLOEXEC, kHighFd);
  if (high >= 0) return Fd(high);
  fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  return MoveOffStandard(std::move(fd));
}

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_FD_H_
