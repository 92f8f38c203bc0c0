#!/usr/bin/env python3
"""Runs the programs of vipl/examples, each in as many processes as it wants, over the wire that VIADUCT_WIRE names."""

import os
import random
import subprocess
import unittest

_FOLDER = "vipl/examples/"
_SECONDS = 60


class Programs(unittest.TestCase):

    def setUp(self):
        self._processes = []
        self.addCleanup(self._end)

    def _end(self):
        for process in self._processes:
            process.kill()
            process.communicate()

    def _start(self, program, *arguments, **settings):
        process = subprocess.Popen((_FOLDER + program,) + tuple(str(each) for each in arguments), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=dict(os.environ, **settings))
        self._processes.append(process)
        return process

    def _expect(self, process, output):
        try:
            out, err = process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            self.fail("%s is still running" % " ".join(process.args))
        self.assertEqual((process.returncode, out), (0, output), err)

    def _job(self, program, size, line):
        """One process for each rank, started in any order."""
        job = random.randrange(1 << 24)
        ranks = list(range(size))
        random.shuffle(ranks)
        started = {rank: self._start(program, job, rank, *["localhost"] * size) for rank in ranks}
        for rank in ranks:
            self._expect(started[rank], "rank %d of %d: %s\n" % (rank, size, line))

    def test_message_passing_with_credits(self):
        self._job("flood", 4, "2000 messages")

    def test_all_to_all_of_eight(self):
        self._job("alltoall", 8, "50 rounds")

    def test_ring_of_rdma_writes(self):
        for size in (2, 3):
            with self.subTest(size):
                self._job("ring", size, "200 rounds")

    def test_ranks_that_are_none(self):
        usage = "JOB RANK HOST HOST...\n"
        for program in ("alltoall", "flood", "ring"):
            for rank in ("-1", "2", "4294967296", "", "x", "1x"):
                with self.subTest(program, rank=rank):
                    process = self._start(program, 1, rank, "localhost", "localhost")
                    out, err = process.communicate(timeout=_SECONDS)
                    self.assertEqual((process.returncode, out, err), (2, "", "usage: %s%s %s" % (_FOLDER, program, usage)))

    def test_requests_back_to_back(self):
        for first in ("wait", "ask"):
            with self.subTest(first + " comes first"):
                service = random.randrange(1 << 32, 1 << 48)
                arguments = {"wait": ("wait", service, 40), "ask": ("ask", service, 40, "localhost")}
                # Each waits for the other for as long as a person needs to start it.
                begun = [self._start("backtoback", *arguments.pop(first), VIADUCT_GRACE_MS="20000")]
                begun += [self._start("backtoback", *other, VIADUCT_GRACE_MS="20000") for other in arguments.values()]
                for process in begun:
                    self._expect(process, "40 connections\n")

    def test_callbacks_of_256_vis(self):
        service = random.randrange(1 << 32, 1 << 48)
        server = self._start("many", "serve", service, 256)
        client = self._start("many", "ask", service, 256, "localhost")
        self._expect(client, "256 connections\n")
        self._expect(server, "256 connections\n")

    def test_semaphores_of_its_own(self):
        self._expect(self._start("semaphores", random.randrange(1 << 32, 1 << 48)), "500 messages each way\n")

    def test_help_of_semaphores(self):
        self._expect(self._start("semaphores", "--help"), "usage: semaphores SERVICE\n")
        wrong = self._start("semaphores", "8000x")
        self.assertEqual((wrong.communicate(timeout=_SECONDS), wrong.returncode), (("", "usage: semaphores SERVICE\n"), 2))


if __name__ == "__main__":
    unittest.main()
