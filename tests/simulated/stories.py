"""A story: a publisher's actions, the requests to the program meanwhile, and the player.

record = play(a_story(7))
"""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from tests.simulated import places
from tests.simulated.archive import ROOT as ARCHIVE
from tests.simulated.archive import WebArchive
from tests.simulated.clock import Clock, VirtualLoop
from tests.simulated.collected import SITES, CollectedPublisher, a_collected_publisher
from tests.simulated.network import Network, Question, Response
from tests.simulated.places import (
    DocumentError,
    FeedRow,
    FoundSubscription,
    Obtained,
    Program,
    RefreshRequest,
    SuppliedDocument,
    WholefeedError,
    find_subscription,
)
from tests.simulated.publishers import LAYOUTS, Publisher, a_publisher
from tests.simulated.records import Log, RefreshRecord, StoryRecord, logged
from tests.simulated.storage import Disk

KINDS: Final = (
    *LAYOUTS,
    "archived",
    "any",
    *LAYOUTS,
    "shifting",
    "any",
    *LAYOUTS,
    "paged",
    "archived",
    *SITES,
)
"""One kind for each story in turn."""
GRID_SECONDS: Final = 3600.0
"""A refresh begins at a multiple of it: the duration of the one before makes no difference."""


@dataclass(frozen=True)
class Step:
    """One refresh, and the events before it."""

    hours: int
    """At least, since the last one began."""
    changes: int
    only: str = ""
    """The kind of these changes; empty: any."""
    meanwhile: tuple[float, ...] = ()
    """Times of the publisher's changes meanwhile, in seconds from its beginning."""
    request: Mapping[str, Any] = field(default_factory=dict)
    again: Mapping[str, Any] | None = None
    """Requests meanwhile."""
    again_at: float = 0.0
    kill: str = ""
    """`cancelled`, or `dropped`: an end without clean-up."""
    kill_at: float = 0.0
    restarts: bool = False
    """Whether the program restarts before."""
    busy_seconds: float = 0.0
    """Seconds for which others use all turns to walk."""
    act: str = ""
    """A further action: `forget`, `import`, `remove`."""
    looks_at: float = 0.0
    """Times at which somebody asks for its progress."""

    def __str__(self) -> str:
        told = [f"after {self.hours} h"]
        told += [f"{name}={value}" for name, value in self.request.items()]
        if self.act:
            told.append(self.act)
        if self.again is not None:
            told.append(f"again at {self.again_at:.3f} {dict(self.again)}")
        if self.kill:
            told.append(f"{self.kill} at {self.kill_at:.3f}")
        if self.restarts:
            told.append("after a restart")
        if self.busy_seconds:
            told.append(f"others walk for {self.busy_seconds:.3f} s")
        return ", ".join(told)


@dataclass(frozen=True)
class Story:
    """Decisions made before the play."""

    seed: int
    kind: str
    steps: tuple[Step, ...]
    limits: Mapping[str, Any]
    history: Mapping[str, Any]
    slowness: float
    turns: int


def a_story(seed: int, kind: str = "") -> Story:
    """Return the story of a seed; by default the seed also decides the kind."""
    dice = random.Random(f"story {seed}")
    kind = kind or KINDS[seed % len(KINDS)]
    is_steady = dice.random() < 0.2
    steps = tuple(
        _a_steady_step(dice) if is_steady else _a_step(dice)
        for _ in range(dice.choice((5, 7, 9) if is_steady else (2, 3, 4, 5, 6)))
    )
    limits: dict[str, Any] = {}
    if dice.random() < 0.15:
        limits["documents_per_feed"] = dice.choice((2, 4, 7))
    if dice.random() < 0.1:
        limits["feed_bytes"] = dice.choice((2000, 6000))
    if dice.random() < 0.1:
        limits["entries_per_feed"] = dice.choice((5, 12))
    if dice.random() < 0.15:
        limits["walk_seconds"] = dice.choice((1.0, 3.0, 8.0))
    history: dict[str, Any] = {"list": "off" if kind in SITES else dice.choice(("off", "auto"))}
    if dice.random() < 0.2:
        history |= {"memento": True, "memento_url": ARCHIVE, "memento_query_hosts": ("blog.test",)}
    for key, rate in (("paged", 0.1), ("remember", 0.15), ("look_ahead", 0.2), ("warn_entry", 0.2)):
        if dice.random() < rate:
            history[key] = False
    return Story(seed, kind, steps, limits, history, dice.choice((0.3, 1.0, 1.0, 4.0)), dice.choice((1, 16)))


def _a_steady_step(dice: random.Random) -> Step:
    """Return a step without special events."""
    return Step(
        hours=dice.choice((25, 49, 24 * 8)),
        changes=dice.choice((0, 1, 1, 2)),
        only="add",
        looks_at=dice.expovariate(0.5),
    )


def _a_step(dice: random.Random) -> Step:
    kill = dice.choice(("cancelled", "dropped")) if dice.random() < 0.55 else ""
    again = _a_request(dice) if dice.random() < 0.12 else None
    return Step(
        hours=dice.choice((1, 1, 2, 6, 24, 24, 24 * 8, 24 * 40)),
        changes=dice.choice((0, 0, 1, 1, 2, 3)),
        meanwhile=tuple(dice.expovariate(0.4) for _ in range(dice.choice((0, 0, 0, 0, 1, 2)))),
        request=_a_request(dice),
        again=again,
        again_at=dice.expovariate(1.0),
        kill=kill,
        kill_at=dice.expovariate(1.0),
        restarts=dice.random() < 0.15,
        busy_seconds=dice.expovariate(0.3) if dice.random() < 0.15 else 0.0,
        act=dice.choice(("",) * 8 + ("forget", "import", "import", "remove")),
        looks_at=dice.expovariate(0.5),
    )


def _a_request(dice: random.Random) -> dict[str, Any]:
    rates = {"is_forced": 0.12, "is_full": 0.1, "is_polled": 0.2}
    found: dict[str, Any] = {name: True for name, rate in rates.items() if dice.random() < rate}
    return found | ({"may_walk": False} if dice.random() < 0.1 else {})


def play(story: Story, *, idles: int = 0) -> StoryRecord:
    """Play a story from its beginning.

    `idles`: further turns of the loop, without time, for each piece of work on the store. They make no
    difference, unless the program depends on them.
    """
    return _Player(story, idles).play()


class _World:
    """All servers."""

    def __init__(self, publisher: Publisher | CollectedPublisher, seed: str) -> None:
        self.publisher = publisher
        self.archive = WebArchive(seed)

    def answer(self, question: Question) -> Response:
        if question.url.startswith(f"{ARCHIVE}/"):
            return self.archive.answer(question)
        return self.publisher.answer(question)


class _Player:
    def __init__(self, story: Story, idles: int) -> None:
        self.story = story
        self.clock = Clock()
        self.log = Log()
        self.disk = Disk(idles)
        seed = str(story.seed)
        dice = random.Random(f"publisher {seed}")
        make: Callable[..., Publisher | CollectedPublisher]
        make = a_collected_publisher if story.kind in SITES else a_publisher
        self.publisher = make(story.kind, dice, self.clock, seed)
        self.world = _World(self.publisher, seed)
        self.network = Network(seed, self.world, self.clock, slowness=story.slowness)
        self._others: set[asyncio.Task[None]] = set()
        """Walks elsewhere."""
        self.url = ""
        """The feed's URL, once it is known."""
        title = f"{story.kind}, {self.publisher.habits}, {story.limits}, {story.history}"
        self.record = StoryRecord(story.seed, title)

    def play(self) -> StoryRecord:
        loop = VirtualLoop(self.clock)
        was_enabled = gc.isenabled()
        gc.disable()  # what is garbage is not to be noticed in the middle
        try:
            with self.clock.told(), logged(self.log):
                loop.run_until_complete(self._play())
        finally:
            self.record.troubles += loop.troubles
            loop.close()
            self.disk.close()
            if was_enabled:
                gc.enable()
        return self.record

    async def _play(self) -> None:
        left = list(enumerate(self.story.steps, 1))
        while left:
            async with self._started() as program:
                is_alive = True
                while left and is_alive:
                    is_alive = await self._step(program, *left.pop(0))
                    if left and left[0][1].restarts:
                        break

    @asynccontextmanager
    async def _started(self) -> AsyncIterator[Program]:
        async with self.disk.opened() as store:
            context = places.a_context(
                store,
                self.network,
                now=self.clock.time,
                turns=self.story.turns,
                limits=self.story.limits,
                history=self.story.history,
                monotonic=self.clock.monotonic,
            )
            program = Program(context)
            try:
                yield program
            finally:
                await program.close()

    # One step

    async def _step(self, program: Program, number: int, step: Step) -> bool:
        """Play a step; return whether the program is alive."""
        self._let_pass(step.hours)
        dice = random.Random(f"changes {self.story.seed} {number}")
        changes = [self.publisher.change(dice, step.only) for _ in range(step.changes)]
        self.publisher.begin(number)
        if self.story.history.get("memento"):
            self.world.archive.visit(self.publisher.shown(), self.clock.time())
        record = RefreshRecord(f"{number}: {step}; {', '.join(changes) or 'no change'}")
        self.record.refreshes.append(record)
        self.network.begin(number)
        self.log.lines = record.log
        loop = asyncio.get_running_loop()
        for at in step.meanwhile:
            loop.call_later(at, self.publisher.change, dice)
        task = asyncio.create_task(self._run(program, number, step))
        if step.busy_seconds:
            loop.call_soon(partial(self._walk_elsewhere, program, step.busy_seconds))
        loop.call_later(step.looks_at, self._look, program, record)
        is_killed = False
        if step.kill:
            await asyncio.wait({task}, timeout=step.kill_at)
            is_killed = not task.done()
        is_dropped = is_killed and step.kill == "dropped"
        if is_dropped:
            record.requests = [str(each) for each in self.network.requests]
            await self._drop()
            record.ends = "dropped"
            self._note_rows(record, self.disk.db)
            return False
        if is_killed:
            await self._cancel(program, task)
        record.ends = ("killed, " if is_killed else "") + await self._end_of(task)
        record.requests = [str(each) for each in self.network.requests]
        await program.context.store.read(partial(self._note_rows, record))
        return True

    def _let_pass(self, hours: int) -> None:
        seconds = self.clock.seconds - 1000.0 + hours * GRID_SECONDS
        self.clock.seconds = 1000.0 + GRID_SECONDS * (seconds // GRID_SECONDS)

    async def _run(self, program: Program, number: int, step: Step) -> None:
        """Refresh the feed, and perform the step's other events."""
        feed, found = await self._feed(program)
        request = RefreshRequest(**step.request)
        dice = random.Random(f"act {self.story.seed} {number}")
        if step.act == "forget" and (known := await program.context.store.read(places.identities)):
            request = replace(request, forgets=tuple(dice.sample(known, min(2, len(known)))))
        flight = program.running.join(feed, request, found)
        if step.again is not None:
            await asyncio.wait({flight}, timeout=step.again_at)
            if not flight.done():
                flight = program.running.join(feed, RefreshRequest(**step.again))
        await asyncio.wait({flight})
        if step.act == "import":
            kept = SuppliedDocument(self.publisher.kept(dice), f"{number}.xml", is_forced=dice.random() < 0.5)
            await program.imports.take(self.url, kept)
        if step.act == "remove" and (names := await program.context.store.read(places.imported)):
            await program.imports.remove(self.url, dice.choice(names))
        await program.mementos.finish(self.url)
        await program.lists.finish(self.url)
        flight.result()

    async def _feed(self, program: Program) -> tuple[FeedRow, FoundSubscription[Obtained] | None]:
        """Return the feed, opened if unknown, with the discovered documents in that case."""
        context = program.context
        if self.url and (feed := await context.find(self.url)) is not None:
            return feed, None
        asked = self.publisher.feed_url
        try:
            found = await find_subscription(context.source, asked)
        except DocumentError as exc:
            stand_in = await program.mementos.stand_in(asked, exc)
            if stand_in is None:
                raise
            found = stand_in
        self.url = found.url
        return await places.create(context.store, found, self.clock.time()), found

    def _walk_elsewhere(self, program: Program, seconds: float) -> None:
        """Let others take all turns to walk for some time."""
        for _ in range(self.story.turns):
            self._others.add(task := asyncio.create_task(_hold_turn(program, seconds)))
            task.add_done_callback(self._others.discard)

    def _look(self, program: Program, record: RefreshRecord) -> None:
        """Report the progress of the feed with the first number."""
        told = program.running.under_way(1)
        if told is not None:
            record.progress.append(places.told(told))

    async def _cancel(self, program: Program, task: asyncio.Task[None]) -> None:
        task.cancel()
        await asyncio.wait({task})
        await program.lists.close()
        if program.running.running(1) is not None:
            await program.running.cancel(1)

    async def _end_of(self, task: asyncio.Task[None]) -> str:
        await asyncio.wait({task})
        if task.cancelled():
            return "cancelled"
        match task.exception():
            case None:
                return "done"
            case WholefeedError() as error:
                return error.slug
            case error:
                return repr(error)

    async def _drop(self) -> None:
        """End everything as a power cut does."""
        self.disk.unplug()
        self.log.is_listening = False
        before, mine = self.clock.seconds, asyncio.current_task()
        while tasks := [each for each in asyncio.all_tasks() if each is not mine]:
            for each in tasks:
                each.cancel()
            await asyncio.wait(tasks)
        self.log.is_listening = True
        self.clock.seconds = before

    def _note_rows(self, record: RefreshRecord, db: Any) -> None:
        record.rows, record.sent = places.rows(db), places.published(db)


async def _hold_turn(program: Program, seconds: float) -> None:
    async with program.context.walks.turn("elsewhere.test"):
        await asyncio.sleep(seconds)
