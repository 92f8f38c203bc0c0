// What datinfo knows, as one JSON document; text is made from the same.
#ifndef VIADUCT_TOOLS_DATINFO_REPORT_H_
#define VIADUCT_TOOLS_DATINFO_REPORT_H_

#include <string>

#include "nlohmann/json.hpp"

namespace viaduct::datinfo {

using Json = nlohmann::ordered_json;

// The registry's entries of both versions, in the order in which they are searched.
Json Providers();

// The attributes of an adapter of uDAPL 2.0, which is opened for it; if it is ours, which device
// serves it and why, and the transports that its connections may take. "error" if it cannot be
// opened.
Json Adapter(const std::string& name);

// Every setting with its value in force, its default and its meaning.
Json Settings();

// What stands in the way on this machine, and what to do about it. `program`: also which libraries
// this binary would load; empty: no binary.
Json Checks(const std::string& program);

// True if no check failed.
bool AllPassed(const Json& checks);

// The document as text, for people.
std::string ToText(const Json& document);

}  // namespace viaduct::datinfo

#endif  // VIADUCT_TOOLS_DATINFO_REPORT_H_
