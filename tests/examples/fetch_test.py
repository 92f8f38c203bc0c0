#!/usr/bin/env python3
"""fetch against the server named by SERVER: what works, and every way in which it can go wrong."""

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

PAYLOAD = 32768 - 16  # FP_PAYLOAD_SIZE
ENDLESS = 1 << 42  # a sparse file that nobody receives to its end
LIMIT = 64 << 20  # a limit on the length of files, above that of the library's own shared memory

OK, REFUSED, USAGE, NO_CONNECTION, LOST, OUTPUT = range(6)


class Fetch(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.root = os.path.join(self.folder, "root")
        self.out = os.path.join(self.folder, "out")
        os.mkdir(self.root)
        os.mkdir(self.out)
        self.service = random.randrange(1 << 16, 1 << 48)
        self.grace = 100

    # ---- Helpers ----

    def write(self, name, content):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(content)

    def write_endless(self, name="endless"):
        with open(os.path.join(self.root, name), "wb") as out:
            out.truncate(ENDLESS)

    def start(self, *words, **options):
        """A process that ends with the test."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VIADUCT_")}
        environment.update(VIADUCT_WIRE=os.environ["VIADUCT_WIRE"], VIADUCT_GRACE_MS=str(self.grace))
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                                   **options)

        def end():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.communicate()

        self.addCleanup(end)
        return process

    def serve(self, *options):
        server = self.start(os.environ["SERVER"], "-p", str(self.service), *options, self.root)
        line = server.stdout.readline()
        self.assertIn("files below", line, line or server.stderr.read())
        # filed says so before it waits for requests: on a busy machine fetch may come much earlier.
        self.grace = 20000
        return server

    def command(self, *files, host="localhost", options=()):
        return (os.environ["FETCH"], "-o", self.out, *options, "%s:%d" % (host, self.service), *files)

    def fetch(self, *files, **keywords):
        """Runs fetch to its end and returns (exit status, output, messages)."""
        process = self.start(*self.command(*files, **keywords))
        output, messages = process.communicate(timeout=120)
        return process.returncode, output, messages

    def begin(self, *files, options=()):
        """Starts fetch and returns it when data has come."""
        client = self.start(*self.command(*files, options=("-v", *options)))
        line = client.stderr.readline()
        self.assertIn("MB/s", line)
        return client

    def start_limited(self, name, limit):
        """Starts fetch with a limit on the length of files."""

        def set_limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        return self.start(*self.command(name), preexec_fn=set_limit, restore_signals=False)

    def finish(self, client):
        _, messages = client.communicate(timeout=120)
        return client.returncode, messages

    def assert_fetched(self, *names):
        for name in names:
            with open(os.path.join(self.root, name), "rb") as wanted, \
                    open(os.path.join(self.out, os.path.basename(name)), "rb") as got:
                self.assertEqual(wanted.read() == got.read(), True, name)

    def assert_nothing_written(self):
        self.assertEqual(os.listdir(self.out), [])

    # ---- What works ----

    def test_file(self):
        self.write("file", random.randbytes(5000000))
        server = self.serve("-1")
        status, output, messages = self.fetch("file")
        self.assertEqual((status, messages), (OK, ""))
        self.assertRegex(output, r"^fetch: 1 of 1 files, 5000000 bytes in [0-9.]+ s, [0-9.]+ MB/s\n$")
        self.assert_fetched("file")
        rest, _ = server.communicate(timeout=120)
        self.assertEqual(server.returncode, 0, rest)
        self.assertIn("1 files, 5000000 bytes\n", rest)

    def test_files_of_every_length_in_one_connection(self):
        lengths = [0, 1, 15, 16, PAYLOAD - 1, PAYLOAD, PAYLOAD + 1, 32 * PAYLOAD - 1, 32 * PAYLOAD, 32 * PAYLOAD + 1]
        names = ["file%d" % length for length in lengths] + ["below/there"]
        for name, length in zip(names, lengths + [77]):
            self.write(name, random.randbytes(length))
        server = self.serve("-1")
        status, output, messages = self.fetch(*names)
        self.assertEqual((status, messages), (OK, ""))
        self.assertIn("%d of %d files, %d bytes" % (len(names), len(names), sum(lengths) + 77), output)
        self.assert_fetched(*names)
        self.assertIn("%d files" % len(names), server.communicate(timeout=120)[0])
        self.assertEqual(sorted(os.listdir(self.out)), sorted(map(os.path.basename, names)))

    def test_hundreds_of_files(self):
        names = ["file%d" % number for number in range(300)]
        for name in names:
            self.write(name, name.encode())
        self.serve()
        self.assertEqual(self.fetch(*names)[0], OK)
        self.assert_fetched(*names)

    def test_replaces_a_file(self):
        self.write("file", b"new")
        with open(os.path.join(self.out, "file"), "wb") as out:
            out.write(b"old and longer")
        self.serve()
        self.assertEqual(self.fetch("file")[0], OK)
        self.assert_fetched("file")

    def test_one_client_after_another(self):
        self.write("file", b"text")
        self.serve()
        for _ in range(5):
            self.assertEqual(self.fetch("file")[0], OK)
            self.assert_fetched("file")

    def test_clients_side_by_side(self):
        self.write_endless()
        self.write("file", random.randbytes(1000000))
        self.serve()
        busy = self.begin("endless", options=("-o", "/dev/null"))
        self.assertEqual(self.fetch("file")[0], OK)
        self.assert_fetched("file")
        self.assertIsNone(busy.poll())

    # ---- What goes wrong ----

    def test_unknown_host(self):
        self.assertEqual(self.fetch("file", host="no-such-host.invalid")[::2],
                         (NO_CONNECTION, "fetch: no-such-host.invalid: unknown host\n"))
        self.assert_nothing_written()

    def test_no_server(self):
        self.assertEqual(self.fetch("file")[::2],
                         (NO_CONNECTION, "fetch: no server for service %d on localhost\n" % self.service))
        self.assert_nothing_written()

    def test_another_service(self):
        self.serve()
        self.service += 1
        self.grace = 100
        self.assertEqual(self.fetch("file")[::2],
                         (NO_CONNECTION, "fetch: no server for service %d on localhost\n" % self.service))

    def test_missing_file(self):
        self.write("first", b"1")
        self.write("last", b"2")
        server = self.serve("-1")
        status, output, messages = self.fetch("first", "missing", "last")
        self.assertEqual((status, messages), (REFUSED, "fetch: localhost: missing: No such file or directory\n"))
        self.assertIn("2 of 3 files", output)
        self.assert_fetched("first", "last")
        self.assertEqual(sorted(os.listdir(self.out)), ["first", "last"])
        server.communicate(timeout=120)
        self.assertEqual(server.returncode, 0)

    def test_refused_file_takes_nothing_away(self):
        kept = os.path.join(self.out, "missing.part")
        with open(kept, "wb") as out:
            out.write(b"one's own")
        self.serve()
        status, _, _ = self.fetch("missing")
        self.assertEqual(status, REFUSED)
        with open(kept, "rb") as own:
            self.assertEqual(own.read(), b"one's own")

    def test_nothing_from_elsewhere(self):
        with open(os.path.join(self.folder, "secret"), "wb") as out:
            out.write(b"secret")
        os.symlink("../secret", os.path.join(self.root, "link"))
        self.serve()
        for name in ("../secret", "/etc/passwd", "link", "."):
            status, _, messages = self.fetch(name)
            self.assertEqual(status, REFUSED, name)
            self.assertRegex(messages, "Permission denied|Not a regular file")
        self.assert_nothing_written()

    def test_full_disk(self):
        self.write("file", random.randbytes(1000000))
        self.serve()
        status, _, messages = self.fetch("file", options=("-o", "/dev/full"))
        self.assertEqual((status, messages), (OUTPUT, "fetch: cannot write /dev/full: No space left on device\n"))

    def test_full_disk_leaves_no_piece(self):
        self.write_endless()
        self.serve()
        client = self.start_limited("endless", LIMIT)
        status, messages = self.finish(client)
        self.assertEqual((status, messages),
                         (OUTPUT, "fetch: cannot write %s/endless: File too large\n" % self.out))
        self.assert_nothing_written()

    def test_output_that_cannot_be_created(self):
        self.write("file", b"text")
        self.serve()
        status, _, messages = self.fetch("file", options=("-o", os.path.join(self.folder, "missing", "file")))
        self.assertEqual(status, OUTPUT)
        self.assertRegex(messages, "^fetch: cannot create .*missing/file: No such file or directory\n$")

    def test_server_killed_in_the_middle(self):
        self.write_endless()
        server = self.serve()
        client = self.begin("endless", options=("-o", "/dev/null"))
        server.kill()
        status, messages = self.finish(client)
        self.assertEqual(status, LOST)
        self.assertTrue(messages.endswith("fetch: connection to localhost lost\n"), messages)

    def test_server_killed_leaves_no_piece(self):
        self.write_endless()
        server = self.serve()
        # The limit keeps the disk from filling up if the death goes unnoticed.
        client = self.start_limited("endless", 1 << 34)
        part = os.path.join(self.out, "endless.part")
        deadline = time.monotonic() + 60
        while not os.path.exists(part) or os.path.getsize(part) == 0:
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(client.poll())
            time.sleep(0.01)
        server.kill()
        status, messages = self.finish(client)
        self.assertEqual((status, messages), (LOST, "fetch: connection to localhost lost\n"))
        self.assert_nothing_written()

    def test_server_stopped_in_the_middle(self):
        self.write_endless()
        server = self.serve()
        client = self.begin("endless", options=("-o", "/dev/null", "-t", "2"))
        server.send_signal(signal.SIGSTOP)
        status, messages = self.finish(client)
        self.assertEqual(status, LOST)
        self.assertTrue(messages.endswith("fetch: localhost has been silent for 2 seconds\n"), messages)

    def test_server_that_does_not_answer(self):
        self.write("file", b"text")
        server = self.serve()
        self.assertEqual(self.fetch("file")[0], OK)
        os.remove(os.path.join(self.out, "file"))
        server.send_signal(signal.SIGSTOP)
        status, _, messages = self.fetch("file", options=("-t", "1"))
        self.assertEqual((status, messages), (NO_CONNECTION, "fetch: no answer from localhost within 1 seconds\n"))
        self.assert_nothing_written()

    def test_server_that_lies(self):
        for lie, message in (("unknown", "a malformed message"), ("empty-message", "a malformed message"),
                             ("request", "no size"), ("no-size", "no size"),
                             ("two-sizes", "a message that does not belong here"),
                             ("hole", "data that does not belong here"), ("too-much", "data that does not belong here"),
                             ("too-little", "another number of bytes than it said"),
                             ("another-size", "another number of bytes than it said")):
            with self.subTest(lie):
                self.service += 1
                liar = self.start(os.environ["LIAR"], str(self.service), lie)
                self.assertIn("files below", liar.stdout.readline())
                self.grace = 20000
                self.assertEqual(self.fetch("file")[::2],
                                 (LOST, "fetch: protocol error: localhost sent %s\n" % message))
                self.assert_nothing_written()
                liar.communicate(timeout=120)
                self.assertEqual(liar.returncode, 0)

    def test_client_killed_in_the_middle(self):
        self.write_endless()
        self.write("file", b"text")
        server = self.serve()
        client = self.begin("endless", options=("-o", "/dev/null"))
        client.kill()
        self.assertIn("connection lost", server.stdout.readline())
        self.assertEqual(self.fetch("file")[0], OK)
        self.assert_fetched("file")

    def test_usage(self):
        for words in ((), ("localhost",), ("-x", "localhost", "file"), (":5", "file"), ("localhost:", "file"),
                      ("localhost:name", "file"), ("localhost", ""), ("-o", "/dev/null", "localhost", "a", "b"),
                      ("-t", "0", "localhost", "file"), ("-t", "3x", "localhost", "file"),
                      ("-t", "-1", "localhost", "file"), ("-t", "18446744073709552", "localhost", "file")):
            client = self.start(os.environ["FETCH"], *words)
            status, messages = self.finish(client)
            self.assertEqual(status, USAGE, words)
            self.assertNotEqual(messages, "", words)

    def test_usage_of_the_server(self):
        for words in ((), ("-p", "0", self.root), ("-p", "name", self.root), (self.root + "/missing",), ("-x", self.root)):
            server = self.start(os.environ["SERVER"], *words)
            _, messages = server.communicate(timeout=120)
            self.assertEqual(server.returncode, 2, words)
            self.assertNotEqual(messages, "", words)


if __name__ == "__main__":
    unittest.main()
