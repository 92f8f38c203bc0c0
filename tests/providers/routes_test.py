#!/usr/bin/env python3
"""Every function that libdat2 exports reaches its own slot of a provider's table with the handle that the program passed."""

import ctypes
import os
import tempfile
import unittest

from dat.api import routes

_HEADERS = ["dat/include/dat2/%s.h" % name for name in ("dat_functions", "udat", "udat_redirection")]


class Facts(ctypes.Structure):
    _fields_ = [("inits", ctypes.c_int), ("finis", ctypes.c_int), ("adapters", ctypes.c_int),
                ("last_slot", ctypes.c_int), ("last_handle", ctypes.c_void_p), ("parameters", ctypes.c_char * 256)]


class Routes(unittest.TestCase):

    def test_every_function(self):
        probe = os.path.abspath("tests/providers/libprobe.so")
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as conf:
            conf.write('probe0 u2.0 nonthreadsafe default %s x.1.0 "" ""\n' % probe)
            conf.flush()
            os.environ["DAT_OVERRIDE"] = conf.name
            ctypes.CDLL(os.path.abspath("dat/core/libviaduct.so.1"))  # in a folder of its own here
            # A provider finds the registry among the process's own symbols.
            library = ctypes.CDLL(os.path.abspath("dat/api/libdat2.so.2"), mode=ctypes.RTLD_GLOBAL)
            handle = ctypes.c_void_p()
            evd = ctypes.c_void_p()
            self.assertEqual(
                library.dat_ia_openv(b"probe0", 8, ctypes.byref(evd), ctypes.byref(handle), 2, 0, 0), 0)
        provider = ctypes.CDLL(probe)
        provider.probe_facts.restype = ctypes.POINTER(Facts)
        facts = provider.probe_facts().contents

        exported = routes.functions_of("dat/api/dat_20.map")
        reached = []
        for slot, name in enumerate(routes.slots(_HEADERS)):
            function = "dat_" + name
            if function not in exported or function in routes.BY_HAND:
                continue
            with self.subTest(function):
                facts.last_slot = -1
                zeros = [ctypes.c_void_p()] * 8
                self.assertEqual(getattr(library, function)(handle, *zeros), 0)
                self.assertEqual(facts.last_slot, slot)
                self.assertEqual(facts.last_handle, handle.value)
                reached.append(function)
        self.assertGreater(len(reached), 45)
        self.assertEqual(library.dat_ia_close(handle, 0), 0)
        self.assertEqual((facts.inits, facts.finis, facts.adapters), (1, 1, 0))


if __name__ == "__main__":
    unittest.main()
