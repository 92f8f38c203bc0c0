#include "verbs/base/settings.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace viaduct::verbs {
namespace {

constexpr Setting kSettings[] = {
    {"VIADUCT_LOG", SettingType::kChoice, "warn", "error|warn|info|debug|trace", 0, 0,
     "What is written to standard error: error, warn, info (per adapter), debug (per object), "
     "trace (per message). Where DAT_DBG_TYPE or DAPL_DBG_TYPE is set too, this one counts."},
    {"VIADUCT_WIRE", SettingType::kChoice, "auto", "auto|shm|iwarp|rdma", 0, 0,
     "The soft device's wire: shared memory where the peer runs on this host and iWARP elsewhere "
     "(auto), or one of them always. rdma opens the RDMA device that has the adapter's address "
     "instead of the soft device."},
    {"VIADUCT_LISTEN", SettingType::kChoice, "default", "default|loopback", 0, 0,
     "Listeners bind the adapter's address and loopback (default), or loopback alone: an RDMA "
     "device, which has its address alone, then cannot listen."},
    {"VIADUCT_PORT_BASE", SettingType::kNumber, "61000", "", 1024, 65535,
     "First of the ports that names without a port of their own are hashed to. The same on all "
     "hosts that talk to each other."},
    {"VIADUCT_PORT_COUNT", SettingType::kNumber, "4536", "", 16, 64512,
     "How many such ports there are. They end at 65535 at the latest, so more than the default "
     "need a lower VIADUCT_PORT_BASE, too."},
    {"VIADUCT_GRACE_MS", SettingType::kNumber, "250", "", 0, 60000,
     "How long VipConnectRequest repeats a request that nobody waits for, in milliseconds."},
    {"VIADUCT_DAT_GRACE_MS", SettingType::kNumber, "200", "", 0, 60000,
     "How long dat_ep_connect repeats a request where nobody listens, in milliseconds; a server "
     "may tell its place before it listens there."},
    {"VIADUCT_SPIN_US", SettingType::kNumberOrAuto, "auto", "", 0, 1000000,
     "How long a wait polls before it sleeps, in microseconds; auto measures a wake-up at open."},
    {"VIADUCT_SILENCE_MS", SettingType::kNumber, "10000", "", 100, 3600000,
     "How long a peer may leave a handshake open, or one on another host an acknowledgement of "
     "TCP, before the connection counts as lost, in milliseconds. An idle connection whose network "
     "has gone is noticed within that time, in seconds and not below two."},
    {"VIADUCT_CRC", SettingType::kChoice, "on", "on|off", 0, 0,
     "Whether connections between hosts are protected by iWARP's CRC32C: always (on), or only "
     "where the peer asks for it (off)."},
    {"VIADUCT_FIRST_WORD_MS", SettingType::kNumber, "300", "", 0, 60000,
     "How long, in milliseconds, an accepted connection from another host holds what it has to "
     "send for a peer that has to speak first and does not, as with servers that talk first to "
     "clients on Linux siw; 0 holds it until the peer speaks, as iWARP demands."},
    {"VIADUCT_WINDOWS", SettingType::kChoice, "auto", "auto|device|regions", 0, 0,
     "What a memory window is on an RDMA device: the device's own (device), a registration of its "
     "range (regions), or its own unless the driver is known not to keep peers within a window's "
     "bounds, as Linux's rxe (auto)."},
    {"VIADUCT_NIC_NAMES", SettingType::kChoice, "any", "any|known", 0, 0,
     "Whether VipOpenNic takes a name that it does not know for the default adapter (any), or "
     "refuses it (known)."},
    {"VIADUCT_LOCAL_HOST", SettingType::kChoice, "nic", "nic|any", 0, 0,
     "Whether the host in the LocalAddr of VIPL's calls must be the NIC's own address (nic), or "
     "its bytes are not looked at (any): some programs leave them unset."},
    {"VIADUCT_IMMEDIATE", SettingType::kChoice, "marked", "marked|always", 0, 0,
     "Whether a send of VIPL carries its ImmediateData only if VIP_CONTROL_IMMEDIATE says so "
     "(marked), or always, as some programs expect (Madeleine II)."},
    {"VIADUCT_VIP_HOSTS", SettingType::kPath, "/etc/vip_hosts", "", 0, 0,
     "The file in which VipNSGetHostByName looks first."},
    {"VIADUCT_VIP_NICS", SettingType::kPath, "/etc/vip_nics", "", 0, 0,
     "The file that says which interface and device the name of a NIC means to VipOpenNic."},
    {"DAT_OVERRIDE", SettingType::kPath, "", "", 0, 0,
     "The dat.conf whose adapters count, and no others; without it /etc/dat.conf and the built-in "
     "adapters."},
    {"VIADUCT_OFED_ENTRIES", SettingType::kChoice, "load", "load|engine", 0, 0,
     "Whether an entry of dat.conf that names a provider of OFED (libdaplofa and others) loads "
     "that library, or is served by the engine on the same interface."},
    {"VIADUCT_QUEUE_EMPTY", SettingType::kChoice, "error", "error|bare", 0, 0,
     "How dat_evd_dequeue and dat_cno_wait say that there is no event, and dat_evd_wait on a "
     "dispatcher for completions of posts or binds that has no notifier: DAT_QUEUE_EMPTY and "
     "DAT_TIMEOUT_EXPIRED with the class of an error, as the specification has it, or the bare "
     "enumerators, with which programs written for OFED compare them."},
    {"VIADUCT_SHORT_LIST", SettingType::kChoice, "refused", "refused|filled", 0, 0,
     "What dat_registry_list_providers does with a list that is too short for all adapters: it "
     "refuses it and tells their number, as the specification has it, or fills it, as OFED does "
     "(Open MPI has room for eight)."},
    {"DAT_DBG_TYPE", SettingType::kMask, "", "", 0, UINT32_MAX,
     "The mask of OFED's registry, for those who have it in their scripts: 0 and 1 are error, 2 to "
     "8 (the registry) info, 0x10 and above (calls) debug."},
    {"DAPL_DBG_TYPE", SettingType::kMask, "", "", 0, UINT32_MAX,
     "The mask of OFED's provider, likewise: 0 and 1 are error, 2 is warn, 4 to 0x80 (events, "
     "connections, endpoints) debug, 0x100 and 0x200 (calls) trace, higher ones debug. Of several "
     "bits, and of both masks, the one that says most decides."},
};

// Names that begin like ours but are not settings: DAT's own, and those of our scripts and tests.
constexpr absl::string_view kForeignNames[] = {
    "DAT_DBG_LEVEL",       "DAT_DBG_DEST",  "DAT_CONF",
    "DAT_IA_NAME",         "VIADUCT_BAZEL", "VIADUCT_LONG",
    "VIADUCT_TEST_EVENTS", "VIADUCT_SEED",  "VIADUCT_RDMA_ADDRESS",
    "VIADUCT_OPTIMIZED",
};

constexpr absl::string_view kOurPrefix = "VIADUCT_";

bool ParseNumber(const Setting& setting, absl::string_view text, int64_t* value) {
  const bool hexadecimal = setting.type == SettingType::kMask && absl::StartsWith(text, "0x");
  return (hexadecimal ? absl::SimpleHexAtoi(text, value) : absl::SimpleAtoi(text, value)) &&
         *value >= setting.minimum && *value <= setting.maximum;
}

// The user who starts a set-user-ID program, or one with file capabilities, must not choose which
// files it reads and loads.
const char* FromEnvironment(const Setting& setting) { return secure_getenv(setting.name); }

bool IsValid(const Setting& setting, absl::string_view text) {
  int64_t number;
  switch (setting.type) {
    case SettingType::kChoice:
      return absl::c_linear_search(absl::StrSplit(setting.choices, '|'), text);
    case SettingType::kNumberOrAuto:
      if (text == "auto") return true;
      [[fallthrough]];
    case SettingType::kNumber:
      return ParseNumber(setting, text, &number);
    case SettingType::kMask:
      return text.empty() || ParseNumber(setting, text, &number);
    case SettingType::kPath:
      return !text.empty() || *setting.default_value == '\0';
  }
  return false;
}

absl::string_view ValidText(const Setting& setting) {
  const char* text = FromEnvironment(setting);
  return text != nullptr && IsValid(setting, text) ? text : setting.default_value;
}

// What is used instead of an invalid value, for the message.
absl::string_view UsedInstead(const Setting& setting) {
  return *setting.default_value != '\0' ? setting.default_value : "nothing";
}

const Setting* FindSetting(absl::string_view name) {
  for (const Setting& setting : kSettings) {
    if (name == setting.name) return &setting;
  }
  return nullptr;
}

// Levenshtein distance, for the hint; the names are short.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// The number that `environment` gives a setting, or its default.
int64_t NumberIn(absl::Span<const char* const> environment, SettingId id) {
  const Setting& setting = GetSetting(id);
  int64_t value = 0;
  for (absl::string_view entry : environment) {
    if (absl::ConsumePrefix(&entry, absl::StrCat(setting.name, "=")) &&
        ParseNumber(setting, entry, &value)) {
      return value;
    }
  }
  (void)ParseNumber(setting, setting.default_value, &value);
  return value;
}

std::string Hint(absl::string_view name) {
  for (const Setting& setting : kSettings) {
    if (Distance(name, setting.name) <= 3) return absl::StrCat(" (", setting.name, " is one)");
  }
  return "";
}

}  // namespace

std::string ExpectedValue(const Setting& setting) {
  switch (setting.type) {
    case SettingType::kChoice:
      return absl::StrCat("one of ", setting.choices);
    case SettingType::kNumber:
      return absl::StrCat("a number in ", setting.minimum, "..", setting.maximum);
    case SettingType::kNumberOrAuto:
      return absl::StrCat("a number in ", setting.minimum, "..", setting.maximum, " or auto");
    case SettingType::kMask:
      return "a mask of bits";
    case SettingType::kPath:
      break;
  }
  return "a path";
}

absl::Span<const Setting> AllSettings() { return kSettings; }

const Setting& GetSetting(SettingId id) { return kSettings[static_cast<size_t>(id)]; }

std::string ChoiceSetting(SettingId id) { return std::string(ValidText(GetSetting(id))); }

std::string PathSetting(SettingId id) { return std::string(ValidText(GetSetting(id))); }

int64_t NumberSetting(SettingId id) { return *NumberOrAutoSetting(id); }

std::optional<int64_t> NumberOrAutoSetting(SettingId id) {
  const Setting& setting = GetSetting(id);
  int64_t value = 0;
  if (!ParseNumber(setting, ValidText(setting), &value)) return std::nullopt;
  return value;
}

std::optional<uint32_t> MaskSetting(SettingId id) {
  const std::optional<int64_t> value = NumberOrAutoSetting(id);
  if (!value.has_value()) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

bool IsGiven(SettingId id) {
  const Setting& setting = GetSetting(id);
  const char* text = FromEnvironment(setting);
  return text != nullptr && IsValid(setting, text);
}

std::vector<std::string> SettingProblems(absl::Span<const char* const> environment,
                                         bool privileged) {
  std::vector<std::string> problems;
  for (absl::string_view entry : environment) {
    const size_t equals = entry.find('=');
    if (equals == absl::string_view::npos) continue;
    const absl::string_view name = entry.substr(0, equals);
    const absl::string_view value = entry.substr(equals + 1);
    if (const Setting* setting = FindSetting(name)) {
      if (privileged) {
        problems.push_back(
            absl::StrCat(name, ": not read by a program that has more rights than who started it"));
      } else if (!IsValid(*setting, value)) {
        problems.push_back(absl::StrCat(name, ": \"", value, "\" is not ", ExpectedValue(*setting),
                                        "; ", UsedInstead(*setting), " is used"));
      }
      continue;
    }
    const bool ours = absl::StartsWith(name, kOurPrefix);
    const bool like_ours = absl::StartsWith(name, "VIP_") || absl::StartsWith(name, "DAT_");
    if ((ours || like_ours) && !absl::c_linear_search(kForeignNames, name)) {
      problems.push_back(absl::StrCat(name, ": no such setting", Hint(name)));
    }
  }
  constexpr int64_t kPortsEnd = 65536;
  const int64_t base = NumberIn(environment, SettingId::kPortBase);
  const int64_t count = NumberIn(environment, SettingId::kPortCount);
  const bool asked = count != NumberIn({}, SettingId::kPortCount);
  const bool few = kPortsEnd - base < GetSetting(SettingId::kPortCount).minimum;
  if (!privileged && base + count > kPortsEnd && (asked || few)) {
    problems.push_back(absl::StrCat("VIADUCT_PORT_COUNT: there are only ", kPortsEnd - base, " of ",
                                    count, " ports, as VIADUCT_PORT_BASE is ", base));
  }
  return problems;
}

std::vector<std::string> SettingProblems() {
  size_t count = 0;
  while (environ != nullptr && environ[count] != nullptr) ++count;
  return SettingProblems(absl::MakeConstSpan(environ, count), getauxval(AT_SECURE) != 0);
}

}  // namespace viaduct::verbs
