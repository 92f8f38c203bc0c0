#!/usr/bin/env python3
"""One conversation of a server and a client (exchange.h) with our library at both ends, each with either face, in both roles: one
end is on siw, the other is a process without RDMA, or on siw too."""

import os
import unittest

from tests.lab import lab

_DAT = os.path.realpath("tests/lab/exchange_dat")
_VIA = os.path.realpath("tests/lab/exchange_via")
_UNRELIABLE = os.path.realpath("tests/lab/unreliable")
_MODULE = os.path.dirname(os.path.realpath("verbs/rdma/libviaduct-rdma.so.1"))
_FACES = ("dat", "via")

# siw is in namespace a; our process in b sees no RDMA support, unless it is to have it.
_SCRIPT = """
set -u
cd /tmp
cat >/tmp/dat.conf <<'END'
a u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "10.8.0.1" ""
b u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "10.8.0.2" ""
END
export DAT_OVERRIDE=/tmp/dat.conf LD_LIBRARY_PATH=%(module)s VIADUCT_GRACE_MS=20000
address() { case $1 in a) echo 10.8.0.1 ;; b) echo 10.8.0.2 ;; esac; }
end() { # FACE HOST serve|ADDRESS PEER'S-FACE
  case $2 in a) export VIADUCT_WIRE=rdma ;; b) export VIADUCT_WIRE=%(wire)s ;; esac
  case $1 in
    dat) timeout 100 ip netns exec $2 %(dat)s $2 $3 $4 ;;
    via) timeout 100 ip netns exec $2 %(via)s $(address $2) $3 $4 ;;
    unreliable) timeout 100 ip netns exec $2 %(unreliable)s $(address $2) $3 ;;
  esac
}
unreliable() { # SERVER'S-HOST CLIENT'S-HOST
  (end unreliable $1 serve -) >server.out 2>server.log & server=$!
  for _ in $(seq 200); do ip netns exec $1 ss -ltn | grep -q :7196 && break; sleep 0.1; done
  (end unreliable $2 $(address $1) -) >client.out 2>client.log
  status=$?
  wait $server
  echo "unreliable: server $? $(cat server.out), client $status $(cat client.out)"
  sed 's/^/    /' server.log client.log
}
exchange() { # SERVER'S-FACE SERVER'S-HOST CLIENT'S-FACE CLIENT'S-HOST
  (end $1 $2 serve $3) >server.out 2>server.log & server=$!
  for _ in $(seq 200); do ip netns exec $2 ss -ltn | grep -q :7191 && break; sleep 0.1; done
  (end $3 $4 $(address $2) $1) >client.out 2>client.log
  status=$?
  wait $server
  echo "$1 on $2, $3 on $4: server $? $(cat server.out)"
  echo "$1 on $2, $3 on $4: client $status $(cat client.out)"
  sed 's/^/    server: /' server.log
  sed 's/^/    client: /' client.log
}
%(exchanges)s
"""
_SAID = {"dat": "5 steps, private data up to 171 bytes", "via": "5 steps"}


class Exchange(unittest.TestCase):
    def _run(self, server, client, wire="iwarp"):
        exchanges, expected = [], []
        for serving in _FACES:
            for calling in _FACES:
                exchanges.append("exchange %s %s %s %s" % (serving, server, calling, client))
                for role, face in (("server", serving), ("client", calling)):
                    expected.append("%s on %s, %s on %s: %s 0 %s" % (serving, server, calling, client, role, _SAID[face]))
        exchanges.append("unreliable %s %s" % (server, client))
        expected.append("unreliable: server 0 done, client 0 done")
        script = _SCRIPT % {"dat": _DAT, "via": _VIA, "unreliable": _UNRELIABLE, "module": _MODULE, "wire": wire, "exchanges": "\n".join(exchanges)}
        status, output = lab.run("siw", script, net="namespaces", seconds=280)
        self.assertEqual(status, 0, output)
        said = [line for line in output.splitlines() if line and not line.startswith("    ")]
        self.assertEqual(said, expected, output)

    def test_server_on_siw(self):
        self._run("a", "b")

    def test_client_on_siw(self):
        self._run("b", "a")

    def test_both_on_siw(self):
        self._run("a", "b", wire="rdma")


if __name__ == "__main__":
    lab.main()
