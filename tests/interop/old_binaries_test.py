#!/usr/bin/env python3
"""Binaries of uDAPL 1.2, linked against a libdat.so.1 that is not ours, start and work on ours.

The library that they are linked with has the 73 functions of OFED's release and no code: once under the node DAT_1.2, as
OFED's was, and once without a node.
"""

import os
import random
import subprocess
import tempfile
import unittest

from dat.api import routes

_HEADERS = ["dat/include/dat/%s.h" % name for name in ("dat_functions", "udat", "udat_redirection")]


def names_of_ofed():
    names = {"dat_" + slot for slot in routes.slots(_HEADERS)} - {"dat_ia_open"}
    names |= {"dat_ia_openv", "dat_registry_add_provider", "dat_registry_list_providers",
              "dat_registry_remove_provider", "dat_strerror", "dats_get_ia_handle"}
    return sorted(names)


class OldBinaries(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = folder.name

    def path(self, name):
        return os.path.join(self._folder, name)

    def link_program(self, versioned):
        with open(self.path("stub.c"), "w", encoding="utf-8") as stub:
            stub.writelines("void %s(void) {}\n" % name for name in names_of_ofed())
        with open(self.path("stub.map"), "w", encoding="utf-8") as script:
            script.write("DAT_1.2 { global: dat*; local: *; };\n")
        stub_flags = ["-Wl,--version-script," + self.path("stub.map")] if versioned else []
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libdat.so.1", *stub_flags, self.path("stub.c"), "-o",
                        self.path("libdat.so")], check=True)
        subprocess.run(["cc", "-Idat/include", "tests/interop/old_program.c", "-L" + self._folder, "-ldat", "-o",
                        self.path("program")], check=True)

    def run_program(self, **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("VIADUCT_", "DAT_"))}
        environment["LD_LIBRARY_PATH"] = os.path.abspath("dat/api") + ":" + os.path.abspath("dat/core")
        environment.update(variables)
        port = str(random.randrange(32000, 32768))  # below the ephemeral ones, above the harness's
        return subprocess.run([self.path("program"), port], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=environment, timeout=60, check=False)

    def test_stub_has_what_ofed_had(self):
        self.assertEqual(len(names_of_ofed()), 73)

    def test_program_runs_without_a_word_from_the_loader(self):
        for versioned in True, False:
            self.link_program(versioned)
            for wire in "shm", "iwarp":
                with self.subTest(versioned=versioned, wire=wire):
                    done = self.run_program(VIADUCT_WIRE=wire, LD_BIND_NOW="1")
                    self.assertEqual(done.stdout, "connected, sent, disconnected\n")
                    self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
