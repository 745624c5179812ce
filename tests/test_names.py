"""Public names equal those of `tests/data/names.toml`, without missing or further ones.

That file names the users of each kind: readers, operators, other replicas, existing databases. Renaming,
moving or rewriting the inside changes none of them. This file asks the running program where possible, and
ignores the places of code in the package.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import dataclasses
import inspect
import json
import re
import sqlite3
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from enum import StrEnum
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import NAMESPACE_URL, uuid5

import psycopg
import pytest
from aiohttp import web
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import wholefeed
from tests import empty_store
from tests.answers import Status
from tests.feeds import an_item, atom, ids, json_feed, publish_chain, rdf, rss
from tests.listing import LISTS, looked
from tests.note_kinds import NOTE_KINDS, a_note
from tests.origin import Origin
from tests.publishers.archive_page import ArchivePage
from tests.running import Proxy, Reply, a_config, running
from tests.subclasses import subclasses
from tests.web.browsing import browse, submit
from wholefeed.cli.backend import GoneError, StrangerError
from wholefeed.cli.base import EXIT_DONE, EXIT_ERROR, EXIT_INTERRUPTED, EXIT_UNFINISHED, EXIT_USAGE
from wholefeed.cli.doctor import CheckVerdict as Finding
from wholefeed.cli.main import main, make_parser
from wholefeed.config.tables import DEFAULT_FILE, FILE_SUFFIX, FILE_VARIABLE, KEYS, PUBLISHER_KEYS
from wholefeed.core import origins
from wholefeed.core.adapters.base import Collection, Marks
from wholefeed.core.adapters.table import ADAPTERS
from wholefeed.core.adapters.wordpress_pages import BY_ID, FROM_FRONT
from wholefeed.core.adapters.wordpress_walk import BY_DATE
from wholefeed.core.compose.entries import NAMELESS, Entries
from wholefeed.core.compose.views import Warned
from wholefeed.core.intake import Stage
from wholefeed.core.links import DEAD, FH_INCREMENTAL, FH_PREV
from wholefeed.core.listing.finding import WHY, LookMemory, LookOutcome, MissingPage
from wholefeed.core.listing.joined_sources import SourceOutcome
from wholefeed.core.model import (
    IMPORT_URL,
    MEMORY_URL,
    WELL_KNOWN_PREFIXES,
    Family,
    Kind,
    Relation,
    Role,
    State,
)
from wholefeed.core.notes import End, Ending
from wholefeed.core.parse.discovery import Alternate
from wholefeed.core.parse.repair import UNKNOWN_NAMESPACE
from wholefeed.core.publisher_check import RULES
from wholefeed.core.readers import READERS
from wholefeed.core.refresh.listing_state import ListingState
from wholefeed.core.slugs import SLUGS
from wholefeed.counts import TASKS
from wholefeed.errors import DocumentError, TooManyRequestsError, WholefeedError
from wholefeed.logs import configure_logging
from wholefeed.service.account import _GUESSED as GUESSED
from wholefeed.service.account import DocumentStanding
from wholefeed.service.results import UnderWay
from wholefeed.service.sharing import outcome_of
from wholefeed.service.sources import PageError, SeveralFeedsError
from wholefeed.store.database_transfer import _LOCK as MOVING_LOCK
from wholefeed.store.postgres import CHANNEL, Notices
from wholefeed.store.postgres_migrate import _LOCK as MIGRATING_LOCK
from wholefeed.web.api import description
from wholefeed.web.keys import COUNTS
from wholefeed.web.list_rewriting import Left
from wholefeed.web.request import BESIDE, OPTIONS, PAGE_OPTIONS
from wholefeed.web.routes import routes

ROOT = Path(__file__).parent.parent
FILE = Path(__file__).parent / "data" / "names.toml"
LISTED: Mapping[str, Any] = tomllib.loads(FILE.read_text("utf-8"))
HELD: set[str] = {"log", "metrics", "answers", "sqlite", "postgres", "replicas"}
"""Kinds with a collecting test of their own; `collected` adds the others."""
COLLECTORS: dict[str, Callable[[], Mapping[str, Any]]] = {}
TOKEN = "the token of readers"


def collected(collector: Callable[[], Mapping[str, Any]]) -> Callable[[], Mapping[str, Any]]:
    """Mark a function as the collector of the kind with its name."""
    COLLECTORS[collector.__name__] = collector
    return collector


def lines(node: object, path: str = "") -> Iterator[str]:
    """A tree of names line by line: each key with its children; lists are unordered."""
    if isinstance(node, Mapping):
        yield path
        for key, value in node.items():
            yield from lines(value, f"{path} > {key}" if path else str(key))
    elif isinstance(node, list | tuple):
        yield path
        yield from (f"{path} > {json.dumps(each, ensure_ascii=False)}" for each in node)
    else:
        yield f"{path} = {json.dumps(node, ensure_ascii=False)}"


def hold(kind: str, found: Mapping[str, Any]) -> None:
    """Fail with the added and removed names."""
    listed, there = set(lines(LISTED[kind])), set(lines(found))
    came, went = sorted(there - listed), sorted(listed - there)
    told = [f"  came: {each}" for each in came] + [f"  went: {each}" for each in went]
    if told:
        head = f"[{kind}] of {FILE.relative_to(ROOT)}, where it stands who sees them:"
        pytest.fail("\n".join([head, *told]), pytrace=False)


@collected
def notes() -> dict[str, Any]:
    """Notes by the code of an instance."""
    made = [a_note(kind) for kind in NOTE_KINDS]
    return {
        note.as_dict()["code"]: {"slug": note.slug, "partial": note.partial, "members": [*note.as_dict()]}
        for note in made
    }


@collected
def slugs() -> dict[str, Any]:
    return {
        slug: {
            "status": facts.status,
            "answers": list(facts.answers),
            "lasts": facts.lasts,
            "words": facts.words,
        }
        for slug, facts in SLUGS.items()
    }


INNER_ERRORS = (PageError, GoneError, StrangerError)
"""Always caught before anybody sees their names."""


def an_error(kind: type[WholefeedError]) -> WholefeedError:
    if kind is SeveralFeedsError:
        return SeveralFeedsError("http://o.test/", (Alternate("http://o.test/feed", ""),))
    facts: dict[str, Any] = {"url": "http://o.test/"} if issubclass(kind, DocumentError) else {}
    facts |= {"retry_after_seconds": 1} if issubclass(kind, TooManyRequestsError) else {}
    return kind("expected x, got y", **facts)


@collected
def errors() -> dict[str, Any]:
    found = {}
    kinds: set[type[WholefeedError]] = {WholefeedError, *subclasses(WholefeedError)}
    for kind in kinds.difference(INNER_ERRORS):
        error = an_error(kind)
        told = json.loads(outcome_of(error) or "{}")
        found[kind.__name__] = {
            "of": [each.__name__ for each in kind.__bases__],
            "slug": error.slug,
            "status": error.answer_status,
            "told": told.get("class", ""),
        }
    return found


ENUMERATIONS: Mapping[str, type[StrEnum]] = {
    "ending": End,
    "family": Family,
    "finding": Finding,
    "kind": Kind,
    "left": Left,
    "origin": origins.Origin,
    "relation": Relation,
    "role": Role,
    "stage": Stage,
    "standing": DocumentStanding,
    "state": State,
    "warned": Warned,
}


@collected
def words() -> dict[str, Any]:
    return {
        **{name: [str(each) for each in kind] for name, kind in ENUMERATIONS.items()},
        "adapter": [each.name for each in ADAPTERS],
        "way": [BY_DATE, BY_ID, FROM_FRONT],
        "lead": [GUESSED],
        "passed over": [*WHY],
        "task": list(TASKS),
        "reader": [each.name for each in READERS],
        "error of check": [each.name for each in RULES.values() if each.is_error],
        "warning of check": [each.name for each in RULES.values() if not each.is_error],
    }


def test_no_enumeration_of_words_is_left_out() -> None:
    """A StrEnum is stored, sent or printed; an internal one is an Enum."""
    assert subclasses(StrEnum) == {*ENUMERATIONS.values()}


@collected
def prefixes() -> dict[str, Any]:
    return {
        prefix: {"bit": place, "namespace": name}
        for place, (prefix, name) in enumerate(WELL_KNOWN_PREFIXES.items())
    }


@collected
def json_texts() -> dict[str, Any]:
    failed, several = an_error(DocumentError), an_error(SeveralFeedsError)
    return {
        "feed.collection": [each.name for each in dataclasses.fields(Collection)],
        "feed.ending": [*Ending(End.OLDEST).as_dict()],
        "feed.listing": [each.name for each in dataclasses.fields(ListingState)],
        "feed.listing of known": [each.name for each in dataclasses.fields(LookMemory)],
        "feed.listing of looked": [each.name for each in dataclasses.fields(LookOutcome)],
        "feed.listing of missing": [each.name for each in dataclasses.fields(MissingPage)],
        "feed.listing of sources": [each.name for each in dataclasses.fields(SourceOutcome)],
        "document.links": [*Relation, FH_PREV, FH_INCREMENTAL, DEAD],
        "document.marks": [each.name for each in dataclasses.fields(Marks)],
        "lease.progress": [*json.loads(UnderWay().as_text())],
        "lease.outcome": sorted({*json.loads(outcome_of(failed)), *json.loads(outcome_of(several))}),
    }


def default(value: object) -> object:
    """A default in TOML's form, equal for every version."""
    if isinstance(value, tuple):
        return list(value)
    return value.replace(wholefeed.__version__, "VERSION") if isinstance(value, str) else value


@collected
def configuration() -> dict[str, Any]:
    keys = {
        key.name: {
            "default": default(key.default),
            "variables": [key.variable, *([key.variable + FILE_SUFFIX] if key.secret else [])],
        }
        for key in KEYS
    }
    own = {key.name: {"default": default(key.default), "variables": []} for key in PUBLISHER_KEYS}
    return {**keys, **own, "file": {"default": DEFAULT_FILE, "variables": [FILE_VARIABLE]}}


SEQUENCE = ("__getitem__", "__len__")


def members(kind: type) -> list[str]:
    """The public members of a class."""
    if issubclass(kind, StrEnum):
        return [f"{name} = {each}" for name, each in kind.__members__.items()]
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    found = [f"{each.name}: {each.type}" for each in fields if not each.name.startswith("_")]
    taken = {each.name for each in fields}
    for name, each in vars(kind).items():
        if inspect.isfunction(each) and (not name.startswith("_") or name in SEQUENCE):
            found.append(f"{name}{signature(each)}")
        elif not (name.startswith("_") or name in taken):
            found.append(name)
    return found


def signature(function: Callable[..., Any]) -> str:
    return str(inspect.signature(function)).replace("'", "")


@collected
def library() -> dict[str, Any]:
    found: dict[str, Any] = {
        "__all__": [*wholefeed.__all__],
        "Entries": members(Entries),
        "__version__": [type(wholefeed.__version__).__name__],
    }
    for name in wholefeed.__all__:
        value = getattr(wholefeed, name)
        if isinstance(value, type):
            found[name] = members(value)
        else:
            taken = inspect.signature(value)
            found[name] = [
                "async def" if inspect.iscoroutinefunction(value) else "def",
                *(f"{each.kind.description}: {each}".replace("'", "") for each in taken.parameters.values()),
                f"returns {taken.return_annotation}",
            ]
    found["WholefeedError"] += [*vars(WholefeedError("x"))]  # of an instance
    return found


def arguments(parser: argparse.ArgumentParser) -> list[str]:
    """A parser's arguments, about as in its help."""
    found = []
    for action in vars(parser)["_actions"]:
        if not isinstance(action.choices, dict):  # those are the commands
            value = "" if action.nargs == 0 else action.metavar or action.dest
            found.append(f"{', '.join(action.option_strings)} {value}".strip())
    return found


@collected
def command_line() -> dict[str, Any]:
    parser = make_parser()
    (commands,) = (each.choices for each in vars(parser)["_actions"] if isinstance(each.choices, dict))
    return {
        "wholefeed": arguments(parser),
        **{f"wholefeed {name}": arguments(command) for name, command in commands.items()},
        "exit codes": {
            "done": EXIT_DONE,
            "error": EXIT_ERROR,
            "interrupted": EXIT_INTERRUPTED,
            "unfinished": EXIT_UNFINISHED,
            "usage": EXIT_USAGE,
        },
    }


@collected
def programs() -> dict[str, Any]:
    """Installed commands lead to the present code; each is started once."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    command = [sys.executable, "-m", "wholefeed", "--version"]
    said = subprocess.run(
        command, cwd=ROOT / "proxy", capture_output=True, text=True, timeout=300, check=True
    )
    assert said.stdout == f"wholefeed {wholefeed.__version__}\n"
    for name, value in project["scripts"].items():
        assert EntryPoint(name, value, "console_scripts").load() is main
    return {
        "distribution": project["name"],
        "extras": [*project["optional-dependencies"]],
        "modules": ["wholefeed"],
        "scripts": [*project["scripts"]],
    }


def resolved(document: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    """The target of a reference."""
    found: Any = node
    if "$ref" in node:
        found = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
    assert isinstance(found, dict)
    return found


@collected
def interface() -> dict[str, Any]:
    """Routes of the server; its description's parameters, members and operations.

    `tests/web/test_api.py` compares the description with the answers.
    """
    app, document = web.Application(), description()
    app.add_routes(routes())
    served = [
        f"{route.method} {route.resource.canonical}"
        for route in app.router.routes()
        if route.resource is not None
    ]
    operations = {
        f"{method.upper()} {path}": operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "head"  # which is made of the other
    }
    schemas = {name: members_of(document, each) for name, each in document["components"]["schemas"].items()}
    return {
        "routes": served,
        "parameters": {
            name: [resolved(document, each)["name"] for each in operation["parameters"]]
            for name, operation in operations.items()
            if operation["parameters"]
        },
        "operations": {name: each["operationId"] for name, each in operations.items()},
        "own parameters": sorted(OPTIONS),
        "own parameters beside others": sorted(
            f"{name} {other}" for other in BESIDE for name in BESIDE[other]
        ),
        "own parameters of pages": sorted(PAGE_OPTIONS - OPTIONS),
        "members": {name: found for name, found in schemas.items() if found},
        "security": [
            f"{name}: {each.get('in', each['type'])} {each.get('name', each.get('scheme'))}"
            for name, each in document["components"]["securitySchemes"].items()
        ],
    }


def members_of(document: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """The members of an object, which may be described in parts."""
    schema = resolved(document, schema)
    parts = [members_of(document, part) for part in schema.get("allOf", ())]
    return sorted({*schema.get("properties", {}), *(name for part in parts for name in part)})


def test_every_kind_of_the_list_is_collected() -> None:
    """A kind without a collector would check nothing; a line above each names its users."""
    assert {*LISTED} == {*COLLECTORS} | HELD
    text = FILE.read_text("utf-8")
    for kind in LISTED:
        assert re.search(rf"^# .+\n\[{kind}[.\]]", text, re.MULTILINE), kind
    assert list(LISTED) == sorted(LISTED)


@pytest.mark.parametrize("kind", sorted(COLLECTORS))
def test_names_that_others_see_stay(kind: str) -> None:
    """Each name of the kind is there, and no other."""
    hold(kind, COLLECTORS[kind]())


EVENT = re.compile(r"[a-z]+\.[a-z]+")
LEVELS = {
    **{name: name for name in ("debug", "info", "warning", "error", "critical")},
    "exception": "error",
    "laid_out": "info",
}
RELAYED = {"library.logged": ["any"], "log.lost": ["warning"]}
"""Events of the handler for libraries' messages, and of the failed logger."""


def logged() -> dict[str, list[str]]:
    """The events of all calls `log.info("noun.past")` and the like, with their levels.

    No single run logs all of them, so this reads the source.
    """
    levels: defaultdict[str, set[str]] = defaultdict(set)
    for path in (ROOT / "proxy" / "wholefeed").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            match call:
                case ast.Call(func=ast.Attribute(attr=name), args=[ast.Constant(value=str(event)), *_]):
                    if name in LEVELS and EVENT.fullmatch(event):
                        levels[event].add(LEVELS[name])
    return {event: sorted(found) for event, found in levels.items()} | RELAYED


def test_events_of_the_log_stay() -> None:
    """Events with their levels; the docstring of the log lists them for people, and no others."""
    hold("log", logged())
    told = sys.modules[configure_logging.__module__].__doc__ or ""
    assert re.findall(r"^    ([a-z]+\.[a-z]+)\b", told, re.MULTILINE)
    assert {*re.findall(r"^    ([a-z]+\.[a-z]+)\b", told, re.MULTILINE)} == {*logged()}


async def test_metrics_stay(proxy: Proxy) -> None:
    """Each of our families with its type and labels, and the labels present at the start.

    The dashboard covers the unlisted families: it has to ask for every family, and only for existing ones
    (`tests/web/test_metrics.py`).
    """
    fresh = await listed_families(proxy)
    counts = proxy.app[COUNTS]
    counts.count_answer("/feed", "complete", 200, 0.1, 1)
    counts.count_refusal("timeout")
    counts.count_failure("timeout")
    counts.walk_ended("end", 1.0)
    counts.count_publication("complete", "none")
    counts.refresh_failed("timeout")
    labels: defaultdict[str, set[str]] = defaultdict(set)
    for family in fresh:
        for sample in family.samples:
            for name, value in sample.labels.items():
                if name not in ("le", "version", "python", "route", "status"):
                    labels[name].add(value)
    found = {
        family.name: {
            "type": family.type,
            "labels": sorted({name for each in family.samples for name in each.labels} - {"le"}),
        }
        for family in await listed_families(proxy)
    }
    hold("metrics", {"families": found, "values": {name: sorted(each) for name, each in labels.items()}})


async def listed_families(proxy: Proxy) -> list[Any]:
    """A scrape's content for the listed families."""
    reply = await proxy.ask("GET", "/metrics", headers={"Accept": "application/openmetrics-text"})
    found = text_string_to_metric_families(reply.body.decode())  # type: ignore[no-untyped-call]
    return [family for family in found if family.name in LISTED["metrics"]["families"]]


RELATION = re.compile(r'<(?:atom:)?link[^>]* rel="([^"]+)"')
NAMESPACE = re.compile(r'xmlns(?::\w+)?="([^"]+)"')
PROBLEM = re.compile(r"(.+):[a-z-]+")


async def test_names_in_answers_stay(tmp_path: Path, proxy: Proxy, origin: Origin) -> None:
    """Fields, cookies, events, relations, namespaces and URNs in answers of all sorts."""
    events = await a_followed_walk(proxy, origin)
    feeds = await all_sorts_of_feeds(proxy, origin)
    replies = [*feeds, *await other_answers(proxy, origin)]
    (tmp_path / "guarded").mkdir()
    config = a_config(tmp_path / "guarded", history=LISTS, server={"access_token": TOKEN})
    async with running(config) as guarded:
        replies.append(await guarded.ask("GET", "/feeds"))
        replies.append(await submit(guarded, "/login", token=TOKEN))
        ArchivePage(origin, posts=8).publish()
        await guarded.get(origin.url("/feed"), token=TOKEN)
        await looked(guarded)
        replies.append(await guarded.get(origin.url("/feed"), token=TOKEN))
        replies.append(await guarded.get(origin.url("/feed"), token=TOKEN, text="full"))
    problems = [
        json.loads(each.body)
        for each in replies
        if each.body and each.headers["Content-Type"].startswith("application/problem+json")
    ]
    bodies = [each.body.decode() for each in feeds]
    fields = [reply.headers.get("Feed-Reconstruction", "") for reply in replies]
    cookies = [field for reply in replies for field in reply.headers.getall("Set-Cookie", [])]
    found = {
        "fields": distinct(name for reply in [*replies, events] for name in reply.headers),
        "cookies": distinct(field.partition("=")[0] for field in cookies),
        "reconstruction": distinct(name for field in fields for name in re.findall(r";([a-z]+)", field)),
        "events": distinct(re.findall(r"^event: (\w+)$", events.body.decode(), re.MULTILINE)),
        "relations": distinct(name for body in bodies for name in RELATION.findall(body)),
        "namespaces": distinct(name for body in bodies for name in NAMESPACE.findall(body)),
        "extension": distinct(
            f"{name} > {member}"
            for body in bodies
            if body.startswith("{")
            for name, value in json.loads(body).items()
            if name.startswith("_")
            for member in value
        ),
        "problem": distinct(name for each in problems for name in each),
        "urns": {
            "import": IMPORT_URL,
            "memory": MEMORY_URL,
            "nameless": NAMELESS,
            "problem": PROBLEM.fullmatch(problems[0]["type"])[1],  # type: ignore[index]
            "undeclared prefix": UNKNOWN_NAMESPACE,
        },
    }
    hold("answers", found)


def distinct(names: Iterable[str]) -> list[str]:
    return sorted(set(names))


async def a_followed_walk(proxy: Proxy, origin: Origin) -> Reply:
    """GET /events from the middle of a walk to its end."""
    publish_chain(origin, archives=3)
    url = origin.url("/feed")
    with origin.held("/archive/1") as gate:
        await proxy.begun(url)
        async with asyncio.timeout(300), proxy.client.get("/events", params={"url": url}) as response:
            first = await response.content.readuntil(b"event: status")
            gate.release()
            return Reply(response.status, response.headers, first + await response.read())


async def all_sorts_of_feeds(proxy: Proxy, origin: Origin) -> list[Reply]:
    """Feeds of each family, whole, cut and replayed; a partial one; one with an absent publisher."""
    replay: Any = {"replay": "1/day", "from": "2023-11-01T06:00:00Z"}
    items = an_item("a", 2), an_item("b", 1)
    found = []
    for make in (atom, rss, rdf, json_feed):
        path = f"/{make.__name__}"
        origin.publish(path, make(*items))
        found += [await proxy.whole(origin.url(path)), await proxy.get(origin.url(path), limit="1")]
        found.append(await proxy.get(origin.url(path), **replay))
    origin.publish("/complete", atom(*items, complete=True))
    origin.publish("/partial", atom(*items, prev_archive="/gone"))
    found += [await proxy.whole(origin.url(path)) for path in ("/complete", "/partial")]
    origin.fault("/atom", Status(500))
    proxy.clock.advance(100_000)
    await proxy.get(origin.url("/atom"))
    await proxy.settled()
    found.append(await proxy.get(origin.url("/atom")))
    assert "stale" in found[-1].reconstruction
    return found


async def other_answers(proxy: Proxy, origin: Origin) -> list[Reply]:
    """Answers with fields of their own: pages, lists, refusals, 304, encodings."""
    url = origin.url("/rss")
    etag = (await proxy.get(url)).headers["ETag"]
    asked = [
        await proxy.get(url, headers={"If-None-Match": etag}),
        await proxy.get(url, headers={"Accept-Encoding": "gzip"}),
        await proxy.ask("GET", "/healthz"),
        await proxy.ask("GET", "/metrics"),
        await proxy.ask("GET", "/openapi.json"),
        await proxy.ask("GET", "/opml"),
        await proxy.ask("POST", "/opml", data=b'<opml><outline xmlUrl="http://a.test/"/></opml>'),
        await proxy.ask("GET", "/status", params={"url": url}),
        await proxy.ask("PUT", "/status"),
        await proxy.ask("GET", "/static/page.css"),
        await browse(proxy, "/"),
        await browse(proxy, f"/view?{urlencode({'url': url})}"),
        await submit(proxy, f"/refresh?{urlencode({'url': url})}"),
    ]
    origin.publish("/late", atom(an_item("a")))
    with origin.held("/late"):
        asked.append(await proxy.get(origin.url("/late"), wait="0.1"))
    await proxy.settled()
    return asked


async def test_the_entry_that_warns_keeps_its_identity(proxy: Proxy, origin: Origin) -> None:
    """Readers know it by a UUID of a name (RFC 9562, 5.5) in the namespace of URLs."""
    origin.publish("/feed", atom(an_item("a"), prev_archive="/gone"))
    reply = await proxy.whole(origin.url("/feed"))
    name = f"wholefeed:missing:{origin.url('/feed')}"
    assert uuid5(NAMESPACE_URL, name).urn.removeprefix("urn:") in ids(reply.body)


def test_the_schema_of_sqlite_stays() -> None:
    """The result of all migrations, for programs of an older or a newer version."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(empty_store.image())
        tables = [
            name
            for (name,) in db.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
        ]
        found = {
            "application_id": db.execute("PRAGMA application_id").fetchone()[0],
            "user_version": db.execute("PRAGMA user_version").fetchone()[0],
            "tables": {
                name: [row[0] for row in db.execute("SELECT name FROM pragma_table_info(?)", (name,))]
                for name in tables
            },
        }
    hold("sqlite", found)


def test_the_schema_of_postgresql_stays(postgres_url: str) -> None:
    """The same on PostgreSQL, with the functions that statements call."""
    with psycopg.connect(postgres_url) as db:
        columns = db.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = current_schema() ORDER BY ordinal_position"
        ).fetchall()
        functions = db.execute(
            "SELECT routine_name FROM information_schema.routines WHERE routine_schema = current_schema()"
        ).fetchall()
        (version,) = db.execute("SELECT version FROM wholefeed_schema").fetchone() or (None,)
    tables: defaultdict[str, list[str]] = defaultdict(list)
    for table, column in columns:
        tables[table].append(column)
    hold("postgres", {"version": version, "tables": tables, "functions": [name for (name,) in functions]})


async def test_what_replicas_call_each_other_s_work_stays(
    tmp_path: Path, postgres_url: str, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Channel, notices, locks and leases: replicas of two versions may share a database for a while."""
    notices: set[str] = set()
    leases: set[str] = set()
    listen = Notices.listen

    def listening(self: Notices, kind: str, callback: Callable[[str], None]) -> None:
        notices.add(kind)
        listen(self, kind, callback)

    monkeypatch.setattr(Notices, "listen", listening)
    publish_chain(origin, archives=2)

    async def look() -> None:
        leases.update(await asyncio.to_thread(names_of_leases, postgres_url))

    async with (
        running(a_config(tmp_path, store={"url": postgres_url})) as proxy,
        asyncio.TaskGroup() as readers,
    ):
        with origin.held("/archive/1") as walk:
            with origin.held("/feed") as opening:
                readers.create_task(proxy.get(origin.url("/feed")))
                await opening.reached()
                await look()
            await walk.reached()
            await look()
        with origin.held("/page") as choice:
            readers.create_task(browse(proxy, f"/?{urlencode({'url': origin.url('/page')})}"))
            await choice.reached()
            await look()
    hold(
        "replicas",
        {
            "channel": CHANNEL,
            "notices": sorted(notices),
            "leases": sorted(leases - {"task"}),  # claimed for a moment, which no look can wait for
            "locks": {"migrating": MIGRATING_LOCK, "moving": MOVING_LOCK},
        },
    )


def names_of_leases(url: str) -> set[str]:
    """Without the part that distinguishes leases of one kind."""
    with psycopg.connect(url) as db:
        return {name.partition(":")[0] for (name,) in db.execute("SELECT name FROM lease").fetchall()}
