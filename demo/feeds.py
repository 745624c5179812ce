"""The sample publisher's documents: an archived Atom and an archived RSS 2.0 feed (RFC 5005, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from email.utils import format_datetime
from html import escape
from typing import Final

from demo.texts import Text, keepers_log, workshop_lessons

RECENT: Final = 10
"""Entries in a subscription document, and so of a reader without the proxy."""

_LESSONS_PER_ARCHIVE: Final = 6
_FH: Final = 'xmlns:fh="http://purl.org/syndication/history/1.0"'


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFeed:
    """One feed of the publisher.

    Args:
        title: Its title.
        path: Where its subscription document stands.
        media_type: The type of all its documents.
        documents: Path to body, for every document.
        pages: Path to HTML, for every entry's own page.
        entries: How many entries the logical feed has.
        state: Its expected state in the proxy.
    """

    title: str
    path: str
    media_type: str
    documents: dict[str, bytes]
    pages: dict[str, str]
    entries: int
    state: str = "complete"


@dataclass(frozen=True, slots=True)
class _Links:
    """Absolute links of one document; empty ones are left out."""

    own: str
    current: str
    older: str = ""
    newer: str = ""


_Writer = Callable[[str, _Links, Sequence[Text]], bytes]


def log_feed(base: str) -> SampleFeed:
    """The Keeper's Log: Atom, one archive document a month; the newest entries are corrected in one place."""
    months = keepers_log()
    path = "/log/feed.atom"
    archives = [f"/log/{month[0].slug[:7]}.atom" for month in months]
    recent = [text for month in months[-3:] for text in month][-RECENT:]
    correction = replace(
        recent[0], title=f"{recent[0].title} (corrected)", updated=recent[0].published + timedelta(days=1)
    )
    documents = _chained(base, path, archives, [correction, *recent[1:]], months, _atom)
    texts = [text for month in months for text in month]
    return _sample("The Keeper's Log", path, "application/atom+xml", documents, texts, "/log/")


def workshop_feed(base: str) -> SampleFeed:
    lessons = workshop_lessons()
    path = "/workshop/rss.xml"
    old = lessons[:-RECENT]
    parts = [old[at : at + _LESSONS_PER_ARCHIVE] for at in range(0, len(old), _LESSONS_PER_ARCHIVE)]
    archives = [f"/workshop/archive-{number}.xml" for number in range(1, len(parts) + 1)]
    documents = _chained(base, path, archives, lessons[-RECENT:], parts, _rss)
    return _sample("The Slow Workshop", path, "application/rss+xml", documents, lessons, "/workshop/")


def _sample(
    title: str, path: str, media_type: str, documents: dict[str, bytes], texts: Sequence[Text], folder: str
) -> SampleFeed:
    pages = {folder + text.slug: page_of(text) for text in texts}
    return SampleFeed(
        title=title, path=path, media_type=media_type, documents=documents, pages=pages, entries=len(texts)
    )


def _chained(
    base: str,
    path: str,
    archives: Sequence[str],
    recent: Sequence[Text],
    parts: Sequence[Sequence[Text]],
    write: _Writer,
) -> dict[str, bytes]:
    """Return the subscription document and its linked archive documents, oldest first."""
    urls = [base + archive for archive in archives]
    current = base + path
    documents = {path: write(base, _Links(current, current, older=urls[-1]), recent)}
    for number, (archive, texts) in enumerate(zip(archives, parts, strict=True)):
        older = urls[number - 1] if number else ""
        newer = urls[number + 1] if number + 1 < len(urls) else ""
        documents[archive] = write(base, _Links(urls[number], current, older, newer), texts)
    return documents


def _atom(base: str, links: _Links, texts: Sequence[Text]) -> bytes:
    """RFC 4287, with the links of RFC 5005, section 4."""
    entries = "".join(
        f"""
  <entry>
    <id>tag:keeper.example,2022:{text.slug}</id>
    <title>{escape(text.title)}</title>
    <link href="{base}/log/{text.slug}"/>
    <published>{text.published.isoformat()}</published>
    <updated>{text.updated.isoformat()}</updated>
    <category term="{escape(text.topic)}"/>
    <content type="html">{escape(text.body)}</content>
  </entry>"""
        for text in reversed(texts)
    )
    marker = "\n  <fh:archive/>" if links.own != links.current else ""
    return f"""<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" {_FH} xml:lang="en">
  <id>tag:keeper.example,2022:log</id>
  <title>The Keeper's Log</title>
  <subtitle>Weather, visitors and brass polish, from a light that is nowhere on the chart</subtitle>
  <updated>{max(text.updated for text in texts).isoformat()}</updated>
  <author><name>The Keeper</name></author>
  <link rel="alternate" href="{base}/"/>{_link_elements("link", links, "application/atom+xml")}{marker}{
        entries
    }
</feed>
""".encode()


def _rss(base: str, links: _Links, texts: Sequence[Text]) -> bytes:
    """RSS 2.0, with the Atom links of RFC 5005, section 4."""
    items = "".join(
        f"""
    <item>
      <title>{escape(text.title)}</title>
      <link>{base}/workshop/{text.slug}</link>
      <guid isPermaLink="false">tag:workshop.example,2024:{text.slug}</guid>
      <pubDate>{format_datetime(text.published)}</pubDate>
      <category>{escape(text.topic)}</category>
      <description><![CDATA[{text.body}]]></description>
    </item>"""
        for text in reversed(texts)
    )
    marker = "\n    <fh:archive/>" if links.own != links.current else ""
    return f"""<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" {_FH}>
  <channel>
    <title>The Slow Workshop</title>
    <link>{base}/</link>
    <description>One piece of furniture a week, and no hurry</description>
    <language>en</language>
    <lastBuildDate>{format_datetime(texts[-1].updated)}</lastBuildDate>{
        _link_elements("atom:link", links, "application/rss+xml")
    }{marker}{items}
  </channel>
</rss>
""".encode()


def _link_elements(name: str, links: _Links, media_type: str) -> str:
    targets = {"self": links.own, "prev-archive": links.older, "next-archive": links.newer}
    if links.own != links.current:
        targets["current"] = links.current
    return "".join(
        f'\n  <{name} rel="{relation}" type="{media_type}" href="{target}"/>'
        for relation, target in targets.items()
        if target
    )


def page_of(text: Text) -> str:
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(text.title)}</title>"
        f"<h1>{escape(text.title)}</h1><p><time>{text.published:%d %B %Y}</time></p>{text.body}"
        '<p><a href="/">all feeds</a></p></html>'
    )


def home_page(feeds: Sequence[SampleFeed]) -> str:
    """Return the publisher's front page; its `alternate` links let a reader discover the feeds."""
    links = "".join(
        f'<link rel=alternate type="{feed.media_type}" title="{escape(feed.title)}" href="{feed.path}">'
        for feed in feeds
    )
    items = "".join(f'<li><a href="{feed.path}">{escape(feed.title)}</a></li>' for feed in feeds)
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Sample publisher</title>{links}"
        f"<h1>Sample publisher</h1><ul>{items}</ul></html>"
    )
