"""Publishers of all kinds, made up of a layout of documents, habits, and faults.

publisher = a_publisher("archived", random.Random("1"), clock)
publisher.answer(Question(publisher.feed_url))
publisher.change(random.Random("2"))
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tests.simulated.clock import BEGIN_AT, Clock
from tests.simulated.network import Question, Response, chance
from tests.simulated.posts import CHANGES, HOUR, MEDIA_TYPES, Blog, Document, Post, mail_date, stamp, written

SITE: Final = "http://blog.test"
HOME: Final = f"{SITE}/"
FEED: Final = f"{SITE}/feed"
Documents = Mapping[str, Document]
"""By URL."""


@dataclass
class Habits:
    """A publisher's layout of its posts; a change of mind changes some."""

    family: str = "atom"
    recent: int = 4
    """Posts of the subscription document."""
    size: int = 3
    """Posts of each other document."""
    names: str = "number"
    """Names of archives: `number`, `padded`, `dated`, `opaque`, `query`."""
    dialect: str = "prev-archive"
    is_marked: bool = True
    links_current: bool = True
    links_newer: bool = False
    overlaps: bool = False
    """Whether the newest archive holds posts of the subscription document, too."""
    skipped: int = 0
    """Archives skipped by the subscription document's link."""
    trimmed: int = 0
    """The oldest ones, without a link to them."""
    end: str = "none"
    """The oldest document's link: none, itself, the newest one, a missing next, a page equal to the last, no
    valid URL."""
    last: str = "none"
    """The `last` link of pages: none, the last, a missing one behind it."""
    relation: str = "next"
    """Relation of the link to an older page."""
    has_first: bool = False
    has_back: bool = False
    elsewhere: str = ""
    """Host of older documents."""
    validators: str = "etag"
    """`none`, `etag`, `date`, `both`, or `false`: they never change."""
    cache_control: str = ""
    archive_control: str = ""
    in_header: bool = False
    """Whether links stand in the HTTP header."""
    strangers: str = ""
    """Format of every fifth older document, if it differs."""
    site_id: str = "http://blog.test/"
    archive_id: str = ""
    """The feed's id in older documents, if it differs."""
    oddity: str = ""
    moved: str = ""
    """Redirect of the feed's own URL: `permanently`, `for now`, `again`."""
    leads: str = ""
    """Redirect of every sixth older document: `elsewhere`, `back`, `newest`."""
    buries: bool = False
    staleness: int = 0
    """Changes by which every third page is behind, as from a cache."""
    unstable: bool = False
    """Whether every look brings other ids."""
    pages: str = ""
    """Its lists in HTML: `dated`, `undated`, `paged`, or none."""
    asks: str = ""
    """The readers' URL: of the feed itself, or `an archive`."""


Layout = Callable[[Blog, Habits], Documents]


def plain(blog: Blog, habits: Habits) -> Documents:
    return {FEED: Document(tuple(blog.posts[: habits.recent]))}


def complete(blog: Blog, habits: Habits) -> Documents:
    return {FEED: Document(tuple(blog.posts), is_complete=True)}


def _chunks(posts: list[Post], size: int) -> list[tuple[Post, ...]]:
    """Return the posts in stable archives, the newest first; the newest one grows."""
    oldest_first = posts[::-1]
    parts = [oldest_first[start : start + size] for start in range(0, len(posts), size)]
    return [tuple(part[::-1]) for part in parts[::-1]]


def _archive_url(habits: Habits, number: int) -> str:
    """Return the URL of an archive, counted from 1."""
    host = f"http://{habits.elsewhere}" if habits.elsewhere else SITE
    match habits.names:
        case "padded":
            return f"{host}/archive/{number:04}.xml"
        case "dated":
            return f"{host}/{2010 + (number - 1) // 12}/{(number - 1) % 12 + 1:02}/feed"
        case "opaque":
            return f"{host}/a/{hashlib.sha256(str(number).encode()).hexdigest()[:8]}"
        case "query":
            return f"{FEED}?archive={number}"
    return f"{host}/archive/{number}"


def archived(blog: Blog, habits: Habits) -> Documents:
    """A chain of archives, numbered from the oldest."""
    recent = min(habits.recent, len(blog.posts))
    old = blog.posts if habits.overlaps else blog.posts[recent:]
    parts = _chunks(old, habits.size)
    if habits.overlaps:  # the posts of the newest archive are recent
        recent = max(recent, len(parts[0]) if parts else 0)
    return _chain(blog, habits, blog.posts[:recent], parts, lambda place: len(parts) - place)


def shifting(blog: Blog, habits: Habits) -> Documents:
    """A chain of archives, numbered from the newest."""
    old = blog.posts if habits.overlaps else blog.posts[habits.recent :]
    parts = [tuple(old[start : start + habits.size]) for start in range(0, len(old), habits.size)]
    return _chain(blog, habits, blog.posts[: habits.recent], parts, lambda place: place + 1)


def _chain(
    blog: Blog,
    habits: Habits,
    recent: list[Post],
    parts: list[tuple[Post, ...]],
    number_of: Callable[[int], int],
) -> Documents:
    parts = parts[: len(parts) - habits.trimmed] if habits.trimmed else parts
    urls = [_archive_url(habits, number_of(place)) for place in range(len(parts))]
    first = min(habits.skipped, len(urls))
    graves = tuple(blog.buried.items()) if habits.buries else ()
    found = {
        FEED: _linked(habits, Document(tuple(recent), buried=graves), urls[first] if urls[first:] else "")
    }
    for place, (url, part) in enumerate(zip(urls, parts, strict=True)):
        older = urls[place + 1] if place + 1 < len(urls) else _end_of_chain(habits, urls, number_of(place))
        document = Document(part, is_archive=habits.is_marked, site_id=habits.archive_id or habits.site_id)
        if habits.end == "endless" and place + 1 == len(urls):
            found |= {
                f"{url}/{more}": _linked(habits, document, f"{url}/{more + 1}") for more in range(1, 60)
            }
            older = f"{url}/1"
        links = {"current": FEED} if habits.links_current else {}
        if habits.links_newer:
            links["next-archive"] = urls[place - 1] if place else FEED
        found[url] = _linked(habits, replace(document, links=links), older)
    return found


def _end_of_chain(habits: Habits, urls: list[str], number: int) -> str:
    match habits.end:
        case "itself":
            return urls[-1]
        case "circle":
            return urls[0]
        case "missing":
            return _archive_url(habits, number - 1 if number > 1 else 999)
        case "dead":
            return "mailto:ann@blog.test"
        case "feed":
            return FEED
    return ""


def _linked(habits: Habits, document: Document, older: str) -> Document:
    """Return a chain's document, linked to the older one in the dialect."""
    links = dict(document.links)
    flags: tuple[str, ...] = ()
    match habits.dialect:
        case "fh:prev":
            return replace(document, fh_prev=older, links=links)
        case "prev stateful":
            links, flags = links | {"prev": older}, ("stateful", "incremental")
        case "prev this":
            links |= {"prev": older, "this": FEED}
        case "previous current":
            links |= {"previous": older, "current": FEED}
        case relation:
            links[relation] = older
    return replace(document, links={name: to for name, to in links.items() if to}, flags=flags)


def _page_url(habits: Habits, number: int) -> str:
    if habits.names in ("query", "number"):
        return FEED if number == 1 else f"{FEED}?page={number}"
    return FEED if number == 1 else f"{SITE}/page/{number}"


def paged(blog: Blog, habits: Habits) -> Documents:
    """Pages from the newest to the oldest."""
    parts = [
        tuple(blog.posts[start : start + habits.size]) for start in range(0, len(blog.posts), habits.size)
    ]
    return _pages(habits, parts or [()])


def ascending(blog: Blog, habits: Habits) -> Documents:
    """Pages from the oldest to the newest: the subscription document is the oldest."""
    posts = blog.posts[::-1]
    parts = [tuple(posts[start : start + habits.size]) for start in range(0, len(posts), habits.size)]
    return _pages(habits, parts or [()])


def middle(blog: Blog, habits: Habits) -> Documents:
    """A bare `prev` leads to newer posts (R4)."""
    return ascending(blog, replace(habits, has_first=False, last="none", end="none", relation="prev"))


def _pages(habits: Habits, parts: list[tuple[Post, ...]]) -> Documents:
    found: dict[str, Document] = {}
    count = len(parts)
    for number, part in enumerate(parts, 1):
        older = _page_url(habits, number + 1) if number < count else _end_of_pages(habits, count)
        links = {habits.relation: older} if older else {}
        if habits.has_back and number > 1:
            links["previous" if habits.relation == "next" else "next"] = _page_url(habits, number - 1)
        if habits.has_first:
            links["first"] = FEED
        if habits.last != "none":
            links["last"] = _page_url(habits, count + (3 if habits.last == "beyond" else 0))
        found[_page_url(habits, number)] = Document(part, links)
    if habits.end in ("repeated", "endless"):
        for number in range(count + 1, count + 30):
            links = {habits.relation: _page_url(habits, number + 1)}
            found[_page_url(habits, number)] = Document(parts[-1], links)
    return found


def _end_of_pages(habits: Habits, count: int) -> str:
    match habits.end:
        case "itself":
            return _page_url(habits, count)
        case "circle":
            return _page_url(habits, 1)
        case "missing" | "repeated" | "endless":
            return _page_url(habits, count + 1)
        case "dead":
            return "urn:nowhere"
    return ""


LAYOUTS: Final[Mapping[str, Layout]] = {
    "plain": plain, "complete": complete, "archived": archived, "shifting": shifting, "paged": paged,
    "ascending": ascending, "middle": middle,
}  # fmt: skip

ODDITIES: Final[Mapping[str, str]] = {
    "bad link": '<{a}link rel="next" href="ftp:///"/>',
    "bad self": '<{a}link rel="self" href="ftp:///"/>',
    "extra link": '<{a}link rel="{rel}" href="/first"/><{a}link rel="{rel}" href="/second"/>',
    "no ASCII": "<itunes:subtitle>Übrigens</itunes:subtitle>",
    "new address": "<itunes:new-feed-url>http://new.test/feed</itunes:new-feed-url>",
    "long head": "<itunes:summary>" + "long " * 60_000 + "</itunes:summary>",
    "unclosed": "<itunes:subtitle>a & b</itunes:subtitle>",
}


@dataclass
class Publisher:
    layout: str
    habits: Habits
    blog: Blog
    clock: Clock
    seed: str
    fault_rate: float = 0.0
    """Share of URLs that fail at one refresh."""
    gone: dict[str, int] = field(default_factory=dict)
    """Statuses of URLs that fail for good."""
    refresh: int = 0
    _made: tuple[object, Documents] | None = None
    _past: list[Documents] = field(default_factory=list)
    """The documents at each refresh."""

    @property
    def feed_url(self) -> str:
        """The readers' URL."""
        archives = [url for url in self.documents() if url != FEED]
        return archives[0] if self.habits.asks and archives else FEED

    def begin(self, refresh: int) -> None:
        """Begin another refresh."""
        self.refresh = refresh
        self._past.append(self.documents())

    @property
    def hour(self) -> int:
        return int((self.clock.time() - BEGIN_AT) // HOUR)

    # What happens

    def change(self, dice: random.Random, only: str = "") -> str:
        """Perform a random or the named change; return its name."""
        if only:
            self.blog.change(dice, only, self.hour)
            return only
        if dice.random() < 0.12:
            return self._change_mind(dice)
        if dice.random() < 0.1:
            return self._lose(dice)
        kinds, weights = [kind for kind, _ in CHANGES], [weight for _, weight in CHANGES]
        (kind,) = dice.choices(kinds, weights)
        self.blog.change(dice, kind, self.hour)
        return kind

    def _change_mind(self, dice: random.Random) -> str:
        habits = self.habits
        choices: dict[str, Callable[[], object]] = {
            "layout": lambda: setattr(self, "layout", dice.choice(list(LAYOUTS))),
            "family": lambda: setattr(habits, "family", dice.choice(("atom", "rss", "rdf"))),
            "size": lambda: setattr(habits, "size", dice.choice((2, 3, 5))),
            "recent": lambda: setattr(habits, "recent", dice.choice((2, 4, 8, 30))),
            "trim": lambda: setattr(habits, "trimmed", dice.randrange(3)),
            "skip": lambda: setattr(habits, "skipped", dice.randrange(3)),
            "names": lambda: setattr(habits, "names", dice.choice(NAMES)),
            "end": lambda: setattr(habits, "end", dice.choice(ENDS)),
            "moved": lambda: setattr(habits, "moved", dice.choice(("", "permanently", "for now", "again"))),
            "leads": lambda: setattr(habits, "leads", dice.choice(("", "elsewhere", "back", "newest"))),
            "validators": lambda: setattr(habits, "validators", dice.choice(VALIDATORS)),
            "oddity": lambda: setattr(habits, "oddity", dice.choice(("", *ODDITIES))),
            "site id": lambda: setattr(
                habits, "site_id", dice.choice(("http://blog.test/", "http://other.test/"))
            ),
        }
        name: str = dice.choice((*choices, "family", "family", "layout"))
        choices[name]()
        self.blog.version += 1
        return f"another {name}"

    def _lose(self, dice: random.Random) -> str:
        """Lose a document for good, or find all again."""
        if self.gone and dice.random() < 0.4:
            self.gone.clear()
            return "all found"
        urls = sorted(self.documents())
        url = dice.choice(urls)
        self.gone[url] = dice.choice((404, 404, 410, 403, 500))
        return f"lost {url}"

    # What it answers

    def documents(self) -> Documents:
        key = (self.layout, repr(self.habits), self.blog.version)
        if self._made is None or self._made[0] != key:
            self._made = key, LAYOUTS[self.layout](self.blog, self.habits)
        return self._made[1]

    def answer(self, question: Question) -> Response:
        url = question.url
        if self.habits.asks and self.refresh < 2 and url == FEED and chance("early", self.seed) < 0.4:
            return Response(503)
        if url in self.gone:
            return Response(self.gone[url])
        if failure := self._failure(url):
            return failure
        documents = self.documents()
        if response := self._redirect(url, documents):
            return response
        url = url.removesuffix("?moved").removesuffix("?here")
        document = documents.get(url)
        if self.habits.staleness and url != FEED and int(chance("stale", url) * 3) == 0:
            document = self._past[max(0, self.refresh - 1 - self.habits.staleness)].get(url, document)
        if document is None:
            return self._page(url)
        return self._damaged(url, self._response(url, document, question))

    def _page(self, url: str) -> Response:
        """Return a page for people."""
        kind = self.habits.pages
        path = url.removeprefix(SITE)
        if not kind or path not in ("/", "/archive/", "/archive/2/"):
            return Response(404)
        menu = '<nav><a href="/">Home</a> <a href="/archive/">Archive</a></nav>'
        if path == "/":
            return _html(f"{menu}<p>Welcome.</p>")
        posts = self.blog.posts
        half = len(posts) // 2 if kind == "paged" else 0
        shown = posts if not half else posts[:half] if path == "/archive/" else posts[half:]
        rows = "".join(
            "<li>"
            + (f'<time datetime="{stamp(post.published)[:10]}">a day</time> ' if kind != "undated" else "")
            + f'<a href="{post.link}">{post.name}</a></li>'
            for post in shown
        )
        more = '<p><a rel="next" href="/archive/2/">Older posts</a></p>'
        older = more if half and path == "/archive/" else ""
        return _html(f'{menu}<main><h1>Archive</h1><ul class="posts">{rows}</ul>{older}</main>')

    def kept(self, dice: random.Random) -> bytes:
        """Return a document that somebody saved: present posts, and some departed ones."""
        gone = Blog(site=SITE, made=1000 + dice.randrange(6))
        gone.fill(dice.choice((1, 3)))
        posts = (*self.blog.posts[: dice.choice((0, 2, 5))], *gone.posts)
        family = dice.choice((self.habits.family,) * 5 + ("rss",))
        return written(Document(posts, site_id=self.habits.site_id), family)

    def shown(self) -> dict[str, tuple[str, bytes]]:
        """Return the content for a web archive: media types and bodies by URL."""
        found = {}
        for url, document in self.documents().items():
            response = self._response(url, document, Question(url))
            found[url] = response.headers["content-type"], response.body
        return found

    def _failure(self, url: str) -> Response | None:
        dice = (self.seed, url, self.refresh)
        if chance("fails", *dice) >= self.fault_rate * (0.4 if url == FEED else 1.0):
            return None
        return FAULTS[int(chance("fault", *dice) * len(FAULTS))]

    def _redirect(self, url: str, documents: Documents) -> Response | None:
        habits = self.habits
        if url == FEED and habits.moved:
            status = 302 if habits.moved == "for now" else 301
            return Response(
                status, headers={"location": f"{FEED}?{'here' if habits.moved == 'again' else 'moved'}"}
            )
        if url in documents and url != FEED and habits.leads and int(chance(url) * 6) == 0:
            others = [each for each in documents if each not in (FEED, url)] or [FEED]
            target = {"elsewhere": f"{url}?moved", "back": FEED, "newest": others[0]}[habits.leads]
            if target in documents or target.endswith("?moved"):
                return Response(302, headers={"location": target})
        return None

    def _response(self, url: str, document: Document, question: Question) -> Response:
        """Return a document's response without faults."""
        habits, is_own = self.habits, url == FEED
        family = habits.family
        if habits.strangers and not is_own and int(chance("stranger", url) * 5) == 0:
            family = habits.strangers
        links: tuple[str, ...] = ()
        document = self._dressed(document, family, is_own=is_own)
        if habits.in_header:
            named = {name: to for name, to in document.links.items() if isinstance(to, str)}
            links = tuple(f'<{to}>; rel="{name}"' for name, to in named.items())
            document = replace(document, links={})
        body = written(document, family)
        if is_own and habits.oddity == "no ASCII":
            body = body.replace(b'encoding="utf-8"', b'encoding="us-ascii"')
        headers = self._headers(document, body, family, is_own=is_own)
        if _is_current(question.fields, headers):
            return Response(304, headers=headers, links=links)
        return Response(200, body, headers, links)

    def _dressed(self, document: Document, family: str, *, is_own: bool) -> Document:
        """Return a document with the habits' additions."""
        habits = self.habits
        if document.site_id == HOME:
            document = replace(document, site_id=habits.site_id)
        if is_own and habits.oddity:
            extra = ODDITIES[habits.oddity].replace("{a}", "" if family == "atom" else "atom:")
            extra = extra.replace("{rel}", next(iter(document.links), "self"))
            document = replace(document, extra=extra)
        if habits.unstable:
            posts = (replace(post, id=post.id and f"{post.id}-{self.refresh}") for post in document.posts)
            document = replace(document, posts=tuple(posts))
        return document

    def _headers(self, document: Document, body: bytes, family: str, *, is_own: bool) -> dict[str, str]:
        habits = self.habits
        headers = {"content-type": MEDIA_TYPES[family], "content-length": str(len(body))}
        control = habits.cache_control if is_own else habits.archive_control
        if control:
            headers["cache-control"] = control
        tag = "always" if habits.validators == "false" else hashlib.sha256(body).hexdigest()[:12]
        if habits.validators in ("etag", "both", "false"):
            headers["etag"] = f'"{tag}"'
        if habits.validators in ("date", "both"):
            headers["last-modified"] = mail_date(document.date)
        return headers

    def _damaged(self, url: str, response: Response) -> Response:
        """Return a faulty response: cut off, or invalid HTTP."""
        dice = (self.seed, url, self.refresh)
        body, headers = response.body, dict(response.headers)
        if chance("cut", *dice) < self.fault_rate / 4:
            body = body[: int(len(body) * (0.5 + chance("where", *dice) / 2))]
            if chance("length", *dice) < 0.5:
                del headers["content-length"]
        repairs = ("content-length",) if chance("repair", *dice) < self.fault_rate / 8 else ()
        return replace(response, body=body, headers=headers, repairs=repairs)


def _html(body: str) -> Response:
    text = f"<!doctype html><html><head><title>A blog</title></head><body>{body}</body></html>"
    return Response(200, text.encode(), {"content-type": "text/html; charset=utf-8"})


def _is_current(fields: Mapping[str, str], headers: Mapping[str, str]) -> bool:
    if "If-None-Match" in fields:
        return fields["If-None-Match"] == headers.get("etag")
    return "If-Modified-Since" in fields and fields["If-Modified-Since"] == headers.get("last-modified")


NAMES: Final = ("number", "padded", "dated", "opaque", "query")
ENDS: Final = ("none", "none", "none", "itself", "circle", "missing", "repeated", "endless", "dead", "feed")
VALIDATORS: Final = ("none", "etag", "etag", "date", "both", "false")
DIALECTS: Final = (
    "prev-archive", "prev-archive", "prev-archive", "fh:prev", "prev stateful", "prev this",
    "previous current", "prev", "previous",
)  # fmt: skip
FAULTS: Final = (
    Response(404),
    Response(410),
    Response(403),
    Response(500),
    Response(503),
    Response(503, headers={"retry-after": "130"}),
    Response(429, headers={"retry-after": "400"}),
    Response(fails="timeout"),
    Response(fails="connection-failed"),
    Response(fails="dns-error"),
    Response(200, b""),
    Response(
        200, b"<!DOCTYPE html><html><head><title>Blog</title></head></html>", {"content-type": "text/html"}
    ),
    Response(200, b"no feed at all", {"content-type": "text/plain"}),
)


def a_publisher(kind: str, dice: random.Random, clock: Clock, seed: str) -> Publisher:
    """Return a publisher of a kind, otherwise random."""
    layout = dice.choice(list(LAYOUTS)) if kind == "any" else kind
    families = ("atom", "atom", "atom", "rss", "rss", "rdf") + (
        ("json",) if layout in ("plain", "paged") else ()
    )
    habits = Habits(
        family=dice.choice(families),
        recent=dice.choice((1, 3, 4, 4, 8)),
        size=dice.choice((2, 3, 3, 5)),
        names=dice.choice(NAMES),
        dialect=dice.choice(DIALECTS) if layout == "archived" else "prev-archive",
        is_marked=dice.random() < 0.7,
        links_current=dice.random() < 0.7,
        links_newer=dice.random() < 0.3,
        overlaps=dice.random() < 0.25,
        end=dice.choice(ENDS),
        last=dice.choice(("none", "none", "last", "last", "beyond")),
        relation="next" if dice.random() < 0.9 else dice.choice(("prev", "previous")),
        has_first=dice.random() < 0.4,
        has_back=dice.random() < 0.4,
        elsewhere=dice.choice(("",) * 5 + ("old.test", "old.test", "archive.blog.test")),
        validators=dice.choice(VALIDATORS),
        cache_control=dice.choice(("", "", "no-cache", "max-age=600", "max-age=86400", "no-store")),
        archive_control=dice.choice(("", "", "", "no-cache", "max-age=86400")),
        in_header=dice.random() < 0.08,
        strangers=dice.choice(("",) * 8 + ("rss", "atom")),
        archive_id=dice.choice(("",) * 4 + ("http://other.test/",)),
        oddity=dice.choice(("",) * 12 + tuple(ODDITIES)),
        moved=dice.choice(("",) * 8 + ("permanently", "for now")),
        leads=dice.choice(("",) * 4 + ("elsewhere", "back", "newest")),
        buries=dice.random() < 0.3,
        staleness=dice.choice((0,) * 6 + (1, 2)),
        unstable=dice.random() < 0.05,
        pages=dice.choice(("", "", "dated", "undated", "paged")),
        asks=dice.choice(("",) * 9 + ("an archive",)),
    )
    filler = dice.choice(("",) * 24 + (" long" * 3000,))
    blog = Blog(has_ids=dice.random() < 0.85, is_dated=dice.random() < 0.85, filler=filler)
    blog.fill(dice.choice((0, 1, 4, 9, 14, 20, 20, 33)))
    rate = dice.choice((0.0, 0.0, 0.05, 0.15, 0.35))
    return Publisher(layout, habits, blog, clock, seed, rate)
