from __future__ import annotations

import asyncio
import os
from urllib.parse import quote, urlsplit

import pytest

from tests.postgres import Cluster
from wholefeed.errors import StoreUnusableError
from wholefeed.store.migrations import Migration, read_migrations
from wholefeed.store.postgres_migrate import check_current, migrate_database

FIRST = Migration(13, "0013_first", "CREATE TABLE one (x bigint);\nINSERT INTO one VALUES (1);")
SECOND = Migration(14, "0014_second", "CREATE TABLE two (x bigint);")
SLOW = Migration(13, "0013_slow", "CREATE TABLE one (x bigint); SELECT pg_sleep(0.3);")
BROKEN = Migration(14, "0014_broken", "CREATE TABLE two (x bigint); SELECT nonsense;")

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"


@pytest.fixture
def url(empty_postgres_url: str) -> str:
    return empty_postgres_url


def tables(cluster: Cluster, url: str) -> list[str]:
    return [row[0] for row in cluster.run(TABLES, url)]


async def test_a_new_database_has_the_newest_schema(url: str) -> None:
    """The first start makes all tables; the second changes nothing."""
    names = [migration.name for migration in await asyncio.to_thread(read_migrations, "postgres")]

    assert await migrate_database(url) == names
    assert await migrate_database(url) == []
    await asyncio.to_thread(check_current, url)


async def test_only_what_is_missing_is_applied(url: str, shared_postgres: Cluster) -> None:
    """docs/faults.md row 72: a newer program applies newer migrations, and keeps the stored rows."""
    assert await migrate_database(url, [FIRST]) == ["0013_first"]
    assert await migrate_database(url, [FIRST, SECOND]) == ["0014_second"]

    assert shared_postgres.run("SELECT x FROM one", url) == [(1,)]
    assert shared_postgres.run("SELECT version FROM wholefeed_schema", url) == [(14,)]


async def test_a_failed_migration_leaves_the_old_schema(url: str, shared_postgres: Cluster) -> None:
    """docs/faults.md row 72: one transaction each."""
    await migrate_database(url, [FIRST])

    for _ in range(2):
        with pytest.raises(StoreUnusableError, match="0014_broken failed"):
            await migrate_database(url, [FIRST, BROKEN])
        assert tables(shared_postgres, url) == ["one", "wholefeed_schema"]

    assert await migrate_database(url, [FIRST, SECOND]) == ["0014_second"]


async def test_a_role_that_may_not_migrate_is_told_who_may(url: str, shared_postgres: Cluster) -> None:
    """A start as the role for rows names the role that owns the tables, or the schema if there are none, and
    the command without the password. Nothing changes."""
    owner, role = f"an owner {os.getpid()}", f"reader_{os.getpid()}"
    shared_postgres.run(f'CREATE ROLE "{owner}" LOGIN', url)
    shared_postgres.run(f"CREATE ROLE {role} LOGIN", url)
    try:
        shared_postgres.run(f'ALTER SCHEMA public OWNER TO "{owner}"', url)
        shared_postgres.run(f"GRANT USAGE ON SCHEMA public TO {role}", url)
        place = urlsplit(url)
        at = place.netloc.rpartition("@")[2]
        own, theirs = (
            place._replace(netloc=f"{user}@{at}").geturl() for user in (f"{role}:hidden", quote(owner))
        )
        with pytest.raises(StoreUnusableError, match=f"got none, and the role {role} may not") as told:
            await migrate_database(own, [FIRST, SECOND])
        assert str(told.value).endswith(f": WHOLEFEED_STORE_URL={theirs} wholefeed migrate")

        await migrate_database(theirs, [FIRST])
        shared_postgres.run(f"GRANT SELECT ON wholefeed_schema TO {role}", url)
        shared_postgres.run("ALTER SCHEMA public OWNER TO pg_database_owner", url)
        with pytest.raises(StoreUnusableError, match=r"expected schema 14 in .*, got 13") as told:
            await migrate_database(f"{own}?password=hidden&connect_timeout=60", [FIRST, SECOND])
        assert f"WHOLEFEED_STORE_URL='{theirs}?connect_timeout=60' wholefeed" in str(told.value)
        assert "hidden" not in str(told.value)
        assert tables(shared_postgres, url) == ["one", "wholefeed_schema"]
    finally:
        for each in (owner, role):
            shared_postgres.run(f'DROP OWNED BY "{each}"', url)
            shared_postgres.run(f'DROP ROLE "{each}"', url)


async def test_replicas_that_start_together_migrate_once(url: str) -> None:
    """One replica applies each migration; the others wait and find it done."""
    applied = await asyncio.gather(*(migrate_database(url, [SLOW, SECOND]) for _ in range(5)))

    assert sorted(name for names in applied for name in names) == ["0013_slow", "0014_second"]


async def test_a_database_of_another_program_is_refused(url: str, shared_postgres: Cluster) -> None:
    """Row 70: another program's tables stay unchanged."""
    shared_postgres.run("CREATE TABLE invoice (a bigint)", url)

    for attempt in (migrate_database(url), asyncio.to_thread(check_current, url)):
        with pytest.raises(StoreUnusableError, match=r"another program \(invoice\)"):
            await attempt
    assert tables(shared_postgres, url) == ["invoice"]


async def test_a_schema_of_its_own_in_another_programs_database_is_used(
    url: str, shared_postgres: Cluster
) -> None:
    """`search_path` names the schema; other schemas are not looked at."""
    shared_postgres.run("CREATE TABLE invoice (a bigint)", url)
    shared_postgres.run("CREATE SCHEMA feeds", url)
    own = f"{url}?options=-csearch_path%3Dfeeds"

    assert await migrate_database(own, [FIRST]) == ["0013_first"]
    assert tables(shared_postgres, url) == ["invoice"]


async def test_a_newer_schema_is_refused(url: str) -> None:
    """Row 70: an older program does not touch a newer schema."""
    await migrate_database(url, [FIRST, SECOND])

    with pytest.raises(StoreUnusableError, match=r"schema 14, newer than this program's 13"):
        await migrate_database(url, [FIRST])


async def test_an_older_schema_is_not_current(url: str, shared_postgres: Cluster) -> None:
    """Row 70: a check names the expected schema for an older one or none, and writes nothing."""
    with pytest.raises(StoreUnusableError, match=r"expected schema \d+ .*, got none"):
        await asyncio.to_thread(check_current, url)
    assert tables(shared_postgres, url) == []

    await migrate_database(url, [FIRST])
    with pytest.raises(StoreUnusableError, match=r"expected schema \d+ .*, got 13"):
        await asyncio.to_thread(check_current, url)


async def test_a_database_in_another_encoding_is_refused(shared_postgres: Cluster) -> None:
    """Publishers write Unicode: the error says how to make a suitable database."""
    options = "ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'"
    with (
        shared_postgres.database("template0", options) as url,
        pytest.raises(StoreUnusableError, match="in UTF8, got LATIN1"),
    ):
        await migrate_database(url)


async def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    """The reason is shown on one line, the password never."""
    with pytest.raises(StoreUnusableError, match=r"cannot reach the database feeds at 127\.0\.0\.1") as told:
        await migrate_database("postgresql://me:hidden@127.0.0.1:1/feeds")
    assert "hidden" not in str(told.value)
    assert len(str(told.value).splitlines()) == 1

    with pytest.raises(StoreUnusableError, match="expected a URL of PostgreSQL") as told:
        await migrate_database("postgresql://me:hidden%zz@127.0.0.1:1/feeds")
    assert "hidden" not in str(told.value)
