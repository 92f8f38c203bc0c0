#!/usr/bin/env python3
"""What siw loses in certain moments (verbs/rdma/README.md, "What verbs cannot do"), with these moments made longer: whenever a
certain function of the kernel returns, the kernel writes stack traces."""

import os
import unittest

from tests.lab import lab

_PROGRAMS = {
    "examples": os.path.realpath("vipl/examples"),
    "datping": os.path.realpath("tools/datping/datping"),
    "libraries": ":".join(os.path.dirname(os.path.realpath(library)) for library in (
        "dat/api/libdat2.so.2", "dat/core/libviaduct.so.1", "verbs/rdma/libviaduct-rdma.so.1")),
}

_SLOW = """
set -eu
cd /tmp
export LD_LIBRARY_PATH=%(libraries)s
slow() { # FUNCTION TRACES
  traces=/sys/kernel/tracing
  [ -e $traces/kprobe_events ] || mount -t tracefs none $traces
  for i in $(seq $2); do echo "r:slow$i $1"; done >>$traces/kprobe_events
  for i in $(seq $2); do echo stacktrace >$traces/events/kprobes/slow$i/trigger; done
}
"""

# Between the listening of siw's socket and its own: the socket takes a connection that comes meanwhile.
_LISTEN = """
slow inet_listen 60
echo "VINIC 10.9.0.1 siw0" >nics
export VIADUCT_VIP_NICS=/tmp/nics VIADUCT_GRACE_MS=20000 VIADUCT_LOG=info
for round in $(seq 10); do
  timeout 60 %(examples)s/backtoback wait $((4720 + round)) 10 >said 2>served & server=$!
  timeout 60 %(examples)s/backtoback ask $((4720 + round)) 10 localhost 2>asked || true
  wait $server || true
  cat said
  for end in served asked; do sed "s/^/    /" $end | grep -v "is the server started" | tail -n 5; done
done
"""

# Between siw's answer and its first check for messages.
_CONNECT = """
slow kernel_sendmsg 2500
server() { VIADUCT_WIRE=rdma %(server)s %(datping)s --listen %(own)s; }
client() { VIADUCT_WIRE=%(wire)s %(client)s timeout 60 %(datping)s -n 3 -w 0 %(address)s; }
server >server 2>&1 & server=$!
for round in $(seq 20); do
  client >said 2>&1 || true
  grep -o "half a round trip" said || sed "s/^/    /" said
done
kill $server
sed "s/^/    /" server
"""

_TO_SIW = {"server": "", "own": "", "wire": "rdma", "client": "", "address": "10.9.0.1"}
_FROM_SOFT = {"server": "ip netns exec a", "own": "-d a", "wire": "iwarp", "client": "ip netns exec b", "address": "-d b 10.8.0.1"}
_ADAPTERS = """
cat >/tmp/dat.conf <<'END'
a u2.0 threadsafe default libdapl-viaduct.so.2 viaduct.0.1 "10.8.0.1" ""
b u2.0 threadsafe default libdapl-viaduct.so.2 viaduct.0.1 "10.8.0.2" ""
END
export DAT_OVERRIDE=/tmp/dat.conf
"""


class SlowSiw(unittest.TestCase):
    def _expect(self, script, said, net="one"):
        status, output = lab.run("siw", _SLOW % _PROGRAMS + script, net=net, seconds=800)
        self.assertEqual(status, 0, output)
        self.assertEqual([line for line in output.splitlines() if not line.startswith("    ")], said, output)

    def test_a_listener_is_not_lost(self):
        self._expect(_LISTEN % _PROGRAMS, 20 * ["10 connections"])

    def test_a_first_message_is_not_lost(self):
        route = "ip route add default dev dummy0\n"
        self._expect(route + _CONNECT % (_PROGRAMS | _TO_SIW), 20 * ["half a round trip"])

    def test_a_first_message_of_the_soft_device_is_not_lost(self):
        self._expect(_ADAPTERS + _CONNECT % (_PROGRAMS | _FROM_SOFT), 20 * ["half a round trip"], net="namespaces")


if __name__ == "__main__":
    lab.main()
