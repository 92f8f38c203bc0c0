// What every engine object has: a type, a reference count, the consumer's context.
//
// Lifetime. The handle table holds one reference while the handle is valid; Ref holds others.
// The data path takes none: it runs inside a verbs::EpochGuard, and the last reference waits for
// such guards before it deletes. So a reference must never be dropped inside a guard.
#ifndef VIADUCT_DAT_CORE_OBJECT_H_
#define VIADUCT_DAT_CORE_OBJECT_H_

#include <atomic>
#include <cstdint>
#include <utility>

namespace viaduct::core {

// Opaque to consumers; NULL is never valid.
using Handle = void*;

enum class ObjectType : uint8_t {
  kNone,
  kAdapter,
  kProtectionZone,
  kMemoryRegion,
  kEventDispatcher,
  kEndpoint,
  kPublicServicePoint,
  kReservedServicePoint,
  kCommonServicePoint,
  kConnectionRequest,
  kNotifier,
  kSharedReceiveQueue,
  kMemoryWindow,
  // The VIPL face's own objects, which wrap the engine's.
  kNic,
  kVi,
  kCompletionQueue,
};
inline constexpr int kObjectTypes = static_cast<int>(ObjectType::kCompletionQueue) + 1;

class Object {
 public:
  explicit Object(ObjectType type) : type_(type) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  ObjectType type() const { return type_; }
  // Set once by HandleTable::Insert; stays readable after the handle died.
  Handle handle() const { return handle_.load(std::memory_order_acquire); }

  // The consumer's context: one word, replaced by each set, unsynchronised as DAT says.
  void set_context(uint64_t context) { context_.store(context, std::memory_order_relaxed); }
  uint64_t context() const { return context_.load(std::memory_order_relaxed); }

  // A word that the face keeps with the object.
  void set_face_word(uint64_t word) { face_word_.store(word, std::memory_order_relaxed); }
  uint64_t face_word() const { return face_word_.load(std::memory_order_relaxed); }

  // Ends the object even if others use it: what an abrupt close of its adapter does to it. Like
  // Free, but without conditions; no effect if the object was freed already.
  virtual void Destroy() {}

  void AddReference() { references_.fetch_add(1, std::memory_order_relaxed); }
  // False once the last reference was dropped: the object may still exist for EpochGuards, but must
  // not come back to life.
  bool AddReferenceUnlessZero();
  // The last reference deletes the object, after waiting for every EpochGuard that is held now.
  void DropReference();

 protected:
  virtual ~Object() = default;

 private:
  friend class HandleTable;
  const ObjectType type_;
  std::atomic<uint32_t> references_{1};  // the creator's
  std::atomic<Handle> handle_{nullptr};
  std::atomic<uint64_t> context_{0};
  std::atomic<uint64_t> face_word_{0};
};

// A counted reference to a T (derived from Object).
template <typename T>
class Ref {
 public:
  Ref() = default;
  // Takes over a reference that the caller holds, such as the creator's of a new object.
  static Ref Adopt(T* object) {
    Ref r;
    r.object_ = object;
    return r;
  }
  static Ref Share(T* object) {
    if (object != nullptr) object->AddReference();
    return Adopt(object);
  }
  Ref(const Ref& other) : Ref(Share(other.object_)) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->DropReference();
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_OBJECT_H_
