#!/usr/bin/env python3
"""rdma-core's rping over Linux's siw, and a DAT program on the soft device, in both roles: the standard between them."""

import os
import unittest

from tests.lab import lab

_PEER = os.path.realpath("tests/lab/rping_peer")
_COUNT = 20
_SIZES = (32, 64, 1448, 1449, 65535)

# siw in namespace a, and no RDMA support in the eyes of our process in b.
_SCRIPT = """
set -u
peer=%(peer)s count=%(count)d
cat >/tmp/dat.conf <<'END'
lab0 u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.2.0 "10.8.0.2" ""
END
export DAT_OVERRIDE=/tmp/dat.conf VIADUCT_WIRE=iwarp
# await COMMAND...: until it succeeds.
await() { for _ in $(seq 200); do "$@" && return; sleep 0.1; done; }
listening() { ip netns exec "$1" ss -ltn | grep -q :7174; }
for size in %(sizes)s; do
  ip netns exec b "$peer" lab0 serve $count $size >server.out 2>&1 & server=$!
  await listening b
  timeout 60 ip netns exec a rping -c -a 10.8.0.2 -C $count -S $size -V >client.out 2>&1
  echo "client $size: rping $?"
  wait $server
  echo "client $size: peer $? $(tail -n 1 server.out)"

  timeout 60 ip netns exec a rping -s -a 10.8.0.1 -C $count -S $size -V >server.out 2>&1 & server=$!
  await listening a
  timeout 60 ip netns exec b "$peer" lab0 10.8.0.1 $count $size >client.out 2>&1
  echo "server $size: peer $? $(tail -n 1 client.out)"
  wait $server
  echo "server $size: rping $?"
done
dmesg | grep -i -E 'siw.*(error|warn)|BUG|Oops' || true
"""


class Rping(unittest.TestCase):
    def test_both_roles(self):
        sizes = " ".join(str(size) for size in _SIZES)
        script = "cd /tmp\n" + _SCRIPT % {"peer": _PEER, "count": _COUNT, "sizes": sizes}
        status, output = lab.run("siw", script, net="namespaces")
        self.assertEqual(status, 0, output)
        lines = output.splitlines()
        for size in _SIZES:
            rounds = "%d rounds of %d bytes" % (_COUNT, size)
            for line in ("client %d: rping 0" % size, "client %d: peer 0 %s" % (size, rounds),
                         "server %d: peer 0 %s" % (size, rounds), "server %d: rping 0" % size):
                with self.subTest(line=line):
                    self.assertIn(line, lines, output)
        self.assertNotRegex(output, "BUG|Oops")


if __name__ == "__main__":
    unittest.main()
