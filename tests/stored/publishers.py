"""Publishers with a feed of each kind, at three times; they have names, and are asked through one HTTP proxy.

async with Origin() as gateway:
    world = World(gateway)
    for number in range(STAGES):
        world.publish(number)
        ...                                # with gateway.url("") as fetch.proxy
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

from tests.answers import Request, Status, Wire
from tests.feeds import FH_NS, an_item, atom, atom_03, json_feed, rdf, rss, stamp
from tests.nameless import MAKES, STAGES, stage
from tests.origin import Origin
from tests.publishers.wordpress import WordPress
from wholefeed.core.model import ATOM_NS

ARCHIVED_HOST: Final = "lossy.example"
"""A web archive may learn this host's URLs: it has the missing documents."""
_FRESH: Final = (("Cache-Control", "max-age=3600"),)
_TOMBSTONES: Final = 'xmlns:at="http://purl.org/atompub/tombstones/1.0"'


class Named(Origin):
    """A publisher that does not listen: a gateway passes it requests for all publishers."""

    def __init__(self, name: str, gateway: Origin) -> None:
        super().__init__()
        self.name = name
        gateway.answer_below(self.url(), self)

    async def start(self) -> None:
        """Do nothing: the gateway listens."""

    async def stop(self) -> None:
        """Do nothing."""

    def url(self, path: str = "/") -> str:
        return f"http://{self.name}{path}"

    async def send(self, request: Request, wire: Wire) -> None:
        """Answer the gateway's request, with the target as the publisher itself would see it."""
        own = replace(request, target=request.target.removeprefix(self.url("")))
        self.requests.append(own)
        await self._answer_to(own.target).send(own, wire)


class World:
    """All publishers."""

    TIMES: Final = range(STAGES)
    """The number of times in the story of the items without ids."""

    def __init__(self, gateway: Origin) -> None:
        self.feeds = Named("feeds.example", gateway)
        self.down = Named("down.example", gateway)
        self.lossy = Named(ARCHIVED_HOST, gateway)
        self.wordpress = WordPress(Named("blog.example", gateway), posts=10, per_feed=4)
        self.urls = [
            *(self.feeds.url(f"/{name}") for name in NAMES),
            *(self.feeds.url(f"/nameless-{name}/feed") for name in MAKES),
            self.down.url("/feed"),
            self.lossy.url("/feed"),
            *(self.wordpress.feed_url(form) for form in ("rss2", "atom")),
        ]
        """URLs of the feeds at each time."""
        self.lost: dict[str, bytes] = {}
        """The web archive's documents that publishers lost, by URL."""

    def publish_all(self) -> None:
        for number in self.TIMES:
            self.publish(number)

    def publish(self, number: int) -> None:
        """Publish the documents of one time."""
        for each in (_archived, _paged, _plain, _complete, _deleted, _failing, _relative, _formats, _other):
            each(self.feeds, number)
        for name, make in MAKES.items():
            kind = "application/feed+json" if name == "json" else "application/xml"
            for path, body in stage(number, make).items():
                linked = body.replace(b'"/1"', f'"/nameless-{name}/1"'.encode())
                self.feeds.publish(f"/nameless-{name}{path}", linked, content_type=kind, headers=_FRESH)
        if number == 0:
            _put(self.down, "/feed", rss(an_item("s2", 2), an_item("s1", 1)))
            self._publish_lossy()
        if number == 1:
            self.down.answer("/feed", Status(500))
            self.wordpress.add()
            self.wordpress.edit(self.wordpress.posts[3])

    def is_asked_fully(self, url: str) -> bool:
        """Whether a feed's archive documents are asked for again at each time: of the items without ids."""
        return "/nameless" in url

    def _publish_lossy(self) -> None:
        """A chain with its middle in the web archive alone."""
        for path, numbers, older in (("/feed", (6, 5), "/2"), ("/2", (4, 3), "/1"), ("/1", (2, 1), None)):
            held = [an_item(f"m{n}", n) for n in numbers]
            body = atom(*held, updated=numbers[0], archive=path != "/feed", prev_archive=older)
            if path == "/2":
                self.lost[self.lossy.url(path)] = body
            else:
                _put(self.lossy, path, body)


NAMES: Final = (
    "archived", "archived-rss", "paged", "paged-rdf", "plain", "complete", "complete-rss", "deleted",
    "partial", "healed", "relative/feed", "json", "atom03", "rdf", "repaired", "latin1",
    "private", "moved", "page",
)  # fmt: skip


def _put(feeds: Origin, path: str, body: bytes | str, kind: str = "application/xml") -> None:
    content = body.encode() if isinstance(body, str) else body
    etag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
    feeds.publish(path, content, content_type=kind, etag=etag, headers=_FRESH)


def _archived(feeds: Origin, number: int) -> None:
    """RFC 5005, section 4, down to the oldest document; an entry is new, one edited at the second time."""
    for name, make in (("archived", atom), ("archived-rss", rss)):
        new = [an_item("a8", 8), an_item("a1", 9, "edited &amp; new")] if number else []
        first = [*new, an_item("a7", 7), an_item("a6", 6)]
        _put(feeds, f"/{name}", make(*first, updated=7 + number, prev_archive=f"/{name}/3"))
        for place in (3, 2, 1):
            held = [an_item(f"a{n}", n) for n in (2 * place - 1, 2 * place - 2)]
            older = f"/{name}/{place - 1}" if place > 1 else None
            body = make(*held, updated=2 * place, archive=True, prev_archive=older, current=f"/{name}")
            _put(feeds, f"/{name}/{place}", body)


def _paged(feeds: Origin, number: int) -> None:
    """RFC 5005, section 3; at the second time an entry pushes the others down."""
    for name, make in (("paged", rss), ("paged-rdf", rdf)):
        items = [an_item(f"p{n}", n) for n in range(8 + (number > 0), 0, -1)]
        pages = [items[start : start + 3] for start in range(0, len(items), 3)]
        for place, held in enumerate(pages, 1):
            own = f"/{name}" if place == 1 else f"/{name}?page={place}"
            older = f"/{name}?page={place + 1}" if place < len(pages) else None
            _put(feeds, own, make(*held, next=older, first=f"/{name}"))


def _plain(feeds: Origin, number: int) -> None:
    """No history: departed entries are remembered in their last version."""
    window = [an_item(f"r{n}", n, f"text of r{n} &lt;br/>") for n in range(6 + number, 2, -1)]
    if number:
        window[2] = an_item("r5", 9, "edited")
    _put(feeds, "/plain", rss(*window[: 3 if number else 4]))


def _complete(feeds: Origin, number: int) -> None:
    """RFC 5005, section 2: departed entries are gone."""
    items = [an_item(f"c{n}", n) for n in range(5 + number, number, -1)]
    _put(feeds, "/complete", atom(*items, updated=5 + number, complete=True))
    _put(feeds, "/complete-rss", rss(*items, updated=5 + number, complete=True))


def _deleted(feeds: Origin, number: int) -> None:
    """RFC 6721: one entry of an archive document is deleted, and one that is remembered."""
    gone = "".join(
        f'<at:deleted-entry {_TOMBSTONES} ref="urn:{name}" when="{stamp(50)}"><at:comment>Spam</at:comment>'
        "</at:deleted-entry>"
        for name in ("d2", "d6")[:number]
    )
    front = [an_item(f"d{n}", n) for n in ((6, 5) if number == 0 else (7, 5))]
    _put(feeds, "/deleted", atom(*front, updated=6 + number, prev_archive="/deleted/1", extra=gone))
    held = [an_item(f"d{n}", n) for n in (3, 2, 1)]
    _put(feeds, "/deleted/1", atom(*held, updated=3, archive=True))


def _failing(feeds: Origin, number: int) -> None:
    """Archive documents that are missing: for good, or until the last time."""
    for name in ("partial", "healed"):
        feed_id = f"urn:{name}"
        front = [an_item("f6", 6), an_item("f5", 5)]
        _put(feeds, f"/{name}", atom(*front, updated=6, feed_id=feed_id, prev_archive=f"/{name}/2"))
        held = [an_item("f4", 4), an_item("f3", 3)]
        older = f"/{name}/1"
        _put(feeds, f"/{name}/2", atom(*held, updated=4, archive=True, feed_id=feed_id, prev_archive=older))
    if number == World.TIMES[-1]:
        oldest = [an_item("f2", 2), an_item("f1", 1)]
        _put(feeds, "/healed/1", atom(*oldest, updated=2, archive=True, feed_id="urn:healed"))


def _relative(feeds: Origin, number: int) -> None:
    """Relative addresses: below xml:base, in markup, in another folder."""

    def document(name: str, head: str) -> str:
        return (
            f'<feed xmlns="{ATOM_NS}" xmlns:fh="{FH_NS}" xml:base="/relative/" xml:lang="de"><title>R</title>'
            f"<id>urn:relative</id><updated>{stamp(number)}</updated><author><name>Ö</name></author>{head}"
            f'<entry xml:base="{name}/"><id>urn:{name}-1</id><title>One</title><updated>{stamp(1)}</updated>'
            '<link href="page"/><link rel="enclosure" href="../sound.mp3" length="1" type="audio/mpeg"/>'
            '<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><a href="a">A</a>'
            '<img src="i.png" alt=""/></div></content></entry>'
            f"<entry><id>urn:{name}-2</id><title>Two</title><updated>{stamp(0)}</updated>"
            '<content type="html">&lt;a href="b?c=1&amp;amp;d=2"&gt;B&lt;/a&gt;</content></entry></feed>'
        )

    _put(feeds, "/relative/feed", document("new", '<link rel="prev-archive" href="old/1"/><link href="."/>'))
    _put(feeds, "/relative/old/1", document("old", "<fh:archive/>"))


def _formats(feeds: Origin, number: int) -> None:
    """JSON Feed in pages; Atom 0.3 and RSS 1.0 that link nothing, or archives."""
    items = [an_item(f"j{n}", n) for n in range(5 + number, 0, -1)]
    kind, address = "application/feed+json", feeds.url("/json?page=2")
    _put(feeds, "/json", json_feed(*items[:3], next_url=address, language="fr"), kind)
    _put(feeds, "/json?page=2", json_feed(*items[3:]), kind)
    _put(feeds, "/atom03", atom_03(*(an_item(f"o{n}", n) for n in range(3 + number, number, -1))))
    _put(feeds, "/rdf", rdf(an_item("x4", 4), an_item("x3", 3), updated=number, prev_archive="/rdf/1"))
    _put(feeds, "/rdf/1", rdf(an_item("x2", 2), an_item("x1", 1), archive=True))


def _other(feeds: Origin, number: int) -> None:
    """Documents that are not well-formed, in another encoding, elsewhere, or announced by a page."""
    broken = rss(an_item("b1", 1, "caf&eacute; & bar"), an_item("b2", None, "undated"))
    _put(feeds, "/repaired", broken)
    german = rss(an_item("l1", 1, f"Grüße {number}")).decode()
    german = german.replace('version="1.0"', 'version="1.0" encoding="iso-8859-1"', 1)
    _put(feeds, "/latin1", german.encode("latin-1"))
    body = rss(an_item("t2", 2), an_item("t1", 1))
    feeds.publish("/private", body, headers=[("Cache-Control", "private, max-age=3600")])
    feeds.redirect("/moved", "/moved-to", status=301)
    _put(feeds, "/moved-to", rss(an_item("v2", 2), an_item("v1", 1)))
    link = '<link rel="alternate" type="application/rss+xml" href="/announced">'
    _put(feeds, "/page", f"<!DOCTYPE html><html><head><title>P</title>{link}</head></html>", "text/html")
    _put(feeds, "/announced", rss(an_item("n2", 2), an_item("n1", 1), updated=3))
