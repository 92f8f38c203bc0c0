// Other people's providers in our libdat2: what entries of dat.conf load, what a program registers
// itself, and whose handle is whose. DAT checklist 13, 17, 18, 19, 29.
#include <dat2/udat.h>
// Must come after udat.h.
#include <dat2/dat_registry.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/sleeper.h"
#include "tests/faults/failing_memory.h"
#include "tests/providers/probe.h"

namespace viaduct::tests {
namespace {

std::string InTestFolder(const char* file) {
  return std::filesystem::current_path().string() + "/tests/providers/" + file;
}
std::string Probe() { return InTestFolder("libprobe.so"); }

std::string Line(const std::string& name, const std::string& library,
                 const std::string& parameters = "", const char* safety = "nonthreadsafe") {
  return name + " u2.0 " + safety + " default " + library + " x.1.0 \"" + parameters + "\" \"\"\n";
}

// Makes `lines` the registry of this process, before its first call.
void UseConf(const std::string& lines) {
  const std::string path = std::string(getenv("TEST_TMPDIR")) + "/conf" + std::to_string(getpid());
  std::ofstream(path) << lines;
  setenv("DAT_OVERRIDE", path.c_str(), 1);
}

// The probe library's facts; the library stays loaded from now on.
ProbeFacts* Facts() {
  void* const library = dlopen(Probe().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  return reinterpret_cast<ProbeFacts* (*)()>(dlsym(library, "probe_facts"))();
}

DAT_RETURN Open(const char* name, DAT_IA_HANDLE* ia, DAT_EVD_HANDLE* async = nullptr,
                DAT_BOOLEAN thread_safe = DAT_FALSE) {
  DAT_EVD_HANDLE own = DAT_HANDLE_NULL;
  return dat_ia_openv(const_cast<char*>(name), 8, async != nullptr ? async : &own, ia, 2, 0,
                      thread_safe);
}

constexpr DAT_RETURN Error(DAT_UINT32 type, DAT_UINT32 subtype = DAT_NO_SUBTYPE) {
  return DAT_CLASS_ERROR | type | subtype;
}

// What our library and the provider's write to standard error during `body`.
template <typename Body>
std::string Said(const Body& body) {
  const int kept = dup(STDERR_FILENO);
  const int file = memfd_create("stderr", MFD_CLOEXEC);
  dup2(file, STDERR_FILENO);
  body();
  dup2(kept, STDERR_FILENO);
  close(kept);
  std::string text(static_cast<size_t>(lseek(file, 0, SEEK_END)), '\0');
  EXPECT_EQ(pread(file, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  close(file);
  return text;
}

TEST(Providers, C017_InitOnceFiniAfterTheLastClose) {
  RunAlone([] {
    UseConf(Line("probe0", Probe(), "some \\\"words\\\" 7"));
    ProbeFacts* const facts = Facts();
    ASSERT_NE(facts, nullptr);
    DAT_IA_HANDLE one, two;
    ASSERT_EQ(Open("probe0", &one), DAT_SUCCESS);
    ASSERT_EQ(Open("probe0", &two), DAT_SUCCESS);
    EXPECT_NE(one, two);
    EXPECT_EQ(facts->inits, 1);
    EXPECT_STREQ(facts->parameters, "some \"words\" 7");
    EXPECT_EQ(dat_ia_close(one, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    EXPECT_EQ(dat_ia_close(two, DAT_CLOSE_GRACEFUL_FLAG), Error(DAT_INVALID_STATE));
    EXPECT_EQ(facts->finis, 0);
    EXPECT_EQ(dat_ia_close(two, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    EXPECT_EQ(facts->finis, 1);
    EXPECT_EQ(facts->adapters, 0);
    ASSERT_EQ(Open("probe0", &one), DAT_SUCCESS);
    EXPECT_EQ(facts->inits, 2);
    EXPECT_EQ(dat_ia_close(one, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
  });
}

TEST(Providers, C013_TheNextAlternativeServes) {
  RunAlone([] {
    UseConf(Line("probe0", "/nonexistent/libfirst.so") + Line("probe0", "libdat2.so.2") +
            Line("probe0", Probe(), "silent") + Line("probe0", Probe(), "second"));
    ProbeFacts* const facts = Facts();
    DAT_IA_HANDLE ia;
    const std::string said = Said([&] { ASSERT_EQ(Open("probe0", &ia), DAT_SUCCESS); });
    EXPECT_NE(said.find("line 1): /nonexistent/libfirst.so: cannot open"), std::string::npos)
        << said;
    EXPECT_NE(said.find("line 3): "), std::string::npos) << said;
    EXPECT_STREQ(facts->parameters, "second");
    DAT_COUNT count = 0;
    EXPECT_EQ(dat_registry_list_providers(0, &count, nullptr),
              Error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
    EXPECT_EQ(count, 1);
    EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
  });
}

// Hardware first, the engine as the fallback; and a program may register neither's name.
TEST(Providers, C013_TheEngineIsAnAlternativeLikeOthers) {
  RunAlone([] {
    UseConf(Line("probe0", Probe(), "first") + Line("probe0", "libdapl-viaduct.so.2", "lo") +
            Line("probe1", Probe(), "silent") + Line("probe1", "libdapl-viaduct.so.2", "lo"));
    ProbeFacts* const facts = Facts();
    DAT_IA_HANDLE probe, mine;
    ASSERT_EQ(Open("probe0", &probe), DAT_SUCCESS);
    EXPECT_STREQ(facts->parameters, "first");
    EXPECT_EQ(facts->adapters, 1);
    Said([&] { ASSERT_EQ(Open("probe1", &mine), DAT_SUCCESS); });
    EXPECT_EQ(facts->adapters, 1);
    EXPECT_EQ(dat_ia_close(mine, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
    EXPECT_EQ(dat_ia_close(probe, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    DAT_PROVIDER table = {};
    for (DAT_PROVIDER_INFO info :
         {DAT_PROVIDER_INFO{"probe0", 2, 0, DAT_FALSE}, {"probe1", 2, 0, DAT_FALSE}}) {
      EXPECT_EQ(dat_registry_add_provider(&table, &info), Error(DAT_PROVIDER_ALREADY_REGISTERED));
    }
  });
}

TEST(Providers, NothingIsRegisteredBehindALibrary) {
  RunAlone([] {
    UseConf(Line("probe0", Probe(), "lingering"));
    DAT_IA_HANDLE ia;
    ASSERT_EQ(Open("probe0", &ia), DAT_SUCCESS);
    DAT_PROVIDER table = {};
    DAT_PROVIDER_INFO info = {"probe0", 2, 0, DAT_FALSE};
    EXPECT_EQ(dat_registry_add_provider(&table, &info), Error(DAT_PROVIDER_ALREADY_REGISTERED));
    EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    EXPECT_EQ(dat_registry_add_provider(&table, &info), DAT_SUCCESS);
    EXPECT_EQ(dat_registry_remove_provider(&table, &info), DAT_SUCCESS);
  });
}

TEST(Providers, NoneThatLoadsIsNotFound) {
  RunAlone([] {
    UseConf(Line("probe0", "/nonexistent/libfirst.so") + Line("probe1", Probe(), "bare"));
    DAT_IA_HANDLE ia;
    Said([&] {
      EXPECT_EQ(Open("probe0", &ia), Error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
    });
    EXPECT_EQ(Open("probe1", &ia), Error(DAT_INVALID_ADDRESS));
    EXPECT_EQ(Open("probe1", &ia, nullptr, DAT_TRUE),
              Error(DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND));
    EXPECT_EQ(Facts()->adapters, 0);
  });
}

// Handles in a page that nobody may read, and half a word before it; and numbers of all kinds.
TEST(Providers, C029_GarbageIsNobodysHandle) {
  RunAlone([] {
    UseConf(Line("probe0", Probe()) + Line("mine", "libdapl-viaduct.so.2", "lo"));
    DAT_IA_HANDLE probe, mine;
    ASSERT_EQ(Open("probe0", &probe), DAT_SUCCESS);
    ASSERT_EQ(Open("mine", &mine), DAT_SUCCESS);
    const long page = sysconf(_SC_PAGESIZE);
    char* const pages = static_cast<char*>(mmap(nullptr, static_cast<size_t>(2 * page), PROT_READ,
                                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_EQ(mprotect(pages + page, static_cast<size_t>(page), PROT_NONE), 0);
    void* zone;
    ASSERT_EQ(dat_pz_create(mine, &zone), DAT_SUCCESS);
    ASSERT_EQ(dat_pz_free(zone), DAT_SUCCESS);
    for (void* garbage : {static_cast<void*>(nullptr), reinterpret_cast<void*>(0x1),
                          reinterpret_cast<void*>(0x1234), reinterpret_cast<void*>(~uintptr_t{0}),
                          static_cast<void*>(pages), static_cast<void*>(pages + page),
                          static_cast<void*>(pages + page - 4), zone, mine}) {
      EXPECT_EQ(DAT_GET_TYPE(dat_ep_free(garbage)), DAT_UINT32{DAT_INVALID_HANDLE}) << garbage;
      if (garbage == mine) continue;
      EXPECT_EQ(DAT_GET_TYPE(dat_ia_close(garbage, DAT_CLOSE_ABRUPT_FLAG)),
                DAT_UINT32{DAT_INVALID_HANDLE});
    }
    EXPECT_EQ(Facts()->last_slot, -1);
    EXPECT_EQ(dat_ia_close(probe, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    EXPECT_EQ(dat_ia_close(mine, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
  });
}

TEST(Providers, AsyncDispatcherOfAnotherProviderIsRefused) {
  RunAlone([] {
    UseConf(Line("probe0", Probe()) + Line("mine", "libdapl-viaduct.so.2", "lo"));
    ProbeFacts* const facts = Facts();
    DAT_IA_HANDLE probe, mine, more;
    DAT_EVD_HANDLE probes = DAT_HANDLE_NULL, ours = DAT_HANDLE_NULL;
    ASSERT_EQ(Open("probe0", &probe, &probes), DAT_SUCCESS);
    ASSERT_EQ(Open("mine", &mine, &ours), DAT_SUCCESS);
    const DAT_RETURN refused = Error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC);
    EXPECT_EQ(Open("probe0", &more, &ours), refused);
    EXPECT_EQ(Open("mine", &more, &probes), refused);
    EXPECT_EQ(dat_ia_close(probe, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    EXPECT_EQ(facts->finis, 1);
    EXPECT_EQ(dat_ia_close(mine, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
  });
}

TEST(Providers, ADispatcherOfAnotherAdapterIsRefused) {
  RunAlone([] {
    UseConf(Line("one", "libdapl-viaduct.so.2", "127.0.0.1") +
            Line("two", "libdapl-viaduct.so.2", "127.0.0.2"));
    DAT_IA_HANDLE one, again, two;
    ASSERT_EQ(Open("one", &one), DAT_SUCCESS);
    ASSERT_EQ(Open("one", &again), DAT_SUCCESS);
    ASSERT_EQ(Open("two", &two), DAT_SUCCESS);
    const auto create = [&](DAT_IA_HANDLE of) {
      DAT_EVD_HANDLE events;
      EXPECT_EQ(dat_evd_create(of, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &events),
                DAT_SUCCESS);
      DAT_EP_HANDLE ep;
      return dat_ep_create(one, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, events, nullptr,
                           &ep);
    };
    EXPECT_EQ(create(again), DAT_SUCCESS);
    EXPECT_EQ(create(two), Error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN));
    for (DAT_IA_HANDLE ia : {one, again, two}) {
      EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    }
  });
}

TEST(Providers, AdaptersHandleHasOneForm) {
  RunAlone([] {
    UseConf(Line("probe0", Probe()) + Line("mine", "libdapl-viaduct.so.2", "lo"));
    DAT_IA_HANDLE probe, mine, shown = nullptr;
    ASSERT_EQ(Open("probe0", &probe), DAT_SUCCESS);
    ASSERT_EQ(Open("mine", &mine), DAT_SUCCESS);
    for (DAT_IA_HANDLE ia : {probe, mine}) {
      EXPECT_EQ(dats_get_ia_handle(ia, &shown), DAT_SUCCESS);
      EXPECT_EQ(shown, ia);
    }
    EXPECT_EQ(dats_get_ia_handle(nullptr, &shown),
              Error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA));
    EXPECT_EQ(dats_get_ia_handle(mine, nullptr), Error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
  });
}

DAT_RETURN OpenNowhere(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE*) {
  return DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES;
}

TEST(Providers, C018_C019_AProgramRegistersItsOwn) {
  RunAlone([] {
    UseConf(Line("probe0", Probe()) + Line("mine", "libdapl-viaduct.so.2", "lo"));
    DAT_PROVIDER table = {};
    table.device_name = "own";
    table.ia_open_func = OpenNowhere;
    DAT_PROVIDER_INFO info = {"own", 2, 0, DAT_FALSE};
    EXPECT_EQ(dat_registry_add_provider(nullptr, &info),
              Error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
    EXPECT_EQ(dat_registry_add_provider(&table, nullptr),
              Error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_EQ(dat_registry_remove_provider(&table, &info),
              Error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
    ASSERT_EQ(dat_registry_add_provider(&table, &info), DAT_SUCCESS);
    EXPECT_EQ(dat_registry_add_provider(&table, &info), Error(DAT_PROVIDER_ALREADY_REGISTERED));
    DAT_PROVIDER_INFO engines = {"mine", 2, 0, DAT_FALSE};
    EXPECT_EQ(dat_registry_add_provider(&table, &engines), Error(DAT_PROVIDER_ALREADY_REGISTERED));

    DAT_PROVIDER_INFO infos[3];
    DAT_PROVIDER_INFO* list[] = {&infos[0], &infos[1], &infos[2]};
    DAT_COUNT count = 0;
    ASSERT_EQ(dat_registry_list_providers(3, &count, list), DAT_SUCCESS);
    ASSERT_EQ(count, 3);
    EXPECT_STREQ(infos[0].ia_name, "probe0");
    EXPECT_STREQ(infos[1].ia_name, "mine");
    EXPECT_STREQ(infos[2].ia_name, "own");

    DAT_IA_HANDLE ia;
    EXPECT_EQ(Open("own", &ia), Error(DAT_INSUFFICIENT_RESOURCES));
    EXPECT_EQ(Open("own", &ia, nullptr, DAT_TRUE),
              Error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
    EXPECT_EQ(dat_registry_remove_provider(&table, &info), DAT_SUCCESS);
    EXPECT_EQ(Open("own", &ia), Error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));

    // In use as long as an adapter is open.
    ASSERT_EQ(Open("probe0", &ia), DAT_SUCCESS);
    const auto* const probes = *static_cast<const DAT_PROVIDER* const*>(ia);
    DAT_PROVIDER_INFO probe = {"probe0", 2, 0, DAT_FALSE};
    EXPECT_EQ(dat_registry_remove_provider(probes, &probe), Error(DAT_PROVIDER_IN_USE));
    EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
  });
}

// An adapter that both an entry and the program name is one adapter.
TEST(Providers, TheNameOfAnEntryIsListedOnce) {
  RunAlone([] {
    UseConf(Line("own", "/nonexistent/libfirst.so"));
    DAT_PROVIDER table = {};
    table.ia_open_func = OpenNowhere;
    DAT_PROVIDER_INFO info = {"own", 2, 0, DAT_FALSE};
    ASSERT_EQ(dat_registry_add_provider(&table, &info), DAT_SUCCESS);
    DAT_PROVIDER_INFO listed;
    DAT_PROVIDER_INFO* list[] = {&listed};
    DAT_COUNT count = 0;
    ASSERT_EQ(dat_registry_list_providers(1, &count, list), DAT_SUCCESS);
    EXPECT_EQ(count, 1);
    EXPECT_STREQ(listed.ia_name, "own");
  });
}

// As with OFED's registry. It stays, since who loads it again may find it loaded already.
TEST(Providers, ALibraryMayRegisterWhileItIsLoaded) {
  RunAlone([] {
    const std::string library = InTestFolder("libearly.so");
    UseConf(Line("early0", library) + Line("late0", library));
    DAT_IA_HANDLE ia;
    Said([&] {
      EXPECT_EQ(Open("late0", &ia), Error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
    });
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(Open("early0", &ia), DAT_SUCCESS);
      EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    }
  });
}

TEST(Providers, ALibraryThatIsNoProviderIsGoneAgain) {
  RunAlone([] {
    constexpr char kLibrary[] = "libanl.so.1";  // every C library has it, and nobody uses it
    ASSERT_EQ(dlopen(kLibrary, RTLD_LAZY | RTLD_NOLOAD), nullptr);
    UseConf(Line("probe0", kLibrary));
    DAT_IA_HANDLE ia;
    const std::string said = Said([&] {
      EXPECT_EQ(Open("probe0", &ia), Error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
    });
    EXPECT_NE(said.find("is no provider"), std::string::npos) << said;
    EXPECT_EQ(dlopen(kLibrary, RTLD_LAZY | RTLD_NOLOAD), nullptr);
  });
}

// Some providers omit the class. It is added, unless programs want DAT_QUEUE_EMPTY without it.
TEST(Providers, AnAnswerWithoutItsClass) {
  for (const bool bare : {false, true}) {
    RunAlone([bare] {
      UseConf("");
      if (bare) setenv("VIADUCT_QUEUE_EMPTY", "bare", 1);
      DAT_PROVIDER table = {};
      table.evd_dequeue_func = [](DAT_EVD_HANDLE, DAT_EVENT*) -> DAT_RETURN {
        return DAT_QUEUE_EMPTY;
      };
      table.evd_free_func = [](DAT_EVD_HANDLE) -> DAT_RETURN { return DAT_INVALID_STATE; };
      DAT_PROVIDER_INFO info = {"own", 2, 0, DAT_FALSE};
      ASSERT_EQ(dat_registry_add_provider(&table, &info), DAT_SUCCESS);
      const DAT_PROVIDER* object = &table;  // a provider's handles begin with their table
      DAT_EVENT event;
      EXPECT_EQ(dat_evd_dequeue(&object, &event),
                bare ? DAT_RETURN{DAT_QUEUE_EMPTY} : Error(DAT_QUEUE_EMPTY));
      EXPECT_EQ(dat_evd_free(&object), Error(DAT_INVALID_STATE));
    });
  }
}

template <DAT_UINT32 kAnswer>
DAT_RETURN OpenAnswers(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE*) {
  return Error(kAnswer);
}

// As with entries: the lowest minor version that is not below the one asked for.
TEST(Providers, OfSeveralVersionsTheNearestServes) {
  RunAlone([] {
    UseConf("");
    DAT_PROVIDER third = {}, first = {}, second = {};
    third.ia_open_func = OpenAnswers<DAT_QUEUE_FULL>;
    first.ia_open_func = OpenAnswers<DAT_INSUFFICIENT_RESOURCES>;
    second.ia_open_func = OpenAnswers<DAT_INTERNAL_ERROR>;
    const DAT_PROVIDER_INFO infos[] = {
        {"own", 2, 3, DAT_FALSE}, {"own", 2, 1, DAT_FALSE}, {"own", 2, 2, DAT_FALSE}};
    ASSERT_EQ(dat_registry_add_provider(&third, &infos[0]), DAT_SUCCESS);
    ASSERT_EQ(dat_registry_add_provider(&first, &infos[1]), DAT_SUCCESS);
    ASSERT_EQ(dat_registry_add_provider(&second, &infos[2]), DAT_SUCCESS);
    const DAT_RETURN answers[] = {Error(DAT_INSUFFICIENT_RESOURCES),
                                  Error(DAT_INSUFFICIENT_RESOURCES), Error(DAT_INTERNAL_ERROR),
                                  Error(DAT_QUEUE_FULL),
                                  Error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED)};
    for (DAT_UINT32 minor = 0; minor < 5; ++minor) {
      DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
      DAT_IA_HANDLE ia;
      char name[] = "own";
      EXPECT_EQ(dat_ia_openv(name, 8, &async, &ia, 2, minor, DAT_FALSE), answers[minor]) << minor;
    }
  });
}

// A provider that takes no memory itself, and whose graceful close finds objects left.
struct OwnProvider {
  OwnProvider() {
    own = this;
    table.device_name = "own";
    table.ia_open_func = Open;
    table.ia_close_func = Close;
  }
  static DAT_RETURN Open(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE* ia) {
    ++own->adapters;
    *ia = &own->adapter;
    return DAT_SUCCESS;
  }
  static DAT_RETURN Close(DAT_IA_HANDLE, DAT_CLOSE_FLAGS flags) {
    if (flags == DAT_CLOSE_GRACEFUL_FLAG) return Error(DAT_INVALID_STATE);
    --own->adapters;
    return DAT_SUCCESS;
  }

  static inline OwnProvider* own;
  DAT_PROVIDER table = {};
  DAT_PROVIDER_INFO info = {"own", 2, 0, DAT_FALSE};
  const DAT_PROVIDER* adapter = &table;
  int adapters = 0;
};

// Fails each allocation of an open once; `open` is the number of adapters that the provider has.
void FailEachOpen(const char* name, const int& open) {
  const int before = open;
  int n = 0;
  for (bool failed = true; failed;) {
    SCOPED_TRACE(++n);
    DAT_IA_HANDLE ia;
    FailAllocation(n);
    const DAT_RETURN result = Open(name, &ia);
    failed = StopFailing();
    if (result == DAT_SUCCESS) {
      EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    } else {
      EXPECT_TRUE(failed);
      EXPECT_EQ(DAT_GET_TYPE(result), DAT_UINT32{DAT_INSUFFICIENT_RESOURCES});
    }
    EXPECT_EQ(open, before);
  }
  EXPECT_GT(n, 1) << "the library allocates elsewhere";
}

TEST(Providers, WithoutMemoryNoAdapterStaysOpen) {
  RunAlone([] {
    UseConf(Line("probe0", Probe()));
    ProbeFacts* const facts = Facts();
    DAT_IA_HANDLE first;  // keeps the library, which allocates when it is loaded
    ASSERT_EQ(Open("probe0", &first), DAT_SUCCESS);
    FailEachOpen("probe0", facts->adapters);
    EXPECT_EQ(dat_ia_close(first, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    EXPECT_EQ(facts->finis, 1);

    OwnProvider own;
    ASSERT_EQ(dat_registry_add_provider(&own.table, &own.info), DAT_SUCCESS);
    FailEachOpen("own", own.adapters);
    EXPECT_EQ(dat_registry_remove_provider(&own.table, &own.info), DAT_SUCCESS);
  });
}

// A library that registers more than its entry's adapter stays as long as one of them is open.
TEST(Providers, ALibraryStaysForTheOthersThatItRegistered) {
  RunAlone([] {
    UseConf(Line("probe0", Probe(), "twin"));
    ProbeFacts* const facts = Facts();
    DAT_IA_HANDLE first, twin;
    ASSERT_EQ(Open("probe0", &first), DAT_SUCCESS);
    ASSERT_EQ(Open("twin", &twin), DAT_SUCCESS);
    EXPECT_EQ(dat_ia_close(first, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    EXPECT_EQ(facts->finis, 0);
    EXPECT_EQ(dat_ia_close(twin, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    EXPECT_EQ(facts->finis, 1);
    EXPECT_EQ(facts->adapters, 0);
  });
}

// The last close ends the waits of other threads, and the library must not be gone before they have
// left it.
TEST(Providers, ALibraryStaysUntilAWaitHasLeftIt) {
  RunAlone([] {
    UseConf(Line("probe0", Probe(), "waiting"));
    DAT_IA_HANDLE ia;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    ASSERT_EQ(Open("probe0", &ia, &async), DAT_SUCCESS);
    ProbeWait wait;
    sem_init(&wait.inside, 0, 0);
    sem_init(&wait.leave, 0, 0);
    DAT_RETURN waited = DAT_SUCCESS;
    std::thread waiter([&] {
      DAT_COUNT more;
      waited =
          dat_evd_wait(async, DAT_TIMEOUT_INFINITE, 1, reinterpret_cast<DAT_EVENT*>(&wait), &more);
    });
    sem_wait(&wait.inside);
    EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    sem_post(&wait.leave);
    waiter.join();
    EXPECT_EQ(waited, Error(DAT_ABORT));
    ASSERT_EQ(Open("probe0", &ia), DAT_SUCCESS);
    EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
  });
}

// The same for a close of a handle that is no open adapter's, or no more.
TEST(Providers, ALibraryStaysUntilACloseHasLeftIt) {
  RunAlone([] {
    UseConf(Line("probe0", Probe(), "waiting"));
    DAT_IA_HANDLE ia;
    ASSERT_EQ(Open("probe0", &ia), DAT_SUCCESS);
    ProbeWaitingClose closing;
    closing.provider = *static_cast<const void* const*>(ia);
    sem_init(&closing.wait.inside, 0, 0);
    sem_init(&closing.wait.leave, 0, 0);
    DAT_RETURN closed = DAT_SUCCESS;
    std::thread closer([&] { closed = dat_ia_close(&closing, DAT_CLOSE_GRACEFUL_FLAG); });
    sem_wait(&closing.wait.inside);
    EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    sem_post(&closing.wait.leave);
    closer.join();
    EXPECT_EQ(closed, Error(DAT_INVALID_STATE));
  });
}

// A thread of the parent that unloads the library is not in the child, which loads it anew.
TEST(Providers, AChildOpensWhatAThreadOfItsParentWasUnloading) {
  RunAlone([] {
    UseConf(Line("probe0", Probe()));
    ProbeFacts* const facts = Facts();
    static int status;
    status = -1;
    facts->after_fini = [] {
      std::thread([] {
        const pid_t child = fork();
        if (child == 0) {
          alarm(60);  // ends it if it hangs
          DAT_IA_HANDLE ia;
          _exit(Open("probe0", &ia) == DAT_SUCCESS ? 0 : 1);
        }
        waitpid(child, &status, 0);
      }).join();
    };
    DAT_IA_HANDLE ia;
    ASSERT_EQ(Open("probe0", &ia), DAT_SUCCESS);
    EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    EXPECT_EQ(facts->finis, 1);
    EXPECT_EQ(status, 0);
  });
}

DAT_RETURN DequeueNothing(DAT_EVD_HANDLE, DAT_EVENT*) { return Error(DAT_QUEUE_EMPTY); }

TEST(Providers, AChildWaitsForNothingThatAThreadOfItsParentHad) {
  RunAlone([] {
    UseConf("");
    OwnProvider own;
    own.table.evd_dequeue_func = DequeueNothing;
    ASSERT_EQ(dat_registry_add_provider(&own.table, &own.info), DAT_SUCCESS);
    std::atomic<bool> stop{false};
    std::vector<std::thread> pollers;
    for (int i = 0; i < 2; ++i) {
      pollers.emplace_back([&] {
        DAT_EVENT event;
        while (!stop) (void)dat_evd_dequeue(&own.adapter, &event);
      });
    }
    for (int i = 0; i < 200; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(60);  // ends it if it hangs
        DAT_IA_HANDLE ia;
        _exit(Open("own", &ia) == DAT_SUCCESS ? 0 : 1);
      }
      int status = -1;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_EQ(status, 0) << i;
    }
    stop = true;
    for (std::thread& poller : pollers) poller.join();
  });
}

// A close that is refused needs none either.
TEST(Providers, ACloseNeedsNoMemory) {
  RunAlone([] {
    UseConf("");
    OwnProvider own;
    ASSERT_EQ(dat_registry_add_provider(&own.table, &own.info), DAT_SUCCESS);
    DAT_IA_HANDLE ia;
    ASSERT_EQ(Open("own", &ia), DAT_SUCCESS);
    FailAllocation(1);
    const DAT_RETURN refused = dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG);
    const DAT_RETURN removed = dat_registry_remove_provider(&own.table, &own.info);
    const DAT_RETURN closed = dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
    EXPECT_FALSE(StopFailing()) << "it allocates";
    EXPECT_EQ(refused, Error(DAT_INVALID_STATE));
    EXPECT_EQ(removed, Error(DAT_PROVIDER_IN_USE));
    EXPECT_EQ(closed, DAT_SUCCESS);
    EXPECT_EQ(dat_registry_remove_provider(&own.table, &own.info), DAT_SUCCESS);
  });
}

// While a close that will be refused is under way, another thread's close succeeds.
TEST(Providers, OfTwoClosesAtOnceOneGivesTheAdapterBack) {
  RunAlone([] {
    UseConf("");
    OwnProvider own;
    static DAT_IA_HANDLE ia;
    static DAT_RETURN abrupt;
    own.table.ia_close_func = [](DAT_IA_HANDLE handle, DAT_CLOSE_FLAGS flags) {
      if (flags == DAT_CLOSE_GRACEFUL_FLAG) {
        std::thread([] { abrupt = dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG); }).join();
      }
      return OwnProvider::Close(handle, flags);
    };
    ASSERT_EQ(dat_registry_add_provider(&own.table, &own.info), DAT_SUCCESS);
    ASSERT_EQ(Open("own", &ia), DAT_SUCCESS);
    EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), Error(DAT_INVALID_STATE));
    EXPECT_EQ(abrupt, DAT_SUCCESS);
    EXPECT_EQ(own.adapters, 0);
    EXPECT_EQ(dat_registry_remove_provider(&own.table, &own.info), DAT_SUCCESS);
  });
}

TEST(Providers, Related) {
  RunAlone([] {
    UseConf(Line("probe0", Probe()) + Line("probe1", Probe()) +
            Line("mine", "libdapl-viaduct.so.2", "lo") +
            Line("other", "libdapl-viaduct.so.2", "lo"));
    char probe0[] = "probe0", probe1[] = "probe1", mine[] = "mine", other[] = "other",
         none[] = "none";
    DAT_HA_RELATIONSHIP answer = DAT_HA_EXTENSION_BASE;
    EXPECT_EQ(dat_registry_providers_related(none, mine, &answer),
              Error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
    EXPECT_EQ(dat_registry_providers_related(nullptr, mine, &answer),
              Error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
    EXPECT_EQ(dat_registry_providers_related(mine, nullptr, &answer),
              Error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_EQ(dat_registry_providers_related(mine, other, nullptr),
              Error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    EXPECT_EQ(dat_registry_providers_related(mine, mine, &answer), DAT_SUCCESS);
    EXPECT_EQ(answer, DAT_HA_TRUE);
    EXPECT_EQ(dat_registry_providers_related(mine, other, &answer), DAT_SUCCESS);
    EXPECT_EQ(answer, DAT_HA_FALSE);
    EXPECT_EQ(dat_registry_providers_related(probe0, probe1, &answer), DAT_SUCCESS);
    EXPECT_EQ(answer, DAT_HA_UNKNOWN);
    DAT_IA_HANDLE ia0, ia1;
    ASSERT_EQ(Open(probe0, &ia0), DAT_SUCCESS);
    EXPECT_EQ(dat_registry_providers_related(probe0, mine, &answer), DAT_SUCCESS);
    EXPECT_EQ(answer, DAT_HA_FALSE);
    ASSERT_EQ(Open(probe1, &ia1), DAT_SUCCESS);
    EXPECT_EQ(dat_registry_providers_related(probe0, probe1, &answer), DAT_SUCCESS);
    EXPECT_EQ(answer, DAT_HA_CONFLICTING);
    EXPECT_EQ(dat_ia_close(ia0, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    EXPECT_EQ(dat_ia_close(ia1, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
  });
}

// A provider without the function cannot be asked, although its adapter is open. The engine answers
// for a name that one of its entries has.
TEST(Providers, RelatedAsFarAsAnybodyKnows) {
  RunAlone([] {
    UseConf(Line("mine", "libdapl-viaduct.so.2", "lo") +
            Line("mine", "/nonexistent/libsecond.so", "", "threadsafe"));
    static DAT_PROVIDER table = {};
    static const DAT_PROVIDER* object = &table;
    table.ia_open_func = [](const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*,
                            DAT_IA_HANDLE* ia) -> DAT_RETURN {
      *ia = &object;
      return DAT_SUCCESS;
    };
    DAT_PROVIDER_INFO info = {"own", 2, 0, DAT_FALSE};
    ASSERT_EQ(dat_registry_add_provider(&table, &info), DAT_SUCCESS);
    DAT_IA_HANDLE ia;
    ASSERT_EQ(Open("own", &ia), DAT_SUCCESS);
    char own[] = "own", mine[] = "mine";
    DAT_HA_RELATIONSHIP answer = DAT_HA_EXTENSION_BASE;
    EXPECT_EQ(dat_registry_providers_related(own, mine, &answer), DAT_SUCCESS);
    EXPECT_EQ(answer, DAT_HA_UNKNOWN);
    EXPECT_EQ(dat_registry_providers_related(mine, mine, &answer), DAT_SUCCESS);
    EXPECT_EQ(answer, DAT_HA_TRUE);
  });
}

// The name's adapter is not the caller's: another thread may close it, but not while its provider
// is asked.
TEST(Providers, RelatedHoldsUpTheCloseOfWhatIsAsked) {
  RunAlone([] {
    UseConf(Line("mine", "libdapl-viaduct.so.2", "lo"));
    OwnProvider own;
    static DAT_IA_HANDLE ia;
    static Sleeper* closer;
    static DAT_RETURN closed;
    static int open;
    own.table.ia_ha_related_func = [](DAT_IA_HANDLE, const DAT_NAME_PTR, DAT_BOOLEAN* answer) {
      closer = new Sleeper([] { closed = dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG); });
      closer->AwaitAsleep();
      open = OwnProvider::own->adapters;
      *answer = DAT_TRUE;
      return DAT_RETURN{DAT_SUCCESS};
    };
    ASSERT_EQ(dat_registry_add_provider(&own.table, &own.info), DAT_SUCCESS);
    ASSERT_EQ(Open("own", &ia), DAT_SUCCESS);
    char name[] = "own", mine[] = "mine";
    DAT_HA_RELATIONSHIP answer = DAT_HA_EXTENSION_BASE;
    EXPECT_EQ(dat_registry_providers_related(name, mine, &answer), DAT_SUCCESS);
    ASSERT_NE(closer, nullptr);
    closer->Join();
    delete closer;
    EXPECT_EQ(open, 1);
    EXPECT_EQ(answer, DAT_HA_CONFLICTING);
    EXPECT_EQ(closed, DAT_SUCCESS);
    EXPECT_EQ(own.adapters, 0);
    EXPECT_EQ(dat_registry_remove_provider(&own.table, &own.info), DAT_SUCCESS);
  });
}

std::string OfedLine(const std::string& library, const std::string& parameters) {
  return "ofa-v2-x u2.0 nonthreadsafe default " + library + " dapl.2.0 \"" + parameters +
         "\" \"\"\n";
}

TEST(Ofed, LoadsAndFailsCleanlyWithoutADevice) {
  RunAlone([] {
    if (dlopen("libdaplofa.so.2", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD) != nullptr ||
        access("/sys/class/infiniband", F_OK) == 0) {
      GTEST_SKIP() << "there may be an RDMA device";
    }
    UseConf(OfedLine("libdaplofa.so.2", "lo 0"));
    DAT_IA_HANDLE ia;
    DAT_RETURN result = DAT_SUCCESS;
    const std::string said = Said([&] { result = Open("ofa-v2-x", &ia); });
    if (said.find("cannot open shared object") != std::string::npos) {
      GTEST_SKIP() << "libdapl2 is not installed: tools/setup test";
    }
    EXPECT_EQ(result & DAT_CLASS_ERROR, DAT_UINT32{DAT_CLASS_ERROR});
    EXPECT_NE(DAT_GET_TYPE(result), DAT_UINT32{DAT_PROVIDER_NOT_FOUND}) << said;
    // Its library has been unloaded again.
    EXPECT_EQ(dlopen("libdaplofa.so.2", RTLD_LAZY | RTLD_NOLOAD), nullptr);
  });
}

TEST(Ofed, AbsentLibraryIsOneLineWithTheLineToWrite) {
  RunAlone([] {
    UseConf("# absent\n" + OfedLine("/nonexistent/libdaploscm.so.2", "lo 0"));
    DAT_IA_HANDLE ia;
    const std::string said = Said([&] {
      EXPECT_EQ(Open("ofa-v2-x", &ia), Error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
    });
    const std::string expected =
        "; for this library's own engine write: ofa-v2-x u2.0 nonthreadsafe default "
        "libdapl-viaduct.so.2 viaduct.0.1 \"lo 0\" \"\"\n";
    EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
    EXPECT_NE(said.find("line 2"), std::string::npos) << said;
    ASSERT_GT(said.size(), expected.size());
    EXPECT_EQ(said.substr(said.size() - expected.size()), expected);
  });
}

TEST(Ofed, OneSettingServesItByTheEngine) {
  RunAlone([] {
    UseConf(OfedLine("libdaplofa.so.2", "lo 0"));
    setenv("VIADUCT_OFED_ENTRIES", "engine", 1);
    DAT_IA_HANDLE ia;
    ASSERT_EQ(Open("ofa-v2-x", &ia), DAT_SUCCESS);
    DAT_IA_ATTR attributes;
    ASSERT_EQ(dat_ia_query(ia, nullptr, DAT_IA_FIELD_ALL, &attributes, 0, nullptr), DAT_SUCCESS);
    EXPECT_STREQ(attributes.adapter_name, "ofa-v2-x");
    EXPECT_STREQ(attributes.vendor_name, "Viaduct");
    EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
  });
}

}  // namespace
}  // namespace viaduct::tests
