"""Stories of a blog whose feed links no history: a WordPress that is written, cached, guarded and pruned.

    story = a_blog_story(7)
    differences = await story.play()    # nothing: the proxy does what the rules say

The publisher's actions (`Truth`) determine the required answers, however pages are asked for:

* nothing is served that the publisher has not sent, and nothing twice;
* entries served once, or seen in the feed itself, are served for good (R7, R29);
* `collected` means that what was live before all pages were asked for last is there, and what is new since
  then as soon as the rules promise it (R28, R30, R31); edits too;
* a feed is `collected`, `partial` or `remembered`, says why in its notes, and names failed pages as missing;
* the publisher is spared: few requests, two at once at most, none in a pause (R28, R32);
* when all is well again, a week of visits heals everything (R27, R31).
"""

from __future__ import annotations

import random
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal
from unittest.mock import patch
from zlib import crc32

from tests.answers import Answer, Document, Request, Status
from tests.feeds import own_ids, texts
from tests.model.said import DAY, HOUR
from tests.model.short import Step, Story, WallClock
from tests.origin import Origin
from tests.publishers.blog import Post
from tests.publishers.wordpress import WordPress
from tests.running import Proxy, Reply, a_config, running

WAITS: Final = (130, 1010, 4030, 4030, 90_070, 90_070, 8 * DAY)
"""Seconds between two visits: less than a feed is fresh, more, over an hour, a day, a week."""
BY_ID: Final = "orderby=ID"
"""Name in `/status` of the order that never loses posts."""
READS: Final = ("asks", "refreshes", "refreshes fully", "restarts", "forgets")
LATE: Final = 8
"""A change this near the end of a visit's requests may wait for the next visit."""


@dataclass(frozen=True)
class Site:
    """A site's constants."""

    form: str = "rss2"
    under: str = ""
    posts: int = 30
    per_feed: int = 5
    is_pretty: bool = True
    is_wordpress_com: bool = False
    rest_status: int | None = None
    hidden: int = 0
    """Posts counted by its REST interface and hidden in its feeds."""
    validators: Literal["of the site", "of each page", "of each answer", "none"] = "of the site"
    """Caches in front invent validators."""
    flaw: str = ""
    """Its treatment of parameters from the beginning: one of `FLAWS`."""

    @property
    def is_main(self) -> bool:
        return not self.under


FLAWS: Final = (
    "paged ignored", "order ignored", "order forbidden", "queries ignored", "queries redirected", "copies",
)  # fmt: skip
"""Sites' treatments of parameters, also by caches and firewalls in front."""


@dataclass(frozen=True, kw_only=True)
class BlogStory(Story):
    """A story of a blog."""

    site: Site

    async def play(self, url: str = "") -> list[str]:
        with tempfile.TemporaryDirectory(prefix="wholefeed-model-") as folder:
            async with Origin() as origin:
                clock = WallClock()
                with patch.object(time, "time", clock):
                    return await _Player(self, origin, clock, Path(folder), url).run()

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.site}"


# ---- Making one up

_EVENTS: Final[dict[str, int]] = {
    "adds": 14, "back_dates": 3, "edits": 5, "edits_many": 2, "deletes": 6, "schedules": 4, "goes_live": 5,
    "resizes": 2, "breaks": 4, "mends": 4, "refuses": 2, "fails": 3,
}  # fmt: skip
"""Events between two visits, and in the middle of one, with their frequency."""
_SLIPPING: Final = ("deletes", "resizes", "breaks", "mends")
"""Events that move entries past a reader of pages from the front (docs/rules.md, blind spots)."""
_REFUSALS: Final = (403, 429, 503)


def a_blog_story(seed: int) -> BlogStory:
    """Make up a story, the same for the same number."""
    chance = random.Random(f"blog {seed}")
    is_pretty = chance.random() < 0.7
    site = Site(
        form=chance.choice(["rss2", "rss2", "rss2", "atom", "rdf"]),
        under=chance.choice(["", "", "", "category/news", "author/guest"] if is_pretty else [""]),
        posts=chance.choice([1, 4, 9, 10, 11, 20, 23, 37, 48, 60]),
        per_feed=chance.choice([1, 3, 5, 10, 10]),
        is_pretty=is_pretty,
        is_wordpress_com=chance.random() < 0.15,
        rest_status=chance.choice([None, None, None, 401, 403, 404]),
        hidden=chance.choice([0, 0, 0, 0, 3, 100]),
        validators=chance.choice(["of the site"] * 5 + ["of each page", "of each answer", "none"]),  # type: ignore[arg-type]
        flaw=chance.choice([""] * 9 + list(FLAWS)),
    )
    return BlogStory(seed=seed, site=site, steps=tuple(_steps(chance)))


def _steps(chance: random.Random) -> list[Step]:
    steps: list[Step] = [_an_event(chance) for _ in range(chance.choice([0, 0, 1, 3]))]
    is_first = True
    for _ in range(chance.randint(2, 6)):
        if not is_first:
            steps += [_an_event(chance) for _ in range(chance.choice([0, 1, 2, 4, 12]))]
        for _ in range(chance.choice([0, 0, 1, 2, 5])):
            steps.append(("meanwhile", chance.randint(1, 25), *_an_event(chance)))
        reads = "asks" if is_first else chance.choices(READS, [12, 4, 2, 2, 1])[0]
        steps.append((reads, 0 if is_first else chance.choice(WAITS)))
        is_first = False
    return steps


def _an_event(chance: random.Random) -> Step:
    name = chance.choices(list(_EVENTS), list(_EVENTS.values()))[0]
    return (name, *{
        "adds": (chance.choice([1, 1, 1, 2, 7, 12]),),
        "resizes": (chance.choice([1, 3, 5, 7, 10]),),
        "breaks": (chance.choice(FLAWS),),
        "mends": (),
        "refuses": (chance.choice(_REFUSALS),),
        "fails": (chance.randint(1, 12), chance.choice([404, 500, 503])),
    }.get(name, (chance.randint(0, 99),)))  # fmt: skip


# ---- The site


_FORBIDDEN: Final = Status(403)
"""A firewall's status for a question with an order; other refusals have other statuses."""


class _Blog(WordPress):
    """A site with a record of its answers."""

    def __init__(self, origin: Origin, site: Site) -> None:
        super().__init__(
            origin, site.posts, per_feed=site.per_feed, pretty=site.is_pretty,
            wordpress_com=site.is_wordpress_com,
        )  # fmt: skip
        self.site = site
        self.rest_status = site.rest_status
        self.order_is_forbidden = False
        self.failing: dict[int, int] = {}
        """Status by the number of a page."""
        self.said: list[tuple[Request, Answer]] = []
        self.break_(site.flaw)

    def break_(self, flaw: str) -> None:
        """Treat parameters this way from now on, and no other."""
        flaw = flaw if self.site.is_pretty or "queries" not in flaw else ""  # its feed is a query
        self.paged_ignored = flaw == "paged ignored"
        self.orderby_ignored = flaw == "order ignored"
        self.order_is_forbidden = flaw == "order forbidden"
        self.queries = {"queries ignored": "ignored", "queries redirected": "redirected"}.get(
            flaw, "honoured"
        )  # type: ignore[assignment]
        self.copies = 3 if flaw == "copies" else 0
        self._kept.clear()

    @property
    def is_sound(self) -> bool:
        is_open = not (self.order_is_forbidden or self.failing) and self.refusal is None
        is_honoured = not (self.paged_ignored or self.orderby_ignored or self.copies)
        return is_open and is_honoured and self.queries == "honoured"

    async def _answer(self, request: Request) -> Answer:
        answer = await super()._answer(request)
        if self.refusal is None:
            answer = self._changed(request, answer)
        self.said.append((request, answer))
        return answer

    def _changed(self, request: Request, answer: Answer) -> Answer:
        query = request.target.partition("?")[2]
        if self.order_is_forbidden and "orderby" in query:
            return _FORBIDDEN
        page = int(query.rpartition("paged=")[2] or 0) if "paged=" in query else 0
        if page in self.failing:
            return Status(self.failing[page])
        if not isinstance(answer, Document):
            return answer
        headers = dict(answer.headers)
        if "X-WP-Total" in headers:
            headers["X-WP-Total"] = str(int(headers["X-WP-Total"]) + self.site.hidden)
            return Document(body=answer.body, status=answer.status, headers=tuple(headers.items()))
        if self.site.validators == "of the site" or answer.status != 200:
            return answer
        kept = tuple(each for each in answer.headers if each[0] not in ("ETag", "Last-Modified"))
        tag = {"none": "", "of each page": f"{crc32(answer.body)}", "of each answer": f"{len(self.said)}"}
        made = tag[self.site.validators]
        more = (("ETag", f'"{made}"'),) if made else ()
        return Document(body=answer.body, status=answer.status, headers=(*kept, *more))

    @property
    def _validators(self) -> tuple[tuple[str, str], ...]:
        """The site compares with its own validators, not with a cache's."""
        return super()._validators if self.site.validators == "of the site" else ()

    def _is_current(self, request: Request) -> bool:
        return self.site.validators == "of the site" and super()._is_current(request)

    def is_of_feed(self, post: Post) -> bool:
        kind, _, name = self.site.under.partition("/")
        return not kind or getattr(post, kind) == name

    @property
    def live(self) -> dict[str, Post]:
        """The entries of a whole feed, by identity."""
        return {self.identity(post, self.site.form): post for post in self.posts if self.is_of_feed(post)}

    def of_feed(self) -> dict[str, str]:
        """Taxonomy of this feed's posts, by field."""
        kind, _, name = self.site.under.partition("/")
        return {kind: name} if kind else {}


# ---- What is true


@dataclass
class _Known:
    """A live post, as its author knows it."""

    since: float
    """Moment of its publication."""
    is_in_front: bool
    """Whether it stands on top of the feed."""
    edited: float
    """Moment of the last change."""
    is_one_of_many: bool = False
    """Whether that was a bulk edit."""


@dataclass
class _Truth:
    """The facts, independent of the proxy; moments are those of the play's clock."""

    posts: dict[int, _Known] = field(default_factory=dict)
    sent: dict[str, set[str]] = field(default_factory=dict)
    """Texts by identity, of everything sent since the feed was forgotten."""
    in_front: set[str] = field(default_factory=set)
    """Entries seen in the feed itself."""
    served: set[str] = field(default_factory=set)
    """Entries sent to a reader."""
    asked_at: float = -1.0
    """When the feed itself came last, in a visit without failures."""
    days: list[float] = field(default_factory=list)
    """Days of such visits to a healthy site, at least a day apart."""
    walked_at: float = -1.0
    """Beginning of the last visit with all pages asked for."""
    paused_until: float = 0.0


# ---- Playing it


class _Player:
    def __init__(self, story: BlogStory, origin: Origin, clock: WallClock, folder: Path, url: str) -> None:
        self._story, self._origin, self._clock = story, origin, clock
        self._folder, self._database = folder, url
        self._blog = _Blog(origin, story.site)
        self._truth = _Truth()
        self._scheduled: list[Post] = []
        self._later: list[Step] = []
        """Events for the middle of the next visit."""
        self._moments: list[tuple[int, float]] = []
        """Number of the request and instant of each event in the middle of this visit."""
        self._has_slipped = False
        self._differences: list[str] = []
        self._stack = AsyncExitStack()
        self._proxy: Proxy
        self._note_posts()

    @property
    def _url(self) -> str:
        return self._blog.feed_url(self._story.site.form, self._story.site.under)

    async def run(self) -> list[str]:
        async with AsyncExitStack() as self._stack:
            await self._start()
            for number, step in enumerate((*self._story.steps, *_ENDING)):
                if step[0] in READS:
                    await self._read(step[0], step[1])
                elif step[0] == "is whole":
                    self._expect_whole(await self._proxy.get(self._url))
                elif step[0] == "meanwhile":
                    self._later.append(step)
                else:
                    self._event(step)
                if self._differences:
                    place = f"step {number}, {' '.join(map(str, step))}"
                    return [f"{place}: {each}" for each in self._differences]
        return []

    async def _start(self) -> None:
        config = a_config(self._folder, store={"url": self._database})
        self._proxy = await self._stack.enter_async_context(running(config, self._clock))

    # ---- The author, and who guards the site

    def _event(self, step: Step) -> None:
        blog = self._blog.blog
        blog.now = max(blog.now, int(self._clock() - 2 * HOUR))
        getattr(self, f"_{step[0]}")(*step[1:])
        self._note_posts()

    def _adds(self, count: int) -> None:
        for _ in range(count):
            self._blog.add(**self._blog.of_feed())

    def _back_dates(self, which: int) -> None:
        self._blog.back_date(days=which * 10 + 1.5, **self._blog.of_feed())

    def _edits(self, which: int) -> None:
        if self._blog.posts:
            self._change([self._blog.posts[which % len(self._blog.posts)]])

    def _edits_many(self, which: int) -> None:
        self._change([post for post in self._blog.posts if post.id % 3 != which % 3])

    def _change(self, posts: list[Post]) -> None:
        self._blog.bulk_edit(posts)
        for post in posts:
            known = self._truth.posts[post.id]
            known.edited, known.is_one_of_many = self._clock(), known.is_one_of_many or len(posts) > 1

    def _deletes(self, which: int) -> None:
        posts = self._blog.posts
        if len(posts) > 1:
            self._blog.delete(*(posts[place % len(posts)] for place in (which, which // 3)))

    def _schedules(self, which: int) -> None:
        post_id = None if which % 2 else max(each.id for each in self._blog.blog.everything) + 1
        self._scheduled.append(self._blog.schedule(post_id=post_id, **self._blog.of_feed()))

    def _goes_live(self, which: int) -> None:
        del which
        if self._scheduled:
            post = self._scheduled.pop(0)
            post.published = post.modified = self._blog.blog.now  # its time has come
            self._blog.go_live(post)

    def _resizes(self, per_feed: int) -> None:
        self._blog.per_feed = per_feed

    def _breaks(self, flaw: str) -> None:
        self._blog.break_(flaw)

    def _mends(self) -> None:
        self._blog.refusal = None
        self._blog.failing.clear()
        self._blog.break_(self._story.site.flaw)

    def _heals(self) -> None:
        """Whether no flaw is left, and none comes."""
        self._later.clear()
        self._mends()
        self._blog.break_("")

    def _refuses(self, status: int) -> None:
        self._blog.refusal = status

    def _fails(self, page: int, status: int) -> None:
        self._blog.failing[page] = status

    def _note_posts(self) -> None:
        """Record newly live and departed posts."""
        now, posts = self._clock(), self._truth.posts
        live = {post.id: post for post in self._blog.posts}
        newest = max((post.published for post in live.values() if post.id in posts), default=0)
        for post_id, post in live.items():
            if post_id not in posts:
                posts[post_id] = _Known(now, post.published > newest, now)
        for post_id in posts.keys() - live.keys():
            del posts[post_id]

    # ---- The reader

    async def _read(self, how: str, seconds: float) -> None:
        self._clock.advance(seconds)
        if how == "restarts":
            await self._stack.aclose()
            await self._start()
        truth = self._truth
        if how == "forgets":
            await self._proxy.ask("DELETE", "/feed", params={"url": self._url})
            self._truth = truth = _Truth(posts=truth.posts)
        blog, began_at = self._blog, self._clock()
        self._origin.forget_requests()
        blog.said.clear()
        blog.count = 0
        blog.on_request = self._meanwhile
        self._moments.clear()
        self._has_slipped = False
        known = await self._proxy.status(self._url)
        is_known = "state" in known
        if is_known and how in ("refreshes", "refreshes fully"):
            query = {"url": self._url, **({"full": "1"} if how == "refreshes fully" else {})}
            await self._proxy.ask("POST", "/refresh", params=query)
        else:
            await self._proxy.whole(self._url)
        await self._proxy.settled()
        blog.on_request = None
        self._later.clear()
        self._note_said(began_at)
        self._expect_polite(began_at, is_insisted=how not in ("asks", "restarts"))
        is_walk = how in ("refreshes fully", "forgets") or known.get("state") in (None, "remembered")
        await self._compare(began_at, is_walk=is_walk)

    def _meanwhile(self, number: int, _request: Request) -> None:
        for step in [each for each in self._later if each[1] == number]:
            self._clock.advance(0.001)
            self._event(step[2:])
            self._moments.append((number, self._clock()))
            self._has_slipped |= step[2] in _SLIPPING

    def _note_said(self, began_at: float) -> None:
        """Record the site's answers."""
        truth, blog = self._truth, self._blog
        for request, answer in blog.said:
            if request.method != "GET" or not isinstance(answer, Document) or answer.status != 200:
                continue
            found = texts(answer.body)
            for identity, text in found.items():
                truth.sent.setdefault(identity, set()).add(text)
            if request.target == self._own:
                truth.in_front |= found.keys()
        is_own = any(request.target == self._own for request, _ in blog.said)
        if is_own and not self._failures and not blog.copies:
            truth.asked_at = began_at
            if blog.is_sound and (not truth.days or began_at - truth.days[-1] >= DAY):
                truth.days.append(began_at)

    @property
    def _failures(self) -> set[int]:
        """Statuses of refused questions, except for an order forbidden by a firewall."""
        return {
            answer.status
            for request, answer in self._blog.said
            if isinstance(answer, Status) and answer.status not in (304, 404)
            if request.method == "GET" and answer is not _FORBIDDEN
        }

    def _expect_polite(self, began_at: float, *, is_insisted: bool) -> None:
        """R28, R32: the number of requests to the site, and its pauses."""
        truth, requests = self._truth, [request for request, _ in self._blog.said]
        pages = [each for each in requests if each.target != self._own]
        conditional = [each for each in pages if each.headers.keys() & {"if-none-match", "if-modified-since"}]
        self._expect(not conditional, "a page was asked for conditionally")
        peak = self._origin.peak_requests
        self._expect(peak <= 2, f"{peak} requests were under way at once")
        self._expect(len(requests) <= self._most, f"{len(requests)} requests, {self._most} would do")
        is_paused = began_at < truth.paused_until and not is_insisted
        self._expect(
            not (pages and is_paused), f"asked for pages {truth.paused_until - began_at:.0f} s early"
        )
        if pages and 403 in self._failures:
            truth.paused_until = began_at + DAY
        elif pages and 429 in self._failures:
            truth.paused_until = began_at + HOUR

    def _note_early(self, way: str) -> None:
        """A walk by ID includes posts published early enough in it (R28)."""
        early = [at for number, at in self._moments if number <= self._blog.count - LATE and way == BY_ID]
        for known in self._truth.posts.values():
            if early and self._truth.walked_at < known.since <= early[-1]:
                known.since = self._truth.walked_at - 1

    @property
    def _own(self) -> str:
        return self._url.removeprefix(self._origin.url(""))

    @property
    def _most(self) -> int:
        """The greatest polite number of requests (R28)."""
        blog = self._blog
        pages = -(-len(blog.live) // min(blog.per_feed, blog.site.per_feed))
        most = 60 + 6 * pages
        is_dated = blog.site.is_pretty and blog.site.is_main
        return most + 1200 if is_dated else most

    # ---- Held against what is true

    async def _compare(self, began_at: float, *, is_walk: bool) -> None:
        truth = self._truth
        self._origin.forget_requests()
        reply = await self._proxy.get(self._url)
        if reply.status != 200:
            if truth.asked_at >= 0:
                self._differences.append(f"{reply.status}: {reply.body.decode()}")
            return
        status = await self._proxy.status(self._url)
        found = own_ids(reply.body)
        self._expect(len(found) == len(set(found)), "an entry stands twice")
        told = dict(each.partition("=")[::2] for each in reply.reconstruction.split(";")[1:])
        self._expect(
            int(told["entries"]) == len(found) == status["entries"],
            f"{reply.reconstruction}: {len(found)} entries, /status {status['entries']}",
        )
        self._expect(
            int(told["missing"]) == len(status["missing"]),
            f"{reply.reconstruction} and {len(status['missing'])} in /status",
        )
        self._expect(status["state"] == reply.state, f"{reply.state}, and {status['state']} in /status")
        self._expect(b"fh:complete" not in reply.body and b":complete" not in reply.body, "fh:complete")
        served = texts(reply.body)
        for identity in found:
            self._expect(served[identity] in truth.sent.get(identity, ()), f"{identity} was never sent so")
        self._expect(truth.served <= set(found), f"lost: {_few(truth.served - set(found))}")
        self._expect(truth.in_front <= set(found), f"stood in the feed: {_few(truth.in_front - set(found))}")
        truth.served |= set(found)
        self._compare_notes(reply, status)
        if reply.state == "collected":
            way = status["collection"]["way"]
            if is_walk and truth.asked_at == began_at and (way == BY_ID or not self._has_slipped):
                truth.walked_at = began_at
                self._note_early(way)
            self._compare_live(set(found), served, way)

    def _compare_notes(self, reply: Reply, status: dict[str, Any]) -> None:
        """Compare the notes, and their basis."""
        codes = {note["code"] for note in status["notes"]}
        state, missing = reply.state, status["missing"]
        self._expect(state in ("collected", "partial", "remembered"), f"state {state}")
        offered = "HistoryNotOffered" not in codes
        is_told = state != "remembered" or not self._blog.live  # nothing says whose an empty feed is
        self._expect(is_told or not offered, f"{state}, and {sorted(codes)}")
        self._expect(offered or state == "remembered", f"{state}, and {sorted(codes)}")
        self._expect((state == "partial") == bool(missing), f"{state}, and {len(missing)} missing")
        is_short = "HistoryShort" in codes
        self._expect(self._has_claims or not is_short, f"{sorted(codes)} of a site that claims nothing")

    def _compare_live(self, found: set[str], served: dict[str, str], way: str) -> None:
        """R28, R30, R31: the promises of `collected`."""
        for identity, post in self._blog.live.items():
            known = self._truth.posts[post.id]
            if identity not in found:
                reason = self._why_there(known, way)
                self._expect(not reason, f"{identity} is not there, {reason}")
            elif self._is_due(known, way):
                is_current = _plain(served[identity]) == post.content
                self._expect(is_current, f"{identity} is as it was before an edit: {served[identity]!r}")

    def _why_there(self, known: _Known, way: str) -> str:
        """Return why a post must be there; empty: it need not."""
        truth = self._truth
        if known.since < truth.walked_at:
            return "though it was live when all pages were asked for"
        if known.is_in_front and known.since < truth.asked_at:
            return "though it stood in front when the feed was asked for"
        if way == BY_ID and truth.days and known.since < truth.days[-1] - DAY:
            return "though it was live for a day"
        return ""

    def _is_due(self, known: _Known, way: str) -> bool:
        """Whether an edit has to be there: a bulk edit when looked for on several days."""
        truth = self._truth
        if known.edited < truth.walked_at:
            return True
        days = [each for each in truth.days if each > known.edited + DAY]
        is_late = len(days) > 2 and days[-1] > known.edited + 8 * DAY
        return way == BY_ID and bool(days) and (is_late or not known.is_one_of_many)

    def _expect_whole(self, reply: Reply) -> None:
        """A healthy site's live posts are all served in their present version."""
        claims = self._blog.site.hidden if self._has_claims else 0
        live = self._blog.live
        if not live:
            return
        is_little = claims >= _FEW and claims > len(live)
        self._expect(
            reply.state == ("partial" if is_little else "collected"), f"in the end {reply.reconstruction}"
        )
        served = texts(reply.body)
        self._expect(live.keys() <= served.keys(), f"in the end lost: {_few(live.keys() - served.keys())}")
        for identity, post in live.items():
            is_current = _plain(served.get(identity, post.content)) == post.content
            self._expect(is_current, f"in the end as it was before an edit: {identity}")

    @property
    def _has_claims(self) -> bool:
        """Whether the REST interface counts the feed's posts."""
        site = self._blog.site
        return site.is_main and site.rest_status is None and not site.is_wordpress_com

    def _expect(self, is_so: bool, what: str) -> None:
        if not is_so:
            self._differences.append(what)


_FEW: Final = 20
"""R31: with less than half of the posts, and this many missing, the feed is not whole."""
_ENDING: Final[tuple[Step, ...]] = (
    ("heals",), ("asks", 90_070), ("asks", 8 * DAY), ("asks", 90_070), ("refreshes fully", 4030),
    ("is whole",),
)  # fmt: skip
"""All is well again, and days go by."""


def _plain(text: str) -> str:
    return text.replace("<p>", "").replace("</p>", "").strip()


def _few(identities: set[str]) -> str:
    return f"{len(identities)}, {' '.join(sorted(identities)[:3])}"
