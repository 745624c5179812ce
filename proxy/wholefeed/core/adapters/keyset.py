"""Publishers that give what stands behind an entry that is named (rules R27, R28 and R30).

    the subscription document   its last entry names the first page
    a page                      its last entry names the next one
    a page without entries      the end

What is added or deleted meanwhile moves nothing: a page begins behind an entry, not behind a number of them.
Only where the entry that was named is itself gone is the page that gave it asked for again, for its last
entry of now. The first key is kept: when all is asked for again, the pages are the same ones (the store may
have them), and what came since is asked for from the subscription document down to where both meet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from wholefeed.core.adapters.asking import Answer, Ask, Asking, Job, Outcome, Page, Refused, one
from wholefeed.core.adapters.last_page import MOST_PAGES
from wholefeed.core.adapters.urls import page_url
from wholefeed.core.model import EntryId

FRONT_PLACE: Final = -1_000_000_000
"""Pages behind a later subscription document stand in front of those behind the first one."""
_LOST_KEYS: Final = 5
"""So many entries in a row may be gone that were asked behind."""


def _nothing(_key: str) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyset:
    """How a publisher is asked for what stands behind an entry."""

    parameter: str
    key_of: Callable[[str], str | None]
    """The key of an entry, of what identifies it as written; None where it bears none."""
    is_lasting: bool
    """Whether a key serves when its entry is gone."""
    behind: Callable[[str], Sequence[str]] = _nothing
    """Further keys to be tried where the page behind a key has no entries, and that need not be the end."""


def collect_by_key(job: Job, keyset: Keyset) -> Asking[Outcome]:
    """Ask for all pages, until nothing new comes."""
    pages = _Pages(job, keyset)
    key = keyset.key_of(job.page.marks.last_id)
    if key is None:
        return job.unproven("the last entry bears nothing to ask for more by")
    first_key = keyset.key_of(job.known.start_id) or key
    is_honoured = yield from pages.down(first_key)
    chain = frozenset(pages.on_pages)
    if key != first_key and pages.refused is None and chain.isdisjoint(job.page.identities):
        pages.place = FRONT_PLACE
        is_honoured = (yield from pages.down(key, until=chain)) or is_honoured
    if not is_honoured:
        return job.unproven(pages.reason or "the publisher does not answer by entries")
    known = replace(
        job.known,
        way=keyset.parameter,
        pages=pages.count,
        page_entries=len(job.page.identities),
        collected=len(pages.met),
        top=job.top,
        retry_at=None,
        reason="",
    )
    return Outcome(is_honoured=True, is_whole=pages.refused is None, known=known, reason=pages.reason)


def look_by_key(job: Job, keyset: Keyset) -> Asking[Outcome]:
    """Ask for what came since the last look, where the subscription document does not reach back to it.

    Nothing new stands below what is known, so that there is nothing to ask for else; the page behind the
    subscription document is asked for once a day nevertheless.
    """
    pages = _Pages(job, keyset, is_again=True)
    pages.place = FRONT_PLACE
    key = keyset.key_of(job.page.marks.last_id)
    is_joined = job.is_linked
    if key is not None and (not is_joined or job.is_daily):
        is_joined = (yield from pages.down(key, is_look=True)) or is_joined
    is_whole = is_joined and pages.refused is None
    reason = pages.reason or ("" if is_whole else "the publisher does not answer by entries any more")
    known = replace(job.known, top=job.top) if is_whole else job.known
    return Outcome(is_honoured=True, is_whole=is_whole, known=known, reason=reason)


class _Pages:
    """What is known of the pages while they are asked for."""

    def __init__(self, job: Job, keyset: Keyset, *, is_again: bool = False) -> None:
        self._job = job
        self._keyset = keyset
        self._is_again = is_again
        self.met: set[EntryId] = set(job.page.identities)
        self.on_pages: set[EntryId] = set()
        """What of that stood on pages."""
        self.count = 1
        """Pages with entries, the subscription document among them."""
        self.place = 0
        self.refused: Refused | None = None
        """What ended the questions before their end."""
        self._tops: set[EntryId] = set(job.page.identities[:1])
        """What pages begin with: one that has any of it repeats what was had."""
        self._asked = 0
        self._lost_keys = 0

    @property
    def reason(self) -> str:
        """Why they are not all there, if something could not be had."""
        return "" if self.refused is None else self.refused.slug

    def down(
        self, key: str | None, *, until: Collection[EntryId] = (), is_look: bool = False
    ) -> Asking[bool]:
        """Ask for page after page; return whether the first one showed that the key is honoured (R27).

        Args:
            key: Of the entry to begin behind.
            until: A page that has one of these is the last.
            is_look: So is one without news.
        """
        before: Ask | None = None
        while key is not None and self._asked < MOST_PAGES:
            ask = self._ask(key)
            answer = yield from self._answer(ask, key)
            if isinstance(answer, Refused) and not answer.is_gone:
                self.refused = answer
                break
            is_empty = isinstance(answer, Page) and not answer.identities
            if is_empty and (before is None or self._keyset.is_lasting):
                return True
            if isinstance(answer, Page) and self._is_further(answer):
                self._meet(answer)
                if (is_look and not answer.news) or any(each in until for each in answer.identities):
                    return True
                before, key = ask, self._key_of(answer)
            elif before is None:
                break
            else:
                key = yield from self._other_key(before, key)
        return before is not None

    def _ask(self, key: str) -> Ask:
        self._asked += 1
        url = page_url(self._job.url, **{self._keyset.parameter: quote(key, safe="")})
        return Ask(url, place=self.place + self._asked, is_again=self._is_again)

    def _answer(self, ask: Ask, key: str) -> Asking[Answer]:
        """Have the answer; an empty page only where all further keys give none either."""
        answer = yield from one(ask)
        if isinstance(answer, Page) and not answer.identities:
            for further in self._keyset.behind(key):
                other = yield from one(self._ask(further))
                if not isinstance(other, Page) or other.identities:
                    return other
        return answer

    def _is_further(self, page: Page) -> bool:
        """Whether a page brings what was not met, and is no repetition."""
        return self._tops.isdisjoint(page.identities) and not self.met.issuperset(page.identities)

    def _meet(self, page: Page) -> None:
        self.count += 1
        self._lost_keys = 0
        self.met.update(page.identities)
        self.on_pages.update(page.identities)
        self._tops.add(page.identities[0])

    def _key_of(self, page: Page) -> str | None:
        return self._keyset.key_of(page.marks.last_id)

    def _other_key(self, before: Ask, key: str) -> Asking[str | None]:
        """Ask once more for the page that ended with it; return the key of its last if that is another."""
        self._lost_keys += 1
        answer = yield from one(before._replace(is_again=True))
        if isinstance(answer, Refused) and not answer.is_gone:
            self.refused = answer
            return None
        is_lost = not isinstance(answer, Page) or not self.on_pages.intersection(answer.identities)
        if is_lost or self._lost_keys > _LOST_KEYS:
            self.refused = Refused("the entries to ask behind are gone, one after the other")
            return None
        assert isinstance(answer, Page)
        self.met.update(answer.identities)
        self.on_pages.update(answer.identities)
        found = self._key_of(answer)
        return found if found != key else None
