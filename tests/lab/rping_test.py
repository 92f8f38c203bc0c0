#!/usr/bin/env python3
"""rdma-core's rping over Linux's siw, and a program on the soft device, in both roles: they share only the standard."""

import unittest

from tests.lab import lab, rping

_SIZES = (32, 64, 1448, 1449, 65535)


class Rping(unittest.TestCase):
    def test_dat_with_crc(self):
        rping.run(self, rping.DAT, "lab0", _SIZES, "on")

    # siw does not ask for a CRC.
    def test_dat_without_crc(self):
        rping.run(self, rping.DAT, "lab0", _SIZES, "off")

    # As on the loopback interface: a whole request is one segment of TCP, or nearly.
    def test_dat_in_large_packets(self):
        rping.run(self, rping.DAT, "lab0", _SIZES, "on", mtu=65535)

    def test_dat_under_load(self):
        rping.run(self, rping.DAT, "lab0", (65535,), "on", rounds=500)

    # A relay changes what our client offers.
    def test_dat_in_each_model(self):
        rping.run_models(self, ("none", "write", "read"))

    # The peer sends no VIPL header: a VIPL client sees its own attributes, and a server takes the peer as it comes.
    def test_vipl(self):
        rping.run(self, rping.VIPL, "10.8.0.2", (64, 65535), "on")


if __name__ == "__main__":
    lab.main()
