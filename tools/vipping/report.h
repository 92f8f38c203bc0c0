// The results of a measurement, as text or as JSON.
#ifndef VIADUCT_TOOLS_VIPPING_REPORT_H_
#define VIADUCT_TOOLS_VIPPING_REPORT_H_

#include <string>

#include "tools/vipping/measure.h"

namespace viaduct::vipping {

std::string TextReport(const Options& options, const VIADUCT_DEVICE_INFO& device,
                       const Result& result);
std::string JsonReport(const Options& options, const VIADUCT_DEVICE_INFO& device,
                       const Result& result);

}  // namespace viaduct::vipping

#endif  // VIADUCT_TOOLS_VIPPING_REPORT_H_
