"""Mastodon: the statuses of an account, two hundred at most.

    @somebody.rss?limit=200    the newest two hundred; without it twenty

Facts: pull request 13743 (2020) brought the parameter, issue 35001 (2025) says that it serves still. By its
source (`app/controllers/accounts_controller.rb`) more than 200 counts as 200, and nothing goes further back.
Whether the feeds of hashtags know it was not confirmed; they are asked too. A feed names its generator,
`Mastodon v4.3.0`; forks have their version behind it (`+glitch`, `+hometown`).

So there is one page, the largest. One of two hundred may have had more behind it, and nothing tells: the feed
stays partial then, and what comes later is added to it. Where all was had once it grows beyond two hundred.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from wholefeed.core.adapters.asking import Ask, Asking, Job, Outcome, Page, Refused, Sight, one
from wholefeed.core.adapters.collection import Collection
from wholefeed.core.adapters.urls import has_parameter, page_url
from wholefeed.core.model import EntryId
from wholefeed.core.terms import Family

MOST: Final = 200
_PARAMETER: Final = "limit"
_GENERATOR: Final = re.compile(r"Mastodon v\d")
_CUT: Final = f"the publisher gives its newest {MOST} entries, and may have more"


class Mastodon:
    """What an account says, or many under a hashtag."""

    name: Final = "mastodon"

    def fits(self, sight: Sight) -> bool:
        """Return whether the generator says so."""
        is_one = sight.family is Family.RSS and _GENERATOR.match(sight.marks.generator) is not None
        return is_one and not has_parameter(_PARAMETER, sight.url, sight.asked_url)

    def collect(self, job: Job) -> Asking[Outcome]:
        """Ask for the largest page."""
        answer = yield from one(_ask(job, MOST))
        if isinstance(answer, Refused):
            return job.unproven(answer.slug)
        assert isinstance(answer, Page)
        if not (_goes_further(answer, job.page.identities) or (yield from _is_counted(job))):
            return job.unproven("the publisher does not give as much as is asked for")
        known = replace(job.known, pages=1, retry_at=None, reason="")
        return _outcome(job, answer, known)

    def look(self, job: Job) -> Asking[Outcome]:
        """Ask for it again where the subscription document does not reach back, and once a day."""
        if job.is_linked and not job.is_daily:
            is_cut = job.known.page_entries >= MOST
            known = replace(job.known, top=job.top)
            return Outcome(is_honoured=True, is_whole=not is_cut, known=known, reason=_CUT if is_cut else "")
        answer = yield from one(_ask(job, MOST, is_again=True))
        if isinstance(answer, Refused):
            return Outcome(is_honoured=True, is_whole=False, known=job.known, reason=answer.slug)
        assert isinstance(answer, Page)
        return _outcome(job, answer, job.known)


def _ask(job: Job, limit: int, *, is_again: bool = False) -> Ask:
    return Ask(page_url(job.url, **{_PARAMETER: limit}), place=limit, is_again=is_again)


def _goes_further(page: Page, first: tuple[EntryId, ...]) -> bool:
    """Whether a page has more behind what the subscription document has; a new status stands in front."""
    places = [place for place, identity in enumerate(page.identities) if identity in first]
    return bool(places) and places[-1] < len(page.identities) - 1


def _is_counted(job: Job) -> Asking[bool]:
    """R27: of an account with few statuses, the parameter has to show by giving fewer."""
    if len(job.page.identities) < 2:  # noqa: PLR2004 - one cannot become fewer
        return False
    answer = yield from one(_ask(job, 1))
    return isinstance(answer, Page) and len(answer.identities) == 1


def _outcome(job: Job, page: Page, known: Collection) -> Outcome:
    is_cut = _is_cut(job, page)
    entries = len(page.identities)
    known = replace(
        known,
        way=_PARAMETER,
        page_entries=max(entries, MOST) if is_cut else min(entries, MOST - 1),
        collected=max(known.collected, len({*page.identities, *job.page.identities})),
        top=job.top,
    )
    return Outcome(is_honoured=True, is_whole=not is_cut, known=known, reason=_CUT if is_cut else "")


def _is_cut(job: Job, page: Page) -> bool:
    """Whether there may be what nobody has seen: not where a page reaches what once was all there was."""
    was_all = job.known.is_ended and job.known.page_entries < MOST
    is_joined = page.news < len(set(page.identities) - set(job.page.identities))
    return len(page.identities) >= MOST and not (was_all and is_joined)
