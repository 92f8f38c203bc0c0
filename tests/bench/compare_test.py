#!/usr/bin/env python3
"""Tests the arithmetic of compare, without measuring anything."""

import argparse
import importlib.machinery
import importlib.util
import math
import unittest
import unittest.mock

from tests.bench import samples

_LOADER = importlib.machinery.SourceFileLoader("compare", "tests/bench/compare")
_SPEC = importlib.util.spec_from_loader("compare", _LOADER)
compare = importlib.util.module_from_spec(_SPEC)
_LOADER.exec_module(compare)


def options(**changed):
    values = {"rounds": 1, "seconds": 1, "only": "lat8,stream1m", "contenders": "device,vipl", "wire": "shm", "max_line": 80,
              "max_lost": 10, "json": "", "quiet": True}
    values.update(changed)
    return argparse.Namespace(**values)


class SamplesTest(unittest.TestCase):
    def test_a_canary_is_two_numbers(self):
        canary = samples.Canary.parse("31.5 4.0\n")
        self.assertEqual((canary.line, canary.lost), (31.5, 4.0))

    def test_a_sample_counts_only_between_quiet_canaries(self):
        limits = samples.Limits(line=80, lost=10)
        quiet, far, busy = samples.Canary(40, 1), samples.Canary(130, 1), samples.Canary(40, 50)
        self.assertIsNone(limits.verdict(quiet, quiet))
        self.assertEqual(limits.verdict(quiet, far), "far")
        self.assertEqual(limits.verdict(busy, quiet), "busy")

    def test_dropped_samples_are_counted_and_not_used(self):
        series = samples.Series()
        for value, verdict in [(1.0, None), (9.0, "busy"), (3.0, None), (2.0, None), (None, "failed")]:
            series.add(value, verdict)
        self.assertEqual((series.minimum(), series.median(), series.maximum()), (1.0, 2.0, 3.0))
        self.assertEqual(series.dropped, {"busy": 1, "failed": 1})

    def test_without_samples_nothing_is_claimed(self):
        self.assertTrue(math.isnan(samples.Series().median()))
        self.assertEqual(samples.show(samples.Series().median()), "-")
        self.assertTrue(math.isnan(samples.cost_ratio(math.nan, 1.0, False)))

    def test_a_ratio_above_one_is_a_cost(self):
        self.assertEqual(samples.cost_ratio(0.12, 0.1, more_is_better=False), 0.12 / 0.1)
        self.assertEqual(samples.cost_ratio(25.0, 50.0, more_is_better=True), 2.0)


class CompareTest(unittest.TestCase):
    def fill(self, comparison, values):
        for key, value in values.items():
            series = samples.Series()
            series.add(value, None)
            comparison.series[key] = series

    def test_the_table_shows_the_ratios_of_medians(self):
        comparison = compare.Comparison(options(contenders="floor,device"), "")
        self.fill(comparison, {("lat8", "floor"): 0.05, ("lat8", "device"): 0.1, ("stream1m", "device"): 40.0})
        text = "\n".join(comparison.table())
        self.assertIn("ping-pong 8 B", text)
        results = {(r["measurement"], r["contender"]): r for r in comparison.results()["results"]}
        self.assertAlmostEqual(results["lat8", "device"]["cost_to_floor"], 2.0)
        self.assertIsNone(results["stream1m", "device"]["cost_to_floor"])

    def test_a_contender_that_is_not_there_is_said_to_be_absent(self):
        comparison = compare.Comparison(options(), "/nonexistent")
        self.assertEqual(comparison.absent, {"vipl": "not built"})
        self.assertIn("vipl: absent, not built", list(comparison.table()))

    def test_the_summary_of_ucx_perftest(self):
        latency = "+---+\n 100000 0.358 4.152 9.167 1.84 0.83 240876 109087\n"
        self.assertEqual(compare.parse_ucx(latency, more_is_better=False), 9.167)
        self.assertAlmostEqual(compare.parse_ucx(latency, more_is_better=True), 0.83 * 1.048576e-3)

    def test_bazel_may_have_start_up_options(self):
        with unittest.mock.patch.dict("os.environ", VIADUCT_BAZEL="echo --output_base=x"):
            self.assertEqual(compare.build(), "--output_base=x info --config=opt bazel-bin/tests/bench")


if __name__ == "__main__":
    unittest.main()
