"""When something is asked for, and when again: the subscription document, a feed that is polled, what failed.

    fresh_until = now + freshness_seconds(headers, now=now, minimum=300, default=900, maximum=86_400)
    next_at = next_attempt_at("timeout", None, attempts=1, now=now, …)    # in a minute
    seconds_left(noted_at, fresh_until, now=now, longest_seconds=86_400)
    validators_of(headers, now=now)     # what a document can be asked for with on a condition
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
from wholefeed.core.text.dates import DAY_SECONDS, WEEK_SECONDS, parse_http_date, parse_rfc822

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
    return _parse(said) if len(said) <= _LONGEST_KEPT else _parse.__wrapped__(said)


_LONGEST_KEPT: Final = 200
"""Characters of a Cache-Control whose directives are kept; who says more may say it differently each time."""


@lru_cache(maxsize=1024)  # publishers say the same each time, and it is asked for up to four times
def _parse(cache_control: str) -> Mapping[str, str]:
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


# What tells whether a document has changed (RFC 9110, section 8.8; docs/faults.md rows 156, 157)


class ValidatorPair(NamedTuple):
    """ETag and Last-Modified, those that say anything of the document; empty where there is none.

    A server that compares a constant says 304 for ever.
    """

    etag: str = ""
    last_modified: str = ""

    def has_moved_from(self, earlier: ValidatorPair) -> bool:
        """Whether each one that there is differs from the earlier one: a server may go by either."""
        pairs = zip(self, earlier, strict=True)
        return any(self) and all(value != before for value, before in pairs if value)


NO_VALIDATORS: Final = ValidatorPair()


def validators_of(headers: Mapping[str, str], *, now: float) -> ValidatorPair:
    """Return the validators that an answer came with; `now` is when, for one without a Date.

    The names of its header fields are in lower case.
    """
    date = parse_http_date(headers.get("date", ""), now=now)
    given = headers.get("etag"), headers.get("last-modified")
    return sound_validators(*given, date=now if date is None else date)


def sound_validators(etag: str | None, last_modified: str | None, *, date: float) -> ValidatorPair:
    """Return those of two validators that are none of the constants which stand for "unknown".

        ETag            empty, `*`, zeros, a word such as null, the hash of nothing
        Last-Modified   unreadable, later than `date` (RFC 9110, section 8.8.2.1), or before there were feeds

    Epochs are 1970 (Unix), 1980 (zip files), 1985 (npm), 0001 (.NET).
    """
    return ValidatorPair(
        "" if etag is None or _is_constant(etag) else etag,
        "" if last_modified is None or not _is_instant(last_modified, date) else last_modified,
    )


def _is_constant(etag: str) -> bool:
    opaque = etag.strip().lower().removeprefix("w/").strip(_AROUND)
    for coding in _CODINGS:  # Apache's mod_deflate and others name it behind the tag
        opaque = opaque.removesuffix(coding).rstrip(_AROUND)
    return not opaque.strip("0-_.:;*") or opaque in _CONSTANTS


def _is_instant(last_modified: str, date: float) -> bool:
    at = parse_http_date(last_modified, now=date)
    if at is None:  # servers compare it as they have written it
        at = parse_rfc822(last_modified)
    return at is not None and _FIRST_FEED_AT <= at <= date


_AROUND: Final = "\"' \t"
_CODINGS: Final = ("-gzip", ";gzip", "-br", ";br")
_CONSTANTS: Final = frozenset(
    {
        *("null", "none", "nil", "undefined", "unknown", "false", "nan", "etag"),
        "d41d8cd98f00b204e9800998ecf8427e",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    }
)
"""The last three are MD5, SHA-1 and SHA-256 of nothing."""
_FIRST_FEED_AT: Final = 852_076_800.0
"""1 January 1997."""


def may_be_frozen(had_at: float, *, now: float) -> bool:
    """Return whether a publisher that says that nothing has changed is to be asked without conditions.

    It is where it has said nothing else for a week: since `had_at`, when it sent the document last.
    """
    return is_ahead(had_at, now=now) or now - had_at >= WEEK_SECONDS


def next_doubts(
    doubts: int, validators: ValidatorPair, stored: ValidatorPair, *, is_contradicted: bool
) -> int:
    """Return the doubts about a document's validators after one brought news that was asked for without.

        BELIEVED (0)    a 304 is contradicted, or the validators have not moved   -> FIRST_DOUBTS
        DOUBTED         the validators have moved with the news                   -> one doubt less
                        they have not                                             -> FIRST_DOUBTS

    Args:
        doubts: As they were.
        validators: Of the news.
        stored: Of what was there before.
        is_contradicted: Whether the publisher has just said that there is none.
    """
    if not any(validators):
        return 0
    if is_contradicted or not validators.has_moved_from(stored):
        return FIRST_DOUBTS
    return max(doubts - 1, 0)


FIRST_DOUBTS: Final = 2
"""So often validators have to change with the news until they are believed again."""


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
