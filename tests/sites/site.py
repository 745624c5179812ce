"""A site in a folder: what it publishes, what it answers, and the truth about its posts."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from tests.generators import Generator

URL: Final = "http://site.invalid"
"""Stands in the files for the URL at which the site is served."""
TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".xml": "application/xml",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
META: Final = re.compile(
    r"""<meta property="?((?:og|article):\w+)"? content=(?:"([^"]*)"|'([^']*)'|([^\s>]+))"""
)
"""Quoted or not: sites are minified, too."""


class Published(NamedTuple):
    """A post, as its own page has it."""

    title: str
    date: datetime


class Found(NamedTuple):
    """What is answered with 200."""

    content_type: str
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Site:
    """What was built. Paths are those of URLs: `/` in front, percent-encoded, below the site's host."""

    name: str
    kind: str
    """What its layout is like, and in whose manner."""
    generator: str
    """Its name; empty: nothing but these tests made it."""
    folder: Path
    """`/x/` is `x/index.html` in it; a query that counts stands in a file's name, `index.html?page=2`."""
    feed_path: str
    list_pages: tuple[str, ...]
    """The pages of the shortest list that has all posts; none: there is no list."""
    tag: str
    """The feed has the posts with this tag alone; empty: it has all."""
    answers_all: bool
    """Whether each path that is not there answers 200 with the front page."""

    @property
    def has_list(self) -> bool:
        return bool(self.list_pages)

    @cached_property
    def truth(self) -> Mapping[str, Published]:
        """The posts that the feed would have if it were whole, by their paths, newest first."""
        found = dict(_posts(self.folder, self.tag))
        return dict(sorted(found.items(), key=lambda each: each[1].date, reverse=True))

    def get(self, target: str, url: str = URL) -> Found | str | None:
        """Return what a path with its query answers, or a path that it redirects to; None: 404."""
        path, _, query = target.partition("?")
        file = self.folder / unquote(path).lstrip("/")
        if file.is_dir() and not path.endswith("/"):
            return f"{path}/"
        if file.is_dir():
            file /= "index.html"
        if query and (asked := file.with_name(f"{file.name}?{query}")).exists():
            return _read(asked, url)
        if not file.exists() and self.answers_all:
            file = self.folder / "index.html"
        return _read(file, url) if file.exists() else None


def _read(file: Path, url: str) -> Found:
    suffix = Path(file.name.partition("?")[0]).suffix
    return Found(TYPES.get(suffix, TYPES[".html"]), file.read_bytes().replace(URL.encode(), url.encode()))


def _posts(folder: Path, tag: str) -> Iterator[tuple[str, Published]]:
    """Find the pages that say that they are articles (https://ogp.me/#type_article)."""
    for file in folder.rglob("*.html"):
        metas = META.findall(file.read_text("utf-8"))
        found = [(name, html.unescape("".join(texts))) for name, *texts in metas]
        said = dict(found)
        if said.get("og:type") == "article" and (not tag or ("article:tag", tag) in found):
            date = datetime.fromisoformat(said["article:published_time"])
            yield path_of(folder, file), Published(said["og:title"], date)


def path_of(folder: Path, file: Path) -> str:
    """Return the path at which a file of a site is answered."""
    name, _, query = file.relative_to(folder).as_posix().partition("?")
    path = quote("/" + re.sub(r"(^|/)index\.html$", r"\1", name), safe="/:@!$&'()*+,;=~")
    return f"{path}?{query}" if query else path


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a site is made."""

    kind: str
    feed_path: str
    lists: tuple[str, ...] = ()
    """Patterns of the files of its list, below the folder."""
    make: Callable[[Path], None]
    """Writes the sources, or the whole site where no generator makes it."""
    generator: Generator | None = None
    path: str = ""
    """Of the site on its host."""
    url: str = URL
    """What the generator is told."""
    tag: str = ""
    answers_all: bool = False

    def site(self, name: str, folder: Path) -> Site:
        """Return the site that was built in a folder."""
        files = {file for pattern in self.lists for file in folder.glob(pattern)}
        pages = sorted(path_of(folder, file) for file in files if not _leads_elsewhere(file))
        pages.sort(key=lambda path: [int(number) for number in re.findall(r"\d+", path)])
        return Site(
            name=name,
            kind=self.kind,
            generator=self.generator.name if self.generator else "",
            folder=folder,
            feed_path=self.feed_path,
            list_pages=tuple(pages),
            tag=self.tag,
            answers_all=self.answers_all,
        )


def _leads_elsewhere(file: Path) -> bool:
    """Whether it is one of Hugo's aliases: `/page/1/` leads to `/`."""
    return b'http-equiv="refresh"' in file.read_bytes() or b"http-equiv=refresh" in file.read_bytes()
