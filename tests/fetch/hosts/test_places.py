"""wholefeed.fetch.hosts: one host, asked by several processes. Time is a number."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from wholefeed.fetch.hosts import (
    CLAIM_SECONDS,
    FAILURES_TO_REST,
    KEPT_SECONDS,
    LIMIT_KEPT_SECONDS,
    PAUSE_SECONDS,
    Asking,
    Limits,
    Outcome,
    Places,
    Rest,
    Start,
    Wait,
)

GOOD = Outcome()
BUSY = Outcome(is_strained=True)


class Table:
    """The places at one host as replicas find them one after the other: as text."""

    def __init__(self, *, per_host: int = 2, interval: float = 0.0) -> None:
        self.limits = Limits(per_host=per_host, interval_seconds=interval, place_seconds=70.0)
        self.text = ""
        self.now = 1000.0
        self.lost: frozenset[str] = frozenset()
        self._made = 0

    def places(self) -> Places:
        places = Places.from_text("example.org", self.limits, self.text)
        places.clean(self.lost, now=self.now)
        return places

    def enter(self, replica: str, **asked: Any) -> tuple[str, Start | Rest | Wait]:
        """Ask for a place; the token, and what was given."""
        self._made += 1
        token = asked.pop("token", f"{replica}{self._made}")
        places = self.places()
        given = places.enter(Asking(token=token, replica=replica, port=443, **asked), now=self.now)
        self.text = places.as_text()
        return token, given

    def runs(self, replica: str, **asked: Any) -> str:
        token, given = self.enter(replica, **asked)
        assert isinstance(given, Start), given
        return token

    def waits(self, replica: str, **asked: Any) -> float:
        _, given = self.enter(replica, **asked)
        assert isinstance(given, Wait), given
        return given.seconds

    def rests(self, replica: str, **asked: Any) -> Rest:
        _, given = self.enter(replica, **asked)
        assert isinstance(given, Rest), given
        return given

    def leave(self, token: str, outcome: Outcome | None = GOOD) -> list[str]:
        """End a request; who is told to ask again."""
        places = self.places()
        places.leave(token, outcome, now=self.now)
        self.text = places.as_text()
        return places.next_replicas(now=self.now)

    def withdraw(self, replica: str) -> None:
        places = self.places()
        places.withdraw(replica)
        self.text = places.as_text()


def test_no_more_requests_run_at_once_than_a_host_may_get_whoever_asks() -> None:
    """fetch.concurrency_per_host is a host's, not a replica's."""
    table = Table(per_host=2)
    first = table.runs("a")
    table.runs("b")
    assert table.waits("c") == 0
    assert table.leave(first) == ["c"]
    table.runs("c")
    table.waits("a")


def test_a_place_goes_to_whoever_waits_longest() -> None:
    """A replica that comes late, or wants a second place, is behind those that wait."""
    table = Table(per_host=1)
    token = table.runs("a")
    for replica in "bca":
        table.now += 0.1
        table.waits(replica)
    for replica in "bca":
        assert table.leave(token) == [replica]
        for other in set("abc") - {replica}:
            table.waits(other)
        token = table.runs(replica)
        table.now += 0.1
        table.waits(replica)


def test_two_that_began_to_wait_at_one_instant_do_not_wait_for_each_other() -> None:
    """Equal instants have an order too."""
    table = Table(per_host=1)
    token = table.runs("a")
    table.waits("c")
    table.waits("b")
    table.leave(token)
    table.waits("c")
    table.runs("b")


def test_a_replica_that_waits_and_does_not_ask_again_is_passed_over() -> None:
    """Whoever gives up waiting without a word keeps a place from nobody for long."""
    table = Table(per_host=1)
    token = table.runs("a")
    table.waits("b")
    table.leave(token)
    table.waits("c")
    table.now += CLAIM_SECONDS
    table.runs("c")


def test_a_replica_that_does_not_wait_any_more_says_so() -> None:
    """A reader that leaves while its request waits at another replica keeps nobody waiting."""
    table = Table(per_host=1)
    token = table.runs("a")
    table.waits("b")
    table.leave(token)
    table.withdraw("b")
    table.runs("c")


def test_requests_are_spaced_out_over_all_replicas() -> None:
    """fetch.min_interval_per_host_seconds is between two requests to a host, whoever begins them."""
    table = Table(per_host=4, interval=2.0)
    table.runs("a")
    assert table.waits("b") == 2.0
    table.now += 1.5
    assert table.waits("c") == 0.5
    table.now += 0.5
    table.waits("c")
    table.runs("b")
    assert table.waits("c") == 2.0
    table.now += 2.0
    table.runs("c")


def test_who_waits_for_spaced_requests_is_not_passed_over_meanwhile() -> None:
    """A pause longer than a claim lasts: whoever waits through it keeps its turn."""
    table = Table(per_host=4, interval=60.0)
    table.runs("a")
    table.waits("b")
    table.now += 60.0
    table.waits("a")
    table.runs("b")


def test_a_host_that_asked_for_rest_is_left_alone_by_all() -> None:
    """docs/faults.md row 55: Retry-After, told to one replica, refuses the others at once."""
    table = Table(per_host=2)
    token, other = table.runs("a"), table.runs("b")
    table.waits("c")
    assert table.leave(token, Outcome(is_strained=True, rest_seconds=60)) == ["c"]
    assert table.rests("c") == Rest("host-backoff", 60.0)
    table.leave(other)
    table.now += 20
    assert table.rests("b") == Rest("host-backoff", 40.0)
    table.now += 40
    table.runs("b")


def test_a_document_that_was_never_seen_is_asked_for_once_while_a_host_rests() -> None:
    """`is_new` means what it does in one process: an exception, until one is answered like the first."""
    table = Table()
    table.leave(table.runs("a"), Outcome(is_strained=True, rest_seconds=60))
    table.leave(table.runs("b", is_new=True), Outcome())
    table.leave(table.runs("b", is_new=True), Outcome(is_strained=True, rest_seconds=30))
    assert table.rests("c", is_new=True) == Rest("host-backoff", 60.0)


@pytest.mark.parametrize("outcome", [BUSY, Outcome(slug="timeout", is_heard=True)])
def test_strain_halves_the_pace_for_all(outcome: Outcome) -> None:
    """A 429, a 503 or a time-out at one replica: all of them ask half as much at once."""
    table = Table(per_host=4)
    table.leave(table.runs("a"), outcome)
    table.runs("b")
    table.runs("c")
    table.waits("a")


def test_strain_that_shows_together_at_several_replicas_counts_once() -> None:
    """Requests that were under way when the pace was halved halve it no more, whoever made them."""
    table = Table(per_host=4)
    tokens = [table.runs(replica) for replica in "abc"]
    table.now += 1.0
    for token in tokens:
        table.leave(token, BUSY)
    assert table.places().host.pace.allowed == 2


def test_good_answers_of_all_bring_the_pace_back() -> None:
    """It is the host that has recovered."""
    table = Table(per_host=4)
    table.leave(table.runs("a"), BUSY)
    for replica in "abcab":
        table.leave(table.runs(replica))
    assert table.places().host.pace.allowed == 4


def test_failures_of_all_replicas_open_one_breaker_and_one_of_them_probes() -> None:
    """A breaker that rests a host rests it for all; after the pause one request among all tries."""
    table = Table()
    for number in range(FAILURES_TO_REST):
        table.leave(table.runs("abc"[number % 3]), Outcome(slug="connection-failed", is_heard=False))
    assert table.rests("a") == Rest("connection-failed", PAUSE_SECONDS)
    table.now += PAUSE_SECONDS
    probe = table.runs("b")
    assert table.rests("a").slug == "connection-failed"
    assert table.rests("c").slug == "connection-failed"
    table.leave(probe)
    table.runs("a")
    table.runs("c")


@pytest.mark.parametrize("is_dead", [True, False])
def test_a_probe_that_nobody_ends_makes_room_for_another(is_dead: bool) -> None:
    """Its replica died, or the reader left: the host is not closed for good."""
    table = Table()
    table.leave(table.runs("a"), Outcome(slug="dns-error", is_heard=False))
    table.now += PAUSE_SECONDS
    probe = table.runs("a")
    table.now += 0.1
    if is_dead:
        table.lost = frozenset("a")
    else:
        table.leave(probe, None)
    table.runs("b")


def test_requests_of_a_dead_replica_count_no_more() -> None:
    """A replica that is killed holds its places no longer than it is missed."""
    table = Table()
    table.runs("a")
    table.runs("a")
    table.waits("b")
    table.now += 0.1
    table.lost = frozenset("a")
    table.runs("b")


def test_a_place_that_nobody_ends_is_free_after_the_longest_time_of_a_request() -> None:
    """A request whose end was lost does not take a place for ever."""
    table = Table(per_host=1)
    table.runs("a")
    table.now += 69.0
    table.waits("b")
    table.now += 1.0
    table.runs("b")


def test_a_place_that_was_given_and_not_heard_of_is_given_once() -> None:
    """Whoever asks again with its token, since a connection broke, has the place that it has."""
    table = Table(per_host=2)
    token = table.runs("a")
    table.runs("a", token=token)
    table.runs("b")
    table.leave(token, Outcome(slug="connection-failed", is_heard=False))
    table.leave(token, Outcome(slug="connection-failed", is_heard=False))
    table.runs("b")
    table.waits("c")
    assert table.places().host.breakers[443].state()["failures"] == 1


def test_rest_that_was_asked_of_a_request_without_a_place_counts() -> None:
    """While the database was away a replica went on alone; what it was told then is told to all later."""
    table = Table()
    table.leave("a-on-its-own", Outcome(is_strained=True, rest_seconds=60))
    assert table.rests("b").seconds == 60


def test_a_limit_that_a_request_names_holds_for_all() -> None:
    """R32: where pages are asked for that nobody links, all replicas together ask for two at once at most."""
    table = Table(per_host=4)
    table.runs("a", at_most=2)
    table.runs("b")
    table.waits("c")


def test_nothing_is_kept_of_a_host_that_nothing_is_known_of() -> None:
    """A host that answers well has an empty text, and is forgotten at once; one that rests, when it has."""
    table = Table()
    token = table.runs("a")
    assert table.places().kept_until(now=table.now) == table.now + 70
    table.leave(token)
    assert table.text == "{}"
    assert table.places().kept_until(now=table.now) == table.now
    table.leave(table.runs("a"), Outcome(rest_seconds=9000))
    assert table.places().kept_until(now=table.now) == table.now + 9000
    table.now += 9000
    table.leave(table.runs("a"), BUSY)
    assert table.places().kept_until(now=table.now) == table.now + KEPT_SECONDS
    table.leave(table.runs("a", at_most=1))
    assert table.places().kept_until(now=table.now) == table.now + LIMIT_KEPT_SECONDS


def test_what_another_version_has_written_says_nothing() -> None:
    """Replicas are upgraded one by one: none of them stumbles over what it cannot read."""
    table = Table(per_host=1)
    table.runs("a")
    table.text = table.text.replace('"version":1', '"version":2').replace("running", "under way")
    table.runs("b")
    table.waits("c")


@given(st.lists(st.sampled_from(["enter", "leave", "pass"]), max_size=60), st.integers(1, 4))
def test_replicas_that_want_all_they_can_get_get_as_much(steps: list[str], per_host: int) -> None:
    """Whatever the order in which they ask: no replica is ever more than one round behind another."""
    table = Table(per_host=per_host)
    tokens: list[str] = []
    given: Counter[str] = Counter(dict.fromkeys("abc", 0))

    def ask() -> None:
        for replica in "abc":
            token, what = table.enter(replica)
            if isinstance(what, Start):
                tokens.append(token)
                given[replica] += 1

    ask()
    first = Counter(given)
    for step in steps:
        table.now += 0.05
        if step == "leave" and tokens:
            table.leave(tokens.pop(0))
        if step != "pass":
            ask()
    later = Counter({replica: given[replica] - first[replica] for replica in "abc"})
    assert max(later.values()) - min(later.values()) <= 2


class Replicas(RuleBasedStateMachine):
    """Three replicas that ask one host in any order, some of which die."""

    def __init__(self) -> None:
        super().__init__()
        self.running: dict[str, tuple[str, bool]] = {}  # token: replica, whether it is a probe
        self.starts: list[float] = []
        self.blocked_until = 0.0
        self.names = list("abc")

    @initialize(per_host=st.integers(1, 4), interval=st.sampled_from([0.0, 0.5, 3.0]))
    def begin(self, per_host: int, interval: float) -> None:
        self.table = Table(per_host=per_host, interval=interval)

    @rule(number=st.integers(0, 2), is_new=st.booleans(), at_most=st.none() | st.integers(1, 3))
    def enters(self, number: int, is_new: bool, at_most: int | None) -> None:
        replica = self.names[number]
        before = self.table.places().host.pace
        most = min(before.allowed, at_most or before.allowed)
        token, given = self.table.enter(replica, is_new=is_new, at_most=at_most)
        if isinstance(given, Start):
            assert len(self.running) < most
            assert is_new or self.table.now >= self.blocked_until
            assert not self.starts or self.table.now - self.starts[-1] >= self.table.limits.interval_seconds
            self.starts.append(self.table.now)
            self.running[token] = (replica, given.is_probe)

    @precondition(lambda self: self.running)
    @rule(
        data=st.data(),
        outcome=st.sampled_from(
            [
                None,
                GOOD,
                BUSY,
                Outcome(is_strained=True, rest_seconds=5.0),
                Outcome(slug="timeout", is_heard=False),
                Outcome(slug="dns-error", is_heard=False),
                Outcome(slug="incomplete", is_heard=True),
            ]
        ),
    )
    def leaves(self, data: st.DataObject, outcome: Outcome | None) -> None:
        token = data.draw(st.sampled_from(sorted(self.running)))
        del self.running[token]
        self.table.leave(token, outcome)
        if outcome is not None and outcome.rest_seconds is not None:
            self.blocked_until = max(self.blocked_until, self.table.now + outcome.rest_seconds)

    @rule(seconds=st.sampled_from([0.01, 0.3, 1.0, 5.0, 30.0]))
    def time_passes(self, seconds: float) -> None:
        """No request lasts longer than it may: those that would end here without a word."""
        self.table.now += seconds
        for token, place in self.table.places().running.items():
            if self.table.now >= place.at + 60:
                self.running.pop(token, None)
                self.table.leave(token, None)
        alive = self.table.places().running
        self.running = {token: each for token, each in self.running.items() if token in alive}

    @rule(number=st.integers(0, 2))
    def dies_and_comes_again(self, number: int) -> None:
        """Under another name, as each start has its own."""
        self.table.now += 0.001
        lost = self.names[number]
        self.names[number] = f"{lost}'"
        self.table.lost |= {lost}
        self.running = {token: each for token, each in self.running.items() if each[0] != lost}

    @invariant()
    def limits_hold(self) -> None:
        if not hasattr(self, "table"):
            return
        assert len(self.running) <= self.table.limits.per_host
        assert sum(is_probe for _, is_probe in self.running.values()) <= 1
        assert set(self.running) == set(self.table.places().running)


TestReplicas = Replicas.TestCase
TestReplicas.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
