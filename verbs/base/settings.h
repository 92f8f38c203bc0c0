// Every setting of the project in one table. They come from the environment; the manual page, the
// listing of `datinfo -e` and the check for misspelt variables are made from the same table.
#ifndef VIADUCT_VERBS_BASE_SETTINGS_H_
#define VIADUCT_VERBS_BASE_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace viaduct::verbs {

enum class SettingType {
  kChoice,        // one of `choices`
  kNumber,        // minimum..maximum
  kNumberOrAuto,  // the same, or "auto"
  kMask,          // of bits, decimal or 0x...; empty: not given
  kPath,          // of a file; may be empty if the default is
};

struct Setting {
  const char* name;
  SettingType type;
  const char* default_value;
  const char* choices;  // "a|b|c"; of kChoice
  int64_t minimum;
  int64_t maximum;
  const char* help;
};

// In the table's order.
enum class SettingId {
  kLog,
  kWire,
  kListen,
  kPortBase,
  kPortCount,
  kGraceMs,
  kDatGraceMs,
  kSpinUs,
  kSilenceMs,
  kCrc,
  kFirstWordMs,
  kWindows,
  kNicNames,
  kLocalHost,
  kImmediate,
  kVipHosts,
  kVipNics,
  kDatOverride,  // empty: not given
  kOfedEntries,
  kQueueEmpty,
  kShortList,
  kDatDebug,   // empty: not given
  kDaplDebug,  // the same
};

absl::Span<const Setting> AllSettings();
const Setting& GetSetting(SettingId id);

// The value in force: the environment's if it is valid, else the default. Read anew at each call.
std::string ChoiceSetting(SettingId id);
std::string PathSetting(SettingId id);
int64_t NumberSetting(SettingId id);
std::optional<int64_t> NumberOrAutoSetting(SettingId id);  // null: auto
std::optional<uint32_t> MaskSetting(SettingId id);         // null: not given
// Whether the environment has a valid value.
bool IsGiven(SettingId id);
// What a valid value is, worded to follow "is not": "one of a|b".
std::string ExpectedValue(const Setting& setting);

// One sentence for each variable of `environment` (entries "NAME=value") that cannot mean what its
// author meant: a VIADUCT_ name that is not in the table, a VIP_ or DAT_ name that nothing reads,
// an invalid value. In a `privileged` process, one with more rights than the user who started it,
// that is every setting, since none is read there. LogSettingProblems logs them.
std::vector<std::string> SettingProblems(absl::Span<const char* const> environment,
                                         bool privileged = false);
// The same for this process.
std::vector<std::string> SettingProblems();

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_SETTINGS_H_
