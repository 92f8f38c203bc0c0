"""Tests of GoogleTest programs in the lab, each in a process of its own: one that hangs costs its own time, and nothing of it is
left for the next."""

import os

from tests.lab import lab

_LIBRARY = os.path.dirname(os.path.realpath("verbs/rdma/libviaduct-rdma.so.1"))
_KERNEL = "the kernel"  # a part of its own: what it complained of

_SCRIPT = """
ip route add default dev dummy0
export LD_LIBRARY_PATH=%(library)s
cd /tmp
try() { # SLOWNESS SECONDS PROGRAM TEST
  timeout $2 $3 --wire=rdma --slowness=$1 --gtest_filter=$4 >out 2>&1 &
  group=$! # timeout leads it
  wait $group
  kill -KILL -- -$group 2>/dev/null
  echo "==== $4"
  if grep -q '^.       OK ' out; then echo OK; else grep -v 'harness.cc' out | head -n 40; fi
}
%(tries)s
echo "==== the kernel"
dmesg | grep -E 'BUG: (unable|kernel)|Oops' || true
"""


def run(case, driver, tries, seconds=200):
    """From test to "OK", or to what it said, for (program, test, slowness, seconds)s of the conformance harness over the
    guest's RDMA device. `case` fails if the kernel complains; the guest ends after `seconds`.

    The default route makes 10.9.0.1 the address of soft0 and nic0. A body has its own time, 30 s as a rule, times the
    slowness; its process ends after its seconds.
    """
    lines = ["try %d %d %s %s" % (slowness, limit, program, test) for program, test, slowness, limit in tries]
    status, output = lab.run(driver, _SCRIPT % {"library": _LIBRARY, "tries": "\n".join(lines)}, seconds=seconds)
    case.assertEqual(status, 0, output)
    parts = ("\n" + output).split("\n==== ")[1:]
    answers = {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}
    complaints = answers.pop(_KERNEL)
    case.assertEqual(complaints, "", output)
    return answers


def passed(answer):
    return answer == "OK" or "[  SKIPPED ]" in answer
