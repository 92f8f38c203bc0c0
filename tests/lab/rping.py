"""rping's conversation: rdma-core's rping over siw, and a program on the soft device."""

import os

from tests.lab import lab

DAT = os.path.realpath("tests/lab/rping_peer")
VIPL = os.path.realpath("tests/lab/rping_via")
_RELAY = os.path.realpath("tests/lab/mpa_relay.py")
ROUNDS = 20

# siw is in namespace a; our process in b sees no RDMA support.
_SET_UP = """
set -u
cd /tmp
count=%(count)d
cat >/tmp/dat.conf <<'END'
lab0 u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "10.8.0.2" ""
END
export DAT_OVERRIDE=/tmp/dat.conf VIADUCT_WIRE=iwarp
# await COMMAND...: until it succeeds.
await() { for _ in $(seq 200); do "$@" && return; sleep 0.1; done; }
listening() { ip netns exec "$1" ss -ltn | grep -q :7174; }
"""

_BOTH_ROLES = """
export VIADUCT_CRC=%(crc)s
for end in a b; do ip -n $end link set v$end mtu %(mtu)d; done
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

# The relay listens at the client's own address.
_MODELS = """
for model in %(models)s; do
  timeout 60 ip netns exec a rping -s -a 10.8.0.1 -C $count -S 1449 -V >server.out 2>&1 & server=$!
  timeout 60 ip netns exec b python3 %(relay)s $model 7174 10.8.0.2 10.8.0.1 >relay.out 2>&1 & relay=$!
  await listening a
  await listening b
  timeout 60 ip netns exec b %(program)s lab0 10.8.0.2 $count 1449 >client.out 2>&1
  echo "$model: client $? $(tail -n 1 client.out)"
  wait $server
  echo "$model: rping $?"
  wait $relay
  echo "$model: relay $? $(tail -n 1 relay.out)"
done
"""


def _attempt(script, expected):
    """The lines of `expected` that are missing, and the output."""
    status, output = lab.run("siw", script, net="namespaces", seconds=280)
    lines = output.splitlines() if status == 0 else []
    return [line for line in expected if line not in lines], output


def _expect(test, script, expected):
    missing, output = _attempt(script, expected)
    if missing:
        # siw (Linux 6.1) sends a wrong CRC at times.
        print("%s: a second attempt; the first one missed %s:\n%s" % (test.id(), missing, output), flush=True)
        missing, output = _attempt(script, expected)
    test.assertEqual(missing, [], output)


def run(test, program, adapter, sizes, crc, mtu=1500, rounds=ROUNDS):
    """`test` fails unless each size passes in both roles."""
    expected = []
    for size in sizes:
        done = "%d rounds of %d bytes" % (rounds, size)
        expected += ["client %d: rping 0" % size, "client %d: peer 0 %s" % (size, done),
                     "server %d: peer 0 %s" % (size, done), "server %d: rping 0" % size]
    _expect(test, (_SET_UP + _BOTH_ROLES) % {"count": rounds, "crc": crc, "mtu": mtu, "program": program, "adapter": adapter,
                                             "sizes": " ".join(str(size) for size in sizes)}, expected)


def run_models(test, models):
    """`test` fails unless a DAT client passes with each of the models that mpa_relay knows, and siw answers with that one."""
    expected = []
    for model in models:
        expected += ["%s: client 0 %d rounds of 1449 bytes" % (model, ROUNDS), "%s: rping 0" % model,
                     "%s: relay 0 %s" % (model, [model])]
    _expect(test, (_SET_UP + _MODELS) % {"count": ROUNDS, "models": " ".join(models), "relay": _RELAY, "program": DAT}, expected)
