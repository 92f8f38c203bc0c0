#!/usr/bin/env python3
"""rdma-core's rping over Linux's siw, and a program on the soft device, in both roles: the standard between them."""

import os
import unittest

from tests.lab import lab

_DAT = os.path.realpath("tests/lab/rping_peer")
_VIPL = os.path.realpath("tests/lab/rping_via")
_COUNT = 20
_SIZES = (32, 64, 1448, 1449, 65535)

# siw in namespace a, and no RDMA support in the eyes of our process in b.
_SCRIPT = """
set -u
cd /tmp
count=%(count)d
cat >/tmp/dat.conf <<'END'
lab0 u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.2.0 "10.8.0.2" ""
END
export DAT_OVERRIDE=/tmp/dat.conf VIADUCT_WIRE=iwarp VIADUCT_CRC=%(crc)s
# await COMMAND...: until it succeeds.
await() { for _ in $(seq 200); do "$@" && return; sleep 0.1; done; }
listening() { ip netns exec "$1" ss -ltn | grep -q :7174; }
both_roles() { # PROGRAM ADAPTER SIZE
  ip netns exec b "$1" $2 serve $count $3 >server.out 2>&1 & server=$!
  await listening b
  timeout 60 ip netns exec a rping -c -a 10.8.0.2 -C $count -S $3 -V >client.out 2>&1
  echo "client $3: rping $?"
  wait $server
  echo "client $3: peer $? $(tail -n 1 server.out)"

  timeout 60 ip netns exec a rping -s -a 10.8.0.1 -C $count -S $3 -V >server.out 2>&1 & server=$!
  await listening a
  timeout 60 ip netns exec b "$1" $2 10.8.0.1 $count $3 >client.out 2>&1
  echo "server $3: peer $? $(tail -n 1 client.out)"
  wait $server
  echo "server $3: rping $?"
}
for size in %(sizes)s; do both_roles %(program)s %(adapter)s $size; done
dmesg | grep -i -E 'siw.*(error|warn)|BUG|Oops' || true
"""


class Rping(unittest.TestCase):
    def _run(self, program, adapter, sizes, crc):
        script = _SCRIPT % {"count": _COUNT, "crc": crc, "program": program, "adapter": adapter,
                            "sizes": " ".join(str(size) for size in sizes)}
        status, output = lab.run("siw", script, net="namespaces", seconds=280)
        self.assertEqual(status, 0, output)
        expected = []
        for size in sizes:
            rounds = "%d rounds of %d bytes" % (_COUNT, size)
            expected += ["client %d: rping 0" % size, "client %d: peer 0 %s" % (size, rounds),
                         "server %d: peer 0 %s" % (size, rounds), "server %d: rping 0" % size]
        lines = output.splitlines()
        self.assertEqual([line for line in expected if line not in lines], [], output)
        self.assertNotRegex(output, "BUG|Oops")

    def test_dat_with_crc(self):
        self._run(_DAT, "lab0", _SIZES, "on")

    # siw does not ask for it.
    def test_dat_without_crc(self):
        self._run(_DAT, "lab0", _SIZES, "off")

    # A peer without VIPL's header: a VIPL client of it sees its own attributes, a server takes it as it comes.
    def test_vipl(self):
        self._run(_VIPL, "10.8.0.2", (64, 65535), "on")


if __name__ == "__main__":
    unittest.main()
