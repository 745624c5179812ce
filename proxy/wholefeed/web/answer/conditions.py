"""Content negotiation and conditional requests: pure functions over header values (RFC 9110, 12 and 13)."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final

_ENTITY_TAG: Final = re.compile(r'(?:W/)?("[^"]*")')


@lru_cache(maxsize=64)
def accepts_gzip(accept_encoding: str | None) -> bool:
    """Whether gzip is at least as welcome as the plain text (RFC 9110, 12.5.3)."""
    if not accept_encoding:
        return False
    weights: dict[str, float] = {}
    for part in accept_encoding.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        weights[name] = _weight(parameters)
    gzip = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return gzip > 0 and gzip >= weights.get("identity", 0.0)


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                weight = float(value)
            except ValueError:
                return 0.0
            return weight if 0.0 <= weight <= 1.0 else 0.0
    return 1.0


def is_not_modified(
    etag: str, modified_at: float, if_none_match: str | None, if_modified_since: str | None
) -> bool:
    """Whether a reader has this representation already (RFC 9110, 13.1.2, 13.1.3 and 13.2.2)."""
    if if_none_match is not None:
        if if_none_match == etag:  # as nearly every reader sends it
            return True
        return if_none_match.strip() == "*" or etag in _ENTITY_TAG.findall(if_none_match)
    if if_modified_since is None:
        return False
    try:
        since = parsedate_to_datetime(if_modified_since)
        since_at = since.timestamp()
    except (TypeError, ValueError, OverflowError):  # also of years that no clock has
        return False
    return since.tzinfo is not None and int(modified_at) <= since_at
