"""Times of requests: freshness, polls, and attempts after failures.

Instants are epoch seconds. Times from a wrong clock delay nothing (docs/faults.md row 73).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, Self

from wholefeed.core.slugs import may_pass
from wholefeed.core.text.dates import DAY_SECONDS, WEEK_SECONDS, parse_http_date, parse_rfc822

# Freshness of a response, for a shared cache (RFC 9111)


def freshness_seconds(
    headers: Mapping[str, str], *, now: float, minimum: float, default: float, maximum: float
) -> float:
    """Return for how many seconds a response stays fresh in a shared cache (RFC 9111, section 4.2).

    The result lies between `minimum`, also for no-cache and no-store, and `maximum`. `default` is for
    responses without freshness fields. `now` is for an Expires without Date. The time since the response is
    not subtracted.
    """
    fields = _fields(headers)
    directives = _directives(fields)
    if _is_uncacheable(directives):
        return minimum
    lifetime = _lifetime(fields, directives, now)
    if lifetime is None:
        return min(max(default, minimum), maximum)
    return min(max(lifetime - _age(fields), minimum), maximum)


def is_uncacheable(headers: Mapping[str, str]) -> bool:
    """Return whether no-cache or no-store forbids reuse."""
    return _is_uncacheable(_directives(_fields(headers)))


def is_private(headers: Mapping[str, str]) -> bool:
    """Return whether a document is for one reader only: private or no-store (docs/faults.md row 26)."""
    directives = _directives(_fields(headers))
    return "private" in directives or "no-store" in directives


def age_seconds(headers: Mapping[str, str]) -> float:
    """Return the Age (RFC 9111, section 5.1); 0: absent."""
    return _age(_fields(headers))


class CacheFields(NamedTuple):
    """Caching fields; a 304 without one leaves it as it was (RFC 9111, section 3.2)."""

    cache_control: str = ""
    expires: str = ""

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Self:
        # `headers` have lower-case names.
        said = [
            name if _seconds(value) is None else f"{name}={value.strip()}"
            for name, value in _directives(headers).items()
            if name in _COUNTING and not (name == "no-cache" and value)
        ]
        expires = headers.get("expires")
        return cls(", ".join(said), "" if expires is None else expires[:_LONGEST_DATE] or _EXPIRED)

    def kept(self) -> dict[str, str]:
        return {name: value for name, value in zip(_CACHE_FIELDS, self, strict=True) if value}


# Directives to store; others could make the value long.
_COUNTING: Final = frozenset({"s-maxage", "max-age", "no-cache", "no-store", "private"})
_CACHE_FIELDS: Final = ("cache-control", "expires")
_EXPIRED: Final = "0"
# More than an HTTP-date has: a cut value is invalid, and so expired.
_LONGEST_DATE: Final = 64


def _fields(headers: Mapping[str, str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        # RFC 9110, section 5.3: repeated fields are one list.
        fields[key] = f"{fields[key]}, {value}" if key in fields else value
    return fields


def _directives(fields: Mapping[str, str]) -> Mapping[str, str]:
    said = fields.get("cache-control", "")
    return _parse(said) if len(said) <= _LONGEST_KEPT else _parse.__wrapped__(said)


# Longer values are not cached: they may differ each time.
_LONGEST_KEPT: Final = 200


@lru_cache(maxsize=1024)  # publishers send the same each time, and up to four callers ask for it
def _parse(cache_control: str) -> Mapping[str, str]:
    directives: dict[str, str] = {}
    for name, quoted, token in _DIRECTIVE.findall(cache_control):
        # The first of repeated directives counts.
        directives.setdefault(name.lower(), quoted or token)
    return directives


# RFC 9111, section 5.2: a token, or a quoted string that may hold commas.
_DIRECTIVE: Final = re.compile(r"([^\s=,;\"]+)\s*(?:=\s*(?:\"((?:[^\"\\]|\\.)*)\"?|([^\s,;]*)))?")


def _is_uncacheable(directives: Mapping[str, str]) -> bool:
    # RFC 9111, section 5.2.2.4: a no-cache with field names concerns those fields only.
    return "no-store" in directives or directives.get("no-cache") == ""


def _lifetime(fields: Mapping[str, str], directives: Mapping[str, str], now: float) -> float | None:
    # RFC 9111, section 4.2.1: s-maxage counts before max-age, and max-age before Expires. Unreadable values
    # mean stale.
    for name in ("s-maxage", "max-age"):
        if name in directives:
            return _seconds(directives[name]) or 0.0
    if "expires" not in fields:
        return None
    expires = parse_http_date(fields["expires"], now=now)
    if expires is None:  # RFC 9111, section 5.3: in the past
        return 0.0
    date = parse_http_date(fields.get("date", ""), now=now)
    return max(expires - (now if date is None else date), 0.0)


def _age(fields: Mapping[str, str]) -> float:
    return _seconds(fields.get("age", "").partition(",")[0]) or 0.0


def _seconds(text: str) -> float | None:
    text = text.strip()
    return float(min(int(text), _LARGEST_SECONDS)) if _SECONDS.fullmatch(text) else None


_SECONDS: Final = re.compile(r"[0-9]{1,20}")
# RFC 9111, section 1.2.2: larger values count as this.
_LARGEST_SECONDS: Final = 2**31


# Validators (RFC 9110, section 8.8; docs/faults.md rows 156, 157)


class ValidatorPair(NamedTuple):
    """ETag and Last-Modified; empty: absent or constant.

    A server that compares a constant sends 304 for ever.
    """

    etag: str = ""
    last_modified: str = ""

    def has_moved_from(self, earlier: ValidatorPair) -> bool:
        """Return whether each present validator differs from the earlier one: a server may use either."""
        pairs = zip(self, earlier, strict=True)
        return any(self) and all(value != before for value, before in pairs if value)


NO_VALIDATORS: Final = ValidatorPair()


def validators_of(headers: Mapping[str, str], *, now: float) -> ValidatorPair:
    """Return a response's validators; header names are in lower case, `now` replaces a missing Date."""
    date = parse_http_date(headers.get("date", ""), now=now)
    given = headers.get("etag"), headers.get("last-modified")
    return sound_validators(*given, date=now if date is None else date)


def sound_validators(etag: str | None, last_modified: str | None, *, date: float) -> ValidatorPair:
    """Remove constants that stand for "unknown"."""
    return ValidatorPair(
        "" if etag is None or _is_constant(etag) else etag,
        "" if last_modified is None or not _is_instant(last_modified, date) else last_modified,
    )


def _is_constant(etag: str) -> bool:
    opaque = etag.strip().lower().removeprefix("w/").strip(_AROUND)
    for coding in _CODINGS:  # Apache's mod_deflate and others name it behind the tag
        opaque = opaque.removesuffix(coding).rstrip(_AROUND)
    # Empty, `*`, zeros, a word such as null, or the hash of nothing.
    return not opaque.strip("0-_.:;*") or opaque in _CONSTANTS


def _is_instant(last_modified: str, date: float) -> bool:
    at = parse_http_date(last_modified, now=date)
    if at is None:  # servers compare it as they have written it
        at = parse_rfc822(last_modified)
    # RFC 9110, section 8.8.2.1: not after `date`; and not before there were feeds.
    return at is not None and _FIRST_FEED_AT <= at <= date


_AROUND: Final = "\"' \t"
_CODINGS: Final = ("-gzip", ";gzip", "-br", ";br")
_CONSTANTS: Final = frozenset(
    {
        # The hashes are MD5, SHA-1 and SHA-256 of nothing.
        *("null", "none", "nil", "undefined", "unknown", "false", "nan", "etag"),
        "d41d8cd98f00b204e9800998ecf8427e",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    }
)
# 1 January 1997: there were no feeds before. Usual epochs are earlier: 1980 (zip files), 1985 (npm), 1970
# (Unix), 0001 (.NET).
_FIRST_FEED_AT: Final = 852_076_800.0


def may_be_frozen(had_at: float, *, now: float) -> bool:
    """Return whether to ask without conditions: after a week of 304s since `had_at`, they may be false."""
    return is_ahead(had_at, now=now) or now - had_at >= WEEK_SECONDS


def next_doubts(
    doubts: int, validators: ValidatorPair, stored: ValidatorPair, *, is_contradicted: bool
) -> int:
    """Return the doubts about validators after an unconditional request brought news.

    Doubts fall by one if the validators changed with the news, else they become `FIRST_DOUBTS`. 0: validators
    are believed. `is_contradicted`: the publisher has just sent a 304 instead.
    """
    if not any(validators):
        return 0
    if is_contradicted or not validators.has_moved_from(stored):
        return FIRST_DOUBTS
    return max(doubts - 1, 0)


FIRST_DOUBTS: Final = 2
"""News with changed validators, before validators are believed again."""


# Attempts after failures (R14; docs/faults.md rows 54 to 56)


def next_attempt_at(
    reason: str,
    status: int | None,
    *,
    attempts: int,
    now: float,
    retry_after_seconds: float | None,
    retry_missing_seconds: float,
    is_subscription: bool = False,
) -> float:
    """Return the instant of the next attempt, at most a day from now.

    `reason` is the failure's slug. `attempts` counts failures in a row, at least 1. `retry_after_seconds` is
    the publisher's wish, or the pause of its host. `retry_missing_seconds` comes from the configuration.
    """
    assert attempts >= 1, "an attempt has just failed"
    # R14: a publisher's own delay is obeyed.
    if retry_after_seconds is not None and status in (_TOO_MANY_REQUESTS, _UNAVAILABLE):
        delay = retry_after_seconds
    # Gone, or a whole feed closed to us: once a day.
    elif status == _GONE or (is_subscription and status in _CLOSED):
        delay = DAY_SECONDS
    elif may_pass(reason, status):
        delay = min(_FIRST_DELAY_SECONDS * 2.0 ** min(attempts - 1, 16), _LONGEST_DELAY_SECONDS)
    else:
        delay = retry_missing_seconds
    # No attempt comes before the end of a host's pause, nor later than a day, even after a clock's jump
    # (docs/faults.md row 73).
    delay = max(delay, retry_after_seconds or 0.0)
    return now + min(max(delay, 1.0), DAY_SECONDS)


_GONE: Final = 410
_CLOSED: Final = frozenset({401, 403})
_TOO_MANY_REQUESTS: Final = 429
_UNAVAILABLE: Final = 503
_FIRST_DELAY_SECONDS: Final = 60.0
_LONGEST_DELAY_SECONDS: Final = 6 * 3600.0


def retry_after_seconds(value: str, *, now: float) -> float | None:
    """Parse Retry-After (RFC 9110, section 10.2.3); None: unreadable.

    The result is limited to 1 second up to a day (docs/faults.md row 55).
    """
    text = value.strip()
    if re.fullmatch("-[0-9]+", text):
        return 1.0
    delay = _seconds(text)
    if delay is None:
        instant = parse_http_date(text, now=now)
        if instant is None:  # a publisher that asks to be left alone is obeyed in any date format
            instant = parse_rfc822(text)
        if instant is None:
            return None
        delay = instant - now
    return min(max(delay, 1.0), DAY_SECONDS)


def backoff_seconds(attempt: int, jitter: float) -> float:
    """Return the pause before a retry: 0.5 s, doubling to 8 s, less up to half.

    `attempt` counts retries so far; `jitter`, 0 to 1, spreads simultaneous ones.
    """
    pause_seconds = min(_FIRST_PAUSE_SECONDS * 2.0 ** min(attempt, 16), _LONGEST_PAUSE_SECONDS)
    return float(pause_seconds * (1 - jitter / 2))


_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 8.0


# Permanent redirects of a subscription document (docs/faults.md row 35; RFC 9110, 15.4.2)


def note_move(known: Move, target: str | None, *, now: float) -> Move:
    """Update a move by another response; `target` is where permanent redirects alone led, if they did."""
    if target is None:
        return Move()
    if target == known.target and known.since is not None and known.since <= now:
        return Move(target, known.since, known.times + 1)
    return Move(target, now, 1)


def is_believed(move: Move, *, now: float) -> bool:
    """Return whether to use the move's target from now on.

    One hijacked or misconfigured response must not move a feed: three in a row over more than a day do.
    """
    return move.times >= _BELIEVED_TIMES and move.since is not None and now - move.since > _BELIEVED_SECONDS


class Move(NamedTuple):
    """The latest target of permanent redirects."""

    target: str | None = None
    since: float | None = None
    """First sighting, epoch seconds."""
    times: int = 0


_BELIEVED_TIMES: Final = 3
_BELIEVED_SECONDS: Final = DAY_SECONDS


# Plausibility of stored times


def is_ahead(noted_at: float, *, now: float) -> bool:
    """Return whether a clock ahead of ours wrote a note: another replica's, or ours before a correction."""
    return noted_at > now + APART_SECONDS


APART_SECONDS: Final = 60.0
"""Tolerated difference between such clocks."""


def seconds_left(noted_at: float | None, until: float | None, now: float, longest_seconds: float) -> float:
    """Return the seconds until the next request; 0: due, or noted by a wrong clock.

    `until`, noted at `noted_at` (None: unknown), is the end of freshness (RFC 9111, section 4.2) or the next
    attempt; None: no wait. A wait above `longest_seconds` is not plausible.
    """
    left_seconds = 0.0 if until is None else until - now
    if not 0 < left_seconds <= longest_seconds:
        return 0.0
    is_true = noted_at is None or noted_at <= now or not is_ahead(noted_at, now=now)
    return left_seconds if is_true else 0.0


# Polls of known feeds


def poll_due_at(checked_at: float, noted_at: float, fresh_until: float, times: Times) -> float:
    """Return when to poll a feed: an interval after the last response, but not while it is fresh.

    `fresh_until`, noted at `noted_at`, is the end of freshness or the next attempt.
    """
    now = times.now
    if is_ahead(noted_at, now=now):
        return now
    publisher = fresh_until if fresh_until <= now + times.longest_seconds else now
    if is_ahead(checked_at, now=now):
        return publisher
    return max(min(checked_at, now) + times.interval_seconds, publisher)


@dataclass(frozen=True, slots=True)
class Times:
    now: float
    interval_seconds: float
    """Between two polls of a feed."""
    longest_seconds: float
    """Furthest plausible wait."""


def pause_seconds(*, interval_seconds: float, feeds: int, jitter: float, longest_seconds: float) -> float:
    """Return the pause between the starts of two polls, so that polls spread evenly.

    All feeds pass in half an interval to a whole one, even if all are due at once. Limits are
    `SHORTEST_PAUSE_SECONDS` and `longest_seconds`: few feeds need not spread over hours. `jitter` is 0 to 1.
    """
    even_seconds = interval_seconds / max(feeds, 1) * (1 - jitter / 2)
    return min(max(even_seconds, SHORTEST_PAUSE_SECONDS), longest_seconds)


SHORTEST_PAUSE_SECONDS: Final = 0.05
