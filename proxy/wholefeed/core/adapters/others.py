"""Publishers other than WordPress: GitHub, Discourse, Reddit and Mastodon (rules R26 to R32).

Each class says what is known of its publisher, and from where. GitHub, Discourse and Reddit are asked for
what stands behind an entry that is named:

    the subscription document   its last entry names the first page
    a page                      its last entry names the next one
    a page without entries      the end

What is added or deleted meanwhile moves nothing: a page begins behind an entry, not behind a number of them.
Only where the entry that was named is itself gone is the page that gave it asked for again, for its last
entry of now. The first key is kept: when all is asked for again, the pages are the same ones (the store may
have them), and what came since is asked for from the subscription document down to where both meet.
"""

from __future__ import annotations

import html
import re
from abc import ABC, abstractmethod
from collections.abc import Collection as AbstractCollection
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final
from urllib.parse import parse_qsl, quote, urlsplit

from wholefeed.core.adapters.base import (
    MOST_PAGES,
    Answer,
    Ask,
    Asking,
    Collection,
    Job,
    Outcome,
    Page,
    Refused,
    Sight,
    has_parameter,
    one,
    page_url,
)
from wholefeed.core.model import EntryId, Family

# Publishers that give what stands behind an entry that is named (rules R27, R28 and R30)


class _Keyset(ABC):
    """A publisher that is asked for what stands behind an entry."""

    name: ClassVar[str]
    parameter: ClassVar[str]
    is_lasting: ClassVar[bool]
    """Whether a key serves when its entry is gone."""
    hides_lost: ClassVar[bool] = False
    """Whether it answers a key whose entry is gone as if it were forbidden."""
    further: ClassVar[Mapping[str, str | int]] = {}
    """Parameters that stand beside the key."""

    @abstractmethod
    def is_theirs(self, sight: Sight) -> bool:
        """Whether a subscription document is one of theirs, its last entry and its parameters apart."""

    @abstractmethod
    def key_of(self, entry_id: str) -> str | None:
        """Return the key of an entry, of what identifies it as written; None where it bears none."""

    def behind(self, key: str) -> Sequence[str]:
        """Return what is tried where the page behind a key has no entries, and that need not be the end."""
        return ()

    def fits(self, sight: Sight) -> bool:
        """Return whether it is one of theirs, and its last entry bears a key (R26)."""
        is_one = self.is_theirs(sight) and self.key_of(sight.marks.last_id) is not None
        return is_one and not has_parameter(self.parameter, sight.url, sight.asked_url)

    def collect(self, job: Job) -> Asking[Outcome]:
        """Ask for all pages, from the last entry down, until nothing new comes."""
        pages = _KeysetPages(job, self)
        key = self.key_of(job.page.marks.last_id)
        if key is None:
            return job.unproven("the last entry bears nothing to ask for more by")
        first_key = self.key_of(job.known.start_id) or key
        is_honoured = yield from pages.down(first_key)
        chain = frozenset(pages.on_pages)
        if key != first_key and pages.refused is None and chain.isdisjoint(job.page.identities):
            pages.place = _FRONT_PLACE
            is_honoured = (yield from pages.down(key, until=chain)) or is_honoured
        if not is_honoured:
            return job.unproven(pages.reason or "the publisher does not answer by entries")
        entries = len(job.page.identities)
        known = job.collected(
            way=self.parameter, pages=pages.count, page_entries=entries, collected=len(pages.met)
        )
        return Outcome(is_honoured=True, is_whole=pages.refused is None, known=known, reason=pages.reason)

    def look(self, job: Job) -> Asking[Outcome]:
        """Ask for what came since the last look, where the subscription document does not reach back to it.

        Nothing new stands below what is known, so that there is nothing to ask for else; the page behind the
        subscription document is asked for once a day nevertheless.
        """
        pages = _KeysetPages(job, self, is_again=True)
        pages.place = _FRONT_PLACE
        key = self.key_of(job.page.marks.last_id)
        is_joined = job.is_linked
        if key is not None and (not is_joined or job.is_daily):
            is_joined = (yield from pages.down(key, is_look=True)) or is_joined
        lack = "" if is_joined else "the publisher does not answer by entries any more"
        return job.looked(pages.reason or lack)


_FRONT_PLACE: Final = -1_000_000_000
"""Pages behind a later subscription document stand in front of those behind the first one."""


class _KeysetPages:
    """What is known of the pages while they are asked for."""

    def __init__(self, job: Job, keyset: _Keyset, *, is_again: bool = False) -> None:
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
        self, key: str | None, *, until: AbstractCollection[EntryId] = (), is_look: bool = False
    ) -> Asking[bool]:
        """Ask for page after page; return whether the first one showed that the key is honoured (R27).

        Args:
            key: Of the entry to begin behind.
            until: A page that has one of these is the last.
            is_look: So is one without news; after an interruption only where what was known is reached.
        """
        before: Ask | None = None
        is_back = self._job.is_linked or not self._job.is_interrupted
        while key is not None and self._asked < MOST_PAGES:
            ask = self._ask(key)._replace(is_trial=self._keyset.hides_lost and before is not None)
            answer = yield from self._answer(ask, key)
            is_hidden = ask.is_trial and isinstance(answer, Refused) and answer.is_forbidden
            if isinstance(answer, Refused) and not (answer.is_gone or is_hidden):
                self.refused = answer
                break
            is_empty = isinstance(answer, Page) and not answer.identities
            if is_empty and (before is None or self._keyset.is_lasting):
                return True
            if isinstance(answer, Page) and self._is_further(answer):
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

    def _ask(self, key: str) -> Ask:
        self._asked += 1
        parameters = {**self._keyset.further, self._keyset.parameter: quote(key, safe="")}
        url = page_url(self._job.url, **parameters)
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

    def _other_key(self, before: Ask, key: str) -> Asking[str | None]:
        """Ask once more for the page that ended with it; return the key of its last if that is another."""
        self._lost_keys += 1
        answer = yield from one(before._replace(is_again=True, is_trial=False))
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
        found = self._keyset.key_of(answer.marks.last_id)
        return found if found != key else None


_LOST_KEYS: Final = 5
"""So many entries in a row may be gone that were asked behind."""


# GitHub


class GitHub(_Keyset):
    """The releases and the tags of a repository at github.com; installations elsewhere may be of any age.

    Ten a page: `releases.atom?after=v1.2` gives the ten that stand behind the release or tag of that name.

    Facts: `after` with the name of the last entry's tag gives the ten behind it (`belokoz/klats`, a program
    that looks for its updates so, has found that the feed never holds more than ten, and that a release which
    was deleted stays in it as a tag); the pages for people know the parameter too (`…/releases?after=v2.8.0`,
    in many guides). An entry's id is `tag:github.com,2008:Repository/NUMBER/TAG`, and a tag may hold slashes.
    What is given behind a tag that is gone is not known: an empty page, the first one and 404 are all taken
    for that.
    """

    name: ClassVar[str] = "github"
    parameter: ClassVar[str] = "after"
    is_lasting: ClassVar[bool] = False

    def __init__(self, host: str = "github.com") -> None:
        self._host = host

    def is_theirs(self, sight: Sight) -> bool:
        """Return whether host and the feed's id say so."""
        if sight.family is not Family.ATOM or not sight.site_id.startswith(_GITHUB_SITE_ID):
            return False
        parts = urlsplit(sight.url)
        return parts.hostname == self._host and _GITHUB_PATH.fullmatch(parts.path) is not None

    def key_of(self, entry_id: str) -> str | None:
        """Return the tag that an entry's id names."""
        found = _GITHUB_ENTRY_ID.fullmatch(html.unescape(entry_id))
        return found.group(1) if found else None


_GITHUB_SITE_ID: Final = "tag:github.com,2008:"
_GITHUB_PATH: Final = re.compile(r"/[^/]+/[^/]+/(?:releases|tags)\.atom")
_GITHUB_ENTRY_ID: Final = re.compile(r"tag:github\.com,2008:Repository/\d+/(.+)")


# Discourse


class Discourse(_Keyset):
    """The posts of a forum, fifty a page.

    `posts.rss?before=1234` gives the fifty posts with the highest numbers below that.

    Facts, by its source (`app/controllers/posts_controller.rb`, `app/queries/latest_posts_query.rb`): posts
    are ordered by number, and `before` is a number; an item's guid is `HOST-post-NUMBER`, in older versions
    `post-NUMBER`; posts of users who are gone are left out of a page, so that a short one is not the last.
    Until pull request 27098 (May 2024) `before` meant a span of fifty numbers, which may all be of private
    messages: an empty page need not be the end. Each answer names its route in the field X-Discourse-Route.

    The feeds of a tag, a user (50 posts) and the top topics read no parameter for more (`list_controller.rb`,
    `tags_controller.rb`); topics are another class (`ascending.py`).
    """

    name: ClassVar[str] = "discourse"
    parameter: ClassVar[str] = "before"
    is_lasting: ClassVar[bool] = True

    def is_theirs(self, sight: Sight) -> bool:
        """Return whether the answer names the route."""
        return sight.marks.route == _DISCOURSE_ROUTE and sight.family is Family.RSS

    def key_of(self, entry_id: str) -> str | None:
        """Return the number of the post that a guid names."""
        found = _DISCOURSE_GUID.fullmatch(entry_id)
        return found.group(1) if found else None

    def behind(self, key: str) -> Sequence[str]:
        """Return the spans below: before May 2024 one may have been of private messages alone."""
        numbers = (int(key) - _SPAN * span for span in range(1, _SPANS + 1))
        return [str(number) for number in numbers if number > 1]


_DISCOURSE_ROUTE: Final = "posts/latest"
_DISCOURSE_GUID: Final = re.compile(r"(?:.+-)?post-([1-9]\d{0,18})")
_SPAN: Final = 50
"""Numbers of one page, before May 2024."""
_SPANS: Final = 3
"""So many without an entry in a row are taken for the end."""


# Reddit


class Reddit(_Keyset):
    """What a subreddit or a person submitted, in the order of its URL, a hundred a page: a thousand at most.

    `/r/some/new/.rss?limit=100&after=t3_157kyrd` gives the hundred behind the entry of that id.

    Facts, by its source of 2017 (reddit-archive/reddit: `templates/base.xml`, `templates/link.xml`, `VLimit`
    in `validator.py`, `precompute_limit` in `queries.py`, `valid_after` in `builder.py`) and by captures of
    2020 to 2023: an entry's id is its name on Reddit (`t3_` and digits of base 36), the feed's is path and
    query of its URL; 25 entries without `limit`, 100 at most; a listing holds a thousand, less what was
    removed since; behind an entry that was removed there is 403, behind one that fell out of the listing
    nothing. Users find the same limit today (mikf/gallery-dl, issues 6187 and 6223). Lists of comments and
    what a person did have entries of other kinds, and a search ends sooner: these are left alone.

    What fell out of the listing cannot be had, so a feed of nearly a thousand entries stays partial.
    """

    name: ClassVar[str] = "reddit"
    parameter: ClassVar[str] = "after"
    is_lasting: ClassVar[bool] = False
    hides_lost: ClassVar[bool] = True
    further: ClassVar[Mapping[str, str | int]] = {"limit": 100}

    def __init__(self, host: str = "reddit.com") -> None:
        self._host = host

    def is_theirs(self, sight: Sight) -> bool:
        """Return whether host and the feed's id say so, which is that of a list of submissions."""
        if sight.family is not Family.ATOM or _REDDIT_LISTING.fullmatch(sight.site_id) is None:
            return False
        host = urlsplit(sight.url).hostname or ""
        is_there = host == self._host or host.endswith(f".{self._host}")
        return is_there and not has_parameter("before", sight.url, sight.asked_url)

    def key_of(self, entry_id: str) -> str | None:
        """Return the name of a submission."""
        return entry_id if _REDDIT_ENTRY_ID.fullmatch(entry_id) else None

    def collect(self, job: Job) -> Asking[Outcome]:
        """Ask for all pages; where as many came as a listing holds, there may be more."""
        outcome = yield from super().collect(job)
        if not (outcome.is_honoured and outcome.is_whole and outcome.known.collected >= _REDDIT_FULL):
            return outcome
        return replace(outcome, is_whole=False, is_final=True, reason=_REDDIT_CUT)


_REDDIT_LISTING: Final = re.compile(
    r"(?:/r/[^/]+|/user/[^/]+/(?:submitted|m/[^/]+)|/domain/[^/]+)?"
    r"(?:/(?:best|hot|new|rising|top|controversial))?/?\.(?:rss|xml)(?:\?.*)?"
)
_REDDIT_ENTRY_ID: Final = re.compile(r"t3_[0-9a-z]{1,13}")
_REDDIT_FULL: Final = 900
"""As many entries of a full listing are left when a tenth of them was removed."""
_REDDIT_CUT: Final = "Reddit lists its newest 1,000 entries, and may have more"


# Mastodon


class Mastodon:
    """The statuses of an account, or of many under a hashtag: two hundred at most.

    `@somebody.rss?limit=200` gives the newest two hundred; without it there are twenty.

    Facts: pull request 13743 (2020) brought the parameter, issue 35001 (2025) says that it serves still. By
    its source (`app/controllers/accounts_controller.rb`) more than 200 counts as 200, and nothing goes
    further back. Whether the feeds of hashtags know it was not confirmed; they are asked too. A feed names
    its generator, `Mastodon v4.3.0`; forks have their version behind it (`+glitch`, `+hometown`).

    So there is one page, the largest. One of two hundred may have had more behind it, and nothing tells: the
    feed stays partial then, and what comes later is added to it. Where all was had once it grows beyond two
    hundred.
    """

    name: Final = "mastodon"

    def fits(self, sight: Sight) -> bool:
        """Return whether the generator says so, of a feed that does not ask for as much already."""
        is_one = sight.family is Family.RSS and _MASTODON_GENERATOR.match(sight.marks.generator) is not None
        return is_one and max(_limit_of(sight.url), _limit_of(sight.asked_url)) < _MASTODON_MOST

    def collect(self, job: Job) -> Asking[Outcome]:
        """Ask for the largest page."""
        answer = yield from one(_ask_statuses(job, _MASTODON_MOST))
        if isinstance(answer, Refused):
            return job.unproven(answer.slug)
        assert isinstance(answer, Page)
        if not (_goes_further(answer, job.page.identities) or (yield from _is_limit_counted(job))):
            return job.unproven("the publisher does not give as much as is asked for")
        return _with_statuses(job, answer, replace(job.known, pages=1, retry_at=None, reason=""))

    def look(self, job: Job) -> Asking[Outcome]:
        """Ask for it again where the subscription document does not reach back, and once a day."""
        if job.is_linked and not job.is_daily:
            is_cut = job.known.page_entries >= _MASTODON_MOST
            return _cut_or_whole(replace(job.known, top=job.top), is_cut=is_cut)
        answer = yield from one(_ask_statuses(job, _MASTODON_MOST, is_again=True))
        if isinstance(answer, Refused):
            return job.looked(answer.slug)
        assert isinstance(answer, Page)
        is_further = job.is_linked or _goes_further(answer, job.page.identities)
        if not (is_further or (yield from _is_limit_counted(job))):
            return job.looked("the publisher does not give as much as is asked for any more")
        return _with_statuses(job, answer, job.known)


_MASTODON_GENERATOR: Final = re.compile(r"Mastodon v\d")
_MASTODON_PARAMETER: Final = "limit"
_MASTODON_MOST: Final = 200
_MASTODON_CUT: Final = f"the publisher gives its newest {_MASTODON_MOST} entries, and may have more"


def _limit_of(url: str) -> int:
    limit = dict(parse_qsl(urlsplit(url).query)).get(_MASTODON_PARAMETER, "")
    return int(limit) if _LIMIT.fullmatch(limit) else 0


_LIMIT: Final = re.compile(r"[0-9]{1,9}")


def _ask_statuses(job: Job, limit: int, *, is_again: bool = False) -> Ask:
    return Ask(page_url(job.url, **{_MASTODON_PARAMETER: limit}), place=limit, is_again=is_again)


def _goes_further(page: Page, first: tuple[EntryId, ...]) -> bool:
    """Whether a page has more behind what the subscription document has; a new status stands in front."""
    places = [place for place, identity in enumerate(page.identities) if identity in first]
    return bool(places) and places[-1] < len(page.identities) - 1


def _is_limit_counted(job: Job) -> Asking[bool]:
    """R27: of an account with few statuses, the parameter has to show by giving fewer."""
    if len(job.page.identities) < 2:  # noqa: PLR2004 - one cannot become fewer
        return False
    answer = yield from one(_ask_statuses(job, 1))
    return isinstance(answer, Page) and len(answer.identities) == 1


def _with_statuses(job: Job, page: Page, known: Collection) -> Outcome:
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


def _cut_or_whole(known: Collection, *, is_cut: bool) -> Outcome:
    """Each page is all that the publisher gives: what an earlier one lacked is not asked after."""
    reason = _MASTODON_CUT if is_cut else ""
    known = replace(known, lack="")
    return Outcome(is_honoured=True, is_whole=not is_cut, is_final=is_cut, known=known, reason=reason)


def _is_cut(job: Job, page: Page) -> bool:
    """Whether there may be what nobody has seen: not where a page reaches what once was all there was."""
    was_all = job.known.is_ended and job.known.page_entries < _MASTODON_MOST
    is_joined = page.news < len(set(page.identities) - set(job.page.identities))
    return len(page.identities) >= _MASTODON_MOST and not (was_all and is_joined)
