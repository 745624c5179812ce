"""A WordPress blog in memory answers the adapter's questions without HTTP.

site = Site(Blog(30), per_feed=10)
outcome = site.collect()                                  # drives the adapter to its end
site.before = lambda number: site.blog.add() if number == 5 else None
assert site.missing() == set()
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from email.utils import formatdate
from urllib.parse import urlsplit

from tests.publishers.blog import NOW, Blog, Post
from tests.publishers.wordpress_query import Query, parse_target
from wholefeed.core.adapters.base import (
    AdapterJob,
    AdapterOutcome,
    AdapterPage,
    Asking,
    Collection,
    Marks,
    PageQuestion,
    PageResponse,
    Refused,
    There,
)
from wholefeed.core.adapters.wordpress import WordPress
from wholefeed.core.model import EntryId, Family, entry_id
from wholefeed.core.refresh.collecting_pages import is_downward

ROOT = "https://blog.test"
MOST_QUESTIONS = 2000


class Site:
    """One feed of a blog.

    Args:
        blog: Its posts.
        per_feed: Posts of a page.
        path: Of the feed.
        rest: Whether its REST API answers.
    """

    def __init__(self, blog: Blog, *, per_feed: int = 10, path: str = "/feed/", rest: bool = True) -> None:
        self.blog = blog
        self.per_feed = per_feed
        self.path = path
        self.rest = rest
        self.ignored: frozenset[str] = frozenset()
        """Parameters without effect; `*`: all of them."""
        self.hidden: frozenset[int] = frozenset()
        """IDs of posts that every page leaves out."""
        self.has_validators = True
        self.etag_of: Callable[[str, str], str] = lambda _url, etag: etag
        """The ETag of a page, by the page's URL and the site's ETag."""
        self.leads: Callable[[str], str] = lambda url: url
        """The URL that a URL redirects to."""
        self.has_head = True
        self.is_head_always_there = False
        """Whether HEAD always succeeds."""
        self.rest_blog = blog
        """The posts that the REST API counts."""
        self.refuses: Callable[[PageQuestion], bool] = lambda _ask: False
        """Questions answered with 503."""
        self.refuses_gone: Callable[[PageQuestion], bool] = lambda _ask: False
        """Questions answered with 404."""
        self.before: Callable[[int], object] = lambda _number: None
        """Called before each answer with its number; the subscription document is number 1."""
        self.asked: list[PageQuestion] = []
        self.kept: set[EntryId] = set()
        """Entries of the pages that were asked for as pages of the feed."""
        self._held: dict[str, PageResponse] = {}
        self.stored: set[EntryId] = set()
        self.known = Collection(adapter="wordpress")
        self.now = float(NOW + 1000)

    # ---- Called by tests

    def collect(self) -> AdapterOutcome:
        return self._run(WordPress().collect)

    def look(self, *, is_daily: bool = True) -> AdapterOutcome:
        return self._run(WordPress().look, is_daily=is_daily)

    @property
    def questions(self) -> int:
        """Count of the questions, the subscription document included."""
        return 1 + len(self.asked)

    def live(self) -> set[EntryId]:
        """IDs on all pages of the feed now."""
        return {_identity(post) for post in self.select()}

    def missing(self) -> set[int]:
        """IDs of live posts that no page brought."""
        return {post.id for post in self.select() if _identity(post) not in self.stored}

    def select(self) -> list[Post]:
        posts = self._query(f"{ROOT}{self.path}").select(self.blog, 1_000_000)
        return [post for post in posts if post.id not in self.hidden]

    # ---- Answers

    def _run(
        self, begin: Callable[[AdapterJob], Asking[AdapterOutcome]], *, is_daily: bool = True
    ) -> AdapterOutcome:
        self.asked.clear()
        self._held.clear()
        self.before(1)
        url = f"{ROOT}{self.path}"
        page = self._page(url)
        assert isinstance(page, AdapterPage)
        job = AdapterJob(
            asked_url=url, url=url, page=page, now=self.now, has_news=page.news > 0, is_daily=is_daily,
            known=self.known,
        )  # fmt: skip
        asking = begin(job)
        try:
            asks = next(asking)
            while True:
                asks = asking.send([self._answer(ask) for ask in asks])
        except StopIteration as end:
            outcome: AdapterOutcome = end.value
            self.known = outcome.known
            return outcome

    def _answer(self, ask: PageQuestion) -> PageResponse:
        held = self._held.pop(ask.url, None)
        answer = self._new_answer(ask) if held is None or ask.is_again else held
        if ask.is_held:
            self._held[ask.url] = answer
        elif isinstance(answer, AdapterPage) and not ask.is_probe:
            self.kept.update(answer.identities)
        return answer

    def _new_answer(self, ask: PageQuestion) -> PageResponse:
        self.asked.append(ask)
        assert len(self.asked) < MOST_QUESTIONS, "it asks without an end"
        self.before(1 + len(self.asked))
        if "/wp-json/" in ask.url:
            total = len(self.rest_blog.posts)
            return There({"x-wp-total": str(total)}) if self.rest else Refused("http", 403)
        if self.refuses(ask) or self.refuses_gone(ask):
            return Refused("http", 503 if self.refuses(ask) else 404)
        if ask.is_head and not self.has_head:
            return Refused("http", 405)
        if ask.is_head and self.is_head_always_there:
            return There({})
        answer = self._page(ask.url)
        return There({}) if ask.is_head and isinstance(answer, AdapterPage) else answer

    def _query(self, url: str) -> Query:
        return parse_target(url.removeprefix(ROOT))

    def _page(self, url: str) -> PageResponse:
        parts, asked_url = urlsplit(url), url
        if "*" in self.ignored:
            url = f"{ROOT}{parts.path}"
        url = self.leads(url)
        query = self._query(url)
        for name in self.ignored:
            query.fields.pop(name, None)
        if query.kind != "feed":
            return Refused("gone", 404)
        posts = query.select(self.blog, self.per_feed)
        if query.paged > 1 and not posts:
            return Refused("gone", 404)
        posts = [post for post in posts if post.id not in self.hidden]
        identities = tuple(_identity(post) for post in posts)
        news = sum(identity not in self.stored for identity in identities)
        self.stored.update(identities)
        modified = formatdate(self.blog.modified, usegmt=True)
        etag = hashlib.md5(modified.encode(), usedforsecurity=False).hexdigest()
        return AdapterPage(
            url=asked_url,
            family=Family.RSS,
            identities=identities,
            updated_at=float(max((post.modified for post in posts), default=self.blog.modified)),
            validators=(self.etag_of(asked_url, etag), modified) if self.has_validators else ("", ""),
            is_ascending=is_downward([float(post.published) for post in posts]),
            dates=tuple(float(post.published) for post in posts),
            marks=Marks(generator="https://wordpress.org/?v=6.6", api_url=f"{ROOT}/wp-json/"),
            news=news,
        )


def _identity(post: Post) -> EntryId:
    return entry_id(f"{ROOT}/?p={post.id}")
