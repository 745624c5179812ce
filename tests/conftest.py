"""Fixtures that every test has. No test reaches past 127.0.0.1 and ::1."""

from __future__ import annotations

import gc
import itertools
import logging
import resource
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from blockbuster import BlockBuster
from hypothesis import HealthCheck, settings
from pytest_aiohttp import AiohttpClient

from tests import generators, postgres, scratch
from tests.aged import Aged
from tests.origin import Origin
from tests.postgres import Cluster
from tests.publishers.real_wordpress import NONE_HERE, RealWordPress, running_wordpress, what_lacks
from tests.running import Proxy, StartProxy, a_config, started
from tests.sites.built import SITES, share_folder
from tests.sites.site import Site
from tests.sqlite_faults import Connections, SqliteFaults
from wholefeed.store import sqlite_file
from wholefeed.store.migrations import Migration

TESTS = Path(__file__).parent

# How long an example takes says how busy the machine is.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
WORTH_TELLING_SECONDS = 60.0
MOST_TOLD = 8
settings.register_profile("suite", UNHURRIED, max_examples=25)
settings.register_profile("exhaustive", UNHURRIED)


@pytest.fixture(scope="session")
def blocking_calls() -> BlockBuster:
    """A detector of the package's blocking calls; making it takes longer than many a test."""
    buster = BlockBuster("wholefeed")
    # What measures coverage locks its data in the middle of whatever runs: no call of the package.
    buster.functions["threading.Lock.acquire"].can_block_in("coverage/collector.py", {"lock_data"})
    # A command that runs in a thread of its own ends its loop with the threads of that.
    buster.functions["threading.Lock.acquire"].can_block_in("asyncio/runners.py", {"close"})
    return buster


@pytest.fixture(scope="session", autouse=True)
def ready_made_databases() -> Iterator[None]:
    """Make each kind of new database once for each process: dozens of migrations take most of a start."""
    create, made = sqlite_file.create_file, dict[tuple[Migration, ...], tuple[list[str], bytes]]()

    def copy(path: Path, migrations: Sequence[Migration]) -> list[str]:
        key = tuple(migrations)
        if key not in made:
            made[key] = create(path, migrations), path.read_bytes()
            return made[key][0]
        names, content = made[key]
        with sqlite_file.draft_of(path) as draft:
            draft.write_bytes(content)
        return names

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_file, "create_file", copy)
        yield


@pytest.fixture(autouse=True)
def no_blocking_call(blocking_calls: BlockBuster) -> Iterator[None]:
    """Fail a test if its event loop makes a blocking call in the package."""
    blocking_calls.activate()
    try:
        yield
    finally:
        blocking_calls.deactivate()


@pytest.fixture(autouse=True)
def fresh_logging() -> Iterator[None]:
    """Undo a test's changes to structlog and to the standard library's logging."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    if structlog.is_configured():
        structlog.reset_defaults()
        for module in [each for name, each in sys.modules.items() if name.startswith("wholefeed.")]:
            getattr(module, "log", SimpleNamespace()).__dict__.pop("bind", None)  # what structlog has cached
    structlog.contextvars.clear_contextvars()
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Connections:
    """The connections to a database opened after this."""
    made = Connections()
    monkeypatch.setattr(sqlite_file, "connect", made.connect)
    return made


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> SqliteFaults:
    """Faults in the statements of a database opened after this."""
    made = SqliteFaults()
    monkeypatch.setattr(sqlite_file, "connect", made.connect)
    return made


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    """A publisher under the test's control."""
    async with Origin() as origin:
        yield origin


@pytest.fixture
def step(request: pytest.FixtureRequest) -> int:
    """One in this many feeds of a corpus is taken."""
    return 1 if request.config.getoption("--exhaustive") else 6


@pytest.fixture
def store_url(request: pytest.FixtureRequest) -> str:
    """URL of the proxy's store, where a test is played `on_both`; empty: in a SQLite file."""
    if getattr(request, "param", "SQLite") == "SQLite":
        return ""
    found: str = request.getfixturevalue("postgres_url")
    return found


@pytest.fixture
def aged(tmp_path: Path, store_url: str, request: pytest.FixtureRequest) -> Aged:
    """A new store that can return to an earlier schema between two starts."""
    cluster: Cluster | None = request.getfixturevalue("shared_postgres") if store_url else None
    return Aged(tmp_path, store_url, cluster)


@pytest.fixture
def start(aiohttp_client: AiohttpClient, tmp_path: Path) -> StartProxy:
    """Starts the whole proxy, each with a store of its own, until the test has ended."""
    folders = itertools.chain([tmp_path], (tmp_path / str(number) for number in itertools.count(2)))

    async def start(**sections: Any) -> Proxy:
        folder = next(folders)
        folder.mkdir(exist_ok=True)
        return await started(aiohttp_client, a_config(folder, **sections))

    return start


@pytest.fixture
async def proxy(start: StartProxy, store_url: str) -> Proxy:
    """The whole proxy, with a store of its own."""
    return await start(store={"url": store_url})


@pytest.fixture(scope="session")
def installed_wordpress(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealWordPress]:
    """One site for all tests of a process."""
    if lack := what_lacks():
        pytest.skip(lack)
    with running_wordpress(tmp_path_factory.mktemp("wordpress")) as site:
        yield site


@pytest.fixture
def real_wordpress(
    installed_wordpress: RealWordPress, request: pytest.FixtureRequest
) -> Iterator[RealWordPress]:
    """A real WordPress with the simulator's 300 posts, if installed.

    Each test's changes are undone.
    """
    request.node.user_properties.append(("wordpress", "real"))
    yield installed_wordpress
    installed_wordpress.restore()


@pytest.fixture(scope="session")
def shared_postgres() -> Iterator[postgres.Cluster]:
    """One server for all tests of a process, started on demand."""
    if lack := postgres.what_lacks():
        pytest.skip(lack)
    with postgres.shared_cluster() as cluster:
        yield cluster


@pytest.fixture
def own_postgres() -> Iterator[postgres.Cluster]:
    """The test's own server, which it may stop."""
    if lack := postgres.what_lacks(is_own=True):
        pytest.skip(lack)
    with postgres.a_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def postgres_template(shared_postgres: postgres.Cluster) -> Iterator[str]:
    """The name of a template database with wholefeed's tables."""
    with shared_postgres.template() as name:
        yield name


@pytest.fixture
def empty_postgres_url(shared_postgres: postgres.Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """The test's own empty PostgreSQL database."""
    request.node.user_properties.append(("store", "PostgreSQL"))
    with shared_postgres.database() as url:
        yield url


@pytest.fixture
def postgres_url(
    shared_postgres: postgres.Cluster, postgres_template: str, request: pytest.FixtureRequest
) -> Iterator[str]:
    """The test's own PostgreSQL database, with wholefeed's tables."""
    request.node.user_properties.append(("store", "PostgreSQL"))
    with shared_postgres.database(postgres_template) as url:
        yield url


@pytest.fixture
def a_site(request: pytest.FixtureRequest) -> Callable[[str], Site]:
    """Builds a site by its name (`tests.sites`), if its generator is installed."""

    def a_site(name: str) -> Site:
        site = SITES[name]()
        if site.generator:
            request.node.user_properties.append(generators.RAN)
        return site

    return a_site


BEGAN = pytest.StashKey[tuple[float, float]]()
"""A test's beginning, in seconds of the processor and of the clock."""


def clocks() -> tuple[float, float]:
    """Processor seconds of this process and its ended children, and seconds of the clock."""
    mine, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return mine.ru_utime + mine.ru_stime + others.ru_utime + others.ru_stime, time.monotonic()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note a test's beginning."""
    item.stash[BEGAN] = clocks()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test that takes more of the processor than its mark allows."""
    mark = item.get_closest_marker("cpu")
    if mark is None:
        return (yield)
    (seconds,) = mark.args

    def fail(*_: object) -> None:
        pytest.fail(f"expected at most {seconds} s of the processor")

    before = signal.signal(signal.SIGPROF, fail)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report a test's cost with its end."""
    report = yield
    if call.when == "teardown" and BEGAN in item.stash:
        (cpu, wall), (cpu_before, wall_before) = clocks(), item.stash[BEGAN]
        report.user_properties.append(("took", (cpu - cpu_before, wall - wall_before)))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the tests' cost, and how many ran against real programs, or could not."""
    taken: dict[str, tuple[float, float]] = {}
    for report in terminalreporter.getreports(""):
        for name, took in getattr(report, "user_properties", ()):
            if name == "took":
                folder = "/".join(report.nodeid.split("/")[:2]).partition("::")[0]
                cpu, wall = taken.get(folder, (0.0, 0.0))
                taken[folder] = cpu + took[0], wall + took[1]
    if sum(wall for _, wall in taken.values()) > WORTH_TELLING_SECONDS:
        listed = sorted(taken.items(), key=lambda each: -each[1][0])[:MOST_TOLD]
        text = ", ".join(f"{folder} {cpu:.0f}+{max(0, wall - cpu):.0f}" for folder, (cpu, wall) in listed)
        terminalreporter.write_line(f"seconds of the processor + of waiting: {text}")
    for mark, lacking, said in (
        (("wordpress", "real"), NONE_HERE, "a real WordPress: {} tests asked it, {} skipped"),
        (("store", "PostgreSQL"), postgres.NONE_HERE, "PostgreSQL: {} tests ran on it, {} skipped"),
        (generators.RAN, generators.NONE_HERE, "generators of sites: {} tests ran one, {} skipped"),
    ):
        asked = [
            report
            for outcome in ("passed", "failed", "xfailed")
            for report in terminalreporter.getreports(outcome)
            if report.when == "call"
            and (mark in map(tuple, report.user_properties) or f"[{mark[1]}" in report.nodeid)
        ]
        skipped = [
            report.longrepr[2].removeprefix("Skipped: ")
            for report in terminalreporter.getreports("skipped")
            if isinstance(report.longrepr, tuple) and lacking in report.longrepr[2]
        ]
        if asked or skipped:
            why = f": {skipped[0]}" if skipped else ""
            terminalreporter.write_line(said.format(len(asked), len(skipped)) + why)


def pytest_configure(config: pytest.Config) -> None:
    """Set the default number of examples, and the folder of files."""
    scratch.prefer_memory()
    share_folder()
    settings.load_profile("exhaustive" if config.getoption("--exhaustive") else "suite")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sample marked tests, unless all cases or single tests were asked for.

    Slow tests go first, so that no process is left with one when the others are done.
    """
    items.sort(key=_is_short)
    if config.getoption("--exhaustive") or any("::" in each for each in config.args):
        return
    wanted, taken, left = set(), set(), set()
    for item in items:
        if sample := item.get_closest_marker("sample"):
            name, _, case = item.nodeid.partition("[")
            matching = {(name, each) for each in sample.args if fnmatchcase(case.removesuffix("]"), each)}
            wanted |= {(name, each) for each in sample.args}
            taken |= matching
            left |= set() if matching else {item}
    if unmatched := wanted - taken:
        raise pytest.UsageError(f"samples that no case matches: {sorted(unmatched)}")
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def pytest_collection_finish() -> None:
    """Freeze modules and tests for the garbage collector, which spends 0.1 s on them each time."""
    gc.collect()
    gc.freeze()


def _is_short(item: pytest.Item) -> bool:
    """Whether it is a test of a few milliseconds, which fill the processes up at the end."""
    return item.path.relative_to(TESTS).parts[0] in ("core", "web")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--exhaustive",
        action="store_true",
        help="take every case where the suite takes some: statements, kills, real feeds, benchmarks",
    )
    parser.addoption(
        "--deploy",
        action="store_true",
        help="restore backups of PostgreSQL and stop replicas behind a real Caddy (make check-deploy)",
    )
    parser.addoption(
        "--install",
        action="store_true",
        help="install the wheel into an environment of its own; needs a package index (make check-install)",
    )
