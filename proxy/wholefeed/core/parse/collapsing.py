"""Entries by the hundred thousand that are all the same (docs/faults.md row 89).

Of the copies of an entry in one document the latest counts, of equal dates the first (R10). Behind
the first many the others are left out at once: they would cost as much as any entry.
"""

from __future__ import annotations

from wholefeed.core.model import Entry
from wholefeed.core.parse.limits import MAX_LIKE_ENTRIES
from wholefeed.core.terms import MEMORY_URL


def collapsed(url: str, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return the entries without those, behind the first many, that repeat another's identity and date.

    Args:
        url: Of the document. Remembered copies are as many as were remembered.
        entries: From the top, identified as far as their document tells.
    """
    if len(entries) <= MAX_LIKE_ENTRIES or url.startswith(MEMORY_URL):
        return entries
    kept = list(entries[:MAX_LIKE_ENTRIES])
    seen = {(entry.identity, entry.updated_at, entry.keys) for entry in kept}
    for entry in entries[MAX_LIKE_ENTRIES:]:
        key = entry.identity, entry.updated_at, entry.keys
        if key not in seen:
            seen.add(key)
            kept.append(entry)
    return tuple(kept)
