"""Fetch the texts of entries from their pages (T1 to T5), for readers that ask for them.

Nobody waits. Each page is stored when it comes, so a restart goes on from there.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from wholefeed.core.listing.finding import NotHad
from wholefeed.core.parse.discovery import is_html
from wholefeed.core.slugs import lasts
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.texts.elements import (
    CHECKED_ON,
    LEARNED_FROM,
    LEAST_CHARACTERS,
    Learned,
    LearnedElement,
    LearningSample,
)
from wholefeed.core.texts.extracting import (
    PageText,
    TextWish,
    extract_text,
    guess_text_element,
    learn_text_element,
)
from wholefeed.core.texts.wanted import EntryPage, page_key, read_entry_pages
from wholefeed.errors import OverloadedError, StoreError, UnknownFeedError, WorkError
from wholefeed.fetch.base import Fetched
from wholefeed.fetch.robots import Robots
from wholefeed.logs import get_logger
from wholefeed.service.context import RefreshContext
from wholefeed.service.page_fetches import PAGE_BYTES, PAUSE_SECONDS, READ_SECONDS, PageFetches, SitePace
from wholefeed.service.running import REST_SECONDS
from wholefeed.service.showing import entries_in, namespace_of, read_places
from wholefeed.service.site_rounds import SiteRounds
from wholefeed.store.rows import FeedRow, Snapshot
from wholefeed.store.tables import text_table
from wholefeed.store.tables.text_table import NewText, StoredText, TextPlan

log = get_logger()

_MOST_ATTEMPTS: Final = 3
"""Fetches of a page that failed for a reason that may pass, a day apart."""
_BATCH_ENTRIES: Final = 64
_LEARNED_SECONDS: Final = 30 * DAY_SECONDS
"""Then an element is learned again: themes change."""
_LEARN_BYTES: Final = 1 << 20
"""Largest page to learn from."""
_TAKEN_BYTES: Final = 10 << 20
_LEAST_GUESSED: Final = 8
"""Fewest pages to guess a common element for."""
_MOST_NOTED: Final = 4096


class Texts:
    """Fetches pages of entries; belongs to one event loop."""

    def __init__(self, context: RefreshContext, robots: Robots, pace: SitePace) -> None:
        self._context = context
        self._store = context.store
        self._robots = robots
        self._pace = pace
        self._rounds = SiteRounds(
            context,
            "texts",
            list_due=text_table.list_due,
            next_due_at=text_table.next_due_at,
            url_of=lambda feed: feed.via_url,
            work=self._work_on,
        )
        self._noted: dict[int, tuple[int, float]] = {}
        """Revision and time of the last noted wish, by feed."""
        self._writes: set[asyncio.Task[None]] = set()

    @property
    def are_on(self) -> bool:
        return self._context.config.history.texts != "off"

    # Wishes of readers

    def note_asked(self, feed: FeedRow) -> None:
        """Remember that a reader wants texts of a feed; most requests change nothing."""
        now = self._context.now()
        revision, at = self._noted.get(feed.id, (-1, 0.0))
        if not self.are_on or (revision == feed.published_revision and abs(now - at) < DAY_SECONDS):
            return
        if len(self._noted) >= _MOST_NOTED:
            self._noted.clear()
        self._noted[feed.id] = feed.published_revision, now
        task = asyncio.create_task(self._note(feed.id, now))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    async def _note(self, feed: int, now: float) -> None:
        try:
            await self._store.write(partial(text_table.ask, feed=feed, now=now))
            self._rounds.wake()
        except (StoreError, OverloadedError):
            self._noted.pop(feed, None)

    def wake(self) -> None:
        """Look for due feeds now: the clock may have been set."""
        self._rounds.wake()

    async def ask_again(self, feed: int) -> None:
        """Have all pages of a feed fetched again (T2)."""
        if self.are_on:
            await self._store.write(partial(text_table.ask_again, feed=feed, now=self._context.now()))
            self._rounds.wake()

    async def drop_unused(self, feed: int) -> None:
        """Delete the texts of pages that no entry of a feed has any more (I2)."""
        stored = await self._store.read(partial(text_table.list_pages, feed=feed))
        if not stored:
            return
        async with self._store.snapshot(feed) as snapshot:
            entries = await _read_entries(self._context, snapshot)
        used = {each.key for each in entries}
        dropped = [key for key in stored if key not in used]
        if dropped:
            drop = partial(text_table.drop_pages, feed=feed, pages=dropped, now=self._context.now())
            await self._store.write(drop, feed=feed, tell=self._context.memory.renew)

    async def run(self) -> None:
        """Fetch pages of due feeds until cancelled."""
        while self.are_on:
            try:
                await self._rounds.run()
            except (StoreError, OverloadedError) as exc:
                log.warning("texts.paused", slug=exc.slug)
                await self._rounds.pause(REST_SECONDS)

    async def close(self) -> None:
        writes = list(self._writes)
        for each in writes:
            each.cancel()
        await asyncio.gather(self._rounds.close(), *writes, return_exceptions=True)

    # One feed

    async def _work_on(self, feed: FeedRow) -> None:
        try:
            await self._fetch_texts(feed)
        except (StoreError, OverloadedError, WorkError, UnknownFeedError) as exc:
            log.warning("texts.unkept", feed=feed.id, slug=exc.slug)
            await self._put_off(feed.id, self._context.now() + PAUSE_SECONDS)
        except Exception:  # the last resort: other feeds go on
            self._context.counts.troubles["texts"] += 1
            log.exception("texts.failed", feed=feed.id)
            await self._put_off(feed.id, self._context.now() + DAY_SECONDS)

    async def _put_off(self, feed: int, until: float) -> None:
        try:  # in the store, since a feed that stays due keeps the others of its host waiting
            plan = await self._store.read(partial(text_table.find_plan, feed=feed))
            if plan is not None:
                await self._store.write(partial(text_table.put_off, feed=feed, plan=plan, due_at=until))
        except (StoreError, OverloadedError):
            self._rounds.rest_feed(feed, until)

    async def _fetch_texts(self, feed: FeedRow) -> None:
        now = self._context.now()
        plan = await self._store.read(partial(text_table.find_plan, feed=feed.id))
        if plan is None:
            return
        if not 0 <= now - plan.begun_at < DAY_SECONDS:
            await self._store.write(partial(text_table.begin_day, feed=feed.id, now=now))
            plan = await self._store.read(partial(text_table.find_plan, feed=feed.id)) or plan
        fetches = PageFetches(self._context, self._robots, self._pace, feed.via_url, feed.url)
        look = _TextLook(self._context, feed, plan, fetches)
        began = time.monotonic()
        due_at = await look.run()
        await self._store.write(partial(text_table.put_off, feed=feed.id, plan=plan, due_at=due_at))
        log.info(
            "texts.fetched",
            feed=feed.id,
            pages=look.pages,
            texts=look.texts,
            requests=fetches.requests,
            duration_s=round(time.monotonic() - began, 3),
        )


@dataclass(slots=True)
class _TextLook:
    """The pages of one feed, from the newest entry, as many as a day allows."""

    context: RefreshContext
    feed: FeedRow
    plan: TextPlan
    fetches: PageFetches
    pages: int = 0
    texts: int = 0
    _learned: Learned = field(default=Learned(None, is_whole=False), init=False)
    _keys: set[bytes] = field(default_factory=set, init=False)
    """Pages of the feed's entries."""
    _taken: dict[bytes, _TakenPage | NotHad] = field(default_factory=dict, init=False)
    """Pages to learn from, not yet read for their entries."""

    async def run(self) -> float | None:
        """Return when the feed is due next, epoch seconds; None: when it changes."""
        async with self.context.store.snapshot(self.feed.id) as snapshot:
            self.feed = snapshot.feed
            entries = await _read_entries(self.context, snapshot)
        stored = await self.context.store.read(partial(text_table.list_pages, feed=self.feed.id))
        self._keys = {each.key for each in entries}
        await self._find_element(entries, stored)
        wanted = [each for each in entries if each.wants_text(is_whole=self._learned.is_whole)]
        # a text of an entry that has become whole would be counted in place of one still missing
        kept = {each.key for each in wanted}
        dropped = [key for key, page in stored.items() if key not in (self._keys if page.why else kept)]
        settle = partial(
            text_table.settle, feed=self.feed.id, wanted=len(wanted), dropped=dropped, now=self.context.now()
        )
        await self._write(settle)
        failed = {key for key, page in stored.items() if page.attempts}
        for each in sorted(wanted, key=lambda entry: entry.key in failed):  # those that may fail again last
            page = stored.get(each.key)
            if not self._is_due(each, page):
                continue
            if each.key not in self._taken:
                if self._left <= 0:
                    return self.plan.begun_at + DAY_SECONDS
                if self.fetches.paused_until is not None:
                    return self.fetches.paused_until
            await self._fetch(each, page)
        if self.fetches.paused_until is not None:
            return self.fetches.paused_until
        again = await self.context.store.read(partial(text_table.list_pages, feed=self.feed.id))
        may_pass = any(0 < each.attempts < _MOST_ATTEMPTS for each in again.values())
        return self.context.now() + DAY_SECONDS if may_pass else None

    @property
    def _left(self) -> int:
        return self.context.config.history.texts_per_day - self.plan.fetched - self.pages

    def _is_due(self, entry: EntryPage, known: StoredText | None) -> bool:
        if known is None or (self.plan.again_at is not None and known.fetched_at < self.plan.again_at):
            return True
        if 0 < known.attempts < _MOST_ATTEMPTS:
            return not 0 <= self.context.now() - known.fetched_at < DAY_SECONDS
        before = known.updated_at
        return entry.updated_at is not None and (before is None or entry.updated_at > before)

    # Learning

    async def _find_element(self, entries: Sequence[EntryPage], stored: Mapping[bytes, StoredText]) -> None:
        """Learn the element of the site's texts from the feed, else guess it, unless it is known (T3)."""
        now = self.context.now()
        last = _read_learned(self.plan.learned)
        before = last if last is not None and last.is_guessed else None
        if last is not None:
            self._learned = last.learned
        if last is None or not 0 <= now - last.at < _LEARNED_SECONDS:
            learned = await self._learn(entries, stored)
            if learned is None:
                return
            last = _KnownElement(learned, now, is_guessed=False)
            await self._keep(last)
        self._learned = last.learned
        if last.learned.element is None and not last.is_guessed:
            guessed = await self._guess(entries, stored)
            if guessed is None and before is not None:  # too few new pages to guess it again
                guessed = before.learned
            if guessed is not None:
                self._learned = guessed
                await self._keep(_KnownElement(guessed, now, is_guessed=True))

    async def _keep(self, known: _KnownElement) -> None:
        written = _write_learned(known)
        await self.context.store.write(partial(text_table.keep_learned, feed=self.feed.id, learned=written))

    async def _learn(
        self, entries: Sequence[EntryPage], stored: Mapping[bytes, StoredText]
    ) -> Learned | None:
        """Learn from the feed's texts (T3); None: not all pages could be asked for."""
        failed = {key for key, page in stored.items() if page.attempts}
        texts = [
            each
            for each in entries
            if len(each.text) >= LEAST_CHARACTERS and not each.is_cut and each.key not in failed
        ]
        full = [each for each in texts if each.is_full]
        are_full = len(full) >= LEARNED_FROM
        chosen = (full if are_full else texts)[: LEARNED_FROM + CHECKED_ON]
        samples = list[LearningSample]()
        if len(chosen) >= LEARNED_FROM:
            for each in chosen:
                if self._left <= 0 or self.fetches.paused_until is not None:
                    return None
                fetched = await self._take(each)
                if isinstance(fetched, NotHad) and fetched.status == HTTPStatus.FORBIDDEN:
                    await self._put(_failed_text(each, stored.get(each.key), fetched))
                elif isinstance(fetched, _TakenPage) and len(fetched.body) <= _LEARN_BYTES:
                    samples.append(LearningSample(fetched.body, fetched.media_type, each.text))
        if len(samples) < LEARNED_FROM <= len(chosen):
            return self._learned  # pages that do not come teach nothing new
        learned = Learned(None, is_whole=False)
        if samples:
            with suppress(WorkError):  # hostile pages teach nothing
                learned = await self.context.source.work.run_briefly(
                    READ_SECONDS, learn_text_element, samples, are_full=are_full
                )
        return learned

    async def _guess(
        self, entries: Sequence[EntryPage], stored: Mapping[bytes, StoredText]
    ) -> Learned | None:
        """Return the element that the first pages have in common; None: there are too few pages yet.

        The pages are read for their own entries afterwards.
        """
        is_whole = self._learned.is_whole
        wanted = [each for each in entries if each.wants_text(is_whole=is_whole)]
        due = [each for each in wanted if self._is_due(each, stored.get(each.key))]
        if len(due) < _LEAST_GUESSED:
            return None
        samples = list[LearningSample]()
        for each in due[: LEARNED_FROM + CHECKED_ON]:
            if self._left <= 0 or self.fetches.paused_until is not None:
                break
            page = await self._take(each)
            if isinstance(page, _TakenPage) and len(page.body) <= _LEARN_BYTES:
                samples.append(LearningSample(page.body, page.media_type, each.text))
        if len(samples) < LEARNED_FROM:
            return None
        element = None
        with suppress(WorkError):  # hostile pages teach nothing
            work = self.context.source.work
            element = await work.run_briefly(READ_SECONDS, guess_text_element, samples)
        return Learned(element, is_whole)

    async def _take(self, entry: EntryPage) -> _TakenPage | NotHad | None:
        """Return a page to learn from, and keep it for its own entry; None: there is no room."""
        page = self._taken.get(entry.key)
        if page is None:
            page = await self.fetches.fetch(entry.url, _take)
            await self._count()
            taken = [each for each in (*self._taken.values(), page) if isinstance(each, _TakenPage)]
            if sum(len(each.body) for each in taken) > _TAKEN_BYTES:
                return None
            self._taken[entry.key] = page
        return page

    # One page

    async def _fetch(self, entry: EntryPage, known: StoredText | None) -> None:
        wish, taken = TextWish(entry.url, entry.text, self._learned.element), self._taken.pop(entry.key, None)
        if taken is None:
            found = await self.fetches.fetch(entry.url, partial(self._read, wish))
            await self._count()
        elif isinstance(taken, NotHad):
            found = taken
        else:
            try:
                found = await self._read(wish, entry.url, taken)
            except WorkError as exc:
                found = NotHad(entry.url, exc.slug, None, is_lasting=lasts(exc.slug))
        if isinstance(found, NotHad):
            # a page that is always forbidden must not keep the others waiting; else it is asked for again
            if self.fetches.paused_until is not None and found.status != HTTPStatus.FORBIDDEN:
                return
            text = _failed_text(entry, known, found)
        else:
            text = NewText(
                entry.key, entry.url, entry.updated_at, found.why, 0, found.way, found.html, found.length,
                found.digest,
            )  # fmt: skip
        await self._put(text)
        self.texts += not text.why

    async def _put(self, text: NewText) -> None:
        put = partial(
            text_table.put,
            feed=self.feed.id,
            text=text,
            now=self.context.now(),
            most_bytes=self.context.config.limits.feed_bytes,
        )
        await self._write(put)

    async def _count(self) -> None:
        self.pages += 1
        await self.context.store.write(partial(text_table.count_fetch, feed=self.feed.id))

    async def _write(self, work: partial[FeedRow]) -> None:
        """Write, and have answers see it: other replicas notice by the feed's version."""
        await self.context.store.write(work, feed=self.feed.id, tell=self.context.memory.renew)

    async def _read(self, wish: TextWish, url: str, fetched: Fetched | _TakenPage) -> PageText | NotHad:
        work, body = self.context.source.work, fetched.body
        if len(body) > PAGE_BYTES:
            return PageText("page-too-large")
        if not is_html(body, fetched.media_type):
            return PageText("not-html")
        key = page_key(fetched.final_url)
        if key != page_key(wish.url) and key in self._keys:  # the page of another entry
            return PageText("elsewhere")
        async with work.large.turn(len(body)):
            return await work.run_briefly(
                READ_SECONDS, extract_text, body, fetched.final_url, fetched.media_type, wish
            )


async def _read_entries(context: RefreshContext, snapshot: Snapshot) -> list[EntryPage]:
    """Return the entries with a page of their own at the feed's site, newest first."""
    feed, total, found = snapshot.feed, entries_in(snapshot), list[EntryPage]()
    for start in range(0, total, _BATCH_ENTRIES):
        places = range(start, min(start + _BATCH_ENTRIES, total))
        texts = list((await read_places(snapshot, context.store, places)).values())
        found += await context.source.work.run(
            sum(map(len, texts)),
            read_entry_pages,
            texts,
            feed.published_family,
            namespace=namespace_of(feed),
        )
    times = Counter(each.key for each in found)
    site = context.site_of(feed.via_url)
    # a page of several entries is no entry's own
    return [each for each in found if each.key and times[each.key] == 1 and context.site_of(each.url) == site]


@dataclass(frozen=True, slots=True)
class _TakenPage:
    body: bytes
    media_type: str
    final_url: str


async def _take(url: str, fetched: Fetched) -> _TakenPage | NotHad:
    return _TakenPage(fetched.body, fetched.media_type, fetched.final_url)


def _failed_text(entry: EntryPage, known: StoredText | None, found: NotHad) -> NewText:
    """Return the note that a page could not be fetched."""
    attempts = 0 if found.is_lasting else 1 + (0 if known is None else known.attempts)
    return NewText(entry.key, entry.url, entry.updated_at, _reason(found), attempts)


def _reason(found: NotHad) -> str:
    return "not-own-site" if found.slug == "cross-origin-unconfirmed" else found.slug


# What was learned, in the store


class _KnownElement(NamedTuple):
    learned: Learned
    at: float
    """Epoch seconds."""
    is_guessed: bool
    """Whether the element was looked for in the pages alone."""


def _write_learned(known: _KnownElement) -> str:
    element = None if known.learned.element is None else known.learned.element._asdict()
    told = {"at": known.at, "whole": known.learned.is_whole, "guessed": known.is_guessed}
    return json.dumps({**told, "element": element})


def _read_learned(text: str) -> _KnownElement | None:
    found: dict[str, Any] = json.loads(text)
    if "at" not in found:
        return None
    named = found["element"]
    element = None
    if named is not None:
        element = LearnedElement(
            named["tag"],
            named["id"],
            tuple(named["classes"]),
            named["position"],
            tuple(named.get("added", ())),  # not in rows of earlier versions
        )
    learned = Learned(element, bool(found["whole"]))
    return _KnownElement(learned, float(found["at"]), bool(found.get("guessed")))


def element_in_words(learned: str) -> str:
    """Return the learned element as a CSS selector; empty: none."""
    known = _read_learned(learned)
    return "" if known is None or known.learned.element is None else str(known.learned.element)
