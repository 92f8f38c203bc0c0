// What entries of dat.conf load: other people's libraries, alternatives, OFED's entries. DAT
// checklist 13, 17.
#include <dat2/udat.h>
// Must come after udat.h.
#include <dat2/dat_registry.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/providers/registry.h"

namespace viaduct::tests {
namespace {

TEST(Loading, C017_InitOnceFiniAfterTheLastClose) {
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

TEST(Loading, C013_TheNextAlternativeServes) {
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
TEST(Loading, C013_TheEngineIsAnAlternativeLikeOthers) {
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

TEST(Loading, NoneThatLoadsIsNotFound) {
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

// As with OFED's registry. It stays, since who loads it again may find it loaded already.
TEST(Loading, ALibraryMayRegisterWhileItIsLoaded) {
  RunAlone([] {
    const std::string library = ProviderLibrary("libearly.so");
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

TEST(Loading, ALibraryThatIsNoProviderIsGoneAgain) {
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
