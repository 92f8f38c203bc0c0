#include "dat/registry/registry.h"

#include <cstdlib>
#include <fstream>
#include <new>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "verbs/base/no_descriptors.h"

namespace viaduct::registry {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Entry MakeEntry(const std::string& name, uint32_t major, uint32_t minor, bool thread_safe,
                const std::string& library = "lib.so", const std::string& parameters = "") {
  Entry entry;
  entry.name = name;
  entry.major = major;
  entry.minor = minor;
  entry.thread_safe = thread_safe;
  entry.library = library;
  entry.parameters = parameters;
  return entry;
}

std::vector<std::string> Libraries(const std::vector<const Entry*>& entries) {
  std::vector<std::string> libraries;
  for (const Entry* entry : entries) libraries.push_back(entry->library);
  return libraries;
}

// Sets a variable for the length of a test.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(Registry, BuiltInAdapterNeedsNoConfiguration) {
  const Registry registry(BuiltInEntries({}));
  for (uint32_t major : {1u, 2u}) {
    for (bool thread_safe : {false, true}) {
      std::vector<const Entry*> entries;
      ASSERT_EQ(registry.Find("soft0", major, major == 1 ? 2 : 0, thread_safe, &entries),
                Found::kYes);
      ASSERT_EQ(entries.size(), 1u);
      EXPECT_EQ(entries[0]->major, major);
      EXPECT_EQ(entries[0]->thread_safe, thread_safe);
      EXPECT_TRUE(IsEngines(*entries[0]));
    }
  }
}

TEST(Registry, MinorVersionMayBeHigher) {
  const Registry registry(
      {MakeEntry("a", 1, 3, false, "higher"), MakeEntry("a", 1, 2, false, "lower")});
  std::vector<const Entry*> entries;
  ASSERT_EQ(registry.Find("a", 1, 1, false, &entries), Found::kYes);
  EXPECT_THAT(Libraries(entries), ElementsAre("lower"));
  entries.clear();
  ASSERT_EQ(registry.Find("a", 1, 3, false, &entries), Found::kYes);
  EXPECT_THAT(Libraries(entries), ElementsAre("higher"));
}

TEST(Registry, AlternativesComeInTheFilesOrder) {
  const Registry registry({MakeEntry("a", 2, 0, false, "first"), MakeEntry("b", 2, 0, false),
                           MakeEntry("a", 2, 0, true, "safe"),
                           MakeEntry("a", 2, 0, false, "second")});
  std::vector<const Entry*> entries;
  ASSERT_EQ(registry.Find("a", 2, 0, false, &entries), Found::kYes);
  EXPECT_THAT(Libraries(entries), ElementsAre("first", "second"));
}

TEST(Registry, SaysWhatIsMissing) {
  const Registry registry({MakeEntry("a", 1, 2, false), MakeEntry("b", 2, 0, true)});
  std::vector<const Entry*> entries;
  EXPECT_EQ(registry.Find("c", 1, 2, false, &entries), Found::kNoName);
  EXPECT_EQ(registry.Find("a", 2, 0, false, &entries), Found::kNoMajor);
  EXPECT_EQ(registry.Find("a", 1, 3, false, &entries), Found::kNoMinor);
  EXPECT_EQ(registry.Find("a", 1, 2, true, &entries), Found::kNoThreadSafety);
  EXPECT_THAT(entries, IsEmpty());
}

TEST(Registry, EntriesOfTheFileComeBeforeBuiltInOnesAndWin) {
  const std::vector<Entry> entries = WithBuiltIn(
      {MakeEntry("x", 2, 0, false), MakeEntry("soft0", 2, 0, false, "theirs")}, BuiltInEntries({}));
  // The file has no entry of that name for 1.2, so the built-in ones stay.
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].name, "x");
  EXPECT_EQ(entries[1].library, "theirs");
  EXPECT_EQ(entries[2].major, 1u);
  EXPECT_EQ(entries[3].major, 1u);
}

TEST(Registry, RdmaAdaptersAreBuiltInBehindTheFile) {
  const verbs::Address address = *verbs::Address::Parse("192.0.2.1");
  const std::vector<verbs::RdmaAdapter> rdma = {{"siw0", "siw0", address},
                                                {"mlx5_0:2", "mlx5_0", address}};
  const Registry registry(
      WithBuiltIn({MakeEntry("siw0", 2, 0, false, "theirs")}, BuiltInEntries(rdma)));
  std::vector<const Entry*> entries;
  ASSERT_EQ(registry.Find("siw0", 2, 0, false, &entries), Found::kYes);
  EXPECT_THAT(Libraries(entries), ElementsAre("theirs"));
  entries.clear();
  ASSERT_EQ(registry.Find("siw0", 1, 2, true, &entries), Found::kYes);
  EXPECT_THAT(Libraries(entries), ElementsAre(""));
  entries.clear();
  ASSERT_EQ(registry.Find("mlx5_0:2", 2, 0, true, &entries), Found::kYes);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0]->parameters, "mlx5_0:2");
  EXPECT_TRUE(IsEngines(*entries[0]));
  EXPECT_EQ(registry.entries()[1].name, "soft0");
}

TEST(ReadEntries, C009_OverrideCountsAlone) {
  const std::string path = std::string(getenv("TEST_TMPDIR")) + "/dat.conf";
  std::ofstream(path) << "mine u2.0 nonthreadsafe default lib.so x.1.0 \"\" \"\"\n"
                      << "bad line\n"
                      << "mine2 u2.0 nonthreadsafe default lib.so x.1.0 \"\" \"\"\n";
  ScopedVariable variable("DAT_OVERRIDE", path);
  testing::internal::CaptureStderr();
  const std::vector<Entry> entries = ReadEntries();
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "viaduct: error: " + path + " line 2 is skipped: an entry has 8 words and this line has 2\n");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "mine");
  EXPECT_EQ(entries[1].name, "mine2");
}

TEST(ReadEntries, C009_UnreadableOverrideIsAnEmptyRegistry) {
  for (const char* path : {"/nonexistent/dat.conf", "/"}) {
    ScopedVariable variable("DAT_OVERRIDE", path);
    testing::internal::CaptureStderr();
    EXPECT_THAT(ReadEntries(), IsEmpty());
    EXPECT_NE(testing::internal::GetCapturedStderr(), "");
  }
}

TEST(ReadEntries, WithoutADescriptorItMustBeAskedAgain) {
  const verbs::NoDescriptors none;
  EXPECT_THROW(ReadEntries(), std::bad_alloc);
}

TEST(ReadEntries, EndlessFileEnds) {
  ScopedVariable variable("DAT_OVERRIDE", "/dev/zero");
  EXPECT_THAT(ReadEntries(), IsEmpty());
}

TEST(EngineEntries, OursAndOfeds) {
  EXPECT_TRUE(IsEngines(MakeEntry("a", 2, 0, false, "libdapl-viaduct.so.2")));
  EXPECT_TRUE(IsEngines(MakeEntry("a", 2, 0, false, "/opt/x/libdapl-viaduct.so.2")));
  EXPECT_FALSE(IsEngines(MakeEntry("a", 2, 0, false, "libother.so")));
  for (const char* library : {"libdaplofa.so.2", "/usr/lib/libdaploscm.so.2", "libdaploucm.so.2",
                              "libdaplomcm.so.2", "libdaplcma.so.1", "/usr/lib/libdaplscm.so.2"}) {
    const Entry entry = MakeEntry("a", 2, 0, false, library, "lo 0");
    EXPECT_TRUE(IsOfeds(entry));
    EXPECT_FALSE(IsEngines(entry));
    ScopedVariable variable("VIADUCT_OFED_ENTRIES", "engine");
    EXPECT_TRUE(IsEngines(entry));
  }
}

TEST(EngineEntries, OurLineIsForTheSamePlaceIfItIsHere) {
  const std::string ours = "a u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 ";
  EXPECT_EQ(LineOfOurs(MakeEntry("a", 2, 0, false, "libdaplofa.so.2", "lo 0")),
            ours + "\"lo 0\" \"\"");
  for (const char* absent : {"mlx4_9 1", "192.0.2.7 0"}) {
    EXPECT_EQ(LineOfOurs(MakeEntry("a", 2, 0, false, "libdaplofa.so.2", absent)),
              ours + "\"\" \"\"");
  }
}

TEST(EngineEntries, PlaceIsTheParametersFirstWord) {
  Place place;
  const auto loopback = verbs::Address::Parse("127.0.0.1");
  for (const char* parameters : {"lo", "lo 0", " lo\t0", "127.0.0.1"}) {
    ASSERT_TRUE(PlaceOf(MakeEntry("a", 2, 0, false, "", parameters), &place).ok());
    EXPECT_EQ(place.address, *loopback) << parameters;
    EXPECT_EQ(place.device, verbs::kAnyDevice);
  }
  EXPECT_TRUE(PlaceOf(MakeEntry("a", 2, 0, false, "", " "), &place).ok());
  for (const char* parameters : {"no-such-interface", "../lo", "..", "192.0.2.7", "0.0.0.0"}) {
    EXPECT_EQ(PlaceOf(MakeEntry("a", 2, 0, false, "", parameters), &place),
              core::Error(core::Code::kNotFound));
  }
}

}  // namespace
}  // namespace viaduct::registry
