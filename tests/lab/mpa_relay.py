"""A relay between an initiator of MPA's revision 2 and its responder, for one connection.

usage: mpa_relay.py none|write|read PORT ADDRESS TARGET

Whatever the initiator offers, the relay offers the responder the peer-to-peer model with only that first message, or no
model, and prints which of these the responder's answer names (RFC 6581).
"""

import contextlib
import socket
import struct
import sys
import threading

_FRAME = struct.Struct(">16sBBHHH")  # key, flags, revision, bytes of private data, IRD, ORD
_PEER_TO_PEER = 0x8000  # beside IRD
_WRITE, _READ = 0x8000, 0x4000  # beside ORD
_DEPTH = 0x3FFF
_MODELS = {"none": (0, 0), "write": (_PEER_TO_PEER, _WRITE), "read": (_PEER_TO_PEER, _READ)}


def _frame(source):
    data = b""
    while len(data) < _FRAME.size:
        piece = source.recv(_FRAME.size - len(data))
        if not piece:
            sys.exit("closed within a frame: %r" % data)
        data += piece
    return _FRAME.unpack(data)


def _relay(source, sink):
    with contextlib.suppress(OSError):  # a reset: this direction is over
        while True:
            data = source.recv(65536)
            if not data:
                break
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def main():
    model, port, address, target = sys.argv[1:]
    with socket.create_server((address, int(port))) as listener:
        initiator, _ = listener.accept()
    responder = socket.create_connection((target, int(port)))
    with initiator, responder:
        key, flags, revision, length, ird, ord_ = _frame(initiator)
        offered = _MODELS[model]
        responder.sendall(_FRAME.pack(key, flags, revision, length, ird & _DEPTH | offered[0], ord_ & _DEPTH | offered[1]))
        forth = threading.Thread(target=_relay, args=(initiator, responder))
        forth.start()
        answer = _frame(responder)
        named = (answer[4] & _PEER_TO_PEER, answer[5] & (_WRITE | _READ))
        print([name for name, bits in _MODELS.items() if bits == named], flush=True)
        initiator.sendall(_FRAME.pack(*answer))
        _relay(responder, initiator)
        forth.join()


if __name__ == "__main__":
    main()
