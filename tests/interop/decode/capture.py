"""A TCP proxy that keeps what passes, and a capture file made of it."""

import selectors
import socket
import struct
import threading

_LINKTYPE_RAW = 101
_LARGEST = 60000  # payload of a packet in the file


class Proxy:
    """Takes one connection at `address` and relays it to `target`; both directions are kept in their order."""

    def __init__(self, address, target):
        self.chunks = []  # (True: from who dialled, bytes)
        self._target = target
        self._listener = socket.create_server((address, 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._relay)
        self._thread.start()

    def wait(self):
        """Until both sides have closed."""
        self._thread.join()

    def _relay(self):
        with self._listener:
            self._listener.settimeout(60)
            dialled, _ = self._listener.accept()
        with dialled, socket.create_connection(self._target) as answered, selectors.DefaultSelector() as ready:
            for source, sink in ((dialled, answered), (answered, dialled)):
                ready.register(source, selectors.EVENT_READ, sink)
            while ready.get_map():
                for key, _ in ready.select():
                    self._pass_on(ready, key.fileobj, key.data, key.fileobj is dialled)

    def _pass_on(self, ready, source, sink, forth):
        try:
            data = source.recv(65536)
            if data:
                self.chunks.append((forth, data))
                sink.sendall(data)
                return
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # a reset: this direction is over
        ready.unregister(source)


def write(path, chunks):
    """A capture file in which the side that dialled is 192.0.2.1:40000 and the other 192.0.2.2:50000."""
    ends = [(bytes((192, 0, 2, 1)), 40000), (bytes((192, 0, 2, 2)), 50000)]
    position = [1, 1]
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, _LINKTYPE_RAW))
        moment = 0
        for forth, data in chunks:
            source = 0 if forth else 1
            for start in range(0, len(data), _LARGEST):
                part = data[start:start + _LARGEST]
                tcp = struct.pack(">HHIIBBHHH", ends[source][1], ends[1 - source][1], position[source], position[1 - source],
                                  5 << 4, 0x18, 65535, 0, 0)
                ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(part), 0, 0, 64, socket.IPPROTO_TCP, 0, ends[source][0],
                                 ends[1 - source][0])
                packet = ip + tcp + part
                moment += 1
                out.write(struct.pack("<IIII", 0, moment, len(packet), len(packet)) + packet)
                position[source] += len(part)
