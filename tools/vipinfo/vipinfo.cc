// vipinfo: the NICs that VipOpenNic knows here, their attributes, and which device serves each. See
// vipinfo --help and vipinfo.1.
#include <getopt.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <vipl.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using Json = nlohmann::ordered_json;

constexpr char kHelp[] =
    "vipinfo - which NICs VIA programs find on this host\n"
    "\n"
    "usage: vipinfo [OPTION]... [NIC]...\n"
    "\n"
    "Opens each NIC by its name, as VipOpenNic takes it, and prints its attributes, the device "
    "that\n"
    "serves it and why. Without a name: nic0, /dev/via_lo, /dev/via_IF for every interface that "
    "is up\n"
    "and has an IPv4 address, and every RDMA device that such an address leads to.\n"
    "\n"
    "  -a, --addresses   also the addresses that autodiscovery lists\n"
    "  -s, --short       one line for each NIC: name, address, device and reason\n"
    "  -j, --json        a JSON array, an object for each NIC\n"
    "  -h, --help        -V, --version\n"
    "\n"
    "Names: /etc/vip_nics (VIADUCT_VIP_NICS) says what a name means on this host; addresses come "
    "from\n"
    "/etc/vip_hosts (VIADUCT_VIP_HOSTS). Exit status: 0, 1 if a NIC could not be opened, 2 for a "
    "wrong\n"
    "command line.\n";

struct Options {
  bool addresses = false;
  bool brief = false;
  bool json = false;
  std::vector<std::string> names;
};

std::vector<std::string> UsualNames() {
  std::vector<std::string> names = {"nic0", "/dev/via_lo"};
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return names;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET ||
        (entry->ifa_flags & IFF_UP) == 0 || (entry->ifa_flags & IFF_LOOPBACK) != 0) {
      continue;
    }
    const std::string name = std::string("/dev/via_") + entry->ifa_name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  freeifaddrs(list);
  return names;
}

bool IsActive(const std::filesystem::path& port) {
  std::string state;
  std::getline(std::ifstream(port / "state"), state);
  return state.find("ACTIVE") != std::string::npos;
}

// The NIC names of RDMA devices, if an address leads to them: (device, name). With several active
// ports the name ends with the port's number; the library would warn of a name without it.
std::vector<std::pair<std::string, std::string>> RdmaNames() {
  namespace fs = std::filesystem;
  std::vector<std::pair<std::string, std::string>> names;
  std::error_code error;
  for (const fs::directory_entry& device : fs::directory_iterator("/sys/class/infiniband", error)) {
    const std::string name = device.path().filename().string();
    std::vector<std::string> active;
    for (const fs::directory_entry& port : fs::directory_iterator(device.path() / "ports", error)) {
      if (IsActive(port.path())) active.push_back(port.path().filename().string());
    }
    if (active.size() < 2) active = {""};
    for (const std::string& port : active) {
      names.emplace_back(name, port.empty() ? name : name + ":" + port);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "192.0.2.1" and, if it is not 0, "/instance".
std::string TextOf(const VIP_UINT8* host, size_t size) {
  std::string text;
  for (size_t i = 0; i < size && i < 4; ++i) text += (i != 0 ? "." : "") + std::to_string(host[i]);
  if (size == 6 && (host[4] != 0 || host[5] != 0)) {
    text += "/" + std::to_string(host[4] << 8 | host[5]);
  }
  return text;
}

Json LevelsOf(VIP_RELIABILITY_LEVEL levels) {
  Json names = Json::array();
  if (levels & VIP_SERVICE_UNRELIABLE) names.push_back("unreliable delivery");
  if (levels & VIP_SERVICE_RELIABLE_DELIVERY) names.push_back("reliable delivery");
  if (levels & VIP_SERVICE_RELIABLE_RECEPTION) names.push_back("reliable reception");
  return names;
}

Json Addresses(VIP_NIC_HANDLE nic) {
  VIP_AUTODISCOVERY_LIST list = {};
  Json found = Json::array();
  if (VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &list) != VIP_SUCCESS) return found;
  std::vector<VIP_NET_ADDRESS*> room(list.NumAdAddrs, nullptr);
  list.ADAddrArray = room.data();
  if (VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &list) != VIP_SUCCESS) return found;
  VipNSInit(nic, nullptr);
  for (VIP_ULONG i = 0; i < list.NumAdAddrs; ++i) {
    std::string text = TextOf(room[i]->HostAddress, room[i]->HostAddressLen);
    char name[256];
    VIP_ULONG size = sizeof name;
    if (VipNSGetHostByAddr(nic, room[i], name, &size) == VIP_SUCCESS)
      text += std::string(" ") + name;
    found.push_back(text);
  }
  VipNSShutdown(nic);
  return found;
}

// Everything that is reported of a NIC, in the order of the report; "error" if this fails.
Json Ask(const std::string& name, const Options& options) {
  Json info;
  info["name"] = name;
  VIP_NIC_HANDLE nic = nullptr;
  const VIP_RETURN opened = VipOpenNic(name.c_str(), &nic);
  if (opened != VIP_SUCCESS) {
    // VIPL returns the same for an unknown name and for a NIC whose device is not there.
    info["error"] =
        opened == VIP_INVALID_PARAMETER
            ? "VIP_INVALID_PARAMETER: there is no such NIC, or it cannot be opened and a "
              "warning in the log says why"
            : "VIP_ERROR_RESOURCE: it cannot be opened";
    return info;
  }
  VIP_NIC_ATTRIBUTES a = {};
  VIADUCT_DEVICE_INFO device = {};
  if (VipQueryNic(nic, &a) != VIP_SUCCESS ||
      VipQuerySystemManagementInfo(nic, VIADUCT_SMI_DEVICE, &device) != VIP_SUCCESS) {
    info["error"] = "it cannot be queried";
  } else {
    info["address"] = TextOf(a.LocalNicAddress, a.NicAddressLen);
    info["device"] = device.Device;
    info["reason"] = device.Reason;
    info["HardwareVersion"] = a.HardwareVersion;
    info["ProviderVersion"] = a.ProviderVersion;
    info["ThreadSafe"] = a.ThreadSafe != VIP_FALSE;
    info["NicAddressLen"] = a.NicAddressLen;
    info["MaxDiscriminatorLen"] = a.MaxDiscriminatorLen;
    info["MaxRegisterBytes"] = a.MaxRegisterBytes;
    info["MaxRegisterRegions"] = a.MaxRegisterRegions;
    info["MaxRegisterBlockBytes"] = a.MaxRegisterBlockBytes;
    info["MaxVI"] = a.MaxVI;
    info["MaxDescriptorsPerQueue"] = a.MaxDescriptorsPerQueue;
    info["MaxSegmentsPerDesc"] = a.MaxSegmentsPerDesc;
    info["MaxCQ"] = a.MaxCQ;
    info["MaxCQEntries"] = a.MaxCQEntries;
    info["MaxTransferSize"] = a.MaxTransferSize;
    info["NativeMTU"] = a.NativeMTU;
    info["MaxPtags"] = a.MaxPtags;
    info["ReliabilityLevelSupport"] = LevelsOf(a.ReliabilityLevelSupport);
    info["RDMAReadSupport"] = LevelsOf(a.RDMAReadSupport);
    if (options.addresses) info["addresses"] = Addresses(nic);
  }
  VipCloseNic(nic);
  return info;
}

std::string ValueText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& each : value) text += (text.empty() ? "" : ", ") + each.get<std::string>();
  return text.empty() ? "none" : text;
}

void Print(const Json& info, const Options& options) {
  const std::string name = info["name"].get<std::string>();
  if (info.contains("error")) {
    std::fprintf(stderr, "vipinfo: %s: %s\n", name.c_str(), ValueText(info["error"]).c_str());
  } else if (options.brief) {
    std::printf("%-16s %-15s %s: %s\n", name.c_str(), ValueText(info["address"]).c_str(),
                ValueText(info["device"]).c_str(), ValueText(info["reason"]).c_str());
  } else {
    std::printf("%s\n", name.c_str());
    for (const auto& [key, value] : info.items()) {
      if (key != "name") std::printf("  %-24s %s\n", key.c_str(), ValueText(value).c_str());
    }
  }
}

// False if there is nothing left to do.
bool ParseOptions(int argc, char** argv, Options* options, int* status) {
  static constexpr option kLong[] = {
      {"addresses", no_argument, nullptr, 'a'}, {"short", no_argument, nullptr, 's'},
      {"json", no_argument, nullptr, 'j'},      {"help", no_argument, nullptr, 'h'},
      {"version", no_argument, nullptr, 'V'},   {nullptr, 0, nullptr, 0}};
  int option;
  while ((option = getopt_long(argc, argv, "asjhV", kLong, nullptr)) != -1) {
    switch (option) {
      case 'a':
        options->addresses = true;
        break;
      case 's':
        options->brief = true;
        break;
      case 'j':
        options->json = true;
        break;
      case 'h':
        std::fputs(kHelp, stdout);
        *status = 0;
        return false;
      case 'V':
        std::puts("vipinfo " VIADUCT_VERSION);
        *status = 0;
        return false;
      default:
        std::fputs("See vipinfo --help\n", stderr);
        *status = 2;
        return false;
    }
  }
  options->names.assign(argv + optind, argv + argc);
  return true;
}

// An earlier write, of what did not fit into the buffer, may have failed.
void FinishOutput() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw std::runtime_error("standard output cannot be written");
  }
}

int Run(int argc, char** argv) {
  Options options;
  int status = 0;
  if (!ParseOptions(argc, argv, &options, &status)) {
    FinishOutput();
    return status;
  }
  Json all = Json::array();
  const auto tell = [&](Json info) {
    if (info.contains("error")) status = 1;
    if (!options.json) Print(info, options);
    all.push_back(std::move(info));
  };
  for (const std::string& name : options.names.empty() ? UsualNames() : options.names) {
    tell(Ask(name, options));
  }
  if (options.names.empty()) {
    // A device without an address is no NIC, and its name may mean another one.
    for (const auto& [device, name] : RdmaNames()) {
      Json info = Ask(name, options);
      if (!info.contains("error") && info["device"] == device) tell(std::move(info));
    }
  }
  if (options.json) std::puts(all.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  FinishOutput();
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "vipinfo: %s\n", e.what());
    return 1;
  }
}
