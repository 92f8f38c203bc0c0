// A server and a client of somebody else's, run to their ends and judged by what they print.
#ifndef VIADUCT_TESTS_INTEROP_PAIR_H_
#define VIADUCT_TESTS_INTEROP_PAIR_H_

#include <cstdint>
#include <string>
#include <vector>

namespace viaduct::tests {

// A command line's words, split at blanks.
std::vector<std::string> Words(const std::string& line);

// Expects no complaint in the output of a program. `allowed` is taken out first.
void ExpectNoComplaint(const std::string& output, const std::vector<std::string>& allowed = {});

// True in the long form of the tests (tools/test --all).
bool IsLong();

struct PairOfPrograms {
  std::string program;                         // its path
  std::string server, client;                  // arguments
  std::string ready;                           // what the server prints when it can be reached
  std::string server_success, client_success;  // what each prints when all went well
  // What a client prints that came too early, if the server says that it is ready before it is. The
  // client is then started again.
  std::string too_early = {};
  uint16_t fixed_port = 0;  // if its port cannot be chosen; 0: it can
};

// Fails the test unless both print their success, end with status 0 and complain of nothing.
void RunPrograms(const PairOfPrograms& pair);

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_INTEROP_PAIR_H_
