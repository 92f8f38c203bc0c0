#!/usr/bin/env python3
"""Debian's DAT programs with our libraries on an RDMA device: at both ends by either route, and at one end with OFED's at the
other."""

import os
import unittest

from tests.lab import dat_programs, lab

_FOLDERS = {
    "own": os.path.dirname(os.path.realpath("dat/api/libdat2.so.2")),
    "provider": os.path.realpath("dat/api/libdapl-viaduct.so.2"),
    "engine": os.path.dirname(os.path.realpath("dat/core/libviaduct.so.1")),
    "rdma": os.path.dirname(os.path.realpath("verbs/rdma/libviaduct-rdma.so.1")),
}

# own: our libdat2. plugin: Debian's libdat2 with our provider. debian: Debian's with OFED's provider.
_SETUP = """
set -u
cd /tmp
echo 'lab u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "dummy0 0" ""' >debian.conf
echo "lab u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.2.0 \\"${LAB_DRIVER}0 1\\" \\"\\"" >own.conf
echo "lab u2.0 nonthreadsafe default %(provider)s viaduct.2.0 \\"${LAB_DRIVER}0 1\\" \\"\\"" >plugin.conf
limit=60
debian() { timeout $limit env DAT_OVERRIDE=/tmp/debian.conf "$@" </dev/null; }
own() { timeout $limit env DAT_OVERRIDE=/tmp/own.conf LD_LIBRARY_PATH=%(own)s:%(engine)s:%(rdma)s VIADUCT_QUEUE_EMPTY=bare \
  "$@" </dev/null; }
plugin() { timeout $limit env DAT_OVERRIDE=/tmp/plugin.conf LD_LIBRARY_PATH=%(engine)s:%(rdma)s "$@" </dev/null; }
listening() { # NAMESPACE PORT; rxe's listeners are no sockets
  for _ in $(seq 200); do
    { ss -ltn; rdma resource show cm_id; } | grep -q ":$2 " && return
    sleep 0.1
  done
}
""" % _FOLDERS

_PAIRS = (("own", "own"), ("plugin", "plugin"), ("own", "debian"), ("debian", "own"))
_ADDRESS = "10.9.0.1"


class RdmaPrograms(unittest.TestCase):
    def _run(self, driver, programs):
        commands, expected = [], []
        for client, server in _PAIRS:
            more, lines = programs(client, server, "here", _ADDRESS)
            commands += ["echo '%s calls %s'" % (client, server)] + more
            expected += ["%s calls %s" % (client, server)] + lines
        status, output = lab.run(driver, _SETUP + dat_programs.FUNCTIONS + "\n".join(commands) + "\ntrue", seconds=1500)
        self.assertEqual(status, 0, output)
        said = [line for line in output.splitlines() if " calls" in line]
        self.assertEqual(said, expected, output)
        self.assertNotRegex(output, "BUG:|Oops")

    def test_dtest_over_siw(self):
        self._run("siw", dat_programs.dtests)

    def test_dtest_over_rxe(self):
        self._run("rxe", dat_programs.dtests)

    def test_dapltest_over_siw(self):
        self._run("siw", dat_programs.dapltests)

    def test_dapltest_over_rxe(self):
        self._run("rxe", dat_programs.dapltests)


if __name__ == "__main__":
    lab.main()
