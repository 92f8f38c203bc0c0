#include "tests/bench/vipl_side.h"

#include <algorithm>

namespace viaduct::bench {
namespace {

constexpr VIP_ULONG kTimeoutMilliseconds = 20000;

void Must(const char* what, VIP_RETURN result) {
  if (result != VIP_SUCCESS) Die(what, result);
}

// The NIC's address with the discriminator of a port: its eight bytes, big end first.
class NetAddress {
 public:
  NetAddress(const VIP_NIC_ATTRIBUTES& nic, uint16_t port)
      : bytes_(sizeof(VIP_NET_ADDRESS) + nic.NicAddressLen + nic.MaxDiscriminatorLen) {
    get()->HostAddressLen = nic.NicAddressLen;
    get()->DiscriminatorLen = 8;
    memcpy(get()->HostAddress, nic.LocalNicAddress, nic.NicAddressLen);
    get()->HostAddress[nic.NicAddressLen + 6] = static_cast<VIP_UINT8>(port >> 8);
    get()->HostAddress[nic.NicAddressLen + 7] = static_cast<VIP_UINT8>(port);
  }
  VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes_.data()); }

 private:
  std::vector<char> bytes_;
};

}  // namespace

ViplSide::ViplSide(const SideOptions& options)
    : options_(options),
      block_(2 * Block::RoundUp(options.bytes) + 2 * sizeof(VIP_DESCRIPTOR) * options.depth) {
  memset(out(), 1, options_.bytes);
  Must("VipOpenNic", VipOpenNic("nic0", &nic_));
  Must("VipQueryNic", VipQueryNic(nic_, &nic_attributes_));
  VIP_MEM_ATTRIBUTES memory = {};
  Must("VipCreatePtag", VipCreatePtag(nic_, &memory.Ptag));
  memory.EnableRdmaWrite = VIP_TRUE;
  Must("VipRegisterMem", VipRegisterMem(nic_, block_.start(), block_.bytes(), &memory, &memory_));
  vi_attributes_.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
  vi_attributes_.MaxTransferSize =
      std::min<VIP_ULONG>(nic_attributes_.MaxTransferSize, std::max(options.bytes, 4096u));
  vi_attributes_.Ptag = memory.Ptag;
  vi_attributes_.EnableRdmaWrite = VIP_TRUE;
}

ViplSide::~ViplSide() { VipCloseNic(nic_); }

VIP_VI_HANDLE ViplSide::AddVi() {
  VIP_VI_HANDLE vi;
  Must("VipCreateVi", VipCreateVi(nic_, &vi_attributes_, nullptr, nullptr, &vi));
  vis_.push_back(vi);
  return vi;
}

void ViplSide::Connect(uint16_t port) {
  VIP_VI_HANDLE vi = AddVi();
  NetAddress local(nic_attributes_, 0), remote(nic_attributes_, port);
  VIP_VI_ATTRIBUTES attributes;
  VIP_RETURN result;
  do {
    result = VipConnectRequest(vi, local.get(), remote.get(), kTimeoutMilliseconds, &attributes);
  } while (result == VIP_NO_MATCH);  // nobody waits yet
  Must("VipConnectRequest", result);
}

void ViplSide::Accept() {
  VIP_VI_HANDLE vi = AddVi();
  NetAddress local(nic_attributes_, port_), remote(nic_attributes_, 0);
  VIP_VI_ATTRIBUTES attributes;
  VIP_CONN_HANDLE request;
  Must("VipConnectWait", VipConnectWait(nic_, local.get(), kTimeoutMilliseconds, remote.get(),
                                        &attributes, &request));
  Must("VipConnectAccept", VipConnectAccept(request, vi));
}

}  // namespace viaduct::bench
