#!/usr/bin/env python3
"""What the shared libraries show: name, version node, functions, and what they need."""

import re
import subprocess
import unittest

from dat.api import routes

LIBRARIES = {
    "libdat.so.1": ("DAT_1.2", "dat"),
    "libdat2.so.2": ("DAT_2.0", "dat2"),
}
NEEDED = {"libviaduct.so.1", "libstdc++.so.6", "libgcc_s.so.1", "libc.so.6"}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library):
    """{name: node} of the functions that programs can call."""
    symbols = {}
    for line in output("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines():
        fields = line.split()
        if fields[-2] != "A":
            name, _, node = fields[-1].partition("@@")
            symbols[name] = node
    return symbols


def declared(folder):
    names = set()
    for header in ("dat_functions.h", "udat.h", "dat_registry.h"):
        with open("dat/include/%s/%s" % (folder, header), encoding="utf-8") as stream:
            names.update(re.findall(r"extern DAT_RETURN DAT_API\s+(dats?_\w+)\(", stream.read()))
    return names


class Libraries(unittest.TestCase):

    def test_C003_C004_functions(self):
        for library, (node, folder) in LIBRARIES.items():
            with self.subTest(library):
                symbols = exported("dat/api/" + library)
                self.assertEqual(set(symbols), declared(folder))
                self.assertEqual(set(symbols.values()), {node})

    def test_dynamic_section(self):
        for library in LIBRARIES:
            with self.subTest(library):
                dynamic = output("readelf", "-d", "dat/api/" + library)
                self.assertEqual(re.findall(r"SONAME.*\[(.*)\]", dynamic), [library])
                self.assertEqual(re.findall(r"RUNPATH.*\[(.*)\]", dynamic), ["$ORIGIN"])
                self.assertLessEqual(set(re.findall(r"NEEDED.*\[(.*)\]", dynamic)), NEEDED)

    def test_plugin(self):
        path = "dat/api/libdapl-viaduct.so.2"
        self.assertEqual(set(exported(path)), {"dat_provider_init", "dat_provider_fini"})
        dynamic = output("readelf", "-d", path)
        self.assertEqual(re.findall(r"RUNPATH.*\[(.*)\]", dynamic), ["$ORIGIN"])
        self.assertIn("NODELETE", dynamic)
        # No libdat2: the registry that loads it is found among the process's symbols.
        self.assertLessEqual(set(re.findall(r"NEEDED.*\[(.*)\]", dynamic)), NEEDED)

    def test_plugin_fills_every_slot(self):
        slots = routes.slots(["dat/include/dat2/udat_redirection.h"])
        self.assertEqual(len(slots), 79)
        functions = routes.functions_of("dat/api/dat_20.map")
        for slot in slots:
            name = "dat_extension_op" if slot == "handle_extendedop" else "dat_" + slot
            by_hand = slot in ("ia_open", "ia_ha_related", "handle_extendedop")
            self.assertTrue(by_hand or name in functions, slot)


if __name__ == "__main__":
    unittest.main()
