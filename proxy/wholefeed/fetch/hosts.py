"""What is known of a publisher's host, and what follows from it for the next request. Pure.

    host = Host("example.org", Pace(4))
    start = host.begin(443, now=10.0)
    host.learn(start, Outcome(is_strained=True, rest_seconds=60.0), now=11.0)
    assert host.rest(443, is_new=False, now=12.0) == Rest("host-backoff", 59.0)

How many requests a host gets at once is its `Pace`; whether a port of it is asked at all, a `Breaker`. The
rules hold for the requests of one process (`wholefeed.fetch.politeness`, which waits) and for those of many
that share what they know (`Places`): who counts the requests, and by which clock, is not decided here.
Instants are seconds of one clock.
"""

from __future__ import annotations

import json
import math
from collections.abc import Set
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Self

from wholefeed.core.text.dates import DAY_SECONDS

BACKOFF_STATUSES: Final = frozenset({429, 503})
"""Signs of strain, whose Retry-After counts for the whole host (docs/faults.md row 55)."""

TIMEOUTS: Final = frozenset({"timeout", "dns-timeout"})
"""Slugs that are signs of strain too."""

BACKOFF: Final = "host-backoff"
"""Slug of what a host is spared because it asked for that."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a request was begun."""

    port: int
    at: float
    is_exception: bool = False
    """Whether it was begun for a document that was never seen though the host had asked for rest."""
    is_probe: bool = False
    """Whether it finds out if a port can be reached again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a request found out about its host."""

    slug: str = ""
    """Of the failure where no whole answer came."""
    is_heard: bool = True
    """Whether an answer has begun."""
    is_strained: bool = False
    """Whether the status of the answer is one of `BACKOFF_STATUSES`."""
    rest_seconds: float | None = None
    """For how long it asks that the host be left alone (Retry-After)."""

    @property
    def is_good(self) -> bool:
        """Whether it says nothing that others must know."""
        return not self.slug and not self.is_strained and self.rest_seconds is None


@dataclass(frozen=True, slots=True)
class Rest:
    """A request may not be begun: why, and for how long."""

    slug: str
    """`BACKOFF`, or that of the latest failure."""
    seconds: float


class Change(Enum):
    """What became of a port."""

    RECOVERED = "recovered"
    RESTED = "rested"


_MAX_PORTS: Final = 64
"""Of one host that are remembered for having failed."""


@dataclass(slots=True, eq=False)
class Host:
    """What is known of one host."""

    name: str
    pace: Pace
    next_start_at: float = 0.0
    blocked_until: float = 0.0
    closed_until: float = 0.0
    """As `blocked_until`, for documents that were never seen too."""
    breakers: dict[int, Breaker] = field(default_factory=dict)
    """By port; of those where something has failed."""

    def is_unremarkable(self, now: float) -> bool:
        """Whether there is nothing to remember of it."""
        is_waited_for = now < self.next_start_at or now < self.blocked_until
        return self.pace.is_usual and not (is_waited_for or self.breakers)

    def rest(self, port: int, *, is_new: bool, now: float) -> Rest | None:
        """Return why a request may not be begun, if it may not.

        `is_new` says whether it is for a subscription document that was never seen. What one URL was told
        says nothing of another, so each such document is asked for once, unless one was answered like the
        first.
        """
        blocked_until = self.closed_until if is_new else self.blocked_until
        if now < blocked_until:
            return Rest(BACKOFF, blocked_until - now)
        breaker = self.breakers.get(port)
        if breaker is None or (seconds := breaker.refused_seconds(now)) <= 0:
            return None
        return Rest(breaker.reason, seconds)

    def rest_seconds(self, port: int, now: float) -> float:
        """Return for how long a host, or a port of it, is left alone; 0 or less when it is not."""
        breaker = self.breakers.get(port)
        return max(self.blocked_until - now, 0.0 if breaker is None else breaker.refused_seconds(now))

    def begin(self, port: int, *, now: float, interval_seconds: float = 0.0) -> Start:
        """A request begins; the next one may after the interval."""
        if interval_seconds > 0:
            self.next_start_at = now + interval_seconds
        breaker = self.breakers.get(port)
        is_probe = breaker is not None and breaker.begun()
        return Start(port, now, is_exception=now < self.blocked_until, is_probe=is_probe)

    def block(self, until: float) -> None:
        """Leave the host alone until then. The latest instant counts."""
        self.blocked_until = max(self.blocked_until, until)

    def learn(self, start: Start, outcome: Outcome, *, now: float) -> Change | None:
        """A request has found this out; return what has become of its port."""
        if outcome.is_heard or outcome.slug not in UNHEARD:
            change = self._heard(start.port) if self.breakers else None
        else:
            change = self._unheard(start.port, outcome.slug, now)
        if outcome.is_strained or outcome.slug in TIMEOUTS:
            self.pace.strained(started_at=start.at, now=now)
        elif not outcome.slug:
            self.pace.answered()
        if outcome.rest_seconds is not None:
            self.block(now + outcome.rest_seconds)
        if outcome.is_strained and start.is_exception:
            self.closed_until = self.blocked_until
        return change

    def give_up(self, start: Start) -> None:
        """A request has ended and says nothing about the host."""
        breaker = self.breakers.get(start.port)
        if start.is_probe and breaker is not None:
            breaker.given_up()

    def obey(self, rest: Rest, port: int, *, is_new: bool, now: float) -> Change | None:
        """Others know that a request may not be begun, which was not known here."""
        until = now + rest.seconds
        if rest.slug == BACKOFF:
            self.block(until)
            self.closed_until = until if is_new else self.closed_until
            return None
        breaker = self._breaker(port)
        was_closed = breaker.is_closed
        breaker.rest(rest.slug, until)
        return Change.RESTED if was_closed else None

    def state(self) -> dict[str, Any]:
        """Return what is known, as JSON has it; what is usual is left out."""
        instants = {name: value for name in _INSTANTS if (value := getattr(self, name))}
        ports = {str(port): breaker.state() for port, breaker in self.breakers.items()}
        pace = {} if self.pace.is_usual else {"pace": self.pace.state()}
        return instants | pace | ({"ports": ports} if ports else {})

    @classmethod
    def from_state(cls, name: str, most: int, state: dict[str, Any]) -> Self:
        """Return a host of which `state` gave this; so many requests at once are usual."""
        host = cls(name, Pace.from_state(most, state.get("pace", {})))
        for instant in _INSTANTS:
            setattr(host, instant, state.get(instant, 0.0))
        ports = state.get("ports", {})
        host.breakers = {int(port): Breaker.from_state(each) for port, each in ports.items()}
        return host

    def _heard(self, port: int) -> Change | None:
        """Something was heard of a port: it is as good as any."""
        breaker = self.breakers.pop(port, None)
        return Change.RECOVERED if breaker is not None and not breaker.is_closed else None

    def _unheard(self, port: int, slug: str, now: float) -> Change | None:
        breaker = self._breaker(port)
        was_closed = breaker.is_closed
        breaker.failed(slug, now=now)
        return Change.RESTED if was_closed and not breaker.is_closed else None

    def _breaker(self, port: int) -> Breaker:
        if port not in self.breakers and len(self.breakers) >= _MAX_PORTS:
            del self.breakers[next(iter(self.breakers))]
        return self.breakers.setdefault(port, Breaker())


_INSTANTS: Final = ("next_start_at", "blocked_until", "closed_until")

# How many requests at once


class Pace:
    """How many requests a host may be asked at once: more while it answers well, half when it shows strain.

    Additive increase and multiplicative decrease, as in RFC 5681, section 3.1: after as many good answers as
    requests are allowed at once, one more is; a sign of strain (429, 503, a time-out) halves them. Requests
    that were under way when they were halved say nothing new: what fails together counts once. It begins at
    the most.

        pace = Pace(most=4)
        pace.strained(started_at=10.0, now=12.0)
        assert pace.allowed == 2

    Args:
        most: Requests at once at most (`fetch.concurrency_per_host`); at least 1.
    """

    __slots__ = ("_good", "_halved_at", "allowed", "is_limited", "most")

    def __init__(self, most: int) -> None:
        assert most >= 1, "the configuration is checked"
        self.most = most
        self.allowed = most
        self.is_limited = False
        """Whether it was told to allow no more than so many."""
        self._good = 0
        self._halved_at = -math.inf

    @property
    def is_usual(self) -> bool:
        """Whether it is as it began."""
        return self.allowed == self.most and not self.is_limited

    def limit(self, most: int | None) -> None:
        """Allow no more than so many from now on; None: as many as before."""
        self.most = self.most if most is None else min(self.most, most)
        self.is_limited = self.is_limited or most is not None
        self.allowed = min(self.allowed, self.most)

    def answered(self) -> None:
        self._good += 1
        if self._good >= self.allowed:
            self._good = 0
            self.allowed = min(self.allowed + 1, self.most)

    def strained(self, *, started_at: float, now: float) -> None:
        """A request that started then was turned away, or was not answered in time. Both in seconds."""
        if started_at < self._halved_at:
            return
        self._halved_at = now
        self._good = 0
        self.allowed = max(1, self.allowed // 2)

    def follow(self, allowed: int) -> None:
        """Others know how many requests it bears at once."""
        self.allowed = max(1, min(allowed, self.most))

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"allowed": self.allowed, "good": self._good}
        if self.is_limited:
            state["limit"] = self.most
        if self._halved_at > -math.inf:
            state["halved_at"] = self._halved_at
        return state

    @classmethod
    def from_state(cls, most: int, state: dict[str, Any]) -> Self:
        """Return a pace of which `state` gave this, where so many at once are the most."""
        pace = cls(most)
        pace.limit(state.get("limit"))
        pace.allowed = min(state.get("allowed", pace.most), pace.most)
        pace._good = state.get("good", 0)
        pace._halved_at = state.get("halved_at", -math.inf)
        return pace


# Whether it is asked at all

FAILURES_TO_REST: Final = 5
"""Failures in a row."""

PAUSE_SECONDS: Final = 60.0
"""docs/faults.md row 21: also how long a name without an address is not looked up again."""

_PROBE_SECONDS: Final = 1.0

NAME_FAILURES: Final = frozenset({"dns-error", "dns-timeout"})
UNHEARD: Final = NAME_FAILURES | {"connection-failed", "timeout"}
"""Slugs of failures that count, where no answer had begun."""


class Breaker:
    """Whether a port of a host that fails is asked at all; begins closed.

    CLOSED    requests go through; those in a row of which nothing was heard are counted
              -> RESTING at `FAILURES_TO_REST` of them, or at once where the name has no address
    RESTING   no request goes through for `PAUSE_SECONDS`
              -> PROBING when one is begun after that
    PROBING   that one is under way, no other goes through
              -> RESTING when nothing is heard, or, its pause over, when it was given up

    When something is heard, whoever holds the breaker drops it: a port without one is as good as any. An
    answer is an answer, whatever its status: how a host that answers is treated is the subject of `Pace`.

        breaker = Breaker()
        breaker.failed("connection-failed", now=10.0)
        assert breaker.refused_seconds(10.0) == 0
    """

    __slots__ = ("_failures", "_is_probing", "_rests_until", "reason")

    def __init__(self) -> None:
        self._failures = 0
        self._rests_until: float | None = None
        self._is_probing = False
        self.reason = ""
        """Slug of the latest failure."""

    @property
    def is_closed(self) -> bool:
        """Whether requests go through."""
        return self._rests_until is None

    def refused_seconds(self, now: float) -> float:
        """Return for how long no request goes through; 0 when one may be begun."""
        if self._rests_until is None:
            return 0.0
        if self._is_probing:
            return _PROBE_SECONDS
        return max(0.0, self._rests_until - now)

    def begun(self) -> bool:
        """A request begins; return whether it is the probe."""
        self._is_probing = self._rests_until is not None
        return self._is_probing

    def failed(self, reason: str, *, now: float) -> None:
        """Nothing was heard of a request; the slug is one of `UNHEARD`."""
        self.reason = reason
        self._failures += 1
        if self._failures >= FAILURES_TO_REST or reason in NAME_FAILURES or not self.is_closed:
            self._rests_until = now + PAUSE_SECONDS
        self._is_probing = False

    def given_up(self) -> None:
        """The probe ended and says nothing about the host; the next request is one."""
        self._is_probing = False

    def rest(self, reason: str, until: float) -> None:
        """Others know that no request goes through until then."""
        self.reason = reason
        self._rests_until = max(until, self._rests_until or until)

    def state(self) -> dict[str, Any]:
        return {
            "reason": self.reason,
            "failures": self._failures,
            "rests_until": self._rests_until,
            "is_probing": self._is_probing,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        breaker = cls()
        breaker.reason = state["reason"]
        breaker._failures = state["failures"]
        breaker._rests_until = state["rests_until"]
        breaker._is_probing = state["is_probing"]
        return breaker


# What several processes share of it

CLAIM_SECONDS: Final = 1.0
"""How long who waits is waited for: some times longer than until it asks again."""

KEPT_SECONDS: Final = 3600.0
"""How long it is remembered of a host that nobody asks how much it bears and that it has failed."""
LIMIT_KEPT_SECONDS: Final = DAY_SECONDS
"""The same of a limit that requests have named (R32); the next ones name it again."""


@dataclass(slots=True, eq=False)
class Places:
    """The places at one host that several processes have together, kept as text where all of them find it.

    Each process, here a replica, decides by these rules on what it finds, and puts the result in its stead if
    nobody else has done so meanwhile (`wholefeed.service.sharing_hosts`):

        places = Places.from_text("example.org", limits, text)
        places.clean(lost, now=now)
        given = places.enter(Asking("a/1", "a", port=443), now=now)
        text = places.as_text()

    Places are given in the order in which replicas began to wait, one at a time: who has got one and wants
    another is behind all who wait already. Whoever waits says so again every moment; a replica that does not
    is passed over. A place ends with its request, with its replica, or after the longest time that a request
    may take. Instants are those of a clock that all replicas go by.
    """

    host: Host
    limits: Limits
    running: dict[str, Place] = field(default_factory=dict)
    """By token."""
    waiting: dict[str, Claim] = field(default_factory=dict)
    """By replica."""

    def clean(self, lost: Set[str], *, now: float) -> None:
        """Forget the places and claims of replicas that are lost, and those that have lasted too long."""
        for token, place in list(self.running.items()):
            is_over = now >= place.at + self.limits.place_seconds
            if is_over or place.replica in lost:
                del self.running[token]
                self.host.give_up(place.start)
        for replica, claim in list(self.waiting.items()):
            if now >= claim.until or replica in lost:
                del self.waiting[replica]

    def enter(self, asking: Asking, *, now: float) -> Start | Rest | Wait:
        """Give a place; or say why there is none, or that it must be waited for."""
        if (place := self.running.get(asking.token)) is not None:  # it was given, and nobody came to know
            return place.start
        self.host.pace.limit(asking.at_most)
        rest = self.host.rest(asking.port, is_new=asking.is_new, now=now)
        if rest is not None:
            return rest
        if self._ahead(asking.replica) >= self._free(now):
            pause_seconds = max(0.0, self.host.next_start_at - now)
            claim = self.waiting.setdefault(asking.replica, Claim(now, now))
            if claim.until < now + pause_seconds + CLAIM_SECONDS / 2:
                claim.until = now + pause_seconds + CLAIM_SECONDS  # seldom: others need not look again
            return Wait(pause_seconds)
        self.waiting.pop(asking.replica, None)
        start = self.host.begin(asking.port, now=now, interval_seconds=self.limits.interval_seconds)
        self.running[asking.token] = Place(
            asking.replica, asking.port, now, is_exception=start.is_exception, is_probe=start.is_probe
        )
        return start

    def leave(self, token: str, outcome: Outcome | None, *, now: float) -> None:
        """A request is over. What it has found out counts once, while it had its place.

        That the host asks for rest counts without one too: for a while this one was on its own.
        """
        place = self.running.pop(token, None)
        if place is not None and outcome is not None:
            self.host.learn(place.start, outcome, now=now)
        elif place is not None:
            self.host.give_up(place.start)
        elif outcome is not None and outcome.rest_seconds is not None:
            self.host.block(now + outcome.rest_seconds)

    def withdraw(self, replica: str) -> None:
        """A replica does not wait any more."""
        self.waiting.pop(replica, None)

    def next_replicas(self, *, now: float) -> list[str]:
        """Return which replicas should ask again at once: it is their turn, or there is none for now."""
        order = sorted(self.waiting, key=self._since)
        is_refused = now < self.host.blocked_until or any(
            breaker.refused_seconds(now) > 0 for breaker in self.host.breakers.values()
        )
        return order if is_refused else order[: max(0, self._free(now))]

    def kept_until(self, *, now: float) -> float:
        """Return until when there is something to remember."""
        host = self.host
        instants = [now, host.next_start_at, host.blocked_until]
        instants += [each.at + self.limits.place_seconds for each in self.running.values()]
        instants += [each.until for each in self.waiting.values()]
        if host.breakers or not host.pace.is_usual:
            instants.append(now + max(KEPT_SECONDS, PAUSE_SECONDS))
        if host.pace.is_limited:
            instants.append(now + LIMIT_KEPT_SECONDS)
        return max(instants)

    def as_text(self) -> str:
        state: dict[str, Any] = self.host.state()
        if self.running:
            state["running"] = {token: place.state() for token, place in self.running.items()}
        if self.waiting:
            state["waiting"] = {name: (claim.since, claim.until) for name, claim in self.waiting.items()}
        return _ENCODER.encode(state | {"version": _TEXT_VERSION} if state else state)

    @classmethod
    def from_text(cls, host: str, limits: Limits, text: str) -> Self:
        """Return what `as_text` was made of; an empty one, and one of another version, says nothing."""
        state = json.loads(text or "{}")
        state = state if state.get("version") == _TEXT_VERSION else {}
        places = cls(Host.from_state(host, limits.per_host, state), limits)
        places.running = {token: Place(*each) for token, each in state.get("running", {}).items()}
        places.waiting = {replica: Claim(*each) for replica, each in state.get("waiting", {}).items()}
        return places

    def _since(self, replica: str) -> tuple[float, str]:
        return self.waiting[replica].since, replica

    def _ahead(self, replica: str) -> int:
        """Return how many replicas have waited for longer than this one."""
        if replica not in self.waiting:
            return len(self.waiting)
        return sum(self._since(other) < self._since(replica) for other in self.waiting)

    def _free(self, now: float) -> int:
        """Return how many requests may begin at this moment."""
        if now < self.host.next_start_at:
            return 0
        free = self.host.pace.allowed - len(self.running)
        return min(free, 1) if self.limits.interval_seconds > 0 else free


_TEXT_VERSION: Final = 1
"""Of the text. While replicas are upgraded one by one, each goes by what its own kind has written."""

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the configuration says, the same for every replica."""

    per_host: int
    interval_seconds: float
    place_seconds: float
    """A place that nobody ends is given to others after this: longer than a request may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A request that wants a place."""

    token: str
    """Its own among all requests."""
    replica: str
    port: int
    is_new: bool = False
    """As in `Host.rest`."""
    at_most: int | None = None
    """As in `Manner`."""


@dataclass(frozen=True, slots=True)
class Wait:
    """No place yet."""

    seconds: float
    """There is none before; 0 when one may come at any time."""


@dataclass(frozen=True, slots=True)
class Place:
    """A request that runs."""

    replica: str
    port: int
    at: float
    is_exception: bool
    is_probe: bool

    @property
    def start(self) -> Start:
        return Start(self.port, self.at, is_exception=self.is_exception, is_probe=self.is_probe)

    def state(self) -> tuple[str, int, float, bool, bool]:
        return self.replica, self.port, self.at, self.is_exception, self.is_probe


@dataclass(slots=True)
class Claim:
    """A replica that waits: since when, and until when it is waited for."""

    since: float
    until: float
