#include "verbs/base/event_fd.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "verbs/base/uncancelled.h"

namespace viaduct::verbs {
namespace {

Fd Make() { return Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

}  // namespace

EventFd EventFd::Open() {
  EventFd made;
  made.fd_ = MoveOffStandard(Make());
  return made;
}

EventFd EventFd::OpenHigh() {
  EventFd made;
  made.fd_ = MoveHigh(Make());
  return made;
}

void EventFd::Set() {
  const int saved = errno;
  const uint64_t one = 1;
  // If the counter is full, the write fails, but the descriptor is set.
  uncancelled::Write(fd_.get(), &one, sizeof one);
  errno = saved;
}

void EventFd::Clear() {
  const int saved = errno;
  uint64_t count;
  static_cast<void>(!read(fd_.get(), &count, sizeof count));
  errno = saved;
}

}  // namespace viaduct::verbs
