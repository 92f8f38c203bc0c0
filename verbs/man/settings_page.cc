// Writes viaduct-settings.7, the manual page of all settings, from their table.
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "verbs/base/settings.h"

namespace viaduct::verbs {
namespace {

constexpr char kHead[] = R"(.TH VIADUCT\-SETTINGS 7 "" "Viaduct" "Miscellaneous"
.SH NAME
viaduct\-settings \- variables of the environment that Viaduct reads
.SH DESCRIPTION
Viaduct needs no setting on a plain machine.
Most variables below are read when an adapter is opened or, like the grace periods, anew at each use.
VIADUCT_LOG, VIADUCT_QUEUE_EMPTY, DAT_OVERRIDE, DAT_DBG_TYPE and DAPL_DBG_TYPE are read once, where they are used first.
A value that a variable cannot have leaves the default.
The first call of a program that opens an adapter writes a line to the log about each such value, and about each variable whose name begins with VIADUCT_, DAT_ or VIP_ and means nothing, also if there is no such adapter.
A program that is set-user-ID or set-group-ID, or has capabilities of its file, reads none of them, and says so there.
.BR "datinfo \-e" " shows all of them with the values in force."
.SH SETTINGS
)";

constexpr char kTail[] = R"(.SH "SEE ALSO"
.BR datinfo (1),
.BR dat.conf (5),
.BR udapl\-viaduct (7),
.BR viaduct (7),
.BR vipl (7)
)";

// Text as roff wants it in the middle of a line. Our lines cannot be mistaken for requests: each
// begins with a macro of the page's own or with a letter.
std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
}

std::string Default(const Setting& setting) {
  return *setting.default_value == '\0' ? "not given" : setting.default_value;
}

// One paragraph: name, valid values, default value, what it does.
std::string Paragraph(const Setting& setting) {
  return absl::StrCat(".TP\n.B ", Escaped(setting.name), "\nIs ", Escaped(ExpectedValue(setting)),
                      "; by default ", Escaped(Default(setting)), ".\n.br\n", Escaped(setting.help),
                      "\n");
}

std::string Page() {
  std::string page = kHead;
  for (const Setting& setting : AllSettings()) page += Paragraph(setting);
  return page + kTail;
}

}  // namespace
}  // namespace viaduct::verbs

int main() {
  const std::string page = viaduct::verbs::Page();
  return fwrite(page.data(), 1, page.size(), stdout) == page.size() && fflush(stdout) == 0 ? 0 : 1;
}
