"""Notices between replicas on one PostgreSQL, and lost connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from structlog.testing import capture_logs

from tests.feeds import publish_chain
from tests.origin import Origin
from tests.postgres import Cluster
from tests.replicas import replicas
from wholefeed.errors import OverloadedError
from wholefeed.store.postgres import BEAT_SECONDS, SILENT_SECONDS, Notices

pytest.importorskip("psycopg")

SEND = "SELECT pg_notify('wholefeed', %s)"
ENDED = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'wholefeed notices'"


class Told(list[str]):
    """Records a listener's notices, and lets a test wait for them."""

    def __init__(self) -> None:
        self._more = asyncio.Event()

    def __call__(self, words: str = "lost") -> None:
        self.append(words)
        self._more.set()

    async def are(self, count: int) -> list[str]:
        """Return the notices once there are this many."""
        async with asyncio.timeout(300):
            while len(self) < count:
                self._more.clear()
                await self._more.wait()
        return list(self)


async def sent(url: str, *payloads: str) -> None:
    """Send notices in one transaction."""
    async with await psycopg.AsyncConnection.connect(url) as db:
        for each in payloads:
            await db.execute(SEND, (each,))


async def asked_again_and_again(notices: Notices) -> None:
    while True:
        await notices.ask("SELECT 1")


async def test_all_are_told_what_one_sends(empty_postgres_url: str) -> None:
    """Each kind has its listeners, all of them are told, and the words may have spaces."""
    async with Notices.open(empty_postgres_url) as one, Notices.open(empty_postgres_url) as other:
        here, there, again, leases = Told(), Told(), Told(), Told()
        one.listen("drop", here)
        other.listen("drop", there)
        other.listen("drop", again)
        other.listen("lease", leases)
        await sent(empty_postgres_url, "drop 12 a", "unheard 1", "lease open a b")

        assert await leases.are(1) == ["open a b"]
        assert there == again == await here.are(1) == ["12 a"]


@pytest.mark.fault("100")
async def test_notices_that_make_no_sense_are_passed_over(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """docs/faults.md row 100: any client of the database may send notices. Senseless ones are not logged, and
    queries and good notices beside them work."""
    publish_chain(origin, archives=1)
    failures: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context["message"]))
    async with replicas(postgres_url, tmp_path) as (one, other):
        await one.whole(origin.url("/feed"))
        await other.whole(origin.url("/feed"))
        told = Told()
        one.store.store.engine.listen("last", told)
        with capture_logs() as lines:
            forged = ("drop x", "drop", "drop  a", f"drop {'9' * 5000} a", "drop \u0661 a", "lease", "host")
            asking = asyncio.gather(*(one.get(origin.url("/feed")) for _ in range(20)))
            await sent(postgres_url, *forged, *(f"drop x{number}" for number in range(500)), "last one")
            assert await told.are(1) == ["one"]
            assert {reply.status for reply in await asking} == {200}
            assert (await other.refreshed(origin.url("/feed"))).status == 200
        assert failures == []
        assert {line["log_level"] for line in lines} == {"info"}


async def test_queries_of_many_at_once_get_their_own_answers(empty_postgres_url: str) -> None:
    """Queries wait for the one under way, and a leaving client disturbs nobody."""
    async with Notices.open(empty_postgres_url) as notices:
        one = "SELECT CAST(:n AS bigint)"
        asked = [asyncio.create_task(notices.ask(one, {"n": each})) for each in range(20)]
        await asyncio.sleep(0)
        asked[0].cancel()
        asked[7].cancel()
        answers = await asyncio.gather(*asked, return_exceptions=True)

        got = [answer for answer in answers if not isinstance(answer, BaseException)]
        assert got == [[(each,)] for each in range(20) if each not in {0, 7}]


async def test_a_statement_that_fails_is_its_own_failure(empty_postgres_url: str) -> None:
    """The connection and later queries go on."""
    async with Notices.open(empty_postgres_url) as notices:
        failing = asyncio.create_task(notices.ask("SELECT 1 / 0"))
        fine = asyncio.create_task(notices.ask("SELECT NULL, 7"))

        with pytest.raises(psycopg.errors.DivisionByZero):
            await failing
        assert await fine == [(None, 7)]
        assert notices.is_listening


@pytest.mark.fault("108")
async def test_a_lost_connection_is_made_again(empty_postgres_url: str, shared_postgres: Cluster) -> None:
    """Listeners learn of the gap before later notices, and queries fail meanwhile."""
    with capture_logs() as logs:
        async with Notices.open(empty_postgres_url) as notices:
            told = Told()
            notices.listen("drop", told)
            notices.on_lost(told)
            ended = f"{ENDED} AND datname = '{urlsplit(empty_postgres_url).path[1:]}'"
            ending = asyncio.create_task(asyncio.to_thread(shared_postgres.run, ended))
            with pytest.raises((psycopg.Error, OverloadedError)):
                await asked_again_and_again(notices)
            _ = await ending
            assert await told.are(1) == ["lost"]
            assert notices.is_listening
            await sent(empty_postgres_url, "drop 1")
            assert await told.are(2) == ["lost", "1"]
    assert [each["event"] for each in logs] == ["notices.lost", "notices.resumed"]


@asynccontextmanager
async def a_wire(url: str) -> AsyncIterator[tuple[str, asyncio.Event]]:
    """A URL that reaches the database while the event is set, and then nothing."""
    is_open = asyncio.Event()
    is_open.set()
    parts = urlsplit(url)
    assert parts.port is not None
    tasks = set[asyncio.Task[None]]()
    writers = list[asyncio.StreamWriter]()

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            await is_open.wait()
            writer.write(data)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await is_open.wait()
        there, back = await asyncio.open_connection(parts.hostname, parts.port)
        writers.extend((writer, back))
        tasks.update({asyncio.create_task(pipe(reader, back)), asyncio.create_task(pipe(there, writer))})

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"postgresql://postgres@127.0.0.1:{port}{parts.path}", is_open
    finally:
        server.close()
        for each in tasks:
            each.cancel()
        for writer in writers:
            writer.close()


@pytest.mark.fault("108")
async def test_a_server_that_falls_silent_is_given_up(empty_postgres_url: str) -> None:
    """Silence without an error counts as a loss within seconds, and the engine connects again."""
    async with a_wire(empty_postgres_url) as (url, is_open), Notices.open(url) as notices:
        told = Told()
        notices.on_lost(told)
        is_open.clear()
        began = time.monotonic()
        with pytest.raises((psycopg.Error, OverloadedError)):
            await asked_again_and_again(notices)
        assert time.monotonic() - began < 3 * SILENT_SECONDS
        assert not notices.is_listening
        is_open.set()
        assert await told.are(1) == ["lost"]
        await notices.ask("SELECT 1")


async def test_the_end_does_not_wait_for_the_next_look(postgres_url: str) -> None:
    """A listener stops at once, without waiting for the next check of the server."""
    async with Notices.open(postgres_url):
        await asyncio.sleep(0.1)
        began = time.monotonic()
    assert time.monotonic() - began < BEAT_SECONDS / 2
