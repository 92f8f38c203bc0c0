"""One round of rping's conversation in both roles: rdma-core's rping over siw, and a program on the soft device."""

import os

from tests.lab import lab

DAT = os.path.realpath("tests/lab/rping_peer")
VIPL = os.path.realpath("tests/lab/rping_via")
_ROUNDS = 20

# siw in namespace a, and no RDMA support in the eyes of our process in b.
_SCRIPT = """
set -u
cd /tmp
count=%(count)d
cat >/tmp/dat.conf <<'END'
lab0 u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.2.0 "10.8.0.2" ""
END
export DAT_OVERRIDE=/tmp/dat.conf VIADUCT_WIRE=iwarp VIADUCT_CRC=%(crc)s
for end in a b; do ip -n $end link set v$end mtu %(mtu)d; done
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
"""


def run(test, program, adapter, sizes, crc, mtu=1500, rounds=_ROUNDS):
    """`test` fails unless each size passes in both roles."""
    script = _SCRIPT % {"count": rounds, "crc": crc, "mtu": mtu, "program": program, "adapter": adapter,
                        "sizes": " ".join(str(size) for size in sizes)}
    status, output = lab.run("siw", script, net="namespaces", seconds=280)
    test.assertEqual(status, 0, output)
    expected = []
    for size in sizes:
        done = "%d rounds of %d bytes" % (rounds, size)
        expected += ["client %d: rping 0" % size, "client %d: peer 0 %s" % (size, done),
                     "server %d: peer 0 %s" % (size, done), "server %d: rping 0" % size]
    lines = output.splitlines()
    test.assertEqual([line for line in expected if line not in lines], [], output)
