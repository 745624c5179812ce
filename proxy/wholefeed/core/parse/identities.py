"""What identifies entries and feeds (rules R9 and R24; RFC 5005, appendix B).

An entry without an id of its own has several keys: its link, its enclosure, a hash of what it says. The first
one counts that is not ambiguous. What is ambiguous in a document shows only when all of it is known; what is
ambiguous in the feed is known to the store (`wholefeed.store.tables.identity_table`).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from wholefeed.core.model import MEMORY_URL, Entry, EntryId, EntryKeys, entry_id
from wholefeed.core.notes import IdentityRepeated, IdentityUnusable, Note
from wholefeed.core.parse.limits import MAX_LIKE_ENTRIES
from wholefeed.core.text.urls import resolve

SPACES: Final = " \t\r\n"
"""White space of XML 1.0, section 2.3."""


class FieldsNeededError(Exception):
    """An entry lacks what most have: its document must be read with all fields. `parse` does not raise it."""


def has_id(values: Mapping[str, str]) -> bool:
    """Whether an entry has an id of its own; an empty one is none."""
    return bool(values.get("id", "").strip(SPACES))


def entry_keys(values: Mapping[str, str], enclosures: Sequence[str], base: str) -> EntryKeys:
    """Return what can identify an entry: link, title, content or summary, media, authors and dates.

    The URLs of its enclosures are as written; relative ones count from `base`.
    """
    link = absolute(base, values.get("link", ""))
    files = [url for url in (absolute(base, each) for each in enclosures) if url]
    date = next((values[name] for name in _DATE_FIELDS if values.get(name)), "")
    said = (link, values.get("title", ""), values.get("content", values.get("summary", "")), *files, date)
    if media := values.get("media"):
        said += (media,)
    said += tuple(sorted({" ".join(values.get(name, "").split()) for name in _AUTHOR_FIELDS} - {""}))
    return EntryKeys(
        link=entry_id(link) if link else None,
        enclosure=_hidden("enclosure", files[:1]) if files else None,
        content=_hidden("content", said),
        enclosures=_hidden("enclosures", files) if files else None,
    )


_DATE_FIELDS: Final = ("published", "pubDate", "date", "updated")
_AUTHOR_FIELDS: Final = ("creator", "itunes_author", "rss_author", "atom_author")
"""Of RSS alone: in other formats an author may be the feed's, which a copy that is kept says itself."""


def _hidden(kind: str, parts: Iterable[str]) -> EntryId:
    """Digest texts so that no id and no link is ever the same: no document can hold U+0000."""
    digest = hashlib.sha256("\0".join(part.strip(SPACES) for part in parts).encode()).hexdigest()
    return entry_id(f"\0{kind} {digest}")


def check_distinct(url: str, entries: Sequence[Entry]) -> None:
    """See to it that entries which share an identity can be compared, and those that are merely numbered.

    Raises:
        FieldsNeededError: There are some, and what there is to compare was not collected.
    """
    if url.startswith(MEMORY_URL):
        return
    if len({entry.identity for entry in entries}) < len(entries) or _are_numbered(entries):
        raise FieldsNeededError


_FIRST_NUMBERS: Final = {entry_id("0"): 0, entry_id("1"): 1}
_FEWEST_NUMBERED: Final = 3


def _are_numbered(entries: Sequence[Entry]) -> bool:
    """Whether the ids of a document's entries are the numbers of their places, which are others tomorrow."""
    if len(entries) < _FEWEST_NUMBERED or entries[0].identity not in _FIRST_NUMBERS:
        return False
    first = _FIRST_NUMBERS[entries[0].identity]
    return all(
        entry.keys is None and entry.identity == entry_id(str(first + place))
        for place, entry in enumerate(entries)
    )


def told_apart(
    url: str,
    entries: Sequence[Entry],
    keys: Sequence[EntryKeys],
    titles: Sequence[EntryId],
    own_links: Sequence[str],
    text: bytes,
) -> Identified:
    """Return the entries of a document, those without an id identified, and of very many alike only some.

    Entries of a document of remembered copies come from several: that two share a key there means nothing,
    and they are as many as were remembered.

    `keys` and `titles` (digested) are of all entries, those with an id too; none where that was not
    collected. `own_links` is what the feed links to as itself, absolute.
    """
    if url.startswith(MEMORY_URL):
        return Identified(tuple(entry.identify(()) for entry in entries), frozenset(), ())
    if not keys:  # each entry has an id, and no two have the same one
        return Identified(_collapse(entries), _ambiguous_keys(own_links, ()), ())
    if unusable := _unusable_ids(entries, keys, titles):
        entries = [
            entry._replace(keys=own) if entry.keys is None and entry.identity in unusable else entry
            for entry, own in zip(entries, keys, strict=True)
        ]
    ids = {entry.identity for entry in entries if entry.keys is None}
    taken = ids.intersection(entry.keys.link for entry in entries if entry.keys is not None)
    ambiguous = _ambiguous_keys(own_links, keys, taken) | unusable.keys()
    identified = tuple(entry.identify(ambiguous) for entry in entries)
    notes = list[Note]()
    if unusable:
        notes.append(IdentityUnusable(url, entries=sum(unusable.values())))
    if unlike := _unlike_entries(identified, keys, text):
        notes.append(IdentityRepeated(url, entries=unlike))
    return Identified(_collapse(identified), ambiguous, tuple(notes))


class Identified(NamedTuple):
    """The entries of a document, with what identifies them as far as the document tells."""

    entries: tuple[Entry, ...]
    ambiguous: frozenset[EntryId]
    """As `FeedDocument.ambiguous`."""
    notes: tuple[Note, ...]


def _unusable_ids(
    entries: Sequence[Entry], keys: Sequence[EntryKeys], titles: Sequence[EntryId]
) -> dict[EntryId, int]:
    """Return the ids that identify nothing, by what stands in one document, and how many entries bear each.

    The titles of all their entries differ, and their links do, or their enclosures. Versions of one entry
    (RFC 4287, 4.1.1) have the title, or both of the others, in common. The same goes for ids that are the
    numbers of the places where their entries stand, which each page repeats.
    """
    if _are_numbered(entries) and _are_unlike(range(len(entries)), keys, titles):
        return {entry.identity: 1 for entry in entries}
    times = Counter(entry.identity for entry in entries if entry.keys is None)
    bearers: dict[EntryId, list[int]] = {identity: [] for identity, number in times.items() if number > 1}
    for place, entry in enumerate(entries):
        if entry.keys is None and entry.identity in bearers:
            bearers[entry.identity].append(place)
    return {
        identity: len(places) for identity, places in bearers.items() if _are_unlike(places, keys, titles)
    }


def _are_unlike(places: Sequence[int], keys: Sequence[EntryKeys], titles: Sequence[EntryId]) -> bool:
    """Whether the titles of all entries at these places differ, and their links do, or their enclosures."""
    return _all_differ(titles[place] for place in places) and (
        _all_differ(keys[place].link for place in places)
        or _all_differ(keys[place].enclosures for place in places)
    )


def _all_differ(values: Iterable[EntryId | None]) -> bool:
    """Whether no value is absent or stands twice."""
    found = list(values)
    return None not in found and len(set(found)) == len(found)


_MAX_OWN_LINKS: Final = 16


def _ambiguous_keys(
    own_links: Sequence[str], keys: Sequence[EntryKeys], taken: Iterable[EntryId] = ()
) -> frozenset[EntryId]:
    """Return the keys that identify nothing, by what stands in one document.

    The arguments are as in `told_apart`; `taken` are links of entries without an id which are the id of
    another.
    """
    bearers = Counter(key for own in keys for key in (own.link, own.enclosure) if key is not None)
    repeated = (key for key, times in bearers.items() if times > 1)
    return frozenset([*repeated, *taken, *(entry_id(link) for link in own_links[:_MAX_OWN_LINKS] if link)])


def _unlike_entries(entries: Sequence[Entry], keys: Sequence[EntryKeys], text: bytes) -> int:
    """Return how many entries share the identity of an earlier one and say something else.

    Copies of different update instants are versions of one entry (RFC 4287, 4.1.1). Entries without an id are
    alike in all that identifies them: of those the rest decides too, such as their categories.
    """
    if len({entry.identity for entry in entries}) == len(entries):
        return 0
    times = Counter(entry.identity for entry in entries)
    first: dict[EntryId, tuple[bytes, float | None]] = {}
    unlike = 0
    for entry, own in zip(entries, keys, strict=False):
        if times[entry.identity] == 1:
            continue
        said = own.content if entry.keys is None else _written(entry, text)
        held, updated_at = first.setdefault(entry.identity, (said, entry.updated_at))
        unlike += held != said and updated_at == entry.updated_at
    return unlike


def _written(entry: Entry, text: bytes) -> bytes:
    """Digest an entry as it is written, however it is broken into lines."""
    return hashlib.sha256(b" ".join(text[entry.start : entry.end].split())).digest()


def _collapse(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the entries without those, behind the first many, that repeat another's identity and date.

    Entries come by the hundred thousand that are all the same (docs/faults.md row 89). Of the copies of an
    entry in one document the latest counts, of equal dates the first (R10): the others would cost as much as
    any entry.
    """
    if len(entries) <= MAX_LIKE_ENTRIES:
        return tuple(entries)
    kept = list(entries[:MAX_LIKE_ENTRIES])
    seen = {(entry.identity, entry.updated_at, entry.keys) for entry in kept}
    for entry in entries[MAX_LIKE_ENTRIES:]:
        key = entry.identity, entry.updated_at, entry.keys
        if key not in seen:
            seen.add(key)
            kept.append(entry)
    return tuple(kept)


MAX_SITE_ID_CHARACTERS: Final = 2048


def site_id(text: str) -> str:
    """Return what names a feed, to compare others with (R24): of a text without measure the digest."""
    if len(text) <= MAX_SITE_ID_CHARACTERS:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


_HAS_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def absolute(base: str, reference: str) -> str:
    """Return the URL that is meant, character by character as written where it is absolute already."""
    written = reference.strip(SPACES)
    if not written or _HAS_SCHEME.match(written):
        return written
    try:
        return resolve(base, written)
    except ValueError:
        return written
