#!/usr/bin/env python3
"""Private data between a program that knows only librdmacm, over siw, and a DAT program on the soft device, in both roles."""

import os
import unittest

from tests.lab import lab

_CM = os.path.realpath("tests/lab/private_data_cm")
_DAT = os.path.realpath("tests/lab/private_data_dat")

# siw is in namespace a; our process in b sees no RDMA support.
_SCRIPT = """
set -u
cd /tmp
echo 'b u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "10.8.0.2" ""' >dat.conf
export DAT_OVERRIDE=/tmp/dat.conf VIADUCT_WIRE=iwarp
cm() { timeout 100 ip netns exec a %(cm)s 10.8.0.1 "$@" 2>&1; }
dat() { timeout 100 ip netns exec b %(dat)s b "$@" 2>&1; }
%(server)s serve %(answers)s >server.out & server=$!
for _ in $(seq 200); do ip netns exec %(host)s ss -ltn | grep -q :7193 && break; sleep 0.1; done
%(client)s %(address)s %(requests)s >client.out
echo "client $?"
cat client.out
wait $server
echo "server $?"
cat server.out
"""
_OWN_MOST = 171  # bytes that DAT's max_private_data_size allows here
_SIW_MOST = 251


def _lines(what, sizes):
    return ["%s: %d bytes" % (what, size) for size in sizes]


class PrivateData(unittest.TestCase):
    def _run(self, **values):
        values.update(cm=_CM, dat=_DAT)
        values["requests"] = " ".join(str(size) for size in values["requests"])
        status, output = lab.run("siw", _SCRIPT % values, net="namespaces")
        self.assertEqual(status, 0, output)
        self.assertIn("server 0\n", output, output)
        client, server = output.strip().split("server 0\n")
        return client.splitlines(), server.splitlines()

    # siw (Linux 6.1) counts these bytes and 4 of its own in 8 bits, so that 252 to 255 come out as 0 to 3 with a word that is not
    # there. Such a client causes no request and gets a reject by the protocol; the next client is served.
    def test_client_on_siw(self):
        sizes = (0, 1, 100, _SIW_MOST)
        client, server = self._run(client="cm", server="dat", host="b", address="10.8.0.2",
                                   requests=sizes + (252, 255, 100, 0), answers="0 1 100 %d -%d -0" % (_OWN_MOST, _OWN_MOST))
        self.assertEqual(client, ["client 0"] + _lines("accept", (0, 1, 100, _OWN_MOST)) + _lines("reject", (0, 0, _OWN_MOST, 0)))
        self.assertEqual(server, _lines("request", sizes + (100, 0)))

    def test_server_on_siw(self):
        sizes = (0, 1, 100, _OWN_MOST, 100, 0)
        client, server = self._run(client="dat", server="cm", host="a", address="10.8.0.1",
                                   requests=sizes, answers="0 1 100 %d -%d -0" % (_SIW_MOST, _SIW_MOST))
        self.assertEqual(client, ["client 0"] + _lines("accept", (0, 1, 100, _SIW_MOST)) + _lines("reject", (_SIW_MOST, 0)))
        self.assertEqual(server, _lines("request", sizes))


if __name__ == "__main__":
    lab.main()
