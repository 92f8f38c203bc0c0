// Which entries the engine serves itself, and the address that each is opened at.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "dat/registry/registry.h"
#include "verbs/base/interfaces.h"
#include "verbs/base/settings.h"
#include "verbs/base/version.h"
#include "verbs/open_device.h"

namespace viaduct::registry {
namespace {

constexpr std::string_view kOurLibrary = "libdapl-viaduct.so.2";

constexpr std::string_view kOfedLibraries[] = {"libdaplofa.so",  "libdaploscm.so", "libdaploucm.so",
                                               "libdaplomcm.so", "libdaplcma.so",  "libdaplscm.so"};

std::string_view FileName(const Entry& entry) {
  const std::string_view path = entry.library;
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// Removes the first word from `text` and returns it.
std::string TakeWord(std::string* text) {
  constexpr char kBlanks[] = " \t";
  const size_t begin = text->find_first_not_of(kBlanks);
  if (begin == std::string::npos) return "";
  const size_t end = std::min(text->find_first_of(kBlanks, begin), text->size());
  const std::string word = text->substr(begin, end - begin);
  text->erase(0, end);
  return word;
}

// The number that the word spells; 0 for any other word.
int NumberIn(const std::string& word) {
  int number = 0;
  const char* const end = word.data() + word.size();
  const auto [behind, error] = std::from_chars(word.data(), end, number);
  return error == std::errc() && behind == end && number > 0 ? number : 0;
}

// The network interface that a port of an RDMA device works on (0: any port); empty if the kernel
// names none.
std::string InterfaceOfRdmaDevice(const std::string& device, int port) {
  if (device == "." || device == ".." || device.find('/') != std::string::npos) return "";
  const std::filesystem::path folder = "/sys/class/infiniband/" + device + "/device/net";
  std::error_code error;
  std::filesystem::directory_iterator interface(folder, error);
  for (; !error && interface != std::filesystem::directory_iterator(); interface.increment(error)) {
    int from_zero = -1;
    std::ifstream(interface->path() / "dev_port") >> from_zero;
    if (port == 0 || from_zero + 1 == port) return interface->path().filename().string();
  }
  return "";
}

}  // namespace

bool IsOfeds(const Entry& entry) {
  for (std::string_view library : kOfedLibraries) {
    if (FileName(entry).substr(0, library.size()) == library) return true;
  }
  return false;
}

bool IsEngines(const Entry& entry) {
  if (entry.library.empty() || FileName(entry) == kOurLibrary) return true;
  return IsOfeds(entry) && verbs::ChoiceSetting(verbs::SettingId::kOfedEntries) == "engine";
}

core::Error PlaceOf(const Entry& entry, Place* place) {
  std::string parameters = entry.parameters;
  const std::string word = TakeWord(&parameters);
  *place = Place();
  const std::optional<verbs::Interfaces> interfaces = verbs::ListInterfaces();
  if (!interfaces) return core::OutOf(core::Resource::kDevice);
  if (word.empty()) {
    const std::optional<verbs::Address> by_default = verbs::DefaultAddress(*interfaces);
    if (!by_default) return core::OutOf(core::Resource::kDevice);
    place->address = *by_default;
    return core::Ok();
  }
  std::optional<verbs::Address> found = verbs::Address::Parse(word);
  if (!found) found = verbs::InterfaceAddress(*interfaces, word);
  if (!found) {
    const int port = NumberIn(TakeWord(&parameters));
    const std::vector<verbs::RdmaAdapter> adapters = verbs::ListRdmaAdapters();
    if (const auto* const adapter = verbs::FindAdapter(adapters, word, port); adapter != nullptr) {
      *place = {adapter->address, adapter->device};
      return core::Ok();
    }
    const std::string interface = InterfaceOfRdmaDevice(word, port);
    if (!interface.empty()) found = verbs::InterfaceAddress(*interfaces, interface);
  }
  if (!found || (!found->IsLoopback() && !verbs::HasAddress(*interfaces, *found))) {
    return core::Code::kNotFound;
  }
  place->address = *found;
  return core::Ok();
}

std::string LineOfOurs(const Entry& entry) {
  Entry ours = entry;
  ours.library = kOurLibrary;
  const std::string version = VIADUCT_VERSION;  // major.minor.patch
  ours.library_version = "viaduct." + version.substr(0, version.rfind('.'));
  Place place;
  if (PlaceOf(entry, &place) == core::Code::kNotFound) ours.parameters.clear();
  return ToLine(ours);
}

}  // namespace viaduct::registry
