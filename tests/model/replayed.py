"""Stories of a feed that is replayed at two paces while its publisher goes on (P1 to P6).

    story = a_replay_story(7)
    differences = await story.play()    # nothing: each entry is where and when the rules say

The publisher adds, edits, deletes, brings back, finds old entries, and publishes many at once; time passes,
the proxy is started again. The released entries, their order and dates are computed anew for each
question, one slot after the other, as the rule puts it (`_expected`).
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import feedparser

from tests.feeds import BASE_AT, Item, atom, json_feed, rss
from tests.model.short import Step, Story
from tests.origin import Origin
from tests.running import Proxy, StandingClock, a_config, running

DAY: Final = 86_400
HOUR: Final = 3600
PATH: Final = "/feed"
_MAKERS: Final[dict[str, Any]] = {"atom": atom, "rss": rss, "json": json_feed}
_EVENTS: Final = {
    "adds": 8, "adds_undated": 2, "finds": 4, "heals": 1, "edits": 3, "deletes": 3, "restores": 2,
    "waits": 12, "restarts": 2, "asks": 6,
}  # fmt: skip
_PACES: Final = ("1/day", "2/day", "50/day", "3/week", "1/week", "14/week")
_DAYS: Final = ("", "", "mon", "tue,sat,sun")
_NAMES: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True, kw_only=True)
class ReplayStory(Story):
    """A story of a replayed feed."""

    maker: str
    window: int
    """Entries in the feed, which is remembered; 0: all, and the feed is complete."""
    count: int
    """Entries at its beginning."""
    paces: tuple[tuple[str, str, int], ...]
    """Rate, days, and the seconds from the beginning of the lines to that of the pace."""

    async def play(self, url: str = "") -> list[str]:
        with tempfile.TemporaryDirectory(prefix="wholefeed-model-") as folder:
            async with Origin() as origin:
                return await _Player(self, origin, Path(folder), url).run()

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.maker}, window {self.window}, {self.count} entries, {self.paces}"


def a_replay_story(seed: int) -> ReplayStory:
    """Make up a story, the same for the same number."""
    chance = random.Random(f"replay {seed}")
    paces = []
    for _ in range(2):
        rate = chance.choice(_PACES)
        on = chance.choice(_DAYS) if rate.endswith("day") else ""
        paces.append((rate, on, chance.choice([-10 * DAY, -HOUR, -2, 2 * DAY])))
    return ReplayStory(
        seed=seed,
        steps=tuple(_steps(chance)),
        maker=chance.choice(list(_MAKERS)),
        window=chance.choice([0, 0, 4]),
        count=chance.randint(0, 8),
        paces=tuple(paces),
    )


def _steps(chance: random.Random) -> Iterator[Step]:
    for _ in range(chance.randint(6, 18)):
        (what,) = chance.choices(list(_EVENTS), list(_EVENTS.values()))
        match what:
            case "adds" | "finds":
                yield what, chance.randint(1, 3)
            case "heals":
                yield what, chance.choice([20, 1000])
            case "edits" | "deletes" | "restores":
                yield what, chance.randrange(1000)
            case "waits":
                yield what, chance.choice([1, 7 * HOUR, DAY, DAY, 3 * DAY, 9 * DAY])
            case _:
                yield (what,)
    yield "waits", 5 * DAY
    yield ("asks",)


class _Line(NamedTuple):
    name: str
    arrived_at: int
    dated_at: float
    is_dated: bool


@dataclass
class _Truth:
    """The rules' result for the feeds shown to the proxy."""

    lines: list[_Line] = field(default_factory=list)
    begun: int | None = None
    live: set[str] = field(default_factory=set)


class _Player:
    def __init__(self, story: ReplayStory, origin: Origin, folder: Path, url: str) -> None:
        self._story = story
        self._origin = origin
        self._config = a_config(folder, store={"url": url} if url else {})
        self._clock = StandingClock()
        self._items: list[Item] = []
        self._gone: list[Item] = []
        self._count = 0
        self._truth = _Truth()
        self._proxy: Proxy
        self._seen: list[dict[str, int]] = [{} for _ in story.paces]
        self._differences: list[str] = []

    async def run(self) -> list[str]:
        async with AsyncExitStack() as stack:
            self._proxy = await stack.enter_async_context(running(self._config, self._clock))
            for n in range(self._story.count):
                self._add(self._hour() - 100 * DAY // HOUR + 24 * n)
            self._publish()
            await self._proxy.whole(self._origin.url(PATH))
            self._begun_at = int(self._clock())
            self._show()
            await self._ask(0)
            for step in self._story.steps:
                if step[0] == "restarts":
                    await stack.aclose()
                    self._proxy = await stack.enter_async_context(running(self._config, self._clock))
                else:
                    await self._take(step)
                if self._differences:
                    return [f"{' '.join(map(str, step))}: {each}" for each in self._differences]
        return []

    async def _take(self, step: Step) -> None:
        if step[0] == "waits":
            self._clock.advance(step[1])
        elif step[0] == "asks":
            for number in range(len(self._story.paces)):
                await self._ask(number)
        elif self._change(step):
            self._publish()
            await self._proxy.refreshed(self._origin.url(PATH))
            self._show()

    def _change(self, step: Step) -> bool:
        """Change the published entries; return whether that is possible."""
        match step:
            case "adds", int(count):
                for n in range(count):
                    self._add(self._hour() + n)
            case "adds_undated", *_:
                self._add(None)
            case "finds" | "heals", int(count):
                for n in range(count):
                    self._add(self._hour() - 300 * 24 - self._count - n)
            case "edits", int(chosen) if self._items:
                at = chosen % len(self._items)
                self._items[at] = Item(self._items[at].name, self._items[at].updated, f"edited {chosen}")
            case "deletes", int(chosen) if self._items and not self._story.window:
                self._gone.append(self._items.pop(chosen % len(self._items)))
            case "restores", int(chosen) if self._gone:
                self._items.append(self._gone.pop(chosen % len(self._gone)))
            case _:
                return False
        return True

    # The publisher

    def _hour(self) -> int:
        """The present hour, as `tests.feeds` counts them."""
        return int(self._clock() - BASE_AT) // HOUR

    def _add(self, updated: int | None) -> None:
        self._count += 1
        self._items.insert(0, Item(f"e{self._count}", updated, "text"))

    def _publish(self) -> None:
        dated = sorted((each for each in self._items if each.updated is not None), key=_updated, reverse=True)
        items = [*(each for each in self._items if each.updated is None), *dated]
        window = self._story.window
        head = {} if window else {"complete": True}
        if self._story.maker == "json":
            head = {}
        self._shown = items[: window or None]
        self._origin.publish(PATH, _MAKERS[self._story.maker](*self._shown, **head))

    # What the rules say

    def _show(self) -> None:
        """P1: newly published entries get their lines."""
        truth = self._truth
        names = {each.name for each in self._shown}
        is_remembered = self._story.window or self._story.maker == "json"
        truth.live = truth.live | names if is_remembered else names
        known = {line.name: line.dated_at for line in truth.lines}
        last = max((line.arrived_at for line in truth.lines), default=0)
        arrived_at = max(int(self._clock()) + 1, last)
        new, neighbour = list[_Line](), -float("inf")
        for each in reversed(self._shown):
            own = None if each.updated is None else BASE_AT + HOUR * each.updated
            neighbour = known.get(each.name, neighbour if own is None else own)
            if each.name not in known:
                new.append(_Line(each.name, arrived_at, neighbour, own is not None))
        truth.lines += sorted(new, key=lambda line: line.dated_at)
        truth.begun = len(truth.lines) if truth.begun is None else truth.begun

    def _expected(self, rate: str, on: str, from_at: int) -> list[tuple[str, int]]:
        """P2: the released entries, the newest release first."""
        truth, now = self._truth, int(self._clock())
        assert truth.begun is not None
        size = truth.begun
        while size < len(truth.lines) and truth.lines[size].arrived_at <= from_at:
            size += 1
        slots = list(_slots(rate, on, from_at, len(truth.lines), now))
        step = (DAY if rate.endswith("day") else 7 * DAY) // int(rate.partition("/")[0])
        instants: dict[str, int] = {}
        backlog = sorted(truth.lines[:size], key=lambda line: line.dated_at)
        for line, slot in zip(backlog, slots, strict=False):
            instants[line.name] = slot
        free, last = size, max(instants.values(), default=from_at)
        for line in truth.lines[size:]:
            if line.is_dated and line.dated_at < from_at:
                while slots[free] < line.arrived_at:
                    free += 1
                at, free = slots[free] + 60, free + 1
            elif last <= line.arrived_at:
                at = last = line.arrived_at
            else:
                at = last = next(slot for slot in slots if slot > last) if on else last + step
            while at in instants.values():
                at += 1
            instants[line.name] = at
        out = [(name, at) for name, at in instants.items() if at <= now and name in truth.live]
        return sorted(out, key=lambda each: -each[1])

    # What the proxy says

    async def _ask(self, number: int) -> None:
        rate, on, ahead_seconds = self._story.paces[number]
        from_at = self._begun_at + ahead_seconds
        asked = {"replay": rate, "from": _instant(from_at)} | ({"on": on} if on else {})
        reply = await self._proxy.ask(
            "GET",
            "/feed",
            params={"url": self._origin.url(PATH), **asked},
            headers={"Accept-Encoding": "identity"},
        )
        if reply.status != 200:
            self._differences.append(f"{reply.status}: {reply.body.decode()}")
            return
        found = self._read(reply.body)
        expected = self._expected(rate, on, from_at)
        if found != expected:
            self._differences.append(f"{asked}: {found}, expected {expected}")
        seen = self._seen[number]
        moved = {name: at for name, at in found if seen.setdefault(name, at) != at}
        if moved:
            self._differences.append(f"released at another time before: {moved}")

    def _read(self, body: bytes) -> list[tuple[str, int]]:
        if self._story.maker == "json":
            items = json.loads(body)["items"]
            dates = [each.get("date_modified") or each["date_published"] for each in items]
            found = [(each["id"], datetime.fromisoformat(at)) for each, at in zip(items, dates, strict=True)]
        elif self._story.maker == "atom":
            entries = feedparser.parse(body).entries
            found = [(each.id, datetime.fromisoformat(each.updated)) for each in entries]
        else:
            found = [
                (each.id, parsedate_to_datetime(each.published)) for each in feedparser.parse(body).entries
            ]
        return [(name.removeprefix("urn:"), int(at.timestamp())) for name, at in found]


def _updated(item: Item) -> int:
    return item.updated or 0


def _instant(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _slots(rate: str, on: str, from_at: int, lines: int, now: int) -> Iterator[int]:
    """Give slots until there are enough for this many lines behind now."""
    count, period = int(rate.partition("/")[0]), DAY if rate.endswith("day") else 7 * DAY
    left = lines + 2
    if on:
        day = datetime.fromtimestamp(from_at, UTC)
        while left:
            if _NAMES[day.weekday()] in on.split(","):
                for n in range(count):
                    at = int(day.timestamp()) + n
                    yield at
                    left -= at >= now
                    if not left:
                        return
            day += timedelta(days=1)
        return
    is_slow = count * DAY < 2 * period
    number = 0
    while left > 0:
        at = from_at + number * period // count
        yield at
        left -= at >= now
        if is_slow and not number:
            yield at + 1
        number += 1
