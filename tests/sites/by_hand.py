"""Layouts that this module writes by itself: what other engines do, and what people do by hand."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import format_datetime
from html import escape
from pathlib import Path
from typing import Final

from tests.generators import write
from tests.sites.posts import Post, posts
from tests.sites.site import URL, Layout


def by_hand(
    kind: str,
    feed_entries: list[tuple[str, Post]],
    pages: dict[str, str],
    articles: dict[str, Post],
    *,
    lists: tuple[str, ...] = (),
) -> Layout:
    """Make a layout of whole pages and a feed; an article is a post by the path of its page."""

    def make(folder: Path) -> None:
        items = "".join(
            f"<item>{named(post)}<link>{URL}{path}</link><guid>{URL}{path}</guid>"
            f"<pubDate>{format_datetime(post.date)}</pubDate></item>\n"
            for path, post in feed_entries
        )
        channel = f"<channel><title>A site</title><link>{URL}/</link>\n{items}</channel>"
        feed = f'<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0">{channel}</rss>\n'
        own = {path: article(post) for path, post in articles.items()}
        files = {file_name(path): text for path, text in {**own, **pages}.items()}
        write(folder, {"feed.xml": feed, **files})

    return Layout(kind=kind, feed_path="/feed.xml", lists=lists, make=make)


def named(post: Post) -> str:
    """Make what an item begins with: its title, or its text where it has none."""
    if post.title:
        return f"<title>{escape(post.title)}</title>"
    return f"<description>{post.text[0]}</description>"


def file_name(target: str) -> str:
    """Return the file of a path, perhaps with a query."""
    path, mark, query = target.lstrip("/").partition("?")
    return (f"{path}index.html" if path.endswith("/") or not path else path) + mark + query


def article(post: Post) -> str:
    """Make the page of a post."""
    body = "".join(f"<p>{text}</p>\n" for text in post.text)
    head = (
        '<meta property="og:type" content="article">\n'
        f'<meta property="og:title" content="{escape(post.title)}">\n'
        f'<meta property="article:published_time" content="{post.date.isoformat()}">'
    )
    return framed(f"<article><h1>{escape(post.title)}</h1>\n{body}</article>", head)


def framed(body: str, head: str = "") -> str:
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>A site</title>\n{head}\n'
        '<link rel="alternate" type="application/rss+xml" href="/feed.xml"></head>\n'
        f"<body>\n{body}\n</body></html>\n"
    )


def anchor(path: str, text: str) -> str:
    return f'<a href="{path}">{escape(text)}</a>'


def newest(by_path: dict[str, Post], count: int) -> list[tuple[str, Post]]:
    """The posts of a feed, newest first."""
    return sorted(by_path.items(), key=lambda each: each[1].date, reverse=True)[:count]


def teaser(path: str, post: Post) -> str:
    return (
        f'<article class="summary-item"><h2 class="summary-title">{anchor(path, post.title)}</h2>\n'
        f'<time datetime="{post.date:%Y-%m-%d}">{post.date:%b %d}</time><p>{post.text[0]}</p></article>\n'
    )


def numbered(
    kind: str,
    written: dict[str, Post],
    page_posts: int,
    target: Callable[[int, int], str],
    word: str,
    *,
    lists: tuple[str, ...],
) -> Layout:
    """Make a list in pages; `target` gives the URL of one by its number, from 0 on, and the number of all."""
    found = newest(written, len(written))
    starts = range(0, len(found), page_posts)
    pages = {}
    for number, start in enumerate(starts):
        items = "".join(teaser(*each) for each in found[start : start + page_posts])
        behind = anchor(target(number + 1, len(starts)), word) if number + 1 < len(starts) else ""
        pages[target(number, len(starts))] = framed(f"<main>{items}</main>\n<div>{behind}</div>")
    pages.setdefault("/", framed(anchor("/journal/", "Journal")))
    return by_hand(kind, found[:10], pages, written, lists=lists)


def old() -> Layout:
    """One page as people wrote it by hand in 2003: no end tags, capital letters, relative links."""
    written = {f"/log/{post.date:%Y%m%d}-{number}.html": post for number, post in enumerate(posts(50, 60))}
    lines = "".join(
        f'<LI><A HREF="{path[1:]}">{escape(post.title)}</A> - {post.date.day} {post.date:%B %Y}\n'
        for path, post in newest(written, 50)
    )
    page = f"<HTML><HEAD><TITLE>Log</TITLE></HEAD>\n<BODY>\n<H1>Log</H1>\n<UL>\n{lines}</UL></BODY></HTML>\n"
    return by_hand(
        "a page of 2003, written by hand: no end tags, capital letters, relative links",
        newest(written, 10),
        {"/": page},
        written,
        lists=("index.html",),
    )


def at_journal(seed: int) -> dict[str, Post]:
    return {f"/journal/{post.slug}/": post for post in posts(85, seed, odd=6)}


OFFSETS: Final = numbered(
    "pages by offset, /journal/?offset=20",
    at_journal(61),
    20,
    lambda number, _: f"/journal/?offset={number * 20}" if number else "/journal/",
    "More",
    lists=("journal/index.html*",),
)
COUNTED_DOWN: Final = numbered(
    "pages whose numbers go down to the oldest one: /index-5.html, /index-4.html",
    {f"/{post.date:%Y}/{post.slug}.html": post for post in posts(70, 62)},
    12,
    lambda number, count: f"/index-{count - number}.html" if number else "/",
    "Earlier entries",
    lists=("index.html", "index-*.html"),
)
BARE_NUMBERS: Final = numbered(
    "pages by number alone, /journal/2/",
    at_journal(63),
    15,
    lambda number, _: f"/journal/{number + 1}/" if number else "/journal/",
    "»",
    lists=("journal/index.html", "journal/[0-9]/index.html"),
)

LAYOUTS: Final = {
    "by hand offsets": OFFSETS,
    "by hand counted down": COUNTED_DOWN,
    "by hand bare numbers": BARE_NUMBERS,
    "by hand old": old(),
}
