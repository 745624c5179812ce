"""A Walk a Week: a blog with no links to older entries, on a publisher with WordPress's pages."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from html import escape
from typing import Final

from demo.feeds import RECENT, SampleFeed, page_of
from demo.texts import Text

_WALKS: Final = 164
_FIRST_WALK: Final = datetime(2023, 9, 3, 16, 30, tzinfo=UTC)
_PATH: Final = "/walks/feed/"
_BY_ID: Final = f"{_PATH}?orderby=ID&order=ASC"
_WAYS: Final = (
    "along the canal, against the current",
    "over the hill that is always said to be the last one",
    "through three villages and one wedding",
    "round the lake, clockwise for once",
    "up the old railway, which climbs at one in eighty and so did I",
    "from one end of the map to the fold",
)
_FOUND: Final = (
    "a glove on a fence post, waving",
    "eleven kinds of moss",
    "a bench with a view of another bench",
    "the inn, closed; the baker, open",
    "a milestone that had given up counting",
    "a dog who knew the way better",
)


def journal_feed(base: str) -> SampleFeed:
    """Return the blog: its feed, and its unlinked pages."""
    walks = _walks()
    documents = {_PATH: _rss(base, _PATH, walks[: -RECENT - 1 : -1])}
    for number, texts in enumerate(_in_pages(walks), 1):
        path = _BY_ID if number == 1 else f"{_BY_ID}&paged={number}"
        documents[path] = _rss(base, path, texts)
    return SampleFeed(
        title="A Walk a Week",
        path=_PATH,
        media_type="application/rss+xml",
        documents=documents,
        pages={f"/walks/{text.slug}": page_of(text) for text in walks},
        entries=len(walks),
        state="collected",
    )


def _in_pages(walks: Sequence[Text]) -> list[Sequence[Text]]:
    return [walks[at : at + RECENT] for at in range(0, len(walks), RECENT)]


def _walks() -> list[Text]:
    """All walks, the oldest first."""
    chance = random.Random(1801)
    walks = []
    for number in range(1, _WALKS + 1):
        published = _FIRST_WALK + timedelta(weeks=number - 1, minutes=chance.randint(0, 90))
        way, found = chance.choice(_WAYS), chance.choice(_FOUND)
        body = f"<p>This week {way}. Found: {found}. {chance.randint(7, 29)} kilometres, no hurry.</p>"
        title = f"Walk {number}: {found}"
        walks.append(
            Text(
                slug=f"walk-{number}",
                title=title,
                body=body,
                topic="walks",
                published=published,
                updated=published,
            )
        )
    return walks


def _rss(base: str, path: str, texts: Sequence[Text]) -> bytes:
    """RSS 2.0 with a generator, without links to other documents."""
    items = "".join(
        f"""
    <item>
      <title>{escape(text.title)}</title>
      <link>{base}/walks/{text.slug}</link>
      <guid isPermaLink="false">{base}/?walk={text.slug}</guid>
      <pubDate>{format_datetime(text.published)}</pubDate>
      <description><![CDATA[{text.body}]]></description>
    </item>"""
        for text in texts
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom">
  <channel>
    <title>A Walk a Week</title>
    <atom:link href="{escape(base + path)}" rel="self" type="application/rss+xml"/>
    <link>{base}/walks/</link>
    <description>One walk a week, and what lay beside the way</description>
    <lastBuildDate>{format_datetime(max(text.updated for text in texts))}</lastBuildDate>
    <generator>https://wordpress.org/?v=6.6</generator>{items}
  </channel>
</rss>
""".encode()
