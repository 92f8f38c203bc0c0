// Libraries that come and go: loaded 100 times under a live connection, and all three in any order.
#include <arpa/inet.h>
#include <dat2/udat.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vipl.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/faults/leftovers.h"

namespace viaduct::tests {
namespace {

constexpr int kTimes = 100;
constexpr DAT_TIMEOUT kPatience = 20000000;  // microseconds
constexpr VIP_ULONG kPatienceMilliseconds = 20000;
constexpr char kVipl[] = "libvipl.so.1", kDat[] = "libdat.so.1", kDat2[] = "libdat2.so.2";

// A folder with the libraries side by side, as they are installed; removed at the end.
class Installation {
 public:
  Installation() {
    char folder[] = "/tmp/viaduct-dlopen-XXXXXX";
    EXPECT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    const std::filesystem::path bin =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../..";
    for (const char* file : {"vipl/libvipl.so.1", "dat/api/libdat.so.1", "dat/api/libdat2.so.2",
                             "dat/core/libviaduct.so.1"}) {
      const std::filesystem::path from = bin / file;
      std::filesystem::create_symlink(from, folder_ / from.filename());
    }
  }
  ~Installation() { std::filesystem::remove_all(folder_); }
  Installation(const Installation&) = delete;
  Installation& operator=(const Installation&) = delete;

  void* Load(const char* name, int flags = RTLD_NOW | RTLD_LOCAL) const {
    return dlopen((folder_ / name).c_str(), flags);
  }
  void* MustLoad(const char* name) const {
    void* library = Load(name);
    EXPECT_NE(library, nullptr) << dlerror();
    return library;
  }

 private:
  std::filesystem::path folder_;
};

template <typename Function>
Function* Find(void* library, const char* name) {
  auto* function = reinterpret_cast<Function*>(dlsym(library, name));
  EXPECT_NE(function, nullptr) << name;
  return function;
}
#define CALL(library, function) Find<decltype(function)>(library, #function)

// ------------------------------------------------------------------------------------------- DAT

// Two endpoints of this process, connected. Each call goes to the library that it is given.
struct DatLoop {
  explicit DatLoop(void* library) {
    char adapter[] = "soft0";
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    EXPECT_EQ(CALL(library, dat_ia_openv)(adapter, 8, &async, &ia, DAT_VERSION_MAJOR,
                                          DAT_VERSION_MINOR, DAT_THREADSAFE),
              DAT_RETURN{DAT_SUCCESS});
    EXPECT_EQ(CALL(library, dat_pz_create)(ia, &pz), DAT_RETURN{DAT_SUCCESS});
    const auto evd = [&](DAT_EVD_FLAGS flags) {
      DAT_EVD_HANDLE made = DAT_HANDLE_NULL;
      EXPECT_EQ(CALL(library, dat_evd_create)(ia, 16, DAT_HANDLE_NULL, flags, &made),
                DAT_RETURN{DAT_SUCCESS});
      return made;
    };
    const DAT_EVD_HANDLE requests = evd(DAT_EVD_CR_FLAG), ends = evd(DAT_EVD_CONNECTION_FLAG);
    dtos = evd(DAT_EVD_DTO_FLAG);
    for (DAT_EP_HANDLE* ep : {&active, &passive}) {
      EXPECT_EQ(CALL(library, dat_ep_create)(ia, pz, dtos, dtos, ends, nullptr, ep),
                DAT_RETURN{DAT_SUCCESS});
    }
    DAT_PSP_HANDLE psp;
    EXPECT_EQ(CALL(library, dat_psp_create)(ia, Port(0), requests, DAT_PSP_CONSUMER_FLAG, &psp),
              DAT_RETURN{DAT_SUCCESS});
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(
        CALL(library, dat_ep_connect)(active, reinterpret_cast<sockaddr*>(&to), Port(0), kPatience,
                                      0, nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
        DAT_RETURN{DAT_SUCCESS});
    const DAT_EVENT request = Next(library, requests);
    EXPECT_EQ(CALL(library, dat_cr_accept)(request.event_data.cr_arrival_event_data.cr_handle,
                                           passive, 0, nullptr),
              DAT_RETURN{DAT_SUCCESS});
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(Next(library, ends).event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
    }
  }

  static DAT_EVENT Next(void* library, DAT_EVD_HANDLE evd) {
    DAT_EVENT event = {};
    DAT_COUNT more = 0;
    EXPECT_EQ(CALL(library, dat_evd_wait)(evd, kPatience, 1, &event, &more),
              DAT_RETURN{DAT_SUCCESS});
    return event;
  }

  // An empty message from one to the other.
  void Use(void* library) {
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = 1;
    EXPECT_EQ(
        CALL(library, dat_ep_post_recv)(passive, 0, nullptr, cookie, DAT_COMPLETION_DEFAULT_FLAG),
        DAT_RETURN{DAT_SUCCESS});
    EXPECT_EQ(
        CALL(library, dat_ep_post_send)(active, 0, nullptr, cookie, DAT_COMPLETION_DEFAULT_FLAG),
        DAT_RETURN{DAT_SUCCESS});
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(Next(library, dtos).event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
    }
  }
  void Close(void* library) {
    EXPECT_EQ(CALL(library, dat_ia_close)(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_RETURN{DAT_SUCCESS});
  }

  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE dtos = DAT_HANDLE_NULL;
  DAT_EP_HANDLE active = DAT_HANDLE_NULL, passive = DAT_HANDLE_NULL;
};

TEST(Dlopen, DatStaysLoadedWithItsConnection) {
  const Installation installation;
  RunAlone([&] {
    void* library = installation.MustLoad(kDat2);
    DatLoop loop(library);
    loop.Use(library);
    const Holdings before = HoldingsNow();
    for (int i = 0; i < kTimes && !::testing::Test::HasFailure(); ++i) {
      EXPECT_EQ(dlclose(library), 0);
      EXPECT_NE(installation.Load(kDat2, RTLD_NOW | RTLD_NOLOAD), nullptr) << "it went";
      library = installation.MustLoad(kDat2);
      loop.Use(library);
    }
    EXPECT_TRUE(HoldsAtMost(before));
    loop.Close(library);
    EXPECT_EQ(dlclose(library), 0);
  });
}

TEST(Dlopen, AProcessForksBehindALibraryThatWasClosed) {
  for (const char* name : {kDat, kDat2}) {
    SCOPED_TRACE(name);
    const Installation installation;
    RunAlone([&] {
      EXPECT_EQ(dlclose(installation.MustLoad(name)), 0);
      const pid_t child = fork();
      if (child == 0) _exit(0);
      int status = -1;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    });
  }
}

// The library is closed in the middle of a conversation, and nobody loads it again.
TEST(Dlopen, DatLibraryIsClosedForEverWithALiveConnection) {
  const Installation installation;
  RunAlone([&] {
    void* library = installation.MustLoad(kDat2);
    DatLoop loop(library);
    loop.Use(library);
    EXPECT_EQ(dlclose(library), 0);
    fflush(nullptr);
    exit(::testing::Test::HasFailure() ? 1 : 0);
  });
}

// ------------------------------------------------------------------------------------------ VIPL

struct ViplLoop {
  explicit ViplLoop(void* library) {
    EXPECT_EQ(CALL(library, VipOpenNic)("nic0", &nic), VIP_SUCCESS);
    VIP_VI_ATTRIBUTES attributes = {};
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes.MaxTransferSize = 4096;
    for (VIP_VI_HANDLE* vi : {&active, &passive}) {
      EXPECT_EQ(CALL(library, VipCreateVi)(nic, &attributes, nullptr, nullptr, vi), VIP_SUCCESS);
    }
    EXPECT_EQ(posix_memalign(&bytes, 64, 4096), 0);
    std::memset(bytes, 0, 4096);
    VIP_MEM_ATTRIBUTES rights = {};
    EXPECT_EQ(CALL(library, VipRegisterMem)(nic, bytes, 4096, &rights, &memory), VIP_SUCCESS);
    std::thread acceptor([this, library] {
      Address local(library, nic), remote;
      VIP_VI_ATTRIBUTES theirs;
      VIP_CONN_HANDLE connection = nullptr;
      EXPECT_EQ(CALL(library, VipConnectWait)(nic, local.get(), kPatienceMilliseconds, remote.get(),
                                              &theirs, &connection),
                VIP_SUCCESS);
      EXPECT_EQ(CALL(library, VipConnectAccept)(connection, passive), VIP_SUCCESS);
    });
    Address local(library, nic), remote(library, nic);
    VIP_VI_ATTRIBUTES theirs;
    VIP_RETURN result;
    do {
      result = CALL(library, VipConnectRequest)(active, local.get(), remote.get(),
                                                kPatienceMilliseconds, &theirs);
    } while (result == VIP_NO_MATCH);
    EXPECT_EQ(result, VIP_SUCCESS);
    acceptor.join();
  }

  class Address {
   public:
    Address() = default;
    Address(void* library, VIP_NIC_HANDLE nic) {
      VIP_NIC_ATTRIBUTES attributes = {};
      EXPECT_EQ(CALL(library, VipQueryNic)(nic, &attributes), VIP_SUCCESS);
      const std::string name = "d" + std::to_string(Port(1));
      get()->HostAddressLen = attributes.NicAddressLen;
      get()->DiscriminatorLen = static_cast<VIP_UINT16>(name.size());
      unsigned char* at = bytes_ + offsetof(VIP_NET_ADDRESS, HostAddress);
      std::memcpy(at, attributes.LocalNicAddress, attributes.NicAddressLen);
      std::memcpy(at + attributes.NicAddressLen, name.data(), name.size());
    }
    VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes_); }

   private:
    alignas(8) unsigned char bytes_[128] = {};
  };

  void Use(void* library) {
    auto* receive = static_cast<VIP_DESCRIPTOR*>(bytes);
    auto* send = reinterpret_cast<VIP_DESCRIPTOR*>(static_cast<char*>(bytes) + 1024);
    std::memset(bytes, 0, 4096);
    EXPECT_EQ(CALL(library, VipPostRecv)(passive, receive, memory), VIP_SUCCESS);
    EXPECT_EQ(CALL(library, VipPostSend)(active, send, memory), VIP_SUCCESS);
    VIP_DESCRIPTOR* done = nullptr;
    EXPECT_EQ(CALL(library, VipRecvWait)(passive, kPatienceMilliseconds, &done), VIP_SUCCESS);
    EXPECT_EQ(done, receive);
    EXPECT_EQ(CALL(library, VipSendWait)(active, kPatienceMilliseconds, &done), VIP_SUCCESS);
    EXPECT_EQ(done, send);
  }
  void Close(void* library) {
    for (VIP_VI_HANDLE vi : {active, passive}) {
      EXPECT_EQ(CALL(library, VipDisconnect)(vi), VIP_SUCCESS);
      EXPECT_EQ(CALL(library, VipDestroyVi)(vi), VIP_SUCCESS);
    }
    EXPECT_EQ(CALL(library, VipDeregisterMem)(nic, bytes, memory), VIP_SUCCESS);
    EXPECT_EQ(CALL(library, VipCloseNic)(nic), VIP_SUCCESS);
    free(bytes);
  }

  VIP_NIC_HANDLE nic = nullptr;
  VIP_VI_HANDLE active = nullptr, passive = nullptr;
  VIP_MEM_HANDLE memory = 0;
  void* bytes = nullptr;
};

// A program's own threads may be inside the library, so it stays (vipl/README.md).
TEST(Dlopen, ViplStaysLoadedWithItsConnection) {
  const Installation installation;
  RunAlone([&] {
    void* library = installation.MustLoad(kVipl);
    ViplLoop loop(library);
    loop.Use(library);
    const Holdings before = HoldingsNow();
    for (int i = 0; i < kTimes && !::testing::Test::HasFailure(); ++i) {
      EXPECT_EQ(dlclose(library), 0);
      EXPECT_NE(installation.Load(kVipl, RTLD_NOW | RTLD_NOLOAD), nullptr) << "it went";
      library = installation.MustLoad(kVipl);
      loop.Use(library);
    }
    EXPECT_TRUE(HoldsAtMost(before));
    loop.Close(library);
    EXPECT_EQ(dlclose(library), 0);
  });
}

// --------------------------------------------------------------------------------------- together

// The 1.2 library: its declarations cannot stand beside those of 2.0.
using OpenIa12 = DAT_UINT32(const char*, int, void**, void**, DAT_UINT32, DAT_UINT32, int);
using CloseIa12 = DAT_UINT32(void*, int);

TEST(Dlopen, AllThreeInAnyOrder) {
  const Installation installation;
  std::vector<std::string> order = {kDat, kDat2, kVipl};
  do {
    SCOPED_TRACE(order[0] + " " + order[1] + " " + order[2]);
    RunAlone([&] {
      void *dat = nullptr, *dat2 = nullptr, *vipl = nullptr;
      void *ia = nullptr, *async = nullptr;
      for (const std::string& name : order) {
        void* library = installation.MustLoad(name.c_str());
        if (name == kDat) {
          dat = library;
          ASSERT_EQ(Find<OpenIa12>(dat, "dat_ia_openv")("soft0", 8, &async, &ia, 1, 2, 1), 0u);
        } else if (name == kDat2) {
          dat2 = library;
          DatLoop(dat2).Use(dat2);
        } else {
          vipl = library;
          ViplLoop(vipl).Use(vipl);
        }
      }
      // Once more, now that all are loaded; the first objects are still alive.
      ViplLoop loop(vipl);
      loop.Use(vipl);
      loop.Close(vipl);
      EXPECT_EQ(Find<CloseIa12>(dat, "dat_ia_close")(ia, DAT_CLOSE_ABRUPT_FLAG), 0u);
      for (void* library : {dat, dat2, vipl}) EXPECT_EQ(dlclose(library), 0);
    });
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace viaduct::tests
