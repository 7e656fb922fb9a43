"""Free ports on loopback for programs that must be told a number."""

from __future__ import annotations

import random
import socket

HOST = "127.0.0.1"
# Below the range from which the kernel numbers outgoing connections, so that no client takes a port
# between the moment it is found free and the moment its server binds it.
LOWEST = 20_000
HIGHEST = 32_000

_draw = (
    random.SystemRandom()
)  # pytest-randomly gives every worker the same seed: they would draw the same ports
_given: set[int] = set()


def free_port() -> int:
    """A port of this machine that nobody listens on and that this process has not been given
    before.
    """
    while True:
        port = _draw.randrange(LOWEST, HIGHEST)
        if port not in _given and _bindable(port):
            _given.add(port)
            return port


def _bindable(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
