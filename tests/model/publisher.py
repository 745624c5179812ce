"""A publisher that adds, edits, deletes, closes archives, changes its mind and fails: one method an event.

Every event takes numbers that choose among the present entries and archives, so that a story works without
some of its steps. `answers` gives the answer of each path; the module knows nothing of the proxy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.answers import Status, Truncated
from tests.model.documents import FAMILIES, in_json, written
from tests.model.said import DAY, HOUR, Copy, Doc, Failure, Got
from tests.origin import Origin

FEED: Final = "/feed"
RETRY_AFTER: Final = 130.0

DIALECTS: Final[dict[str, tuple[str, frozenset[str], bool]]] = {
    "prev-archive": ("prev-archive", frozenset(), True),
    "fh:prev": ("fh:prev", frozenset(), False),
    "prev stateful": ("prev", frozenset({"stateful", "incremental"}), False),
    "prev incremental": ("prev", frozenset({"incremental"}), False),
    "prev this": ("prev", frozenset(), False),
    "previous current": ("previous", frozenset(), True),
    "bare prev": ("prev", frozenset(), False),
}
"""Ways to link a chain: relation, flags, whether archives link `current`."""

FAULTS: Final[dict[str, int]] = {
    "404": 404, "410": 410, "403": 403, "500": 500, "503": 503, "broken": 0, "format": 200
}  # fmt: skip
"""Faults of a path, by the answered status."""


@dataclass(frozen=True)
class Habits:
    """A publisher's constants."""

    dialect: str = "prev-archive"
    dates: str = "updated"
    """Dates of entries: updated, order (a date of publication alone), none, mixed."""
    is_dated: bool = True
    """Whether documents bear a date."""
    is_marked: bool = True
    """Whether archives bear fh:archive."""
    is_uncacheable: bool = False
    """Whether archives are sent with no-cache."""
    stamps_now: bool = False
    """Whether archives and pages bear a later date than the subscription document, whatever their content."""
    has_validators: bool = True
    max_age: float | None = None
    page_size: int = 3


@dataclass
class Archive:
    path: str
    copies: list[Copy]
    updated: float
    buried: tuple[tuple[str, float], ...] = ()


@dataclass
class Publisher:
    """The publisher's present intent."""

    habits: Habits
    version: str
    started_at: float
    hour: int = 0
    mode: str = "chain"
    """chain, plain, complete, snapshot or paged."""
    recent: list[Copy] = field(default_factory=list)
    """The newest entries first."""
    archives: list[Archive] = field(default_factory=list)
    """The newest first."""
    buried: dict[str, float] = field(default_factory=dict)
    skipped: int = 0
    """Number of the newest archives skipped by the subscription document's link."""
    is_trimmed: bool = False
    """Whether the oldest archive is not linked any more."""
    faults: dict[str, str] = field(default_factory=dict)
    redirects: dict[str, tuple[str, int]] = field(default_factory=dict)
    made: dict[str, list[Copy]] = field(default_factory=dict)
    """Every copy of each entry, the oldest first."""
    names: int = 0
    closed: int = 0
    """Archives so far; they are numbered."""

    # ---- Events

    def tick(self) -> float:
        """An hour passes in the publisher's dates; they begin long before the story."""
        self.hour += 1
        return self.now

    @property
    def now(self) -> float:
        return self.started_at + HOUR * self.hour

    def _copy(self, name: str) -> Copy:
        copies = self.made.setdefault(name, [])
        instant = self.tick()
        dates = self.habits.dates
        if dates == "mixed":
            dates = ("updated", "none", "order")[int(name[1:]) % 3]
        updated = instant if dates == "updated" else None
        order = instant if dates != "none" else None
        copies.append(Copy(name, f"copy {len(copies) + 1} of {name}", updated, order))
        return copies[-1]

    def adds(self) -> None:
        self.names += 1
        self.recent.insert(0, self._copy(f"e{self.names}"))

    def updates(self, which: int) -> None:
        """An entry of the subscription document, in its place or at the top."""
        if self.recent:
            place = which % len(self.recent)
            copy = self._copy(self.recent[place].name)
            if which % 2:
                self.recent[place] = copy
            else:
                del self.recent[place]
                self.recent.insert(0, copy)

    def corrects(self, which: int) -> None:
        """An archived entry, in the subscription document instead of the archive (RFC 5005, 4.1)."""
        names = sorted({copy.name for archive in self.archives for copy in archive.copies})
        if names:
            name = names[which % len(names)]
            self.recent = [self._copy(name), *(copy for copy in self.recent if copy.name != name)]

    def reverts(self, which: int) -> None:
        """The subscription document shows an entry's first version: a publisher has restored a backup.

        Not where a bare link would then lead to newer entries, which makes pages of a chain (R4).
        """
        if self.made and self.habits.dialect != "bare prev":
            name = sorted(self.made)[which % len(self.made)]
            self.recent = [self.made[name][0], *(copy for copy in self.recent if copy.name != name)]
            self.tick()

    def closes(self, kept: int) -> None:
        """A new archive takes the subscription document's entries, except for the newest."""
        if self.mode == "chain" and len(self.recent) > kept:
            self.archives.insert(0, self._archive(self.recent[kept:]))
            self.recent = self.recent[:kept]

    def shifts(self) -> None:
        """A new entry pushes one from each document into the next: archives are numbered from the newest."""
        self.adds()
        moving = [self.recent.pop()]
        for archive in self.archives:
            archive.copies[:0] = moving
            moving = [archive.copies.pop()]
            archive.updated = self.tick()
        self._of_oldest(moving)

    def _of_oldest(self, copies: Sequence[Copy]) -> None:
        """Let the oldest archive, or the subscription document, end in these."""
        (self.archives[-1].copies if self.archives else self.recent).extend(copies)

    def _archive(self, copies: Sequence[Copy]) -> Archive:
        buried = tuple(sorted(self.buried.items())) if self.hour % 3 == 0 else ()
        self.closed += 1
        return Archive(f"/archive/{self.closed}", list(copies), self.tick(), buried)

    def grows(self, which: int) -> None:
        """The newest archive gets another entry, or one of its entries is edited or leaves it."""
        if not self.archives:
            return
        archive = self.archives[0]
        if which % 3 == 0 or not archive.copies:
            self.names += 1
            archive.copies.insert(0, self._copy(f"e{self.names}"))
        elif which % 3 == 1:
            place = which % len(archive.copies)
            archive.copies[place] = self._copy(archive.copies[place].name)
        else:
            del archive.copies[which % len(archive.copies)]
        archive.updated = self.tick()

    def rewrites(self, which: int) -> None:
        """An older archive is edited, which nobody is to see before a full refresh."""
        if len(self.archives) > 1:
            archive = self.archives[1 + which % (len(self.archives) - 1)]
            archive.copies = [self._copy(copy.name) for copy in archive.copies]
            archive.updated = self.tick()

    def drops(self) -> None:
        """The oldest entry leaves the subscription document, and no archive has it."""
        if self.recent:
            self.recent.pop()

    def widens(self) -> None:
        """The subscription document also holds the newest archive's entries."""
        held = {copy.name for copy in self.recent}
        for archive in self.archives[:1]:
            self.recent += [copy for copy in archive.copies if copy.name not in held]

    def deletes(self, which: int) -> None:
        """RFC 6721."""
        names = sorted({copy.name for copy in self._stock()})
        if names and self.version != "json":
            name = names[which % len(names)]
            self.recent = [copy for copy in self.recent if copy.name != name]
            self.buried[name] = self.tick()

    def forgets_deletions(self) -> None:
        self.buried.clear()

    def renames(self, how_many: int) -> None:
        """The newest archives get new paths, numbered as before: one, or all."""
        for archive in self.archives[: 1 if how_many == 1 else None]:
            archive.path = f"/renamed-{self.hour}/{archive.path.rpartition('/')[2]}"
        self.tick()

    def replaces(self, which: int) -> None:
        """An archive is revised under a new path, and holds an entry less."""
        if self.archives:
            archive = self.archives[min(which // 2, len(self.archives) - 1)]
            archive.path = f"/revised/{self.hour}"
            del archive.copies[: which % 2]
            archive.updated = self.tick()

    def discards(self, which: int) -> None:
        """An archive is gone from the chain."""
        if len(self.archives) > 1:
            del self.archives[min(which // 2, len(self.archives) - 1)]

    def skips(self, how_many: int) -> None:
        """The subscription document links straight to an older archive, or to the newest again."""
        self.skipped = how_many if len(self.archives) > how_many else 0

    def trims(self) -> None:
        self.is_trimmed = not self.is_trimmed

    def switches(self, mode: str) -> None:
        """The feed becomes one of another kind."""
        self.mode = mode

    def changes_format(self, version: str) -> None:
        self.version = version

    def fails(self, which: int, fault: str) -> None:
        self.faults[self._path(which)] = fault

    def recovers(self) -> None:
        self.faults.clear()
        self.redirects.clear()

    def moves(self, which: int, status: int) -> None:
        """A document moves to another path, with a redirect."""
        path = self._path(which)
        self.redirects[path] = (f"/moved{path}", 302 if path == FEED else status)

    def _path(self, which: int) -> str:
        """The path of a document: even numbers give the newest archive, or the second page."""
        paths = list(self.documents())
        return paths[min(len(paths) - 1, 1) if which % 2 == 0 else which % len(paths)]

    # ---- What it has to say

    def _stock(self) -> list[Copy]:
        """Every entry, the newest copy of each."""
        found: dict[str, Copy] = {}
        for copy in [*self.recent, *(copy for archive in self.archives for copy in archive.copies)]:
            found.setdefault(copy.name, copy)
        return list(found.values())

    def documents(self) -> dict[str, Doc]:
        """Return the document of each path."""
        found = self._paged() if self.mode == "paged" else self._chained()
        return {path: in_json(doc) for path, doc in found.items()} if self.version == "json" else found

    def _updated(self, otherwise: float, *, is_newest: bool) -> float | None:
        if not self.habits.is_dated:
            return None
        return self.now + DAY if self.habits.stamps_now and not is_newest else otherwise

    def _paged(self) -> dict[str, Doc]:
        stock, size = self._stock(), self.habits.page_size
        pages = [stock[at : at + size] for at in range(0, len(stock), size)] or [[]]
        found = {}
        for place, copies in enumerate(pages):
            links = {"first": FEED} if place and self.version != "json" else {}
            if place + 1 < len(pages):
                links["next"] = _page(place + 1)
                if self.version != "json" and self.hour % 2:
                    links["last"] = _page(len(pages) - 1)
            found[_page(place)] = Doc(
                family=FAMILIES[self.version], version=self.version, copies=tuple(copies), links=links,
                updated=self._updated(self.now if not place else self.started_at, is_newest=not place),
                buried=tuple(sorted(self.buried.items())) if not place else (),
                max_age=self.habits.max_age if not place else None,
            )  # fmt: skip
        return found

    def _chained(self) -> dict[str, Doc]:
        relation, flags, has_current = DIALECTS[self.habits.dialect]
        archives = self.archives[: -1 if self.is_trimmed else None]
        linked = archives[self.skipped :] if self.mode in ("chain", "snapshot") else []
        of_mode = {"complete": {"complete"}, "snapshot": {"snapshot"}}.get(self.mode, set[str]())
        names_itself = has_current and self.habits.dialect != "prev-archive"
        found = {
            FEED: Doc(
                family=FAMILIES[self.version], version=self.version, copies=tuple(self.recent),
                updated=self._updated(self.now, is_newest=True),
                links=self._links(relation, linked, FEED, names_itself),
                flags=frozenset(of_mode) | (flags if self.mode == "chain" else frozenset()),
                buried=tuple(sorted(self.buried.items())), max_age=self.habits.max_age,
            )
        }  # fmt: skip
        marks = frozenset({"archive"}) if self.habits.is_marked else frozenset[str]()
        for place, archive in enumerate(archives):
            found[archive.path] = Doc(
                family=FAMILIES[self.version], version=self.version, copies=tuple(archive.copies),
                updated=self._updated(archive.updated, is_newest=False),
                links=self._links(relation, archives[place + 1 :], archive.path, has_current),
                flags=marks | flags, buried=archive.buried, is_uncacheable=self.habits.is_uncacheable,
            )  # fmt: skip
        return found

    def _links(self, relation: str, older: Sequence[Archive], own: str, has_current: bool) -> dict[str, str]:
        links = {relation: older[0].path} if older else {}
        if has_current and (older or own != FEED):
            links["current"] = FEED
        if self.habits.dialect == "prev this":
            links["this"] = own
        return links

    # ---- What it answers

    def answer(self, path: str) -> tuple[Got, Sequence[str]]:
        """Return a path's answer, and the paths of its redirects."""
        hops = (self.redirects[path][0],) if path in self.redirects else ()
        doc, fault = self.documents().get(path), self.faults.get(path)
        if doc is None:
            return Failure(404), hops
        if fault is None:
            return doc, hops
        if fault == "format":
            return Doc(family=FAMILIES[_other(self.version)]), hops
        return Failure(FAULTS[fault], RETRY_AFTER if fault == "503" else None), hops

    def publish(self, origin: Origin, published: set[str]) -> None:
        """Publish these answers; `published` names the former paths, and gets the new ones."""
        for path in published:
            origin.remove(path)
        published.clear()
        for path, doc in self.documents().items():
            place = path
            if path in self.redirects:
                place, status = self.redirects[path]
                origin.redirect(path, place, status=status)
                published.add(path)
            self._publish(origin, place, doc, self.faults.get(path))
            published.add(place)

    def _publish(self, origin: Origin, path: str, doc: Doc, fault: str | None) -> None:
        if fault == "format":
            version = _other(self.version)
            doc = Doc(family=FAMILIES[version])
        else:
            version = self.version
        body, headers = written(doc, version)
        digest = hashlib.sha256(body + repr(headers).encode()).hexdigest()[:16]
        kept = [field for field in headers if field[0] != "Content-Type"]
        etag = f'"{digest}"' if self.habits.has_validators else None
        origin.publish(path, body, content_type=headers[0][1], headers=kept, etag=etag)
        if fault == "broken":
            origin.fault(path, Truncated(body, len(body) * 2 // 3))
        elif fault is not None and fault != "format":
            after = (("Retry-After", f"{RETRY_AFTER:.0f}"),) if fault == "503" else ()
            origin.fault(path, Status(FAULTS[fault], after))


def _page(place: int) -> str:
    return FEED if place == 0 else f"/page/{place + 1}"


def _other(version: str) -> str:
    return "rss" if FAMILIES[version] == "atom" else "atom"
