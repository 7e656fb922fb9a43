"""Where doors listen, and whether others than this machine can reach them."""

from __future__ import annotations

import ipaddress
from typing import Final, NamedTuple

OFF: Final = "off"
"""The address of an endpoint that is closed."""
_PORT: Final = r"[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
LISTENS: Final = rf"^(off|(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):({_PORT}))$"
"""What an address looks like."""
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104  to know it, not to listen there
_LOCAL: Final = frozenset({"localhost", "ip6-localhost"})


class Place(NamedTuple):
    """A host and a port. Port 0 is any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def public(self) -> bool:
        """Whether others than this machine can reach it. A name counts as public: who knows what it will resolve to.

        >>> Place("127.0.0.1", 4317).public, Place("0.0.0.0", 4317).public, Place("::1", 4317).public
        (False, True, False)
        """
        try:
            return not ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host not in _LOCAL

    def reached_by(self, host: str) -> Place:
        """Where a client finds it that knows this machine by that name: a door on every interface is there too.

        >>> str(Place("0.0.0.0", 4317).reached_by("obs-1")), str(Place("10.0.0.7", 4317).reached_by("obs-1"))
        ('obs-1:4317', '10.0.0.7:4317')
        """
        return self._replace(host=host) if self.host in _EVERYWHERE else self


def place_of(address: str) -> Place | None:
    """Where an address is; None where the door is off.

    >>> place_of("[::1]:4317"), place_of("localhost:0"), place_of("off")
    (Place(host='::1', port=4317), Place(host='localhost', port=0), None)
    """
    if address == OFF:
        return None
    host, colon, port = address.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not colon or not bare or (":" in bare) != (host != bare):
        raise ValueError
    if not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ValueError
    return Place(bare, int(port))
