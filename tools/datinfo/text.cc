// The document as lines for people.
#include <algorithm>
#include <string>

#include "tools/datinfo/report.h"

namespace viaduct::datinfo {
namespace {

std::string Plain(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string Padded(const std::string& text, size_t width) {
  return text.size() >= width ? text : text + std::string(width - text.size(), ' ');
}

void AddProviders(const Json& providers, std::string* text) {
  size_t width = 0;
  for (const Json& p : providers) width = std::max(width, Plain(p["name"]).size());
  *text += "Adapters:\n";
  for (const Json& p : providers) {
    *text += "  " + Padded(Plain(p["name"]), width) + " u" + Plain(p["version"]) + "  " +
             Padded(p["thread_safe"].get<bool>() ? "threadsafe" : "nonthreadsafe", 14) + " " +
             Plain(p["served_by"]);
    if (p.contains("parameters")) *text += " \"" + Plain(p["parameters"]) + "\"";
    *text += " (" + Plain(p["from"]) + ")\n";
  }
}

void AddMembers(const Json& object, const std::string& indent, std::string* text) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      if (value.empty()) continue;
      *text += indent + key + ":\n";
      AddMembers(value, indent + "  ", text);
    } else if (value.is_array()) {
      for (const Json& item : value) {
        *text +=
            indent + Padded(key, 34) + Plain(item["name"]) + ": " + Plain(item["reaches"]) + "\n";
      }
    } else {
      *text += indent + Padded(key, 34) + Plain(value) + "\n";
    }
  }
}

void AddSettings(const Json& settings, std::string* text) {
  *text += "Settings, from the environment:\n";
  for (const Json& s : settings) {
    *text += "  " + Plain(s["name"]) + "=" + Plain(s["value"]) + "\n      " + Plain(s["allowed"]) +
             "; default \"" + Plain(s["default"]) + "\"\n      " + Plain(s["help"]) + "\n";
  }
}

void AddChecks(const Json& checks, std::string* text) {
  for (const Json& c : checks) {
    *text += Padded(Plain(c["state"]), 8) + " " + Padded(Plain(c["check"]), 12) + " " +
             Plain(c["finding"]) + "\n";
    if (c.contains("cure")) *text += std::string(22, ' ') + "cure: " + Plain(c["cure"]) + "\n";
  }
}

}  // namespace

std::string ToText(const Json& document) {
  std::string text;
  if (document.contains("providers")) AddProviders(document["providers"], &text);
  if (document.contains("adapters")) {
    for (const Json& adapter : document["adapters"]) {
      text += (text.empty() ? "" : "\n") + Plain(adapter["name"]) + ":\n";
      Json members = adapter;
      members.erase("name");
      AddMembers(members, "  ", &text);
    }
  }
  if (document.contains("settings")) AddSettings(document["settings"], &text);
  if (document.contains("checks")) AddChecks(document["checks"], &text);
  return text;
}

}  // namespace viaduct::datinfo
