"""A PostgreSQL server in a temporary folder, as Debian has it, with the settings of a small server.

with running_postgres() as postgres:
    postgres.url("wholefeed")
    postgres.restart()
    postgres.cpu_seconds()

It listens on loopback alone and trusts whoever asks. initdb and postgres refuse to run as root: then they run
as the user postgres.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.support.usage import cpu_seconds

_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 60.0
SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "256MB",
    "max_connections": "100",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "5min",
    "log_min_messages": "fatal",
}
"""PostgreSQL's defaults apply otherwise: a commit is on disk before it counts."""


class Postgres:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = int(free.getsockname()[1])

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self._port}/{database}"

    def run(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement outside of a transaction; return its rows."""
        import psycopg  # noqa: PLC0415 - an extra

        with psycopg.connect(self.url(database), autocommit=True) as db:
            cursor = db.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def cpu_seconds(self) -> float:
        """Return CPU seconds since the start; Linux only."""
        assert self._process is not None
        return cpu_seconds(self._process.pid)

    def restart(self) -> float:
        """Restart it as an administrator does; return the seconds away."""
        began = time.monotonic()
        self.stop()
        self.start()
        return time.monotonic() - began

    def start(self) -> None:
        places = [f"--port={self._port}", "-k", str(self._folder), "-D", str(self._data)]
        options = [f"--{name}={value}" for name, value in SETTINGS.items()]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_as_user(), f"{programs()}/postgres", *places, *options],
                cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + _START_SECONDS
        while not self._answers():
            if time.monotonic() > until or self._process.poll() is not None:
                raise RuntimeError(f"PostgreSQL did not start:\n{(self._folder / 'log').read_text()}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop it; open connections are cut."""
        if self._process is not None:
            command = [*_as_user(), f"{programs()}/pg_ctl", "stop", "-D", str(self._data), "-m", "fast"]
            subprocess.run(command, check=False, capture_output=True, cwd=self._folder)
            self._process.wait(_STOP_SECONDS)
            self._process = None

    def initialise(self) -> None:
        options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]
        command = [*_as_user(), f"{programs()}/initdb", "-D", str(self._data), *options]
        subprocess.run(command, check=True, capture_output=True, cwd=self._folder)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _answers(self) -> bool:
        import psycopg  # noqa: PLC0415 - an extra

        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


@contextlib.contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Create and start a server; remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="wholefeed-postgres-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if user := _user():
            os.chown(folder, user.pw_uid, user.pw_gid)
        postgres = Postgres(folder)
        postgres.initialise()
        postgres.start()
        try:
            yield postgres
        finally:
            postgres.stop()


def programs() -> str:
    """Return the paths of initdb and postgres, or empty: Debian leaves them out of PATH."""
    found = shutil.which("initdb")
    if found:
        return str(Path(found).parent)
    folders = [each for each in Path("/usr/lib/postgresql").glob("*/bin") if (each / "initdb").exists()]
    return str(max(folders, key=lambda each: float(each.parent.name), default=""))


def _user() -> pwd.struct_passwd | None:
    return None if os.geteuid() else pwd.getpwnam("postgres")


def _as_user() -> list[str]:
    user = _user()
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"] if user else []
