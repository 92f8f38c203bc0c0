"""`unshare -rn python3 capture.py FILE COMMAND...`: captures to FILE what passes the loopback interface while COMMAND runs."""

import fcntl
import socket
import struct
import subprocess
import sys

_SIOCSIFFLAGS, _SIOCSIFMTU, _IFF_UP = 0x8914, 0x8922, 1
_ETH_P_ALL = 3
_SOL_PACKET, _PACKET_STATISTICS, _PACKET_IGNORE_OUTGOING = 263, 6, 23
_LINKTYPE_ETHERNET = 1
_LARGEST = 1 << 16
_MTU = 1500  # as between hosts


def _listen():
    """A socket that gets every packet once; the interface of a new network is down."""
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    for request, value in ((_SIOCSIFMTU, _MTU), (_SIOCSIFFLAGS, _IFF_UP)):
        fcntl.ioctl(packets, request, struct.pack("16sI20x", b"lo", value))
    packets.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    packets.bind(("lo", _ETH_P_ALL))
    return packets


def _write(path, packets):
    packets.setblocking(False)
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, _LARGEST, _LINKTYPE_ETHERNET))
        moment = 0
        while True:
            try:
                packet = packets.recv(_LARGEST)
            except BlockingIOError:
                return
            moment += 1
            out.write(struct.pack("<IIII", 0, moment, len(packet), len(packet)) + packet)


def main():
    path, command = sys.argv[1], sys.argv[2:]
    with _listen() as packets:
        status = subprocess.run(command, check=False).returncode
        _write(path, packets)
        _, lost = struct.unpack("II", packets.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
    if lost:
        sys.exit("%d packets were lost" % lost)
    sys.exit(status)


if __name__ == "__main__":
    main()
