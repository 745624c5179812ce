"""PostgreSQL for tests: a cluster in a temporary folder, which ends with the process that started it.

    with a_cluster() as cluster:            # the fixture `postgres` is one that all tests of a process share
        with cluster.database() as url:     # the fixture `postgres_url` is one with wholefeed's tables
            ...
        cluster.restart("immediate")        # only a cluster of one's own

It listens on a socket in its folder and on a port of 127.0.0.1, trusts whoever asks, and forgets what it was
told when the machine stops (fsync = off). initdb and postgres refuse to run as root: then they run as another
user. WHOLEFEED_TEST_POSTGRES_URL names a server that is there already, of which only databases of its own are
used.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    import psycopg

NONE_HERE: Final = "needs PostgreSQL"
START_SECONDS: Final = 300.0
STOP_SECONDS: Final = 300.0

if find_spec("psycopg_pool") is not None:  # which reads a file, and nothing may do so on an event loop
    import psycopg_pool as _pool  # noqa: F401

_NAMED: Final = os.environ.get("WHOLEFEED_TEST_POSTGRES_URL", "")
_INITDB: Final = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
_ENGLISH: Final = ("--locale-provider=icu", "--icu-locale=en-US")
"""A collation unlike byte order, so that a test notices code that relies on byte order."""
_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "200",
    "autovacuum": "off",
    "deadlock_timeout": "100ms",
    "log_min_messages": "warning",
}
# The server's parent is this shell. When its input ends before the server does, whoever started it was
# killed: it ends the server and removes the folder.
_GUARD: Final = """
exec 3<&0
"$@" </dev/null 3<&- & server=$!
{ read -r _ <&3; : >orphaned; kill -QUIT $server; } & reader=$!
wait $server
status=$?
kill $reader 2>/dev/null
if [ -e orphaned ]; then cd / && rm -rf "$OLDPWD"; fi
exit $status
"""
_numbers = count(1)

on_both = pytest.mark.parametrize("store_url", ["SQLite", "PostgreSQL"], indirect=True)
"""Run a test of the whole proxy on each engine."""


def what_lacks(*, is_own: bool = False) -> str:
    """Why there is no PostgreSQL to test with; empty where there is.

    Args:
        is_own: Whether a server is wanted that the test may stop: one that is there already does not do.
    """
    if find_spec("psycopg") is None:
        return f"{NONE_HERE}'s driver: make setup"
    if _NAMED and not is_own:
        return ""
    if not programs():
        return f"{NONE_HERE}: apt-get install --no-install-recommends postgresql"
    if not server_user():
        return f"{NONE_HERE}, which does not run as root, and there is no other user to run it"
    return ""


class Cluster:
    """A PostgreSQL server: started here, or named by the environment."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        """Its folder; None for an existing server."""
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        """The URL of a database of it."""
        if self.folder is None:
            return urlsplit(_NAMED)._replace(path=f"/{database}").geturl()
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    @contextmanager
    def database(self, template: str = "template1", options: str = "") -> Iterator[str]:
        """Copy the template to a new database, give its URL, and remove it at the end."""
        name = f"wholefeed_test_{os.getpid()}_{next(_numbers)}"
        self._administer(f'CREATE DATABASE "{name}" TEMPLATE "{template}" {self._copied} {options}')
        try:
            yield self.url(name)
        finally:
            self._administer(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    @contextmanager
    def template(self) -> Iterator[str]:
        """Make a template database with wholefeed's tables; give its name."""
        from wholefeed.store.postgres_migrate import migrate_database  # noqa: PLC0415 - an extra

        with self.database() as url:
            asyncio.run(migrate_database(url))
            yield urlsplit(url).path[1:]

    @cached_property
    def _copied(self) -> str:
        """The copy strategy: from 15 on the default copies page by page, which takes twice as long."""
        return "STRATEGY FILE_COPY" if int(self.run("SHOW server_version_num")[0][0]) >= 150_000 else ""

    def run(self, sql: str, url: str = "") -> list[tuple[Any, ...]]:
        """Run one statement outside of a transaction, and return its rows."""
        import psycopg  # noqa: PLC0415 - an extra

        with psycopg.connect(url or self._administered(), autocommit=True) as db:
            cursor = db.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def _administer(self, sql: str) -> None:
        """Run one statement on a persistent connection: a new one takes 5 ms."""
        import psycopg  # noqa: PLC0415 - an extra

        try:
            self._administrator.execute(sql)
        except psycopg.OperationalError:  # a test has ended it
            self.let_go()
            self._administrator.execute(sql)

    def let_go(self) -> None:
        """Close the persistent connection."""
        if kept := self.__dict__.pop("_administrator", None):
            kept.close()

    @cached_property
    def _administrator(self) -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg  # noqa: PLC0415 - an extra

        return psycopg.connect(self._administered(), autocommit=True)

    def start(self) -> None:
        """Start it on its former port, or on a free one."""
        assert self.folder is not None
        self.port = self.port or _free_port()
        options = [f"--{name}={value}" for name, value in _SETTINGS.items()]
        places = [f"--port={self.port}", "-k", str(self.folder), "-D", str(self._data)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", _GUARD, "sh", *as_user(), programs() + "/postgres", *places, *options],
                cwd=self.folder, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._wait()

    def stop(self, mode: str = "fast") -> None:
        """Stop it: `smart` waits for clients, `fast` ends them, `immediate` is as a crash."""
        if self._process is None:
            return
        self.let_go()
        assert self.folder is not None
        command = [*as_user(), programs() + "/pg_ctl", "stop", "-D", str(self._data), "-m", mode]
        with suppress(subprocess.CalledProcessError):  # it has stopped by itself
            subprocess.run(command, check=True, capture_output=True, cwd=self.folder, timeout=STOP_SECONDS)
        self._process.wait(STOP_SECONDS)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process = None

    def restart(self, mode: str = "fast") -> None:
        """Stop it and start it on the same port."""
        self.stop(mode)
        self.start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Halt all of its processes: the kernel accepts connections, and nothing answers."""
        assert self.folder is not None
        parent = int((self._data / "postmaster.pid").read_text().split()[0])
        os.kill(parent, signal.SIGSTOP)  # first, so that there are no new ones
        children = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, check=False).stdout
        halted = [*map(int, children.split()), parent]
        for each in halted:
            os.kill(each, signal.SIGSTOP)
        try:
            yield
        finally:
            for each in halted:
                os.kill(each, signal.SIGCONT)

    @property
    def log(self) -> str:
        """The text of its log."""
        assert self.folder is not None
        return (self.folder / "log").read_text("utf-8", "replace")

    @property
    def _data(self) -> Path:
        assert self.folder is not None
        return self.folder / "data"

    def _administered(self) -> str:
        return _NAMED if self.folder is None else self.url()

    def _wait(self) -> None:
        import psycopg  # noqa: PLC0415 - an extra

        assert self._process is not None
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
            except psycopg.OperationalError:
                if time.monotonic() > until or self._process.poll() is not None:
                    raise RuntimeError(f"PostgreSQL did not start:\n{self.log}") from None
                time.sleep(0.02)
            else:
                return


@contextmanager
def a_cluster() -> Iterator[Cluster]:
    """Make and start a cluster; stop and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="wholefeed-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if user := server_user():
            os.chown(folder, user.pw_uid, user.pw_gid)
        cluster = Cluster(folder)
        _initialise(folder)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop("immediate")


@contextmanager
def shared_cluster() -> Iterator[Cluster]:
    """Give the environment's server, else a new cluster."""
    if _NAMED:
        named = Cluster(None)
        try:
            yield named
        finally:
            named.let_go()
        return
    with a_cluster() as cluster:
        yield cluster


def _initialise(folder: Path) -> None:
    command = [*as_user(), programs() + "/initdb", "-D", str(folder / "data"), *_INITDB]
    done = subprocess.run([*command, *_ENGLISH], capture_output=True, cwd=folder, check=False)
    if done.returncode:  # PostgreSQL before 15, or built without ICU, has no such provider
        shutil.rmtree(folder / "data", ignore_errors=True)
        done = subprocess.run(command, capture_output=True, cwd=folder, check=False)
    if done.returncode:
        raise RuntimeError(f"initdb failed:\n{done.stderr.decode()}")


def programs() -> str:
    """Paths of initdb and postgres; Debian leaves them out of PATH."""
    found = shutil.which("initdb")
    if found and shutil.which("postgres"):
        return str(Path(found).parent)
    folders = [each for each in Path("/usr/lib/postgresql").glob("*/bin") if (each / "initdb").exists()]
    return str(max(folders, key=lambda each: float(each.parent.name), default=""))


def server_user() -> pwd.struct_passwd | None:
    """The server's user: the tests' user, unless that is root."""
    if os.geteuid():
        return pwd.getpwuid(os.geteuid())
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    return None


def as_user() -> list[str]:
    """Prefix for a command that runs as the server's user."""
    user = server_user()
    if user is None or user.pw_uid == os.geteuid():
        return []
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
