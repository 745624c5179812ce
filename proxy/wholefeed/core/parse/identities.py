"""Identify entries and feeds (rules R9 and R24; RFC 5005, appendix B).

An entry without an id has several keys: link, enclosure, a hash of its text. The first unambiguous one
counts. Ambiguity in the feed is known to the store (`wholefeed.store.tables.identity_table`).
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
    """The need to read a document again, with all fields. `parse` does not raise this error."""


def has_id(values: Mapping[str, str]) -> bool:
    """Return whether an entry has an id; an empty one does not count."""
    return bool(values.get("id", "").strip(SPACES))


def entry_keys(values: Mapping[str, str], enclosures: Sequence[str], base: str) -> EntryKeys:
    """Return the keys of an entry; enclosures may be relative to `base`."""
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
# RSS only: in other formats a remembered copy may state the feed's author itself, and its hash would differ.
_AUTHOR_FIELDS: Final = ("creator", "itunes_author", "rss_author", "atom_author")


def _hidden(kind: str, parts: Iterable[str]) -> EntryId:
    """Digest texts so that no id or link can have the same digest: no document can contain U+0000."""
    digest = hashlib.sha256("\0".join(part.strip(SPACES) for part in parts).encode()).hexdigest()
    return entry_id(f"\0{kind} {digest}")


def check_distinct(url: str, entries: Sequence[Entry]) -> None:
    """Check that entries neither share an identity nor are merely numbered.

    Raises:
        FieldsNeededError: Some do; comparing them needs all fields.
    """
    if url.startswith(MEMORY_URL):
        return
    if len({entry.identity for entry in entries}) < len(entries) or _are_numbered(entries):
        raise FieldsNeededError


_FIRST_NUMBERS: Final = {entry_id("0"): 0, entry_id("1"): 1}
_FEWEST_NUMBERED: Final = 3


def _are_numbered(entries: Sequence[Entry]) -> bool:
    # Ids that number the places of entries belong to other entries tomorrow.
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
    """Identify the entries of a document, and drop most of very many equal ones.

    `keys` and `titles` (digested) are of all entries, or empty if not read. `own_links`: the feed's own URLs,
    absolute.
    """
    if url.startswith(MEMORY_URL):
        # Remembered copies come from several documents: keys that they share mean nothing, and all are
        # needed.
        return Identified(tuple(entry.identify(()) for entry in entries), frozenset(), ())
    if not keys:  # each entry has its own id
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
    entries: tuple[Entry, ...]
    ambiguous: frozenset[EntryId]
    """Same as `FeedDocument.ambiguous`."""
    notes: tuple[Note, ...]


def _unusable_ids(
    entries: Sequence[Entry], keys: Sequence[EntryKeys], titles: Sequence[EntryId]
) -> dict[EntryId, int]:
    """Return the ids that identify nothing, with the number of entries that bear each."""
    # Ids that number the places of entries are repeated by each page.
    if _are_numbered(entries) and _are_unlike(range(len(entries)), keys, titles):
        return {entry.identity: 1 for entry in entries}
    # Versions of one entry (RFC 4287, 4.1.1) share the title, or both link and enclosures.
    times = Counter(entry.identity for entry in entries if entry.keys is None)
    bearers: dict[EntryId, list[int]] = {identity: [] for identity, number in times.items() if number > 1}
    for place, entry in enumerate(entries):
        if entry.keys is None and entry.identity in bearers:
            bearers[entry.identity].append(place)
    return {
        identity: len(places) for identity, places in bearers.items() if _are_unlike(places, keys, titles)
    }


def _are_unlike(places: Sequence[int], keys: Sequence[EntryKeys], titles: Sequence[EntryId]) -> bool:
    return _all_differ(titles[place] for place in places) and (
        _all_differ(keys[place].link for place in places)
        or _all_differ(keys[place].enclosures for place in places)
    )


def _all_differ(values: Iterable[EntryId | None]) -> bool:
    found = list(values)
    return None not in found and len(set(found)) == len(found)


_MAX_OWN_LINKS: Final = 16


def _ambiguous_keys(
    own_links: Sequence[str], keys: Sequence[EntryKeys], taken: Iterable[EntryId] = ()
) -> frozenset[EntryId]:
    """Return keys that identify nothing in a document; `taken` are links that equal another entry's id."""
    bearers = Counter(key for own in keys for key in (own.link, own.enclosure) if key is not None)
    repeated = (key for key, times in bearers.items() if times > 1)
    return frozenset([*repeated, *taken, *(entry_id(link) for link in own_links[:_MAX_OWN_LINKS] if link)])


def _unlike_entries(entries: Sequence[Entry], keys: Sequence[EntryKeys], text: bytes) -> int:
    """Return how many entries share an earlier entry's identity, but differ from it."""
    if len({entry.identity for entry in entries}) == len(entries):
        return 0
    times = Counter(entry.identity for entry in entries)
    first: dict[EntryId, tuple[bytes, float | None]] = {}
    unlike = 0
    for entry, own in zip(entries, keys, strict=False):
        if times[entry.identity] == 1:
            continue
        # Entries without an id are equal in all keys: the rest decides, such as their categories.
        said = own.content if entry.keys is None else _written(entry, text)
        held, updated_at = first.setdefault(entry.identity, (said, entry.updated_at))
        # Copies with different update instants are versions of one entry (RFC 4287, 4.1.1).
        unlike += held != said and updated_at == entry.updated_at
    return unlike


def _written(entry: Entry, text: bytes) -> bytes:
    return hashlib.sha256(b" ".join(text[entry.start : entry.end].split())).digest()


def _collapse(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Drop entries, after the first `MAX_LIKE_ENTRIES`, that repeat another's identity and date."""
    # Some documents repeat an entry a hundred thousand times (docs/faults.md row 89). Of an entry's copies in
    # one document the latest counts, of equal dates the first (R10), so the others only cost.
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
    """Return a text that identifies a feed, for comparison (R24); a digest if the text is long."""
    if len(text) <= MAX_SITE_ID_CHARACTERS:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


_HAS_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def absolute(base: str, reference: str) -> str:
    """Return the URL of a reference; an absolute or invalid one stays as written."""
    written = reference.strip(SPACES)
    if not written or _HAS_SCHEME.match(written):
        return written
    try:
        return resolve(base, written)
    except ValueError:
        return written
