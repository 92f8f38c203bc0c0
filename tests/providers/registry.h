// A registry of the test's own, and calls with it.
#ifndef VIADUCT_TESTS_PROVIDERS_REGISTRY_H_
#define VIADUCT_TESTS_PROVIDERS_REGISTRY_H_

#include <dat2/udat.h>

#include <functional>
#include <string>

#include "tests/providers/probe.h"

namespace viaduct::tests {

// The path of a library of this folder.
std::string ProviderLibrary(const char* file);
std::string Probe();

// A line of dat.conf for uDAPL 2.0.
std::string Line(const std::string& name, const std::string& library,
                 const std::string& parameters = "", const char* safety = "nonthreadsafe");

// Makes `lines` the registry of this process, before its first call.
void UseConf(const std::string& lines);

// The probe library's facts, or null; the library stays loaded from now on.
ProbeFacts* Facts();

// Opens version 2.0 of `name`; `async` may hold a dispatcher.
DAT_RETURN Open(const char* name, DAT_IA_HANDLE* ia, DAT_EVD_HANDLE* async = nullptr,
                DAT_BOOLEAN thread_safe = DAT_FALSE);

constexpr DAT_RETURN Error(DAT_UINT32 type, DAT_UINT32 subtype = DAT_NO_SUBTYPE) {
  return DAT_CLASS_ERROR | type | subtype;
}

// What our library and the provider's write to standard error during `body`.
std::string Said(const std::function<void()>& body);

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_PROVIDERS_REGISTRY_H_
