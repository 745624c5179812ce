"""Which entries of a document were cut short: where full texts stood, their beginnings stand now (R10).

    cut_short(old, new, was_cut=())     # identities

No element says so, as the lack of full content does. So it has to show in all of these: what stands there is
a beginning of what stood there, it ends in a mark of cutting, and half of the entries were shortened at once.
An author who shortens an entry does one of them, or two.

What was cut before is compared with what it was cut from, too: a publisher that has its excerpts longer, or
another mark behind them ("Read more (4 comments)"), gives no more of the text than a beginning still.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from wholefeed.core.compose.entries import shown
from wholefeed.core.model import EntryId, FeedDocument, default_namespace
from wholefeed.core.verbatim.fragments import fragments_of


def cut_short(
    old: FeedDocument,
    new: FeedDocument,
    was_cut: Collection[EntryId],
    remembered: FeedDocument | None = None,
) -> frozenset[EntryId]:
    """Return which entries of a document were cut short since another one stood in its place.

    Args:
        old: The document that stood there.
        new: The one that stands there now.
        was_cut: What had been cut in the old one; it is cut still where it says the same up to the mark, or
            is a beginning of what is remembered of it.
        remembered: What was remembered last, where the fuller texts mostly are.
    """
    before, now = _first_ones(old), _first_ones(new)
    wholes = _remembered_texts(remembered, was_cut)
    common = [identity for identity in now if identity in before]
    lost, cut, same = 0, set[EntryId](), set[EntryId]()
    texts_before = _texts(old, (before[each] for each in common))
    texts_now = _texts(new, (now[each] for each in common))
    for identity, text_before, text in zip(common, texts_before, texts_now, strict=True):
        if identity in was_cut and _is_cut_still(text, text_before, wholes.get(identity, "")):
            same.add(identity)
        elif _is_beginning(text, text_before):
            cut.add(identity)
        elif old.entries[before[identity]].has_content and not new.entries[now[identity]].has_content:
            lost += 1
    return frozenset(same | cut if 2 * (lost + len(cut)) >= len(common) else same)


def _first_ones(document: FeedDocument) -> dict[EntryId, int]:
    """Return the place of the first entry of each identity."""
    return {entry.identity: place for place, entry in reversed([*enumerate(document.entries)])}


def _remembered_texts(remembered: FeedDocument | None, wanted: Collection[EntryId]) -> dict[EntryId, str]:
    """Return what is remembered of these entries."""
    if remembered is None:
        return {}
    places = {each: place for each, place in _first_ones(remembered).items() if each in wanted}
    return dict(zip(places, _texts(remembered, places.values()), strict=True))


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
    return any(whole.startswith(text[: mark.start()]) for mark in _marks(text))


def _is_cut_still(text: str, before: str, whole: str) -> bool:
    """Whether a text says as little as the one before it, which was cut, or is a beginning of the whole."""
    if text == before or _is_beginning(text, whole):
        return True
    mark, mark_before = next(_marks(text), None), next(_marks(before), None)
    if mark is None or mark_before is None:
        return False
    return text[: mark.start()] == before[: mark_before.start()]


def _marks(text: str) -> Iterator[re.Match[str]]:
    """Yield the marks of cutting at the end of a text."""
    return _MARK.finditer(text, max(0, len(text) - _LONGEST_MARK))


_LONGEST_MARK: Final = 200
"""In characters: "Continue reading" and the title."""
_MARK: Final = re.compile(
    r"[\[(]?(?:\u2026|\.{3}|\u00bb|\u2192|continuereading|read(?:the)?(?:more|rest|full)|\(more\)|\[more\])",
    re.IGNORECASE,
)
"""Without white space."""
