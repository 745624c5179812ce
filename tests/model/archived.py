"""Stories of a publisher that loses documents, and of a web archive that has copies of some of them (R33).

    story = an_archived_story(7)
    differences = await story.play()    # nothing: the proxy does what the rules say

The publisher only adds, corrects and closes archives, so that nothing ever leaves by its word. The feed
follows from the documents of publisher and archive (`_Truth`): every entry of both, each in its latest
text. Documents never had make it `partial` and are named as missing. A note names each copy in use.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from unittest.mock import patch

from tests.model.documents import MEDIA_TYPES, read, written
from tests.model.publisher import FEED, Habits, Publisher
from tests.model.said import DAY, Copy, Doc
from tests.model.short import Step, Story, WallClock
from tests.origin import Origin
from tests.running import Proxy
from tests.web_archive import WebArchive, searched, searching

READS: Final = ("asks", "refreshes", "restarts")
PAUSE: Final = 8 * DAY
"""Between two visits: an archive without copies is asked again after a week."""
_EVENTS: Final[dict[str, int]] = {
    "adds": 6, "updates": 2, "corrects": 2, "closes": 5, "loses": 4, "restores": 2, "saves": 8,
    "saves_other": 2,
}  # fmt: skip
ANOTHER: Final = b'<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:other</id><title>For sale</title></feed>'
"""The document at a URL after its domain changed hands."""


@dataclass(frozen=True, kw_only=True)
class ArchivedStory(Story):
    """A story of a chain and its copies."""

    version: str

    async def play(self, url: str = "") -> list[str]:
        with tempfile.TemporaryDirectory(prefix="wholefeed-model-") as folder:
            async with Origin() as origin, WebArchive() as archive:
                clock = WallClock()
                with patch.object(time, "time", clock):
                    return await _Player(self, origin, archive, clock, Path(folder), url).run()

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.version}"


def an_archived_story(seed: int) -> ArchivedStory:
    """Make up a story, the same for the same number."""
    chance = random.Random(f"archived {seed}")
    steps: list[Step] = []
    for _ in range(chance.randint(1, 5)):
        steps += [("adds",), ("adds",), ("closes", chance.randint(0, 1))]
    for _ in range(chance.randint(2, 6)):
        for name in chance.choices(list(_EVENTS), list(_EVENTS.values()), k=chance.randint(0, 6)):
            steps.append((name, *_arguments(chance, name)))
        steps.append((chance.choices(READS, [6, 3, 1])[0],))
    return ArchivedStory(seed=seed, steps=tuple(steps), version=chance.choice(["atom", "atom", "rss"]))


def _arguments(chance: random.Random, name: str) -> Step:
    if name == "loses":
        return (chance.randint(0, 9), chance.choice(["404", "410"]))
    return () if name == "adds" else (chance.randint(0, 9),)


@dataclass
class _Truth:
    """Documents sent, by sender."""

    had: dict[str, Doc] = field(default_factory=dict)
    """The publisher's last document of each path."""
    copies: list[Copy] = field(default_factory=list)
    """All copies of entries in mementos of the feed."""
    was_gone: bool = False
    """Whether copies of the subscription document were used: they stay."""


class _Player:
    def __init__(
        self,
        story: ArchivedStory,
        origin: Origin,
        archive: WebArchive,
        clock: WallClock,
        folder: Path,
        url: str,
    ) -> None:
        self._story, self._origin, self._archive, self._clock = story, origin, archive, clock
        self._folder, self._database = folder, url
        began_at = float(int(clock())) - 10_000_000
        self._publisher = Publisher(Habits(has_validators=False), story.version, began_at)
        self._published: set[str] = set()
        self._saved: dict[str, list[Doc | None]] = {}
        """By path, the oldest first; None: another site's."""
        self._truth = _Truth()
        self._differences: list[str] = []
        self._stack = AsyncExitStack()
        self._proxy: Proxy

    async def run(self) -> list[str]:
        async with AsyncExitStack() as self._stack:
            await self._start()
            for number, step in enumerate(self._story.steps):
                if step[0] in READS:
                    await self._read(step[0])
                elif hasattr(self, f"_{step[0]}"):
                    getattr(self, f"_{step[0]}")(*step[1:])
                else:
                    getattr(self._publisher, step[0])(*step[1:])
                if self._differences:
                    place = f"step {number}, {' '.join(map(str, step))}"
                    return [f"{place}: {each}" for each in self._differences]
        return []

    async def _start(self) -> None:
        parts = searching(self._archive, self._folder, clock=self._clock, store={"url": self._database})
        self._proxy = await self._stack.enter_async_context(parts)

    # ---- The publisher and the archive

    def _path(self, which: int) -> str:
        paths = list(self._publisher.documents())
        return paths[which % len(paths)]

    def _loses(self, which: int, fault: str) -> None:
        self._publisher.faults[self._path(which)] = fault

    def _restores(self, which: int) -> None:
        faults = sorted(self._publisher.faults)
        if faults:
            del self._publisher.faults[faults[which % len(faults)]]

    def _saves(self, which: int) -> None:
        path = self._path(which)
        doc = self._publisher.documents()[path]
        self._save(path, doc, written(doc, self._story.version)[0])

    def _saves_other(self, which: int) -> None:
        path = self._path(which)
        if path != FEED or FEED in self._truth.had:  # else nothing says whose the feed was
            self._save(path, None, ANOTHER)

    def _save(self, path: str, doc: Doc | None, body: bytes) -> None:
        self._clock.advance(1)  # two copies of one second are one
        self._saved.setdefault(path, []).append(doc)
        stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(self._clock()))
        media_type = MEDIA_TYPES[self._story.version]
        self._archive.save(self._origin.url(path), stamp, body, content_type=media_type)

    # ---- The reader

    async def _read(self, how: str) -> None:
        self._publisher.publish(self._origin, self._published)
        self._clock.advance(PAUSE)
        if how == "restarts":
            await self._stack.aclose()
            await self._start()
        self._origin.forget_requests()
        url = self._origin.url(FEED)
        if how == "refreshes" and self._truth.had:
            await self._proxy.ask("POST", "/refresh", params={"url": url})
            await self._proxy.settled()
        reply = await searched(self._proxy, url)
        await self._proxy.settled()
        reply = await self._proxy.get(url)
        for request in self._origin.requests:
            doc = self._publisher.documents().get(request.target)
            if doc is not None and request.target not in self._publisher.faults:
                self._truth.had[request.target] = doc
                self._truth.copies += doc.copies
        if reply.status != 200:
            is_had = bool(self._truth.had or self._usable(FEED))
            self._expect(not is_had, f"{reply.status}: {reply.body.decode()}")
            return
        await self._compare(reply.state, read(reply.body, reply.headers["Content-Type"]).entries)

    def _usable(self, path: str) -> list[Doc]:
        """The copies to be tried: at most five, the newest first."""
        return [doc for doc in self._saved.get(path, ())[:-6:-1] if doc is not None]

    async def _compare(self, state: str, entries: list[tuple[str, str]]) -> None:
        truth, status = self._truth, await self._proxy.status(self._origin.url(FEED))
        is_gone = FEED in self._publisher.faults
        if is_gone:
            truth.was_gone = truth.was_gone or bool(self._usable(FEED))
            truth.copies += [copy for doc in self._usable(FEED) for copy in doc.copies]
        missing, stand_ins = set[str](), set[str]()
        for path, doc in self._walk():
            if path not in truth.had:
                missing.add(path)
                stand_ins |= {path} if doc is not None else set()
                truth.copies += doc.copies if doc is not None else ()
        latest: dict[str, Copy] = {}
        for copy in sorted(truth.copies, key=lambda each: each.updated or 0.0):
            latest[copy.name] = copy
        expected = {copy.name: copy.text for copy in latest.values()}
        found = dict(entries)
        self._expect(len(found) == len(entries), "an entry stands twice")
        if FEED not in truth.had:  # which of its copies are needed decides where links lead
            in_copies = {copy.name for doc in self._usable(FEED) for copy in doc.copies}
            self._expect(state == "partial", f"state {state}")
            self._expect(in_copies <= found.keys(), f"{sorted(found)}, expected {sorted(in_copies)}")
            return
        self._expect(found == expected, f"found {sorted(found.items())}, expected {sorted(expected.items())}")
        prefix = self._origin.url("")
        told = {each["url"].removeprefix(prefix) for each in status["missing"]}
        self._expect(told - {FEED} == missing - {FEED}, f"missing {sorted(told)}, expected {sorted(missing)}")
        shown = {each["url"].removeprefix(prefix) for each in status["chain"] if each["memento"] is not None}
        shown = {path for path in shown if path in self._publisher.documents() and path != FEED}
        self._expect(shown == stand_ins, f"copies of {sorted(shown)}, expected {sorted(stand_ins)}")
        if not truth.was_gone:
            self._expect(state == ("partial" if missing else "complete"), f"state {state}")

    def _walk(self) -> Iterator[tuple[str, Doc | None]]:
        """The chain's archives: as fetched, as a copy has them, or None."""
        doc: Doc | None = self._truth.had.get(FEED)
        if doc is None:
            doc = next(iter(self._usable(FEED)), None)
        while doc is not None and (path := doc.links.get("prev-archive")) is not None:
            doc = self._truth.had.get(path) or next(iter(self._usable(path)), None)
            yield path, doc
            if (
                doc is None
            ):  # R34: the next ones are guessed, and what came of them shows whether one was there
                number = int(path.rpartition("/")[2])
                guesses = (f"/archive/{each}" for each in range(number - 1, number - 4, -1))
                path = next((each for each in guesses if each in self._truth.had), "")
                doc = self._truth.had.get(path)

    def _expect(self, is_so: bool, what: str) -> None:
        if not is_so:
            self._differences.append(what)
