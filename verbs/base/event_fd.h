// A descriptor that is readable while it is set: news for a program's own poll, select or epoll.
#ifndef VIADUCT_VERBS_BASE_EVENT_FD_H_
#define VIADUCT_VERBS_BASE_EVENT_FD_H_

#include "verbs/base/fd.h"

namespace viaduct::verbs {

class EventFd {
 public:
  // Not set; invalid without a free descriptor. It stays below kHighFd where it can, since the
  // program may use select; close-on-exec.
  static EventFd Open();
  // The same for the engine itself: at kHighFd or above where it can.
  static EventFd OpenHigh();

  bool valid() const { return fd_.valid(); }
  int get() const { return fd_.get(); }
  // Any thread; errno stays as it was.
  void Set();
  void Clear();

 private:
  Fd fd_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_EVENT_FD_H_
