// The results of a measurement, as text or as JSON.
#ifndef VIADUCT_TOOLS_DATPING_REPORT_H_
#define VIADUCT_TOOLS_DATPING_REPORT_H_

#include <string>
#include <vector>

#include "tools/datping/measure.h"

namespace viaduct::datping {

std::string TextReport(const Options& options, const std::vector<Result>& results);
std::string JsonReport(const Options& options, const std::vector<Result>& results);

}  // namespace viaduct::datping

#endif  // VIADUCT_TOOLS_DATPING_REPORT_H_
