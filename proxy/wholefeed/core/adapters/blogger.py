"""Blogger: the posts of a blog, a hundred a page.

    /feeds/posts/default?start-index=25&max-results=100    a hundred from the twenty-fifth on

Facts, by Google's guide to the protocol ("Blogger Data API, Reference Guide", version 2: `start-index` counts
from 1, beside `max-results`) and by bloggers who watched it ("The incredible shrinking feeds", 2019: 25 posts
without the parameters; at most 500 at first, 150 from 2016 on, 100 since): the newest first, and all posts
of the blog can be had so. Comments have a path of their own. Atom feeds link `next`, paged feeds then;
this is for those without the link, such as `alt=rss`.

A number of entries is no firm ground: what is deleted moves all that is older. So a page begins with the last
entry of the one before it; where it does not have any of that one, it is asked for from further up.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from wholefeed.core.adapters.asking import Ask, Asking, Job, Outcome, Page, Refused, Sight, one
from wholefeed.core.adapters.last_page import MOST_PAGES
from wholefeed.core.adapters.urls import has_parameter, page_url
from wholefeed.core.model import EntryId
from wholefeed.core.terms import Family

MOST: Final = 100
_GENERATOR: Final = re.compile(r"(?:https?://www\.blogger\.com/? )?Blogger")
_PATH: Final = re.compile(r"/feeds/(?:\d+/)?posts/|/(?:atom|rss)\.xml$")
_HIGHEST: Final = MOST_PAGES * MOST
_STEPS_BACK: Final = 5
"""So often in a row a page is asked for from further up."""
_STALLED: Final = 2
"""So many pages in a row that end with one entry are the end: as many posts as a page has may have come."""
_STEP: Final = 10
"""So many entries the first time: each time twice as many as before."""


class Blogger:
    """A blog, or what bears a label in it."""

    name: Final = "blogger"

    def fits(self, sight: Sight) -> bool:
        """Return whether the generator says so, at the address of a blog: services republish such feeds."""
        if sight.family not in (Family.ATOM, Family.RSS) or not _GENERATOR.fullmatch(sight.marks.generator):
            return False
        is_there = _PATH.search(urlsplit(sight.url).path) is not None
        urls = sight.url, sight.asked_url
        return is_there and not (has_parameter("start-index", *urls) or has_parameter("max-results", *urls))

    def collect(self, job: Job) -> Asking[Outcome]:
        """Ask from the last entry of the subscription document down."""
        if len(job.page.identities) < 2:  # noqa: PLR2004 - what is given from the first on shows nothing
            return job.unproven("one entry does not tell whether numbers count")
        pages = _Pages(job)
        is_honoured = yield from pages.down()
        if not is_honoured:
            return job.unproven(pages.reason or "the publisher does not answer by numbers of entries")
        known = replace(
            job.known,
            way="start-index",
            pages=pages.count,
            page_entries=len(job.page.identities),
            collected=len(pages.met),
            top=job.top,
            retry_at=None,
            reason="",
        )
        return Outcome(is_honoured=True, is_whole=not pages.reason, known=known, reason=pages.reason)

    def look(self, job: Job) -> Asking[Outcome]:
        """Ask for what the subscription document does not reach, and for the page behind it once a day."""
        if job.is_linked and not job.is_daily:
            return Outcome(is_honoured=True, known=replace(job.known, top=job.top))
        pages = _Pages(job, is_look=True)
        is_joined = (yield from pages.down()) or job.is_linked
        is_whole = is_joined and not pages.reason
        reason = pages.reason or ("" if is_whole else "the publisher does not answer by numbers any more")
        known = replace(job.known, top=job.top) if is_whole else job.known
        return Outcome(is_honoured=True, is_whole=is_whole, known=known, reason=reason)


class _Pages:
    """What is known of the pages while they are asked for."""

    def __init__(self, job: Job, *, is_look: bool = False) -> None:
        self._job = job
        self._is_look = is_look
        self.met: set[EntryId] = set(job.page.identities)
        self.count = 1
        """Pages with entries, the subscription document among them."""
        self.reason = ""
        """Why they are not all there."""

    def down(self) -> Asking[bool]:
        """Ask for page after page; return whether the first one shows that numbers count (R27)."""
        before, start = self._job.page.identities, len(self._job.page.identities)
        back = stalled = 0
        while 1 < start <= _HIGHEST:
            answer = yield from one(self._ask(start, is_again=self._is_look or back > 0))
            if isinstance(answer, Refused):
                self.reason = "" if answer.is_gone and self.count == 1 else answer.slug
                break
            assert isinstance(answer, Page)
            page = answer.identities
            if self.count == 1 and self._job.page.identities[0] in page:
                break
            if set(before).isdisjoint(page):
                back += 1
                if back > _STEPS_BACK:
                    self.reason = "the entries moved while they were asked for"
                    break
                start = max(2, start - (_STEP << (back - 1)))
                continue
            stalled = stalled + 1 if page[-1] == before[-1] else 0
            self.met.update(page)
            self.count += not stalled
            is_end = len(page) == 1 or stalled >= _STALLED
            if (stalled and is_end) or (self._is_look and not answer.news):
                return True
            before, start, back = page, start + len(page) - 1, 0
        return self.count > 1

    def _ask(self, start: int, *, is_again: bool) -> Ask:
        url = page_url(self._job.url, **{"start-index": start, "max-results": MOST})
        return Ask(url, place=start, is_again=is_again)
