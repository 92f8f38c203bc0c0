// Completions that callbacks bring: the mailbox between VIPL's thread, on which handlers run, and
// the thread that measures.
#ifndef VIADUCT_TOOLS_VIPPING_NOTICES_H_
#define VIADUCT_TOOLS_VIPPING_NOTICES_H_

#include <vipl.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

namespace viaduct::vipping {

struct Notice {
  bool receive;
  VIP_DESCRIPTOR* descriptor;  // taken off its queue
};

// The program has one mailbox, which lives as long as the program: a handler may still run when its
// VI has been destroyed.
class Notices {
 public:
  static Notices& Box();

  // From now on only the notices of `vi` count; those of an earlier VI are dropped.
  void Begin(VIP_VI_HANDLE vi);
  // The oldest notice. While there is none, a handler is registered at the send queue or the
  // receive queue, each of which has at most one. Null: nothing came in time. Called by one thread.
  std::optional<Notice> Next(bool receive, int seconds);

 private:
  static void Take(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR* descriptor);
  void Register(bool receive);

  std::mutex mutex_;
  std::condition_variable changed_;
  VIP_VI_HANDLE vi_ = nullptr;
  uintptr_t turn_ = 0;       // number of the VI; part of a handler's context
  bool registered_[2] = {};  // by `receive`
  std::deque<Notice> notices_;
};

}  // namespace viaduct::vipping

#endif  // VIADUCT_TOOLS_VIPPING_NOTICES_H_
