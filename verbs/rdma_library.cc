#include "verbs/rdma_library.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "verbs/base/fd.h"
#include "verbs/base/log.h"
#include "verbs/base/made_once.h"

namespace viaduct::verbs {
namespace {

constexpr char kLibrary[] = "libviaduct-rdma.so.1";
constexpr char kDevices[] = "/sys/class/infiniband";

// An entry that begins with a dot is the folder itself or its parent.
bool AnyDevice() {
  DIR* const folder = opendir(kDevices);
  if (folder == nullptr) {
    if (IsShortage(errno)) throw std::bad_alloc();
    return false;
  }
  bool found = false;
  for (const dirent* entry; !found && (entry = readdir(folder)) != nullptr;) {
    found = entry->d_name[0] != '.';
  }
  closedir(folder);
  return found;
}

// AddressSanitizer and ThreadSanitizer refuse RTLD_DEEPBIND.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kBinding = 0;
#else
constexpr int kBinding = RTLD_DEEPBIND;
#endif

struct Unusable {};

// Throws Unusable, so that the next call tries again: the loader does not tell whether memory was
// short. Throws std::bad_alloc if descriptors are.
const rdma::Module* Load() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | kBinding);
  const char* complaint = library == nullptr ? dlerror() : nullptr;
  if (library == nullptr && !Fd(eventfd(0, EFD_CLOEXEC)).valid() && IsShortage(errno)) {
    throw std::bad_alloc();
  }
  const void* const module = library != nullptr ? dlsym(library, "viaduct_rdma_module") : nullptr;
  if (library != nullptr && module == nullptr) complaint = "it is another library";
  if (module == nullptr) {
    LogOnce(LogLevel::kWarn,
            absl::StrCat("this machine has an RDMA device, but ", kLibrary,
                         " cannot be used: ", complaint,
                         "; are the packages libibverbs1, librdmacm1 and ibverbs-providers "
                         "installed?"));
    throw Unusable();
  }
  return static_cast<const rdma::Module*>(module);
}

}  // namespace

bool KernelHasRdmaDevice(const std::string& name) {
  if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos) return false;
  return access((std::string(kDevices) + "/" + name).c_str(), F_OK) == 0;
}

const rdma::Module* RdmaLibrary() {
  // A device may appear later; a library that was loaded stays loaded.
  if (!AnyDevice()) return nullptr;
  try {
    return MadeOnce<&Load>();
  } catch (const Unusable&) {
    return nullptr;
  }
}

}  // namespace viaduct::verbs
