"""When something is asked for, and when again: the subscription document, a feed that is polled, what failed.

    fresh_until = now + freshness_seconds(headers, now=now, minimum=300, default=900, maximum=86_400)
    next_at = next_attempt_at("timeout", None, attempts=1, now=now, …)    # in a minute
    seconds_left(noted_at, fresh_until, now=now, longest_seconds=86_400)
    poll_due_at(checked_at, noted_at, fresh_until, Times(now=now, …))

Instants are epoch seconds. What a wrong clock has noted puts nothing off (docs/faults.md row 73): `is_ahead`
knows it by the instant at which it was noted, which is later than now.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, Self

from wholefeed.core.slugs import may_pass
from wholefeed.core.text.dates import DAY_SECONDS, parse_http_date, parse_rfc822

# How long an answer is fresh, for a shared cache (RFC 9111)


def freshness_seconds(
    headers: Mapping[str, str], *, now: float, minimum: float, default: float, maximum: float
) -> float:
    """Return for how many seconds from now a document needs no second request.

    s-maxage counts before max-age, that before Expires (RFC 9111, section 4.2.1), which has passed where it
    is no HTTP-date; the Age that it came with is taken off. Of a repeated directive the first counts; an
    unreadable value means stale. Without any
    of these, `default`. Age since is the caller's to measure: its clock, not the publisher's.

    Args:
        headers: Of the answer; names in any case.
        now: Epoch seconds; for an Expires without a Date.
        minimum: Least result; also what no-cache and no-store give.
        default: Where the publisher says nothing.
        maximum: Largest result.
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
    """Return whether the publisher forbids to reuse the document unasked: no-cache or no-store.

    A no-cache that names fields concerns those alone (RFC 9111, section 5.2.2.4).
    """
    return _is_uncacheable(_directives(_fields(headers)))


def is_private(headers: Mapping[str, str]) -> bool:
    """Whether the document is meant for one reader alone: private or no-store (docs/faults.md row 26)."""
    directives = _directives(_fields(headers))
    return "private" in directives or "no-store" in directives


def age_seconds(headers: Mapping[str, str]) -> float:
    """Return for how long an answer has been in caches (RFC 9111, section 5.1); 0 where it says nothing."""
    return _age(_fields(headers))


class CacheFields(NamedTuple):
    """What an answer says of its use, as far as it counts here and outlasts a 304; empty: nothing.

    known.kept() | headers      # of a 304: what it does not bear is as it was (RFC 9111, section 3.2)
    """

    cache_control: str = ""
    expires: str = ""

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Self:
        """Return what an answer says; its header fields have lower-case names."""
        said = [
            name if _seconds(value) is None else f"{name}={value.strip()}"
            for name, value in _directives(headers).items()
            if name in _COUNTING and not (name == "no-cache" and value)
        ]
        expires = headers.get("expires")
        return cls(", ".join(said), "" if expires is None else expires[:_LONGEST_DATE] or _EXPIRED)

    def kept(self) -> dict[str, str]:
        """Return them as header fields."""
        return {name: value for name, value in zip(_CACHE_FIELDS, self, strict=True) if value}


_COUNTING: Final = frozenset({"s-maxage", "max-age", "no-cache", "no-store", "private"})
"""Directives that are kept, without what could make them long."""
_CACHE_FIELDS: Final = ("cache-control", "expires")
_EXPIRED: Final = "0"
_LONGEST_DATE: Final = 64
"""Characters of an HTTP-date, and more; what is cut here is none, and has expired."""


def _fields(headers: Mapping[str, str]) -> dict[str, str]:
    """Lower-case names; repeated fields in one list (RFC 9110, section 5.3)."""
    fields: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        fields[key] = f"{fields[key]}, {value}" if key in fields else value
    return fields


def _directives(fields: Mapping[str, str]) -> Mapping[str, str]:
    said = fields.get("cache-control", "")
    return _parsed(said) if len(said) <= _LONGEST_KEPT else _parsed.__wrapped__(said)


_LONGEST_KEPT: Final = 200
"""Characters of a Cache-Control whose directives are kept; who says more may say it differently each time."""


@lru_cache(maxsize=1024)  # publishers say the same each time, and it is asked for up to four times
def _parsed(cache_control: str) -> Mapping[str, str]:
    directives: dict[str, str] = {}
    for name, quoted, token in _DIRECTIVE.findall(cache_control):
        directives.setdefault(name.lower(), quoted or token)
    return directives


# RFC 9111, section 5.2: a token, or a quoted string that may hold commas.
_DIRECTIVE: Final = re.compile(r"([^\s=,;\"]+)\s*(?:=\s*(?:\"((?:[^\"\\]|\\.)*)\"?|([^\s,;]*)))?")


def _is_uncacheable(directives: Mapping[str, str]) -> bool:
    return "no-store" in directives or directives.get("no-cache") == ""


def _lifetime(fields: Mapping[str, str], directives: Mapping[str, str], now: float) -> float | None:
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
_LARGEST_SECONDS: Final = 2**31
"""RFC 9111, section 1.2.2: what is larger counts as this."""


# When a request, or a document that could not be had, is tried again (R14; docs/faults.md rows 54 to 56)


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
    """Return the instant, epoch seconds, before which a document is not asked for again.

    A publisher that names a delay (429, 503) is obeyed. 410 rests a day, a feed that is closed to us (401,
    403) too; 5xx, 408, 429 and a failing network begin with a minute that doubles up to six hours;
    everything else, `retry_missing_seconds`. None is tried before its host may be asked again.
    Never more than a day from now, however the clock has jumped (docs/faults.md row 73).

    Args:
        reason: Slug of the error or note.
        status: The publisher's HTTP status; None where there was none.
        attempts: How often it was tried, this time included; at least 1.
        now: Epoch seconds.
        retry_after_seconds: What the publisher asked for, or how long its host is left alone; None: neither.
        retry_missing_seconds: From the configuration.
        is_subscription: Whether it is the subscription document: the feed itself, not a part of it.
    """
    assert attempts >= 1, "an attempt has just failed"
    if retry_after_seconds is not None and status in (_TOO_MANY_REQUESTS, _UNAVAILABLE):
        delay = retry_after_seconds
    elif status == _GONE or (is_subscription and status in _CLOSED):
        delay = DAY_SECONDS
    elif may_pass(reason, status):
        delay = min(_FIRST_DELAY_SECONDS * 2.0 ** min(attempts - 1, 16), _LONGEST_DELAY_SECONDS)
    else:
        delay = retry_missing_seconds
    delay = max(delay, retry_after_seconds or 0.0)
    return now + min(max(delay, 1.0), DAY_SECONDS)


_GONE: Final = 410
_CLOSED: Final = frozenset({401, 403})
_TOO_MANY_REQUESTS: Final = 429
_UNAVAILABLE: Final = 503
_FIRST_DELAY_SECONDS: Final = 60.0
_LONGEST_DELAY_SECONDS: Final = 6 * 3600.0


def retry_after_seconds(value: str, *, now: float) -> float | None:
    """Return the delay that a Retry-After field asks for (RFC 9110, section 10.2.3); None when unreadable.

    Args:
        value: Seconds or an HTTP date.
        now: Epoch seconds.

    Returns:
        Seconds from now, from 1 to a day (docs/faults.md row 55).
    """
    text = value.strip()
    if re.fullmatch("-[0-9]+", text):
        return 1.0
    delay = _seconds(text)
    if delay is None:
        instant = parse_http_date(text, now=now)
        if instant is None:  # whoever asks to be left alone is, however that is written
            instant = parse_rfc822(text)
        if instant is None:
            return None
        delay = instant - now
    return min(max(delay, 1.0), DAY_SECONDS)


def backoff_seconds(attempt: int, jitter: float) -> float:
    """Return how long to wait before a request is tried again: 0.5 s, doubling to 8 s, less up to half.

    Args:
        attempt: How often it was tried again already.
        jitter: From 0 to 1; spreads tries that failed together.
    """
    pause_seconds = min(_FIRST_PAUSE_SECONDS * 2.0 ** min(attempt, 16), _LONGEST_PAUSE_SECONDS)
    return float(pause_seconds * (1 - jitter / 2))


_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 8.0


# When a permanent redirect of a subscription document is believed (docs/faults.md row 35; RFC 9110, 15.4.2)


def note_move(known: Move, target: str | None, *, now: float) -> Move:
    """Return what is known of a move after another answer.

    `target` is where the answer's redirects led that were all permanent; None: it did not move.
    """
    if target is None:
        return Move()
    if target == known.target and known.since is not None and known.since <= now:
        return Move(target, known.since, known.times + 1)
    return Move(target, now, 1)


def is_believed(move: Move, *, now: float) -> bool:
    """Return whether the document is to be asked for at the move's target from now on.

    One hijacked or misconfigured answer must not move a feed for good, so a move counts when it was seen
    three times in a row over more than a day.
    """
    return move.times >= _BELIEVED_TIMES and move.since is not None and now - move.since > _BELIEVED_SECONDS


class Move(NamedTuple):
    """Where permanent redirects have led of late."""

    target: str | None = None
    since: float | None = None
    """When they were first seen to, epoch seconds."""
    times: int = 0


_BELIEVED_TIMES: Final = 3
_BELIEVED_SECONDS: Final = DAY_SECONDS


# Whether what is stored of times is to be believed, and for how long it is waited for


def is_ahead(noted_at: float, *, now: float) -> bool:
    """Return whether what was noted as of an instant was noted by a clock that ran ahead.

    The clock has been put right since, or it is another replica's. Whatever was counted from there does not
    hold, however near it seems.
    """
    return noted_at > now + APART_SECONDS


APART_SECONDS: Final = 60.0
"""By so much clocks may differ, of replicas or of one before and after it was set: that delays nothing."""


def seconds_left(noted_at: float | None, until: float | None, now: float, longest_seconds: float) -> float:
    """Return for how long nobody is asked yet; 0: the time has come, or was noted by a wrong clock.

    Args:
        noted_at: When `until` was noted, epoch seconds; None: nobody knows.
        until: Where freshness ends (RFC 9111, section 4.2) or, after a failure, the next attempt; epoch
            seconds. None: nothing is waited for.
        now: Epoch seconds.
        longest_seconds: The furthest that it can be ahead.
    """
    left_seconds = 0.0 if until is None else until - now
    if not 0 < left_seconds <= longest_seconds:
        return 0.0
    is_true = noted_at is None or noted_at <= now or not is_ahead(noted_at, now=now)
    return left_seconds if is_true else 0.0


# When a known feed is polled, and how polls are spread over time


def poll_due_at(checked_at: float, noted_at: float, fresh_until: float, times: Times) -> float:
    """Return the instant from which a feed is polled: an interval after the last time, once it is stale.

    Nobody is asked sooner than they allow.

    Args:
        checked_at: When the publisher was last heard of, epoch seconds.
        noted_at: When `fresh_until` was noted: then, or at a failure since.
        fresh_until: Where its freshness ends or, after a failure, the next attempt.
        times: Now, and the configured ones.
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
    """What decides, beside the feed itself, whether it is due."""

    now: float
    """Epoch seconds."""
    interval_seconds: float
    """Between two polls of a feed."""
    longest_seconds: float
    """The furthest that a publisher's freshness, or the next attempt, can be ahead."""


def pause_seconds(*, interval_seconds: float, feeds: int, jitter: float, longest_seconds: float) -> float:
    """Return how long to wait between the starts of two polls, so that they spread evenly.

    All feeds together come by in half an interval to a whole one, unless `SHORTEST_PAUSE_SECONDS` or
    `longest_seconds` says otherwise; however many are due at once, after a start for example.

    Args:
        interval_seconds: Between two polls of a feed.
        feeds: How many are known.
        jitter: From 0 to 1.
        longest_seconds: Largest result; few feeds need not be spread over hours.
    """
    even_seconds = interval_seconds / max(feeds, 1) * (1 - jitter / 2)
    return min(max(even_seconds, SHORTEST_PAUSE_SECONDS), longest_seconds)


SHORTEST_PAUSE_SECONDS: Final = 0.05
"""Between the starts of two polls, however many feeds there are."""
