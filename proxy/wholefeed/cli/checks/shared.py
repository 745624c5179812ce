"""The database that replicas share: whether it is reached, what it is, its schema, rights and connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from wholefeed.cli.checks.findings import Finding, good, skipped, warning, wrong
from wholefeed.errors import StoreUnusableError

if TYPE_CHECKING:
    from wholefeed.store.postgres.examine import ExaminedDatabase

_CHECK: Final = "database"
_OLDEST_SERVER: Final = 15
_SLOW_SECONDS: Final = 0.005
"""An answer that is not in memory needs some round trips, a refresh some dozen."""
_CLOCK_SECONDS: Final = 5.0
_BESIDE: Final = 2
"""Connections of a replica beside store.connections: one listens, one gives signs of life."""
_ROLES: Final = "deploy/replicas/roles.sql"


def check_shared(url: str, connections: int) -> tuple[list[Finding], ExaminedDatabase | None]:
    """Look at the database of `store.url` and judge it; also return what was seen. Blocks, for seconds."""
    try:
        from wholefeed.store.postgres.examine import examine
    except ImportError:
        return [wrong(_CHECK, "store.url needs psycopg", "pip install 'wholefeed[postgres]'")], None
    try:
        examined = examine(url)
    except StoreUnusableError as exc:
        return [wrong(_CHECK, str(exc), "look at store.url, the server and its pg_hba.conf")], None
    return [*judge_shared(examined, connections)], examined


def judge_shared(examined: ExaminedDatabase, connections: int) -> Iterator[Finding]:
    """Judge the database; `connections` is `store.connections`."""
    yield from _server(examined)
    yield from _schema(examined)
    yield from _user(examined)
    yield from _connections(examined, connections)


def _server(examined: ExaminedDatabase) -> Iterator[Finding]:
    if examined.server < _OLDEST_SERVER:
        text = f"{examined.place} is PostgreSQL {examined.server}; wholefeed needs {_OLDEST_SERVER} or newer"
        yield wrong(_CHECK, text, "update the server")
    if examined.encoding != "UTF8":
        text = f"{examined.place} is encoded in {examined.encoding}: feeds have all characters there are"
        yield wrong(_CHECK, text, "createdb --encoding UTF8 --template template0, and move what is stored")
    if examined.is_pooled:
        text = "a pooler gives each transaction another connection: prepared statements, temporary tables and"
        text += " LISTEN get lost"
        yield wrong(_CHECK, text, "name the server itself, or let the pooler use pool_mode = session")
    if examined.is_standby:
        text = f"{examined.place} is a standby: it can be read, and nothing can be kept"
        yield wrong(_CHECK, text, "name the primary; store.url may list hosts, with target_session_attrs")
    if not examined.is_durable:
        text = f"{examined.place} runs without fsync or full_page_writes: a power cut may destroy it"
        yield warning(_CHECK, text, "ALTER SYSTEM RESET fsync; ALTER SYSTEM RESET full_page_writes")
    if abs(examined.clock_ahead_seconds) > _CLOCK_SECONDS:
        text = f"its clock and this machine's differ by {abs(examined.clock_ahead_seconds):.0f} s"
        yield warning("clock", text, "timedatectl set-ntp true, on both")


def _schema(examined: ExaminedDatabase) -> Iterator[Finding]:
    about = f"{examined.place}: PostgreSQL {examined.server}, {examined.bytes / (1 << 20):,.1f} MiB"
    owner = "run `wholefeed migrate` as the tables' owner"
    if examined.is_moving:
        text = f"{about}; it holds the unfinished copy of a SQLite database"
        yield wrong(_CHECK, text, "`wholefeed migrate --to` goes on with it")
    elif examined.version == examined.newest:
        text = f"{about}, schema {examined.version}"
        yield good(_CHECK, f"{text}, {examined.replicas} replicas use it" if examined.replicas else text)
    elif examined.can_create:
        had = f"schema {examined.version}" if examined.version else "no tables yet"
        yield good(_CHECK, f"{about}, {had}; the next start makes schema {examined.newest}", owner)
    else:
        text = f"{about}, schema {examined.version or 'none'}; this version needs {examined.newest}, and its"
        yield wrong(_CHECK, f"{text} user may not make tables", owner)


def _user(examined: ExaminedDatabase) -> Iterator[Finding]:
    if examined.lacking:
        text = f"the user of store.url lacks rights: {'; '.join(examined.lacking)}"
        yield wrong("rights", text, f"{_ROLES} has the GRANTs")
    elif examined.is_superuser:
        text = "the user of store.url is a superuser of the whole server"
        yield warning("rights", text, f"serve as one with the least rights: {_ROLES}")
    elif examined.version:
        text = "and may change its tables, which `serve` need not" if examined.can_create else "and no more"
        yield good("rights", f"the user of store.url may do what a replica does, {text}")
    else:
        yield skipped("rights", "there are no tables yet")


def _connections(examined: ExaminedDatabase, connections: int) -> Iterator[Finding]:
    needed = connections + _BESIDE
    if examined.connections_left < needed:
        text = f"{examined.connections_left} connections are left; a replica takes up to {needed}"
        yield warning(
            "connections", text, "raise max_connections or the role's limit, or lower store.connections"
        )
    milliseconds = examined.round_trip_seconds * 1000
    if examined.round_trip_seconds > _SLOW_SECONDS:
        text = f"a question and its answer take {milliseconds:.1f} ms"
        yield warning(
            "connections", text, "bring the replicas nearer to the database: a refresh asks some dozen"
        )
    else:
        yield good("connections", f"a question and its answer take {milliseconds:.2f} ms")
