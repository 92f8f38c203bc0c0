#!/usr/bin/env python3
"""Runs the report of instructions over shared memory, shows it, and bounds what a face adds to the device."""

import importlib.machinery
import importlib.util
import shutil
import unittest

from tools.build_rules import python_main

_LOADER = importlib.machinery.SourceFileLoader("instructions", "tests/hotpath/instructions")
_SPEC = importlib.util.spec_from_loader("instructions", _LOADER)
instructions = importlib.util.module_from_spec(_SPEC)
_LOADER.exec_module(instructions)


# As a fraction of the device's own cost: a sixth above the fraction without optimization; with optimization it is lower.
_MOST_ADDED = {"vipl": 0.93, "dat1": 0.76, "dat2": 0.76}


class InstructionsTest(unittest.TestCase):
    def test_parsing(self):
        text = ("1,234 (12.3%)  ./tests/hotpath/script.h:void viaduct::hotpath::ScriptPostSend<viaduct::bench::DatSide>(...)\n"
                "99,000 (100.0%)  ./tests/hotpath/script.h:void viaduct::hotpath::ScriptMeasured<X>(X&, X&, int)'2\n"
                "7 (0.1%)  malloc.c:malloc\n")
        self.assertEqual(instructions.parse_inclusive(text), {"PostSend": 1234, "Measured": 99000})

    @unittest.skipIf(shutil.which("valgrind") is None, "valgrind is not installed")
    def test_every_interface_is_counted(self):
        measured = list(instructions.measure("shm", "tests/hotpath", 200))
        print("\n" + "\n".join(instructions.report(measured)))
        self.assertEqual([script for script, _ in measured], list(instructions.SCRIPTS))
        totals = {script: counts["Measured"] for script, counts in measured}
        for script, most in _MOST_ADDED.items():
            with self.subTest(script):
                self.assertLess((totals[script] - totals["device"]) / totals["device"], most)


if __name__ == "__main__":
    python_main.main()
