// Providers that a program registers itself, and how two names are related. DAT checklist 18, 19.
#include <dat2/udat.h>
// Must come after udat.h.
#include <dat2/dat_registry.h>

#include <cstdlib>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/sleeper.h"
#include "tests/providers/own_provider.h"
#include "tests/providers/registry.h"

namespace viaduct::tests {
namespace {

TEST(Registering, NothingIsRegisteredBehindALibrary) {
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

DAT_RETURN OpenNowhere(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE*) {
  return DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES;
}

TEST(Registering, C018_C019_AProgramRegistersItsOwn) {
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
TEST(Registering, TheNameOfAnEntryIsListedOnce) {
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

// Some providers omit the class. It is added, unless programs want DAT_QUEUE_EMPTY without it.
TEST(Registering, AnAnswerWithoutItsClass) {
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
TEST(Registering, OfSeveralVersionsTheNearestServes) {
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

TEST(Registering, Related) {
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
TEST(Registering, RelatedAsFarAsAnybodyKnows) {
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
TEST(Registering, RelatedHoldsUpTheCloseOfWhatIsAsked) {
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

}  // namespace
}  // namespace viaduct::tests
