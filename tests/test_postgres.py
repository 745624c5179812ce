"""The servers of tests on PostgreSQL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.postgres import Cluster, a_cluster, what_lacks

ROOT = Path(__file__).parent.parent
GONE_SECONDS = 20.0

needs_own_server = pytest.mark.skipif(bool(what_lacks(is_own=True)), reason=what_lacks(is_own=True))

KILLED = """
import os, signal
from tests.postgres import a_cluster
with a_cluster() as cluster:
    print(cluster.folder, cluster.port, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_database_is_gone_afterwards(shared_postgres: Cluster) -> None:
    """A database is removed at its end, also with a client connected."""
    import psycopg  # noqa: PLC0415 - an extra

    with shared_postgres.database() as url:
        db = psycopg.connect(url)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
    db.close()


@needs_own_server
def test_a_server_stops_and_starts_again_with_what_it_had() -> None:
    """A test may crash its own server: committed rows are there when it restarts, on the same port."""
    with a_cluster() as cluster:
        cluster.run("CREATE TABLE kept (a bigint)")
        before = cluster.url()
        cluster.restart("immediate")

        assert cluster.url() == before
        assert cluster.run("SELECT count(*) FROM kept") == [(0,)]
        folder = cluster.folder
    assert folder is not None
    assert not folder.exists()


@needs_own_server
def test_a_server_ends_with_a_process_that_is_killed() -> None:
    """A test run that is killed hard leaves neither a server nor its folder behind."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'proxy'}"}
    ran = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, env=environment, check=False)
    assert ran.returncode == -signal.SIGKILL, ran.stderr.decode()
    folder = Path(ran.stdout.decode().split()[0])

    until = time.monotonic() + GONE_SECONDS
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not folder.exists()
