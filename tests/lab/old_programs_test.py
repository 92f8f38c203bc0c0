#!/usr/bin/env python3
"""The programs of vipl/examples, unchanged, over the lab's adapter. Each depends on one habit of old programs; one has its own
sem_wait and sem_post, which rdma-core's calls must not reach. /etc/vip_nics gives the adapter the names that the programs use."""

import os
import subprocess
import unittest

from tests.lab import lab

_FOLDER = os.path.realpath("vipl/examples")
_MODULE = os.path.dirname(os.path.realpath("verbs/rdma/libviaduct-rdma.so.1"))

_SCRIPT = """
set -u
cd /tmp
for name in /dev/via_lo nic0 VINIC; do echo "$name 10.9.0.1 ${LAB_DRIVER}0"; done >nics
export VIADUCT_VIP_NICS=/tmp/nics VIADUCT_GRACE_MS=20000 LD_LIBRARY_PATH=%(module)s
begin() { # its output goes to the file of its number
  count=$((count + 1))
  timeout 120 %(folder)s/"$@" >out.$count 2>err.$count &
  begun[$count]=$!
}
finish() {
  for i in $(seq $count); do
    wait ${begun[$i]}
    echo "$1: $?: $(cat out.$i)"
    sed "s/^/    /" err.$i | tail -n 5
  done
  count=0
}
job() { # PROGRAM SIZE JOB
  for rank in $(seq 0 $(($2 - 1))); do begin $1 $3 $rank $(yes localhost | head -n $2); done
  finish $1
}
count=0
begin semaphores 4711; finish semaphores
begin backtoback wait 4712 40; begin backtoback ask 4712 40 localhost; finish backtoback
begin many serve 4713 32; begin many ask 4713 32 localhost; finish many
job ring 3 78
job flood 2 79
job alltoall 4 80
"""

_SAID = [
    "semaphores: 0: 500 messages each way",
    "backtoback: 0: 40 connections",
    "backtoback: 0: 40 connections",
    "many: 0: 32 connections",
    "many: 0: 32 connections",
]
_SAID += ["ring: 0: rank %d of 3: 200 rounds" % rank for rank in range(3)]
_SAID += ["flood: 0: rank %d of 2: 2000 messages" % rank for rank in range(2)]
_SAID += ["alltoall: 0: rank %d of 4: 50 rounds" % rank for rank in range(4)]


# The functions that librdmacm calls.
_SEMAPHORES = {"sem_init", "sem_wait", "sem_post", "sem_destroy"}


class OldPrograms(unittest.TestCase):
    # If the program did not export them, no library would ever call them, whatever it is loaded with.
    def test_the_semaphores_are_shown_to_libraries(self):
        shown = subprocess.run(["nm", "-D", "--defined-only", _FOLDER + "/semaphores"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, check=True).stdout.decode()
        self.assertEqual(_SEMAPHORES - {line.split()[-1] for line in shown.splitlines()}, set(), shown)

    def _run(self, driver):
        status, output = lab.run(driver, _SCRIPT % {"module": _MODULE, "folder": _FOLDER}, seconds=800)
        self.assertEqual(status, 0, output)
        said = [line for line in output.splitlines() if not line.startswith("    ")]
        self.assertEqual(said, _SAID, output)

    def test_siw(self):
        self._run("siw")

    def test_rxe(self):
        self._run("rxe")


if __name__ == "__main__":
    lab.main()
