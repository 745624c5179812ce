"""What identifies entries that have no id of their own (rule R9; RFC 5005, appendix B).

That is the link, where no other entry of the document has it, else a hash of link, title and content.
Whether a link is an entry's own shows only when all are known.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from wholefeed.core.model import ENTRY_ID_BYTES, Entry, EntryId, entry_id

SPACES: Final = " \t\r\n"
"""White space of XML 1.0, section 2.3."""

MAX_SITE_ID_CHARACTERS: Final = 2048
MAX_TITLE_CHARACTERS: Final = 1000


def site_id(text: str) -> str:
    """Return what names a feed, to compare others with (R24): of a text without measure the digest."""
    if len(text) <= MAX_SITE_ID_CHARACTERS:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def listed(text: str) -> tuple[EntryId, ...]:
    """Return the identities that a document of remembered copies lists, none if one of them is none."""
    try:
        found = tuple(EntryId(bytes.fromhex(word)) for word in text.split())
    except ValueError:
        return ()
    return found if all(len(each) == ENTRY_ID_BYTES for each in found) else ()


class FieldsNeededError(Exception):
    """An entry lacks what most have: its document must be read with all fields. Never leaves this package."""


class Alternative(NamedTuple):
    """What identifies an entry if need be."""

    link: str
    digest: EntryId | None
    """None where the entry has an id."""


def alternative(values: Mapping[str, str]) -> Alternative:
    """Return what identifies an entry, from its id, link, title and content or summary."""
    link = values.get("link", "").strip(SPACES)
    if values.get("id", "").strip(SPACES):
        return Alternative(link, None)
    parts = (link, values.get("title", ""), values.get("content", values.get("summary", "")))
    digest = hashlib.sha256("\0".join(part.strip(SPACES) for part in parts).encode()).hexdigest()
    # No document can hold U+0000: this is never the id of another entry.
    return Alternative(link, entry_id(f"\0{digest}"))


def identified(entries: Sequence[Entry], alternatives: Sequence[Alternative]) -> list[Entry]:
    """Return the entries, those without an id identified by what else they have."""
    bearers = Counter(each.link for each in alternatives)
    return [
        entry if each.digest is None else entry._replace(identity=_identity(each.link, each.digest, bearers))
        for entry, each in zip(entries, alternatives, strict=True)
    ]


def _identity(link: str, digest: EntryId, bearers: Mapping[str, int]) -> EntryId:
    return entry_id(link) if link and bearers[link] == 1 else digest
