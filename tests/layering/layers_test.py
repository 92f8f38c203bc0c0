#!/usr/bin/env python3
"""The tree keeps its layers; and the check that says so finds each kind of violation when one is seeded."""

import os
import tempfile
import unittest

from tests.layering import layers, tree


class TheTree(unittest.TestCase):

    def test_keeps_its_layers(self):
        self.assertEqual(layers.check(tree.root()), [])

    def test_is_read_at_all(self):
        self.assertIn("verbs/base/version.h", list(layers.source_files(tree.root())))


class Seeded(unittest.TestCase):
    """Each test seeds one file and expects one complaint, or none."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._root = folder.name
        for header in ("verbs/device.h", "verbs/base/clock.h", "dat/core/endpoint.h", "dat/include/dat2/udat.h",
                       "dat/api/handles.h", "dat/registry/conf.h", "compat/names.h", "vipl/include/vipl.h",
                       "vipl/nic.h", "tests/device/suite.h"):
            self._write(header, "")

    def _write(self, path, text):
        path = os.path.join(self._root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)

    def _problems(self, path, text):
        self._write(path, text)
        return layers.check(self._root)

    def _refused(self, path, text, complaint):
        problems = self._problems(path, text)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(complaint, problems[0])
        self.assertTrue(problems[0].startswith(path + ":"), problems[0])

    def _accepted(self, path, text):
        self.assertEqual(self._problems(path, text), [])

    def test_downward_is_fine(self):
        self._accepted("verbs/soft/shm/ring.cc", '#include "verbs/device.h"\n#include <sys/socket.h>\n#include <thread>\n')
        self._accepted("dat/core/a.cc", '#include "verbs/device.h"\n#include "dat/core/endpoint.h"\n#include <atomic>\n')
        self._accepted("dat/api/a.cc", '#include <dat2/udat.h>\n#include "dat/registry/conf.h"\n#include "dat/core/endpoint.h"\n')
        self._accepted("compat/a.cc", '#include <vipl.h>\n#include "dat/core/endpoint.h"\n')
        self._accepted("vipl/a.cc", '#include "vipl/include/vipl.h"\n#include "compat/names.h"\n#include "vipl/nic.h"\n')
        self._accepted("tests/a.cc", '#include "vipl/nic.h"\n#include "dat/api/handles.h"\n')

    def test_verbs_knows_nothing_above(self):
        self._refused("verbs/soft/a.cc", '#include "dat/core/endpoint.h"\n', "verbs may not know dat/core")

    def test_base_knows_no_device(self):
        self._refused("verbs/base/a.h", '#include "verbs/device.h"\n', "verbs/base may not know verbs")

    def test_core_knows_no_face(self):
        self._refused("dat/core/a.cc", '\n#include "dat/api/handles.h"\n', "a.cc:2: dat/core may not know dat/api")

    def test_core_knows_no_public_header(self):
        self._refused("dat/core/a.cc", "#include <dat2/udat.h>\n", "dat/core may not know dat/include")

    def test_core_knows_no_compat(self):
        self._refused("dat/core/a.h", '#  include "compat/names.h"\n', "dat/core may not know compat")

    def test_registry_stands_beside_api(self):
        self._refused("dat/registry/a.cc", '#include "dat/api/handles.h"\n', "dat/registry may not know dat/api")

    def test_compat_does_not_know_vipl(self):
        self._refused("compat/a.cc", '#include "vipl/nic.h"\n', "compat may not know vipl")

    def test_faces_do_not_know_each_other(self):
        self._refused("vipl/a.cc", '#include "dat/api/handles.h"\n', "vipl may not know dat/api")
        os.remove(os.path.join(self._root, "vipl/a.cc"))
        self._refused("dat/api/a.cc", '#include "compat/names.h"\n', "dat/api may not know compat")

    def test_library_knows_no_test(self):
        self._refused("verbs/a.cc", '#include "tests/device/suite.h"\n', "verbs may not know tests")

    def test_relative_path_is_followed(self):
        self._refused("verbs/a.cc", '#include "../dat/core/endpoint.h"\n', "verbs may not know dat/core")

    def test_generated_header_has_its_folders_layer(self):
        self._refused("verbs/a.cc", '#include "dat/core/generated.h"\n', "verbs may not know dat/core")

    def test_example_uses_public_headers_alone(self):
        self._accepted("vipl/examples/a.c", "#include <vipl.h>\n#include <stdio.h>\n")
        self._refused("vipl/examples/b.c", '#include "vipl/nic.h"\n', "vipl/examples may not know vipl")

    def test_rdma_headers_stay_in_verbs_rdma(self):
        self._accepted("verbs/rdma/a.cc", "#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\n")
        self._accepted("tests/rdma_mock/a.cc", "#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\n")
        self._accepted("tests/lab/a.c", "#include <rdma/rdma_cma.h>\n")
        self._refused("verbs/soft/a.cc", "#include <rdma/rdma_cma.h>\n", "belongs in verbs/rdma")
        os.remove(os.path.join(self._root, "verbs/soft/a.cc"))
        self._refused("tests/a.cc", "#include <infiniband/verbs.h>\n", "belongs in verbs/rdma")

    def test_core_includes_no_clock_thread_or_socket(self):
        for header in ("thread", "mutex", "chrono", "condition_variable", "time.h", "pthread.h", "sys/socket.h",
                       "netinet/in.h", "sys/epoll.h", "absl/time/clock.h"):
            with self.subTest(header):
                self._refused("dat/core/a.cc", "#include <%s>\n" % header, "from verbs: it includes <%s>" % header)

    def test_core_calls_no_clock_thread_or_socket(self):
        for call in ("clock_gettime(CLOCK_MONOTONIC, &t);", "auto t = std::chrono::steady_clock::now();", "absl::Now();",
                     "std::thread t(f);", "std::mutex m;", "pthread_create(&t, 0, f, 0);", "int s = ::socket(1, 1, 0);",
                     "usleep(3);", "std::this_thread::yield();"):
            with self.subTest(call):
                self._refused("dat/core/a.cc", "void F() { %s }\n" % call, "from verbs: it uses")

    def test_core_may_speak_of_them(self):
        self._accepted("dat/core/a.cc", '// clock_gettime() is not called here.\n/* std::thread\n t; */ auto s = "std::mutex";\n'
                       "void F() { device->connect(); endpoint.bind(1); Device::accept(2); }\n")

    def test_core_tests_may_use_threads(self):
        self._accepted("dat/core/a_test.cc", "#include <thread>\nstd::thread t;\n")

    def test_libraries_use_no_semaphores_and_no_signal_handlers(self):
        self._refused("verbs/a.cc", "#include <semaphore.h>\n", "may not be used in a library")
        self._refused("verbs/a.cc", "void F() { sem_post(&s); }\n", "sem_post may not be used")
        self._refused("verbs/a.cc", "void F() { sigaction(SIGSEGV, &a, 0); }\n", "sigaction may not be used")
        self._refused("verbs/a.cc", '#include "absl/synchronization/mutex.h"\n', "may not be used in a library")


if __name__ == "__main__":
    unittest.main()
