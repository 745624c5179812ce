"""`wholefeed.core.refresh.collecting`: requested and stored pages, and the ends (R17, R26 to R32)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import pytest

from tests.core.refresh.collected_world import (
    DAY,
    GONE,
    HOUR,
    NOW,
    TOP,
    UNAVAILABLE,
    WEEK,
    CollectedWorld,
    Script,
    a_failure,
    a_page,
    an_outcome,
    page,
)
from tests.makers import FEED
from wholefeed.core.adapters import table
from wholefeed.core.adapters.base import (
    AdapterJob,
    AdapterOutcome,
    AdapterPage,
    Asking,
    Collection,
    PageQuestion,
    Refused,
    There,
    one,
)
from wholefeed.core.model import Family, Role, State
from wholefeed.core.notes import End
from wholefeed.core.refresh.arrivals import Failure, LedBack, Response
from wholefeed.core.refresh.asking import (
    Drop,
    EarlyLink,
    EndWalk,
    FetchPage,
    KeepDocument,
    NextEvent,
    PauseHost,
    Rows,
    TakeTurn,
    Touch,
)
from wholefeed.core.schedule import ValidatorPair
from wholefeed.core.walk.chain import WalkLimits

SOURCE, ELSEWHERE = "http://source.test/feed", "http://p.test/?page=1"
PAUSE = a_failure(429, retry_after_seconds=7200.0)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Callable[..., CollectedWorld[Script]]:
    """Make a world whose adapter asks these questions, round by round."""

    def make(
        *rounds: Sequence[PageQuestion], outcome: AdapterOutcome | None = None, **settings: Any
    ) -> CollectedWorld[Script]:
        made = CollectedWorld(Script(*rounds, outcome=outcome), **settings)
        monkeypatch.setattr(table, "ADAPTERS", (made.adapter,))
        return made

    return make


Make = Callable[..., CollectedWorld[Script]]


def asks(*numbers: int, **more: Any) -> list[PageQuestion]:
    """Questions for several pages at once."""
    return [PageQuestion(page(number), place=number, **more) for number in numbers]


def in_turn(*numbers: int, **more: Any) -> list[list[PageQuestion]]:
    """Questions for one page after another."""
    return [asks(number, **more) for number in numbers]


def has_pages(world: CollectedWorld[Script], *numbers: int) -> None:
    for number in numbers:
        world.responses[page(number)] = a_page(page(number), f"{number}-a", f"{number}-b")


def collected(world: CollectedWorld[Script]) -> Collection:
    """Let a walk have collected all pages two days ago."""
    world.collection = replace(
        Collection(),
        adapter="script",
        family=Family.ATOM,
        walk=4,
        began_at=NOW - 2 * DAY,
        ended_at=NOW - 2 * DAY,
    )
    return world.collection


def slugs(world: CollectedWorld[Script], **changes: Any) -> list[str]:
    return [note.slug for note in world.collect(**changes).result.notes]


# Results of an attempt


@dataclass(frozen=True, kw_only=True)
class Told:
    """A feed's state after an attempt; the walk has number 5, or 4 after looks alone."""

    state: State
    walk: int
    retry_seconds: float | None
    denials: int = 0
    reason: str = ""
    notes: tuple[str, ...] = ()
    end: End | None = None
    """None: entries may be missing."""
    is_ended: bool = True
    """Whether a walk has read all pages, now or earlier."""


HONOURED = an_outcome(is_whole=False, reason="why")
NOT = an_outcome(is_honoured=False, reason="ignored")
UNFINISHED, MISSING, DENIED = ("history-unfinished",), ("unavailable",), ("history-not-offered",)
ENDINGS: dict[str, tuple[str, AdapterOutcome | None, dict[int, Response], Told]] = {
    # whether it was collected before, the adapter's outcome, its pages, the result
    "all is read": ("no", an_outcome(), {}, Told(
        state=State.COLLECTED, walk=5, retry_seconds=None, end=End.READ,
    )),
    "all is given": ("no", an_outcome(is_whole=False, is_final=True, reason="why"), {}, Told(
        state=State.COLLECTED, walk=5, retry_seconds=None, reason="why", notes=UNFINISHED,
    )),
    "all is given, and a page failed": ("no", an_outcome(is_whole=False, is_final=True, reason="why"),
        {2: UNAVAILABLE}, Told(
        state=State.COLLECTED, walk=5, retry_seconds=None, reason="why", notes=MISSING, is_ended=False,
    )),
    "a page is missing": ("no", an_outcome(), {2: UNAVAILABLE}, Told(
        state=State.COLLECTED, walk=5, retry_seconds=None, notes=MISSING, is_ended=False,
    )),
    "a page is missing, and so were others before": ("ended", an_outcome(), {2: UNAVAILABLE}, Told(
        state=State.COLLECTED, walk=5, retry_seconds=None, notes=MISSING,
    )),
    "unsettled": ("no", replace(HONOURED, wants_all=True), {}, Told(
        state=State.COLLECTED, walk=6, retry_seconds=HOUR, denials=1, reason="why", notes=UNFINISHED,
        is_ended=False,
    )),
    "all pages are cut short": ("no", HONOURED, {}, Told(
        state=State.COLLECTED, walk=6, retry_seconds=HOUR, denials=1, reason="why", notes=UNFINISHED,
        is_ended=False,
    )),
    "a look is cut short": ("looks", HONOURED, {}, Told(
        state=State.COLLECTED, walk=4, retry_seconds=HOUR, denials=1, reason="why", notes=UNFINISHED,
    )),
    "not honoured any more": ("looks", NOT, {}, Told(
        state=State.COLLECTED, walk=5, retry_seconds=HOUR, denials=1, reason="ignored", notes=UNFINISHED,
    )),
    "not honoured any more, or it failed": ("looks", NOT, {2: UNAVAILABLE}, Told(
        state=State.COLLECTED, walk=4, retry_seconds=HOUR, denials=1, reason="ignored", notes=MISSING,
    )),
    "never honoured": ("nothing kept", NOT, {}, Told(
        state=State.REMEMBERED, walk=6, retry_seconds=WEEK, reason="ignored", notes=DENIED,
        end=End.NOT_OFFERED, is_ended=False,
    )),
    "never honoured, though a page was new": ("no", NOT, {}, Told(
        state=State.REMEMBERED, walk=6, retry_seconds=WEEK, reason="ignored", notes=DENIED,
        end=End.NOT_OFFERED, is_ended=False,
    )),
    "never honoured, or it failed": ("nothing kept", NOT, {2: UNAVAILABLE}, Told(
        state=State.REMEMBERED, walk=5, retry_seconds=HOUR, denials=1, reason="ignored",
        notes=DENIED, end=End.NOT_OFFERED, is_ended=False,
    )),
    "not honoured after a page, or it failed": ("no", NOT, {2: UNAVAILABLE}, Told(
        state=State.COLLECTED, walk=5, retry_seconds=HOUR, denials=1, reason="ignored", notes=MISSING,
        is_ended=False,
    )),
    "stopped": ("no", None, {2: a_failure(403)}, Told(
        state=State.COLLECTED, walk=5, retry_seconds=DAY, reason="the publisher refuses its pages (403)",
        notes=MISSING, is_ended=False,
    )),
    "stopped before anything came": ("nothing kept", None, {2: a_failure(403)}, Told(
        state=State.REMEMBERED, walk=5, retry_seconds=DAY, denials=1,
        reason="the publisher refuses its pages (403)", notes=DENIED, end=End.NOT_OFFERED,
        is_ended=False,
    )),
    "stopped on a look": ("looks", None, {2: PAUSE}, Told(
        state=State.COLLECTED, walk=4, retry_seconds=7200.0,
        reason="the publisher wants a pause (publisher-status)", notes=MISSING,
    )),
}  # fmt: skip


@pytest.mark.parametrize(("before", "outcome", "responses", "told"), ENDINGS.values(), ids=ENDINGS)
def test_an_attempt_comes_to(
    world: Make, before: str, outcome: AdapterOutcome | None, responses: dict[int, Response], told: Told
) -> None:
    """R27, R31, R32: the table of the module `collecting_result`, after pages 1 and 2."""
    feed = world(*in_turn(1, 2), outcome=outcome or an_outcome())
    feed.collection = Collection(adapter="script", family=Family.ATOM, walk=4)
    has_pages(feed, 1, 2)
    if before in ("ended", "looks"):
        collected(feed)
    if before == "nothing kept":
        feed.responses[page(1)] = a_page(page(1), *TOP)
    for number, response in responses.items():
        feed.responses[page(number)] = response
    walked = feed.collect(is_full=before == "ended").result
    known = feed.collection
    assert told == Told(
        state=walked.state,
        walk=known.walk,
        retry_seconds=None if known.retry_at is None else known.retry_at - NOW,
        denials=known.denials,
        reason=known.reason,
        notes=tuple(note.slug for note in walked.notes),
        end=walked.ending.end,
        is_ended=known.is_ended,
    )
    assert known.noted_at == NOW
    assert known.is_denied == (told.state is State.REMEMBERED)


def test_a_denial_without_failures_is_tried_again_after_a_week_each_time(world: Make) -> None:
    """R27: an earlier attempt gains nothing."""
    feed = world(*in_turn(1), outcome=NOT)
    for _ in range(3):
        feed.collect()
        assert feed.fetched == [page(1)]
        assert feed.collection.retry_at == feed.now + WEEK
        feed.now += WEEK


def test_the_intervals_grow_where_it_may_be_chance(world: Make) -> None:
    """R27, R31: from that of missing documents to a week; they start again once all pages are read."""
    feed = world(*in_turn(1), outcome=HONOURED)
    has_pages(feed, 1)
    intervals = []
    for _ in range(10):
        feed.collect()
        assert feed.collection.retry_at is not None
        intervals.append(feed.collection.retry_at - feed.now)
        feed.now = feed.collection.retry_at
    assert intervals == [min(WEEK, HOUR * 2**times) for times in range(10)]
    feed.adapter.outcome = an_outcome()
    feed.collect()
    assert (feed.collection.denials, feed.collection.retry_at) == (0, None)


def test_what_the_publisher_lacks_stays_partial_whatever_looks_bring(world: Make) -> None:
    """R31: until all pages are asked for again."""
    feed = world(*in_turn(1), outcome=an_outcome(is_whole=False, is_final=True, reason="no more"))
    has_pages(feed, 1)
    feed.collect()
    feed.adapter.outcome = an_outcome()
    feed.now += DAY
    walked = feed.collect().result
    assert [str(note) for note in walked.notes] == [
        f"the pages of script were not read to their end (no more): {FEED}"
    ]
    assert walked.failures == {FEED: Failure(slug="history-unfinished", retry_after_seconds=DAY)}
    walked = feed.collect(is_full=True).result
    assert (walked.notes, walked.ending.end) == ([], End.READ)


def test_fewer_entries_than_are_claimed_are_noted(world: Make) -> None:
    """R31: once all pages are read."""
    known = Collection(total=40, collected=12)
    feed = world(*in_turn(1), outcome=an_outcome(known=known))
    assert slugs(feed) == ["history-short"]
    feed.adapter.outcome = an_outcome(known=replace(known, collected=40))
    assert slugs(feed) == []


def test_after_a_look_it_is_known_what_was_seen(world: Make) -> None:
    """R30: the next look begins there."""
    feed = world(*in_turn(1))
    collected(feed)
    feed.collect(validators=ValidatorPair('"2"', "Sat, 14 Jun 2025 10:00:00 GMT"))
    known, row = feed.collection, feed.rows[0]
    assert (known.etag, known.last_modified) == ('"2"', "Sat, 14 Jun 2025 10:00:00 GMT")
    assert (known.looked_at, known.daily_at, known.digest) == (NOW, NOW, row.digest.hex())
    assert known.top == feed.entries[1][0][0].hex()
    assert known.is_idle
    assert known.ended_at == NOW - 2 * DAY
    has_pages(feed, 1)
    feed.now += HOUR
    feed.collect()
    known = feed.collection
    assert (known.is_idle, known.looked_at, known.daily_at) == (False, NOW + HOUR, NOW)


# When it is due


def made_before(world: CollectedWorld[Script], **changes: Any) -> None:
    """Let a walk have collected all pages, and a look have happened an hour ago."""
    looked_at = NOW - HOUR
    known = replace(
        collected(world), looked_at=looked_at, daily_at=looked_at, digest=world.rows[0].digest.hex()
    )
    world.collection = replace(known, **changes)


DUE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    # the known state, the questions or pages, the requests
    "nothing has changed": ({}, {}, ""),
    "it has changed": ({}, {"has_changed": True}, "news"),
    "a person asks": ({}, {"is_forced": True}, "news"),
    "all is wanted": ({}, {"is_full": True}, "all"),
    "a body that no look has seen": ({"digest": "00"}, {}, "news"),
    "another validator": ({}, {"validators": ValidatorPair('"2"')}, "news"),
    "a daily look": ({"daily_at": NOW - DAY}, {}, "news"),
    "of a clock that ran ahead": ({"daily_at": NOW + DAY}, {}, "news"),
    "a walk was cut off": ({"began_at": NOW - HOUR}, {}, "all"),
    "nothing was ever read": ({"ended_at": None}, {}, "all"),
    "another validator after an idle look": (
        {"is_idle": True, "looked_at": NOW - HOUR + 1}, {"validators": ValidatorPair('"2"')}, "",
    ),
    "another validator an hour after an idle look": (
        {"is_idle": True, "looked_at": NOW - HOUR}, {"validators": ValidatorPair('"2"')}, "news",
    ),
    "its time has not come": (
        {"noted_at": NOW - 5, "retry_at": NOW + 5, "daily_at": None}, {"has_changed": True}, "",
    ),
    "its time has not come, but a person asks": (
        {"noted_at": NOW - 5, "retry_at": NOW + 5}, {"is_forced": True}, "news",
    ),
    "its time has come": ({"noted_at": NOW - 5, "retry_at": NOW, "daily_at": None}, {}, "news"),
    "a time that a wrong clock has set": (
        {"noted_at": NOW + DAY, "retry_at": NOW + 2 * DAY, "daily_at": None}, {}, "news",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("known", "changes", "due"), DUE.values(), ids=DUE)
def test_it_is_due(world: Make, known: dict[str, Any], changes: dict[str, Any], due: str) -> None:
    """R14, R30, R32: the same answer holds in advance."""
    feed = world(*in_turn(1))
    made_before(feed, **known)
    changes = {"has_changed": False} | changes
    collecting = feed.attempt(**changes)
    assert collecting is not None
    assert collecting.is_due == bool(due)
    assert collecting.wants_all == (due == "all")
    played = feed.collect(**changes)
    assert bool(feed.fetched) == bool(due)
    assert played.result.has_tried == bool(due)
    assert bool(played.requests) == bool(due)


def test_a_host_that_wants_a_pause_is_asked_for_nothing_whoever_insists(world: Make) -> None:
    """R32: for any request."""
    feed = world(*in_turn(1), is_collect_paused=lambda url: url == FEED)
    assert feed.collect(is_full=True).requests == []


def test_a_feed_that_was_switched_off_is_looked_at_once_it_is_on_again(world: Make) -> None:
    """R26: meanwhile it was a remembered feed."""
    feed = world(*in_turn(1))
    made_before(feed)
    feed.state = State.REMEMBERED
    assert feed.collect(has_changed=False).result.has_tried


def test_a_walk_that_was_killed_goes_on(world: Make) -> None:
    """R31: the next refresh continues it, for any reason."""
    feed = world(*in_turn(1))
    made_before(feed)
    feed.is_walking = True
    assert feed.collect(has_changed=False).result.has_tried


def test_what_is_missing_sets_the_time(world: Make) -> None:
    """R14: the remaining pages are looked for at the same time."""
    feed = world(*in_turn(1))
    made_before(feed, daily_at=None)
    feed.fail(page(7), retry_seconds=600.0)
    feed.fail(FEED, retry_seconds=900.0, reason="history-unfinished")
    walked = feed.collect(has_changed=False).result
    assert not walked.has_tried
    assert [(note.slug, note.url) for note in walked.notes] == [
        ("unavailable", page(7)), ("history-unfinished", FEED),
    ]  # fmt: skip
    feed.now += 600
    assert feed.collect(has_changed=False).result.has_tried


def test_a_denial_stays_what_it_is_until_its_time(world: Make) -> None:
    """R27: a remembered feed with its reason; pages of that walk prove nothing."""
    feed = world(*in_turn(1), outcome=NOT)
    has_pages(feed, 1)
    feed.collect()
    assert feed.pages == [page(1)]
    walked = feed.collect().result
    assert (walked.state, walked.ending.end) == (State.REMEMBERED, End.NOT_OFFERED)
    assert "ignored" in str(walked.notes[0])
    assert feed.fetched == []


@pytest.mark.parametrize(
    ("changes", "has_settings"),
    [({"marks": None}, True), ({"entries": 0}, True), ({"marks": "{}"}, True), ({}, False)],
    ids=["nobody has looked", "no entries", "no evidence", "it is switched off"],
)
def test_without_evidence_nothing_is_collected(
    world: Make, changes: dict[str, Any], has_settings: bool
) -> None:
    """R26."""
    feed = world(*in_turn(1), may_collect=lambda _url: has_settings)
    feed.change(1, **changes)
    assert feed.attempt() is None


# The known state of another adapter's or format's pages


def test_pages_of_another_format_are_asked_for_anew(world: Make) -> None:
    """R23, R29: but the number of the walk counts on."""
    feed = world(*in_turn(1), outcome=an_outcome())
    feed.collection = replace(collected(feed), family=Family.RSS, denials=3, reason="why")
    feed.collect()
    assert (feed.collection.walk, feed.collection.reason) == (5, "")
    assert feed.fetched == [page(1)]


@pytest.mark.parametrize("is_denied", [True, False])
def test_a_feed_that_names_another_publisher_is_asked_no_more_often(world: Make, is_denied: bool) -> None:
    """R27: a denial holds for any publisher named meanwhile."""
    feed = world(*in_turn(1))
    feed.collection = replace(
        collected(feed), adapter="another", is_denied=is_denied, noted_at=NOW - 5, retry_at=NOW + 5
    )
    assert bool(feed.collect().requests) != is_denied


# Requests, two at once


@pytest.mark.parametrize("seed", range(20))
def test_answers_come_in_the_order_of_the_questions(world: Make, seed: int) -> None:
    """R32: two requests at once end in any order."""
    feed = world(asks(1, 2, 3, 4, 5), asks(6, 7, 8))
    has_pages(feed, *range(1, 9))
    chance = random.Random(seed)
    feed.order = chance.randrange
    feed.collect()
    assert feed.most_under_way == 2
    assert sorted(feed.fetched) == [page(number) for number in range(1, 9)]
    assert [answer.url for answer in feed.adapter.answers if isinstance(answer, AdapterPage)] == [
        page(number) for number in range(1, 9)
    ]


def test_early_links_of_an_earlier_walk_are_no_answers(world: Make) -> None:
    """R0: no page of an adapter has an older link."""
    feed = world(asks(1, 2))
    has_pages(feed, 1, 2)
    answer, early = feed.answer, iter([True, True, False] * 4)

    def also_early(request: Any) -> Any:
        return (
            EarlyLink(page(1), page(9)) if isinstance(request, NextEvent) and next(early) else answer(request)
        )

    feed.answer = also_early  # type: ignore[method-assign]
    feed.collect()
    assert feed.pages == [page(1), page(2)]


def test_a_walk_through_all_pages_takes_a_turn_and_a_look_takes_none(world: Make) -> None:
    """R0: before its first request, if it has one."""
    feed = world(*in_turn(1))
    requests = feed.collect().requests
    kinds = [type(request) for request in requests if isinstance(request, TakeTurn | FetchPage | EndWalk)]
    assert kinds == [TakeTurn, FetchPage, EndWalk]
    assert feed.collect().of(TakeTurn) == []
    feed.adapter.rounds = ()
    assert feed.collect(is_full=True).of(TakeTurn) == []


def test_how_a_page_is_asked_for(world: Make) -> None:
    """R27, R28: HEAD, statuses that count as answers, and no redirects."""
    feed = world(asks(1), asks(2, is_head=True), asks(3, is_needed=True))
    feed.change(1, final_url="http://o.test/feed/")
    first, second, third = feed.collect().of(FetchPage)
    assert [first.is_head, second.is_head] == [False, True]
    assert (set(first.expected), set(third.expected)) == ({404, 410}, set())
    assert 403 in second.expected
    assert [first.is_met(url) for url in (FEED, "http://o.test/feed/", page(1))] == [True, True, False]


def test_a_look_that_shows_that_all_is_needed_asks_for_all(world: Make) -> None:
    """R30: at once, with the known state."""
    feed = world(*in_turn(3), outcome=an_outcome())
    collected(feed)
    feed.adapter.news = (tuple(in_turn(1)), an_outcome(wants_all=True, known=Collection(total=7)))
    feed.collect()
    assert feed.fetched == [page(1), page(3)]
    assert feed.adapter.jobs[1].known.total == 7
    assert (feed.collection.walk, feed.collection.ended_at) == (5, NOW)


def test_what_an_adapter_starts_from(world: Make) -> None:
    """R30: the subscription document, and any of its news not followed."""
    feed = world(*in_turn(1))
    made_before(feed, digest="00")
    feed.feed_url = "http://o.test/asked"
    feed.publish("a", "b", dates=(NOW - 1, NOW - 2))
    stored_digest = feed.rows[0].digest
    feed.collect(has_changed=False, validators=ValidatorPair('"7"'), stored_digest=stored_digest)
    (job,) = feed.adapter.jobs
    assert (job.asked_url, job.url, job.now, job.site_id) == ("http://o.test/asked", FEED, NOW, "urn:feed")
    assert (job.page.validators, job.page.dates, job.page.is_ascending) == (
        ('"7"', ""),
        (NOW - 1, NOW - 2),
        False,
    )
    assert (job.has_news, job.is_interrupted, job.is_daily) == (True, True, False)
    feed.collect(has_changed=False, is_forced=True, stored_digest=feed.rows[0].digest)
    assert (feed.adapter.jobs[1].has_news, feed.adapter.jobs[1].is_interrupted) == (False, False)
    feed.collect(has_news=True, stored_digest=feed.rows[0].digest)
    assert feed.adapter.jobs[2].has_news


# An interrupted walk


def test_a_walk_that_was_cut_off_goes_on_where_it_was(world: Make) -> None:
    """R28: the same questions, answered from the store."""
    feed = world(*in_turn(1, 2, 3))
    has_pages(feed, 1, 2, 3)
    feed.most_responses = 2
    feed.publish("t1", "last", dates=(NOW, NOW - 50))
    walked = feed.collect().result
    assert [note.facts["limit"] for note in walked.notes] == ["limits.walk_seconds"]
    assert (feed.collection.start_id, feed.collection.start_at) == ("last", NOW - 50)
    feed.most_responses, feed.now = 99, NOW + WEEK
    feed.publish("t9", "other", dates=(NOW, NOW - 9))
    feed.adapter.answers.clear()
    feed.collect()
    assert feed.fetched == [page(3)]
    assert [answer.is_stored for answer in feed.adapter.answers if isinstance(answer, AdapterPage)] == [
        True,
        True,
        False,
    ]
    assert (feed.collection.walk, feed.collection.start_id, feed.collection.start_at) == (1, "last", NOW - 50)


@pytest.mark.parametrize(("seconds", "changes"), [(WEEK + 1, {}), (60.0, {"is_full": True}), (-60.0, {})])
def test_a_walk_of_long_ago_begins_anew(world: Make, seconds: float, changes: dict[str, bool]) -> None:
    """R28: also for a full walk or another clock; it starts at the same entry."""
    feed = world(*in_turn(1, 2))
    has_pages(feed, 1, 2)
    feed.most_responses = 1
    feed.collect()
    feed.most_responses, feed.now = 99, NOW + seconds
    feed.publish("other")
    feed.collect(**changes)
    assert feed.fetched == [page(1), page(2)]
    assert (feed.collection.walk, feed.collection.start_id, feed.collection.began_at) == (2, "t3", feed.now)


@pytest.mark.parametrize("flag", ["is_head", "is_again"])
def test_what_a_walk_had_does_not_serve_where_it_is_asked_for_anew(world: Make, flag: str) -> None:
    """R28: for a page that may have changed, and for HEAD."""
    feed = world(*in_turn(1, 2))
    has_pages(feed, 1, 2)
    feed.most_responses = 1
    feed.collect()
    feed.most_responses = 99
    feed.adapter.rounds = (asks(1, **{flag: True}),)
    feed.collect()
    assert feed.fetched == [page(1)]


def test_detached_pages_do_not_serve(world: Make) -> None:
    """R25: they no longer belong to the feed."""
    feed = world(*in_turn(1, 2))
    has_pages(feed, 1, 2)
    feed.most_responses = 1
    feed.collect()
    feed.change(2, rank=None)
    feed.most_responses = 99
    feed.collect()
    assert feed.fetched == [page(1), page(2)]


# Stored pages


def test_a_page_with_news_is_kept(world: Make) -> None:
    """R6, R29: as a page in its place, and waiting readers get it."""
    feed = world([PageQuestion(page(4), place=9)])
    feed.responses[page(4)] = a_page(page(4), "x", "y", dates=(NOW - 2, NOW - 1))
    (keep,) = feed.collect().of(KeepDocument)
    placement = keep.placement
    assert (keep.url, placement.url, placement.role, placement.rank) == (page(4), page(4), Role.PAGE, 9)
    assert (placement.found_by, placement.found_in, placement.remembers) == ("script", 1, None)
    progress = feed.basis.progress
    assert (progress.documents, progress.entries, progress.fetched, progress.urls) == (2, 2, 1, [page(4)])
    (answer,) = feed.adapter.answers
    assert isinstance(answer, AdapterPage)
    assert (answer.news, answer.is_ascending, answer.dates, answer.had_at) == (
        2,
        True,
        (NOW - 2, NOW - 1),
        NOW,
    )


def test_a_page_that_is_as_it_is_stored_is_noted(world: Make) -> None:
    """R29: the next walk may use the stored page."""
    feed = world(*in_turn(1))
    has_pages(feed, 1)
    feed.collect()
    played = feed.collect(is_full=True)
    assert (played.of(KeepDocument), played.of(Touch)) == ([], [Touch(2, found_in=2)])
    assert played.of(Drop) == [Drop(page(1))]
    assert feed.collect().of(Touch) == [Touch(2, found_in=None)]  # by a look


def test_a_page_that_changed_replaces_the_stored_one(world: Make) -> None:
    """R6: departed entries stay, so the store learns the former ones."""
    feed = world(*in_turn(1))
    has_pages(feed, 1)
    feed.collect()
    feed.responses[page(1)] = a_page(page(1), "1-b", "1-c")
    (keep,) = feed.collect().of(KeepDocument)
    assert (keep.placement.remembers and keep.placement.remembers.id, len(feed.pages)) == (2, 1)


def test_on_a_look_a_page_without_news_is_not_kept(world: Make) -> None:
    """R30: a walk through all pages stores every page."""
    feed = world(*in_turn(1, 2))
    collected(feed)
    feed.responses = {page(1): a_page(page(1), "t2", "t3"), page(2): a_page(page(2), "t3", "z")}
    feed.collect()
    assert feed.pages == [page(2)]
    feed.collect(is_full=True)
    assert feed.pages == [page(1), page(2)]


def test_on_a_look_a_newer_copy_is_kept(world: Make) -> None:
    """R10: the time of fetch dates a page."""
    feed = world(*in_turn(1))
    collected(feed)
    feed.now += HOUR
    feed.responses[page(1)] = a_page(page(1), "t2", "t3")
    feed.collect()
    assert feed.pages == [page(1)]


@pytest.mark.parametrize("names", [TOP, ()], ids=["the subscription document once more", "nothing"])
def test_a_page_without_entries_of_its_own_is_not_kept(world: Make, names: Sequence[str]) -> None:
    """R27."""
    feed = world(*in_turn(1))
    feed.responses[page(1)] = a_page(page(1), *names)
    assert feed.collect().of(Drop) == [Drop(page(1))]
    assert feed.pages == []


def test_a_probe_is_not_kept(world: Make) -> None:
    """R27: it only shows the publisher's behaviour."""
    feed = world(asks(1, is_probe=True))
    has_pages(feed, 1)
    assert feed.collect().of(Drop) == [Drop(page(1))]
    assert feed.pages == []
    assert isinstance(feed.adapter.answers[0], AdapterPage)


def test_a_held_page_is_kept_once_it_is_asked_for_again(world: Make) -> None:
    """R27: without a second request."""
    feed = world(asks(1, is_held=True), asks(1))
    has_pages(feed, 1)
    feed.collect()
    assert (feed.fetched, feed.pages, feed.let_go) == ([page(1)], [page(1)], set())
    one_page, same = feed.adapter.answers
    assert one_page == same


def test_a_held_page_that_nobody_wants_goes_at_the_end(world: Make) -> None:
    """R27: it may belong to another feed."""
    feed = world(asks(1, is_held=True))
    has_pages(feed, 1)
    assert feed.collect().of(Drop) == []
    assert (feed.pages, feed.let_go) == ([], {page(1)})


def test_a_held_page_that_does_not_serve_any_more_is_fetched_anew(world: Make) -> None:
    """R28: a repeated question means that it may have changed."""
    feed = world(asks(1, is_held=True), asks(1, is_again=True))
    has_pages(feed, 1)
    assert feed.collect().of(Drop) == [Drop(page(1))]
    assert (feed.fetched, feed.pages) == ([page(1), page(1)], [page(1)])


def test_a_page_that_was_stored_a_moment_ago_is_looked_up_once(world: Make) -> None:
    """R6: the second page replaces the first."""
    feed = world(asks(1), *[asks(1, is_again=True)] * 4)
    feed.responses[page(1)] = lambda times: a_page(page(1), f"{min(times, 2)}")
    played = feed.collect()
    assert [bool(keep.placement.remembers) for keep in played.of(KeepDocument)] == [False, True, True]
    assert (len(played.of(Rows)), len(played.of(Touch))) == (3, 2)


OBJECTIONS: dict[str, tuple[Response, str]] = {
    "of another format": (a_page(page(1), "x", family=Family.RSS), "format"),
    "at another site": (a_page(page(1), "x", final_url=ELSEWHERE, site_id=""), "cross-origin-unconfirmed"),
    "without the parameter": (a_page(page(1), "x", final_url="http://o.test/all"), "redirected"),
    "the subscription document": (LedBack(FEED), "redirected"),
}  # fmt: skip


@pytest.mark.parametrize("is_needed", [True, False])
@pytest.mark.parametrize(("response", "slug"), OBJECTIONS.values(), ids=OBJECTIONS)
def test_what_was_not_asked_for_is_refused(
    world: Make, response: Response, slug: str, is_needed: bool
) -> None:
    """R27: missing only if the page must exist."""
    feed = world(asks(1, is_needed=is_needed))
    feed.responses[page(1)] = response
    notes = feed.collect().result.notes
    assert feed.adapter.answers == [Refused(slug)]
    assert feed.pages == []
    assert [note.facts["reason"] for note in notes] == [slug] * is_needed


@pytest.mark.parametrize(
    ("feed_url", "site_id"), [("http://p.test/feed", ""), (FEED, "urn:feed")], ids=["its own URL", "its id"]
)
def test_a_page_at_another_site_belongs_here(world: Make, feed_url: str, site_id: str) -> None:
    """R27: by the site of the feed's requested URL, or the feed's name."""
    feed = world(asks(1))
    feed.feed_url = feed_url
    feed.responses[page(1)] = a_page(page(1), "x", final_url=ELSEWHERE, site_id=site_id)
    feed.collect()
    assert feed.pages == [page(1)]


# Failures, and when they end the requests


WANTS = "the publisher wants a pause"
FAILURES: dict[str, tuple[Failure, dict[str, Any], str, float | None, bool]] = {
    # how page 1 fails, how it was asked for, why nothing more is asked, for how long, for the whole host
    "403": (a_failure(403), {}, "the publisher refuses its pages (403)", DAY, False),
    "429": (a_failure(429), {}, f"{WANTS} (publisher-status)", HOUR, True),
    "429 for two hours": (PAUSE, {}, f"{WANTS} (publisher-status)", 2 * HOUR, True),
    "the host's pause": (a_failure(slug="host-backoff"), {}, f"{WANTS} (host-backoff)", HOUR, True),
    "503": (UNAVAILABLE, {}, "", None, False),
    "404": (GONE, {}, "", None, False),
    "404, though it has to be there": (GONE, {"is_needed": True}, "", None, False),
    "HEAD is refused": (a_failure(403), {"is_head": True}, "", None, False),
    "a trial is refused": (a_failure(403), {"is_trial": True}, "", None, False),
}  # fmt: skip


@pytest.mark.parametrize(
    ("failure", "manner", "reason", "seconds", "is_of_host"), FAILURES.values(), ids=FAILURES
)
def test_a_failure_pauses_or_does_not(
    world: Make,
    failure: Failure,
    manner: dict[str, Any],
    reason: str,
    seconds: float | None,
    is_of_host: bool,
) -> None:
    """R32: its page is tried no sooner than the others."""
    feed = world(asks(1, **manner), asks(2))
    has_pages(feed, 2)
    feed.responses[page(1)] = failure
    played = feed.collect()
    assert feed.fetched == ([page(1)] if reason else [page(1), page(2)])
    assert played.of(PauseHost) == [PauseHost(page(1), NOW + (seconds or 0.0))] * is_of_host
    assert feed.collection.reason == reason
    if reason:
        assert feed.collection.retry_at is not None
        assert feed.collection.retry_at >= NOW + (seconds or 0.0)
    failed = played.result.failures.get(page(1))
    is_answer = not manner.get("is_needed") and failure.publisher_status == 404
    assert feed.adapter.answers[:1] == ([] if reason else [Refused(failure.slug, failure.publisher_status)])
    if not reason:
        assert (failed is None) == (is_answer or bool({"is_head", "is_trial"} & manner.keys()))


def test_a_missing_page_waits_as_long_as_the_pause(world: Make) -> None:
    """R32: in a feed with earlier pages."""
    feed = world(asks(1))
    collected(feed)
    feed.responses[page(1)] = PAUSE
    walked = feed.collect().result
    assert walked.failures[page(1)] == replace(PAUSE, retry_after_seconds=7200.0)
    assert walked.failures[FEED].retry_after_seconds == 7200.0


def test_what_is_under_way_is_taken_though_nothing_more_is_asked(world: Make) -> None:
    """R32: the second of two requests."""
    feed = world(asks(1, 2, 3))
    has_pages(feed, 2, 3)
    feed.responses[page(1)] = a_failure(403)
    feed.collect()
    assert (feed.fetched, feed.pages) == ([page(1), page(2)], [page(2)])
    assert feed.adapter.answers == []


@pytest.mark.parametrize(
    ("statuses", "requests"),
    [((503, 503, 503, 503), 3), ((503, 503, 404, 503, 503, 200), 6), ((503, 503, 200, 503, 503, 503), 6)],
)
def test_three_failures_in_a_row_are_enough(world: Make, statuses: Sequence[int], requests: int) -> None:
    """R32: an absent page counts as a publisher's answer."""
    feed = world(*in_turn(*range(1, 1 + len(statuses))))
    for number, status in enumerate(statuses, 1):
        feed.responses[page(number)] = (
            a_page(page(number), f"{number}") if status == 200 else a_failure(status)
        )
    feed.collect()
    assert len(feed.fetched) == requests
    is_stopped = statuses[-1] == 503
    assert feed.collection.reason == "3 pages in a row could not be fetched (publisher-status)" * is_stopped
    if is_stopped:
        assert feed.collection.retry_at == NOW + HOUR


def test_a_page_that_comes_after_all_is_not_missing(world: Make) -> None:
    """R31: after a repeated question."""
    feed = world(asks(1), asks(1, is_again=True))
    feed.responses[page(1)] = lambda times: a_page(page(1), "x") if times else UNAVAILABLE
    walked = feed.collect().result
    assert (walked.notes, walked.failures, feed.pages) == ([], {}, [page(1)])


def test_an_empty_page_is_missing_where_it_has_to_be_there(world: Make) -> None:
    """R6."""
    feed = world(asks(1, is_needed=True), asks(2))
    feed.responses = {page(1): a_page(page(1)), page(2): a_page(page(2))}
    assert [(note.url, note.facts["reason"]) for note in feed.collect().result.notes] == [(page(1), "empty")]


def test_a_page_whose_time_has_not_come_is_not_asked_for(world: Make) -> None:
    """R14: it stays missing; a person's refresh tries it."""
    feed = world(asks(1, 2))
    has_pages(feed, 1, 2)
    feed.fail(page(1), retry_seconds=600.0)
    feed.fail(page(9), retry_seconds=-1.0)
    notes = feed.collect().result.notes
    assert (feed.fetched, [note.url for note in notes]) == ([page(2)], [page(1)])
    assert feed.adapter.answers[0] == Refused("publisher-status", 503)
    feed.collect(is_forced=True)
    assert feed.fetched == [page(1)]  # of this walk the other is there


def test_a_source_that_must_not_be_asked_is_refused(world: Make) -> None:
    """R26: by the configuration; the feed itself may be asked."""
    feed = world([PageQuestion(SOURCE), *asks(1)], may_collect=lambda url: url != SOURCE)
    feed.collect()
    assert (feed.fetched, feed.adapter.answers[0]) == ([page(1)], Refused("destination-forbidden"))


def test_a_source_that_wants_a_pause_ends_the_requests(world: Make) -> None:
    """R32: the feed is remembered and tried again within a week."""
    feed = world([PageQuestion(SOURCE)], asks(1), is_collect_paused=lambda url: url == SOURCE)
    walked = feed.collect().result
    assert (feed.fetched, walked.state) == ([], State.REMEMBERED)
    assert (feed.collection.reason, feed.collection.retry_at) == ("the publisher wants a pause", NOW + HOUR)


LIMITS = {
    "limits.documents_per_feed": {"documents": 3},
    "limits.feed_bytes": {"bytes": 3000},
    "limits.entries_per_feed": {"entries": 7},
}


@pytest.mark.parametrize(("key", "limit"), LIMITS.items())
def test_limits_end_the_requests(world: Make, key: str, limit: dict[str, int]) -> None:
    """R18: the subscription document counts; stored pages stay available."""
    limits = WalkLimits(**{"documents": 200, "bytes": 10**9, "entries": 10**6} | limit)
    feed = world(*in_turn(1, 2, 3, 4), limits=limits)
    has_pages(feed, 1, 2, 3, 4)
    walked = feed.collect().result
    assert (feed.fetched, feed.pages) == ([page(1), page(2)], [page(1), page(2)])
    assert [(note.facts["limit"], note.url) for note in walked.notes] == [(key, page(3))]
    assert feed.collection.reason == str(walked.notes[0])
    feed.adapter.rounds = (asks(1, is_again=True), asks(9, is_head=True), asks(3))
    feed.responses[page(9)] = There({})
    feed.collect()
    assert feed.fetched == [page(1), page(9)]


def test_the_time_of_a_walk_is_limited(world: Make) -> None:
    """R18: requests under way are dropped, and received pages stay."""
    feed = world(asks(1, 2, 3), walk_seconds=600.0)
    has_pages(feed, 1, 2, 3)
    feed.most_responses = 1
    walked = feed.collect().result
    assert [(note.url, note.facts["value"]) for note in walked.notes] == [(page(2), 600.0)]
    assert (feed.fetched, feed.pages) == ([page(1)], [page(1)])


# Requests without an end (R17)


class Endless:
    """An endless adapter; `number_of` maps a question's number to its page."""

    name = "endless"

    def __init__(self, number_of: Callable[[int], int]) -> None:
        self._number_of = number_of

    def fits(self, sight: object) -> bool:
        return True

    def collect(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        for number in count(1):
            yield from one(PageQuestion(page(self._number_of(number)), place=number, is_again=True))
        raise AssertionError("it goes on")

    look = collect


BOUND = 50
"""Requests in a row without a new entry."""


@pytest.mark.parametrize(
    ("number_of", "most", "requests"),
    [
        (lambda number: number, 0, BOUND),
        (lambda number: number, 5, 5 + BOUND),
        (lambda number: number % 7, 100, 6 + BOUND),
        (lambda number: min(number, 100 - number % 30), 100, 174),
    ],
    ids=["nothing but the feed", "the last page for ever", "in a circle", "back and forth"],
)
def test_request_after_request_that_brings_nothing_new_is_the_end(
    monkeypatch: pytest.MonkeyPatch, number_of: Callable[[int], int], most: int, requests: int
) -> None:
    """R17: against any adapter; the next walk restarts in its time."""
    feed = CollectedWorld(Endless(number_of))
    monkeypatch.setattr(table, "ADAPTERS", (feed.adapter,))
    for number in range(400):
        shown = min(number, most)
        names = (f"{shown}-a", f"{shown}-b") if shown else TOP
        feed.responses[page(number)] = a_page(page(number), *names)
    walked = feed.collect().result
    assert len(feed.fetched) == requests
    assert walked.state is (State.COLLECTED if most else State.REMEMBERED)
    assert feed.collection.reason == "request after request brought nothing new"
    assert feed.collection.walk == 2
    assert feed.collection.retry_at == NOW + (HOUR if most else WEEK)
    assert feed.collect().requests == []


def a_new_post(url: str, times: int) -> Response:
    return a_page(url, f"{times} {url}")


def test_to_ask_for_the_same_page_again_and_again_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """R17: even with a new entry each time."""
    feed = CollectedWorld(Endless(lambda number: min(number, 3)))
    monkeypatch.setattr(table, "ADAPTERS", (feed.adapter,))
    for url in map(page, (1, 2, 3)):
        feed.responses[url] = partial(a_new_post, url)
    feed.collect()
    assert len(feed.fetched) == 3 + 3 + BOUND
    assert feed.collection.reason == "request after request brought nothing new"


def test_a_second_reading_of_all_pages_has_bounds_of_its_own(world: Make) -> None:
    """R17, R28: its pages came before; stored pages count as read, not as requests."""
    numbers = range(1, 41)
    feed = world(*in_turn(*numbers), *in_turn(*numbers, is_again=True, reading=1))
    has_pages(feed, *numbers)
    assert feed.collect().result.ending.end is End.READ
    assert len(feed.fetched) == 80
    feed.adapter.rounds = (*in_turn(*numbers), *in_turn(*numbers, is_again=True))
    feed.collect(is_full=True)
    assert feed.collection.reason == ""
    feed.adapter.rounds = (
        *in_turn(*numbers),
        *in_turn(*numbers, is_again=True),
        *in_turn(*range(1, 11), is_again=True),
    )
    feed.collect(is_full=True)
    assert feed.collection.reason == "request after request brought nothing new"
