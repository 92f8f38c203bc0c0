#!/usr/bin/env python3
"""Reads and writes of many segments in both directions at once (crossing.c), between siw and a process without RDMA."""

import os
import unittest

from tests.lab import lab

_CROSSING = os.path.realpath("tests/lab/crossing")
_MODULE = os.path.dirname(os.path.realpath("verbs/rdma/libviaduct-rdma.so.1"))

# siw is in namespace a; our process in b sees no RDMA support. Without a CRC, because in one of some forty runs siw (Linux 6.1)
# counts the payload of some segment twice in it.
_SCRIPT = """
set -u
cd /tmp
cat >/tmp/dat.conf <<'END'
a u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "10.8.0.1" ""
b u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "10.8.0.2" ""
END
export DAT_OVERRIDE=/tmp/dat.conf LD_LIBRARY_PATH=%(module)s
end() { # HOST serve|ADDRESS
  case $1 in a) export VIADUCT_WIRE=rdma ;; b) export VIADUCT_WIRE=iwarp VIADUCT_CRC=off ;; esac
  timeout 100 ip netns exec $1 %(crossing)s $1 $2
}
(end %(server)s serve) >server.out 2>&1 & server=$!
for _ in $(seq 200); do ip netns exec %(server)s ss -ltn | grep -q :7193 && break; sleep 0.1; done
(end %(client)s %(address)s) >client.out 2>&1
status=$?
wait $server
echo "server $? $(cat server.out)"
echo "client $status $(cat client.out)"
"""


class Crossing(unittest.TestCase):
    def _run(self, server, client, address):
        script = _SCRIPT % {"module": _MODULE, "crossing": _CROSSING, "server": server, "client": client, "address": address}
        status, output = lab.run("siw", script, net="namespaces", seconds=250)
        self.assertEqual((status, output.split("\n")[:2]), (0, ["server 0 crossed", "client 0 crossed"]), output)

    def test_server_on_siw(self):
        self._run("a", "b", "10.8.0.1")

    def test_client_on_siw(self):
        self._run("b", "a", "10.8.0.2")


if __name__ == "__main__":
    lab.main()
