"""Roots of feeds that do not stand where they should (docs/repair.md).

Some servers put a feed into a page of HTML that shows nothing else, some templates write `< rss`.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from wholefeed.core.parse.repair.tokens import Mark, tokens

ROOT: Final = "root"

_LOOKED_AT_BYTES: Final = 1 << 16
_LOOKED_AT_TOKENS: Final = 1000
_ROOTS: Final = frozenset({b"rss", b"feed"})
_UNSEEN: Final = frozenset({b"title", b"script", b"style"})
"""Elements whose text is not part of what a page shows."""
_SPACED: Final = re.compile(rb"<(\s+)((?:[A-Za-z_][\w.-]*+:)?+(?:rss|feed|RDF))(?=[\s>])")
_WRITTEN: Final = re.compile(rb"<(?:[A-Za-z_][\w.-]*+:)?+(?:rss|feed|RDF)[\s>]")
_PROLOG_BYTES: Final = 4096


def wrapped_root(text: bytes) -> int:
    """Return where the root of a feed begins in a page of HTML that shows nothing before it, or 0."""
    unseen = b""
    for token in islice(tokens(text[:_LOOKED_AT_BYTES]), _LOOKED_AT_TOKENS):
        name = token.name.lower()
        if token.mark is Mark.START and name in _ROOTS:
            return token.start
        if token.mark is Mark.TEXT and not unseen and text[token.start : token.end].strip():
            return 0
        if token.mark is Mark.START and name in _UNSEEN:
            unseen = name
        elif token.mark is Mark.END and name == unseen:
            unseen = b""
    return 0


def without_spaces(text: bytes) -> bytes:
    """Return a document whose root is written `< rss` as it should be written; any other as it is."""
    root = _SPACED.search(text, 0, _PROLOG_BYTES)
    if root is None or _WRITTEN.search(text, 0, root.start()):
        return text
    end = re.compile(rb"</\s++(%s\s*+>)" % re.escape(root[2])).search(
        text, max(text.rfind(b"</"), root.end())
    )
    behind = (
        text[root.end(1) :] if end is None else text[root.end(1) : end.start()] + b"</" + text[end.start(1) :]
    )
    return text[: root.start(1)] + behind
