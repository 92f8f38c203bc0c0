#!/usr/bin/env python3
"""rping's conversation over RoCE between two hosts, each with an rxe of its own: rdma-core's rping and our programs, either face,
in both roles, and our faces with each other."""

import os
import unittest

from tests.lab import lab, rping

_MEET = os.path.realpath("tests/lab/meet.py")
_MODULE = os.path.dirname(os.path.realpath("verbs/rdma/libviaduct-rdma.so.1"))
_PAIRS = (("rping", "dat"), ("dat", "rping"), ("rping", "via"), ("via", "rping"), ("dat", "via"), ("via", "dat"))
_SIZES = (64, 65535)

# Runs on both hosts: the server of a pair is on b.
_SCRIPT = """
set -u
cd /tmp
echo 'rxe0 u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "rxe0" ""' >dat.conf
export DAT_OVERRIDE=/tmp/dat.conf LD_LIBRARY_PATH=%(module)s VIADUCT_WIRE=rdma
port=7000
meet() {
  port=$((port + 1))
  if [ $LAB_HOST = b ]; then python3 %(meet)s listen 10.9.0.2 $port; else python3 %(meet)s dial 10.9.0.2 $port; fi
}
listening() { rdma resource show cm_id | grep -q LISTEN; }
end() { # PROGRAM serve|call SIZE
  case $1,$2 in
    rping,serve) rping -s -a 10.9.0.2 -C %(count)d -S $3 -V ;;
    rping,call) rping -c -a 10.9.0.2 -C %(count)d -S $3 -V ;;
    *,serve) $(program $1) rxe0 serve %(count)d $3 ;;
    *,call) $(program $1) rxe0 10.9.0.2 %(count)d $3 ;;
  esac
}
program() { case $1 in dat) echo %(dat)s ;; via) echo %(via)s ;; esac; }
pair() { # SERVER CLIENT SIZE
  if [ $LAB_HOST = b ]; then
    end $1 serve $3 >out 2>&1 & mine=$!
    for _ in $(seq 300); do listening && break; sleep 0.1; done
    meet
  else
    meet
    end $2 call $3 >out 2>&1 & mine=$!
  fi
  wait $mine
  echo "$1 $2 $3: $LAB_HOST $? $(tail -n 1 out)"
  meet
}
%(pairs)s
"""


class TwoHosts(unittest.TestCase):
    def test_rxe(self):
        pairs, expected = [], []
        for server, client in _PAIRS:
            for size in _SIZES:
                pairs.append("pair %s %s %d" % (server, client, size))
                for host, program in (("a", client), ("b", server)):
                    said = "" if program == "rping" else "%d rounds of %d bytes" % (rping.ROUNDS, size)
                    expected.append("%s %s %d: %s 0 %s" % (server, client, size, host, said))
        status, output = lab.run("rxe", _SCRIPT % {"module": _MODULE, "meet": _MEET, "dat": rping.DAT, "via": rping.VIPL,
                                                   "count": rping.ROUNDS, "pairs": "\n".join(pairs)}, net="two", seconds=280)
        self.assertEqual(status, 0, output)
        lines = output.splitlines()
        missing = [line for line in expected if not any(found.startswith(line) for found in lines)]
        self.assertEqual(missing, [], output)


if __name__ == "__main__":
    lab.main()
