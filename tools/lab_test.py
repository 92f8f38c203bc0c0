#!/usr/bin/env python3
"""What tools/lab says and leaves where it cannot run, and when its guest, which is a stand-in for QEMU, goes wrong."""

import fcntl
import os
import select
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from tests.lab import lab
from tools.build_rules import python_main

_NOT_RUN = 125

# Runs the shell code in QEMU_DOES, with the guest's folder in $folder.
_QEMU = """#!/bin/sh
for word; do
  case $word in file:*/console) folder=${word#file:} folder=${folder%/console} ;; esac
done
eval "$QEMU_DOES"
"""
# Begins to copy only after the process with the number that comes first has ended and been waited for.
_LATE_CAT = """#!/bin/sh
read -r pid <%s/pid
while [ -e /proc/$pid ]; do :; done
exec /bin/cat "$@"
"""
_APT_CACHE = """#!/bin/sh
case $LC_ALL in C) word=Depends ;; *) word='Hängt ab von' ;; esac
case $2 in
  linux-image-amd64) version=6.1.0-9-amd64 ;;
  linux-image-6.12-amd64) version=6.12.99+deb12-amd64 ;;
  *) exit 100 ;;
esac
printf '%s\\n  %s: linux-image-%s\\n' "$2" "$word" "$version"
"""
_PROGRAMS = ("busybox", "depmod", "modprobe", "xz", "zstd", "make", "rdma")


class Lab(unittest.TestCase):

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("the lab is root's")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._here = folder.name
        self._write("bin/qemu-system-x86_64", _QEMU)
        for name in _PROGRAMS:
            self._write("bin/" + name, "#!/bin/sh\nexit 1\n")
        # Everything that tools/lab makes on first use.
        for name in ("version", "siw.ko", "vmlinux", "initrd"):
            self._write("cache/viaduct/lab/" + name, "6.1\n")
        os.utime(self._here + "/cache/viaduct/lab/initrd", (2 ** 32, 2 ** 32))
        os.mkdir(self._here + "/temporary")

    def _write(self, path, text):
        path = os.path.join(self._here, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, 0o755)

    def _environment(self, qemu):
        return {"PATH": self._here + "/bin:" + os.environ["PATH"], "XDG_CACHE_HOME": self._here + "/cache",
                "TMPDIR": self._here + "/temporary", "QEMU_DOES": qemu}

    def _start(self, *arguments, qemu="exit 1", **environment):
        return subprocess.Popen([sys.executable, "tools/lab", "--memory=1", *arguments],
                                env={**self._environment(qemu), **environment},
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _run(self, *arguments, **options):
        with self._start(*arguments, **options) as process:
            output, said = process.communicate()
        self.assertNotIn("Traceback", said)
        self.assertEqual(os.listdir(self._here + "/temporary"), [])
        return process.returncode, output, said

    def test_missing_programs_are_named(self):
        code, output, said = self._run("siw", "true", PATH="")
        self.assertEqual((code, output), (_NOT_RUN, ""))
        self.assertRegex(said, r"^tools/lab: not here: missing: qemu-system-x86_64, busybox, .*; tools/setup build lab installs")

    def test_missing_memory_is_told(self):
        for net, wanted in (("one", 99999999), ("two", 199999998)):
            code, output, said = self._run("--memory=99999999", "--net=" + net, "rxe", "true")
            self.assertEqual((code, output), (_NOT_RUN, ""))
            self.assertRegex(said, r"^tools/lab: not here: \d+ MiB of memory are free, the guest wants %d; see" % wanted)

    def test_folder_that_cannot_be_written_is_told(self):
        code, _, said = self._run("siw", "true", XDG_CACHE_HOME="/dev/null")
        self.assertEqual(code, _NOT_RUN)
        self.assertIn("/dev/null", said)

    def test_kernel_is_found_in_every_language(self):
        os.unlink(self._here + "/cache/viaduct/lab/version")
        self._write("bin/apt-cache", _APT_CACHE)
        self._write("bin/apt-get", "#!/bin/sh\nexit 1\n")
        code, _, said = self._run("siw", "true", LC_ALL="de_DE.UTF-8")
        self.assertEqual(code, _NOT_RUN)
        self.assertIn("not here: the package linux-image-6.1.0-9-amd64 cannot be fetched", said)

    def test_another_kernel_is_one_of_debians(self):
        self._write("bin/apt-cache", _APT_CACHE)
        self._write("bin/apt-get", "#!/bin/sh\nexit 1\n")
        for arguments, environment in ((["--kernel=6.12"], {}), ([], {"LAB_KERNEL": "6.12"})):
            code, _, said = self._run(*arguments, "siw", "true", **environment)
            self.assertEqual(code, _NOT_RUN)
            self.assertIn("not here: the package linux-image-6.12.99+deb12-amd64 cannot be fetched", said)
        code, _, said = self._run("--kernel=9.9", "siw", "true")
        self.assertEqual(code, _NOT_RUN)
        self.assertIn("not here: no linux-image-9.9-amd64 among the packages", said)

    def test_wrong_command_line(self):
        for arguments in (("siw",), ("--seconds=0", "siw", "true"), ("--seconds=-1", "siw", "true"), ("--cpus=0", "siw", "true"),
                          ("--memory=-1", "siw", "true"), ("--kernel=../6.12", "siw", "true")):
            with self.subTest(arguments):
                code, _, said = self._run(*arguments)
                self.assertEqual(code, 2)
                self.assertIn("usage: tools/lab", said)

    def test_output_and_status_are_the_guests(self):
        self.assertEqual(self._run("siw", "true", qemu="echo word >$folder/output; echo 7 >$folder/status"), (7, "word\n", ""))

    def test_guest_is_told_what_to_do(self):
        code, output, _ = self._run("--cpus=3", "siw", "true", "word", qemu="""
(echo "$*"; cat $folder/command $folder/settings) >$folder/output; echo 0 >$folder/status""")
        self.assertEqual(code, 0)
        self.assertIn("-smp 3 -m 1 ", output)
        self.assertIn(" path=/,security_model=none,readonly=on", output.replace("local,id=host,", " "))
        self.assertIn("\ntrue word\n", output)
        self.assertIn("\nfolder=%s\n" % os.getcwd(), output)

    def test_status_of_two_guests_is_that_of_the_first_that_failed(self):
        self.assertEqual(self._run("--net=two", "none", "true", qemu="""
case $folder in *-a) echo 3 ;; *-b) echo 0 ;; esac >$folder/status""")[0], 3)

    def test_fault_in_the_guests_kernel_is_a_failure(self):
        qemu = """
printf 'whole\\n\\n==== faults in the kernel'\\''s log: 1\\n' >$folder/output; echo 0 >$folder/status"""
        with unittest.mock.patch.dict(os.environ, self._environment(qemu)):
            self.assertRaisesRegex(AssertionError, "a fault in the kernel's log", lab.run, "siw", "true")

    def test_console_of_a_guest_that_did_not_finish_is_shown_and_kept(self):
        code, output, said = self._run("--console=%s/kept" % self._here, "siw", "true",
                                       qemu="echo panic >$folder/console; exit 3")
        self.assertEqual((code, output), (_NOT_RUN, ""))
        self.assertEqual(said, "panic\n\ntools/lab: the guest did not finish; see --seconds\n")
        with open(self._here + "/kept", encoding="utf-8") as kept:
            self.assertEqual(kept.read(), "panic\n")

    def test_guest_without_a_console(self):
        code, _, said = self._run("siw", "true", qemu="exit 1")
        self.assertEqual((code, said), (_NOT_RUN, "\ntools/lab: the guest did not finish; see --seconds\n"))

    def test_reader_that_begins_when_the_guest_has_ended(self):
        os.mkfifo(self._here + "/pid")
        self._write("bin/cat", _LATE_CAT % self._here)
        self.assertEqual(self._run("siw", "true", qemu="echo $PPID >%s/pid; exit 1" % self._here)[0], _NOT_RUN)

    def test_crash_of_the_emulator_is_told(self):
        code, _, said = self._run("siw", "true", qemu="echo begun >$folder/output; echo last >$folder/console; kill -KILL $$")
        self.assertEqual((code, said), (_NOT_RUN, "last\n\ntools/lab: crashed: QEMU: Killed\n"))

    def test_what_the_emulator_crashed_over_runs_anew(self):
        qemu = """
if mkdir %s/crashed 2>/dev/null; then echo half >$folder/output; kill -KILL $$; fi
printf 'whole\\n\\n==== faults in the kernel'\\''s log: 0\\n' >$folder/output; echo 0 >$folder/status
""" % self._here
        with unittest.mock.patch.dict(os.environ, self._environment(qemu)):
            self.assertEqual(lab.run("siw", "true"), (0, "whole\n"))

    def test_what_a_killed_lab_leaves_goes_when_another_one_begins(self):
        os.mkfifo(self._here + "/pid")
        with self._start("none", "true", qemu="exec >$folder/output; echo $$ >%s/pid; exec sleep 600" % self._here) as process:
            with open(self._here + "/pid", encoding="utf-8") as line:
                guest = int(line.read())
            process.kill()
        folder, = os.listdir(self._here + "/temporary")
        try:
            with self._start("none", "true") as process:
                process.communicate()
            self.assertEqual(os.listdir(self._here + "/temporary"), [folder], "its guest goes on")
        finally:
            os.killpg(os.getpgid(guest), signal.SIGKILL)
        descriptor = os.open(os.path.join(self._here, "temporary", folder), os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # when the guest has ended
        os.close(descriptor)
        self._run("none", "true")

    def test_guest_ends_with_the_lab(self):
        os.mkfifo(self._here + "/pid")
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number), self._start("siw", "true", qemu="echo $$ >%s/pid; exec sleep 600" % self._here) as process:
                with open(self._here + "/pid", encoding="utf-8") as line:
                    guest = int(line.read())
                ended = os.pidfd_open(guest)
                self.addCleanup(os.close, ended)
                process.send_signal(number)
                self.assertEqual(process.wait(), _NOT_RUN)
                self.assertTrue(select.select([ended], [], [], 60)[0])
                self.assertEqual(os.listdir(self._here + "/temporary"), [])


if __name__ == "__main__":
    python_main.main()
