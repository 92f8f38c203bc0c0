#include "verbs/base/per_process.h"

#include "gtest/gtest.h"
#include "verbs/base/testing_child.h"

namespace viaduct::verbs {
namespace {

int heard = 0;

struct Once {
  explicit Once(int number) : number(number) {}
  void InForkChild() { heard += number; }
  const int number;
};

TEST(PerProcess, AChildMakesItsOwnAndItsParentsHearsOfIt) {
  Once& own = PerProcess<Once>::Get(1);
  EXPECT_EQ(&PerProcess<Once>::Get(2), &own);
  EXPECT_EQ(InChild([&own] {
              if (heard != 1 || PerProcess<Once>::Find() != nullptr) return 1;
              Once& other = PerProcess<Once>::Get(8);
              return &other != &own && other.number == 8 && own.number == 1 ? 0 : 2;
            }),
            0);
  EXPECT_EQ(heard, 0);
  EXPECT_EQ(PerProcess<Once>::Find(), &own);
}

// A descriptor that the first child has closed may have become the program's own by then.
TEST(PerProcess, HearsOfTheFirstForkAlone) {
  PerProcess<Once>::Get(1);
  EXPECT_EQ(InChild([] { return InChild([] { return heard; }); }), 1);
  EXPECT_EQ(InChild([] {
              PerProcess<Once>::Get(8);
              return InChild([] { return heard; });
            }),
            9);
}

}  // namespace
}  // namespace viaduct::verbs
