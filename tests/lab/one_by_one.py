"""Tests of GoogleTest programs in the lab, each in a process of its own: one that hangs costs its own time, and nothing of it is
left for the next."""

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

KERNEL = "the kernel"  # an answer of its own: what it complained of


def script(library, tries):
    """Runs (program, test, slowness, seconds)s of the conformance harness over the guest's RDMA device.

    `library` is the folder of libviaduct-rdma.so.1. The default route makes 10.9.0.1 the address of soft0 and nic0. A body
    has its own time, 30 s as a rule, times the slowness; the process ends after `seconds`.
    """
    lines = ["try %d %d %s %s" % (slowness, seconds, program, test) for program, test, slowness, seconds in tries]
    return _SCRIPT % {"library": library, "tries": "\n".join(lines)}


def answers(output):
    """From test to "OK", or to what it said."""
    parts = ("\n" + output).split("\n==== ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}


def passed(answer):
    return answer == "OK" or "[  SKIPPED ]" in answer
