"""FeedBurner's copies of feeds, with the history at their source (rules R24, R26 to R31).

FeedBurner keeps the source's generator, channel link and guids (Eric Lunt, "How FeedBurner Rewrites Links",
burningdoor.com, 2005), and reads no parameters. So the adapter asks for the generator's usual feed below that
link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import urljoin, urlsplit

from wholefeed.core.adapters.base import (
    Adapter,
    AdapterJob,
    AdapterOutcome,
    AdapterPage,
    Asking,
    PageQuestion,
    Refused,
    Sight,
    kept,
    one,
)
from wholefeed.core.adapters.numbered import Blogger
from wholefeed.core.adapters.wordpress import WordPress
from wholefeed.core.model import EntryId, Family
from wholefeed.core.text.dates import parse_rfc822


class FeedBurner:
    """The adapter for copies of one kind of publisher's feeds.

    `paths` are the paths of such a publisher's feed, below the channel's link.
    """

    def __init__(self, source: Adapter, paths: Sequence[str]) -> None:
        self.name = f"feedburner-{source.name}"
        self._source = source
        self._paths = paths

    def fits(self, sight: Sight) -> bool:
        if sight.family is not Family.RSS or urlsplit(sight.site_id).scheme not in _SCHEMES:
            return False
        if not (sight.marks.is_burned or urlsplit(sight.url).hostname in _HOSTS):
            return False
        url = self._urls(sight.site_id)[0]
        return self._source.fits(sight._replace(asked_url=url, url=url))

    def collect(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        return (yield from self._at_source(job, self._source.collect, job.report_unproven))

    def look(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        return (yield from self._at_source(job, self._source.look, job.report_look, is_again=True))

    def _at_source(
        self,
        job: AdapterJob,
        ask: Callable[[AdapterJob], Asking[AdapterOutcome]],
        fail: Callable[[str], AdapterOutcome],
        *,
        is_again: bool = False,
    ) -> Asking[AdapterOutcome]:
        # A document may name any site as its source. That site gets one or two requests as often as R27 tries
        # again, the same as for a link to an archive there (R24). No entry joins without confirmation. A blog
        # that redirects its feed to its own copy cannot be collected: the source is the copy then.
        url, *further = self._urls(job.site_id)
        source = PageQuestion(url, place=_PLACE, is_again=is_again, is_held=True)
        answer = yield from one(source)
        while further and isinstance(answer, Refused) and answer.is_gone:
            url = further.pop(0)
            source = source._replace(url=url)
            answer = yield from one(source)
        if isinstance(answer, Refused):
            return fail(f"the original feed cannot be fetched at {url}: {answer.slug}")
        assert isinstance(answer, AdapterPage)
        sight = Sight(url, answer.url, answer.family, job.site_id, answer.marks)
        if not (_is_copy_of(job.page, answer) and self._source.fits(sight)):
            return fail(f"the document at {url} is not the original feed")
        yield from kept(source)
        date = parse_rfc822(answer.validators[1]) or answer.updated_at
        dates = [each for each in (job.known.began_date, date) if each is not None]
        known = replace(job.known, began_date=min(dates, default=None))  # the copy is made later
        has_news = job.has_news or answer.news > 0
        inner = replace(job, asked_url=url, url=answer.url, page=answer, known=known, has_news=has_news)
        return (yield from ask(inner))

    def _urls(self, link: str) -> list[str]:
        home = urlsplit(link)
        root = home._replace(path=f"{home.path.rstrip('/')}/", query="", fragment="").geturl()
        return [urljoin(root, path) for path in self._paths]


_HOSTS: Final = frozenset({"feeds.feedburner.com", "feeds2.feedburner.com", "feedproxy.google.com"})
_SCHEMES: Final = frozenset({"http", "https"})
# Rank of the source's newest entries: before its pages.
_PLACE: Final = -2_000_000_000


def _is_copy_of(copy: AdapterPage, source: AdapterPage) -> bool:
    """Return whether the copy has all entries of the source where they overlap, and both share enough.

    A copy may have further entries. A copy that lacks one is of a category or a selection. Enough is half of
    the shorter feed, and of the copy where they overlap.
    """
    shared = set(copy.identities) & set(source.identities)
    needed = max(min(len(copy.identities), len(source.identities)), len(_overlap(copy, shared)))
    return bool(shared) and shared >= set(_overlap(source, shared)) and 2 * len(shared) >= needed


def _overlap(page: AdapterPage, shared: set[EntryId]) -> Sequence[EntryId]:
    places = [place for place, identity in enumerate(page.identities) if identity in shared]
    return page.identities[places[0] : places[-1] + 1] if places else ()


COPIES: Final = (
    FeedBurner(WordPress(), ("feed/", "?feed=rss2")),
    FeedBurner(Blogger(), ("feeds/posts/default?alt=rss&redirect=false",)),
)
