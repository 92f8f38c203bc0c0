#include "vipl/registrations.h"

#include <atomic>
#include <functional>
#include <thread>

#include "gtest/gtest.h"
#include "verbs/base/epoch.h"

namespace viaduct::vipl {
namespace {

void Add(Registrations& registrations, VIP_MEM_HANDLE handle) {
  registrations.Add(handle, 0x1000, 0x1000, {}, {});
}

const void* At(uintptr_t address) { return reinterpret_cast<const void*>(address); }

bool Remove(Registrations& registrations, VIP_MEM_HANDLE handle, uintptr_t begin = 0x1000) {
  core::Ref<core::MemoryRegion> none;
  return registrations.Remove(handle, At(begin), &none);
}

bool Finds(const Registrations& registrations, VIP_MEM_HANDLE handle) {
  const verbs::EpochGuard guard;
  return registrations.Find(handle) != nullptr;
}

TEST(RegistrationsTest, FindsWhatWasAdded) {
  Registrations registrations;
  Add(registrations, 7);
  EXPECT_TRUE(Finds(registrations, 7));
  EXPECT_FALSE(Finds(registrations, 8));
  EXPECT_FALSE(Finds(registrations, 0));
}

TEST(RegistrationsTest, RemovalNeedsTheAddress) {
  Registrations registrations;
  Add(registrations, 7);
  EXPECT_FALSE(Remove(registrations, 7, 0x1001));
  EXPECT_FALSE(Remove(registrations, 8));
  EXPECT_TRUE(Remove(registrations, 7));
  EXPECT_FALSE(Remove(registrations, 7));
  EXPECT_FALSE(Finds(registrations, 7));
}

TEST(RegistrationsTest, KeepsThousandsThroughChange) {
  Registrations registrations;
  for (VIP_MEM_HANDLE handle = 1; handle <= 3000; ++handle) Add(registrations, handle);
  for (VIP_MEM_HANDLE handle = 1; handle <= 3000; handle += 3) {
    EXPECT_TRUE(Remove(registrations, handle));
  }
  for (VIP_MEM_HANDLE handle = 3001; handle <= 6000; ++handle) Add(registrations, handle);
  for (VIP_MEM_HANDLE handle = 1; handle <= 6000; ++handle) {
    EXPECT_EQ(Finds(registrations, handle), handle > 3000 || handle % 3 != 1) << handle;
  }
  registrations.HideAll();
  for (VIP_MEM_HANDLE handle = 1; handle <= 6000; ++handle) {
    EXPECT_FALSE(Finds(registrations, handle)) << handle;
  }
}

// A caller that remembers what it found notices its removal, and what takes its place.
TEST(RegistrationsTest, RemembersOnlyWhatIsThere) {
  Registrations registrations;
  Registrations::Last last{nullptr};
  const verbs::EpochGuard guard;
  EXPECT_EQ(registrations.Find(7, last), nullptr);
  Add(registrations, 7);
  const Registration* const found = registrations.Find(7, last);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(last.load(), found);
  EXPECT_EQ(registrations.Find(7, last), found);
  EXPECT_EQ(registrations.Find(8, last), nullptr);
  ASSERT_TRUE(Remove(registrations, 7));
  EXPECT_EQ(registrations.Find(7, last), nullptr);
  EXPECT_EQ(registrations.Find(0, last), nullptr);
  Add(registrations, 8);
  EXPECT_EQ(registrations.Find(8, last), found);
  EXPECT_EQ(registrations.Find(7, last), nullptr);
}

TEST(RegistrationsTest, ItsPagesMayHoldDescriptors) {
  Registration registration;
  registration.SetBytes(0x1f00, 0x200);
  EXPECT_TRUE(registration.MayHold(At(0x1f00), 0x200));
  EXPECT_TRUE(registration.MayHold(At(0x1000), 0x40));
  EXPECT_TRUE(registration.MayHold(At(0x2fc0), 0x40));
  EXPECT_FALSE(registration.MayHold(At(0xfc0), 0x80));
  EXPECT_FALSE(registration.MayHold(At(0x2fc0), 0x41));
  EXPECT_FALSE(registration.MayHold(At(0x3000), 1));
  EXPECT_FALSE(registration.MayHold(At(~uintptr_t{0}), 0x40));
}

TEST(RegistrationsTest, WholePagesAreNoMore) {
  Registration registration;
  registration.SetBytes(0x1000, 0x1000);
  EXPECT_TRUE(registration.MayHold(At(0x1fc0), 0x40));
  EXPECT_FALSE(registration.MayHold(At(0xfc0), 0x40));
  EXPECT_FALSE(registration.MayHold(At(0x2000), 0x40));
}

TEST(RegistrationsTest, NoBytesHoldNothing) {
  Registration registration;
  registration.SetBytes(0x1f00, 0);
  EXPECT_FALSE(registration.MayHold(At(0x1f00), 1));
  EXPECT_FALSE(registration.MayHold(At(0x1000), 1));
}

TEST(RegistrationsTest, TagsMatchIfEqualOrNull) {
  int a, b;
  EXPECT_TRUE(TagsMatch(&a, &a));
  EXPECT_FALSE(TagsMatch(&a, &b));
  EXPECT_TRUE(TagsMatch(nullptr, &b));
  EXPECT_TRUE(TagsMatch(&a, nullptr));
}

// Expects `remove`, after which nobody finds `handle`, to wait until the guards of that moment are
// left.
void ExpectToWaitForAGuard(Registrations& registrations, VIP_MEM_HANDLE handle,
                           const std::function<void()>& remove) {
  std::atomic<bool> left{false};
  std::thread remover;
  {
    const verbs::EpochGuard guard;
    remover = std::thread([&] {
      remove();
      EXPECT_TRUE(left);
    });
    while (registrations.Find(handle) != nullptr) std::this_thread::yield();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // time enough if it does not wait
    left = true;
  }
  remover.join();
}

TEST(RegistrationsTest, NoGuardOutlivesARemoval) {
  Registrations registrations;
  Add(registrations, 7);
  ExpectToWaitForAGuard(registrations, 7, [&] { EXPECT_TRUE(Remove(registrations, 7)); });
  Add(registrations, 8);
  ExpectToWaitForAGuard(registrations, 8, [&] { registrations.HideAll(); });
}

// What a reader found stays whole until its guard is left, whatever happens meanwhile.
TEST(RegistrationsTest, ReadersAndWriters) {
  Registrations registrations;
  Add(registrations, 1);
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    Registrations::Last last{nullptr};
    while (!stop.load()) {
      const verbs::EpochGuard guard;
      for (VIP_MEM_HANDLE handle = 1; handle <= 40; ++handle) {
        const Registration* found = registrations.Find(handle, last);
        if (found != nullptr) {
          ASSERT_TRUE(found->MayHold(At(0x1000), 0x1000));
        }
      }
      ASSERT_NE(registrations.Find(1), nullptr);
    }
  });
  for (int round = 0; round < 200; ++round) {
    for (VIP_MEM_HANDLE handle = 2; handle <= 40; ++handle) Add(registrations, handle);
    for (VIP_MEM_HANDLE handle = 2; handle <= 40; ++handle) {
      ASSERT_TRUE(Remove(registrations, handle));
    }
  }
  stop.store(true);
  reader.join();
}

}  // namespace
}  // namespace viaduct::vipl
