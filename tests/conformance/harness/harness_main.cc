#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  viaduct::tests::SetUp(argc, argv);
  return RUN_ALL_TESTS();
}
