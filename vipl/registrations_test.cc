#include "vipl/registrations.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"
#include "verbs/base/epoch.h"

namespace viaduct::vipl {
namespace {

std::unique_ptr<Registration> Make(VIP_MEM_HANDLE handle, uintptr_t begin = 0x1000,
                                   size_t length = 0x1000) {
  auto registration = std::make_unique<Registration>();
  registration->handle = handle;
  registration->begin = begin;
  registration->end = begin + length;
  return registration;
}

const void* At(uintptr_t address) { return reinterpret_cast<const void*>(address); }

bool Finds(const Registrations& registrations, VIP_MEM_HANDLE handle) {
  const verbs::EpochGuard guard;
  return registrations.Find(handle) != nullptr;
}

TEST(RegistrationsTest, FindsWhatWasAdded) {
  Registrations registrations;
  registrations.Add(Make(7));
  EXPECT_TRUE(Finds(registrations, 7));
  EXPECT_FALSE(Finds(registrations, 8));
  EXPECT_FALSE(Finds(registrations, 0));
}

TEST(RegistrationsTest, RemovalNeedsTheAddress) {
  Registrations registrations;
  registrations.Add(Make(7));
  EXPECT_EQ(registrations.Remove(7, At(0x1001)), nullptr);
  EXPECT_EQ(registrations.Remove(8, At(0x1000)), nullptr);
  EXPECT_NE(registrations.Remove(7, At(0x1000)), nullptr);
  EXPECT_EQ(registrations.Remove(7, At(0x1000)), nullptr);
  EXPECT_FALSE(Finds(registrations, 7));
}

TEST(RegistrationsTest, KeepsThousandsThroughChange) {
  Registrations registrations;
  for (VIP_MEM_HANDLE handle = 1; handle <= 3000; ++handle) registrations.Add(Make(handle));
  for (VIP_MEM_HANDLE handle = 1; handle <= 3000; handle += 3) {
    EXPECT_NE(registrations.Remove(handle, At(0x1000)), nullptr);
  }
  for (VIP_MEM_HANDLE handle = 3001; handle <= 6000; ++handle) registrations.Add(Make(handle));
  for (VIP_MEM_HANDLE handle = 1; handle <= 6000; ++handle) {
    EXPECT_EQ(Finds(registrations, handle), handle > 3000 || handle % 3 != 1) << handle;
  }
  EXPECT_EQ(registrations.RemoveAll().size(), 5000u);
  EXPECT_FALSE(Finds(registrations, 2));
}

TEST(RegistrationsTest, CoversExactlyItsBytes) {
  const auto registration = Make(1, 0x1000, 0x100);
  EXPECT_TRUE(registration->Covers(At(0x1000), 0x100));
  EXPECT_TRUE(registration->Covers(At(0x10c0), 0x40));
  EXPECT_FALSE(registration->Covers(At(0x10c1), 0x40));
  EXPECT_FALSE(registration->Covers(At(0xfff), 1));
  EXPECT_FALSE(registration->Covers(At(0x1100), 1));
  EXPECT_FALSE(registration->Covers(At(~uintptr_t{0}), 0x40));
}

TEST(RegistrationsTest, TagsMatchIfEqualOrNull) {
  int a, b;
  EXPECT_TRUE(TagsMatch(&a, &a));
  EXPECT_FALSE(TagsMatch(&a, &b));
  EXPECT_TRUE(TagsMatch(nullptr, &b));
  EXPECT_TRUE(TagsMatch(&a, nullptr));
}

// What a reader found stays whole until its guard is left, whatever happens meanwhile.
TEST(RegistrationsTest, ReadersAndWriters) {
  Registrations registrations;
  registrations.Add(Make(1));
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop.load()) {
      const verbs::EpochGuard guard;
      for (VIP_MEM_HANDLE handle = 1; handle <= 40; ++handle) {
        const Registration* found = registrations.Find(handle);
        if (found != nullptr) {
          ASSERT_EQ(found->handle, handle);
        }
      }
      ASSERT_NE(registrations.Find(1), nullptr);
    }
  });
  for (int round = 0; round < 200; ++round) {
    for (VIP_MEM_HANDLE handle = 2; handle <= 40; ++handle) registrations.Add(Make(handle));
    for (VIP_MEM_HANDLE handle = 2; handle <= 40; ++handle) {
      ASSERT_NE(registrations.Remove(handle, At(0x1000)), nullptr);
    }
  }
  stop.store(true);
  reader.join();
}

}  // namespace
}  // namespace viaduct::vipl
