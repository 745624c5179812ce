"""A publisher with shifting archives: numbered from the newest entry, against RFC 5005 (section 4).

publisher = Shifting(origin)
publisher.publish(45)       # /feed has 45 to 36, /archive/1 35 to 26, and so on
publisher.publish(46)       # each archive has lost its oldest entry to the next one
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from tests.feeds import Item, an_item, atom, own_ids
from tests.origin import Origin

URL = "/feed"


def numbered(number: int) -> str:
    return f"/archive/{number}"


def paged(number: int) -> str:
    return f"{URL}?paged={number + 1}"


@dataclass
class Shifting:
    """The publisher; its entries are numbers."""

    origin: Origin | None = None
    make: Callable[..., bytes] = atom
    path_of: Callable[[int], str] = numbered
    size: int = 10
    """Entries of a document."""
    overlaps: bool = False
    """Whether the first archive begins with the newest entry, as the subscription document does."""
    is_undated: bool = False
    texts: dict[int, str] = field(default_factory=dict)
    """By entry; others have a default text."""

    def publish(self, count: int, gone: Collection[int] = ()) -> None:
        """Publish entries 1 to `count` except deleted ones."""
        assert self.origin is not None, "there is a server"
        for path, body in self.documents(count, gone).items():
            self.origin.publish(path, body, etag=f'"{hash(body)}"')

    def documents(self, count: int, gone: Collection[int] = ()) -> dict[str, bytes]:
        """Return the documents for this count, by path."""
        numbers = [number for number in numbers_to(count) if number not in gone]
        old = numbers if self.overlaps else numbers[self.size :]
        parts = [old[start : start + self.size] for start in range(0, len(old), self.size)]
        found = {URL: self._document(numbers[: self.size], self.path_of(1))}
        for at, part in enumerate(parts, 1):
            older = self.path_of(at + 1) if at < len(parts) else None
            found[self.path_of(at)] = self._document(part, older, archive=True)
        return found

    def _document(self, numbers: list[int], older: str | None, **flags: bool) -> bytes:
        items = [self.item(number) for number in numbers]
        return self.make(*items, updated=max(numbers), prev_archive=older, **flags)

    def item(self, number: int) -> Item:
        """Return an entry in its present form."""
        return an_item(str(number), None if self.is_undated else number, self.texts.get(number, ""))


def numbers_to(count: int) -> list[int]:
    """All published entries, newest first."""
    return list(range(count, 0, -1))


def numbers_in(body: bytes) -> list[int]:
    """The numbers of an answer's entries, sorted newest first."""
    return sorted(map(int, own_ids(body)), reverse=True)
