// What stands in the way of a program on this machine, each with its cure.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "dat/registry/registry.h"
#include "tools/datinfo/elf_file.h"
#include "tools/datinfo/rdma_files.h"
#include "tools/datinfo/report.h"
#include "verbs/base/file_text.h"
#include "verbs/base/settings.h"

namespace viaduct::datinfo {
namespace {

namespace fs = std::filesystem;

// "ok", "warning" (something may be missed) or "failed" (something will not work).
Json Check(const std::string& name, const std::string& state, const std::string& finding,
           const std::string& cure = "") {
  Json json;
  json["check"] = name;
  json["state"] = state;
  json["finding"] = finding;
  if (!cure.empty()) json["cure"] = cure;
  return json;
}

std::string Amount(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit);
}

std::string FirstLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::vector<std::string> RdmaDevices() {
  std::vector<std::string> devices;
  std::error_code error;
  for (fs::directory_iterator at("/sys/class/infiniband", error), end; !error && at != end;
       at.increment(error)) {
    devices.push_back(at->path().filename().string());
  }
  std::sort(devices.begin(), devices.end());
  return devices;
}

Json CheckMemlock(bool has_rdma) {
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string finding = "RLIMIT_MEMLOCK is " + Amount(limit.rlim_cur) + " bytes";
  if (!has_rdma)
    return Check("memlock", "ok", finding + "; without an RDMA device no memory is locked");
  if (limit.rlim_cur == RLIM_INFINITY) return Check("memlock", "ok", finding);
  return Check("memlock", "warning", finding + "; an RDMA device locks all registered memory",
               "ulimit -l unlimited, or \"* - memlock unlimited\" in /etc/security/limits.d");
}

Json CheckYama() {
  const std::string scope = FirstLine("/proc/sys/kernel/yama/ptrace_scope");
  return Check("yama", "ok",
               scope.empty() ? "the kernel has no Yama"
                             : "ptrace_scope is " + scope +
                                   "; shared memory needs no rights over another process");
}

std::vector<Json> CheckRdmaRights(const std::vector<std::string>& devices) {
  if (devices.empty()) {
    return {Check("rdma", "ok", "no RDMA device; the soft device needs none")};
  }
  std::vector<Json> checks;
  for (const Trouble& trouble : RdmaFileTroubles("/dev/infiniband")) {
    checks.push_back(Check("rdma", "failed", trouble.finding, trouble.cure));
  }
  if (checks.empty()) checks.push_back(Check("rdma", "ok", "all of /dev/infiniband can be opened"));
  return checks;
}

Json CheckDescriptors() {
  constexpr rlim_t kEnough = 4096;
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::string finding = "RLIMIT_NOFILE is " + Amount(limit.rlim_cur);
  if (limit.rlim_cur >= kEnough) return Check("descriptors", "ok", finding);
  const std::string enough = std::to_string(kEnough);
  return Check("descriptors", "warning",
               finding +
                   "; the library keeps its own descriptors above 1023 where it can, and "
                   "connections between hosts take one each",
               limit.rlim_max < kEnough
                   ? "the hard limit is " + Amount(limit.rlim_max) + ": \"* - nofile " + enough +
                         "\" in /etc/security/limits.d"
                   : "ulimit -n " + std::to_string(std::min<rlim_t>(limit.rlim_max, 65536)));
}

std::vector<Json> CheckConf() {
  const std::string given = verbs::PathSetting(verbs::SettingId::kDatOverride);
  const std::string path = given.empty() ? "/etc/dat.conf" : given;
  const auto no_adapter = [](const std::string& finding) {
    return Check("dat.conf", "failed", finding + "; DAT_OVERRIDE leaves no adapter at all",
                 "correct DAT_OVERRIDE, or unset it");
  };
  std::string text;
  if (const int error = verbs::ReadFileText(path, &text); error != 0) {
    const std::string finding = path + ": " + strerror(error);
    if (!given.empty()) return {no_adapter(finding)};
    if (error == ENOENT) return {Check("dat.conf", "ok", finding + "; soft0 is built in")};
    return {Check("dat.conf", "failed", finding + "; only the built-in adapters can be opened",
                  error == EACCES
                      ? "chmod a+r " + path
                      : "dat.conf(5) says what file it is; without it soft0 is built in")};
  }
  const registry::DatConf conf = registry::ParseDatConf(text);
  std::vector<Json> checks;
  if (!given.empty() && conf.entries.empty()) checks.push_back(no_adapter(path + " has no entry"));
  for (const registry::BadLine& bad : conf.bad_lines) {
    checks.push_back(Check("dat.conf", "failed",
                           path + " line " + std::to_string(bad.line) + ": " + bad.reason,
                           "dat.conf(5) says what a line has"));
  }
  for (const registry::Entry& entry : conf.entries) {
    if (registry::IsEngines(entry)) {
      registry::Place place;
      if (registry::PlaceOf(entry, &place).ok()) continue;
      checks.push_back(Check("dat.conf", "warning",
                             path + " line " + std::to_string(entry.line) +
                                 ": no interface, address or RDMA adapter \"" + entry.parameters +
                                 "\" for " + entry.name,
                             "datinfo, ip link and ibv_devices list those that are here"));
      continue;
    }
    void* const library = dlopen(entry.library.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library != nullptr) {
      dlclose(library);
      continue;
    }
    const std::string why = dlerror();
    checks.push_back(Check("dat.conf", "warning",
                           path + " line " + std::to_string(entry.line) + ": " + why,
                           "install it, or write: " + registry::LineOfOurs(entry)));
  }
  if (checks.empty()) {
    checks.push_back(
        Check("dat.conf", "ok",
              path + " has " + std::to_string(conf.entries.size()) + " entries for user programs"));
  }
  return checks;
}

Json CheckVariables() {
  std::string problems;
  for (const std::string& problem : verbs::SettingProblems()) {
    problems += (problems.empty() ? "" : "; ") + problem;
  }
  if (problems.empty()) return Check("environment", "ok", "no variable is misspelt");
  return Check("environment", "warning", problems, "datinfo -e lists the settings");
}

// The loader's list of what a program loads, "NAME => PATH (ADDRESS)" in each line, and whether the
// loader could make it. Nothing of the program itself runs.
struct Listing {
  bool good = false;
  std::string text;
};

Listing LoaderList(const std::string& path) {
  Listing listing;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return listing;
  signal(SIGCHLD, SIG_DFL);  // where it is ignored there is no status to wait for
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    // The loader's --list gives up at the first library that is not there.
    setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
    execl("/lib64/ld-linux-x86-64.so.2", "ld.so", path.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    listing.text.append(buffer, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  listing.good = status == 0;
  return listing;
}

// A library that the program needs, directly or through others, or that is preloaded.
struct Library {
  std::string name;
  std::string path;  // empty: not found
};

// One that was named by its path has no " => ", and what it stands in for no line of its own.
std::vector<Library> LibrariesIn(const std::string& list) {
  constexpr char kArrow[] = " => ";
  std::vector<Library> libraries;
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    if (line[0] != '\t') continue;
    const size_t end = line.rfind(" (0x");
    const size_t arrow = line.find(kArrow);
    const size_t path = arrow == std::string::npos ? 1 : arrow + strlen(kArrow);
    libraries.push_back({line.substr(1, std::min(arrow, end) - 1),
                         end == std::string::npos ? "" : line.substr(path, end - path)});
  }
  return libraries;
}

// Whether programs name a library of an interface by this name: tools/install_files.
bool IsOfAnInterface(const std::string& name) {
  constexpr const char* kNames[] = {"libdat.so", "libdat2.so",    "libvipl.so",
                                    "libvia.so", "libgnivipl.so", "vipl.so"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&name](const char* known) { return name.rfind(known, 0) == 0; });
}

bool IsOurs(const std::string& path) {
  const std::optional<ElfFile> file = ReadElfFile(path);
  return file && std::count(file->needed.begin(), file->needed.end(), "libviaduct.so.1") != 0;
}

std::vector<Json> CheckProgram(const std::string& program) {
  struct stat status;
  if (stat(program.c_str(), &status) != 0 || access(program.c_str(), R_OK) != 0) {
    return {Check("program", "failed", program + ": " + strerror(errno),
                  "name the program by a path to a file that you may read")};
  }
  // Reading anything but a file may never end.
  const std::optional<ElfFile> file = S_ISREG(status.st_mode) ? ReadElfFile(program) : std::nullopt;
  if (!file) {
    return {Check("program", "failed", program + " is no 64-bit program of this machine",
                  "name a program that is linked with libdat, libdat2 or libvipl")};
  }
  const Json not_linked =
      Check("program", "warning", program + " is not linked with libdat, libdat2 or libvipl",
            "it may open one of them by name: see its own manual");
  // The loader has nothing to load for such a program, and would end by a signal.
  if (file->needed.empty()) return {not_linked};
  // The path has a slash, or else the loader would search for it as for a library, and no links,
  // because a program's $ORIGIN is where its file is.
  std::error_code error;
  const Listing list = LoaderList(fs::canonical(program, error).string());
  if (!list.good) {
    return {Check("program", "failed",
                  "the loader cannot list what " + program +
                      " loads: " + list.text.substr(0, list.text.find('\n')),
                  "what the loader names must be there, whole and of this machine")};
  }
  std::vector<Json> checks;
  for (const auto& [name, path] : LibrariesIn(list.text)) {
    const std::string file_name = name.substr(name.rfind('/') + 1);
    if (!IsOfAnInterface(file_name)) continue;
    const bool by_path = file_name != name;
    if (path.empty()) {
      checks.push_back(
          Check("program", "failed",
                std::string(program).append(" needs ").append(name).append(", which is not found"),
                by_path ? "put Viaduct's library there, or patchelf --replace-needed"
                        : "put the folder of Viaduct's libraries into LD_LIBRARY_PATH"));
      continue;
    }
    std::string finding = program;
    finding.append(" loads ").append(path);
    if (IsOurs(path)) {
      finding += ", which is Viaduct's";
      checks.push_back(Check("program", "ok", finding));
      continue;
    }
    finding += ", which is not Viaduct's";
    std::string cure = "LD_LIBRARY_PATH";
    if (by_path) {
      finding += "; it is named by its path";
      cure = "LD_PRELOAD";
    } else if (!file->rpath.empty() && file->runpath.empty()) {
      finding += "; its DT_RPATH " + file->rpath + " comes before LD_LIBRARY_PATH";
      cure = "chrpath -d, patchelf --remove-rpath, or LD_PRELOAD";
    } else if (name == "libdat2.so.2") {
      cure += ", or an entry of dat.conf with libdapl-viaduct.so.2";
    }
    checks.push_back(Check("program", "warning", finding, cure));
  }
  if (checks.empty()) checks.push_back(not_linked);
  return checks;
}

}  // namespace

Json Checks(const std::string& program) {
  const std::vector<std::string> devices = RdmaDevices();
  Json checks = Json::array();
  checks.push_back(CheckMemlock(!devices.empty()));
  checks.push_back(CheckYama());
  for (Json& check : CheckRdmaRights(devices)) checks.push_back(std::move(check));
  for (Json& check : CheckConf()) checks.push_back(std::move(check));
  checks.push_back(CheckDescriptors());
  checks.push_back(CheckVariables());
  if (!program.empty()) {
    for (Json& check : CheckProgram(program)) checks.push_back(std::move(check));
  }
  return checks;
}

bool AllPassed(const Json& checks) {
  return std::none_of(checks.begin(), checks.end(),
                      [](const Json& check) { return check["state"] == "failed"; });
}

}  // namespace viaduct::datinfo
