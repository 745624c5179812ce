"""The places at one host that several processes have together: pure, kept as text where all of them find it.

Each process, here a replica, decides by these rules on what it finds, and puts the result in its stead if
nobody else has done so meanwhile (`wholefeed.service.sharing.hosts`):

    places = Places.from_text("example.org", limits, text)
    places.clean(lost, now=now)
    given = places.enter(Asking("a/1", "a", port=443), now=now)
    text = places.as_text()

Places are given in the order in which replicas began to wait, one at a time: who has got one and wants
another is behind all who wait already. Whoever waits says so again every moment; a replica that does not is
passed over. A place ends with its request, with its replica, or after the longest time that a request may
take.
"""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any, Final, Self

from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.fetch.hosts.breaker import PAUSE_SECONDS
from wholefeed.fetch.hosts.host import Host, Outcome, Rest, Start

VERSION: Final = 1
"""Of the text. While replicas are upgraded one by one, each goes by what its own kind has written."""

CLAIM_SECONDS: Final = 1.0
"""How long who waits is waited for: some times longer than until it asks again."""

KEPT_SECONDS: Final = 3600.0
"""How long it is remembered of a host that nobody asks how much it bears and that it has failed."""
LIMIT_KEPT_SECONDS: Final = DAY_SECONDS
"""The same of a limit that requests have named (R32); the next ones name it again."""

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
    """As in `Waiter`."""
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
        """How it was begun."""
        return Start(self.port, self.at, is_exception=self.is_exception, is_probe=self.is_probe)

    def state(self) -> tuple[str, int, float, bool, bool]:
        """Return it as JSON has it."""
        return self.replica, self.port, self.at, self.is_exception, self.is_probe


@dataclass(slots=True)
class Claim:
    """A replica that waits: since when, and until when it is waited for."""

    since: float
    until: float


@dataclass(slots=True, eq=False)
class Places:
    """The places at one host. Instants are those of a clock that all replicas go by."""

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
        """Return it as text."""
        state: dict[str, Any] = self.host.state()
        if self.running:
            state["running"] = {token: place.state() for token, place in self.running.items()}
        if self.waiting:
            state["waiting"] = {name: (claim.since, claim.until) for name, claim in self.waiting.items()}
        return _ENCODER.encode(state | {"version": VERSION} if state else state)

    @classmethod
    def from_text(cls, host: str, limits: Limits, text: str) -> Self:
        """Return what `as_text` was made of; an empty one, and one of another version, says nothing."""
        state = json.loads(text or "{}")
        state = state if state.get("version") == VERSION else {}
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
