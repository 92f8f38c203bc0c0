#!/usr/bin/env python3
"""Debian's DAT programs with our libraries on an RDMA device: at both ends by either route, and at one end with OFED's at the
other."""

import os
import unittest

from tests.lab import dat_programs, lab

_SETUP = dat_programs.libraries(
    own=os.path.dirname(os.path.realpath("dat/api/libdat2.so.2")), provider=os.path.realpath("dat/api/libdapl-viaduct.so.2"),
    engine=os.path.dirname(os.path.realpath("dat/core/libviaduct.so.1")),
    rdma=os.path.dirname(os.path.realpath("verbs/rdma/libviaduct-rdma.so.1")))

_PAIRS = (("own", "own"), ("plugin", "plugin"), ("own", "debian"), ("debian", "own"))
_OURS = _PAIRS[:2]
_ADDRESS = "10.9.0.1"


class RdmaPrograms(unittest.TestCase):
    def _run(self, driver, programs, pairs=_PAIRS):
        commands, expected = [], []
        for client, server in pairs:
            more, lines = programs(client, server, "here", _ADDRESS)
            commands += ["echo '%s calls %s'" % (client, server)] + more
            expected += ["%s calls %s" % (client, server)] + lines
        status, output = lab.run(driver, _SETUP + dat_programs.FUNCTIONS + "\n".join(commands) + "\ntrue", seconds=1500)
        self.assertEqual(status, 0, output)
        dat_programs.judge(self, output, expected)

    def test_dtest_over_siw(self):
        self._run("siw", dat_programs.dtests)

    def test_dtest_over_rxe(self):
        self._run("rxe", dat_programs.dtests)

    def test_dtestsrq_over_siw(self):
        self._run("siw", dat_programs.shared_receives, _OURS)

    def test_dtestsrq_over_rxe(self):
        self._run("rxe", dat_programs.shared_receives, _OURS)

    def test_dtestx_over_rxe(self):
        self._run("rxe", dat_programs.extensions)

    def test_dapltest_over_siw(self):
        self._run("siw", dat_programs.dapltests)

    def test_dapltest_over_rxe(self):
        self._run("rxe", dat_programs.dapltests)


if __name__ == "__main__":
    lab.main()
