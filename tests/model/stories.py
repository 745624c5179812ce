"""Play a story: the publisher's actions, the reader's requests, and the proxy's answers.

    story = a_story(7)
    differences = await story.play()    # nothing: the proxy does what the rules say

A step is a name with its arguments: an event of the publisher, or one of `READS` with the seconds that pass
before. Stories are short enough to be read; `shrunk` drops the steps that a difference does not need.
"""

from __future__ import annotations

import copy
import gzip
import random
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from unittest.mock import patch

from tests.model import known
from tests.model.asking import Asking
from tests.model.documents import read
from tests.model.publisher import DIALECTS, FAULTS, FEED, Habits, Publisher
from tests.model.rules import Feed
from tests.model.short import Step, Story, WallClock
from tests.origin import Origin
from tests.running import Proxy, Reply, a_config, running

WAITS: Final = (130, 1010, 1010, 4030, 90070, 90070)
"""Seconds between two visits of a reader: less than a feed is fresh, more, until a retry, more than a day."""

PUBLIC_URL: Final = "http://proxy.test"
"""Answers name it; the port changes with each start."""

READS: Final = ("asks", "refreshes", "refreshes fully", "restarts", "forgets")


@dataclass(frozen=True, kw_only=True)
class FeedStory(Story):
    """A story of a feed."""

    habits: Habits
    version: str
    mode: str
    looks_ahead: bool

    async def play(self, url: str = "") -> list[str]:
        return await _play(self, url)

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.version}, {self.mode}, look-ahead {self.looks_ahead}, {self.habits}"


# ---- Making one up

_EVENTS: Final[dict[str, int]] = {
    "adds": 12, "updates": 5, "corrects": 4, "closes": 12, "grows": 4, "rewrites": 2, "drops": 4,
    "deletes": 3, "forgets_deletions": 1, "renames": 3, "replaces": 4, "discards": 3, "skips": 2, "trims": 1,
    "switches": 4, "reverts": 1, "changes_format": 3, "fails": 6, "recovers": 5, "moves": 2, "widens": 4,
}  # fmt: skip
"""The publisher's events, with their frequency."""


def a_story(seed: int) -> FeedStory:
    """Make up a story, the same for the same number."""
    chance = random.Random(seed)
    version = chance.choice(["atom", "atom", "atom03", "rss", "rss", "rdf", "json"])
    mode = chance.choice(["chain", "chain", "chain", "chain", "paged", "paged", "plain", "complete"])
    dialect = chance.choice(["prev-archive", "prev-archive", *DIALECTS])
    habits = Habits(
        dialect="prev-archive" if version == "json" else dialect,
        dates=chance.choice(["updated", "updated", "order", "none", "mixed"]),
        is_dated=version.startswith("atom") or chance.random() < 0.7,
        is_marked=chance.random() < 0.6,
        is_uncacheable=chance.random() < 0.2,
        stamps_now=chance.random() < 0.3,
        has_validators=chance.random() < 0.7,
        max_age=chance.choice([None, None, 60.0, 3600.0]),
        page_size=chance.choice([1, 2, 3]),
    )
    if mode == "paged":  # an edit without a date cannot be told from what is stored
        habits = replace(habits, dates="updated")
    looks_ahead = chance.random() < 0.3
    return FeedStory(
        seed=seed, steps=tuple(_steps(chance, mode)), habits=habits, version=version, mode=mode,
        looks_ahead=looks_ahead,
    )  # fmt: skip


_SHIFTING: Final[dict[str, int]] = {
    "shifts": 12, "adds": 1, "updates": 1, "grows": 1, "discards": 1, "renames": 1, "fails": 3, "recovers": 4,
}  # fmt: skip


def a_shifting_story(seed: int) -> FeedStory:
    """Make up a story of a chain of shifting archives (R35)."""
    chance = random.Random(f"shifting {seed}")
    story = replace(a_story(seed), seed=seed, mode="chain", looks_ahead=False)
    steps: list[Step] = []
    for _ in range(chance.randint(2, 5)):
        steps += [*[("adds",)] * chance.randint(2, 4), ("closes", 1)]
    steps += [("adds",), ("asks", 0)]
    for _ in range(chance.randint(3, 12)):
        steps.append(("shifts",))
        for name in chance.choices(list(_SHIFTING), list(_SHIFTING.values()), k=chance.randint(0, 4)):
            steps.append((name, *_arguments(chance, name, "chain")))
        reads = chance.choices(READS[:4], [12, 2, 1, 2])[0]
        steps.append((reads, chance.choice((1010, 90070, 90070, 90070))))
    return replace(story, steps=tuple(steps), habits=replace(story.habits, dialect="prev-archive"))


def _steps(chance: random.Random, mode: str) -> list[Step]:
    steps: list[Step] = [("adds",) for _ in range(chance.randint(1, 4))]
    for _ in range(chance.choice([0, 1, 2, 2, 3, 4, 7]) if mode != "plain" else 0):
        steps += [("closes", chance.randint(0, 1)), *[("adds",)] * chance.randint(1, 3)]
    for _ in range(chance.choice([0, 0, 0, 1, 2])):  # there are holes before anybody has asked
        steps.append(("fails", *_arguments(chance, "fails", mode)))
    steps.append(("asks", 0))
    for _ in range(chance.randint(3, 9)):
        for name in chance.choices(list(_EVENTS), list(_EVENTS.values()), k=chance.randint(0, 4)):
            steps.append((name, *_arguments(chance, name, mode)))
        reads = chance.choices(READS, [12, 4, 2, 2, 1])[0]
        steps.append((reads, chance.choice(WAITS)))
    return steps


_FORMATS: Final = ("atom", "atom03", "rss", "rdf", "json")


def _arguments(chance: random.Random, name: str, mode: str) -> Step:
    modes = [mode, mode, "plain", "chain", "complete", "snapshot", "paged"]
    return {
        **dict.fromkeys(("adds", "drops", "forgets_deletions", "trims", "recovers", "widens", "shifts"), ()),
        **dict.fromkeys(("closes", "skips"), (chance.randint(0, 2),)),
        "renames": (chance.randint(0, 1),),
        "switches": (chance.choice(modes),),
        "changes_format": (chance.choice(_FORMATS),),
        "fails": (chance.randint(0, 9), chance.choice(sorted(FAULTS))),
        "moves": (chance.randint(0, 5), chance.choice([301, 302, 308])),
    }.get(name, (chance.randint(0, 5),))


# ---- Playing it


@dataclass
class _Play:
    story: FeedStory
    origin: Origin
    clock: WallClock
    folder: Path
    url: str
    """URL of the store's PostgreSQL database; "": the store is in a file."""
    publisher: Publisher
    feed: Feed = field(default_factory=lambda: Feed(FEED))
    differences: list[str] = field(default_factory=list)
    kept_off: list[str] = field(default_factory=list)
    rests: bool = False
    published: set[str] = field(default_factory=set)
    seen: dict[str, bytes] = field(default_factory=dict)
    """Body by ETag."""
    etags: dict[bytes, str] = field(default_factory=dict)
    """ETag by body."""
    last: Reply | None = None


async def _play(story: FeedStory, url: str) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="wholefeed-model-") as folder:
        async with Origin() as origin:
            clock = WallClock()
            began_at = float(int(clock())) - 10_000_000
            publisher = Publisher(story.habits, story.version, began_at, mode=story.mode)
            with patch.object(time, "time", clock):
                return await _Player(_Play(story, origin, clock, Path(folder), url, publisher)).run()


class _Player:
    def __init__(self, play: _Play) -> None:
        self._play = play
        self._was_partial = False
        self._stack = AsyncExitStack()
        self._proxy: Proxy

    async def run(self) -> list[str]:
        play = self._play
        async with AsyncExitStack() as self._stack:
            await self._start()
            for number, step in enumerate(play.story.steps):
                if step[0] in READS:
                    await self._read(step[0], step[1])
                else:
                    self._event(step)
                if play.differences:
                    return [f"step {number}, {' '.join(map(str, step))}: {each}" for each in play.differences]
        return []

    async def _start(self) -> None:
        config = a_config(
            self._play.folder,
            server={"public_url": PUBLIC_URL},
            history={"look_ahead": self._play.story.looks_ahead},
            store={"url": self._play.url},
        )
        self._proxy = await self._stack.enter_async_context(running(config, self._play.clock))

    def _event(self, step: Step) -> None:
        """Perform it, unless that meets a known defect."""
        play = self._play
        before = copy.deepcopy(play.publisher)
        getattr(play.publisher, step[0])(*step[1:])
        if FEED in play.publisher.faults and not play.feed.subscription:
            play.publisher = before  # a feed that was never had is an error, and no reconstruction
        number = known.met(play.publisher, play.feed)
        if number:
            play.publisher = before
            play.kept_off.append(number)

    # ---- The reader

    async def _read(self, how: str, seconds: float) -> None:
        play = self._play
        if known.met(play.publisher, play.feed):
            return
        play.publisher.publish(play.origin, play.published)
        play.clock.advance(seconds)
        if how == "restarts":
            await self._stack.aclose()
            play.rests = False
            await self._start()
            await self._proxy.settled()
        if how == "forgets":
            if play.publisher.faults or play.rests:
                return
            await self._proxy.ask("DELETE", "/feed", params={"url": self._url})
            play.feed, play.last = Feed(FEED), None
        await self._refresh(how)
        await self._compare()

    @property
    def _url(self) -> str:
        return self._play.origin.url(FEED)

    async def _refresh(self, how: str) -> None:
        """Let the proxy ask, and the model see the requests."""
        play = self._play
        now = play.clock()
        play.origin.forget_requests()
        is_known = play.feed.subscription is not None
        is_full, is_forced = is_known and how == "refreshes fully", is_known and how == "refreshes"
        if is_full or is_forced:
            query = {"url": self._url, **({"full": "1"} if is_full else {})}
            await self._proxy.ask("POST", "/refresh", params=query)
        else:
            await self._proxy.whole(self._url)
        await self._proxy.settled()
        asked = [request.target for request in play.origin.requests]
        asking = Asking(now, play.publisher.answer, asked, rests=play.rests, guesses=play.story.looks_ahead)
        feed = play.feed
        is_due = now >= feed.due.at_latest or (now >= feed.due.not_before and FEED in asked)
        if is_full or is_forced or is_due:
            feed.refresh(asking, is_forced=is_forced, is_full=is_full)
        asking.end(lambda path: path in feed.archives or path in feed.pages or path == FEED)
        play.rests = asking.rests
        play.differences += asking.differences

    async def _compare(self) -> None:
        play, feed = self._play, self._play.feed
        play.origin.forget_requests()
        reply = await self._proxy.get(self._url)
        status = await self._proxy.status(self._url)
        if reply.status != 200:
            play.differences.append(f"{reply.status}: {reply.body.decode()}")
            return
        if play.origin.requests:
            play.differences.append(f"{play.origin.requests[0].target} was asked for again at once")
        told, expected_facts = _facts_of(reply), _facts_told(feed)
        if feed.doubtful:  # whether they are served is for the proxy to say (R35)
            expected_facts = (*expected_facts[:2], told[2], *expected_facts[3:])
        self._expect_equal(told, expected_facts, "header")
        self._expect_equal(status["state"], feed.state, "state in /status")
        self._expect_equal([status["documents"], status["entries"]], list(_facts_of(reply)[1:3]), "/status")
        self._expect_equal(
            {each["url"].removeprefix(play.origin.url("")) for each in status["missing"]},
            set(feed.attempts), "missing in /status",
        )  # fmt: skip
        seen = read(reply.body, reply.headers["Content-Type"])
        expected = [each for each in feed.entries() if each[0] not in feed.doubtful]
        found = [each for each in seen.entries if each[0] not in feed.doubtful]
        if feed.is_order_told and not (feed.chain and feed.page_order):
            self._expect_equal(found, expected, "entries")
        else:
            self._expect_equal(sorted(found), sorted(expected), "entries, in no order")
        stands = {copy.name for doc in play.publisher.documents().values() for copy in doc.copies}
        vanished = (feed.doubtful & stands) - {name for name, _ in seen.entries} - feed.deletions()
        self._expect_equal(vanished, set(), "what its publisher still has")  # R35
        is_partial = feed.state == "partial"
        if is_partial or not self._was_partial or seen.strangers != 1:  # else it says that it has healed
            self._expect_equal(seen.strangers, int(is_partial), "warnings")
        self._was_partial = self._was_partial or is_partial
        if feed.family != "json":
            is_complete = feed.state == "complete" and not seen.strangers
            self._expect_equal(seen.is_complete, is_complete, "fh:complete")
            self._expect_equal(seen.deletions, feed.deletions(), "tombstones")
        await self._compare_conditions(reply)

    async def _compare_conditions(self, reply: Reply) -> None:
        """ETag, Last-Modified, 304 and gzip."""
        play, etag = self._play, reply.headers["ETag"]
        self._expect_equal(play.seen.setdefault(etag, reply.body) == reply.body, True, "one body an ETag")
        self._expect_equal(play.etags.setdefault(reply.body, etag), etag, "one ETag a body")
        again = await self._proxy.get(self._url, headers={"If-None-Match": etag})
        self._expect_equal((again.status, again.body), (304, b""), "If-None-Match")
        self._expect_equal(again.reconstruction, reply.reconstruction, "header of 304")
        zipped = await self._proxy.get(self._url, headers={"Accept-Encoding": "gzip"})
        self._expect_equal(gzip.decompress(zipped.body) == reply.body, True, "gzip")
        await self._compare_dates(reply)
        play.last = reply

    async def _compare_dates(self, reply: Reply) -> None:
        """304 for the very body only; a second with two bodies has no date until it is over."""
        dates, last = dict[str, int](), self._play.last
        if "Last-Modified" in reply.headers:
            dates[reply.headers["Last-Modified"]] = 304
        if last is not None and last.body != reply.body and "Last-Modified" in last.headers:
            dates[last.headers["Last-Modified"]] = 200
        for date, expected in dates.items():
            answer = await self._proxy.get(self._url, headers={"If-Modified-Since": date})
            self._expect_equal(answer.status, expected, f"If-Modified-Since {date}")

    def _expect_equal(self, found: object, expected: object, what: str) -> None:
        if found != expected:
            self._play.differences.append(f"{what}: found {found}, expected {expected}")


def _facts_of(reply: Reply) -> tuple[str, int, int, int, bool]:
    """State, documents, entries, missing, stale."""
    state, *parameters = reply.reconstruction.split(";")
    told = dict(each.partition("=")[::2] for each in parameters)
    return state, int(told["documents"]), int(told["entries"]), int(told["missing"]), "stale" in told


def _facts_told(feed: Feed) -> tuple[str, int, int, int, bool]:
    return feed.state, feed.documents, len(feed.live()), len(feed.attempts), feed.is_stale
