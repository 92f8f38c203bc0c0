#ifndef VIADUCT_TESTS_ABI_ABI_LIST_H_
#define VIADUCT_TESTS_ABI_ABI_LIST_H_

#include <cstddef>

// Turns the lines of the fact tables (*.inc; see abi_facts.h) into elements of an array of Fact:
//
//   constexpr Fact kFacts[] = {
//   #include "tests/abi/vipl.inc"
//   };
//
// The types of functions and slots are checked by the compiler only (*_abi.c).

namespace viaduct::abi {

struct Fact {
  const char* what;
  unsigned long long expected;
  unsigned long long actual;
};

}  // namespace viaduct::abi

#define VALUE(expression, value) {#expression, value, static_cast<unsigned long long>(expression)},
#define SIZE(type, size) {"sizeof(" #type ")", size, sizeof(type)},
#define SIZES(type, lp64, ilp32) {"sizeof(" #type ")", lp64, sizeof(type)},
#define OFFSET(type, member, offset) {#type ": " #member, offset, offsetof(type, member)},
#define OFFSETS(type, member, lp64, ilp32) {#type ": " #member, lp64, offsetof(type, member)},
#define FUNCTION(result, name, parameters)
#define SLOT(table, result, member, parameters)

#endif  // VIADUCT_TESTS_ABI_ABI_LIST_H_
