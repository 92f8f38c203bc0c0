// The file that says which interface and device the name of a NIC means, /etc/vip_nics:
//
//   # name          interface         device
//   /dev/via_eth0   enp3s0            iwarp
//   clan0           192.0.2.1
//   nic1            none
//   *               default           auto
//
// The interface is an interface's name, an IPv4 address of this host, "default" (the default NIC's)
// or "none" (there is no such NIC). The device is one of verbs/open_device.h; without one, "auto".
// '*' stands for every name with no other meaning. The first line of a name counts.
#ifndef VIADUCT_COMPAT_NIC_FILE_H_
#define VIADUCT_COMPAT_NIC_FILE_H_

#include <string>
#include <vector>

namespace viaduct::compat {

class NicFile {
 public:
  static constexpr char kDefault[] = "default";
  static constexpr char kNone[] = "none";

  struct Entry {
    std::string name;
    std::string interface;
    std::string device;
  };

  static NicFile Parse(const std::string& text);
  // Reads the file as ReadWordFile does. A line that is skipped is logged.
  static NicFile Read(const std::string& path);

  // Null: the file does not list the name.
  const Entry* Find(const std::string& name) const;
  const Entry* CatchAll() const { return Find("*"); }
  // Numbers (from 1) of the lines that have words but are no entry.
  const std::vector<int>& skipped() const { return skipped_; }

 private:
  std::vector<Entry> entries_;
  std::vector<int> skipped_;
};

}  // namespace viaduct::compat

#endif  // VIADUCT_COMPAT_NIC_FILE_H_
