// The command line: a table of options, and those that both programs have.
#ifndef VIADUCT_TOOLS_PING_OPTIONS_H_
#define VIADUCT_TOOLS_PING_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/ping/numbers.h"
#include "tools/ping/parameters.h"

namespace viaduct::ping {

// The settings that both programs have; each adds its own and the Parameters.
struct Settings {
  bool listen = false;
  bool once = false;
  std::string host;
  std::string device;
  std::optional<uint32_t> bytes;  // of a message, if the command line says it
  uint64_t count = 0;             // messages; 0: `seconds` counts
  double seconds = 0;
  uint64_t warmup = 100;
  int timeout = 10;  // seconds
  bool histogram = false;
  bool json = false;
};

struct Option {
  char letter;  // 0: only the name
  const char* name;
  bool with_value;
  std::function<bool(const char* value)> take;  // false: the value is wrong
};

Option Flag(char letter, const char* name, bool* out);
Option Text(char letter, const char* name, size_t most, std::string* out);  // not empty
Option Seconds(char letter, const char* name, double* out);

template <typename Integer>
Option Count(char letter, const char* name, uint64_t least, uint64_t most, Integer* out) {
  return {letter, name, true, [=](const char* value) {
            uint64_t number = 0;
            if (!ParseCount(value, least, most, &number)) return false;
            *out = static_cast<Integer>(number);
            return true;
          }};
}

template <typename Enum>
Option Choice(char letter, const char* name, Enum* out) {
  return {letter, name, true, [=](const char* value) { return Parse(value, out); }};
}

struct Program {
  const char* name;
  const char* version;
  const char* help;
};

// Takes what comes before the host: `own` options, --help and --version. False if there is nothing
// left to do: `*status` is then the exit status, and everything has been printed.
bool TakeOptions(const Program& program, const std::vector<Option>& own, int argc, char** argv,
                 int* status);
// Called after TakeOptions: takes the host, which a server does not have, and checks the options
// against each other. `wrong` is an error that the caller has found, or empty. Returns the same.
bool TakeHost(const Program& program, int argc, char** argv, std::string wrong, Settings* settings,
              int* status);

// Takes a whole command line: the program's `own` options and those of both programs, some of which
// have limits. `options` are Settings with Parameters. Returns the same.
template <typename Options>
bool TakeCommandLine(const Program& program, std::vector<Option> own, int most_timeout, int argc,
                     char** argv, Options* options, int* status) {
  auto& parameters = options->parameters;
  const std::vector<Option> common = {
      Choice('t', "test", &parameters.test),
      Choice('o', "operation", &parameters.operation),
      Count('b', "bytes", 0, kMaxBytes, &options->bytes),
      Choice('c', "completion", &parameters.completion),
      Count('q', "depth", 2, kMaxDepth, &parameters.depth),
      Count('n', "count", 1, UINT64_MAX >> 8, &options->count),
      Seconds('T', "seconds", &options->seconds),
      Count('w', "warmup", 0, UINT64_MAX >> 8, &options->warmup),
      Text('d', "device", SIZE_MAX, &options->device),
      Flag('l', "listen", &options->listen),
      Flag('1', "once", &options->once),
      Count(0, "timeout", 1, static_cast<uint64_t>(most_timeout), &options->timeout),
      Flag('H', "histogram", &options->histogram),
      Flag('j', "json", &options->json)};
  own.insert(own.end(), common.begin(), common.end());
  if (!TakeOptions(program, own, argc, argv, status)) return false;
  const bool is_stream = parameters.test == decltype(parameters.test)::kBandwidth;
  const bool is_write = parameters.operation == decltype(parameters.operation)::kWrite;
  parameters.bytes = options->bytes.value_or(is_stream ? 65536 : 8);
  const char* wrong = is_write && parameters.bytes == 0 ? "a write has at least one byte" : "";
  return TakeHost(program, argc, argv, wrong, options, status);
}

}  // namespace viaduct::ping

#endif  // VIADUCT_TOOLS_PING_OPTIONS_H_
