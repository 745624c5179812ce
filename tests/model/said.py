"""A publisher's statements, and the resulting kind of feed (docs/rules.md, R0 to R7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

DAY: Final = 86400.0
HOUR: Final = 3600.0


class Copy(NamedTuple):
    """An entry in one document. Instants are epoch seconds."""

    name: str
    text: str
    updated: float | None
    """The update instant of R10."""
    order: float | None
    """Sort key of R20."""


@dataclass(frozen=True, kw_only=True)
class Doc:
    family: str
    version: str = ""
    """Version of the format; another version is another body."""
    copies: tuple[Copy, ...] = ()
    updated: float | None = None
    links: Mapping[str, str] = field(default_factory=dict)
    """Path by relation."""
    flags: frozenset[str] = frozenset()
    """Any of complete, archive, incremental, snapshot."""
    buried: tuple[tuple[str, float], ...] = ()
    """Tombstones: name and instant."""
    is_uncacheable: bool = False
    max_age: float | None = None


@dataclass(frozen=True)
class Failure:
    """A failure in place of a document; status 0: the connection broke."""

    status: int
    retry_after: float | None = None


HOST_RESTS: Final = Failure(-1)
"""The host asked for a pause: nothing was sent."""

GONE: Final = frozenset({404, 410})
"""Statuses of documents withdrawn by their publisher."""
Got = Doc | Failure


class Kind(NamedTuple):
    """The statements of a subscription document."""

    name: str
    """complete, chain, paged or plain."""
    relation: str = ""
    is_stateful: bool = False


_PAGING: Final = frozenset({"next", "first", "last"})


def kind_of(doc: Doc) -> Kind:
    """R0: the first fitting kind."""
    has = doc.links.keys()
    stateful = "incremental" in doc.flags
    is_all = "complete" in doc.flags or ("snapshot" in doc.flags and not stateful)
    bare = next((each for each in ("prev", "previous") if each in has), "")
    chains = {  # R2 and R4, in their order
        "prev-archive": "prev-archive" in has,
        "fh:prev": "fh:prev" in has,
        "prev": "prev" in has and (stateful or "this" in has),
        "previous": "previous" in has and ("current" in has or "archive" in doc.flags),
        bare: bool(bare) and not has & _PAGING,
    }
    if is_all and "archive" not in doc.flags:
        return Kind("complete")  # R1, R5
    relation = next((name for name, counts in chains.items() if counts), "")
    if relation:
        return Kind("chain", relation, stateful)
    return Kind("paged") if bare or has & _PAGING else Kind("plain")
