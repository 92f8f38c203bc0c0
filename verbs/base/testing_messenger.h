// For tests of errands: an object that counts what its errand brings.
#ifndef VIADUCT_VERBS_BASE_TESTING_MESSENGER_H_
#define VIADUCT_VERBS_BASE_TESTING_MESSENGER_H_

#include <atomic>
#include <memory>

namespace viaduct::verbs {

// Send posts the errand, as kPost(errand, object) does, and leaves a message for its call.
template <template <auto, typename> typename AnyErrand, auto kPost>
class Messenger : public std::enable_shared_from_this<Messenger<AnyErrand, kPost>> {
 public:
  // `gone` becomes true when the object is destroyed; may be null.
  explicit Messenger(std::atomic<bool>* gone = nullptr) : gone_(gone) {}
  ~Messenger() {
    if (gone_ != nullptr) gone_->store(true);
  }
  void Send() {
    sent_.fetch_add(1);
    kPost(errand_, this->shared_from_this());
  }
  int heard() const { return heard_.load(); }  // messages
  int calls() const { return calls_.load(); }

 private:
  void Hear() {
    calls_.fetch_add(1);
    heard_.fetch_add(sent_.exchange(0));
  }

  std::atomic<bool>* const gone_;
  std::atomic<int> sent_{0}, heard_{0}, calls_{0};
  AnyErrand<&Messenger::Hear, std::shared_ptr<Messenger>> errand_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_TESTING_MESSENGER_H_
