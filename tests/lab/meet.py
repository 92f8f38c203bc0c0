"""Two hosts wait for each other. usage: meet.py listen|dial ADDRESS PORT"""

import socket
import sys
import time

_PATIENCE = 120  # seconds


def _listen(address, port):
    with socket.create_server((address, port)) as listener:
        listener.settimeout(_PATIENCE)
        listener.accept()[0].close()


def _dial(address, port):
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            with socket.create_connection((address, port), _PATIENCE) as other:
                other.recv(1)  # its end
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def main():
    meet = {"listen": _listen, "dial": _dial}[sys.argv[1]]
    meet(sys.argv[2], int(sys.argv[3]))


if __name__ == "__main__":
    main()
