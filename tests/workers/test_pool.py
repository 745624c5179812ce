"""wholefeed.workers.pool: workers start on demand, end, and return the same results as threads."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

import pytest
from structlog.testing import capture_logs

from tests.patching import set_constant
from tests.workers.samples import BODIES, a_sender, long_work
from wholefeed.core.compose.reading import EntryText, show_entries
from wholefeed.core.compose.remembering import ReplacedDocument, remember_copies
from wholefeed.core.facts import Stored
from wholefeed.core.jobs import Part, ReadDocument, compose, read_again, read_document, render
from wholefeed.core.model import ATOM_NS, Family
from wholefeed.core.parse.limits import ParseError
from wholefeed.errors import OverloadedError, WorkError, WorkTooLargeError, WorkTooLongError
from wholefeed.workers import child, pool
from wholefeed.workers.pool import INLINE_BYTES, START_BYTES, THREAD_BYTES, Workers

SMALL, NEARBY, MIDDLE, LARGE = INLINE_BYTES, THREAD_BYTES - 1, THREAD_BYTES, START_BYTES
BODY = BODIES["atom"]
PATIENCE_SECONDS = 300


def is_running(pid: int) -> bool:
    """Whether a process runs and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def open_files() -> set[str]:
    """This process's open pipes, by number."""
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.add(str(each.readlink()))
    return found


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def opened(limit: int = 1, **settings: Any) -> AsyncIterator[Workers]:
    """Workers that leave nothing behind."""
    before = open_files()
    workers = Workers(limit, **({"start_bytes": 0} | settings))
    pids: list[int] = []
    try:
        yield workers
        pids = workers.pids
    finally:
        await workers.close()
        assert workers.pids == []
        assert not [pid for pid in pids if exists(pid)], "neither running nor a zombie"
        assert {each for each in open_files() - before if each.startswith("pipe:")} == set()


async def read(workers: Workers, body: bytes = BODY, *, size: int = LARGE) -> ReadDocument:
    return await workers.run(size, read_document, body, a_sender(), max_depth=256)


async def stopped(workers: Workers) -> int:
    """The only worker, stopped: it does not do its next job."""
    await read(workers)
    (pid,) = workers.pids
    os.kill(pid, signal.SIGSTOP)
    return pid


async def test_a_job_does_the_same_in_a_worker() -> None:
    """For any document the result does not show whether a worker did it."""
    async with opened() as workers:
        for name, body in BODIES.items():
            sender = a_sender(name)
            stored = Stored(body, sender.url, sender.media_type)
            here = read_document(body, sender, max_depth=256, is_subscription=True)
            parts, style = [Part(stored, (0, 1)), Part(stored, None)], compose(stored).style
            replaced = ReplacedDocument(document=stored, present={}, fetched_at=2e9, next_number=1)
            there = await workers.run(LARGE, read_document, body, sender, max_depth=256, is_subscription=True)
            assert there == here, name
            assert [*there.facts.entries] == [*here.facts.entries]
            assert await workers.run(LARGE, read_again, stored) == read_again(stored)
            composed = await workers.run(LARGE, compose, stored, here.facts.tombstones)
            assert composed == compose(stored, here.facts.tombstones)
            assert await workers.run(LARGE, render, parts, style) == render(parts, style)
            assert await workers.run(LARGE, remember_copies, replaced) == remember_copies(replaced)
        assert len(workers.pids) == 1


ENTRY = EntryText(
    b"<entry><title>A</title><content type='html'>&lt;p>x&lt;script></content></entry>", is_cut=False
)


@pytest.mark.parametrize("limit", [0, 1])
async def test_what_is_shown_to_people_is_made_in_a_process_however_small(limit: int) -> None:
    """docs/faults.md row 119: the process bounds its time; without processes a thread does it."""
    shown = partial(show_entries, [ENTRY], Family.ATOM, namespace=ATOM_NS, base="http://a.test/")
    async with opened(limit, start_bytes=START_BYTES) as workers:
        there = await workers.run_briefly(1.0, shown.func, *shown.args, **shown.keywords)
        assert there == shown()
        assert there[0].content == "<p>x</p>"
        assert len(workers.pids) == limit


@pytest.mark.fault("109")
async def test_a_worker_is_given_no_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/faults.md row 109: a worker's environment has only the C library's and loader's variables."""
    for name in ("WHOLEFEED_SERVER_ACCESS_TOKEN", "WHOLEFEED_STORE_URL", "PGPASSWORD", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "a-secret")
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    async with opened() as workers:
        await read(workers)
        (pid,) = workers.pids
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"a-secret" not in environment
    assert b"MALLOC_ARENA_MAX=2" in environment.split(b"\0")


async def test_what_is_no_feed_is_refused_as_the_parser_does() -> None:
    """The same error as in a thread; the worker goes on."""
    async with opened() as workers:
        for _ in range(2):
            with pytest.raises(ParseError, match="expected a feed, got HTML") as caught:
                await read(workers, b"<html/>")
            assert caught.value.slug == "not-a-feed"
        assert len(workers.pids) == 1


@pytest.mark.parametrize(
    ("settings", "sizes", "started"),
    [
        ({}, [SMALL, MIDDLE], [0, 1]),
        ({"start_bytes": 3 * MIDDLE}, [MIDDLE] * 3, [0, 0, 1]),
        ({"start_bytes": 2 * MIDDLE, "idle_seconds": 0}, [MIDDLE] * 3, [0, 0, 0]),
        ({"limit": 0}, [MIDDLE, LARGE], [0, 0]),
    ],
    ids=["needed", "enough lately", "long ago", "none"],
)
async def test_a_worker_is_started_for_enough_work_only(
    settings: dict[str, Any], sizes: list[int], started: list[int]
) -> None:
    """Threads read small documents. Middle-sized ones start a worker only in a row, within a worker's idle
    time."""
    async with opened(**({"limit": 4} | settings)) as workers:
        for size, count in zip(sizes, started, strict=True):
            assert (await read(workers, size=size)).facts.entries
            assert len(workers.pids) == count


async def test_what_is_little_larger_waits_for_one_thread_while_little_waits_there() -> None:
    """A trip to a running worker costs more than a short wait; in a long queue, it takes a share."""
    async with opened(1, start_bytes=3 * NEARBY) as workers:
        await read(workers, size=LARGE)
        for count, at_work in ((2, 0), (3, 1)):
            reading = [asyncio.create_task(read(workers, size=NEARBY)) for _ in range(count)]
            await asyncio.sleep(0)  # until each has been handed over
            assert workers.busy == at_work
            for document in await asyncio.gather(*reading):
                assert document.facts.entries
            names = [each.name for each in threading.enumerate()]
            assert sum(name.startswith("documents") for name in names) == 1


async def test_a_worker_that_has_nothing_to_do_is_ended() -> None:
    """A process at rest is one process; the next document finds a new worker."""
    async with opened(1, idle_seconds=0.05) as workers:
        await read(workers)
        (first,) = workers.pids
        await until(lambda: not workers.pids)
        await until(lambda: not exists(first))
        assert (await read(workers)).facts.entries
        assert workers.pids != [first]


async def test_there_are_never_more_workers_than_allowed_and_none_waits_for_ever() -> None:
    """Without a free worker, callers wait and are served in order of arrival."""
    done: list[int] = []
    most = 0

    async def one(number: int) -> None:
        nonlocal most
        await read(workers)
        most = max(most, len(workers.pids))
        done.append(number)

    async with opened(1) as workers:
        await asyncio.gather(*(one(number) for number in range(8)))
        assert done == list(range(8))
    done.clear()
    async with opened(2) as workers:
        await asyncio.gather(*(one(number) for number in range(8)))
    assert most == 2


async def test_one_more_worker_is_started_for_more_work_at_hand_only() -> None:
    """A few small documents at once share a worker; two large ones have one each."""
    async with opened(2, start_bytes=10 * MIDDLE) as workers:
        await read(workers, size=10 * MIDDLE)
        await asyncio.gather(*(read(workers, size=MIDDLE) for _ in range(4)))
        assert len(workers.pids) == 1
        await asyncio.gather(*(read(workers, long_work(1), size=10 * MIDDLE) for _ in range(2)))
        assert len(workers.pids) == 2


async def test_a_long_job_does_not_keep_smaller_documents_waiting() -> None:
    """With all workers at long jobs, a thread reads middle-sized documents."""
    async with opened(1, start_bytes=LARGE) as workers:
        pid = await stopped(workers)
        long = asyncio.create_task(read(workers))
        await until(lambda: workers.busy)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert (await read(workers, size=MIDDLE)).facts.entries
        os.kill(pid, signal.SIGCONT)
        assert (await long).facts.entries


@pytest.mark.parametrize("body", [BODY, long_work(1)], ids=["sent", "being sent"])
async def test_a_caller_who_gives_up_takes_the_worker_with_it(body: bytes) -> None:
    """No worker goes on for a caller who left; the next caller gets a new one."""
    async with opened() as workers:
        pid = await stopped(workers)
        first = asyncio.create_task(read(workers, body))
        await until(lambda: workers.busy)
        second = asyncio.create_task(read(workers))
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert (await second).facts.entries
        assert not is_running(pid)
        assert workers.pids != [pid]


async def test_a_caller_who_gives_up_waiting_leaves_the_worker_to_others() -> None:
    """The caller's turn had not come."""
    async with opened() as workers:
        pid = await stopped(workers)
        first, second, third = (asyncio.create_task(read(workers)) for _ in range(3))
        await until(lambda: workers.busy)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        os.kill(pid, signal.SIGCONT)
        assert (await first).facts.entries
        assert (await third).facts.entries
        assert workers.pids == [pid]


async def test_a_caller_may_give_up_at_any_moment() -> None:
    """At any moment, the workers work on, and are as many as before."""
    async with opened(2) as workers:
        for rounds in range(30):
            tasks = [asyncio.create_task(read(workers)) for _ in range(4)]
            for _ in range(rounds):
                await asyncio.sleep(0)
            if rounds % 3 == 0:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            tasks[rounds % 4].cancel()
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                assert isinstance(outcome, ReadDocument | asyncio.CancelledError)
            await until(lambda: not workers.busy)
            assert len(workers.pids) <= 2


def cpu_ticks(pid: int) -> int:
    """Ticks of a process's CPU time."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


async def at_work(workers: Workers) -> tuple[asyncio.Task[ReadDocument], int]:
    """A document in the middle of being read, and its process."""
    await read(workers)
    (pid,) = workers.pids
    before = cpu_ticks(pid)
    doing = asyncio.create_task(read(workers, long_work(12)))
    await until(lambda: cpu_ticks(pid) > before + 10)
    return doing, pid


async def test_a_worker_that_dies_costs_its_own_document_alone() -> None:
    """The error tells the worker's end and its output: a crash in C leaves a traceback."""
    async with opened() as workers:
        doing, pid = await at_work(workers)
        os.kill(pid, signal.SIGSEGV)
        with pytest.raises(WorkError, match=r"(?s)its end \(signal 11\).*_outcome") as caught:
            await doing
        assert (caught.value.slug, caught.value.answer_status) == ("work-failed", 500)
        assert (await read(workers)).facts.entries


async def test_a_reply_that_cannot_be_taken_is_nobody_else_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error such as lack of memory, the pipe's rest is not read as another job's reply."""
    real = child.read_frame
    left = 1

    def read_frame(stream: IO[bytes]) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            raise MemoryError
        return real(stream)

    async with opened() as workers:
        await read(workers)
        monkeypatch.setattr(pool, "read_frame", read_frame)
        left = 1
        with pytest.raises(WorkError, match="MemoryError"):
            await read(workers, BODIES["rss"])
        for name in ("atom", "json", "atom"):
            found = await workers.run(LARGE, read_document, BODIES[name], a_sender(name), max_depth=256)
            assert found == read_document(BODIES[name], a_sender(name), max_depth=256)


async def test_a_worker_that_died_while_it_had_nothing_to_do_costs_nothing() -> None:
    """The next document gets a new worker, and nobody notices."""
    async with opened() as workers:
        await read(workers)
        (pid,) = workers.pids
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not is_running(pid))
        assert (await read(workers)).facts.entries


async def test_a_worker_that_dies_before_it_begins_costs_nothing() -> None:
    """A worker killed at rest may get a job before its end is noticed."""
    async with opened() as workers:
        pid = await stopped(workers)
        doing = asyncio.create_task(read(workers))
        await asyncio.sleep(0.2)
        os.kill(pid, signal.SIGKILL)
        assert (await doing).facts.entries


async def test_a_worker_is_not_interrupted_with_its_server() -> None:
    """Ctrl-C in a terminal goes to every process there; the server decides the order of ends."""
    async with opened() as workers:
        await read(workers)
        (pid,) = workers.pids
        assert os.getsid(pid) == pid
        os.kill(pid, signal.SIGINT)
        await read(workers)
        assert workers.pids == [pid]


@pytest.mark.fault("84")
async def test_a_document_may_take_so_much_work_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit counts CPU time instead of the clock; the next document is read."""
    body = long_work(4)
    async with opened() as workers:
        await read(workers)
        monkeypatch.setattr(pool, "CPU_SECONDS", 0.1)
        with pytest.raises(WorkTooLongError, match=r"at most 0.1 s of work") as caught:
            await read(workers, body)
        assert (caught.value.slug, caught.value.answer_status) == ("too-costly", 422)
        monkeypatch.undo()
        assert (await read(workers)).facts.entries


@pytest.mark.fault("122")
async def test_a_large_document_waits_for_memory_and_ends_who_has_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Row 122: an idle worker gives its memory back; an existing one then takes the document."""
    free_bytes = [1 << 30]
    monkeypatch.setattr(pool, "free_memory_bytes", lambda: free_bytes[0])
    async with opened() as workers:
        await read(workers)
        (pid,) = workers.pids
        free_bytes[0] = LARGE
        reading = asyncio.create_task(read(workers))
        await until(lambda: not exists(pid))
        assert not reading.done()
        free_bytes[0] = 1 << 30
        assert (await reading).facts.entries


@pytest.mark.fault("122")
@pytest.mark.parametrize("limit", [0, 1])
async def test_a_large_document_does_not_wait_for_memory_for_ever(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Row 122: it is refused, in a thread as well; smaller ones are read meanwhile."""
    set_constant(monkeypatch, "ROOM_SECONDS", 0.1)
    monkeypatch.setattr(pool, "free_memory_bytes", lambda: 5 * LARGE)
    async with opened(limit) as workers:
        with pytest.raises(WorkTooLargeError, match="29 MiB of memory for a document, got 5") as caught:
            await read(workers)
        assert (caught.value.slug, caught.value.answer_status) == ("memory-short", 503)
        assert (await read(workers, size=MIDDLE)).facts.entries


async def test_closing_waits_for_no_work() -> None:
    """SIGTERM of the server must not wait for a document; waiting callers get the reason."""
    async with opened(1) as workers:
        pid = await stopped(workers)
        tasks = [asyncio.create_task(read(workers)) for _ in range(3)]
        await until(lambda: workers.busy)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await workers.close()
        assert not exists(pid)
        for each in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(each, OverloadedError)
            assert each.slug == "shutting-down"
        with pytest.raises(OverloadedError):
            await read(workers)


async def test_closing_while_a_worker_starts_leaves_none_behind() -> None:
    """At any moment of its start."""
    for rounds in range(12):
        async with opened(2) as workers:
            tasks = [asyncio.create_task(read(workers)) for _ in range(2)]
            for _ in range(rounds):
                await asyncio.sleep(0.002)
            await workers.close()
            for each in await asyncio.gather(*tasks, return_exceptions=True):
                assert isinstance(each, ReadDocument | OverloadedError), each


@pytest.mark.parametrize(
    ("target", "value", "reason"),
    [
        ("wholefeed.workers.pool.BOOT", "raise SystemExit(3)", "its end"),
        ("sys.executable", "/nowhere/python", "No such file"),
    ],
)
async def test_where_no_worker_can_be_started_threads_do_the_work(
    monkeypatch: pytest.MonkeyPatch, target: str, value: str, reason: str
) -> None:
    """A broken installation, an upgrade that removed this Python, or a limit on processes makes documents
    slower, not unreadable; the log says so."""
    monkeypatch.setattr(target, value)
    with capture_logs() as told:
        async with opened(1) as workers:
            for _ in range(3):
                assert (await read(workers)).facts.entries
    (one,) = told  # it is not tried again for each document
    assert one["event"] == "worker.unstarted"
    assert reason in one["reason"]


async def test_a_program_that_has_no_python_of_its_own_gets_no_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Frozen into one file it would start itself."""
    monkeypatch.setattr("sys.frozen", True, raising=False)
    async with opened(1) as workers:
        assert (await read(workers)).facts.entries
        assert workers.pids == []


async def test_an_error_of_a_job_is_told_with_its_place() -> None:
    """The log shows the place of our own fault."""
    async with opened() as workers:
        with pytest.raises(WorkError, match=r"(?s)expected a worker to do read_document.*TypeError"):
            await workers.run(LARGE, read_document, 1, a_sender(), max_depth=256)  # type: ignore[arg-type]
        assert (await read(workers)).facts.entries
