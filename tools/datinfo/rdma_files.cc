#include "tools/datinfo/rdma_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace viaduct::datinfo {
namespace {

namespace fs = std::filesystem;

constexpr char kModules[] = "modprobe -a rdma_ucm ib_uverbs";

}  // namespace

std::vector<Trouble> RdmaFileTroubles(const std::string& folder) {
  std::vector<Trouble> troubles;
  bool has_manager = false;
  bool has_device = false;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string path = at->path().string();
    const std::string name = at->path().filename().string();
    const bool is_manager = name == "rdma_cm";
    const bool is_device = name.rfind("uverbs", 0) == 0;
    if (!is_manager && !is_device) continue;
    has_manager = has_manager || is_manager;
    has_device = has_device || is_device;
    if (access(path.c_str(), R_OK | W_OK) == 0) continue;
    troubles.push_back(
        {path + ": " + strerror(errno),
         "a udev rule with MODE=\"0666\", or membership in its group (ls -l " + path + ")"});
  }
  if (error) return {{folder + ": " + error.message(), kModules}};
  if (!has_manager) troubles.push_back({folder + " has no rdma_cm", kModules});
  if (!has_device) troubles.push_back({folder + " has no uverbs*", kModules});
  return troubles;
}

}  // namespace viaduct::datinfo
