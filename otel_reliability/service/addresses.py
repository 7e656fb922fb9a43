"""Addresses of endpoints, and whether other machines can reach them."""

from __future__ import annotations

import ipaddress
import re
from typing import Final, NamedTuple

OFF: Final = "off"
"""The address of an endpoint that is closed."""
_PORT: Final = r"[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
LISTENS: Final = rf"^(off|(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):({_PORT}))$"
"""Pattern of an address."""
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104  to know it, not to listen there
_LOCAL: Final = frozenset({"localhost", "ip6-localhost"})


class HostPort(NamedTuple):
    """A host and a port. Port 0 is any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def public(self) -> bool:
        """Return whether other machines can reach it. A name other than localhost counts as public.

        >>> (
        ...     HostPort("127.0.0.1", 4317).public,
        ...     HostPort("0.0.0.0", 4317).public,
        ...     HostPort("::1", 4317).public,
        ... )
        (False, True, False)
        """
        try:
            return not ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host not in _LOCAL

    def reached_by(self, host: str) -> HostPort:
        """Return the address for a client that knows this machine by that name: an endpoint on
        every interface is there too.

        >>> (
        ...     str(HostPort("0.0.0.0", 4317).reached_by("obs-1")),
        ...     str(HostPort("10.0.0.7", 4317).reached_by("obs-1")),
        ... )
        ('obs-1:4317', '10.0.0.7:4317')
        """
        return self._replace(host=host) if self.host in _EVERYWHERE else self


def parse_address(address: str) -> HostPort | None:
    """Return host and port of an address; None if the endpoint is off. Raise `ValueError` for text
    that is no address.

    >>> parse_address("[::1]:4317"), parse_address("localhost:0"), parse_address("off")
    (HostPort(host='::1', port=4317), HostPort(host='localhost', port=0), None)
    """
    found = re.fullmatch(LISTENS, address)
    if found is None:
        raise ValueError(address)
    return None if address == OFF else HostPort(found[2].strip("[]"), int(found[3]))
