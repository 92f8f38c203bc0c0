#!/usr/bin/env python3
"""The examples' file servers and client (credits by immediate data) between siw and a soft device, in both roles. Tests what
both ends agree on above the wire."""

import os
import unittest

from tests.lab import lab

_MODULE = os.path.dirname(os.path.realpath("verbs/rdma/libviaduct-rdma.so.1"))
_FETCH = os.path.realpath("vipl/examples/fetch")
_SERVERS = {"via": os.path.realpath("vipl/examples/filed"), "dat": os.path.realpath("dat/examples/dfiled")}

# siw is in namespace a; our process in b sees no RDMA support.
_SCRIPT = """
set -u
cd /tmp
mkdir served
head -c 3000000 /dev/urandom >served/file
sum=$(sha256sum <served/file)
cat >/tmp/dat.conf <<'END'
a u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "10.8.0.1" ""
b u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "10.8.0.2" ""
END
export DAT_OVERRIDE=/tmp/dat.conf LD_LIBRARY_PATH=%(module)s
on() { # HOST COMMAND...: there, over its device
  case $1 in
    a) shift; VIADUCT_WIRE=rdma ip netns exec a "$@" ;;
    b) shift; VIADUCT_WIRE=iwarp ip netns exec b "$@" ;;
  esac
}
address() { case $1 in a) echo 10.8.0.1 ;; b) echo 10.8.0.2 ;; esac; }
adapter() { case $1 in via) address $2 ;; dat) echo $2 ;; esac; } # FACE HOST
move() { # FACE PROGRAM SERVER'S-HOST CLIENT'S-HOST
  on $3 timeout 120 $2 -1 -d $(adapter $1 $3) served >server.out 2>&1 & server=$!
  for _ in $(seq 200); do ip netns exec $3 ss -ltn | grep -q :19970 && break; sleep 0.1; done
  rm -f got; touch got
  on $4 timeout 60 %(fetch)s -d $(address $4) -o got $(address $3) file >client.out 2>&1
  echo "$1 $3 $4: fetch $? $([ "$(sha256sum <got)" = "$sum" ] && echo same || cat client.out)"
  wait $server
  echo "$1 $3 $4: server $? $(cat server.out)"
}
%(moves)s
"""


class Files(unittest.TestCase):
    def _run(self, server, client):
        moves = "\n".join("move %s %s %s %s" % (face, program, server, client)
                          for face, program in _SERVERS.items())
        status, output = lab.run("siw", _SCRIPT % {"module": _MODULE, "fetch": _FETCH, "moves": moves}, net="namespaces", seconds=280)
        self.assertEqual(status, 0, output)
        lines = output.splitlines()
        for face in _SERVERS:
            self.assertIn("%s %s %s: fetch 0 same" % (face, server, client), lines, output)
            self.assertTrue(any(line.startswith("%s %s %s: server 0" % (face, server, client)) for line in lines), output)

    def test_server_on_siw(self):
        self._run("a", "b")

    def test_client_on_siw(self):
        self._run("b", "a")


if __name__ == "__main__":
    lab.main()
