#include "verbs/rdma/confirmation_memory.h"

#include <cerrno>

#include "verbs/rdma/errors.h"
#include "verbs/rdma/registration.h"

namespace viaduct::verbs::rdma {

ConfirmationMemory::~ConfirmationMemory() {
  if (registration_ != nullptr) ibv_dereg_mr(registration_);
}

const ibv_mr* ConfirmationMemory::Registration() {
  MutexLock lock(&mutex_);
  if (registration_ == nullptr) {
    // On iWARP the sink of a read is written by the peer.
    registration_ = ibv_reg_mr(domain_, word_, sizeof word_,
                               AccessFlags(kLocalWrite | kRemoteRead | kRemoteWrite));
    if (registration_ == nullptr) {
      LogErrno(errno, "register the word that confirms");
    }
  }
  return registration_;
}

}  // namespace viaduct::verbs::rdma
