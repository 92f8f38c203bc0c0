#!/usr/bin/env python3
"""tshark names every message of the soft device's script."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from tools.build_rules import python_main

_SCRIPT = "tests/interop/decode/script_test"
_CAPTURE = ["unshare", "--map-root-user", "--net", sys.executable, "tests/interop/decode/capture.py"]
_WRITE, _READ_REQUEST, _READ_RESPONSE, _SEND, _TERMINATE = 0, 1, 2, 3, 7
_FIELDS = ["tcp.srcport", "iwarp_mpa.req", "iwarp_mpa.rep", "iwarp_rdma.opcode", "iwarp_mpa.crc_check", "_ws.malformed",
           "iwarp_rdma.term_layer", "iwarp_rdma.term_etype_rdma", "iwarp_rdma.term_errcode_rdma"]


def captured(path, *command):
    """The process that has run `command` and, if its status is 0, captured to `path` what passed its loopback interface."""
    return subprocess.run(_CAPTURE + [path] + list(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                          universal_newlines=True, check=False)


def why_not():
    """Why nothing can be captured here; None: it can."""
    if not shutil.which("tshark"):
        return "tshark is not installed (tools/setup ci)"
    try:
        probe = captured(os.devnull, "true")
    except OSError as error:
        return "no network of one's own: %s" % error
    return None if probe.returncode == 0 else "no network of one's own: " + probe.stdout.strip()


_WHY_NOT = why_not()


def tshark(path, *arguments):
    # These two heuristics take any payload of a Send for their own protocol.
    command = ["tshark", "-r", path, "--disable-heuristic", "rpcrdma_iwarp", "--disable-heuristic", "smb_direct_iwarp"]
    return subprocess.run(command + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True,
                          timeout=60).stdout.decode()


def dissect(path):
    """One dictionary of lists for each packet."""
    arguments = ["-Y", "tcp.len > 0", "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,", "-E", "separator=|"]
    for field in _FIELDS:
        arguments += ["-e", field]
    packets = []
    for line in tshark(path, *arguments).splitlines():
        values = [value.split(",") if value else [] for value in line.split("|")]
        packets.append(dict(zip(_FIELDS, values)))
    return packets


@unittest.skipIf(_WHY_NOT, _WHY_NOT)
class DecodeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script.pcap")
            script = captured(path, _SCRIPT)
            if script.returncode != 0:
                raise AssertionError(script.stdout)
            cls.packets = dissect(path)
            cls.words = tshark(path, "-V")

    def opcodes(self, dialled):
        """The opcodes of one side; the segments of one message count once."""
        dialler = next(packet["tcp.srcport"] for packet in self.packets if packet["iwarp_mpa.req"])
        found = []
        for packet in self.packets:
            if (packet["tcp.srcport"] == dialler) == dialled:
                found += [int(code, 0) for code in packet["iwarp_rdma.opcode"]]
        return [code for i, code in enumerate(found) if code != _SEND or i == 0 or found[i - 1] != _SEND]

    def test_start_up(self):
        self.assertEqual(sum(len(packet["iwarp_mpa.req"]) for packet in self.packets), 1)
        self.assertEqual(sum(len(packet["iwarp_mpa.rep"]) for packet in self.packets), 1)

    def test_messages_of_the_side_that_dialled(self):
        ready_to_receive = _WRITE  # without data, the negotiated first message of MPA's revision 2
        self.assertEqual(self.opcodes(dialled=True), [ready_to_receive, _SEND, _WRITE, _READ_REQUEST, _READ_REQUEST])

    def test_messages_of_the_side_that_answered(self):
        self.assertEqual(self.opcodes(dialled=False), [_READ_RESPONSE, _SEND, _TERMINATE])

    def test_a_long_message_has_several_segments(self):
        sends = sum(packet["iwarp_rdma.opcode"].count("0x03") for packet in self.packets)
        self.assertGreater(sends, 4)

    def test_terminate_names_the_read(self):
        said = [(packet["iwarp_rdma.term_layer"], packet["iwarp_rdma.term_etype_rdma"], packet["iwarp_rdma.term_errcode_rdma"])
                for packet in self.packets if packet["iwarp_rdma.term_layer"]]
        self.assertEqual(said, [(["0x00"], ["0x01"], ["0x00"])], "RDMAP, remote protection, invalid tag")

    def test_nothing_is_malformed(self):
        for packet in self.packets:
            self.assertEqual(packet["_ws.malformed"], [])
            self.assertTrue(packet["iwarp_rdma.opcode"] or packet["iwarp_mpa.req"] or packet["iwarp_mpa.rep"] or
                            self.continues(packet), packet)

    def continues(self, packet):
        """Whether this is part of a segment that ends in a later packet, so that it has no name of its own."""
        return packet is not self.packets[-1] and not packet["iwarp_mpa.crc_check"]

    def test_every_checksum_is_right(self):
        checked = sum(len(packet["iwarp_mpa.crc_check"]) for packet in self.packets)
        self.assertGreater(checked, 8)
        self.assertEqual(self.words.count("Good CRC32"), checked)


if __name__ == "__main__":
    python_main.main()
