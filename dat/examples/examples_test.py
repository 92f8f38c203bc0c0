#!/usr/bin/env python3
"""The examples do what they say, each with a server and clients of its own."""

import os
import subprocess
import unittest

FOLDER = "dat/examples/"


def service(n):
    """A number that another run on this host does not use at the same time."""
    return str(16000 + 4 * (os.getpid() % 4000) + n)


def client(name, number, *words):
    return subprocess.run([FOLDER + name, number, "127.0.0.1", *words], check=True, capture_output=True, text=True,
                          timeout=60).stdout


class Server:

    def __init__(self, name, number):
        self.process = subprocess.Popen([FOLDER + name, number], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "waiting\n"

    def end(self):
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, out


class Examples(unittest.TestCase):

    def test_hello(self):
        server = Server("hello", service(0))
        client("hello", service(0), "good morning")
        self.assertEqual(server.end(), (0, "heard: good morning\n"))

    def test_board(self):
        server = Server("board", service(1))
        self.assertEqual(client("board", service(1), "gone fishing"), "was: nothing\n")
        self.assertEqual(client("board", service(1), "end"), "was: gone fishing\n")
        self.assertEqual(server.end(), (0, "board: gone fishing\nboard: end\n"))

    def test_echo(self):
        server = Server("echo", service(2))
        many = [subprocess.Popen([FOLDER + "echo", service(2), "127.0.0.1", "one %d" % i, "two"], stdout=subprocess.PIPE,
                                 text=True) for i in range(4)]
        for i, one in enumerate(many):
            self.assertEqual(one.communicate(timeout=60)[0], "echo: one %d\necho: two\n" % i)
            self.assertEqual(one.returncode, 0)
        self.assertEqual(client("echo", service(2), "x" * 255), "echo: " + "x" * 255 + "\n")
        self.assertEqual(server.end(), (0, ""))


if __name__ == "__main__":
    unittest.main()
