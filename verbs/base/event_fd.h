// A descriptor that is readable while it is set, for a program's own poll, select or epoll.
#ifndef VIADUCT_VERBS_BASE_EVENT_FD_H_
#define VIADUCT_VERBS_BASE_EVENT_FD_H_

#include "verbs/base/fd.h"

namespace viaduct::verbs {

class EventFd {
 public:
  // Not set; invalid if no descriptor is free. Close-on-exec, and below kHighFd if possible, since
  // the program may use select.
  static EventFd Open();
  // The same for the engine itself: at kHighFd or above if possible.
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
