"""What is kept of the collecting of a feed's history from one refresh to the next (rules R28 to R31).

Instants are epoch seconds; those of the publisher's own clock are called dates.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Final, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Of one feed; as it is before anything was collected."""

    adapter: str = ""
    """Whose pattern it is; empty where none fits."""
    way: str = ""
    """How its pages are asked for, in the adapter's own words."""
    pages: int = 0
    """How many there are."""
    page_entries: int = 0
    """How many entries a full one has."""
    total: int | None = None
    """Entries that the publisher claims to have."""
    collected: int = 0
    """Entries that were met when all pages were asked for."""
    start_id: str = ""
    """What identified the last entry of the subscription document when all pages were asked for first: where
    pages are asked for by an entry, they are the same ones ever after."""
    top: str = ""
    """Identity of the first entry of the subscription document at the last look, in hexadecimal digits."""
    walk: int = 0
    """How often all pages were begun to be asked for; what the last such walk had serves after a restart."""
    began_at: float | None = None
    """When that was."""
    began_date: float | None = None
    """When the publisher had changed something last by then, by its own clock."""
    ended_at: float | None = None
    """When the last page of them was had, the last time that it came to that."""
    is_idle: bool = False
    """Whether the last look has brought nothing that was worth keeping."""
    looked_at: float | None = None
    """When it was looked for news last."""
    daily_at: float | None = None
    """When it was last asked for what is asked for once a day."""
    etag: str = ""
    last_modified: str = ""
    """Of the subscription document, at that time."""
    digest: str = ""
    """Of its body, in hexadecimal digits."""
    scanned_date: float | None = None
    """The latest date of the pages that were asked for by date of change."""
    is_tied: bool = False
    """Whether two pages by date of change bore one date: all pages have to be asked for again (R30)."""
    is_flat: bool = False
    """Whether all pages bore one date."""
    retry_at: float | None = None
    """Nothing is asked before: the pattern is not honoured (R27), or the publisher refused (R32)."""
    is_denied: bool = False
    """Whether the publisher has shown nothing of the pattern: the feed is a remembered one."""
    denials: int = 0
    """How often in a row that could not even be found out: the pauses between the tries grow."""
    reason: str = ""
    """Why; for people."""

    @property
    def is_begun(self) -> bool:
        """Whether all pages are being asked for, and some have not been had."""
        return self.began_at is not None and (self.ended_at is None or self.ended_at < self.began_at)

    @property
    def is_ended(self) -> bool:
        """Whether every page that the pattern reaches was read, once at least."""
        return self.ended_at is not None

    @classmethod
    def read(cls, text: str) -> Self:
        """Return what `written` gave; what another version knew more is left out."""
        values = json.loads(text)
        return cls(**{name: values[name] for name in _NAMES if name in values})

    def written(self) -> str:
        """Return it as JSON, without what is as it was in the beginning."""
        return json.dumps({name: value for name, value in asdict(self).items() if value != _DEFAULTS[name]})


NOTHING_COLLECTED: Final = "{}"
"""`Collection().written()`."""

_NAMES: Final = tuple(each.name for each in fields(Collection))
_DEFAULTS: Final = asdict(Collection())
