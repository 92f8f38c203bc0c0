// Names and asynchronous errors: VIPL checklist C87 to C94.
#include <sched.h>
#include <unistd.h>
#include <vipl.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <future>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

VIP_RETURN LookUp(const Nic& nic, const std::string& name, NetAddress* address,
                  VIP_ULONG index = 0) {
  std::string copy = name;
  return VipNSGetHostByName(nic.handle, copy.data(), address->get(), index);
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

TEST(Names, C88_BeforeInitAndAfterShutdown) {
  RunAlone([] {
    Nic nic;
    NetAddress address;
    EXPECT_EQ(LookUp(nic, "localhost", &address), VIP_ERROR_NAMESERVICE);
    NetAddress own = nic.Address("");
    const auto name_of_own = [&] {
      char name[256];
      VIP_ULONG length = sizeof name;
      return VipNSGetHostByAddr(nic.handle, own.get(), name, &length);
    };
    EXPECT_EQ(name_of_own(), VIP_ERROR_NAMESERVICE);
    EXPECT_EQ(VipNSShutdown(nic.handle), VIP_ERROR_NAMESERVICE);
    ASSERT_EQ(VipNSInit(nic.handle, nullptr), VIP_SUCCESS);
    EXPECT_EQ(LookUp(nic, "localhost", &address), VIP_SUCCESS);
    EXPECT_EQ(name_of_own(), VIP_SUCCESS);
    ASSERT_EQ(VipNSShutdown(nic.handle), VIP_SUCCESS);
    EXPECT_EQ(LookUp(nic, "localhost", &address), VIP_ERROR_NAMESERVICE);
    EXPECT_EQ(name_of_own(), VIP_ERROR_NAMESERVICE);
  });
}

TEST(Names, C89_InitTwice) {
  RunAlone([] {
    Nic nic;
    EXPECT_EQ(VipNSInit(nic.handle, nullptr), VIP_SUCCESS);
    EXPECT_EQ(VipNSInit(nic.handle, nullptr), VIP_SUCCESS);
    NetAddress address;
    EXPECT_EQ(LookUp(nic, "localhost", &address), VIP_SUCCESS);
  });
}

TEST(Names, C90_UnknownNamesAndIndices) {
  RunAlone([] {
    Nic nic;
    ASSERT_EQ(VipNSInit(nic.handle, nullptr), VIP_SUCCESS);
    NetAddress address;
    EXPECT_EQ(LookUp(nic, "no-such-host.invalid", &address), VIP_ERROR_NAMESERVICE);
    EXPECT_EQ(LookUp(nic, "localhost", &address, 1), VIP_ERROR_NAMESERVICE);
    EXPECT_EQ(LookUp(nic, "", &address), VIP_ERROR_NAMESERVICE);
  });
}

TEST(Names, C91_TheOwnNameIsTheNic) {
  RunAlone([] {
    Nic nic;
    ASSERT_EQ(VipNSInit(nic.handle, nullptr), VIP_SUCCESS);
    const std::string name = HostName();
    for (const std::string& form : {name, name.substr(0, name.find('.'))}) {
      NetAddress address;
      ASSERT_EQ(LookUp(nic, form, &address), VIP_SUCCESS) << form;
      EXPECT_EQ(address.host(), nic.Address("").host());
      EXPECT_EQ(address.discriminator(), "");
    }
  });
}

// The name of a host that knows its domain has two forms; a host of another domain with the same
// short name is a different one.
TEST(Names, C91_TheOwnLongNameHasAShortForm) {
  RunAlone([] {
    if (unshare(CLONE_NEWUTS) != 0) GTEST_SKIP() << "needs the right to give the host a name";
    const std::string name = "viaduct-test.of.a.domain.invalid";
    ASSERT_EQ(sethostname(name.data(), name.size()), 0);
    Nic nic;
    ASSERT_EQ(VipNSInit(nic.handle, nullptr), VIP_SUCCESS);
    for (const std::string& form : {name, std::string("viaduct-test")}) {
      NetAddress address;
      ASSERT_EQ(LookUp(nic, form, &address), VIP_SUCCESS) << form;
      EXPECT_EQ(address.host(), nic.host());
    }
    NetAddress address;
    EXPECT_EQ(LookUp(nic, "viaduct-test.elsewhere.invalid", &address), VIP_ERROR_NAMESERVICE);
  });
}

// Programs set the discriminator's length before the call, and do not set it again.
TEST(Names, C91_TheDiscriminatorIsTheCallers) {
  RunAlone([] {
    Nic nic;
    ASSERT_EQ(VipNSInit(nic.handle, nullptr), VIP_SUCCESS);
    NetAddress address = nic.Address("door");
    ASSERT_EQ(LookUp(nic, HostName(), &address), VIP_SUCCESS);
    EXPECT_EQ(address.host(), nic.Address("").host());
    EXPECT_EQ(address.discriminator(), "door");
  });
}

TEST(Names, C92_SeveralNamesForOneAddress) {
  char path[] = "/tmp/vip_hosts_XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  close(fd);
  std::ofstream(path) << "127.0.0.1 alpha beta # two names\n192.0.2.7 alpha\n";
  setenv("VIADUCT_VIP_HOSTS", path, 1);
  RunAlone([] {
    Nic nic("/dev/via_lo");
    ASSERT_EQ(VipNSInit(nic.handle, nullptr), VIP_SUCCESS);
    NetAddress alpha, beta, second;
    ASSERT_EQ(LookUp(nic, "alpha", &alpha), VIP_SUCCESS);
    ASSERT_EQ(LookUp(nic, "beta.example.org", &beta), VIP_SUCCESS) << "short form";
    EXPECT_EQ(alpha.host(), beta.host());
    ASSERT_EQ(LookUp(nic, "alpha", &second, 1), VIP_SUCCESS);
    EXPECT_NE(second.host(), alpha.host());
    EXPECT_EQ(LookUp(nic, "alpha", &second, 2), VIP_ERROR_NAMESERVICE);
  });
  unsetenv("VIADUCT_VIP_HOSTS");
  unlink(path);
}

TEST(Names, C93_AddressesHaveNames) {
  RunAlone([] {
    Nic nic;
    ASSERT_EQ(VipNSInit(nic.handle, nullptr), VIP_SUCCESS);
    NetAddress address;
    ASSERT_EQ(LookUp(nic, HostName(), &address), VIP_SUCCESS);
    char name[256];
    VIP_ULONG length = sizeof name;
    ASSERT_EQ(VipNSGetHostByAddr(nic.handle, address.get(), name, &length), VIP_SUCCESS);
    EXPECT_EQ(length, std::strlen(name));
    EXPECT_EQ(std::string(name), HostName());
    for (size_t room : {size_t{1}, HostName().size()}) {  // no room for the terminating 0 either
      length = room;
      EXPECT_EQ(VipNSGetHostByAddr(nic.handle, address.get(), name, &length), VIP_ERROR_RESOURCE);
      EXPECT_EQ(length, HostName().size());
    }
    length = HostName().size() + 1;
    EXPECT_EQ(VipNSGetHostByAddr(nic.handle, address.get(), name, &length), VIP_SUCCESS);
    const VIP_UINT8 strange[6] = {192, 0, 2, 99, 0, 0};
    NetAddress unknown(strange, sizeof strange, "");
    length = sizeof name;
    EXPECT_EQ(VipNSGetHostByAddr(nic.handle, unknown.get(), name, &length), VIP_ERROR_NAMESERVICE);
  });
}

TEST(Names, C94_AddressesOutliveTheNameService) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        ASSERT_EQ(VipNSInit(side.nic.handle, nullptr), VIP_SUCCESS);
        NetAddress found;
        ASSERT_EQ(LookUp(side.nic, HostName(), &found), VIP_SUCCESS);
        ASSERT_EQ(VipNSShutdown(side.nic.handle), VIP_SUCCESS);
        const std::string host = found.host();
        NetAddress remote(reinterpret_cast<const VIP_UINT8*>(host.data()), host.size(), Name(0));
        NetAddress local = side.nic.Address("client");
        VIP_RETURN result;
        do {
          result = VipConnectRequest(side.vi, local.get(), remote.get(), 20000, &side.peer);
        } while (result == VIP_NO_MATCH);
        EXPECT_EQ(result, VIP_SUCCESS);
        peer.Tell("done");
      });
}

TEST(Names, LocalhostIsThisHost) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        ASSERT_EQ(VipNSInit(side.nic.handle, nullptr), VIP_SUCCESS);
        NetAddress found;
        ASSERT_EQ(LookUp(side.nic, "localhost", &found), VIP_SUCCESS);
        const std::string host = found.host();
        NetAddress remote(reinterpret_cast<const VIP_UINT8*>(host.data()), host.size(), Name(0));
        NetAddress local = side.nic.Address("client");
        VIP_RETURN result;
        do {
          result = VipConnectRequest(side.vi, local.get(), remote.get(), 20000, &side.peer);
        } while (result == VIP_NO_MATCH);
        EXPECT_EQ(result, VIP_SUCCESS);
        peer.Tell("done");
      });
}

// A handler that tears everything down, as that of one program does.
struct Teardown {
  VIP_NIC_HANDLE nic;
  VIP_VI_HANDLE vi;
  std::promise<VIP_RETURN> closed;
};

void CloseEverything(VIP_PVOID context, VIP_ERROR_DESCRIPTOR*) {
  auto* teardown = static_cast<Teardown*>(context);
  VipDisconnect(teardown->vi);
  VIP_DESCRIPTOR* done;
  do {
    VipRecvDone(teardown->vi, &done);
  } while (done != nullptr);
  VipDestroyVi(teardown->vi);
  teardown->closed.set_value(VipCloseNic(teardown->nic));
}

TEST(ErrorCallback, C87_AHandlerMayCallAnything) {
  RunAlone([] {
    Side side;
    auto* teardown = new Teardown{side.nic.handle, side.vi, {}};
    ASSERT_EQ(VipErrorCallback(side.nic.handle, teardown, &CloseEverything), VIP_SUCCESS);
    side.Receive(0);
    ASSERT_EQ(VipPostSend(side.vi, side.memory.descriptor(1), 0), VIP_SUCCESS);
    EXPECT_EQ(teardown->closed.get_future().get(), VIP_SUCCESS);
    EXPECT_EQ(VipDisconnect(side.vi), VIP_INVALID_PARAMETER);
  });
}

// What the program frees after a call that removes the handler.
struct Work {
  std::promise<void> begun;
  std::atomic<bool> returned{false};
};

void WorkLong(VIP_PVOID context, VIP_ERROR_DESCRIPTOR*) {
  auto* work = static_cast<Work*>(context);
  work->begun.set_value();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  work->returned = true;
}

TEST(ErrorCallback, WhoTakesAHandlerAwayWaitsForItsReturn) {
  for (const bool closes : {false, true}) {
    RunAlone([closes] {
      Side side;
      Work work;
      ASSERT_EQ(VipErrorCallback(side.nic.handle, &work, &WorkLong), VIP_SUCCESS);
      ASSERT_EQ(VipPostSend(side.vi, side.memory.descriptor(1), 0), VIP_SUCCESS);
      work.begun.get_future().get();
      const VIP_RETURN taken = closes ? VipCloseNic(side.nic.handle)
                                      : VipErrorCallback(side.nic.handle, nullptr, nullptr);
      EXPECT_EQ(taken, VIP_SUCCESS);
      EXPECT_TRUE(work.returned);
    });
  }
}

TEST(ErrorCallback, C87_NullBringsBackTheLog) {
  RunAlone([] {
    Side side;
    ErrorLog errors(side.nic.handle);
    ASSERT_EQ(VipErrorCallback(side.nic.handle, nullptr, nullptr), VIP_SUCCESS);
    int log[2];
    ASSERT_EQ(pipe(log), 0);
    ASSERT_EQ(dup2(log[1], STDERR_FILENO), STDERR_FILENO);
    ASSERT_EQ(VipPostSend(side.vi, side.memory.descriptor(1), 0), VIP_SUCCESS);
    char line[512] = "";
    ASSERT_GT(read(log[0], line, sizeof line - 1), 0);
    EXPECT_NE(std::strstr(line, "nic0"), nullptr) << line;
    EXPECT_NE(std::strstr(line, "VIP_ERROR_POST_DESC"), nullptr) << line;
    EXPECT_TRUE(errors.empty());
    EXPECT_EQ(VipErrorCallback(nullptr, nullptr, nullptr), VIP_INVALID_PARAMETER);
  });
}

}  // namespace
}  // namespace viaduct::tests
