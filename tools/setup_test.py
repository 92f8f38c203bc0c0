#!/usr/bin/env python3
"""Runs tools/setup with stand-ins for dpkg-query, apt-get, id and sudo, and checks what it asks of them."""

import os
import shutil
import signal
import subprocess
import tempfile
import unittest

_LIST = """# group, package, what for
build one   the first
build two   the second
test  three the third
"""
_DPKG_QUERY = """#!/bin/sh
for word; do
  case " $INSTALLED " in *" $word "*) echo "installed $word" ;; esac
done
"""
_APT_GET = """#!/bin/sh
echo "$*" >>"$LOG"
case $* in
  *update) exit ${UPDATE_STATUS-0} ;;
  *--print-uris*)
    echo "Need to get 1 MB of archives."
    echo "After this operation, 2 MB of additional disk space will be used."
    echo "'http://x/y.deb' y.deb 1 MD5Sum:0" ;;
  *) exit ${INSTALL_STATUS-0} ;;
esac
"""
_SUDO = """#!/bin/sh
echo sudo >>"$LOG"
exec "$@"
"""


class Setup(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._here = folder.name
        os.makedirs(self._here + "/tools")
        os.mkdir(self._here + "/bin")
        shutil.copy("tools/setup", self._here + "/tools")
        self._write("tools/packages", _LIST)
        self._program("dpkg-query", _DPKG_QUERY)
        self._program("apt-get", _APT_GET)
        self._program("id", "#!/bin/sh\necho ${WHO-0}\n")
        for name in ("sh", "awk", "dirname", "grep", "env", "cat"):
            os.symlink(shutil.which(name), self._here + "/bin/" + name)

    def _write(self, path, text):
        with open(os.path.join(self._here, path), "w", encoding="utf-8") as out:
            out.write(text)

    def _program(self, name, text):
        self._write("bin/" + name, text)
        os.chmod(self._here + "/bin/" + name, 0o755)

    def _setup(self, *groups, **environment):
        environment.update(PATH=self._here + "/bin", LOG=self._here + "/log")
        result = subprocess.run([self._here + "/tools/setup"] + list(groups), env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return result.returncode, result.stdout

    def _calls(self):
        if not os.path.exists(self._here + "/log"):
            return []
        with open(self._here + "/log", encoding="utf-8") as log:
            return log.read().splitlines()

    def test_nothing_missing_says_and_does_nothing(self):
        self.assertEqual(self._setup("build", "test", INSTALLED="one two three"), (0, ""))
        self.assertEqual(self._calls(), [])

    def test_what_is_missing_is_installed_after_its_size_is_said(self):
        code, output = self._setup("build", INSTALLED="two")
        self.assertEqual(code, 0, output)
        self.assertEqual(output.splitlines(), [
            "Missing Debian packages: one", "Need to get 1 MB of archives.",
            "After this operation, 2 MB of additional disk space will be used.", "Installed: one"])
        self.assertEqual(self._calls(), [
            "-q=1 update", "-q=1 install --print-uris --no-install-recommends one", "-q=1 install -y --no-install-recommends one"])

    def test_default_is_what_a_user_needs(self):
        self._setup(INSTALLED="")
        self.assertIn("-q=1 install -y --no-install-recommends one two", self._calls())

    def test_a_longer_name_does_not_count(self):
        self.assertIn("Missing Debian packages: one\n", self._setup("build", INSTALLED="one-dev two")[1])

    def test_old_lists_will_do(self):
        code, output = self._setup("test", INSTALLED="", UPDATE_STATUS="100")
        self.assertEqual(code, 0, output)
        self.assertIn("trying with the lists at hand", output)

    def test_failed_installation_is_a_failure(self):
        code, output = self._setup("test", INSTALLED="", INSTALL_STATUS="100")
        self.assertNotEqual(code, 0, output)
        self.assertNotIn("Installed", output)

    def test_a_signal_ends_it_after_apt_get(self):
        self._program("apt-get", '#!/bin/sh\ncase $* in *-y*) echo $$ >"$LOG.pid"; exec cat "$LOG.gate" ;; esac\necho Need to get\n')
        for name in ("pid", "gate"):
            os.mkfifo("%s/log.%s" % (self._here, name))
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)):
            with self.subTest(number):
                environment = {"PATH": self._here + "/bin", "LOG": self._here + "/log", "INSTALLED": ""}
                with subprocess.Popen([self._here + "/tools/setup"], env=environment, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL) as process:
                    with open(self._here + "/log.pid", encoding="utf-8") as line:
                        pid = line.read().strip()
                    process.send_signal(number)
                    with open(self._here + "/log.gate", "w", encoding="utf-8"):
                        pass
                self.assertEqual(process.returncode, code)
                self.assertFalse(os.path.exists("/proc/" + pid))

    def test_a_user_goes_through_sudo(self):
        self._program("sudo", _SUDO)
        self.assertEqual(self._setup("test", INSTALLED="", WHO="1000")[0], 0)
        self.assertEqual(self._calls().count("sudo"), 3)

    def test_a_users_proxies_go_along(self):
        self._program("sudo", '#!/bin/sh\nexec env -i PATH="$PATH" LOG="$LOG" "$@"\n')
        self._program("apt-get", '#!/bin/sh\necho "$http_proxy|$https_proxy|$no_proxy" >>"$LOG"\n')
        self._setup("test", INSTALLED="", WHO="1000", http_proxy="http://one two", no_proxy="three")
        self.assertEqual(set(self._calls()), {"http://one two||three"})

    def test_without_sudo_the_command_is_said(self):
        code, output = self._setup("build", INSTALLED="", WHO="1000")
        self.assertEqual(code, 1, output)
        self.assertIn("as root run: apt-get update && apt-get install --no-install-recommends one two", output)
        self.assertEqual(self._calls(), [])

    def test_help_does_nothing(self):
        os.symlink(shutil.which("sed"), self._here + "/bin/sed")
        code, output = self._setup("--help", INSTALLED="")
        self.assertEqual((code, output.splitlines()[0]), (0, "Usage: tools/setup [GROUP...]"))
        self.assertEqual(self._calls(), [])

    def test_unknown_group_is_refused(self):
        for group in ("bild", "", "#"):
            with self.subTest(group):
                code, output = self._setup(group, INSTALLED="")
                self.assertEqual(code, 2, output)
                self.assertIn("no group '%s'" % group, output)
        self.assertEqual(self._calls(), [])


if __name__ == "__main__":
    unittest.main()
