"""Where this proxy listens, so that it never fetches itself (docs/faults.md row 19)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any


class Listeners:
    """The addresses that the server listens on; known once it does."""

    def __init__(self) -> None:
        self._ports: dict[int, set[str]] = {}

    def add(self, addresses: Iterable[Any]) -> None:
        """Take socket addresses, as `getsockname` gives them."""
        for host, port, *_ in addresses:
            self._ports.setdefault(port, set()).add(host)

    def include(self, address: str, port: int) -> bool:
        """Return whether a connection to this IP address and port would reach the proxy.

        One that listens on every address is reached by any loopback one; by others it is recognised by its
        own Via field.
        """
        hosts = self._ports.get(port, set())
        if address in hosts:
            return True
        is_everywhere = not hosts.isdisjoint({"0.0.0.0", "::"})  # noqa: S104
        return is_everywhere and ipaddress.ip_address(address).is_loopback
