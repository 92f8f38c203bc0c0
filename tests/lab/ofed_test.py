#!/usr/bin/env python3
"""Debian's DAT programs, with OFED's DAPL on Linux's siw and with our libdat2 on the soft device, in both roles."""

import os
import unittest

from tests.lab import dat_programs, lab

_OWN = os.path.dirname(os.path.realpath("dat/api/libdat2.so.2"))
_ENGINE = os.path.dirname(os.path.realpath("dat/core/libviaduct.so.1"))

# Debian's library in namespace a, ours in b. Both call the adapter `lab`: dtest's client uses its server's name for it. Without CRC,
# as two siws talk: dtest fills a buffer that its peer may already be reading, and siw takes the buffer's bytes once for the CRC and
# once to send them.
_SETUP = """
set -u
cd /tmp
echo 'lab u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "va 0" ""' >debian.conf
echo 'lab u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "10.8.0.2" ""' >own.conf
limit=60
debian() { timeout $limit ip netns exec a env DAT_OVERRIDE=/tmp/debian.conf "$@" </dev/null; }
own() { timeout $limit ip netns exec b env DAT_OVERRIDE=/tmp/own.conf LD_LIBRARY_PATH=%(own)s:%(engine)s \
  VIADUCT_WIRE=iwarp VIADUCT_CRC=off VIADUCT_QUEUE_EMPTY=bare "$@" </dev/null; }
listening() { # NAMESPACE PORT
  for _ in $(seq 200); do
    ip netns exec "$1" ss -ltn | grep -q ":$2 " && return
    sleep 0.1
  done
}
""" % {"own": _OWN, "engine": _ENGINE}

_ROLES = (("own", "debian", "a", "10.8.0.1"), ("debian", "own", "b", "10.8.0.2"))


class Ofed(unittest.TestCase):
    def _run(self, programs):
        commands, expected = [], []
        for client, server, namespace, address in _ROLES:
            more, lines = programs(client, server, namespace, address)
            commands += more
            expected += lines
        status, output = lab.run("siw", _SETUP + dat_programs.FUNCTIONS + "\n".join(commands) + "\ntrue", net="namespaces",
                                 seconds=500)
        self.assertEqual(status, 0, output)
        dat_programs.judge(self, output, expected)

    def test_dtest(self):
        self._run(dat_programs.dtests)

    def test_dapltest(self):
        self._run(dat_programs.dapltests)


if __name__ == "__main__":
    lab.main()
