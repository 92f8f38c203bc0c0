// The standard output of a program that loads libraries of others: OFED's providers write there
// themselves, in the middle of a report that a script may read.
#ifndef VIADUCT_TOOLS_REPORT_OUTPUT_H_
#define VIADUCT_TOOLS_REPORT_OUTPUT_H_

#include <string>

namespace viaduct {

// As long as it lives, what others print goes to the standard error.
class ReportOutput {
 public:
  ReportOutput();
  ~ReportOutput();
  ReportOutput(const ReportOutput&) = delete;
  ReportOutput& operator=(const ReportOutput&) = delete;

  // Throws std::runtime_error if it cannot be written.
  void Print(const std::string& text);

 private:
  const int output_;
};

}  // namespace viaduct

#endif  // VIADUCT_TOOLS_REPORT_OUTPUT_H_
