#!/usr/bin/env python3
"""What programs are told of an adapter that an RDMA device serves: that device, and nothing of the soft one."""

import json
import os
import subprocess
import tempfile
import unittest

_FOLDERS = ("tests/rdma_mock", "dat/core")
_CONF = """
lab u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "lo" ""
"""


class Programs(unittest.TestCase):

    def setUp(self):
        file = tempfile.NamedTemporaryFile("w", suffix=".conf")  # pylint: disable=consider-using-with
        self.addCleanup(file.close)
        file.write(_CONF)
        file.flush()
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith(("VIADUCT_", "DAT_", "RDMA_"))}
        self._environment.update(DAT_OVERRIDE=file.name, LD_PRELOAD=os.path.realpath("tests/rdma_mock/machine.so"),
                                 LD_LIBRARY_PATH=":".join(os.path.realpath(folder) for folder in _FOLDERS))

    def _run(self, *command, **settings):
        done = subprocess.run(command, env=dict(self._environment, **settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def _adapter(self, name, **settings):
        return json.loads(self._run("tools/datinfo/datinfo", "--json", name, **settings))["adapters"][0]

    def test_datinfo_names_the_device(self):
        for iwarp, transport in ({}, "InfiniBand or RoCE"), ({"RDMA_MOCK_IWARP": "1"}, "iWARP"):
            with self.subTest(transport):
                adapter = self._adapter("lab", VIADUCT_WIRE="rdma", **iwarp)
                self.assertEqual(adapter["device"], "mock0")
                self.assertEqual([t["name"] for t in adapter["transports"]], [transport])
                self.assertEqual(adapter["reason"], "the RDMA device mock0 port 1 (%s) has 127.0.0.1" % transport)

    def test_attributes_are_those_of_the_device(self):
        for kind, scope in (({}, "endpoint or protection zone"), ({"RDMA_MOCK_IWARP": "1"}, "protection zone"),
                            ({"RDMA_MOCK_NO_WINDOWS": "1"}, "protection zone")):
            with self.subTest(kind):
                adapter = self._adapter("lab", VIADUCT_WIRE="rdma", **kind)
                limits, provider = adapter["adapter"], adapter["provider"]
                self.assertEqual((limits["max_srqs"], limits["max_recv_per_srq"], provider["srq_supported"]), (65536, 32767, True))
                self.assertIs(limits["zb_supported"], False)
                self.assertEqual(provider["rmr_scope_supported"], scope)
        adapter = self._adapter("lab", VIADUCT_WIRE="rdma", VIADUCT_WINDOWS="regions")
        self.assertEqual(adapter["provider"]["rmr_scope_supported"], "protection zone")

    def test_datinfo_as_text(self):
        text = self._run("tools/datinfo/datinfo", "lab", VIADUCT_WIRE="rdma")
        self.assertRegex(text, r"(?m)^  device +mock0$")
        self.assertRegex(text, r"(?m)^  transports +InfiniBand or RoCE: devices of its kind$")
        self.assertRegex(text, r"(?m)^  reason +the RDMA device mock0 port 1 ")
        self.assertNotIn("shared memory", text)

    def test_a_device_beside_the_soft_one(self):
        for wire, names in ("auto", ["shared memory", "iWARP over TCP"]), ("shm", ["shared memory"]), ("iwarp", ["iWARP over TCP"]):
            with self.subTest(wire):
                adapter = self._adapter("lab", VIADUCT_WIRE=wire)
                self.assertEqual((adapter["device"], [t["name"] for t in adapter["transports"]]), ("soft", names))

    def test_vipinfo_names_the_device(self):
        nic, = json.loads(self._run("tools/vipinfo/vipinfo", "--json", "/dev/via_lo", VIADUCT_WIRE="rdma"))
        self.assertEqual((nic["device"], nic["reason"]),
                         ("mock0", "the RDMA device mock0 port 1 (InfiniBand or RoCE) has 127.0.0.1"))

    def test_atomics_of_a_device_without_are_not_implemented(self):
        self.assertEqual(self._run("tests/rdma_mock/post_atomic", "lab", VIADUCT_WIRE="rdma"), "DAT_NOT_IMPLEMENTED\n")
        self.assertEqual(self._run("tests/rdma_mock/post_atomic", "lab", VIADUCT_WIRE="shm"), "DAT_INVALID_STATE\n")


if __name__ == "__main__":
    unittest.main()
