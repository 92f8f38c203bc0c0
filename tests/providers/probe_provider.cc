// A provider of uDAPL 2.0 that does nothing but remember who called it. An entry whose parameters
// are "silent" registers nothing; one with "bare" answers every open with a type without its class;
// one with "lingering" never removes its registration; one with "twin" registers "twin", too; one
// with "waiting" has a dat_evd_wait and a dat_ia_close that wait (ProbeWait).
#include <dat2/udat.h>
// Must come after udat.h.
#include <dat2/dat_registry.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <utility>

#include "tests/providers/probe.h"

#define PROBE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kFunctions = 79;

ProbeFacts facts = {0, 0, 0, -1, nullptr, "", nullptr};
bool bare = false;
bool lingering = false;
bool waiting = false;

struct ProbeObject {
  const DAT_PROVIDER* provider;
};

struct ProbeProvider {
  std::string name;
  DAT_PROVIDER table;
  ProbeObject async;  // every adapter's dispatcher
};
using Key = std::pair<std::string, int>;
std::map<Key, ProbeProvider*>& Providers() {
  static auto* const providers = new std::map<Key, ProbeProvider*>;
  return *providers;
}

// Takes the place of functions with more parameters, which x86-64 passes beside the first.
template <int kSlot>
DAT_RETURN Remember(void* handle) {
  facts.last_slot = kSlot;
  facts.last_handle = handle;
  return DAT_SUCCESS;
}

template <int... kSlots>
void FillWithRemember(DAT_PROVIDER* table, std::integer_sequence<int, kSlots...>) {
  DAT_RETURN (*const functions[])(void*) = {Remember<kSlots>...};
  static_assert(sizeof functions == sizeof *table - 2 * sizeof(void*));
  memcpy(&table->ia_open_func, functions, sizeof functions);
}

DAT_RETURN Open(const DAT_NAME_PTR name, DAT_COUNT, DAT_EVD_HANDLE* async, DAT_IA_HANDLE* ia) {
  if (bare) return DAT_INVALID_ADDRESS;
  for (const auto& [key, provider] : Providers()) {
    if (key.first != name) continue;
    auto* const adapter = new (std::nothrow) ProbeObject{&provider->table};
    if (adapter == nullptr) return DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES;
    *ia = adapter;
    *async = &provider->async;
    ++facts.adapters;
    return DAT_SUCCESS;
  }
  return DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND;
}

void WaitInside(ProbeWait* wait) {
  sem_post(&wait->inside);
  while (sem_wait(&wait->leave) != 0) {
  }
}

DAT_RETURN Close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags) {
  if (flags == DAT_CLOSE_GRACEFUL_FLAG && waiting) {
    WaitInside(&static_cast<ProbeWaitingClose*>(ia)->wait);
  }
  if (flags == DAT_CLOSE_GRACEFUL_FLAG) return DAT_CLASS_ERROR | DAT_INVALID_STATE;
  delete static_cast<ProbeObject*>(ia);
  --facts.adapters;
  return DAT_SUCCESS;
}

// This provider's adapters are related to "probe1" only.
DAT_RETURN IsRelated(DAT_IA_HANDLE, const DAT_NAME_PTR name, DAT_BOOLEAN* answer) {
  *answer = strcmp(name, "probe1") == 0 ? DAT_TRUE : DAT_FALSE;
  return DAT_SUCCESS;
}

DAT_RETURN Wait(DAT_EVD_HANDLE, DAT_TIMEOUT, DAT_COUNT, DAT_EVENT* event, DAT_COUNT*) {
  WaitInside(reinterpret_cast<ProbeWait*>(event));
  return DAT_CLASS_ERROR | DAT_ABORT;
}

void Register(const DAT_PROVIDER_INFO& info) {
  ProbeProvider*& provider = Providers()[Key(info.ia_name, info.is_thread_safe)];
  if (provider == nullptr) provider = new ProbeProvider{info.ia_name, {}, {nullptr}};
  provider->async.provider = &provider->table;
  provider->table = {};
  FillWithRemember(&provider->table, std::make_integer_sequence<int, kFunctions>());
  provider->table.device_name = provider->name.c_str();
  provider->table.ia_open_func = Open;
  provider->table.ia_close_func = Close;
  provider->table.ia_ha_related_func = IsRelated;
  if (waiting) provider->table.evd_wait_func = Wait;
  dat_registry_add_provider(&provider->table, &info);
}

}  // namespace

PROBE_EXPORT ProbeFacts* probe_facts() { return &facts; }

PROBE_EXPORT void dat_provider_init(const DAT_PROVIDER_INFO* info, const char* parameters) {
  ++facts.inits;
  snprintf(facts.parameters, sizeof facts.parameters, "%s", parameters);
  if (strcmp(parameters, "silent") == 0) return;
  bare = strcmp(parameters, "bare") == 0;
  lingering = strcmp(parameters, "lingering") == 0;
  waiting = strcmp(parameters, "waiting") == 0;
  Register(*info);
  if (strcmp(parameters, "twin") == 0) Register({"twin", 2, 0, info->is_thread_safe});
}

PROBE_EXPORT void dat_provider_fini(const DAT_PROVIDER_INFO* info) {
  ++facts.finis;
  if (lingering) return;
  const auto found = Providers().find(Key(info->ia_name, info->is_thread_safe));
  if (found == Providers().end()) return;
  dat_registry_remove_provider(&found->second->table, info);
  if (facts.after_fini != nullptr) facts.after_fini();
}
