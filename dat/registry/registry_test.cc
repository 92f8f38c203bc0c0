#include "dat/registry/registry.h"

#include "gtest/gtest.h"

namespace viaduct::registry {
namespace {

TEST(Registry, BuiltInAdapterNeedsNoConfiguration) {
  const Registry registry(BuiltInEntries());
  for (bool thread_safe : {false, true}) {
    const Entry* entry = nullptr;
    ASSERT_EQ(registry.Find("soft0", 2, 0, thread_safe, &entry), Found::kYes);
    EXPECT_EQ(entry->major, 2u);
    EXPECT_EQ(entry->thread_safe, thread_safe);
    ASSERT_EQ(registry.Find("soft0", 1, 2, thread_safe, &entry), Found::kYes);
    EXPECT_EQ(entry->major, 1u);
  }
}

TEST(Registry, MinorVersionMayBeHigher) {
  const Registry registry({{"a", 1, 3, false, ""}, {"a", 1, 2, false, "lower"}});
  const Entry* entry = nullptr;
  ASSERT_EQ(registry.Find("a", 1, 1, false, &entry), Found::kYes);
  EXPECT_EQ(entry->interface, "lower");
  ASSERT_EQ(registry.Find("a", 1, 3, false, &entry), Found::kYes);
  EXPECT_EQ(entry->minor, 3u);
}

TEST(Registry, SaysWhatIsMissing) {
  const Registry registry({{"a", 1, 2, false, ""}, {"b", 2, 0, true, ""}});
  const Entry* entry = nullptr;
  EXPECT_EQ(registry.Find("c", 1, 2, false, &entry), Found::kNoName);
  EXPECT_EQ(registry.Find("a", 2, 0, false, &entry), Found::kNoMajor);
  EXPECT_EQ(registry.Find("a", 1, 3, false, &entry), Found::kNoMinor);
  EXPECT_EQ(registry.Find("a", 1, 2, true, &entry), Found::kNoThreadSafety);
  EXPECT_EQ(entry, nullptr);
}

}  // namespace
}  // namespace viaduct::registry
