"""A reconstructed feed as an object: what `wholefeed.reconstruct` gives."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from wholefeed.core.compose.entries import Entries
from wholefeed.core.terms import State

_GZIP: Final = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link of the feed's head."""

    relation: str
    """In lower case: `alternate` is the site, `self` the feed."""
    url: str
    """Absolute."""
    media_type: str
    """As the link says, in lower case and without parameters; empty when it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A document of the feed that could not be had."""

    url: str
    reason: str
    """A slug; docs/faults.md lists them."""
    status: int | None
    """The HTTP status that the publisher answered with, where there was one."""
    attempts: int
    """How often it was asked for."""
    next_attempt: datetime
    """Before then a kept store does not ask for it again; aware, in UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A feed as it was reconstructed. It needs the store no more.

    Held in memory are the feed's documents and the document to be served, both compressed. Looking at entries
    reads one document at a time; `document` makes all of it in one piece.
    """

    url: str
    """The feed's canonical URL: that of its subscription document, whatever led there."""
    state: State
    """`complete`, `paged` or `remembered`; `partial` when something is missing, and `loading` when
    `wait_seconds` were over before the walk was. A str."""
    is_stale: bool
    """Whether the publisher could not be reached, so that this is what a kept store had."""
    title: str
    links: tuple[Link, ...]
    missing: tuple[Missing, ...]
    entries: Entries = field(repr=False)
    """In the order of the document. While the feed is `loading` they can be a few more than it has."""
    _coded: bytes = field(repr=False)

    def document(self) -> bytes:
        """Return the feed as one document in its own format: what the proxy would serve. Computes."""
        return zlib.decompress(self._coded, wbits=_GZIP)
