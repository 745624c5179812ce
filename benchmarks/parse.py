"""Speed of parsing, with the work of making every entry self-contained, beside feedparser.

    python -m benchmarks.parse
    python -m benchmarks.parse --megabytes 8 --runs 3 --without-feedparser

Documents are generated in memory from a fixed seed: Atom with entries of about 1 KB, 3 KB and 8 KB, RSS 2.0
with items of about 3 KB. A run parses the document and makes each of its entries self-contained; the figure
is the median of several runs. feedparser reads the same bytes once.
"""

from __future__ import annotations

import argparse
import gc
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from pyexpat import EXPAT_VERSION
from typing import Final
from xml.sax.saxutils import escape

import feedparser

from wholefeed.core.parse.documents import parse
from wholefeed.core.verbatim.fragments import Fragments

SEED: Final = 5005
URL: Final = "http://example.org/blog/feed"
WORDS: Final = (
    *("archive", "document", "feed", "history", "entry", "chain", "walk", "naïve", "café", "résumé", "which"),
    *("the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on"),
    *(
        "not",
        "he",
        "his",
        "but",
        "at",
        "are",
        "this",
        "have",
        "from",
        "or",
        "had",
        "an",
        "they",
        "one",
        "you",
    ),
)

ATOM_HEAD: Final = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:thr="http://purl.org/syndication/thread/1.0"
 xmlns:media="http://search.yahoo.com/mrss/" xmlns:own="http://example.org/ns" xml:lang="en">
<title>Generated</title><id>urn:uuid:00000000-0000-4000-8000-000000000000</id>
<updated>2026-01-01T00:00:00Z</updated><author><name>A. Author</name></author>
<link rel="self" href="http://example.org/blog/feed"/>
"""
RSS_HEAD: Final = """<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:own="http://example.org/ns">
<channel><title>Generated</title><link>http://example.org/blog/</link><description>Text</description>
<language>en</language><atom:link rel="self" href="http://example.org/blog/feed"/>
"""


def prose(chance: random.Random, size_bytes: int) -> str:
    """Return HTML of about this size: paragraphs with an occasional link."""
    parts: list[str] = []
    size = 0
    while size < size_bytes:
        words = " ".join(chance.choices(WORDS, k=60))
        part = f'<p>{words} <a href="http://example.org/{chance.randrange(10**6)}">{chance.choice(WORDS)}</a></p>\n'
        parts.append(part)
        size += len(part)
    return "".join(parts)


def atom_entry(chance: random.Random, number: int, size_bytes: int) -> str:
    """Return an entry: one in ten needs a namespace declaration, one in four has inline XHTML."""
    day = f"{2001 + number % 25}-{1 + number % 12:02}-{1 + number % 28:02}T12:00:00Z"
    if number % 4:
        content = f'<content type="html">{escape(prose(chance, size_bytes))}</content>'
    else:
        xhtml = prose(chance, size_bytes)
        content = f'<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">{xhtml}</div></content>'
    mood = "<own:mood>calm</own:mood>" if number % 10 == 0 else ""
    return (
        f"<entry><title>Entry {number}</title><id>urn:example:{number}</id>"
        f'<link href="http://example.org/blog/{number}"/><published>{day}</published><updated>{day}</updated>'
        f'<category term="one"/><author><name>A. Author</name></author>{mood}{content}</entry>\n'
    )


def rss_item(chance: random.Random, number: int, size_bytes: int) -> str:
    mood = "<own:mood>calm</own:mood>" if number % 10 == 0 else ""
    return (
        f"<item><title>Entry {number}</title><link>http://example.org/blog/{number}</link>"
        f"<pubDate>Mon, {1 + number % 28:02} Jan {2001 + number % 25} 12:00:00 +0000</pubDate>"
        f"<dc:creator>A. Author</dc:creator><category>one</category>{mood}"
        f'<guid isPermaLink="false">http://example.org/?p={number}</guid>'
        f"<description>{escape(prose(chance, 300))}</description>"
        f"<content:encoded><![CDATA[{prose(chance, size_bytes)}]]></content:encoded></item>\n"
    )


def generated(
    head: str,
    entry: Callable[[random.Random, int, int], str],
    tail: str,
    *,
    entry_bytes: int,
    size_bytes: int,
) -> bytes:
    chance = random.Random(SEED)
    parts = [head.encode()]
    size, number = 0, 0
    while size < size_bytes:
        parts.append(entry(chance, number, entry_bytes).encode())
        size += len(parts[-1])
        number += 1
    return b"".join((*parts, tail.encode()))


def once(body: bytes) -> tuple[float, float, int]:
    """Return seconds of parsing, seconds with making entries self-contained, and the number of entries."""
    started = time.perf_counter()
    document = parse(body, URL)
    parsed = time.perf_counter()
    fragments = Fragments(document)
    for number in range(len(document.entries)):
        fragments.entry(number)
    return parsed - started, time.perf_counter() - started, len(document.entries)


def measure(name: str, body: bytes, runs: int) -> float:
    """Print one row; return the seconds of a whole run."""
    once(body)
    gc.collect()
    results = [once(body) for _ in range(runs)]
    parsing = statistics.median(result[0] for result in results)
    whole = statistics.median(result[1] for result in results)
    entries = results[0][2]
    size = len(body) / 1e6
    print(
        f"{name:<12}{size:>8.1f}{entries:>10}{len(body) / entries / 1e3:>12.2f}"
        f"{size / parsing:>14.0f}{size / whole:>18.0f}",
        flush=True,
    )
    return whole


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure parsing and making entries self-contained.")
    parser.add_argument("--megabytes", type=float, default=25.0, help="size of each document (default 25)")
    parser.add_argument(
        "--runs", type=int, default=7, help="runs per document; the median counts (default 7)"
    )
    parser.add_argument("--without-feedparser", action="store_true", help="leave out the comparison")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    size_bytes = int(options.megabytes * 1e6)
    print(f"Python {platform.python_version()}, {EXPAT_VERSION}, {platform.machine()}, one core")
    print(" ".join(["command: python -m benchmarks.parse", *sys.argv[1:]]))
    print(f"{'document':<12}{'MB':>8}{'entries':>10}{'KB/entry':>12}{'parse MB/s':>14}{'with fragments':>18}")
    for name, entry_bytes in (("atom-1k", 400), ("atom-8k", 6900)):
        body = generated(ATOM_HEAD, atom_entry, "</feed>\n", entry_bytes=entry_bytes, size_bytes=size_bytes)
        measure(name, body, options.runs)
    body = generated(RSS_HEAD, rss_item, "</channel></rss>\n", entry_bytes=1700, size_bytes=size_bytes)
    measure("rss-3k", body, options.runs)
    body = generated(ATOM_HEAD, atom_entry, "</feed>\n", entry_bytes=2200, size_bytes=size_bytes)
    seconds = measure("atom-3k", body, options.runs)
    if options.without_feedparser:
        return
    started = time.perf_counter()
    entries = len(feedparser.parse(body).entries)
    theirs = time.perf_counter() - started
    rate = len(body) / 1e6 / theirs
    print(f"feedparser {feedparser.__version__} on atom-3k: {rate:.1f} MB/s, {entries} entries")
    print(f"ratio on atom-3k: {theirs / seconds:.0f} times feedparser")


if __name__ == "__main__":
    main()
