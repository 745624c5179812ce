"""Find one post under several ids (R36).

A trait is a digest: of the id apart from spelling, or of the link or title at its publication instant.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from wholefeed.core.compose.entries import WrittenFields, said_of
from wholefeed.core.facts import Stored
from wholefeed.core.listing.page_links import link_key
from wholefeed.core.model import Entry, EntryId, Family, FeedDocument, Traits, entry_id
from wholefeed.core.parse.identities import SPACES, absolute
from wholefeed.core.text.dates import parse_rfc822, parse_rfc3339
from wholefeed.core.text.markup import unescape


def read_traits(document: Stored | FeedDocument, ordinals: Sequence[int]) -> list[Traits]:
    """Return the traits of entries, of the first `MOST_ENTRIES` at most.

    Raises:
        ParseError: Another parser stored the document.
    """
    parsed = document.parse() if isinstance(document, Stored) else document
    wanted = [ordinal for ordinal in ordinals[:MOST_ENTRIES] if ordinal < len(parsed.entries)]
    said = {ordinal: _read_plainly(parsed, ordinal) for ordinal in wanted}
    rest = [ordinal for ordinal, each in said.items() if each is None]
    if rest:
        said.update(zip(rest, said_of(parsed, rest), strict=True))
    entries = parsed.entries
    return [
        _traits_of(entries[ordinal], each, each.base or parsed.scopes[entries[ordinal].scope].base)
        for ordinal, each in said.items()
        if each is not None
    ]


MOST_ENTRIES: Final = 10_000
"""Half a second of computing."""


# Fields of an entry, read without a tree of elements: a tree takes ten times as long

_TEXT: Final = rb"(?:\s[^<>]*)?>\s*(?:<!\[CDATA\[([^\]<]*)\]\]>|([^<]*))\s*</"
_ONE: Final = {
    name: re.compile(rb"<" + name + _TEXT + name + rb"\s*>")
    for name in (b"id", b"guid", b"title", b"link", b"published", b"pubDate")
}
_LINK: Final = re.compile(rb"<link((?:\s+[a-zA-Z]+\s*=\s*(?:\"[^\"<]*\"|'[^'<]*'))*)\s*/?>")
_ATTRIBUTE: Final = re.compile(rb"([a-zA-Z]+)\s*=\s*[\"']([^\"']*)[\"']")
_ODD: Final = re.compile(
    rb"<!--|xml:base|:(?:id|title|link|guid|published|pubDate|date)[\s>/]|<(?:issued|created|source)[\s>]"
)
"""Not read here, or changes the meaning of an entry."""


def _read_plainly(document: FeedDocument, ordinal: int) -> WrittenFields | None:
    """Return the fields as `said_of`; None: the entry is not plainly written."""
    entry = document.entries[ordinal]
    text = document.text[entry.start : entry.end]
    is_atom = text.startswith(b"<entry")
    if not (is_atom or (document.family is Family.RSS and text.startswith(b"<item"))) or _ODD.search(text):
        return None
    link = _atom_link(text) if is_atom else _one(text, b"link")
    id_text = _one(text, b"id" if is_atom else b"guid")
    title, date = _one(text, b"title"), _one(text, b"published" if is_atom else b"pubDate")
    if link is None or id_text is None or title is None or date is None or not (is_atom or (link and date)):
        return None
    at = (parse_rfc3339(date) if is_atom else parse_rfc822(date)) if date else None
    return None if date and at is None else WrittenFields(id_text, title, link, "", at)


def _one(entry: bytes, name: bytes) -> str | None:
    count = entry.count(b"<" + name)
    if not count:
        return ""
    found = _ONE[name].search(entry) if count == 1 else None
    if found is None:
        return None
    text = found[1].decode() if found[1] is not None else _unescape(found[2])
    return None if text is None else text.strip(SPACES)


_REFERENCE: Final = re.compile("&(?!(?:amp|lt|gt|quot|apos);)")


def _unescape(written: bytes) -> str | None:
    text = written.decode()
    if "&" not in text:
        return text
    return None if _REFERENCE.search(text) else unescape(text)


def _atom_link(text: bytes) -> str | None:
    found = [dict(_ATTRIBUTE.findall(each)) for each in _LINK.findall(text)]
    if len(found) != text.count(b"<link"):
        return None
    own = next((each for each in found if each.get(b"rel", b"alternate") in (b"", b"alternate")), {})
    is_written_out = any(b":" in each.get(b"rel", b"") for each in found)
    return None if is_written_out else _unescape(own.get(b"href", b""))


def _traits_of(entry: Entry, said: WrittenFields, base: str) -> Traits:
    link = absolute(base, said.href)
    title = " ".join(said.title.split())
    at = "" if said.published_at is None else str(int(said.published_at))
    has_id = entry.keys is None
    files = "" if entry.keys is None or entry.keys.enclosures is None else entry.keys.enclosures.hex()
    # The keys of R9 tell entries without an id apart: neither a link nor, if enclosures differ, a title joins
    # these.
    return Traits(
        ids=tuple(_id_traits(said.id.strip(SPACES) if has_id else link, title, at)),
        links=tuple(_link_traits(link, title, at, entry.order_at)) if has_id else (),
        titles=(_digest("title", at, title, files),) if at and title else (),
        link=entry_id(link) if link else None,
        has_id=has_id,
    )


def _id_traits(text: str, title: str, at: str) -> Iterable[int]:
    """Yield traits of an id, if it is a URL."""
    if not _IS_URL.match(text):
        return
    key, fragment = _url_key(text)
    yield _digest("id", key, fragment)
    # digits may count the edits of one post, or messages of equal title: only messages differ in publication
    if title and (not fragment or fragment.isdecimal()):
        yield _digest("numbered id", key, title, at)


def _link_traits(link: str, title: str, at: str, updated_at: float | None) -> Iterable[int]:
    if not link:
        return
    key = _url_key(link) if _IS_URL.match(link) else (link, "")
    if at:
        yield _digest("link", at, *key)
    elif title:
        # title and update both count: a generator may date all updates alike, and nightly builds share title
        # and link
        yield _digest("link and title", "" if updated_at is None else str(int(updated_at)), title, *key)


def _digest(*parts: str) -> int:
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, signed=True) & ~1 | parts[0].endswith("id")


def is_of_id(trait: int) -> bool:
    return bool(trait & 1)


_IS_URL: Final = re.compile(r"https?://", re.IGNORECASE)
_WEB_ARCHIVE: Final = re.compile(
    r"https?://[^/]+/(?:[\w.-]+/){0,2}[0-9]{4,14}(?:[a-z]{2}_)?/(?=https?://)", re.IGNORECASE
)
"""Prefix of links in mementos (R33)."""
_SESSION_PATH: Final = re.compile(r";(?:jsessionid|phpsessid|sid)=[^?#;/]*", re.IGNORECASE)
_SESSION: Final = re.compile(
    r"(?:jsessionid|phpsessid|aspsessionid\w*|session_?id|cfid|cftoken|fbclid|gclid|mc_[ce]id)=",
    re.IGNORECASE,
)
"""Parameters for a visitor or a referring page."""
_WWW: Final = re.compile(r"(?<=^//)www\.")


def _url_key(url: str) -> tuple[str, str]:
    """Return the part common to all spellings of a URL (H6), and the fragment."""
    url, _, fragment = _WEB_ARCHIVE.sub("", url).partition("#")
    path, mark, query = url.partition("?")
    kept = [each for each in query.split("&") if not _SESSION.match(each)]
    url = _SESSION_PATH.sub("", path) + (mark + "&".join(kept) if kept else "")
    return _WWW.sub("", link_key(url)), fragment


# Pairs of ids that are one post


def pair_posts(
    new: Mapping[EntryId, Traits],
    owners: Mapping[int, Collection[EntryId]],
    *,
    present: Collection[EntryId],
    ambiguous: Collection[EntryId] = (),
) -> dict[EntryId, EntryId]:
    """Map new ids to the identities their posts already have.

    `owners` has identities by trait. `present` are the document's other entries, never the same posts as
    new ones. Links in `ambiguous` (R9) do not count.
    """
    found: dict[EntryId, EntryId] = {}
    counted = {each: own.without_link(ambiguous) for each, own in new.items()}
    of_ids = {each: own.ids for each, own in counted.items()}
    beside = {each: (*own.links, *own.titles) for each, own in counted.items()}
    for traits in (of_ids, beside):
        left = {each: own for each, own in traits.items() if each not in found}
        crowded = {key for own in left.values() for key in own if len(owners.get(key, ())) > _MOST_TOLD}
        candidates = {
            each: {owner for key in own if key not in crowded for owner in owners.get(key, ())} - {each}
            for each, own in left.items()
        }
        claims = Counter(owner for each in candidates.values() for owner in each)
        taken = {*present, *found.values(), *(owner for key in crowded for owner in owners[key])}
        for each, alike in candidates.items():
            is_sole = len(alike) == 1 and not alike & taken and crowded.isdisjoint(left[each])
            if is_sole and claims[(owner := next(iter(alike)))] == 1:
                found[each] = owner
    return found


_MOST_TOLD: Final = 2
"""Owners of a trait. With more it tells nothing: at least two of them are not the new entry."""


def find_doubled(
    shared: Iterable[tuple[int, EntryId]], are_together: Callable[[EntryId, EntryId], bool]
) -> list[tuple[EntryId, EntryId]]:
    """Return posts stored twice because their ids changed unnoticed.

    `shared` is grouped by trait. `are_together`: whether a document holds both.
    """
    groups = [(key, {identity for _, identity in rows}) for key, rows in groupby(shared, key=itemgetter(0))]
    found = _unique((alike for key, alike in groups if is_of_id(key)), are_together)
    taken = {each for pair in found for each in pair}
    rest = _unique((alike - taken for key, alike in groups if not is_of_id(key)), are_together)
    return found + (rest if len(rest) >= FEWEST_DOUBLED else [])


FEWEST_DOUBLED: Final = 3
"""Fewer pairs joined by links or titles do not count: nobody knows whether their ids once stood together."""


def _unique(
    groups: Iterable[Collection[EntryId]], are_together: Callable[[EntryId, EntryId], bool]
) -> list[tuple[EntryId, EntryId]]:
    pairs, crowd = set[tuple[EntryId, ...]](), set[EntryId]()
    for alike in groups:
        if len(alike) > _MOST_TOLD:
            crowd.update(alike)
        elif len(alike) == _MOST_TOLD:
            pairs.add(tuple(sorted(alike)))
    times = Counter(each for pair in pairs for each in pair)
    return [
        (one, other)
        for one, other in sorted(pairs)
        if times[one] == times[other] == 1 and crowd.isdisjoint((one, other)) and not are_together(one, other)
    ]


class Names(NamedTuple):
    names: dict[EntryId, EntryId]
    """By an entry's own id, if different."""
    parted: list[EntryId]
    """Ids once taken for one post, now in one document: separate posts."""


def resolve_names(ids: Iterable[EntryId], posts: Mapping[EntryId, EntryId]) -> Names:
    """Return a document's identities; two ids in one document are two posts.

    `posts` has the identities of entries under another id.
    """
    bearers = defaultdict[EntryId, list[EntryId]](list)
    for each in dict.fromkeys(ids):
        bearers[posts.get(each, each)].append(each)
    found = Names({}, [])
    for identity, held in bearers.items():
        others = [each for each in held if each != identity]
        if len(held) == 1:
            found.names.update(dict.fromkeys(others, identity))
        else:
            found.parted.extend(others)
    return found
