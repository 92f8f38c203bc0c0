"""Tests of GoogleTest programs in the lab, each in a process of its own: a test that hangs costs only its own time, and leaves
nothing for the next."""

import collections
import os
import re

from tests.lab import lab

_LIBRARY = os.path.dirname(os.path.realpath("verbs/rdma/libviaduct-rdma.so.1"))

# A test, the command that takes it as its filter, the seconds after which the process is ended, and the attempts over siw,
# where a message may get stuck in the kernel (verbs/rdma/README.md, "What verbs cannot do").
Try = collections.namedtuple("Try", "test command seconds attempts")

# end: "passed", "skipped" or "failed"; text: the reason of a skip, or what a failed attempt said.
Answer = collections.namedtuple("Answer", "end text")

_SCRIPT = """
ip route add default dev dummy0
export LD_LIBRARY_PATH=%(library)s
cd /tmp
said() { grep -v 'harness.cc' $1 | head -n 40; }
try() { # ATTEMPTS SECONDS TEST COMMAND...
  attempts=$1 limit=$2 name=$3
  shift 3
  for attempt in $(seq $attempts); do
    timeout $limit "$@" --gtest_filter=$name >out 2>&1 &
    group=$! # timeout leads it
    wait $group
    status=$?
    kill -KILL -- -$group 2>/dev/null
    [ $status != 0 ] && [ $attempt != $attempts ] || break
    mv out failed
  done
  if [ $status = 0 ] && grep -q '^.       OK ' out; then
    echo "==== $name passed"
    [ $attempt = 1 ] || said failed
  elif [ $status = 0 ] && grep -q '^.  SKIPPED . 1 test' out; then
    echo "==== $name skipped"
    grep -A 1 ': Skipped$' out | grep -v -e ': Skipped$' -e '^--$' -e '^see above$'
  else
    echo "==== $name failed"
    echo "exit status $status"
    said out
  fi
}
%(tries)s
true
"""


def concerns(cell, driver):
    """Whether a table's cell names the driver: "siw, rxe 6.12" is siw on every kernel, and rxe on that one."""
    return any(entry in (driver, "%s %s" % (driver, lab.KERNEL)) for entry in cell.split(", "))


def conformance(program, test, slowness, seconds, attempts):
    """A Try of a program of the conformance harness. The slowness multiplies a body's own time, which is usually 30 s."""
    return Try(test, "%s --wire=rdma --slowness=%d" % (program, slowness), seconds, attempts)


def run(case, driver, tries, seconds=200):
    """Runs Trys over the guest's RDMA device; returns the Answer of each test. A test passes by its output and its exit status.
    Prints the skips, and what a failed first attempt said. The guest ends after `seconds`.

    The default route makes 10.9.0.1 the address of soft0 and nic0.
    """
    lines = ["try %d %d %s %s" % (each.attempts if driver == "siw" else 1, each.seconds, each.test, each.command)
             for each in tries]
    status, output = lab.run(driver, _SCRIPT % {"library": _LIBRARY, "tries": "\n".join(lines)}, seconds=seconds)
    case.assertEqual(status, 0, output)
    answers = {}
    for part in ("\n" + output).split("\n==== ")[1:]:
        head, _, text = part.partition("\n")
        match = re.fullmatch(r"(\S+) (passed|skipped|failed)", head)
        case.assertIsNotNone(match, output)
        answers[match.group(1)] = Answer(match.group(2), text.strip())
    for test, answer in answers.items():
        if answer.end == "skipped":
            print("skipped over %s: %s: %s" % (driver, test, answer.text), flush=True)
        elif answer.end == "passed" and answer.text:
            print("passed over %s when it was tried again: %s: %s" % (driver, test, answer.text), flush=True)
    return answers


def complaints(tries, answers, exceptions, skips):
    """What is wrong with the answers. All tests must pass, except `skips`, which must skip, and `exceptions` (test to reason),
    which must fail unless the reason begins with "at times"."""
    wrong = []
    for test in (each.test for each in tries):
        end, text = answers.get(test, ("did not run", ""))
        if test in exceptions:
            if end != "failed" and not (end == "passed" and exceptions[test].startswith("at times: ")):
                wrong.append("%s is an exception, and yet it %s" % (test, end))
        elif end != ("skipped" if test in skips else "passed"):
            wrong.append("%s %s: %s" % (test, end, text))
    return wrong
