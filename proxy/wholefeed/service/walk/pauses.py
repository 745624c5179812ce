"""Hosts that have asked not to be asked for pages that they do not link (rule R32)."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

MAX_HOSTS: Final = 4096
"""Of those that were paused last."""


class HostPauses:
    """Belongs to one service; what is forgotten with it is known of each feed all the same."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def pause(self, url: str, until: float) -> None:
        """Leave the host of a URL in peace until then, epoch seconds."""
        host = urlsplit(url).hostname or ""
        self._until.pop(host, None)
        if len(self._until) >= MAX_HOSTS:
            del self._until[next(iter(self._until))]
        self._until[host] = until

    def until(self, url: str) -> float | None:
        """Return until when the host of a URL is left in peace, epoch seconds; None: not at all."""
        return self._until.get(urlsplit(url).hostname or "")
