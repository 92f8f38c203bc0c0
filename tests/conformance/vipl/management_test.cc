// System management (VIPL checklist C95), the file of NIC names, and the vendors' functions.
#include <unistd.h>
#include <vipl.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

// A file that an environment variable names while the object lives.
class SettingFile {
 public:
  SettingFile(const char* setting, const std::string& text) : setting_(setting) {
    const int fd = mkstemp(path_);
    EXPECT_GE(fd, 0);
    close(fd);
    std::ofstream(path_) << text;
    setenv(setting, path_, 1);
  }
  ~SettingFile() {
    unsetenv(setting_);
    unlink(path_);
  }
  SettingFile(const SettingFile&) = delete;
  SettingFile& operator=(const SettingFile&) = delete;

 private:
  const char* const setting_;
  char path_[64] = "/tmp/viaduct_setting_XXXXXX";
};

std::string HostOf(const VIP_NET_ADDRESS* address) {
  EXPECT_EQ(address->DiscriminatorLen, 0);
  return std::string(reinterpret_cast<const char*>(address->HostAddress), address->HostAddressLen);
}

TEST(Management, C95_AutodiscoveryListsOwnAndConfiguredAddresses) {
  const SettingFile hosts("VIADUCT_VIP_HOSTS",
                          "192.0.2.7 seven\n192.0.2.8 eight\nseven-too 192.0.2.7\n");
  RunAlone([] {
    Nic nic;
    VIP_AUTODISCOVERY_LIST list = {};
    ASSERT_EQ(VipQuerySystemManagementInfo(nic.handle, VIP_SMI_AUTODISCOVERY, &list), VIP_SUCCESS);
    ASSERT_EQ(list.NumAdAddrs, 3u) << "without an array: how many there are";
    std::vector<VIP_NET_ADDRESS*> addresses(8, nullptr);
    list.NumberOfHops = 1;
    list.ADAddrArray = addresses.data();
    list.NumAdAddrs = addresses.size();
    ASSERT_EQ(VipQuerySystemManagementInfo(nic.handle, VIP_SMI_AUTODISCOVERY, &list), VIP_SUCCESS);
    ASSERT_EQ(list.NumAdAddrs, 3u);
    EXPECT_EQ(HostOf(addresses[0]), nic.Address("").host());
    EXPECT_EQ(HostOf(addresses[1]), std::string("\xC0\0\x02\x07\0\0", 6));
    EXPECT_EQ(HostOf(addresses[2]), std::string("\xC0\0\x02\x08\0\0", 6));
    EXPECT_EQ(addresses[3], nullptr);

    addresses[0]->DiscriminatorLen = 2;  // for a request
    std::vector<VIP_NET_ADDRESS*> again(2, nullptr);
    list.ADAddrArray = again.data();
    list.NumAdAddrs = 1;
    ASSERT_EQ(VipQuerySystemManagementInfo(nic.handle, VIP_SMI_AUTODISCOVERY, &list), VIP_SUCCESS);
    EXPECT_EQ(list.NumAdAddrs, 1u);
    EXPECT_EQ(again[0], addresses[0]);
    EXPECT_EQ(addresses[0]->DiscriminatorLen, 2u) << "it is the program's";
    EXPECT_EQ(again[1], nullptr) << "beyond the room given";
  });
}

TEST(Management, C95_UnknownTypesAreInvalid) {
  RunAlone([] {
    Nic nic;
    char room[512] = "untouched";
    for (VIP_ULONG type : {VIP_ULONG{0}, VIP_ULONG{2}, ~VIP_ULONG{0}}) {
      EXPECT_EQ(VipQuerySystemManagementInfo(nic.handle, type, room), VIP_INVALID_PARAMETER);
    }
    EXPECT_STREQ(room, "untouched");
    EXPECT_EQ(VipQuerySystemManagementInfo(nic.handle, VIP_SMI_AUTODISCOVERY, nullptr),
              VIP_INVALID_PARAMETER);
  });
}

TEST(Management, TheDeviceHasANameAndAReason) {
  RunAlone([] {
    Nic nic;
    VIADUCT_DEVICE_INFO info;
    ASSERT_EQ(VipQuerySystemManagementInfo(nic.handle, VIADUCT_SMI_DEVICE, &info), VIP_SUCCESS);
    EXPECT_STREQ(info.Device, Wire() == "sim" ? "sim" : "soft");
    EXPECT_NE(std::strstr(info.Reason, Wire().c_str()), nullptr) << info.Reason;
  });
}

TEST(NicFile, NamesMeanWhatItSays) {
  const SettingFile nics("VIADUCT_VIP_NICS",
                         "clan0 lo\nclan1 127.0.0.1\nclosed none\nelsewhere 192.0.2.7\n"
                         "strange lo no-such-device\n* default\n");
  setenv("VIADUCT_NIC_NAMES", "known", 1);
  RunAlone([] {
    const Nic usual("nic0");
    for (const char* name : {"clan0", "clan1", "/dev/via_lo"}) {
      const Nic nic(name);
      EXPECT_STREQ(nic.attributes.Name, name);
      EXPECT_EQ(nic.host(), Nic::LoopbackHost()) << name;
    }
    EXPECT_EQ(Nic("anything").host(), usual.host());
    for (const char* name : {"closed", "elsewhere", "strange"}) {
      VIP_NIC_HANDLE handle;
      EXPECT_EQ(VipOpenNic(name, &handle), VIP_INVALID_PARAMETER) << name;
    }
  });
  unsetenv("VIADUCT_NIC_NAMES");
}

TEST(NicFile, MayNameTheDevice) {
  if (!Wire().empty()) unsetenv("VIADUCT_WIRE");
  const SettingFile nics("VIADUCT_VIP_NICS", "near lo shm\nfar lo iwarp\n");
  RunAlone([] {
    for (const auto& [name, wires] :
         {std::pair("near", "wires: shm"), std::pair("far", "wires: iwarp"),
          std::pair("/dev/via_lo", "wires: shm, iwarp")}) {
      Nic nic(name);
      VIADUCT_DEVICE_INFO info;
      ASSERT_EQ(VipQuerySystemManagementInfo(nic.handle, VIADUCT_SMI_DEVICE, &info), VIP_SUCCESS);
      const std::string reason = info.Reason;
      ASSERT_GE(reason.size(), std::strlen(wires));
      EXPECT_EQ(reason.substr(reason.size() - std::strlen(wires)), wires);
    }
  });
  if (!Wire().empty()) setenv("VIADUCT_WIRE", Wire().c_str(), 1);
}

TEST(Vendor, UserDataStaysWithItsVi) {
  RunAlone([] {
    Side first, second;
    int data = 0;
    EXPECT_EQ(VipGetUserData(first.vi), nullptr);
    VipSetUserData(first.vi, &data);
    EXPECT_EQ(VipGetUserData(first.vi), &data);
    EXPECT_EQ(VipGetUserData(second.vi), nullptr);
    VipSetUserData(first.vi, nullptr);
    EXPECT_EQ(VipGetUserData(first.vi), nullptr);
    VipSetUserData(second.vi, &data);
    const VIP_VI_HANDLE gone = second.vi;
    ASSERT_EQ(VipDestroyVi(second.vi), VIP_SUCCESS);
    EXPECT_EQ(VipGetUserData(gone), nullptr);
  });
}

TEST(Vendor, TagsAndDeferredSendsAreNotSupported) {
  RunAlone([] {
    Side side;
    VIP_CQ_HANDLE cq;
    ASSERT_EQ(VipCreateCQ(side.nic.handle, 16, &cq), VIP_SUCCESS);
    VIP_EVENT_HANDLE event = nullptr;
    VIP_BOOLEAN deferred = 7;
    EXPECT_EQ(VipAddTagCQ(cq, &event, 1, 1), VIP_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(VipRemoveTagCQ(cq, event, 1), VIP_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(VipPostDeferredSends(side.vi, VIP_TRUE, &deferred), VIP_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(deferred, 7);
  });
}

}  // namespace
}  // namespace viaduct::tests
