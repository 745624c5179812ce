"""A made-up publisher's posts, their changes, and documents with some of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Final
from xml.sax.saxutils import escape

from tests.simulated.clock import BEGIN_AT

HOUR: Final = 3600
MEDIA_TYPES: Final = {
    "atom": "application/atom+xml",
    "rss": "application/rss+xml",
    "rdf": "application/rdf+xml",
    "json": "application/feed+json",
}


@dataclass(frozen=True)
class Post:
    """A post; its dates are hours since the story began, negative before it."""

    name: str
    published: int
    updated: int
    text: str
    id: str
    """Empty: none."""
    link: str
    is_short: bool = False
    """Whether documents have only its summary."""

    @property
    def is_dated(self) -> bool:
        return self.published > UNDATED


UNDATED: Final = -1_000_000


@dataclass
class Blog:
    """The posts, the newest first."""

    posts: list[Post] = field(default_factory=list)
    has_ids: bool = True
    is_dated: bool = True
    site: str = "http://blog.test"
    filler: str = ""
    """Text behind each post's own."""
    made: int = 0
    version: int = 0
    """Counts the changes."""
    buried: dict[str, int] = field(default_factory=dict)
    """Time of a post's deletion, where its publisher states it."""

    def fill(self, count: int) -> None:
        """Write the posts of the years before the story."""
        for number in range(count):
            self.add(-7 * (count - number))

    def add(self, hour: int) -> None:
        self.made += 1
        name = f"p{self.made}"
        published = hour if self.is_dated else UNDATED
        post_id = f"urn:{name}" if self.has_ids else ""
        self.posts.insert(
            0,
            Post(name, published, published, f"text of {name}{self.filler}", post_id, f"{self.site}/{name}"),
        )
        self.version += 1

    def change(self, dice: random.Random, kind: str, hour: int) -> None:
        """Change the posts at random."""
        self.version += 1
        if kind == "add":
            for _ in range(dice.choice((1, 1, 1, 2, 3, 9))):
                self.add(hour)
        elif self.posts:
            place = min(int(dice.random() ** 2 * len(self.posts)), len(self.posts) - 1)
            if kind in _OF_ONE:
                self.posts[place] = _OF_ONE[kind](self, self.posts[place], hour)
            elif kind in _OF_MANY:
                count, edit = _OF_MANY[kind]
                self.posts[:count] = [edit(self, each) for each in self.posts[:count]]
            else:
                self._take_out(dice, kind, place, hour)

    def _take_out(self, dice: random.Random, kind: str, place: int, hour: int) -> None:
        if kind == "move":
            self.posts.insert(dice.randrange(len(self.posts)), self.posts.pop(place))
            return
        if kind == "bury":
            self.buried[self.posts[place].id] = hour
        del self.posts[place : place + (4 if kind == "delete many" else 1)]


def _edit(_: Blog, post: Post, hour: int) -> Post:
    return replace(post, text=post.text + " edited", updated=hour if post.is_dated else UNDATED)


def _shorten(_: Blog, post: Post, hour: int = 0) -> Post:
    return replace(post, text=post.text[:9], is_short=True)


_OF_ONE: Final[Mapping[str, Callable[[Blog, Post, int], Post]]] = {
    "edit": _edit,
    "edit silently": lambda _, post, __: replace(post, text=post.text + " mended"),
    "shorten": _shorten,
    "rename": lambda blog, post, _: replace(post, id=post.id and f"{post.id}-{blog.version}"),
    "same id": lambda blog, post, _: replace(post, id=blog.posts[0].id),
}
_ALL: Final = 1 << 20
_OF_MANY: Final[Mapping[str, tuple[int, Callable[[Blog, Post], Post]]]] = {
    "shorten all": (_ALL, _shorten),
    "rename all": (_ALL, lambda _, post: replace(post, id=post.id and f"{post.id}~")),
    "relink all": (_ALL, lambda _, post: replace(post, link=f"{post.link}?again")),
    "same link": (3, lambda blog, post: replace(post, link=blog.site)),
    "same ids": (6, lambda _, post: replace(post, id=post.id and "urn:none")),
}
CHANGES: Final = (
    ("add", 40), ("edit", 12), ("edit silently", 8), ("delete", 8), ("bury", 3), ("delete many", 3),
    ("move", 5), ("rename", 4), ("rename all", 3), ("relink all", 1), ("shorten", 3), ("shorten all", 2),
    ("same link", 1), ("same id", 2), ("same ids", 1),
)  # fmt: skip


# Documents


@dataclass(frozen=True)
class Document:
    """A publisher's statements in one document."""

    posts: tuple[Post, ...]
    links: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    """Targets by relation."""
    is_archive: bool = False
    is_complete: bool = False
    flags: tuple[str, ...] = ()
    """Elements of the drafts of RFC 5005: `stateful`, `incremental`."""
    fh_prev: str = ""
    """Target of their fh:prev."""
    site_id: str = "http://blog.test/"
    updated: int | None = None
    extra: str = ""
    """Markup of the head."""
    buried: tuple[tuple[str, int], ...] = ()
    title: str = "A blog"

    @property
    def date(self) -> int:
        dates = [post.updated for post in self.posts if post.is_dated]
        return self.updated if self.updated is not None else max(dates, default=0)


def written(document: Document, family: str) -> bytes:
    return _WRITERS[family](document).encode()


def stamp(hour: int) -> str:
    return datetime.fromtimestamp(BEGIN_AT + HOUR * hour, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def mail_date(hour: int) -> str:
    return formatdate(BEGIN_AT + HOUR * hour, usegmt=True)


def _relations(document: Document) -> Iterable[tuple[str, str]]:
    for relation, targets in document.links.items():
        for target in [targets] if isinstance(targets, str) else targets:
            yield relation, target


_FH: Final = 'xmlns:fh="http://purl.org/syndication/history/1.0"'
_TOMB: Final = 'xmlns:at="http://purl.org/atompub/tombstones/1.0"'
_ATOM: Final = 'xmlns:atom="http://www.w3.org/2005/Atom"'
_DC: Final = 'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/"'
_CONTENT: Final = 'xmlns:content="http://purl.org/rss/1.0/modules/content/"'
_ITUNES: Final = 'xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"'


def _head(document: Document, prefix: str) -> str:
    links = "".join(f'<{prefix}link rel="{name}" href="{escape(to)}"/>' for name, to in _relations(document))
    flags = "".join(f"<fh:{flag}>true</fh:{flag}>" for flag in document.flags)
    previous = f"<fh:prev>{escape(document.fh_prev)}</fh:prev>" if document.fh_prev else ""
    marks = "<fh:archive/>" * document.is_archive + "<fh:complete/>" * document.is_complete
    graves = "".join(f'<at:deleted-entry ref="{ref}" when="{stamp(at)}"/>' for ref, at in document.buried)
    return f"{links}{flags}{previous}{marks}{graves}{document.extra}"


def _atom(document: Document) -> str:
    entries = "".join(
        "<entry>"
        + (f"<id>{post.id}</id>" if post.id else "")
        + f'<title>{post.name}</title><link href="{post.link}"/>'
        + (
            f"<published>{stamp(post.published)}</published><updated>{stamp(post.updated)}</updated>"
            if post.is_dated
            else ""
        )
        + (f"<summary>{post.text}</summary>" if post.is_short else f"<content>{post.text}</content>")
        + "</entry>\n"
        for post in document.posts
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<feed xmlns="http://www.w3.org/2005/Atom" {_FH} {_TOMB} {_ITUNES}>'
        f"<title>{document.title}</title><id>{document.site_id}</id><updated>{stamp(document.date)}</updated>"
        f"<author><name>Ann</name></author>{_head(document, '')}\n{entries}</feed>"
    )


def _full(post: Post) -> str:
    return f"<content:encoded>{post.text}</content:encoded>"


def _rss(document: Document) -> str:
    entries = "".join(
        f"<item><title>{post.name}</title><link>{post.link}</link>"
        + (f"<guid isPermaLink='false'>{post.id}</guid>" if post.id else "")
        + (f"<pubDate>{mail_date(post.published)}</pubDate>" if post.is_dated else "")
        + (f"<atom:updated>{stamp(post.updated)}</atom:updated>" if post.updated != post.published else "")
        + (f"<description>{post.text}</description>" if post.is_short else _full(post))
        + "</item>\n"
        for post in document.posts
    )
    return (
        f'<?xml version="1.0"?>\n<rss version="2.0" {_ATOM} {_FH} {_TOMB} {_ITUNES} {_CONTENT}><channel>'
        f"<title>{document.title}</title><link>{document.site_id}</link><description>About</description>"
        f"<lastBuildDate>{mail_date(document.date)}</lastBuildDate>{_head(document, 'atom:')}\n"
        f"{entries}</channel></rss>"
    )


def _rdf(document: Document) -> str:
    listed = "".join(f'<rdf:li resource="{post.link}"/>' for post in document.posts)
    entries = "".join(
        f'<item rdf:about="{post.link}"><title>{post.name}</title><link>{post.link}</link>'
        + (f"<dcterms:modified>{stamp(post.updated)}</dcterms:modified>" if post.is_dated else "")
        + f"<description>{post.text}</description></item>\n"
        for post in document.posts
    )
    return (
        f'<?xml version="1.0"?>\n<rdf:RDF xmlns="http://purl.org/rss/1.0/" '
        f'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" {_ATOM} {_FH} {_TOMB} {_DC} {_ITUNES}>'
        f'<channel rdf:about="{document.site_id}"><title>{document.title}</title><link>http://blog.test/</link>'
        f"<description>About</description><dc:date>{stamp(document.date)}</dc:date>"
        f"<items><rdf:Seq>{listed}</rdf:Seq></items>{_head(document, 'atom:')}</channel>\n{entries}</rdf:RDF>"
    )


def _json(document: Document) -> str:
    items = [
        {"id": post.id or post.link, "url": post.link, "title": post.name, "content_text": post.text}
        | (
            {"date_published": stamp(post.published), "date_modified": stamp(post.updated)}
            if post.is_dated
            else {}
        )
        for post in document.posts
    ]
    head: dict[str, object] = {"version": "https://jsonfeed.org/version/1.1", "title": document.title}
    links = dict(_relations(document))
    if "next" in links:
        head["next_url"] = links["next"]
    return json.dumps(head | {"home_page_url": document.site_id, "items": items})


_WRITERS: Final = {"atom": _atom, "rss": _rss, "rdf": _rdf, "json": _json}
