// ReceiveWatch: the limits (uDAPL dat_ep_set_watermark) for the number of an endpoint's receives
// that messages have taken and that the consumer has not got back.
//
// Such a receive is "held" from the moment its message is complete until its event is dequeued.
// Messages arrive in order, so no receive is held because an earlier one is unfinished.
//
// Threads: OnCompletion under the dispatcher's lock; it only asks the executor for a check.
#ifndef VIADUCT_DAT_CORE_RECEIVE_WATCH_H_
#define VIADUCT_DAT_CORE_RECEIVE_WATCH_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "dat/core/endpoint.h"
#include "dat/core/event_dispatcher.h"
#include "verbs/base/errand.h"
#include "verbs/device.h"

namespace viaduct::core {

class ReceiveWatch final : public CompletionObserver {
 public:
  static constexpr uint32_t kNoLimit = std::numeric_limits<uint32_t>::max();

  explicit ReceiveWatch(Endpoint& endpoint) : endpoint_(endpoint) {}

  // Under the endpoint's lock. Arms the soft limit again.
  void Set(uint32_t soft, std::optional<uint32_t> hard) {
    soft_ = soft;
    hard_ = hard.value_or(hard_);
  }
  struct Verdict {
    bool soft = false;
    bool hard = false;
  };
  // Whether `held` is above the soft limit and, independently, above the hard one. The soft limit
  // is reported once, the hard one every time.
  Verdict Judge(uint32_t held);

  // Asks for Endpoint::CheckWatermarks on the executor.
  void Ask();

  bool OnCompletion(const verbs::Completion& completion) override;

 private:
  Endpoint& endpoint_;  // its owner
  uint32_t soft_ = kNoLimit;
  uint32_t hard_ = kNoLimit;
  verbs::Errand<&Endpoint::CheckWatermarks, Ref<Endpoint>> errand_;
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_RECEIVE_WATCH_H_
