#include "tools/ping/options.h"

#include <getopt.h>

#include <cstdio>

#include "tools/ping/program.h"

namespace viaduct::ping {
namespace {

// getopt_long returns kNamed + i for the name of option number i, and the letter for its letter.
constexpr int kNamed = 256;

int Complain(const Program& program, const std::string& what) {
  std::fprintf(stderr, "%s: %s; see %s --help\n", program.name, what.c_str(), program.name);
  return 2;
}

const Option* Find(const std::vector<Option>& options, int found) {
  if (found >= kNamed) return &options[static_cast<size_t>(found - kNamed)];
  for (const Option& option : options) {
    if (option.letter == found) return &option;
  }
  return nullptr;
}

}  // namespace

Option Flag(char letter, const char* name, bool* out) {
  return {letter, name, false, [=](const char*) { return *out = true; }};
}

Option Text(char letter, const char* name, size_t most, std::string* out) {
  return {letter, name, true, [=](const char* value) {
            *out = value;
            return !out->empty() && out->size() <= most;
          }};
}

Option Seconds(char letter, const char* name, double* out) {
  return {letter, name, true, [=](const char* value) { return ParseSeconds(value, out); }};
}

bool TakeOptions(const Program& program, const std::vector<Option>& own, int argc, char** argv,
                 int* status) {
  const char* say = nullptr;
  std::string version = std::string(program.name) + " " + program.version + "\n";
  std::vector<Option> options = own;
  options.push_back({'h', "help", false, [&](const char*) { return say = program.help; }});
  options.push_back({'V', "version", false, [&](const char*) { return say = version.c_str(); }});
  std::string letters;
  std::vector<struct option> names;
  for (const Option& option : options) {
    if (option.letter != 0) letters += option.letter;
    if (option.letter != 0 && option.with_value) letters += ':';
    names.push_back({option.name, option.with_value ? required_argument : no_argument, nullptr,
                     kNamed + static_cast<int>(names.size())});
  }
  names.push_back({nullptr, 0, nullptr, 0});
  for (;;) {
    const int found = getopt_long(argc, argv, letters.c_str(), names.data(), nullptr);
    if (found == -1) return true;
    const Option* option = Find(options, found);
    if (option == nullptr) {  // getopt_long has said why
      std::fprintf(stderr, "%s: see %s --help\n", program.name, program.name);
      *status = 2;
      return false;
    }
    if (!option->take(optarg)) {
      *status =
          Complain(program, std::string("--") + option->name + " does not take '" + optarg + "'");
      return false;
    }
    if (say != nullptr) {
      *status = Run(program.name, [say] { return say; });
      return false;
    }
  }
}

bool TakeHost(const Program& program, int argc, char** argv, std::string wrong, Settings* settings,
              int* status) {
  if (wrong.empty() && settings->count != 0 && settings->seconds != 0) {
    wrong = "--count and --seconds exclude each other";
  }
  if (wrong.empty() && settings->listen && optind != argc) wrong = "a server takes no host";
  if (wrong.empty() && !settings->listen && optind + 1 != argc) wrong = "one host is wanted";
  if (!wrong.empty()) {
    *status = Complain(program, wrong);
    return false;
  }
  if (!settings->listen) settings->host = argv[optind];
  return true;
}

}  // namespace viaduct::ping
