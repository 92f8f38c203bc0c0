#!/usr/bin/env python3
"""Debian's DAT programs, with OFED's DAPL on Linux's siw and with our libdat2 on the soft device, in both roles."""

import os
import unittest

from tests.lab import lab

_OWN = os.path.dirname(os.path.realpath("dat/api/libdat2.so.2"))
_ENGINE = os.path.dirname(os.path.realpath("dat/core/libviaduct.so.1"))

_DTEST = (
    "-b 64",  # waiting
    "-p -b 64",  # polling
    "-c -b 64",  # by a notifier
    "-t -b 4096",
    "-W -b 64",  # ping-pong by RDMA writes
)
# What stands before and behind the address in dapltest's command line.
_DAPLTEST = (
    ("-T T -i 20 -t 1 -w 1", "client SR 256 server SR 256"),
    ("-T T -i 20 -t 1 -w 1", "client SR 256 server RW 4096 server SR 256"),
    ("-T T -i 20 -t 1 -w 1", "client SR 256 server RR 4096 server SR 256"),
    ("-T T -i 10 -t 2 -w 4", "client SR 256 server RW 4096 server SR 256 client SR 4096 server RR 4096 server SR 256"),
    ("-T T -V -P -i 20 -t 1 -w 1", "client SR 1024 3 -f server SR 1024 3 -f"),
    ("-T P -m b -i 50 -p 4", "RW 4096 2"),
    ("-T P -m p -i 50 -p 4", "RR 4096 2"),
)

# Debian's library in namespace a, ours in b. Both call the adapter `lab`: dtest's client takes its server's name for it.
_SETUP = """
set -u
cd /tmp
echo 'lab u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "va 0" ""' >debian.conf
echo 'lab u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.2.0 "10.8.0.2" ""' >own.conf
limit=60
debian() { timeout $limit ip netns exec a env DAT_OVERRIDE=/tmp/debian.conf "$@" </dev/null; }
own() { timeout $limit ip netns exec b env DAT_OVERRIDE=/tmp/own.conf LD_LIBRARY_PATH=%(own)s:%(engine)s \
  VIADUCT_WIRE=iwarp VIADUCT_QUEUE_EMPTY=bare "$@" </dev/null; }
listening() { # NAMESPACE PORT
  for _ in $(seq 200); do
    ip netns exec "$1" ss -ltn | grep -q ":$2 " && return
    sleep 0.1
  done
}
show() { sed 's/^/    /' "$1" | tail -n 25; }
dtest_pair() { # SERVER NAMESPACE CLIENT ADDRESS OPTIONS
  $1 dtest -P lab -s $5 >server.out 2>&1 &
  server=$!
  listening $2 15828
  $3 dtest -P lab -h $4 $5 >client.out 2>&1
  wait $server
  if grep -q PASSED server.out && grep -q PASSED client.out; then
    echo "$3 calls: dtest $5: passed"
  else
    echo "$3 calls: dtest $5: failed"; show client.out; show server.out
  fi
}
dtestcm_pair() { # SERVER NAMESPACE CLIENT ADDRESS
  $1 dtestcm -P lab -s -c 20 -b 5 >server.out 2>&1 &
  server=$!
  listening $2 45248
  $3 dtestcm -P lab -h $4 -c 20 -b 5 >client.out 2>&1
  wait $server
  if grep -q 'ALL 20 CONNECTED' server.out && grep -q 'ALL 20 CONNECTED' client.out; then
    echo "$3 calls: dtestcm: passed"
  else
    echo "$3 calls: dtestcm: failed"; show client.out; show server.out
  fi
}
dapltest_serve() { # SERVER NAMESPACE
  limit=400 $1 dapltest -T S -D lab -n 45278 >server.out 2>&1 &
  server=$!
  listening $2 45278
}
dapltest_call() { # CLIENT ADDRESS OPTIONS OPERATIONS
  $1 dapltest $3 -s $2 -D lab -n 45278 $4 >client.out 2>&1
  # Its exit status says nothing.
  if grep -q -E 'Stats|raw:' client.out && ! grep -q -i -E 'error|failed|unexpected' client.out; then
    echo "$1 calls: dapltest $3 $4: passed"
  else
    echo "$1 calls: dapltest $3 $4: failed"; show client.out
  fi
}
dapltest_quit() { # CLIENT ADDRESS
  $1 dapltest -T Q -s $2 -D lab -n 45278 >client.out 2>&1
  wait $server
  echo "$1 calls: dapltest -T Q: $?"
  grep -i -E 'error|failed|unexpected' server.out || true
}
""" % {"own": _OWN, "engine": _ENGINE}

_ROLES = (("own", "debian", "a", "10.8.0.1"), ("debian", "own", "b", "10.8.0.2"))


class Ofed(unittest.TestCase):
    def _run(self, commands, expected):
        status, output = lab.run("siw", _SETUP + "\n".join(commands) + "\ntrue", net="namespaces", seconds=500)
        self.assertEqual(status, 0, output)
        lines = output.splitlines()
        self.assertEqual([line for line in expected if line not in lines], [], output)
        self.assertNotRegex(output, "BUG|Oops")

    def test_dtest(self):
        commands, expected = [], []
        for client, server, namespace, address in _ROLES:
            for options in _DTEST:
                commands.append("dtest_pair %s %s %s %s '%s'" % (server, namespace, client, address, options))
                expected.append("%s calls: dtest %s: passed" % (client, options))
            commands.append("dtestcm_pair %s %s %s %s" % (server, namespace, client, address))
            expected.append("%s calls: dtestcm: passed" % client)
        self._run(commands, expected)

    def test_dapltest(self):
        commands, expected = [], []
        for client, server, namespace, address in _ROLES:
            commands.append("dapltest_serve %s %s" % (server, namespace))
            for options, operations in _DAPLTEST:
                commands.append("dapltest_call %s %s '%s' '%s'" % (client, address, options, operations))
                expected.append("%s calls: dapltest %s %s: passed" % (client, options, operations))
            commands.append("dapltest_quit %s %s" % (client, address))
            expected.append("%s calls: dapltest -T Q: 0" % client)
        self._run(commands, expected)


if __name__ == "__main__":
    unittest.main()
