"""Publishers other than WordPress: GitHub, Discourse, Reddit and Mastodon (rules R26 to R32).

The first three give the entries behind a named one, so new or deleted entries move nothing. If the named
entry itself is gone, the page before it is read again, for its present last entry. The first key stays the
same, so a later walk has the same pages.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection as AbstractCollection
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final
from urllib.parse import parse_qsl, quote, urlsplit

from wholefeed.core.adapters.base import (
    MOST_PAGES,
    AdapterJob,
    AdapterOutcome,
    AdapterPage,
    Asking,
    Collection,
    PageQuestion,
    PageResponse,
    Refused,
    Sight,
    has_parameter,
    one,
    page_url,
)
from wholefeed.core.model import EntryId, Family
from wholefeed.core.text.markup import unescape

# Publishers that give the entries behind a named one (rules R27, R28 and R30)


class _Keyset(ABC):
    name: ClassVar[str]
    parameter: ClassVar[str]
    is_lasting: ClassVar[bool]
    """Whether a key works after its entry is gone."""
    hides_lost: ClassVar[bool] = False
    """Whether the publisher forbids the key of a missing entry."""
    further: ClassVar[Mapping[str, str | int]] = {}

    @abstractmethod
    def is_theirs(self, sight: Sight) -> bool:
        """Return whether the publisher fits, apart from the last entry and the URL's parameters."""

    @abstractmethod
    def key_of(self, entry_id: str) -> str | None:
        """Return an entry's key from its identity as written; None if it has none."""

    def behind(self, key: str) -> Sequence[str]:
        """Return further keys to try behind an empty page."""
        return ()

    def fits(self, sight: Sight) -> bool:
        """Return whether the publisher fits and the last entry has a key (R26)."""
        is_one = self.is_theirs(sight) and self.key_of(sight.marks.last_id) is not None
        return is_one and not has_parameter(self.parameter, sight.url, sight.asked_url)

    def collect(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        pages = _KeysetPages(job, self)
        key = self.key_of(job.page.marks.last_id)
        if key is None:
            return job.report_unproven("the last entry has no id that a request for older ones could name")
        first_key = self.key_of(job.known.start_id) or key
        is_honoured = yield from pages.down(first_key)
        chain = frozenset(pages.on_pages)
        if key != first_key and pages.refused is None and chain.isdisjoint(job.page.identities):
            pages.place = _FRONT_PLACE
            is_honoured = (yield from pages.down(key, until=chain)) or is_honoured
        if not is_honoured:
            return job.report_unproven(
                pages.reason or "the publisher does not offer the entries before a given one"
            )
        entries = len(job.page.identities)
        known = job.update_collection(
            way=self.parameter, pages=pages.count, page_entries=entries, collected=len(pages.met)
        )
        return AdapterOutcome(
            is_honoured=True, is_whole=pages.refused is None, known=known, reason=pages.reason
        )

    def look(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        """Ask for news, if the subscription document does not reach back to the last look.

        No news stands below known entries. Even so, the look asks for one page once a day.
        """
        pages = _KeysetPages(job, self, is_again=True)
        pages.place = _FRONT_PLACE
        key = self.key_of(job.page.marks.last_id)
        is_joined = job.is_linked
        if key is not None and (not is_joined or job.is_daily):
            is_joined = (yield from pages.down(key, is_look=True)) or is_joined
        lack = "" if is_joined else "the publisher does not offer the entries before a given one any more"
        return job.report_look(pages.reason or lack)


# Pages behind a later subscription document rank before those behind the first one.
_FRONT_PLACE: Final = -1_000_000_000


class _KeysetPages:
    def __init__(self, job: AdapterJob, keyset: _Keyset, *, is_again: bool = False) -> None:
        self._job = job
        self._keyset = keyset
        self._is_again = is_again
        self.met: set[EntryId] = set(job.page.identities)
        self.on_pages: set[EntryId] = set()
        self.count = 1
        self.place = 0
        # The refusal that ended the questions early.
        self.refused: Refused | None = None
        # First entries of pages, which mark a repetition.
        self._tops: set[EntryId] = set(job.page.identities[:1])
        self._asked = 0
        self._lost_keys = 0

    @property
    def reason(self) -> str:
        return "" if self.refused is None else self.refused.slug

    def down(
        self, key: str | None, *, until: AbstractCollection[EntryId] = (), is_look: bool = False
    ) -> Asking[bool]:
        """Ask for page after page; return whether the first one showed that the key is honoured (R27).

        The walk ends at a page with an entry of `until`, a look also at a page without news, after an
        interruption only at known entries.
        """
        before: PageQuestion | None = None
        is_back = self._job.is_linked or not self._job.is_interrupted
        while key is not None and self._asked < MOST_PAGES:
            ask = self._ask(key)._replace(is_trial=self._keyset.hides_lost and before is not None)
            answer = yield from self._answer(ask, key)
            is_hidden = ask.is_trial and isinstance(answer, Refused) and answer.is_forbidden
            if isinstance(answer, Refused) and not (answer.is_gone or is_hidden):
                self.refused = answer
                break
            is_empty = isinstance(answer, AdapterPage) and not answer.identities
            if is_empty and (before is None or self._keyset.is_lasting):
                return True
            if isinstance(answer, AdapterPage) and self._is_further(answer):
                self._meet(answer)
                is_back = is_back or self._job.is_back(answer)
                is_known = is_look and is_back and not answer.news
                if is_known or any(each in until for each in answer.identities):
                    return True
                before, key = ask, self._keyset.key_of(answer.marks.last_id)
            elif before is None:
                break
            else:
                key = yield from self._other_key(before, key)
                if key is None and is_hidden and self.refused is None:
                    assert isinstance(answer, Refused)
                    self.refused = answer
        return before is not None

    def _ask(self, key: str) -> PageQuestion:
        self._asked += 1
        parameters = {**self._keyset.further, self._keyset.parameter: quote(key, safe="")}
        url = page_url(self._job.url, **parameters)
        return PageQuestion(url, place=self.place + self._asked, is_again=self._is_again)

    def _answer(self, ask: PageQuestion, key: str) -> Asking[PageResponse]:
        """Return the response; an empty page only if further keys bring none either."""
        answer = yield from one(ask)
        if isinstance(answer, AdapterPage) and not answer.identities:
            for further in self._keyset.behind(key):
                other = yield from one(self._ask(further))
                if not isinstance(other, AdapterPage) or other.identities:
                    return other
        return answer

    def _is_further(self, page: AdapterPage) -> bool:
        return self._tops.isdisjoint(page.identities) and not self.met.issuperset(page.identities)

    def _meet(self, page: AdapterPage) -> None:
        self.count += 1
        self._lost_keys = 0
        self.met.update(page.identities)
        self.on_pages.update(page.identities)
        self._tops.add(page.identities[0])

    def _other_key(self, before: PageQuestion, key: str) -> Asking[str | None]:
        """Ask again for the page before a dead key; return its new last key, if any."""
        self._lost_keys += 1
        answer = yield from one(before._replace(is_again=True, is_trial=False))
        if isinstance(answer, Refused) and not answer.is_gone:
            self.refused = answer
            return None
        is_lost = not isinstance(answer, AdapterPage) or not self.on_pages.intersection(answer.identities)
        if is_lost or self._lost_keys > _LOST_KEYS:
            self.refused = Refused(
                "the entries that requests for older ones named are gone, one after the other"
            )
            return None
        assert isinstance(answer, AdapterPage)
        self.met.update(answer.identities)
        self.on_pages.update(answer.identities)
        found = self._keyset.key_of(answer.marks.last_id)
        return found if found != key else None


# Missing entries in a row to accept as keys.
_LOST_KEYS: Final = 5


# GitHub


class GitHub(_Keyset):
    """The releases or tags of a repository at github.com; installations elsewhere may be of any age.

    `releases.atom?after=v1.2` gives the ten behind that one.
    """

    # Source: `belokoz/klats`, a program that looks for its updates so. A deleted release stays in the feed as
    # a tag, and a tag may hold slashes. The response for a missing tag is unknown: an empty page, the first
    # page and 404 count as one. `after` with the last entry's tag gives the next ten, and the feed never
    # holds more than ten.

    name: ClassVar[str] = "github"
    parameter: ClassVar[str] = "after"
    is_lasting: ClassVar[bool] = False

    def __init__(self, host: str = "github.com") -> None:
        self._host = host

    def is_theirs(self, sight: Sight) -> bool:
        if sight.family is not Family.ATOM or not sight.site_id.startswith(_GITHUB_SITE_ID):
            return False
        parts = urlsplit(sight.url)
        return parts.hostname == self._host and _GITHUB_PATH.fullmatch(parts.path) is not None

    def key_of(self, entry_id: str) -> str | None:
        found = _GITHUB_ENTRY_ID.fullmatch(unescape(entry_id))
        return found.group(1) if found else None


_GITHUB_SITE_ID: Final = "tag:github.com,2008:"
_GITHUB_PATH: Final = re.compile(r"/[^/]+/[^/]+/(?:releases|tags)\.atom")
_GITHUB_ENTRY_ID: Final = re.compile(r"tag:github\.com,2008:Repository/\d+/(.+)")


# Discourse


class Discourse(_Keyset):
    """The posts of a forum, fifty a page.

    `posts.rss?before=1234` gives the fifty posts with the highest numbers below that.
    """

    # Source: its code (`app/controllers/posts_controller.rb`, `app/queries/latest_posts_query.rb`). A page
    # omits posts of deleted users, so a short page is not the last. Before pull request 27098 (May 2024)
    # `before` meant a span of fifty numbers, so an empty page need not be the end. The feeds of a tag, a user
    # and the top topics have no such parameter; `DiscourseTopics` reads topics. Posts are ordered by number.
    # The missing entries of a span may all be private messages. Sources for the other feeds:
    # `list_controller.rb`, `tags_controller.rb`.

    name: ClassVar[str] = "discourse"
    parameter: ClassVar[str] = "before"
    is_lasting: ClassVar[bool] = True

    def is_theirs(self, sight: Sight) -> bool:
        return sight.marks.route == _DISCOURSE_ROUTE and sight.family is Family.RSS

    def key_of(self, entry_id: str) -> str | None:
        found = _DISCOURSE_GUID.fullmatch(entry_id)
        return found.group(1) if found else None

    def behind(self, key: str) -> Sequence[str]:
        """Return the spans below: before May 2024 a span may hold only private messages."""
        numbers = (int(key) - _SPAN * span for span in range(1, _SPANS + 1))
        return [str(number) for number in numbers if number > 1]


_DISCOURSE_ROUTE: Final = "posts/latest"
_DISCOURSE_GUID: Final = re.compile(r"(?:.+-)?post-([1-9]\d{0,18})")
# Numbers of one page, before May 2024.
_SPAN: Final = 50
# Empty spans in a row that mark the end.
_SPANS: Final = 3


# Reddit


class Reddit(_Keyset):
    """The submissions of a subreddit or a person, a hundred a page, a thousand at most.

    `/r/some/new/.rss?limit=100&after=t3_157kyrd` gives the hundred behind that entry.
    """

    # Sources: its code of 2017 (reddit-archive/reddit: `templates/base.xml`, `templates/link.xml`, `VLimit`
    # in `validator.py`, `precompute_limit` in `queries.py`, `valid_after` in `builder.py`) and captures of
    # 2020 to 2023. Behind a removed entry there is 403. Users find the same limit today (mikf/gallery-dl,
    # issues 6187 and 6223). Lists of comments and activities have other kinds of entries, and a search ends
    # sooner: the adapter ignores them. An entry's id is its name on Reddit (`t3_` and digits of base 36), the
    # feed's id path and query of its URL. A page has 25 entries without `limit`. Behind an entry no longer in
    # the thousand there is nothing. Older entries are unavailable, so a feed of nearly a thousand entries
    # stays partial.

    name: ClassVar[str] = "reddit"
    parameter: ClassVar[str] = "after"
    is_lasting: ClassVar[bool] = False
    hides_lost: ClassVar[bool] = True
    further: ClassVar[Mapping[str, str | int]] = {"limit": 100}

    def __init__(self, host: str = "reddit.com") -> None:
        self._host = host

    def is_theirs(self, sight: Sight) -> bool:
        if sight.family is not Family.ATOM or _REDDIT_LISTING.fullmatch(sight.site_id) is None:
            return False
        host = urlsplit(sight.url).hostname or ""
        is_there = host == self._host or host.endswith(f".{self._host}")
        return is_there and not has_parameter("before", sight.url, sight.asked_url)

    def key_of(self, entry_id: str) -> str | None:
        return entry_id if _REDDIT_ENTRY_ID.fullmatch(entry_id) else None

    def collect(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        outcome = yield from super().collect(job)
        if not (outcome.is_honoured and outcome.is_whole and outcome.known.collected >= _REDDIT_FULL):
            return outcome
        return replace(outcome, is_whole=False, is_final=True, reason=_REDDIT_CUT)


_REDDIT_LISTING: Final = re.compile(
    r"(?:/r/[^/]+|/user/[^/]+/(?:submitted|m/[^/]+)|/domain/[^/]+)?"
    r"(?:/(?:best|hot|new|rising|top|controversial))?/?\.(?:rss|xml)(?:\?.*)?"
)
_REDDIT_ENTRY_ID: Final = re.compile(r"t3_[0-9a-z]{1,13}")
# Entries left of a full thousand after a tenth was removed.
_REDDIT_FULL: Final = 900
_REDDIT_CUT: Final = "Reddit lists its newest 1,000 entries, and may have more"


# Mastodon


class Mastodon:
    """The statuses of an account or a hashtag: two hundred at most, on one page.

    `@somebody.rss?limit=200` gives the newest two hundred, instead of twenty.
    """

    # Sources: pull request 13743 (2020), issue 35001 (2025), and `app/controllers/accounts_controller.rb`. No
    # source confirms the parameter for feeds of hashtags; the adapter asks them too. Forks append their
    # version to the generator (`Mastodon v4.3.0+glitch`). By its code more than 200 counts as 200, and
    # nothing reaches further back. A page of two hundred may hide older statuses: then the feed stays
    # partial, and later statuses are added. A feed once complete stays so beyond two hundred.

    name: Final = "mastodon"

    def fits(self, sight: Sight) -> bool:
        """Return whether the generator says so, and the URL does not ask for the largest page."""
        is_one = sight.family is Family.RSS and _MASTODON_GENERATOR.match(sight.marks.generator) is not None
        return is_one and max(_limit_of(sight.url), _limit_of(sight.asked_url)) < _MASTODON_MOST

    def collect(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        answer = yield from one(_ask_statuses(job, _MASTODON_MOST))
        if isinstance(answer, Refused):
            return job.report_unproven(answer.slug)
        assert isinstance(answer, AdapterPage)
        if not (_goes_further(answer, job.page.identities) or (yield from _is_limit_counted(job))):
            return job.report_unproven("the publisher gives fewer entries than requested")
        return _note_mastodon_page(job, answer, replace(job.known, pages=1, retry_at=None, reason=""))

    def look(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        """Ask for the largest page, if there is a gap, and once a day."""
        if job.is_linked and not job.is_daily:
            is_cut = job.known.page_entries >= _MASTODON_MOST
            return _cut_or_whole(replace(job.known, top=job.top), is_cut=is_cut)
        answer = yield from one(_ask_statuses(job, _MASTODON_MOST, is_again=True))
        if isinstance(answer, Refused):
            return job.report_look(answer.slug)
        assert isinstance(answer, AdapterPage)
        is_further = job.is_linked or _goes_further(answer, job.page.identities)
        if not (is_further or (yield from _is_limit_counted(job))):
            return job.report_look("the publisher gives fewer entries than requested any more")
        return _note_mastodon_page(job, answer, job.known)


_MASTODON_GENERATOR: Final = re.compile(r"Mastodon v\d")
_MASTODON_PARAMETER: Final = "limit"
_MASTODON_MOST: Final = 200
_MASTODON_CUT: Final = f"the publisher gives its newest {_MASTODON_MOST} entries, and may have more"


def _limit_of(url: str) -> int:
    limit = dict(parse_qsl(urlsplit(url).query)).get(_MASTODON_PARAMETER, "")
    return int(limit) if _LIMIT.fullmatch(limit) else 0


_LIMIT: Final = re.compile(r"[0-9]{1,9}")


def _ask_statuses(job: AdapterJob, limit: int, *, is_again: bool = False) -> PageQuestion:
    return PageQuestion(page_url(job.url, **{_MASTODON_PARAMETER: limit}), place=limit, is_again=is_again)


def _goes_further(page: AdapterPage, first: tuple[EntryId, ...]) -> bool:
    places = [place for place, identity in enumerate(page.identities) if identity in first]
    return bool(places) and places[-1] < len(page.identities) - 1


def _is_limit_counted(job: AdapterJob) -> Asking[bool]:
    """Return whether the parameter can give fewer entries than the feed (R27)."""
    if len(job.page.identities) < 2:  # noqa: PLR2004 - one cannot become fewer
        return False
    answer = yield from one(_ask_statuses(job, 1))
    return isinstance(answer, AdapterPage) and len(answer.identities) == 1


def _note_mastodon_page(job: AdapterJob, page: AdapterPage, known: Collection) -> AdapterOutcome:
    is_cut = _is_cut(job, page)
    entries = len(page.identities)
    known = replace(
        known,
        way=_MASTODON_PARAMETER,
        page_entries=max(entries, _MASTODON_MOST) if is_cut else min(entries, _MASTODON_MOST - 1),
        collected=max(known.collected, len({*page.identities, *job.page.identities})),
        top=job.top,
    )
    return _cut_or_whole(known, is_cut=is_cut)


def _cut_or_whole(known: Collection, *, is_cut: bool) -> AdapterOutcome:
    """Return the outcome of a page: it is all that the publisher gives, so no earlier lack counts."""
    reason = _MASTODON_CUT if is_cut else ""
    known = replace(known, lack="")
    return AdapterOutcome(is_honoured=True, is_whole=not is_cut, is_final=is_cut, known=known, reason=reason)


def _is_cut(job: AdapterJob, page: AdapterPage) -> bool:
    """Return whether unseen statuses may exist, unless the page joins a complete history."""
    was_all = job.known.is_ended and job.known.page_entries < _MASTODON_MOST
    is_joined = page.news < len(set(page.identities) - set(job.page.identities))
    return len(page.identities) >= _MASTODON_MOST and not (was_all and is_joined)
