#!/usr/bin/env python3
"""What no change may break of real RDMA, in two minutes: connect, transfer, RDMA, disconnect and a killed peer, of both faces
over both drivers, shared receive queues as the attributes have them; one rping each way."""

import os
import unittest

from tests.lab import lab, one_by_one, rping

_DAT = os.path.realpath("tests/conformance/dat/dat20_iwarp_test")
_VIPL = "tests/conformance/vipl/%s_iwarp_test"
_TESTS = (
    (_DAT, "EpConnect.C083_PrivateDataOfAccept"),
    (_DAT, "Dto.C116_SendOfEverySize"),
    (_DAT, "Dto.C118_RdmaToExactRanges"),
    (_DAT, "Srq.C022_C030_C031_AnObjectLikeOthers"),
    (_DAT, "NamedAttributes.S_SegmentsOfASharedReceiveQueue"),
    (_DAT, "EpDisconnect.C114_OneEventPerConnection"),
    (_DAT, "EpDisconnect.C115_PeerKilled"),
    (os.path.realpath(_VIPL % "connection"), "VipConnectWait.C24_FillsTheLengthsOfTheRequester"),
    (os.path.realpath(_VIPL % "data"), "Segments.MessagesOfManySizesArriveWhole"),
    (os.path.realpath(_VIPL % "data"), "Completion.C63_C64_C65_WhatBothSidesSee"),
    (os.path.realpath(_VIPL % "reliability"), "Rdma.C76_TheLastWordIsVisibleLast"),
    (os.path.realpath(_VIPL % "connection"), "VipDisconnect.C31_LeavesTheViIdleAndEverythingFlushed"),
    (os.path.realpath(_VIPL % "connection"), "VipDisconnect.AKilledPeerIsAConnectionLost"),
)


class Short(unittest.TestCase):
    def _run(self, driver):
        tries = [one_by_one.conformance(program, test, 4, 60, 2) for program, test in _TESTS]
        wrong = one_by_one.complaints(tries, one_by_one.run(self, driver, tries), {}, ())
        self.assertEqual(wrong, [], "\n".join(wrong))

    def test_siw(self):
        self._run("siw")

    def test_rxe(self):
        self._run("rxe")

    def test_rping(self):
        rping.run(self, rping.DAT, "lab0", (64,), "on")


if __name__ == "__main__":
    lab.main()
