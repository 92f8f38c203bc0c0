// What a connection costs while nothing goes over it.
#ifndef VIADUCT_TESTS_HOTPATH_RESOURCE_TESTS_H_
#define VIADUCT_TESTS_HOTPATH_RESOURCE_TESTS_H_

#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/conformance/harness/process_facts.h"
#include "tests/hotpath/pair_of_sides.h"

namespace viaduct::hotpath {

// The price list: 20 KiB of PSS for an idle connection, both processes counted.
inline constexpr long kIdleKib = 20;

inline bench::SideOptions ShallowQueues() {
  bench::SideOptions options;
  options.depth = 16;
  return options;
}

template <typename Side>
class ResourceTest : public ::testing::Test {};
TYPED_TEST_SUITE_P(ResourceTest);

template <typename Side>
class IdleTest : public ::testing::Test {};
TYPED_TEST_SUITE_P(IdleTest);

TYPED_TEST_P(ResourceTest, DescriptorsAndThreadsDoNotGrowWithConnections) {
  RunConnected<TypeParam>(ShallowQueues(), [](TypeParam& side, Peer& peer, bool active) {
    Exchange(peer, true);
    // What the first connection needed only for a moment may not be closed yet.
    AddConnections(side, active, 2);
    Exchange(peer, true);
    const int descriptors = tests::OpenDescriptors(), threads = tests::Threads();
    AddConnections(side, active, 100);
    Exchange(peer, true);
    for (int i = 0;
         i < 500 && (tests::OpenDescriptors() > descriptors || tests::Threads() > threads); ++i) {
      usleep(10000);
    }
    EXPECT_LE(tests::OpenDescriptors(), descriptors);
    EXPECT_LE(tests::Threads(), threads);
    Exchange(peer, true);
  });
}

TYPED_TEST_P(IdleTest, AnIdleConnectionIsSmall) {
  RunConnected<TypeParam>(ShallowQueues(), [](TypeParam& side, Peer& peer, bool active) {
    const size_t count = getenv("VIADUCT_LONG") != nullptr ? 1000 : 200;
    AddConnections(side, active, 10);
    Exchange(peer, true);
    const long before = tests::PssKib();
    const long both_before = before + Exchange(peer, before);
    AddConnections(side, active, 10 + count);
    Exchange(peer, true);
    const long after = tests::PssKib();
    const long grown = after + Exchange(peer, after) - both_before;
    if (active) {
      printf("%zu idle connections: %.1f KiB of PSS each\n", count,
             static_cast<double>(grown) / static_cast<double>(count));
    }
    EXPECT_LE(grown, kIdleKib * static_cast<long>(count));
    Exchange(peer, true);
  });
}

REGISTER_TYPED_TEST_SUITE_P(ResourceTest, DescriptorsAndThreadsDoNotGrowWithConnections);
REGISTER_TYPED_TEST_SUITE_P(IdleTest, AnIdleConnectionIsSmall);

}  // namespace viaduct::hotpath

#endif  // VIADUCT_TESTS_HOTPATH_RESOURCE_TESTS_H_
