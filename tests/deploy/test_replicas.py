"""deploy/replicas: its roles on a real PostgreSQL, restored backups, a real Caddy before two."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from demo.proxy_process import free_port
from tests.deploy.front import PROGRAMS
from tests.deploy.plain_yaml import load
from tests.deploy.test_examples import SERVICE_KEYS
from tests.feeds import an_item, atom, publish_chain
from tests.origin import Origin
from tests.postgres import Cluster, a_cluster, as_user, programs, server_user, what_lacks
from tests.processes import ROOT, Served, serving
from tests.running import Reply
from wholefeed.config.tables import load_config

FOLDER = ROOT / "deploy/replicas"
COMPOSE: dict[str, Any] = load((FOLDER / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
ROLES = (FOLDER / "roles.sql").read_text("utf-8")
SETTINGS: dict[str, Any] = {
    "server_public_url": "https://feeds.example.org",
    "freshness_minimum_seconds": 900,
}


@pytest.fixture
def is_wanted(request: pytest.FixtureRequest) -> None:
    """Skip tests of a minute on both cores with exact timings."""
    if not request.config.getoption("--deploy"):
        pytest.skip("restores backups and stops servers: make check-deploy")


needs_own_server = pytest.mark.skipif(bool(what_lacks(is_own=True)), reason=what_lacks(is_own=True))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A server of this module's own: roles belong to all databases of a server."""
    with a_cluster() as cluster:
        cluster.run("CREATE DATABASE wholefeed")
        cluster.run(ROLES, cluster.url("wholefeed"))
        yield cluster


def url_of(cluster: Cluster, role: str, database: str = "wholefeed") -> str:
    parts = urlsplit(cluster.url(database))
    return parts._replace(netloc=f"{role}@{parts.hostname}:{parts.port}").geturl()


def wholefeed(*arguments: str, url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wholefeed", *arguments],
        capture_output=True, text=True, check=False, cwd=folder,
        env={**os.environ, "WHOLEFEED_STORE_URL": url, "WHOLEFEED_SERVER_PORT": "9"},
    )  # fmt: skip


async def whole(served: Served, urls: list[str]) -> list[tuple[int, str, bytes]]:
    found = [await served.whole(url) for url in urls]
    return [(each.status, each.headers["ETag"], each.body) for each in found]


def as_server(cluster: Cluster, *command: str) -> None:
    """Run one of PostgreSQL's programs, as the server's user."""
    name, *arguments = command
    program = Path(programs(), "initdb").resolve().with_name(name)
    done = subprocess.run(
        [*as_user(), str(program), *arguments],
        capture_output=True, text=True, check=False, cwd=cluster.folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@needs_own_server
async def test_each_role_can_do_its_work_and_no_more(
    cluster: Cluster, tmp_path: Path, origin: Origin
) -> None:
    """The owner migrates; the serving user cannot change tables or grant rights; others have no access."""
    owner, server = url_of(cluster, "wholefeed_owner"), url_of(cluster, "wholefeed")
    refused = wholefeed("migrate", url=server, folder=tmp_path)
    is_said = "the role wholefeed may not change its tables" in refused.stderr
    assert (refused.returncode, is_said) == (1, True), refused.stderr
    made = wholefeed("migrate", url=owner, folder=tmp_path)
    assert (made.returncode, "applied 0013_store" in made.stdout) == (0, True), made.stderr
    again = wholefeed("migrate", url=server, folder=tmp_path)
    assert (again.returncode, "is up to date" in again.stdout) == (0, True), again.stderr

    publish_chain(origin, archives=2)
    url = origin.url("/feed")
    async with serving(tmp_path, store_url=server, history_poll_seconds=60, **SETTINGS) as served:
        assert (await served.whole(url)).status == 200
        assert (await served.ask("/refresh", method="POST", url=url)).status == 202
        assert (await served.whole(url)).status == 200
        assert (await served.ask("/feeds")).status == 200
        assert b"wholefeed_store_readable 1" in (await served.ask("/metrics")).body
        assert (await served.ask("/readyz")).status == 200
        assert (await served.ask("/feed", method="DELETE", url=url)).status == 204
        problems = [line for line in served.lines if line["level"] in ("warning", "error")]
        assert not problems, "\n".join(map(str, problems))

    for statement in (
        "CREATE TABLE mine (a int)", "DROP TABLE feed", "ALTER TABLE feed ADD COLUMN a int", "TRUNCATE feed",
    ):  # fmt: skip
        said = denied(cluster, statement, server)
        assert "permission denied" in said or "must be owner" in said, (statement, said)
    backup = url_of(cluster, "wholefeed_backup")
    assert cluster.run("SELECT count(*) FROM feed", backup) == [(0,)]
    assert "permission denied" in denied(cluster, "DELETE FROM feed", backup)
    cluster.run("CREATE ROLE stranger LOGIN")
    assert "permission denied for database" in denied(cluster, "SELECT 1", url_of(cluster, "stranger"))
    looked = wholefeed("doctor", "--offline", url=server, folder=tmp_path)
    assert "has the rights that a replica needs, and no more" in looked.stdout, looked.stdout


def denied(cluster: Cluster, statement: str, url: str) -> str:
    """Return the reason for a refused statement; empty if accepted."""
    import psycopg  # noqa: PLC0415 - an extra

    try:
        cluster.run(statement, url)
    except psycopg.Error as exc:
        return str(exc)
    return ""


@pytest.mark.usefixtures("is_wanted")
@needs_own_server
async def test_a_dump_is_restored_and_serves_the_same(
    cluster: Cluster, tmp_path: Path, origin: Origin
) -> None:
    """pg_dump runs beside a replica. Every answer is the same, without a fetch."""
    urls = published(origin, 3)
    wholefeed("migrate", url=url_of(cluster, "wholefeed_owner"), folder=tmp_path)
    file = f"{cluster.folder}/wholefeed.dump"
    async with serving(tmp_path, store_url=url_of(cluster, "wholefeed"), **SETTINGS) as served:
        expected = await whole(served, urls)
        backup = url_of(cluster, "wholefeed_backup")
        await asyncio.to_thread(as_server, cluster, "pg_dump", "--format=custom", f"--file={file}", backup)
    cluster.run("CREATE DATABASE restored")
    restored = cluster.url("restored")
    await asyncio.to_thread(as_server, cluster, "pg_restore", "--exit-on-error", f"--dbname={restored}", file)
    origin.forget_requests()
    async with serving(tmp_path, store_url=url_of(cluster, "wholefeed", "restored"), **SETTINGS) as served:
        assert await whole(served, urls) == expected
    assert not origin.requests


@pytest.mark.usefixtures("is_wanted")
@needs_own_server
async def test_a_base_backup_and_the_log_bring_back_the_last_commit(tmp_path: Path, origin: Origin) -> None:
    """The server's disk is lost: backup and archived log restore also later feeds."""
    urls = published(origin, 4)
    with a_cluster() as lost, a_folder_of_its_own(lost) as folder:
        archive = folder / "archive"
        make_folder(archive)
        lost.run("ALTER SYSTEM SET archive_mode = on")
        lost.run(f"ALTER SYSTEM SET archive_command = 'cp %p {archive}/%f'")
        lost.restart()
        lost.run("CREATE DATABASE wholefeed")
        lost.run(ROLES, lost.url("wholefeed"))
        wholefeed("migrate", url=url_of(lost, "wholefeed_owner"), folder=tmp_path)
        async with serving(tmp_path, store_url=url_of(lost, "wholefeed"), **SETTINGS) as served:
            expected = await whole(served, urls[:2])
            source = url_of(lost, "wholefeed_backup", "postgres")
            options = ("--checkpoint=fast", "--wal-method=none", f"--pgdata={folder}/data", "-d", source)
            await asyncio.to_thread(as_server, lost, "pg_basebackup", *options)
            expected += await whole(served, urls[2:])
        lost.run("SELECT pg_switch_wal()")
        async with asyncio.timeout(300):
            while lost.run("SELECT last_archived_wal < pg_walfile_name(pg_current_wal_lsn())"
                           " AND last_archived_wal >= pg_walfile_name(pg_current_wal_insert_lsn() - 16777216)"
                           " FROM pg_stat_archiver") != [(True,)]:  # fmt: skip
                await asyncio.sleep(0.1)
        lost.stop("immediate")

        found = Cluster(folder)
        with (folder / "data/postgresql.auto.conf").open("a") as settings:
            settings.write(f"\narchive_mode = off\nrestore_command = 'cp {archive}/%f %p'\n")
        (folder / "data/recovery.signal").touch()
        found.start()
        try:
            while found.run("SELECT pg_is_in_recovery()") == [(True,)]:
                await asyncio.sleep(0.1)
            origin.forget_requests()
            async with serving(tmp_path, store_url=url_of(found, "wholefeed"), **SETTINGS) as served:
                assert await whole(served, urls) == expected
            assert not origin.requests
        finally:
            found.stop("immediate")


@contextmanager
def a_folder_of_its_own(cluster: Cluster) -> Iterator[Path]:
    """A folder beside a server's, writable for the server's user."""
    assert cluster.folder is not None
    folder = Path(f"{cluster.folder}-restored")
    make_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_folder(folder: Path) -> None:
    folder.mkdir()
    if user := server_user():
        os.chown(folder, user.pw_uid, user.pw_gid)


def published(origin: Origin, count: int) -> list[str]:
    """Publish feeds with an archive document each; return their URLs."""
    for number in range(count):
        old = atom(*[an_item(f"old-{number}-{n}", n) for n in range(5, 0, -1)], archive=True)
        origin.publish(f"/{number}/1", old)
        origin.publish(f"/{number}", atom(an_item(f"new-{number}", 30), prev_archive=f"/{number}/1"))
    return [origin.url(f"/{number}") for number in range(count)]


@asynccontextmanager
async def balanced(folder: Path, ports: list[int]) -> AsyncIterator[int]:
    """Run the Caddyfile in front of these; yield its port."""
    listening = free_port(0)
    text = (FOLDER / "Caddyfile").read_text("utf-8")
    for number, port in enumerate(ports, 1):
        text = text.replace(f"wholefeed-{number}:8080", f"127.0.0.1:{port}")
    text = "{\n\tadmin off\n}\n" + text.replace(":8080 {", f"http://127.0.0.1:{listening} {{")
    (folder / "Caddyfile").write_text(text)
    homes = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    process = await asyncio.create_subprocess_exec(
        str(PROGRAMS["caddy"]), "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile",
        env={**os.environ, **homes}, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield listening
    finally:
        process.terminate()
        await process.wait()


async def answered(port: int, target: str, **query: str) -> Reply:
    """Ask the load balancer, on a connection of its own."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}{target}", params=query) as answer,
    ):
        return Reply(answer.status, answer.headers, await answer.read())


@pytest.mark.usefixtures("is_wanted")
@needs_own_server
@pytest.mark.skipif(PROGRAMS["caddy"] is None, reason="caddy is not installed")
async def test_the_balancer_hides_that_a_replica_dies_and_that_the_database_is_away(
    tmp_path: Path, origin: Origin
) -> None:
    """After a kill every answer is 200; without the database memory answers, though nobody is ready."""
    (url,) = published(origin, 1)
    async with AsyncExitStack() as stack:
        cluster = stack.enter_context(a_cluster())
        servers = []
        for number in range(2):
            folder = tmp_path / str(number)
            folder.mkdir()
            running = serving(folder, store_url=cluster.url(), log_level="info", **SETTINGS)
            servers.append(await stack.enter_async_context(running))
        port = await stack.enter_async_context(balanced(tmp_path, [each.port for each in servers]))
        async with asyncio.timeout(300):
            while True:
                try:
                    if (await answered(port, "/readyz")).status == 200:
                        break
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.05)
        expected = await servers[0].whole(url)
        assert (await servers[1].whole(url)).body == expected.body

        async def ask(times: int) -> set[tuple[int, bytes]]:
            found = [await answered(port, "/feed", url=url) for _ in range(times)]
            return {(each.status, each.body) for each in found}

        assert await ask(40) == {(200, expected.body)}
        assert all(served.events().count("request.answered") > 5 for served in servers), "both were asked"

        cluster.stop("immediate")
        async with asyncio.timeout(300):
            while (await servers[0].ask("/readyz")).status != 503 or (
                await servers[1].ask("/readyz")
            ).status != 503:
                await asyncio.sleep(0.1)
        await asyncio.sleep(2.5)  # Caddy looks every 2 s
        assert await ask(10) == {(200, expected.body)}
        cluster.start()
        async with asyncio.timeout(300):
            while (await answered(port, "/readyz")).status != 200:
                await asyncio.sleep(0.2)

        servers[0].process.kill()
        await servers[0].ended()
        assert await ask(40) == {(200, expected.body)}


def test_compose_of_the_replicas_holds_what_the_specification_knows() -> None:
    """Compose knows each key; references are declared; mounted files exist; only this machine has access."""
    assert set(COMPOSE) == {"name", "services", "volumes", "secrets"}
    mounted = [each.split(":") for service in SERVICES.values() for each in service.get("volumes", [])]
    assert {source for source, *_ in mounted if not source.startswith("./")} == set(COMPOSE["volumes"])
    assert all((FOLDER / source).exists() for source, *_ in mounted if source.startswith("./"))
    secrets = {each for service in SERVICES.values() for each in service.get("secrets", [])}
    assert secrets == set(COMPOSE["secrets"])
    for name, service in SERVICES.items():
        assert set(service) <= SERVICE_KEYS | {"command"}, name
        for other, condition in service.get("depends_on", {}).items():
            has_end = SERVICES[other].get("restart") == "on-failure"
            wanted = "service_completed_successfully" if has_end else "service_healthy"
            assert condition == {"condition": wanted}, (name, other)
            assert has_end or "healthcheck" in SERVICES[other]
        for variable, value in service.get("environment", {}).items():
            assert not variable.endswith("_FILE") or value.removeprefix("/run/secrets/") in service["secrets"]
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name


@pytest.mark.parametrize("service", ["wholefeed-1", "wholefeed-2", "migrate"])
def test_the_replicas_are_configured_with_keys_that_there_are(service: str, tmp_path: Path) -> None:
    """URL and token come from secrets; otherwise each replica would make its own token."""
    secret = tmp_path / "secret"
    environ = {}
    for name, value in SERVICES[service]["environment"].items():
        secret = tmp_path / name
        secret.write_text(
            "postgresql://u:p@postgres/wholefeed" if "URL" in name else "a-token-for-the-readers"
        )
        environ[name] = str(secret) if name.endswith("_FILE") else value
    config = load_config(None, environ, {})
    assert config.store.url == "postgresql://u:p@postgres/wholefeed"
    assert config.server.access_token or service == "migrate"
    assert SERVICES[service]["read_only"] is True


def test_the_roles_of_the_script_are_those_of_the_secrets() -> None:
    """roles.sh gives each role of roles.sql the password of its secret."""
    script = (FOLDER / "roles.sh").read_text("utf-8")
    roles = [line.split()[2] for line in ROLES.splitlines() if line.startswith("CREATE ROLE")]
    assert f"for role in {' '.join(roles)}; do" in script
    assert {f"{role}_password" for role in roles} <= set(SERVICES["postgres"]["secrets"])
    assert os.access(FOLDER / "roles.sh", os.X_OK)
    assert subprocess.run(["sh", "-n", str(FOLDER / "roles.sh")], check=False).returncode == 0
