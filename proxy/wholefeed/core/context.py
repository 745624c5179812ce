"""What entries take from the head of their document when they are sent under another one."""

from __future__ import annotations

from typing import NamedTuple


class HeadContext(NamedTuple):
    """What entries inherit, self-contained: from RFC 4287, 4.2.1 and 4.2.10; in JSON Feed 1.1, "Items"."""

    authors: tuple[bytes, ...] = ()
    rights: tuple[bytes, ...] = ()
    language: bytes = b""
    """Of JSON Feed alone: in XML each entry says its own."""
