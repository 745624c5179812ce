"""A generated archived Atom feed (RFC 5005, section 4): numbered archive documents of equal size.

    chain = Chain(archives=100, entries=20, entry_bytes=1500)
    chain.documents, chain.total_entries          # 101, 2020
    chain.archive(base, 41)                       # bytes; links to archive 40
    chain.subscription(base, added=1)             # the newest entries, after one more was written

The text is made of words that are as unevenly frequent as in prose, from a fixed seed: every run, and every
process, makes the same bytes.
"""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_SEED: Final = 5005
_POOL_CHARACTERS: Final = 1 << 21
_FIRST_AT: Final = 978_307_200
"""Instant of the first entry, 2001-01-01; each further entry is an hour later."""
_SMALL_BYTES: Final = 200
_HEAD: Final = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0" xml:lang="en">
<id>tag:generated.test,2001:feed</id><title>Generated</title><author><name>A. Author</name></author>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """One feed: a subscription document and the archive documents behind it, 1 the oldest.

    Args:
        archives: Archive documents.
        entries: In each document, the subscription document included.
        entry_bytes: Of each entry, about; below 200 it has an identity, a title and a date, and no text.
        links_last: Whether the links stand behind the entries, where no reader finds them early.
    """

    archives: int
    entries: int
    entry_bytes: int
    links_last: bool = False

    @property
    def documents(self) -> int:
        return self.archives + 1

    @property
    def total_entries(self) -> int:
        return self.documents * self.entries

    def archive(self, base: str, number: int) -> bytes:
        """Return an archive document; `base` is the publisher's address."""
        links = f'<fh:archive/><link rel="current" href="{base}/feed"/>'
        if number > 1:
            links += f'<link rel="prev-archive" href="{base}/archive/{number - 1}"/>'
        return self._document(number * self.entries, links)

    def subscription(self, base: str, *, added: int = 0) -> bytes:
        """Return the subscription document after that many entries were added and fell out."""
        links = f'<link rel="self" href="{base}/feed"/>'
        if self.archives:
            links += f'<link rel="prev-archive" href="{base}/archive/{self.archives}"/>'
        return self._document(self.total_entries + added, links)

    def _document(self, newest: int, links: str) -> bytes:
        """Write the entries up to `newest`; entries are numbered from 1, the oldest."""
        entries = "".join(_entry(newest - place, self.entry_bytes) for place in range(self.entries))
        updated = f"<updated>{_instant(newest)}</updated>\n"
        before, behind = ("", links) if self.links_last else (links + "\n", "")
        return f"{_HEAD}{updated}{before}{entries}{behind}</feed>\n".encode()


def _entry(number: int, size_bytes: int) -> str:
    if size_bytes < _SMALL_BYTES:
        return (
            f"<entry><id>tag:g.test,2001:{number}</id><title>{number}</title>"
            f"<updated>{_instant(number)}</updated></entry>\n"
        )
    chance = random.Random(number)
    pool = _pool()
    length = max(0, size_bytes - 390)
    at = chance.randrange(len(pool) - length - 40)
    title, text = pool[at : at + 40].strip(), pool[at + 40 : at + 40 + length]
    return (
        f"<entry><id>tag:generated.test,2001:{number}</id><title>{number}: {title}</title>"
        f'<link href="http://generated.test/{number}"/><updated>{_instant(number)}</updated>'
        f'<category term="{"abcdefgh"[number % 8]}"/><content type="html">&lt;p&gt;{text}'
        '&lt;a href="http://generated.test/about"&gt;about&lt;/a&gt;&lt;/p&gt;</content></entry>\n'
    )


def _instant(number: int) -> str:
    return datetime.fromtimestamp(_FIRST_AT + 3600 * number, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@functools.cache
def _pool() -> str:
    """Prose for entries, long enough that neighbours share none."""
    chance = random.Random(_SEED)
    letters = "aaabcdeeeeefghiiijklmnnnoooprssstttuvwyéü"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 10))) for _ in range(4000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    return " ".join(chance.choices(words, weights, k=_POOL_CHARACTERS // 5))
