#!/usr/bin/env python3
"""The examples do what they say, each with a server and clients of its own."""

import random
import subprocess
import tempfile
import unittest

from tools.build_rules import python_main

FOLDER = "dat/examples/"
_OWN_MOUNTS = ["unshare", "--map-root-user", "--mount"]
_MAY_MOUNT = subprocess.run([*_OWN_MOUNTS, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def client(name, number, *words):
    return subprocess.run([FOLDER + name, number, "127.0.0.1", *words], check=True, capture_output=True, text=True,
                          timeout=60).stdout


class Server:

    def __init__(self, name, number, stdin=subprocess.PIPE):
        self.process = subprocess.Popen([FOLDER + name, number], stdin=stdin, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "waiting\n"

    def end(self):
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, out


class Examples(unittest.TestCase):

    def setUp(self):
        # A name and no port: nobody else has it.
        self.service = str(random.randrange(1 << 16, 1 << 48))

    def test_hello(self):
        server = Server("hello", self.service)
        client("hello", self.service, "good morning")
        self.assertEqual(server.end(), (0, "heard: good morning\n"))

    def test_hello_hears_nothing_of_who_says_nothing(self):
        server = Server("hello", self.service)
        visit = subprocess.run([FOLDER + "board", self.service, "127.0.0.1", "x"], check=False, capture_output=True,
                               timeout=60)
        self.assertEqual((visit.returncode, visit.stderr), (1, b"that is no board\n"))
        self.assertEqual(server.end(), (1, ""))

    @unittest.skipUnless(_MAY_MOUNT, "no mount namespace of its own")
    def test_a_host_whose_first_address_is_none_of_the_adapters(self):
        server = Server("hello", self.service)
        with tempfile.NamedTemporaryFile("w") as hosts:
            print("::1 twofold\n127.0.0.1 twofold", file=hosts, flush=True)
            subprocess.run([*_OWN_MOUNTS, "sh", "-c", 'mount --bind "$1" /etc/hosts && exec "$2" "$3" twofold hello', "",
                            hosts.name, FOLDER + "hello", self.service], check=True, timeout=60)
        self.assertEqual(server.end(), (0, "heard: hello\n"))

    def test_board(self):
        server = Server("board", self.service)
        self.assertEqual(client("board", self.service, "gone fishing"), "was: nothing\n")
        self.assertEqual(client("board", self.service, "end"), "was: gone fishing\n")
        self.assertEqual(server.end(), (0, "board: gone fishing\nboard: end\n"))

    def test_board_refuses_who_comes_between_and_outlives_whom_it_serves(self):
        server = Server("board", self.service)
        self.addCleanup(server.process.kill)

        def visit(text):
            done = subprocess.run([FOLDER + "board", self.service, "127.0.0.1", text], capture_output=True, text=True,
                                  timeout=60, check=False)
            if done.returncode != 0:
                self.assertIn("the server refuses", done.stderr)
            return done.returncode == 0

        def start_guest():
            """It waits for an answer, and so it stays; unless it is refused itself."""
            return subprocess.Popen([FOLDER + "echo", self.service, "127.0.0.1", "hello?"], stdout=subprocess.DEVNULL)

        guest = start_guest()
        try:
            while visit("alone"):
                if guest.poll() is not None:
                    guest = start_guest()
        finally:
            guest.kill()
            guest.wait()
        while not visit("end"):
            pass
        code, out = server.end()
        self.assertEqual((code, out.splitlines()[-1]), (0, "board: end"))

    def test_echo(self):
        server = Server("echo", self.service)
        many = [subprocess.Popen([FOLDER + "echo", self.service, "127.0.0.1", "one %d" % i, "two"], stdout=subprocess.PIPE,
                                 text=True) for i in range(4)]
        for i, one in enumerate(many):
            self.assertEqual(one.communicate(timeout=60)[0], "echo: one %d\necho: two\n" % i)
            self.assertEqual(one.returncode, 0)
        self.assertEqual(client("echo", self.service, "x" * 255), "echo: " + "x" * 255 + "\n")
        self.assertEqual(server.end(), (0, ""))

    def test_echo_without_a_standard_input(self):
        server = Server("echo", self.service, stdin=subprocess.DEVNULL)
        try:
            self.assertEqual(client("echo", self.service, "one"), "echo: one\n")
        finally:
            server.process.kill()
            server.end()

    def test_why_there_is_no_connection(self):
        for name in ("hello", "board", "echo"):
            with self.subTest(name):
                done = subprocess.run([FOLDER + name, self.service, "127.0.0.1", "x"], capture_output=True, text=True,
                                      timeout=60, check=False)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn("nobody waits there", done.stderr)

    def test_usage(self):
        for name in ("hello", "board", "echo"):
            for word, code in (("-h", 0), ("--help", 0), ("", 2), ("x", 2), ("80x", 2), ("-1", 2)):
                with self.subTest(name + " " + word):
                    done = subprocess.run([FOLDER + name, word], capture_output=True, text=True, timeout=60, check=False)
                    said, unsaid = (done.stderr, done.stdout) if code else (done.stdout, done.stderr)
                    self.assertEqual((done.returncode, unsaid), (code, ""))
                    self.assertTrue(said.startswith("usage: %s SERVICE " % name), said)


if __name__ == "__main__":
    python_main.main()
