#include "tools/datinfo/report.h"

#include <arpa/inet.h>
#include <dat2/udat.h>
// After udat.h, which it needs.
#include <dat2/dat_ib_extensions.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "dat/api/attribute_names.h"
#include "dat/api/counter_names.h"
#include "dat/registry/registry.h"
#include "verbs/base/settings.h"

namespace viaduct::datinfo {
namespace {

std::string Explain(DAT_RETURN value) {
  const char *type = "", *subtype = "";
  if (dat_strerror(value, &type, &subtype) != DAT_SUCCESS) return "an unknown answer";
  return *subtype != '\0' ? std::string(type) + " " + subtype : type;
}

// Why the adapter does not open. DAT returns the same for an adapter that the registry has but that
// is not there as for an unknown name; the libraries say on standard error which it is.
std::string Complaint(const std::string& name, DAT_RETURN value) {
  const std::vector<registry::Entry>& entries = registry::Registry::Get().entries();
  if (DAT_GET_TYPE(value) == DAT_PROVIDER_NOT_FOUND &&
      DAT_GET_SUBTYPE(value) == DAT_NAME_NOT_REGISTERED &&
      std::any_of(entries.begin(), entries.end(),
                  [&](const registry::Entry& entry) { return entry.name == name; })) {
    return Explain(value) +
           ": the registry has it, but it cannot be opened; a warning in the log says why";
  }
  return Explain(value);
}

std::string AddressText(const DAT_SOCK_ADDR* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address == nullptr) return text;
  const void* bytes =
      address->sa_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr)
          : &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  inet_ntop(address->sa_family, bytes, text, sizeof text);
  return text;
}

Json NamedAttributes(const DAT_NAMED_ATTR* attributes, DAT_COUNT count) {
  Json named = Json::object();
  for (DAT_COUNT i = 0; i < count; ++i) named[attributes[i].name] = attributes[i].value;
  return named;
}

Json AdapterAttributes(const DAT_IA_ATTR& a) {
  Json json;
  json["address"] = AddressText(a.ia_address_ptr);
  json["max_eps"] = a.max_eps;
  json["max_dto_per_ep"] = a.max_dto_per_ep;
  json["max_rdma_read_per_ep_in"] = a.max_rdma_read_per_ep_in;
  json["max_rdma_read_per_ep_out"] = a.max_rdma_read_per_ep_out;
  json["max_evds"] = a.max_evds;
  json["max_evd_qlen"] = a.max_evd_qlen;
  json["max_iov_segments_per_dto"] = a.max_iov_segments_per_dto;
  json["max_lmrs"] = a.max_lmrs;
  json["max_lmr_block_size"] = a.max_lmr_block_size;
  json["max_pzs"] = a.max_pzs;
  json["max_message_size"] = a.max_message_size;
  json["max_rdma_size"] = a.max_rdma_size;
  json["max_rmrs"] = a.max_rmrs;
  json["max_srqs"] = a.max_srqs;
  json["max_recv_per_srq"] = a.max_recv_per_srq;
  json["zb_supported"] = a.zb_supported != DAT_FALSE;
  json["extension_supported"] = static_cast<int>(a.extension_supported);
  json["transport_attributes"] = NamedAttributes(a.transport_attr, a.num_transport_attr);
  json["vendor_attributes"] = NamedAttributes(a.vendor_attr, a.num_vendor_attr);
  return json;
}

const char* ScopeText(DAT_RMR_SCOPE scope) {
  switch (scope) {
    case DAT_RMR_SCOPE_EP:
      return "endpoint";
    case DAT_RMR_SCOPE_PZ:
      return "protection zone";
    case DAT_RMR_SCOPE_ANY:
      return "endpoint or protection zone";
  }
  return "unknown";
}

Json ProviderAttributes(const DAT_PROVIDER_ATTR& a) {
  Json json;
  json["provider"] = a.provider_name;
  json["provider_version"] =
      std::to_string(a.provider_version_major) + "." + std::to_string(a.provider_version_minor);
  json["thread_safe"] = a.is_thread_safe != DAT_FALSE;
  json["max_private_data_size"] = a.max_private_data_size;
  json["srq_supported"] = a.srq_supported != DAT_FALSE;
  json["rmr_scope_supported"] = ScopeText(a.rmr_scope_supported);
  json["multipath"] = a.supports_multipath != DAT_FALSE;
  json["provider_attributes"] =
      NamedAttributes(a.provider_specific_attr, a.num_provider_specific_attr);
  return json;
}

// The value of a provider's attribute; "" without one.
std::string Named(const DAT_PROVIDER_ATTR& provider, const char* name) {
  for (DAT_COUNT i = 0; i < provider.num_provider_specific_attr; ++i) {
    const DAT_NAMED_ATTR& attribute = provider.provider_specific_attr[i];
    if (std::strcmp(attribute.name, name) == 0) return attribute.value;
  }
  return "";
}

// The transports that connections may take: the soft device's wires, or only the RDMA device.
Json Transports(const std::string& device, const std::string& transport) {
  Json transports = Json::array();
  if (device != "soft") {
    transports.push_back(
        {{"name", transport},
         {"reaches", transport == "iWARP" ? "iWARP of any kind, the soft device's too"
                                          : "devices of its kind"}});
    return transports;
  }
  const bool shm = transport != "iwarp";
  if (shm) {
    transports.push_back(
        {{"name", "shared memory"}, {"reaches", "processes of the same user on this host"}});
  }
  if (transport != "shm") {
    transports.push_back({{"name", "iWARP over TCP"},
                          {"reaches", shm ? "everybody else" : "every host, this one too"}});
  }
  return transports;
}

// An adapter that the destructor closes.
class OpenAdapter {
 public:
  explicit OpenAdapter(const std::string& name) {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    result_ = dat_ia_open(const_cast<char*>(name.c_str()), 8, &async, &handle_);
  }
  ~OpenAdapter() {
    if (result_ == DAT_SUCCESS) dat_ia_close(handle_, DAT_CLOSE_ABRUPT_FLAG);
  }
  OpenAdapter(const OpenAdapter&) = delete;
  OpenAdapter& operator=(const OpenAdapter&) = delete;
  DAT_RETURN result() const { return result_; }
  DAT_IA_HANDLE handle() const { return handle_; }

 private:
  DAT_IA_HANDLE handle_ = DAT_HANDLE_NULL;
  DAT_RETURN result_ = DAT_SUCCESS;
};

// What the adapter has counted since it was opened, here as in every program; empty if it does not
// count.
Json Counters(DAT_IA_HANDLE adapter) {
  Json json = Json::object();
  DAT_UINT64 values[DCNT_IA_ALL_COUNTERS] = {};
  if (dat_ib_query_counters(adapter, DCNT_IA_ALL_COUNTERS, values, 0) != DAT_SUCCESS) return json;
  for (size_t i = 0; i < DCNT_IA_ALL_COUNTERS; ++i) {
    if (values[i] != 0) json[dat::AdapterCounterNames()[i]] = values[i];
  }
  return json;
}

}  // namespace

Json Providers() {
  Json providers = Json::array();
  for (const registry::Entry& entry : registry::Registry::Get().entries()) {
    const bool engine = registry::IsEngines(entry);
    Json json;
    json["name"] = entry.name;
    json["version"] = std::to_string(entry.major) + "." + std::to_string(entry.minor);
    json["thread_safe"] = entry.thread_safe;
    json["served_by"] = engine ? "Viaduct" : entry.library;
    if (!entry.parameters.empty()) json["parameters"] = entry.parameters;
    json["from"] = entry.line == 0 ? "built in" : "dat.conf line " + std::to_string(entry.line);
    providers.push_back(std::move(json));
  }
  return providers;
}

Json Adapter(const std::string& name) {
  Json json;
  json["name"] = name;
  const OpenAdapter adapter(name);
  DAT_RETURN result = adapter.result();
  DAT_IA_ATTR attributes = {};
  DAT_PROVIDER_ATTR provider = {};
  if (result == DAT_SUCCESS) {
    result = dat_ia_query(adapter.handle(), nullptr, DAT_IA_FIELD_ALL, &attributes,
                          DAT_PROVIDER_FIELD_ALL, &provider);
  }
  if (result != DAT_SUCCESS) {
    json["error"] = Complaint(name, result);
    return json;
  }
  json["vendor"] = attributes.vendor_name;
  const bool ours = json["vendor"] == "Viaduct";
  if (ours) {
    const std::string device = Named(provider, dat::kDeviceAttribute);
    json["device"] = device;
    json["transports"] = Transports(device, Named(provider, dat::kTransportAttribute));
    json["reason"] = Named(provider, dat::kReasonAttribute);
  }
  json["adapter"] = AdapterAttributes(attributes);
  json["provider"] = ProviderAttributes(provider);
  if (ours) json["counters"] = Counters(adapter.handle());
  return json;
}

Json Settings() {
  Json settings = Json::array();
  for (const verbs::Setting& setting : verbs::AllSettings()) {
    const auto id = static_cast<verbs::SettingId>(&setting - verbs::AllSettings().data());
    Json json;
    json["name"] = setting.name;
    json["value"] = verbs::ChoiceSetting(id);
    json["default"] = setting.default_value;
    switch (setting.type) {
      case verbs::SettingType::kChoice:
        json["allowed"] = setting.choices;
        break;
      case verbs::SettingType::kNumber:
      case verbs::SettingType::kNumberOrAuto:
        json["allowed"] = std::to_string(setting.minimum) + ".." + std::to_string(setting.maximum) +
                          (setting.type == verbs::SettingType::kNumber ? "" : "|auto");
        break;
      case verbs::SettingType::kMask:
      case verbs::SettingType::kPath:
        json["allowed"] = verbs::ExpectedValue(setting);
        break;
    }
    json["help"] = setting.help;
    settings.push_back(std::move(json));
  }
  return settings;
}

}  // namespace viaduct::datinfo
