"""A real Redmine on loopback, where one is installed: Debian's package, on SQLite and WEBrick.

    apt-get install --no-install-recommends redmine redmine-sqlite ruby-webrick

It starts in a few seconds in a folder of its own, without news; changes are written into its database.
It listens on 127.0.0.1, and ends with the test run, even a killed one.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from demo.proxy_process import free_port
from tests.publishers.blog import Post

FILES: Final = Path("/usr/share/redmine")
START_SECONDS: Final = 300
NONE_HERE: Final = "no real Redmine here"
_DEPTH: Final = 9
"""More folders than above those of the instances: it leads to the root."""


def what_lacks() -> str | None:
    """Name the missing packages, or None."""
    servers = Path("/usr/share/rubygems-integration/all/gems").glob("webrick-*")
    missing = [
        name
        for name, is_there in (
            ("bundle", shutil.which("bundle") is not None),
            (str(FILES), (FILES / "config/environment.rb").is_file()),
            ("ruby-webrick", any(servers)),
        )
        if not is_there
    ]
    return f"{NONE_HERE}, for want of {', '.join(missing)}" if missing else None


class RealRedmine:
    """The site, with one project."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{port}"

    def publish(self, posts: Sequence[Post]) -> None:
        """Replace the news by a blog's posts."""
        rows = [(post.id, post.title, post.content, _written(post.published)) for post in posts]
        self._write("DELETE FROM news")
        with closing(self._database()) as database, database:
            database.executemany(
                "INSERT INTO news (id, project_id, author_id, title, description, created_on)"
                " SELECT ?, project.id, user.id, ?, ?, ? FROM projects project, users user"
                " WHERE project.identifier = 'some' AND user.login = 'admin'",
                rows,
            )

    def delete(self, *ids: int) -> None:
        for each in ids:
            self._write("DELETE FROM news WHERE id = ?", each)

    def show(self, entries: int) -> None:
        """Limit the entries of feeds."""
        self._write("DELETE FROM settings WHERE name = 'feeds_limit'")
        # What is cached counts until some setting is later than that.
        at = _written(time.time() + 1)
        self._write(
            "INSERT INTO settings (name, value, updated_on) VALUES ('feeds_limit', ?, ?)", entries, at
        )

    def _write(self, statement: str, *values: object) -> None:
        with closing(self._database()) as database, database:
            database.execute(statement, values)

    def _database(self) -> sqlite3.Connection:
        return sqlite3.connect(self.folder / "redmine.db", timeout=300)


@contextmanager
def running_redmine(folder: Path) -> Iterator[RealRedmine]:
    """Make a site in a folder and serve it."""
    for name in ("config", "files", "log", "public", "tmp"):
        (folder / name).mkdir()
    database = f"production:\n  adapter: sqlite3\n  database: {folder / 'redmine.db'}\n"
    (folder / "config/database.yml").write_text(database, "utf-8")
    (folder / "config/secret_key.txt").write_text("0" * 64, "utf-8")
    site = RealRedmine(folder, free_port(0))
    environment = {
        **os.environ,
        "RAILS_ENV": "production",
        "REDMINE_INSTANCE": f"{'../' * _DEPTH}{folder.resolve()}",
        "PORT": site.url.rpartition(":")[2],
    }
    program = Path(__file__).with_name("redmine.rb").resolve()
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            ["bundle", "exec", "rails", "runner", str(program)],
            cwd=FILES,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
    try:
        _wait(server, site)
        yield site
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(timeout=300)


def _wait(server: subprocess.Popen[bytes], site: RealRedmine) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(f"{site.url}/news.atom", timeout=START_SECONDS).close()
        except urllib.error.URLError:
            is_waited_for = server.poll() is None and time.monotonic() < end
            assert is_waited_for, (site.folder / "server.log").read_text()[-1000:]
            time.sleep(0.1)
        else:
            return


def _written(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
