"""The readers that are tried: how each is told to subscribe and to poll, and where it keeps what it has.

No mail leaves rss2email: it writes a maildir. What is only a parser (feedparser, podcastparser) keeps what it
read last.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import mailbox
import os
import sqlite3
import sys
import urllib.request
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, Final

import feedparser

from tests.readers.harness import Entry, Reader


def _rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


class Newsboat(Reader):
    """newsboat, run once from the command line as a cron job would."""

    name = "newsboat"
    programs = ("newsboat",)
    package = "newsboat"

    async def subscribe(self, url: str) -> None:
        (self.folder / "urls").write_text(url + "\n")
        (self.folder / "config").write_text("")
        await self.poll()

    async def poll(self) -> None:
        await self.run("newsboat", "-u", "urls", "-C", "config", "-c", "cache.db", "-x", "reload")

    async def entries(self) -> list[Entry]:
        rows = _rows(self.folder / "cache.db", "SELECT title, url, enclosure_url FROM rss_item")
        return [Entry(title, link, (enclosure,) if enclosure else ()) for title, link, enclosure in rows]

    async def unread(self) -> list[str]:
        """Return the titles of what nobody has read yet, the newest first, as it shows them."""
        query = "SELECT title FROM rss_item WHERE unread = 1 ORDER BY pubDate DESC, id DESC"
        return [title for (title,) in _rows(self.folder / "cache.db", query)]

    async def read_all(self) -> None:
        """Mark everything as read: what its key does, which needs a terminal."""
        with closing(sqlite3.connect(self.folder / "cache.db")) as connection, connection:
            connection.execute("UPDATE rss_item SET unread = 0")


class Sfeed(Reader):
    """sfeed_update: curl, a parser, and one file a feed."""

    name = "sfeed"
    programs = ("sfeed_update", "curl")
    package = "sfeed curl"
    settings = ""
    """What stands in sfeedrc beside the feed."""

    async def subscribe(self, url: str) -> None:
        (self.folder / "sfeedrc").write_text(
            f'sfeedpath="{self.folder}/feeds"\nfeeds() {{\n\tfeed "one" "{url}"\n}}\n{self.settings}'
        )
        await self.poll()

    async def poll(self) -> None:
        written = await self.run("sfeed_update", "sfeedrc")
        assert "FAIL" not in written, written

    async def entries(self) -> list[Entry]:
        lines = (self.folder / "feeds" / "one").read_text().splitlines()
        fields = [line.split("\t") for line in lines]
        return [Entry(each[1], each[2], (each[7],) if each[7] else ()) for each in fields]


class SfeedWithValidators(Sfeed):
    """sfeed_update with the `fetch` of docs/readers.md."""

    name = "sfeed with validators"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        page = (Path(__file__).parents[2] / "docs" / "readers.md").read_text("utf-8")
        begun = page.index("fetch() {")
        self.settings = page[begun : page.index("```", begun)]


class Rss2email(Reader):
    """r2e, writing a maildir instead of sending."""

    name = "rss2email"
    programs = ("r2e",)
    package = "rss2email"

    first_run: ClassVar[tuple[str, ...]] = ("run",)

    _CONFIG: Final = (
        "[DEFAULT]\nfrom = feeds@example.org\nto = reader@example.org\n"
        "email-protocol = maildir\nmaildir-path = {0}/mail\nmaildir-mailbox = feeds\n"
    )

    async def subscribe(self, url: str) -> None:
        (self.folder / "mail").mkdir()
        (self.folder / "config").write_text(self._CONFIG.format(self.folder))
        await self._r2e("add", "one", url)
        await self._r2e(*self.first_run)

    async def poll(self) -> None:
        written = await self._r2e("run")
        assert "[WARNING]" not in written, written
        assert "[ERROR]" not in written, written

    async def entries(self) -> list[Entry]:
        box = mailbox.Maildir(self.folder / "mail" / "feeds")
        return [Entry(str(mail["Subject"]), str(mail["X-RSS-URL"] or "")) for mail in box]

    async def _r2e(self, *arguments: str) -> str:
        return await self.run("r2e", "-c", "config", "-d", "data.json", *arguments)


class Rss2emailFromNowOn(Rss2email):
    """r2e, told at its first run to mail nothing of what is there."""

    name = "rss2email from now on"
    first_run = ("run", "--no-send")


class Gpodder(Reader):
    """gpo, the command line of gPodder, told to keep all episodes."""

    name = "gpodder"
    programs = ("gpo",)
    package = "gpodder"
    is_limited: ClassVar[bool] = False

    async def subscribe(self, url: str) -> None:
        if not self.is_limited:  # as `keep_all` does, in no time
            (self.folder / "Settings.json").write_text('{"limit": {"episodes": 0}}')
        written = await self._gpo("subscribe", url)
        assert "Successfully added" in written, written

    async def poll(self) -> None:
        await self._gpo("update")

    async def entries(self) -> list[Entry]:
        rows = _rows(self.folder / "Database", "SELECT title, link, url FROM episode")
        return [Entry(title, link, (url,)) for title, link, url in rows]

    async def keep_all(self) -> None:
        """Lift the limit of episodes."""
        await self._gpo("set", "limit.episodes", "0")

    async def download(self) -> list[bytes]:
        """Download all episodes; return what was downloaded."""
        await self._gpo("download")
        rows = _rows(
            self.folder / "Database",
            "SELECT podcast.download_folder, episode.download_filename FROM episode"
            " JOIN podcast ON podcast.id = podcast_id WHERE download_filename IS NOT NULL",
        )
        return [(self.folder / "Downloads" / folder / file).read_bytes() for folder, file in rows]

    async def _gpo(self, *arguments: str) -> str:
        return await self.run("gpo", *arguments, GPODDER_HOME=str(self.folder))


class GpodderAsInstalled(Gpodder):
    """gPodder with the limit that it comes with."""

    name = "gpodder as installed"
    is_limited = True


class InPython(Reader):
    """A reader that is a library: a few lines run it in an interpreter of its own."""

    modules: ClassVar[tuple[str, ...]]

    @classmethod
    def lacking(cls) -> str:
        missing = [name for name in cls.modules if importlib.util.find_spec(name) is None]
        return f"{', '.join(missing)} not installed (make setup)" if missing else ""

    async def python(self, source: str, *arguments: str) -> str:
        return await self.run(sys.executable, "-c", source, *arguments, PYTHONPATH=os.pathsep.join(sys.path))


class Lemon24(InPython):
    """lemon24/reader, the library that keeps a database."""

    name = "lemon24/reader"
    modules = ("reader", "sgmllib")

    # What it brings with it imports sgmllib, which neither it (3.26) nor today's feedparser asks for.

    _UPDATE: Final = """
import sys, reader
with reader.make_reader("reader.sqlite") as own:
    for url in sys.argv[1:]:
        own.add_feed(url)
    for feed in own.get_feeds():
        own.update_feed(feed)
"""

    async def subscribe(self, url: str) -> None:
        await self.python(self._UPDATE, url)

    async def poll(self) -> None:
        await self.python(self._UPDATE)

    async def entries(self) -> list[Entry]:
        rows = _rows(self.folder / "reader.sqlite", "SELECT title, link, enclosures FROM entries")
        return [
            Entry(title, link or "", tuple(each["href"] for each in json.loads(enclosures or "null") or ()))
            for title, link, enclosures in rows
        ]

    _CHANGE: Final = """
import sys, reader
with reader.make_reader("reader.sqlite") as own:
    own.change_feed_url(*sys.argv[1:])
"""

    async def unread(self) -> list[str]:
        """Return the titles of what nobody has read yet, the newest first."""
        query = "SELECT title FROM entries WHERE NOT read ORDER BY recent_sort DESC"
        return [title for (title,) in _rows(self.folder / "reader.sqlite", query)]

    async def read_all(self) -> None:
        """Mark everything as read, without the second that its own program takes to start."""
        with closing(sqlite3.connect(self.folder / "reader.sqlite")) as connection, connection:
            connection.execute("UPDATE entries SET read = 1")

    async def change(self, url: str, new_url: str) -> None:
        """Give the subscription another URL, and ask there."""
        await self.python(self._CHANGE, url, new_url)
        await self.poll()


class Feedparser(InPython):
    """feedparser, which asks with the validators that it is given."""

    name = "feedparser"
    modules = ("feedparser",)

    async def subscribe(self, url: str) -> None:
        self._url, self._validators, self._entries = url, dict[str, str](), list[Entry]()
        await self.poll()

    async def poll(self) -> None:
        read = await asyncio.to_thread(
            feedparser.parse, self._url, **self._validators, handlers=[urllib.request.ProxyHandler({})]
        )
        assert not read.bozo, read.bozo_exception
        if read.status == 304:
            return
        assert read.status == 200
        self._validators = {name: read[name] for name in ("etag", "modified") if name in read}
        self._entries = [
            Entry(each.title, each.get("link", ""), tuple(own.href for own in each.enclosures))
            for each in read.entries
        ]

    async def entries(self) -> list[Entry]:
        return self._entries


class Podcastparser(InPython):
    """podcastparser, which gPodder reads with, over the standard library's client."""

    name = "podcastparser"
    modules = ("podcastparser",)

    async def subscribe(self, url: str) -> None:
        self._url = url
        await self.poll()

    async def poll(self) -> None:
        self._entries = await asyncio.to_thread(self._read)

    async def entries(self) -> list[Entry]:
        return self._entries

    def _read(self) -> list[Entry]:
        import podcastparser  # noqa: PLC0415 - where it is not installed the test is skipped

        open_url = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
        with open_url(self._url, timeout=300) as response:
            body = response.read()
        found = podcastparser.parse(self._url, BytesIO(body))["episodes"]
        return [
            Entry(each["title"], each["link"], tuple(own["url"] for own in each["enclosures"]))
            for each in found
        ]
