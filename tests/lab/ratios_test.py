#!/usr/bin/env python3
"""Tests how ratios parses what the programs print, on real samples of it, without measuring anything."""

import importlib.machinery
import importlib.util
import json
import signal
import sys
import unittest
import unittest.mock

_LOADER = importlib.machinery.SourceFileLoader("ratios", "tests/lab/ratios")
_SPEC = importlib.util.spec_from_loader("ratios", _LOADER)
ratios = importlib.util.module_from_spec(_SPEC)
_LOADER.exec_module(ratios)

_SEND_LAT = """
---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]
 64      2000          46.31          19153.91      52.92  	       2175.15     	1810.02		8041.97
---------------------------------------------------------------------------------------
"""
_SEND_BW = """
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      500              9.49               7.76   		   0.000124
"""
_TRANSACTIONS = "----- Stats ---- : 1 threads, 1 EPs\nTotal WQE        :    1064.67 WQE/Sec\n"
_PERFORMANCE = "raw: RW, 1000, 64, 1, 1, 56.75, 4282.2, 21.6, 262.32, 173.40, 17.83 \n"
_CONNECTIONS = " ALL 20 CONNECTED on Client!\n Connections:  1234.50 usec, CPS  810.04 Total 0.02 secs, poll_cnt=7, Num=20\n"


class RatiosTest(unittest.TestCase):
    def parse(self, measurement, contender, text):
        chosen = next(m for m in ratios.MEASUREMENTS if m.name == measurement)
        return next(c for c in chosen.contenders if c.name == contender).parse(text)

    def test_what_the_programs_print(self):
        self.assertEqual(self.parse("send", "ib_send_lat", _SEND_LAT), 52.92)
        self.assertEqual(self.parse("stream", "ib_send_bw", _SEND_BW), 7.76)
        for measurement in "transaction", "wait":
            self.assertEqual(self.parse(measurement, "dapltest, ours", _TRANSACTIONS), 1e6 / 1064.67)
        self.assertEqual(self.parse("write", "dapltest, OFED", _PERFORMANCE), 1e6 / 4282.02)
        self.assertEqual(self.parse("writes", "dapltest, ours", _PERFORMANCE), 21.06)
        self.assertEqual(self.parse("connect", "dtestcm, OFED", _CONNECTIONS), 810.04)
        self.assertEqual(self.parse("stream", "datping", json.dumps({"mebibytes_per_second": 12.5})), 12.5)
        for contender, key in ("datping", "us"), ("vipping", "half_round_trip_us"):
            self.assertEqual(self.parse("send", contender, "progress\n" + json.dumps({key: {"min": 8.5, "p50": 9.73}})), 9.73)

    def test_what_failed_has_no_value(self):
        with self.assertRaises(ValueError):
            self.parse("connect", "dtestcm, ours", _CONNECTIONS.replace("20 CONNECTED", "19 CONNECTED"))
        for measurement in ratios.MEASUREMENTS:
            for contender in measurement.contenders:
                with self.assertRaises(ratios.NO_RESULT):
                    contender.parse("error: no device\n")

    def test_an_ignored_signal_stays_ignored(self):
        seen = {}

        def build():
            seen.update((number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGHUP))
            sys.exit(7)

        for number, handler in (signal.SIGHUP, signal.SIG_IGN), (signal.SIGTERM, signal.SIG_DFL):
            self.addCleanup(signal.signal, number, signal.signal(number, handler))
        with unittest.mock.patch.object(ratios, "build", build), unittest.mock.patch("sys.argv", ["ratios"]):
            with self.assertRaises(SystemExit):
                ratios.main()
        self.assertEqual(seen[signal.SIGHUP], signal.SIG_IGN)
        self.assertNotEqual(seen[signal.SIGTERM], signal.SIG_DFL)

    def test_whom_is_compared_with_whom(self):
        pairs = [pair for measurement in ratios.MEASUREMENTS for pair in measurement.pairs()]
        self.assertEqual(pairs.count(("dapltest, ours", "dapltest, OFED")), 4)
        self.assertIn(("vipping", "ib_send_lat"), pairs)
        self.assertIn(("datping", "ib_send_bw"), pairs)
        self.assertIn(("dtestcm, ours", "dtestcm, OFED"), pairs)


if __name__ == "__main__":
    unittest.main()
