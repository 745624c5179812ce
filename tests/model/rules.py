"""A reference reconstructor after docs/rules.md, without the proxy's own code.

It takes the publisher's answers and the proxy's requests, and computes the feed to be served:

    feed = Feed("/feed")
    feed.refresh(asking, is_forced=False, is_full=False)
    feed.entries()          # names and texts in output order
    feed.state, feed.documents, feed.missing

It keeps every copy of every document in plain lists and decides everything from nothing each time, so it can
only be used for small feeds. Where the rules leave the proxy a choice, any
choice is accepted; elsewhere `Asking` notes unfounded and missing requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tests.model.asking import Asking
from tests.model.choice import (
    NEARNESS,
    NEVER,
    Held,
    Placed,
    counted,
    in_order,
    is_buried,
    or_never,
    precedence,
)  # fmt: skip
from tests.model.counting import guesses
from tests.model.said import DAY, GONE, HOST_RESTS, HOUR, Copy, Doc, Failure, Got, Kind, kind_of

DEFAULT_FRESH: Final = 900.0
MINIMUM_FRESH: Final = 300.0
LONGEST_DELAY: Final = 6 * HOUR
"""For repeated failures."""


class Remembered(NamedTuple):
    """A copy that left (R8)."""

    copy: Copy
    document_updated: float | None


class Look(NamedTuple):
    """A walk's result for an archive (R35)."""

    how: str
    """changed, unchanged, added, passed without a request, or missed."""
    left: frozenset[str] = frozenset()
    """Former entries that it lost."""


@dataclass
class Attempt:
    """A missing document (R14)."""

    times: int
    not_before: float
    at_latest: float
    is_gone: bool = False
    """Whether the publisher reported it gone."""
    is_uncertain: bool = False
    """Whether it may have failed more often: requests to a resting host are not sent, so nobody sees them."""
    is_format_of: str = ""
    """The feed's family at a failure after its last success (R23)."""


class Feed:
    """One feed as the rules want it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.subscription: Held | None = None
        self.kind = Kind("plain")
        self.archives: dict[str, Held] = {}
        self.chain: list[str] = []
        """The attached archives, newest first."""
        self.leavings = 0
        self.left_at: dict[str, int] = {}
        """The archives that left together with this one (R34)."""
        self.pages: dict[str, Held] = {}
        self.page_order: list[str] = []
        self.waiting: set[str] = set()
        """Pages that left because the feed changed its family: their entries return with it."""
        self.memories: dict[str, list[Remembered]] = {}
        """By family; the last to leave first."""
        self.settled: set[str] = set()
        """Removed from the chain by the publisher, and in no document since."""
        self.doubtful: set[str] = set()
        """Entries lost by an archive where the rules leave open whether they are served meanwhile (R35)."""
        self.looks: list[Look] = []
        """Looks at the archives of the walk, newest first."""
        self.fallen: set[tuple[str, float]] = set()
        """Tombstones that no document contains any more."""
        self.attempts: dict[str, Attempt] = {}
        self.state = ""
        self.is_stale = False
        self.due = Attempt(0, 0.0, 0.0)
        self.is_order_told = True
        """Whether the rules determine the order of all entries."""
        self.changed_at = 0.0
        self.ascends = False
        """Whether a page was newer than the one that links to it: then the last page is fetched, too."""

    @property
    def family(self) -> str:
        assert self.subscription is not None
        return self.subscription.doc.family

    # ---- R14: one refresh

    def refresh(self, asking: Asking, *, is_forced: bool = False, is_full: bool = False) -> None:
        """Perform a refresh."""
        got = asking.must(self.path)
        now = asking.now
        if isinstance(got, Failure):
            self.is_stale = True
            self.due = _next_attempt(got, self.due, now, is_feed=True)
            return
        self.is_stale = False
        fresh = max(MINIMUM_FRESH, DEFAULT_FRESH if got.max_age is None else got.max_age)
        self.due = Attempt(0, now + fresh, now + fresh)
        has_changed = self.subscription is None or self.subscription.doc != got
        has_news = self._has_news(got)
        is_same_family = self.subscription is not None and self.family == got.family
        was_collected = self.state == "paged" and is_same_family and not is_full
        if has_changed:
            self._take_subscription(got, now)
        is_retried = any(now >= each.not_before for each in self.attempts.values())
        is_due = is_retried or self.ascends or bool(self.doubtful) or self._is_any_due(got, now)
        if has_changed or is_forced or is_full or is_due:
            self._reconstruct(asking, got, has_news and has_changed, was_collected, is_forced, is_full)

    def _reconstruct(
        self, asking: Asking, doc: Doc, has_news: bool,
        was_collected: bool, is_forced: bool, is_full: bool,
    ) -> None:  # fmt: skip
        missing: dict[str, Failure | None] = {}
        self.kind = kind_of(doc)
        if self.kind.name == "complete":  # R1
            self._leave(self.chain)
            self.chain, self.page_order = [], []
            self.memories.clear()
            self.waiting.clear()
            self.state = "complete"
        elif self.kind.name == "plain":  # R7
            self.state = "remembered"
        elif self.kind.name == "chain":
            missing = self._walk_chain(asking, doc, is_forced or is_full, is_full)
            self.state = "partial" if missing else "complete"
        else:
            missing = self._walk_pages(asking, doc, has_news, was_collected, is_forced or is_full, is_full)
            self.state = "partial" if missing else "paged"
        self._hold()
        self._note(missing, asking)

    def _note(self, missing: Mapping[str, Failure | None], asking: Asking) -> None:
        """R14: a missing document is tried again in its time; None: not tried this time."""
        for path in self.attempts.keys() - missing.keys():
            if not missing or not self.attempts[path].is_format_of:
                del self.attempts[path]
        for path, failure in missing.items():
            if failure is not None:
                before = self.attempts.get(path)
                attempt = _next_attempt(failure, before, asking.now)
                stored = self.archives.get(path)
                if failure.status == 200 or (stored is not None and stored.doc.family != self.family):
                    attempt.is_format_of = self.family
                elif before is not None and stored is not None:
                    attempt.is_format_of = before.is_format_of
                self.attempts[path] = attempt

    def _take_subscription(self, doc: Doc, now: float) -> None:
        old = self.subscription
        self.subscription = Held(doc, now, now)
        self.changed_at = now
        if old is None:
            return
        self._hold()
        self.fallen |= set(old.doc.buried) - set(doc.buried)
        is_other_family = old.doc.family != doc.family
        if kind_of(doc).name != "complete":
            present = set() if is_other_family else {copy.name for copy in doc.copies}
            self._remember(old, [copy for copy in old.doc.copies if copy.name not in present])
        if is_other_family:  # R23
            self.waiting |= {path for path in self.page_order if self.pages[path].doc.family != doc.family}
            self._leave(path for path in self.chain if self.archives[path].doc.family != doc.family)
            self.chain = [path for path in self.chain if self.archives[path].doc.family == doc.family]
            self.page_order = [path for path in self.page_order if self.pages[path].doc.family == doc.family]
            self.is_order_told = False

    def _remember(self, held: Held, copies: Sequence[Copy], *, is_page: bool = False) -> None:
        memory = self.memories.setdefault(held.doc.family, [])
        date, latest = held.doc.updated, self.subscription.doc.updated if self.subscription else None
        if date is not None and latest is not None and is_page:
            date = min(date, latest)
        new = [Remembered(copy._replace(updated=counted(copy, held)), date) for copy in copies]
        self.memories[held.doc.family] = [*new, *memory]

    # ---- R2, R4, R13: archives

    def _walk_chain(
        self, asking: Asking, doc: Doc, is_forced: bool, is_full: bool
    ) -> dict[str, Failure | None]:
        path: list[str] = []
        steps: list[str] = []
        self.looks = []
        missing: dict[str, Failure | None] = {}
        here = self.path
        while (target := doc.links.get(self.kind.relation)) is not None and target != here:
            if target in missing:  # it leads back behind the place from where it was passed
                break
            steps.append(target)
            failure = self._have_archive(asking, target, len(path), is_forced, is_full)
            if target in (self.path, *path) or failure is not None:
                self.looks.append(Look("missed"))
                missing[target] = failure if isinstance(failure, Failure) else None
                is_hole = failure is not None
                behind = self._pass(asking, steps, path, missing, is_forced, is_full) if is_hole else None
                if behind is None:
                    break
                target = behind
            path.append(target)
            here, doc = target, self.archives[target].doc
        self._account(path, is_true_end=not missing, is_full=is_full)
        self._drift(path, is_true_end=not missing, is_full=is_full)
        return missing

    # ---- R35: where the entries are that have left an archive

    @property
    def _may_look_on(self) -> bool:
        """Whether the next older archive may be asked for: entries are unaccounted for."""
        return bool(self.doubtful) or any(each.left for each in self.looks)

    def _account(self, path: Sequence[str], *, is_true_end: bool, is_full: bool) -> None:
        """Tell deleted entries from entries that may have moved: the proxy may serve those, or not."""
        held = {copy.name for _, _, each in self._attached() for copy in each.doc.copies}
        held |= {copy.name for each in path for copy in self.archives[each].doc.copies}
        is_read = [each.how in ("changed", "added") for each in self.looks]
        were_doubtful = bool(self.doubtful)
        for at, look in enumerate(self.looks):
            gone = look.left - held
            behind = [each.how for each in self.looks[at + 1 :]]
            end = behind.index("unchanged") if "unchanged" in behind else None
            is_sure = all(is_read[at + 1 :][:end]) and (end is not None or is_true_end)
            is_sure = is_sure and not {"passed", "missed"} & {each.how for each in self.looks[:at]}
            (self.settled if is_sure and not were_doubtful else self.doubtful).update(gone)
        if self.doubtful:  # what left an archive is remembered where nothing says
            self.is_order_told = False
        for name in self.doubtful & held:
            self._give_way(name, path)
        self.doubtful -= held
        if is_full and is_true_end and all(each.how != "missed" for each in self.looks):
            self.settled |= self.doubtful
            self.doubtful.clear()

    def _give_way(self, name: str, path: Sequence[str]) -> None:
        """Prefer an archive's copy to a remembered one, unless the remembered one was updated later."""
        copies = [copy for each in path for copy in self.archives[each].doc.copies if copy.name == name]
        latest = max((or_never(copy.updated) for copy in copies), default=NEVER)
        memory = self.memories.get(self.family, [])
        self.memories[self.family] = [
            each for each in memory if each.copy.name != name or or_never(each.copy.updated) > latest
        ]

    def _pass(
        self, asking: Asking, steps: list[str], path: Sequence[str],
        missing: Mapping[str, Failure | None], is_forced: bool, is_full: bool,
    ) -> str | None:  # fmt: skip
        """R34: return the document behind a missing one at which the walk goes on; take it, if it is new."""
        attempt = self.attempts.get(steps[-1])
        rests = missing[steps[-1]] is None and attempt is not None and not is_forced
        tip = path[-1] if path else ""
        left_at = self.left_at.get(tip) if tip not in self.chain else None
        for guess in guesses(steps, self.chain):
            steps.append(guess)
            if guess in (self.path, *path, *missing):
                continue
            if guess in self.archives:
                left_together = left_at is not None and left_at == self.left_at.get(guess)
                is_part = guess in self.chain or left_together
                if is_part and self._have_archive(asking, guess, len(path), is_forced, is_full) is None:
                    return guess
                continue
            attempt = self.attempts.get(guess)
            waits = attempt is not None and asking.now < attempt.not_before and not is_forced
            got = asking.may(guess) if rests or waits else asking.must(guess)
            if isinstance(got, Doc) and got.family == self.family and self._is_new(got, path):
                self.archives[guess] = Held(got, asking.now, asking.now, len(path) > 0)
                return guess
        return None

    def _is_new(self, doc: Doc, path: Sequence[str]) -> bool:
        """R34: whether a document brings an entry in no other document of the feed."""
        known = {placed.copy.name for placed in self._copies()}
        known |= {copy.name for each in path for copy in self.archives[each].doc.copies}
        return any(copy.name not in known for copy in doc.copies)

    def _have_archive(
        self, asking: Asking, path: str, place: int, is_forced: bool, is_full: bool
    ) -> Failure | str | None:
        """Obtain an archive as required; return why it is missing."""
        held, now = self.archives.get(path), asking.now
        attempt = self.attempts.get(path)
        is_unfit = held is not None and held.doc.family != self.family
        is_unfit = is_unfit or (attempt is not None and attempt.is_format_of == self.family)
        if held is None or is_unfit:
            if attempt is not None and now < attempt.not_before and not is_forced:
                return "waits"
            waits = attempt is not None and now < attempt.at_latest and not is_forced
            got = asking.may(path) if waits else asking.must(path)
            if got is None:
                return "waits"
        elif is_full or self._is_due(held, place, now):
            got = asking.must(path)
        else:
            got = asking.may(path) if self._may_look_on else None
            if got is None:
                self.looks.append(Look("passed"))
                return None
        return self._take_archive(path, got, place, now, is_unfit=is_unfit)

    def _take_archive(self, path: str, got: Got, place: int, now: float, *, is_unfit: bool) -> Failure | None:
        """Store the outcome of an archive; return why it is missing."""
        held = self.archives.get(path)
        is_served = held is not None and not is_unfit
        if isinstance(got, Failure):
            if is_served:
                self.looks.append(Look("missed"))
            if held is not None and got.status in GONE:  # R13: a look at it, which settles nothing
                held.checked_at = now
            return None if is_served else got
        if got.family != self.family:
            return Failure(200)
        if held is not None:
            self.fallen |= set(held.doc.buried) - set(got.buried)
        if held is None or path not in self.chain:
            self.looks.append(Look("added"))
        else:
            names = {copy.name for copy in held.doc.copies} - {copy.name for copy in got.copies}
            self.looks.append(Look("unchanged" if held.doc == got else "changed", frozenset(names)))
        fetched_at = held.fetched_at if held is not None and held.doc == got else now
        self.archives[path] = Held(got, fetched_at, now, place > 0)
        return None

    def _is_due(self, held: Held, place: int, now: float) -> bool:
        """R13."""
        if held.is_final:
            return False
        is_a_day_ago, is_outdated = now - held.checked_at >= DAY, self.changed_at > held.checked_at
        if (
            place > 0 and not held.is_settled
        ):  # once more, whatever it was served with; daily while it is gone
            return is_a_day_ago or is_outdated
        return is_a_day_ago and is_outdated

    def _is_any_due(self, doc: Doc, now: float) -> bool:
        """Whether an archive is due though the subscription document has not changed."""
        kind, place, passed = kind_of(doc), 0, set[str]()
        while kind.name == "chain" and (path := doc.links.get(kind.relation, "")) in self.archives:
            if path in passed:
                break
            if self._is_due(self.archives[path], place, now):
                return True
            passed.add(path)
            place, doc = place + 1, self.archives[path].doc
        return False

    def _drift(self, path: Sequence[str], *, is_true_end: bool, is_full: bool) -> None:
        """R15: replaced archives leave; archives beyond the path stay behind it."""
        stored = self.chain
        joints = [stored.index(each) for each in path if each in stored]
        if path and is_true_end and not self.kind.is_stateful:
            first_kept = len(stored) if is_full else (joints[-1] if joints else 0)
            stored = [each for at, each in enumerate(stored) if each in path or at >= first_kept]
        order: list[str] = []
        rest = list(stored)
        for each in path:
            if each in rest:  # what stood in front of it, and is not on the path, keeps its place
                at = rest.index(each)
                order += [other for other in rest[:at] if other not in path]
                rest = rest[at + 1 :]
            order.append(each)
        left = [each for each in self.chain if each not in stored]
        self._leave(left)
        for each in left:
            self._settle(self.archives[each].doc)
        self.chain = order + [each for each in rest if each not in path]

    def _settle(self, doc: Doc) -> None:
        """R8: the publisher removes these from the chain; entries in another document stay."""
        self.settled |= {copy.name for copy in doc.copies}

    def _hold(self) -> None:
        self.settled -= {copy.name for _, _, held in self._attached() for copy in held.doc.copies}

    def _leave(self, paths: Iterable[str]) -> None:
        self.leavings += 1
        self.left_at |= dict.fromkeys(paths, self.leavings)

    # ---- R6: pages

    def _walk_pages(
        self, asking: Asking, doc: Doc, has_news: bool, was_collected: bool, is_forced: bool, is_full: bool
    ) -> dict[str, Failure | None]:
        self.is_order_told = self.is_order_told and not self.page_order
        is_closing = was_collected and not self.attempts
        is_over = is_closing and not has_news
        is_past_gap, seen = False, [self.path]
        while (target := doc.links.get("next")) is not None and target not in seen:
            if is_over and not self.ascends:
                return {}
            held, attempt = self.pages.get(target), self.attempts.get(target)
            if attempt is not None and asking.now < attempt.not_before and not is_forced:
                return {target: None}
            is_open = held is None or attempt is not None or has_news or is_past_gap or is_closing or is_full
            is_asked = is_open or self._leads_to_gone(held, asking.now, is_forced)
            waits = attempt is not None and asking.now < attempt.at_latest and not is_forced
            got = asking.must(target) if is_asked and not (is_over or waits) else asking.may(target)
            if isinstance(got, Failure):
                is_end = got.status in (404, 410) and held is None and doc.links.get("last", target) == target
                return {} if is_end else {target: got}
            if got is not None and got.family != self.family:
                return {target: Failure(200)}
            if got is None and (waits or held is None):
                return {target: None} if waits else {}
            is_past_gap = is_past_gap or held is None or attempt is not None
            before, doc = doc, got or (held.doc if held is not None else doc)
            if got is not None:
                has_news = self._has_news(got)
                self._take_page(target, got, asking.now, has_news)
                is_over = is_over or (is_closing and not has_news)
            elif target not in self.page_order:  # it was detached, and comes back without a fetch
                self.page_order.append(target)
            if is_newer(doc, before):
                self.ascends, self.is_order_told = True, False
            seen.append(target)
        return {}

    def _leads_to_gone(self, held: Held | None, now: float, is_forced: bool) -> bool:
        """R6: a gone document is missing only while a page that can be had links to it."""
        behind = self.attempts.get(held.doc.links.get("next", "")) if held is not None else None
        return behind is not None and behind.is_gone and (is_forced or now >= behind.not_before)

    def _take_page(self, path: str, doc: Doc, now: float, has_news: bool) -> None:
        held = self.pages.get(path)
        if held is None and not has_news and not self._is_needed(path, doc, now):
            return
        served = {placed.copy.name for placed in self.live() if placed.document == path}
        self.pages[path] = Held(doc, now if held is None or held.doc != doc else held.fetched_at, now)
        if path not in self.page_order:
            self.page_order.append(path)
        if held is not None and held.doc.family != doc.family and path in self.waiting:
            self._remember(held, held.doc.copies)
        self.waiting.discard(path)
        if held is not None and held.doc.family == doc.family:
            known = {placed.copy.name for placed in self._copies()}
            present = {copy.name for copy in doc.copies}
            left = [
                copy
                for copy in held.doc.copies
                if copy.name not in known or (copy.name in served and copy.name not in present)
            ]
            self._remember(held, left, is_page=True)

    def _is_needed(self, path: str, doc: Doc, now: float) -> bool:
        """R6: not if every entry is served from elsewhere, memory excepted, and no copy here is better."""
        served = {placed.copy.name for placed in self.live() if placed.role != "memory"}
        self.pages[path] = Held(doc, now, now)
        self.page_order.append(path)
        preferred = any(placed.document == path for placed in self.live())
        del self.pages[path]
        self.page_order.remove(path)
        return preferred or any(copy.name not in served for copy in doc.copies)

    def _has_news(self, doc: Doc) -> bool:
        """Whether a document brings an entry, or an update of one, not yet stored."""
        if self.subscription is None:
            return True
        known: dict[str, float] = {}
        for placed in self._copies():
            name = placed.copy.name
            known[name] = max(known.get(name, NEVER), or_never(placed.instant))
        return any(copy.name not in known or or_never(copy.updated) > known[copy.name] for copy in doc.copies)

    # ---- R8, R10, R19: which copy stays

    def _attached(self) -> Iterator[tuple[str, str, Held]]:
        assert self.subscription is not None
        yield "subscription", self.path, self.subscription
        for path in self.chain:
            yield "archive", path, self.archives[path]
        for path in self.page_order:
            yield "page", path, self.pages[path]

    def _copies(self) -> Iterator[Placed]:
        assert self.subscription is not None
        latest = self.subscription.doc.updated
        for position, (role, path, held) in enumerate(self._attached()):
            date = held.doc.updated
            if role != "subscription" and date is not None and latest is not None:
                date = min(date, latest)
            for ordinal, copy in enumerate(held.doc.copies):
                yield Placed(copy, role, path, position, ordinal, counted(copy, held), date)
        for ordinal, each in enumerate(self.memories.get(self.family, ())):
            yield Placed(each.copy, "memory", "", 0, ordinal, each.copy.updated, each.document_updated)

    def _burials(self) -> list[tuple[str, float, tuple[int, int]]]:
        """The valid tombstones, with the place of their documents; they age with those."""
        found = [(name, when, (0, 1)) for name, when in self.fallen]
        for position, (role, _, held) in enumerate(self._attached()):
            found += [
                (name, min(when, held.fetched_at), (NEARNESS[role], position))
                for name, when in held.doc.buried
            ]
        return found

    def live(self) -> list[Placed]:
        """Return the copies that stay, unordered."""
        by_name: dict[str, list[Placed]] = {}
        for placed in self._copies():
            by_name.setdefault(placed.copy.name, []).append(placed)
        burials = self._burials()
        chosen = []
        for name, copies in by_name.items():
            if name in self.settled and all(placed.role == "memory" for placed in copies):
                continue  # R8
            left = [each for each in copies if not is_buried(each, burials)]
            if left:
                chosen.append(max(left, key=precedence))
        return chosen

    # ---- What is served

    def entries(self) -> list[tuple[str, str]]:
        """Return name and text of each entry, in output order (R20)."""
        return [(each.copy.name, each.copy.text) for each in in_order(self.live(), self._copies())]

    @property
    def documents(self) -> int:
        """Number of attached documents."""
        return 1 + len(self.chain) + len(self.page_order)

    def deletions(self) -> set[str]:
        """The names in the tombstones of the answer (R19)."""
        return {name for name, _, _ in self._burials()}


def is_newer(doc: Doc, other: Doc) -> bool:
    """Whether a page is newer than another: both its newest and its oldest entry are."""
    here = [copy.order for copy in doc.copies if copy.order is not None]
    there = [copy.order for copy in other.copies if copy.order is not None]
    return bool(here and there) and max(here) > max(there) and min(here) >= min(there)


def _next_attempt(failure: Failure, before: Attempt | None, now: float, *, is_feed: bool = False) -> Attempt:
    """R14 and docs/operations.md: the time of the next attempt after a failure."""
    times = 1 + (before.times if before is not None else 0)
    is_uncertain = failure is HOST_RESTS or (before is not None and before.is_uncertain)
    soonest = latest = HOUR
    if failure.status == 410:
        soonest = latest = DAY
    elif failure.status in (401, 403) and is_feed:
        latest = DAY
    elif failure.retry_after is not None:
        soonest = latest = failure.retry_after
    elif failure.status <= 0 or failure.status >= 500:
        soonest = min(60.0 * 2 ** (times - 1), LONGEST_DELAY)
        latest = LONGEST_DELAY if is_uncertain else soonest
    if failure is HOST_RESTS:
        soonest = 1.0
    return Attempt(times, now + soonest, now + latest, failure.status in (404, 410), is_uncertain)
