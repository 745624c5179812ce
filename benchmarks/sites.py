"""Cost of expensive files and pages of a site: `python -m benchmarks.sites`.

Each robots.txt (docs/faults.md row 145) is read as the proxy reads it, and a search (row 146) follows pages
that link to each other. Shown are MB of text, CPU seconds for each MB, and peak and remaining MB of memory.
"""

from __future__ import annotations

import pickle
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from protego import Protego

from benchmarks.support.report import Table, begin
from wholefeed.core.listing.finding import ListJob, look
from wholefeed.core.listing.lists import FeedEntry
from wholefeed.core.listing.page_reading import read_page
from wholefeed.fetch.robots import own_rules

_AGENT: Final = "wholefeed"
_BYTES: Final = 500 * 1024
_LINKS: Final = 19_000
_MOST_PAGES: Final = 4


def _lines(pattern: str, size: int) -> str:
    return "".join(pattern.format(number) for number in range(size // len(pattern)))[:size]


FILES: Final = {
    "many programs": _lines("User-agent: a{}\n", _BYTES // 2) + _lines("Disallow: /{}\n", _BYTES // 2),
    "many groups": _lines("User-agent: a{}\nDisallow: /\n", _BYTES),
    "one group again": _lines("User-agent: *\nDisallow: /a\n", _BYTES),
    "many rules": "User-agent: *\n" + _lines("Disallow: /{}\n", _BYTES),
    "rules that are kept": "User-agent: *\n" + _lines("Disallow: /*{}*$\n", 5000),
    "one rule": "User-agent: *\nDisallow: /" + "*a" * (_BYTES // 2),
    "no rules": "ab\n" * (_BYTES // 3),
    "CR only": "\r" * _BYTES,
    "NULs": "\0" * _BYTES,
}
PAGES: Final = {
    "long base": (f"<base href=http://a.example/{'y' * 900}/>", "<p><a href={0}/{1}/>{1}</a>"),
    "numbers": ("", "<p><a href=/{0}{1}/{1}/{1}/>{1}</a>"),
    "entries": ("", "<li><a href=/2018/post-{0}-{1}/>{1}</a>"),
}
"""The beginning of a page, and its link."""


def measured(job: Callable[[], object]) -> tuple[float, float, float]:
    """Return CPU seconds, peak MB and remaining MB; the function runs twice."""
    began = time.process_time()
    job()
    cpu_seconds = time.process_time() - began
    tracemalloc.start()
    kept = job()
    kept_bytes, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return cpu_seconds, peak_bytes / 1e6, kept_bytes / 1e6


def rules(text: str) -> Protego | None:
    group = own_rules(text, _AGENT)
    if group is None:
        return None
    read = Protego.parse(group)
    read.can_fetch("http://a.example/" + "a" * 2000, _AGENT)
    return read


def page(kind: str, number: int) -> tuple[int, bytes]:
    """Return the length of a page, and a worker's result for it."""
    base, row = PAGES[kind]
    own = "".join(f"<li><a href=/2018/post-{each}/>{each}</a>" for each in range(5)) if number == 1 else ""
    more = own + "".join(row.format(number, each) for each in range(_LINKS))
    body = f"{base}<a rel=next href=http://a.example/page/{number + 1}/>Older</a><ul>{more}</ul>".encode()
    url = f"http://a.example/page/{number}/" if number > 1 else "http://a.example/"
    return len(body), pickle.dumps(read_page(body, url, "text/html"))


def searched(pages: Sequence[bytes]) -> int:
    """Search pages for a list; return the number of requests."""
    entries = tuple(
        FeedEntry(link=f"http://a.example/2018/post-{each}/", title=str(each), at=1e9 - 86_400 * each)
        for each in range(5)
    )
    job = ListJob(
        feed_url="http://a.example/feed",
        home_urls=("http://a.example/",),
        entries=entries,
        site_of=lambda url: urlsplit(url).netloc,
        now=1.1e9,
    )
    looking, asked = look(job), 0
    next(looking)
    try:
        for each in pages:
            asked += 1
            looking.send(pickle.loads(each))
    except StopIteration:
        pass
    return asked


def measure_sites() -> None:
    table = Table("", "MB", "s/MB", "peak MB", "kept MB", first_width=56)
    for name, text in FILES.items():
        size = len(text) / 1e6
        cpu_seconds, peak, kept = measured(partial(rules, text))
        cells = (f"{size:.2f}", f"{cpu_seconds / size:.2f}", f"{peak:.1f}", f"{kept:.2f}")
        table.row(f"145 robots.txt, {name}", *cells)
    for kind in PAGES:
        began = time.process_time()
        made = [page(kind, number) for number in range(1, _MOST_PAGES + 1)]
        reading = time.process_time() - began
        pages = [each[1] for each in made]
        cpu_seconds, peak, kept = measured(partial(searched, pages))
        asked, all_size = searched(pages), sum(size for size, _ in made) / 1e6
        size = sum(size for size, _ in made[:asked]) / 1e6
        cells = (
            f"{size:.2f}",
            f"{reading / all_size + cpu_seconds / size:.2f}",
            f"{peak:.1f}",
            f"{kept:.2f}",
        )
        table.row(f"146 {asked} pages of links, {kind}", *cells)


def main() -> None:
    begin()
    measure_sites()


if __name__ == "__main__":
    main()
