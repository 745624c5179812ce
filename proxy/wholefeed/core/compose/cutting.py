"""Which entries of a document were cut short: where full texts stood, their beginnings stand now (R10).

    cut_short(old, new, was_cut=())     # identities

No element says so, as the lack of full content does. So it has to show in all of these: what stands there is
a beginning of what stood there, it ends in a mark of cutting, and half of the entries were shortened at once.
An author who shortens an entry does one of them, or two.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from wholefeed.core.compose.entries import shown
from wholefeed.core.model import EntryId, FeedDocument, default_namespace
from wholefeed.core.verbatim.fragments import fragments_of


def cut_short(old: FeedDocument, new: FeedDocument, was_cut: Collection[EntryId]) -> frozenset[EntryId]:
    """Return which entries of a document were cut short since another one stood in its place.

    Args:
        old: The document that stood there.
        new: The one that stands there now.
        was_cut: What had been cut in the old one; it is cut still where it says the same.
    """
    before, now = _first_ones(old), _first_ones(new)
    common = [identity for identity in now if identity in before]
    lost, cut, same = 0, set[EntryId](), set[EntryId]()
    texts_before = _texts(old, (before[each] for each in common))
    texts_now = _texts(new, (now[each] for each in common))
    for identity, text_before, text in zip(common, texts_before, texts_now, strict=True):
        if identity in was_cut and text == text_before:
            same.add(identity)
        elif _is_beginning(text, text_before):
            cut.add(identity)
        elif old.entries[before[identity]].has_content and not new.entries[now[identity]].has_content:
            lost += 1
    return frozenset(same | cut if 2 * (lost + len(cut)) >= len(common) else same)


def _first_ones(document: FeedDocument) -> dict[EntryId, int]:
    """Return the place of the first entry of each identity."""
    return {entry.identity: place for place, entry in reversed([*enumerate(document.entries)])}


def _texts(document: FeedDocument, places: Iterable[int]) -> Iterator[str]:
    """Yield what entries say, without markup, and without white space: whoever cuts a text sets that anew."""
    namespace = default_namespace(document.family, document.version)
    fragments = fragments_of(document, namespace)
    for place in places:
        said = shown(document.family, fragments.entry(place), namespace=namespace).content
        yield "".join(html.unescape(_TAG.sub("", said)).split())


_TAG: Final = re.compile(r"<[^<>]*>")


def _is_beginning(text: str, whole: str) -> bool:
    """Whether a text is the beginning of another one and ends in a mark of cutting."""
    if len(text) >= len(whole):
        return False
    start = max(0, len(text) - _LONGEST_MARK)
    marks = _MARK.finditer(text, start)
    return any(whole.startswith(text[: mark.start()]) for mark in marks)


_LONGEST_MARK: Final = 200
"""In characters: "Continue reading" and the title."""
_MARK: Final = re.compile(
    r"[\[(]?(?:\u2026|\.{3}|\u00bb|\u2192|continuereading|read(?:the)?(?:more|rest|full)|\(more\)|\[more\])",
    re.IGNORECASE,
)
"""Without white space."""
