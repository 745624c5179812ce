"""Publishers that have their history by pages which they do not link: the simulators of `tests.publishers`.

publisher = a_collected_publisher("wordpress", random.Random("1"), clock, "1")
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import urlsplit

from tests.answers import Request, Wire
from tests.origin import Origin
from tests.publishers.blogger import BLOG, Blogger
from tests.publishers.discourse import Discourse, Topics
from tests.publishers.feedburner import FeedBurner
from tests.publishers.front import Front
from tests.publishers.github import GitHub
from tests.publishers.lemmy import Lemmy
from tests.publishers.mastodon import Mastodon
from tests.publishers.numbered import GitLab, Joomla, Redmine, Squarespace
from tests.publishers.reddit import Reddit
from tests.publishers.wordpress import WordPress
from tests.simulated.clock import Clock
from tests.simulated.network import Question, Response, chance
from tests.simulated.publishers import FAULTS


@dataclass
class _Place:
    """An address for simulators; nobody listens there."""

    root: str
    others: dict[str, FeedBurner] = field(default_factory=dict)
    """Documents beside the publisher, by path."""

    @property
    def host(self) -> str:
        return urlsplit(self.root).hostname or ""

    def url(self, path: str) -> str:
        return self.root + path

    def answer_below(self, prefix: str, front: object) -> None:
        """Keep the answer: requests come directly."""

    def answer(self, path: str, other: FeedBurner) -> None:
        self.others[path] = other


class _Taken(Wire):
    """Receives the answer."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.body = b""
        self.keep_alive = True

    async def send(self, data: bytes) -> None:
        self.body += data

    async def send_head(self, status: int, headers: Any, *, reason: str | None = None) -> None:
        self.status, self.headers = status, [(name.lower(), value) for name, value in headers]

    def response(self) -> Response:
        named = {name: value for name, value in self.headers if name != "link"}
        links = tuple(value for name, value in self.headers if name == "link")
        return Response(self.status, self.body, named, links)


def _at_once(answering: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never waits."""
    try:
        answering.send(None)
    except StopIteration:
        return
    raise AssertionError("a simulator waits for something")


class _Copy(FeedBurner):
    """A FeedBurner copy without a network."""

    def __init__(self, origin: Origin, source: Front, url: str) -> None:
        super().__init__(origin, source, urlsplit(url).path)
        self._source, self._url = source, url

    async def poll(self) -> None:
        taken = _Taken()
        await self._source.send(_request(Question(self._url)), taken)
        name = b'xmlns:feedburner="http://rssnamespace.org/feedburner/ext/1.0"'
        info = b'<channel><feedburner:info %b uri="some"/>' % name
        self._body = taken.body.replace(b"<channel>", info, 1)


def _request(question: Question) -> Request:
    parts = urlsplit(question.url)
    return Request(
        method="HEAD" if question.is_head else "GET",
        target=f"{parts.path}?{parts.query}" if parts.query else parts.path,
        headers={name.lower(): value for name, value in question.fields.items()},
        head=b"",
        connection=1,
        at=0.0,
    )


def _wordpress(place: Origin, dice: random.Random) -> tuple[Front, str]:
    posts, size = dice.choice((2, 5, 9, 14, 25)), dice.choice((3, 5, 10))
    site = WordPress(place, posts, per_feed=size, pretty=dice.random() < 0.8)
    site.rest_status = dice.choice((None, None, 403, 404))
    site.paged_ignored = dice.random() < 0.1
    site.orderby_ignored = dice.random() < 0.15
    site.dated = dice.random() < 0.8
    return site, site.feed_url(dice.choice(("rss2", "rss2", "atom", "rdf")))


def _blogger(place: Origin, dice: random.Random) -> tuple[Front, str]:
    posts, most = dice.choice((8, 30, 60, 130)), dice.choice((10, 100))
    site = Blogger(place, posts, most, links_pages=dice.random() < 0.6)
    site.highest = dice.choice((None, None, 25))
    site.claims_more = dice.choice((0, 0, 7))
    return site, site.feed_url()


def _of(kind: Callable[..., Any], *posts: int) -> Callable[[Origin, random.Random], tuple[Front, str]]:
    def make(place: Origin, dice: random.Random) -> tuple[Front, str]:
        site = kind(place, dice.choice(posts))
        return site, site.feed_url()

    return make


def _burned(place: Origin, dice: random.Random) -> tuple[Front, str]:
    site = WordPress(place, dice.choice((5, 14)), per_feed=5)
    copy = _Copy(place, site, site.feed_url())
    return site, copy.url


SITES: Final[Mapping[str, tuple[str, Callable[[Origin, random.Random], tuple[Front, str]]]]] = {
    "wordpress": ("http://wordpress.test", _wordpress),
    "blogger": ("http://blogger.test", _blogger),
    "github": ("https://github.com", _of(GitHub, 3, 10, 24)),
    "discourse": ("http://forum.test", _of(Discourse, 20, 70)),
    "topics": ("http://forum.test", _of(Topics, 20, 70)),
    "lemmy": ("http://lemmy.test", _of(Lemmy, 15, 70)),
    "mastodon": ("http://mastodon.test", _of(Mastodon, 10, 30, 60)),
    "reddit": ("https://www.reddit.com", _of(Reddit, 20, 60, 140)),
    "gitlab": ("http://gitlab.test", _of(GitLab, 30, 60)),
    "joomla": ("http://joomla.test", _of(Joomla, 7, 23)),
    "squarespace": ("http://square.test", _of(Squarespace, 10, 50)),
    "redmine": ("http://redmine.test", _of(Redmine, 7, 23)),
    "feedburner": ("http://burned.test", _burned),
}


CHANGES: Final = (
    "add", "add", "add", "add many", "edit", "delete", "back-date", "edit many", "cache",
)  # fmt: skip


@dataclass
class CollectedPublisher:
    """A publisher with known software."""

    kind: str
    place: _Place
    front: Front
    feed_url: str
    clock: Clock
    seed: str
    fault_rate: float
    refuses_after: int
    """Number of answered requests of a refresh; further ones are refused. 0: none is."""
    fails_next: bool
    """Whether its linked pages are missing."""
    refresh: int = 0
    count: int = 0

    @property
    def habits(self) -> str:
        return f"refuses after {self.refuses_after}, next fails: {self.fails_next}, faults {self.fault_rate}"

    def begin(self, refresh: int) -> None:
        self.refresh, self.count = refresh, 0

    def change(self, dice: random.Random, only: str = "") -> str:
        """Perform a random or the named change; return its name."""
        blog: Any = getattr(self.front, "blog")  # noqa: B009 - each simulator has one
        blog.now = max(blog.now, int(self.clock.time()))
        kind = only or dice.choice(CHANGES)
        posts = blog.posts
        match kind:
            case "add":
                blog.add()
            case "add many":
                for _ in range(dice.choice((4, 12))):
                    blog.add()
            case "edit" if posts:
                blog.edit(dice.choice(posts))
            case "delete" if posts:
                blog.delete(*dice.sample(posts, min(len(posts), dice.choice((1, 1, 3)))))
            case "back-date":
                blog.back_date()
            case "edit many":
                blog.bulk_edit()
            case "cache":
                self.front.queries = dice.choice(("honoured", "honoured", "ignored", "redirected"))
        for copy in self.place.others.values():
            _at_once(copy.poll())
        return kind

    def answer(self, question: Question) -> Response:
        dice = (self.seed, question.url, self.refresh)
        self.count += 1
        if self.refuses_after and self.count > self.refuses_after and self.refresh % 2:
            return Response(int(429 - 26 * (chance("refusal", *dice) < 0.5)), headers={"retry-after": "900"})
        rate = self.fault_rate if question.url != self.feed_url else self.fault_rate / 4
        if chance("fails", *dice) < rate:
            return FAULTS[int(chance("fault", *dice) * len(FAULTS))]
        if self.fails_next and f"/feeds/{BLOG}/" in question.url:
            return Response(404)
        taken = _Taken()
        other = self.place.others.get(urlsplit(question.url).path)
        _at_once((other or self.front).send(_request(question), taken))
        return taken.response()

    def kept(self, _: random.Random) -> bytes:
        """Return a document that somebody saved."""
        return self.shown().get(self.feed_url, ("", b""))[1]

    def shown(self) -> dict[str, tuple[str, bytes]]:
        """Return the content for a web archive: media types and bodies by URL."""
        taken = _Taken()
        _at_once(self.front.send(_request(Question(self.feed_url)), taken))
        headers = dict(taken.headers)
        return {self.feed_url: (headers["content-type"], taken.body)} if taken.status == 200 else {}


def a_collected_publisher(kind: str, dice: random.Random, clock: Clock, seed: str) -> CollectedPublisher:
    """Return a publisher with a kind of software."""
    root, make = SITES[kind]
    place = _Place(root)
    front, url = make(cast("Origin", place), dice)
    return CollectedPublisher(
        kind,
        place,
        front,
        url,
        clock,
        seed,
        fault_rate=dice.choice((0.0, 0.0, 0.05, 0.15)),
        refuses_after=dice.choice((0,) * 5 + (2, 4)),
        fails_next=dice.random() < 0.3,
    )
