#!/usr/bin/env python3
"""over_sim.py chooses the right tests for the simulation, and the table of exceptions names no others."""

import glob
import re
import unittest

from tests.conformance.sim import over_sim

_SOURCE = """
int Twice(int n) {
  return 2 * n;
}

void Hear(const Attributes& one,
          const Attributes& other) {
  if (one.x) {
    RunPair([](Peer&) {}, [](Peer&) {});
  }
}
void HearMore() {
  Hear(Attributes(), Attributes());
}

TEST(Pair, Direct) {
  RunPair([](Peer&) {}, [](Peer&) {});
}
TEST(Pair, Behind) { Hear(1, 2); }
TEST(Pair,
     FarBehind) {
  HearMore();
}
TEST(Alone, Plain) {
  RunAlone([] {
    EXPECT_EQ(Twice(1), 2);
  });
}
TEST(Alone, NoBody) {
  EXPECT_EQ(sizeof(int), 4u);
}
"""

_NUMBERS = {"dat": r"C(\d{3})_", "vipl": r"C(\d+)_"}


class OverSim(unittest.TestCase):

    def test_who_needs_a_peer(self):
        self.assertEqual(over_sim.alone(_SOURCE), ["Alone.Plain", "Alone.NoBody"])

    def test_exceptions_are_tests_that_need_no_peer(self):
        rows = over_sim.exceptions(over_sim.read("tests/conformance/sim/README.md"))
        self.assertTrue(rows)
        for face in sorted(_NUMBERS):
            alone = set()
            for source in glob.glob("tests/conformance/%s/*_test.cc" % face):
                alone.update(over_sim.alone(over_sim.read(source)))
            self.assertTrue(alone, face)
            for row_face, numbers, test in rows:
                if row_face != face:
                    continue
                self.assertIn(test, alone)
                prefix = re.match("(?:%s)*" % _NUMBERS[face], test.partition(".")[2]).group()
                self.assertEqual(numbers, [int(number) for number in re.findall(_NUMBERS[face], prefix)], test)


if __name__ == "__main__":
    unittest.main()
