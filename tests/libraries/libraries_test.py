#!/usr/bin/env python3
"""What the shared libraries look like from outside: names, exports, what they need and what they import."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

_ENGINE = "dat/core/libviaduct.so.1"
_RDMA = "verbs/rdma/libviaduct-rdma.so.1"
# Library: the functions that it exports, and their version node.
_FACES = {
    "vipl/libvipl.so.1": (r"Vip\w+", r"VIPL_\S+"),
    "dat/api/libdat.so.1": (r"dats?_\w+", r"DAT_1\.2"),
    "dat/api/libdat2.so.2": (r"dats?_\w+", r"DAT_2\.0"),
}
_RUNTIME = {"libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2"}


def _readelf(option, path):
    return subprocess.run(["readelf", "--wide", option, path], check=True, stdout=subprocess.PIPE, text=True).stdout


def _dynamic(path, tag):
    return set(re.findall(r"\(%s\)[^\[]*\[(.*)\]" % tag, _readelf("--dynamic", path)))


def _symbols(path):
    """Yields (name, version, is defined) of the dynamic symbols, without those of the version nodes."""
    for line in _readelf("--dyn-syms", path).splitlines():
        words = line.split()
        if len(words) >= 8 and words[0].rstrip(":").isdigit() and words[6] != "ABS":
            name, _, version = words[7].partition("@")
            yield name, version.lstrip("@"), words[6] != "UND"


class Libraries(unittest.TestCase):

    def test_names_and_run_paths(self):
        for path in [_ENGINE, _RDMA] + list(_FACES):
            with self.subTest(path):
                self.assertEqual(_dynamic(path, "SONAME"), {os.path.basename(path)})
                self.assertEqual(_dynamic(path, "RUNPATH"), {"$ORIGIN"})
                self.assertEqual(_dynamic(path, "RPATH"), set())

    def test_faces_need_the_engine_and_the_runtime_alone(self):
        for path in _FACES:
            with self.subTest(path):
                needed = _dynamic(path, "NEEDED")
                self.assertIn("libviaduct.so.1", needed)
                self.assertEqual(needed - _RUNTIME - {"libviaduct.so.1"}, set())

    # An old program may have only malloc and free of its own: memory of libc's aligned_alloc must not get to that free.
    def test_memory_comes_from_malloc_alone(self):
        for path in [_ENGINE, _RDMA] + list(_FACES):
            with self.subTest(path):
                imported = {name for name, _, defined in _symbols(path) if not defined}
                others = {"aligned_alloc", "memalign", "posix_memalign", "valloc"}
                self.assertEqual(imported & others, set())
                self.assertEqual({name for name in imported if "align_val_t" in name}, set())

    def test_engine_needs_no_rdma(self):
        needed = {name for name in _dynamic(_ENGINE, "NEEDED") if not name.startswith("libabsl_")}
        self.assertEqual(needed - _RUNTIME, {"libisal.so.2"})

    def test_rdma_needs_rdma_core_and_shows_its_door_alone(self):
        needed = {name for name in _dynamic(_RDMA, "NEEDED") if not name.startswith("libabsl_")}
        self.assertEqual(needed - _RUNTIME, {"libviaduct.so.1", "libibverbs.so.1", "librdmacm.so.1"})
        self.assertEqual({name for name, _, defined in _symbols(_RDMA) if defined}, {"viaduct_rdma_module"})
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(_ENGINE, folder)
            self.assertEqual(self._load(shutil.copy(_RDMA, folder)), (0, ""))

    def test_engine_stays_loaded(self):
        self.assertIn("NODELETE", _readelf("--dynamic", _ENGINE))

    def test_faces_export_their_functions_alone(self):
        for path, (pattern, node) in _FACES.items():
            exported = [(name, version) for name, version, defined in _symbols(path) if defined]
            with self.subTest(path):
                self.assertTrue(exported)
                for name, version in exported:
                    self.assertRegex(name, "^%s$" % pattern)
                    self.assertRegex(version, "^%s$" % node)

    def test_engine_exports_under_one_node_of_this_build(self):
        nodes = {version for _, version, defined in _symbols(_ENGINE) if defined}
        self.assertEqual(len(nodes - {""}), 1, nodes)
        self.assertRegex((nodes - {""}).pop(), r"^VIADUCT_\d+\.\d+\.\d+_[0-9a-f]{16}$")

    def test_nothing_imports_semaphores_or_sets_signal_handlers(self):
        for path in [_ENGINE, _RDMA] + list(_FACES):
            imported = {name for name, _, defined in _symbols(path) if not defined}
            with self.subTest(path):
                self.assertEqual({name for name in imported if re.match(r"(sem_\w+|sigaction|signal)$", name)}, set())

    # Programs have functions of their own under these names.
    def test_nothing_imports_what_the_program_may_have(self):
        with open("verbs/base/libc_names.bzl", encoding="utf-8") as table:
            names = set(re.findall(r'^ +"(\w+)",$', table.read(), re.M))
        self.assertIn("connect", names)
        for path in [_ENGINE, _RDMA] + list(_FACES):
            imported = {name for name, _, defined in _symbols(path) if not defined}
            with self.subTest(path):
                self.assertEqual(imported & names, set())

    def test_faces_do_not_import_functions_of_the_api(self):
        for path in _FACES:
            imported = [name for name, _, defined in _symbols(path) if not defined]
            with self.subTest(path):
                self.assertEqual([name for name in imported if re.match(r"(Vip[A-Z]|dats?_)", name)], [])

    def test_face_loads_with_its_own_engine(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in _FACES:
                shutil.copy(_ENGINE, folder)
                self.assertEqual(self._load(shutil.copy(path, folder)), (0, ""), path)

    def test_vipl_has_the_names_that_programs_link_by(self):
        with open("tools/install_files", encoding="utf-8") as table:
            rows = [line.split() for line in table if line.startswith("library //vipl:")]
        (_, _, *links), = rows
        self.assertEqual(set(links), {"libvipl.so", "libvia.so", "libgnivipl.so", "vipl.so"})
        with tempfile.TemporaryDirectory() as folder:
            for path in (_ENGINE, "vipl/libvipl.so.1"):
                shutil.copy(path, folder)
            for link in links:
                os.symlink("libvipl.so.1", os.path.join(folder, link))
                with self.subTest(link):
                    self._link_and_run(folder, link)

    def _link_and_run(self, folder, link):
        """Fails unless a C program that names the library this way is bound to libvipl.so.1 and finds it."""
        flag = "-l" + link[3:-3] if link.startswith("lib") else os.path.join(folder, link)
        program = os.path.join(folder, "program")
        source = "int VipCloseNic(void *); int main(void) { return VipCloseNic(0) != 2; }\n"
        subprocess.run(["cc", "-x", "c", "-", "-o", program, "-L" + folder, "-Wl,-rpath," + folder, "-x", "none", flag],
                       input=source, check=True, text=True)
        self.assertIn("libvipl.so.1", _dynamic(program, "NEEDED"))
        subprocess.run([program], check=True)

    def test_face_refuses_the_engine_of_another_build(self):
        with open(_ENGINE, "rb") as library:
            content = library.read()
        other = re.sub(rb"(VIADUCT_\d+\.\d+\.\d+_)[0-9a-f]{16}\0", rb"\g<1>0123456789abcdef\0", content)
        self.assertNotEqual(other, content)
        for path in _FACES:
            with self.subTest(path), tempfile.TemporaryDirectory() as folder:
                with open(folder + "/libviaduct.so.1", "wb") as library:
                    library.write(other)
                code, output = self._load(shutil.copy(path, folder))
                self.assertNotEqual(code, 0)
                self.assertRegex(output, r"version `VIADUCT_\S+' not found")

    @staticmethod
    def _load(path):
        """Exit status and complaint of a process that loads the library."""
        result = subprocess.run([sys.executable, "-c", "import ctypes, os, sys; ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)", path],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return result.returncode, result.stdout


if __name__ == "__main__":
    unittest.main()
