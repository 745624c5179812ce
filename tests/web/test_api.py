"""wholefeed.web.api: the description against the interface, hostile requests, and the progress of a walk."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from aiohttp import ClientResponse, web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.answers import Status
from tests.feeds import an_item, atom, publish_chain
from tests.listing import LISTS, looked
from tests.origin import Origin
from tests.publishers.archive_page import ArchivePage
from tests.running import Proxy, StartProxy, a_config, running
from wholefeed import __version__
from wholefeed.core.listing.finding import WHY
from wholefeed.core.model import MEDIA_TYPE, Family, Kind, Role, State
from wholefeed.core.slugs import SLUGS
from wholefeed.core.text.urls import MAX_URL_CHARACTERS
from wholefeed.server.clients import sign
from wholefeed.service import watching
from wholefeed.service.account import DocumentStanding
from wholefeed.web import api, request
from wholefeed.web.api import description
from wholefeed.web.middlewares import PROBLEM_TYPE
from wholefeed.web.routes import routes

DOCUMENT = description()
NOT_ALWAYS = ("Retry-After", "Last-Modified")
"""Fields with descriptions that say when they are absent."""
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND")


def test_every_route_is_described_and_nothing_else() -> None:
    """A client that reads the description finds each route, and none that is not there."""
    app = web.Application()
    app.add_routes(routes())
    served = {
        (route.method.lower(), route.resource.canonical)
        for route in app.router.routes()
        if route.resource is not None
    }
    described = {(method, path) for path, item in DOCUMENT["paths"].items() for method in item}
    assert described == served - {("get", "/feed/"), ("head", "/feed/")}, "/feed tells of it"


def strings(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from strings(value)
    elif isinstance(node, list):
        for value in node:
            yield from strings(value)


def resolved(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references of the description."""
    found: Any = node
    if "$ref" in node:
        found = DOCUMENT
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
    assert isinstance(found, dict)
    return found


def operations() -> dict[tuple[str, str], Mapping[str, Any]]:
    return {
        (method.upper(), path): operation
        for path, item in DOCUMENT["paths"].items()
        for method, operation in item.items()
    }


def test_every_reference_leads_somewhere_and_every_part_is_used() -> None:
    """Clients can be generated: no reference dangles, and no part is left over."""
    used = set(strings(DOCUMENT))
    for target in used:
        assert resolved({"$ref": target})
    for kind in ("parameters", "headers", "responses", "schemas"):
        named = {f"#/components/{kind}/{name}" for name in DOCUMENT["components"][kind]}
        unused = {"MethodNotAllowed", "RequestEntityTooLarge"}  # of no particular path
        assert {each for each in named - used if each.rpartition("/")[2] not in unused} == set()


def test_operations_have_names_of_their_own_and_parameters_as_their_paths_say() -> None:
    """Operation ids are unique; all parameters and security schemes are declared."""
    found = operations()
    names = [operation["operationId"] for operation in found.values()]
    assert len(names) == len(set(names))
    for (_, path), operation in found.items():
        in_path = {p["name"] for p in map(resolved, operation["parameters"]) if p["in"] == "path"}
        assert in_path == set(re.findall(r"{(\w+)}", path))
        for requirement in operation["security"]:
            assert requirement.keys() <= DOCUMENT["components"]["securitySchemes"].keys()


def test_every_slug_is_described_and_nothing_else() -> None:
    """Each problem is described under its slug and each of its statuses."""
    described = {(status, slug) for status, slugs in problems().items() for slug in slugs}
    assert described == {(status, slug) for slug, facts in SLUGS.items() for status in facts.answers}


def problems() -> dict[int, list[str]]:
    """Return the described slugs of each status, with their meanings."""
    found = {}
    for response in DOCUMENT["components"]["responses"].values():
        facts = response["content"][PROBLEM_TYPE]["schema"]["properties"]
        slugs = [each.removeprefix("urn:wholefeed:") for each in facts["type"]["enum"]]
        assert re.findall(r"(?:^|; )`([a-z-]+)`: ", response["description"]) == slugs
        found[facts["status"]["const"]] = slugs
    return found


def test_the_words_of_a_feed_are_those_of_the_code() -> None:
    """Enumerations, media types and limits agree between code and description."""
    schemas = DOCUMENT["components"]["schemas"]
    feed = schemas["Feed"]["properties"]
    document = schemas["ChainDocument"]["properties"]
    assert feed["kind"]["enum"] == list(Kind)
    assert feed["state"]["enum"] == list(State)
    assert feed["format"]["enum"] == list(Family)
    assert document["role"]["enum"] == [*Role, None]
    assert document["standing"]["enum"] == list(DocumentStanding)
    found = operations()["GET", "/feed"]["responses"]["200"]["content"]
    assert list(found) == [MEDIA_TYPE[family] for family in Family]
    assert DOCUMENT["components"]["parameters"]["url"]["schema"]["maxLength"] == MAX_URL_CHARACTERS


def test_every_parameter_that_is_read_is_described_and_no_other() -> None:
    """A parameter of the interface is never mistaken for one of the feed's."""
    described = {p["name"] for p in DOCUMENT["components"]["parameters"].values() if p["in"] == "query"}
    keys = {s["name"] for s in DOCUMENT["components"]["securitySchemes"].values() if s.get("in") == "query"}
    assert described | keys == request.OPTIONS.union({"url"}, *request.BESIDE.values())


async def test_what_is_said_of_a_feed_is_described(proxy: Proxy, origin: Origin) -> None:
    """Each property is described with its type; the description is served with the version."""
    served = json.loads((await proxy.ask("GET", "/openapi.json")).body)
    assert served == DOCUMENT | {"info": {**DOCUMENT["info"], "version": __version__}}
    assert description("https://feeds.example/w")["servers"] == [{"url": "https://feeds.example/w"}]
    origin.publish("/feed", atom(an_item("a"), prev_archive="/gone", extra="&nbsp;"))
    url = origin.url("/feed")
    await proxy.whole(url)
    status = await proxy.status(url)
    assert status["missing"]
    assert status["notes"]
    conform(status, {"$ref": "#/components/schemas/Account"})
    assert {each["standing"] for each in status["chain"]} == {"kept", "missing"}
    conform(await failing_status(proxy, origin), {"$ref": "#/components/schemas/Account"})
    refreshed = json.loads((await proxy.ask("POST", "/refresh", params={"url": url})).body)
    conform(refreshed, {"$ref": "#/components/schemas/Status"})
    feeds = json.loads((await proxy.ask("GET", "/feeds")).body)
    conform(feeds, operations()["GET", "/feeds"]["responses"]["200"]["content"]["application/json"]["schema"])
    for path in ("/healthz", "/readyz"):
        conform(json.loads((await proxy.ask("GET", path)).body), {"$ref": "#/components/schemas/Health"})


async def test_what_a_publisher_s_pages_list_is_told(start: StartProxy, origin: Origin) -> None:
    """Each page has its URL, its number of entries, and the next look (H7)."""
    proxy = await start(history=LISTS)
    blog = ArchivePage(origin, posts=40, per_page=15)
    blog.publish()
    origin.fault("/archive/page/2/", Status(503))
    url = origin.url("/feed")
    await proxy.get(url)
    await looked(proxy)
    status = await proxy.status(url)
    conform(status, {"$ref": "#/components/schemas/Account"})
    listing = status["listing"]
    assert (listing["url"], listing["pages"], listing["entries"]) == (origin.url("/archive/"), 1, 10)
    assert (listing["guessed"], listing["limit"]) == (0, None)
    assert datetime.fromisoformat(listing["next_look"]) > datetime.fromisoformat(listing["looked"])
    pages = [each for each in status["chain"] if each["listed"]]
    assert [(each["url"], each["standing"], each["entries"]) for each in pages] == [
        (origin.url("/archive/"), "kept", 10),
        (origin.url("/archive/page/2/"), "missing", None),
    ]
    assert {each["memento"] for each in status["chain"]} == {None}


async def test_where_nothing_is_listed_it_is_told_why(start: StartProxy, origin: Origin) -> None:
    """Each page looked at has a slug; null without a look (H7)."""
    proxy = await start(history={**LISTS, "list_deny_hosts": ["localhost"]})
    blog = ArchivePage(origin, posts=30)
    blog.publish()
    origin.fault("/archive/", Status(503))
    url = origin.url("/feed")
    await proxy.get(url)
    await looked(proxy)
    status = await proxy.status(url)
    conform(status, {"$ref": "#/components/schemas/Account"})
    listing = status["listing"]
    assert (status["state"], listing["url"], listing["entries"]) == ("remembered", None, 0)
    told = {urlsplit(each["url"]).path: each for each in listing["passed_over"]}
    assert told["/"]["reason"] == "no-list"
    assert told["/"]["text"] == WHY["no-list"]
    assert (told["/archive/"]["reason"], told["/archive/"]["status"]) == ("publisher-status", 503)
    assert told["/archive/"]["text"] == SLUGS["publisher-status"].words
    assert {each["reason"] for each in told.values()} <= {*WHY, *SLUGS}
    denied = url.replace("127.0.0.1", "localhost")
    await proxy.get(denied)
    assert (await proxy.status(denied))["listing"] is None


async def failing_status(proxy: Proxy, origin: Origin) -> dict[str, Any]:
    """Return the status of a feed with a failing publisher."""
    origin.publish("/failing", atom(an_item("a")))
    url = origin.url("/failing")
    await proxy.whole(url)
    origin.fault("/failing", Status(500))
    proxy.clock.advance(86_400)
    await proxy.get(url)
    status = await proxy.status(url)
    assert status["failure"] is not None
    return status


TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    "null": type(None),
}


def conform(value: Any, schema: Mapping[str, Any]) -> None:
    """Compare a value with the JSON Schema; objects have no other properties."""
    properties = conforming(value, schema)
    if isinstance(value, dict):
        assert value.keys() <= properties


def conforming(value: Any, schema: Mapping[str, Any]) -> set[str]:
    if "enum" in schema:
        assert value in schema["enum"]
    if "const" in schema:
        assert value == schema["const"]
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        assert type(value) in [TYPES[name] for name in names], (value, names)
    assert set(schema.get("required", ())) <= (value.keys() if isinstance(value, dict) else set())
    for name, part in schema.get("properties", {}).items():
        if name in value:
            conform(value[name], part)
    if "anyOf" in schema:
        null, other = schema["anyOf"]
        conform(value, null if value is None else other)
        return set(value or ())
    for item in value if isinstance(value, list) else ():
        conform(item, schema["items"])
    found = set(schema.get("properties", {}))
    for part in (*schema.get("allOf", ()), *([resolved(schema)] if "$ref" in schema else [])):
        found |= conforming(value, part)
    return found


def test_a_value_that_does_not_conform_is_found() -> None:
    """The schema check refuses missing, additional and wrong values."""
    for value in ({}, {"status": 1}, {"status": "ok", "more": 1}, {"status": "other"}):
        with pytest.raises(AssertionError):
            conform(value, {"$ref": "#/components/schemas/Health"})


# values that belong into a request, and hostile ones
HOSTILE = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "",
            "0",
            "-1",
            "1e999",
            "nan",
            "9" * 400,
            "%",
            "%00",
            "%ff%fe",
            "\x00",
            "\r\nX-Injected: 1",
            "<script>alert(1)</script>",
            "' OR 1=1 --",
            "../../etc/passwd",
            "\u202e\u2028\ufeff",
            "a" * 3000,
        ]
    ),
)
OPTIONS = {
    "wait": st.sampled_from(["0", "0.01"]),
    "limit": st.sampled_from(["1", "2", "1000000"]),
    "since": st.sampled_from(["2023-11-14T00:00:00Z", "2023-11-14T23:59:60Z", "9999-12-31T23:59:59+00:00"]),
    "answer_bytes": st.sampled_from(["1024", "5000000"]),
    "pages": st.sampled_from(["10", "1000"]),
    "replay": st.sampled_from(["1/day", "50/week"]),
    "from": st.sampled_from(["2023-11-14T00:00:00Z", "2023-11-14T06:00:00 05:30", "9999-12-31T23:59:59Z"]),
    "on": st.sampled_from(["mon", "sat,sun"]),
    "original": st.sampled_from(["on", "off"]),
    "full": st.sampled_from(["1", "0", ""]),
    "If-None-Match": st.sampled_from(["*", '"x"', 'W/"x", "y"', '"']),
    "If-Modified-Since": st.sampled_from(["Tue, 14 Nov 2023 00:00:00 GMT", "Tue, 99 Foo 0000 00:00:00 GMT"]),
}


@dataclass(frozen=True)
class Asked:
    """A request made from the description."""

    method: str
    path: str
    """Path template of the description; empty if the path is not in it."""
    head: bytes


@st.composite
def requests(draw: st.DrawFn, urls: st.SearchStrategy[str]) -> Asked:
    path = draw(st.sampled_from([*DOCUMENT["paths"], "/feed", ""]))
    known = [method.upper() for method in DOCUMENT["paths"].get(path, {})]
    method = draw(st.sampled_from([*known * 3, *METHODS]))
    operation = operations().get((method, path), {"parameters": []})
    fields, query, target = "", [], path
    for parameter in map(resolved, operation["parameters"]):
        name = parameter["name"]
        if not (parameter.get("required") or draw(st.booleans())):
            continue
        value = draw(st.one_of(OPTIONS.get(name, urls), urls if name == "url" else HOSTILE))
        written = value if draw(st.booleans()) and value.isascii() and value.isprintable() else None
        if parameter["in"] == "header":
            fields += f"{name}: {value.translate({10: 32, 13: 32, 0: 32})}\r\n"
        elif parameter["in"] == "path":
            quoted = quote(value, safe="") if written is None or " " in written else written
            target = path.replace(f"{{{name}}}", quoted)
        else:
            safe = "" if written is None else ":/?#[]@!$'()*,;"
            query += [f"{name}={quote(value, safe=safe)}"] * draw(st.sampled_from([1, 1, 1, 1, 2]))
    if draw(st.integers(0, 4)) == 0:
        query.append(f"{quote(draw(HOSTILE))}={quote(draw(HOSTILE))}")
    target = target or f"/{quote(draw(HOSTILE))}"
    path = "/" if target == "/" else path
    head = f"{method} {target}{'?' if query else ''}{'&'.join(query)} HTTP/1.1\r\nHost: localhost\r\n{fields}"
    return Asked(method, path, f"{head}Connection: close\r\n\r\n".encode("utf-8", "surrogatepass"))


class Wire(io.BytesIO):
    """Received bytes, for http.client."""

    def makefile(self, _mode: str) -> io.BytesIO:
        return self


def check(asked: Asked, answer: bytes) -> int:
    """Compare an answer with the description; return its status."""
    reply = http.client.HTTPResponse(Wire(answer), method=asked.method)  # type: ignore[arg-type]
    reply.begin()
    body, media_type = reply.read(), (reply.headers["Content-Type"] or "").partition(";")[0]
    assert "X-Injected" not in reply.headers
    if reply.version == 10:  # no HTTP, so the application never saw it
        assert (reply.status, media_type) == (400, "text/plain")
        return reply.status
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
    operation = operations().get((asked.method, asked.path))
    if operation is None:
        assert reply.status in ((405, 404) if asked.path else (400, 404, 405)), answer
        described = resolved({"$ref": f"#/components/responses/{problem_component(reply.status)}"})
    else:
        assert str(reply.status) in operation["responses"], answer
        described = resolved(operation["responses"][str(reply.status)])
    content = described.get("content", {})
    if content or body:
        assert media_type in content, answer
    for name in described["headers"]:
        if name not in NOT_ALWAYS:
            assert name in reply.headers, (name, answer)
    if media_type == "application/problem+json" and asked.method != "HEAD":
        found = json.loads(body)
        conform(found, content[media_type]["schema"])
        assert found["request_id"] == reply.headers["X-Request-Id"]
    return reply.status


def problem_component(status: int) -> str:
    return {400: "BadRequest", 404: "NotFound", 405: "MethodNotAllowed"}[status]


def test_requests_made_from_the_description_are_answered_as_described(tmp_path: Path) -> None:
    """Status, fields and content match the description; no request gets a 500."""
    statuses: set[int] = set()
    changes = {
        "fetch": {"allow_hosts": ("127.0.0.1",), "connect_timeout_seconds": 0.5},
        "limits": {"respond_within_seconds": 1.0},
    }

    async def start() -> tuple[Any, Any, Proxy, Origin]:
        publisher, server = Origin(), running(a_config(tmp_path, **changes))
        origin = await publisher.__aenter__()
        publish_chain(origin, archives=2)
        origin.publish("/page", b"<html>no feed</html>", content_type="text/html")
        return publisher, server, await server.__aenter__(), origin

    with asyncio.Runner() as runner:
        publisher, server, proxy, origin = runner.run(start())
        own = [origin.url(path) for path in ("/feed", "/archive/1", "/page", "/gone", "/feed?a=%26&b=c#d")]
        others = [
            "http://127.0.0.1:9/",
            "http://10.0.0.1/",
            "http://2130706433/",
            "http://u:p@a.test/",
            "ftp://a/",
        ]
        urls = st.sampled_from([*own * 2, *others, f"{proxy.client.make_url('/feed')}?url=x"]) | HOSTILE

        @settings(
            max_examples=150,
            deadline=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow],
        )
        @given(requests(urls))
        def hold(asked: Asked) -> None:
            statuses.add(check(asked, runner.run(proxy.raw(asked.head))))

        try:
            hold()
        finally:
            runner.run(server.__aexit__(None, None, None))
            runner.run(publisher.__aexit__(None, None, None))
    assert statuses >= {200, 400, 404, 405}


KEY = "a key for signing feeds"


@dataclass(frozen=True)
class Event:
    """An event, parsed as a browser does."""

    name: str
    id: str
    data: dict[str, Any]


class Stream:
    """An answer that goes on."""

    def __init__(self, response: ClientResponse) -> None:
        self.response = response
        self.comments = 0
        self.retry = 0

    async def next(self) -> Event | None:
        """Return the next event; None at the end of the answer."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(300):
            async for raw in self.response.content:
                line = raw.decode().removesuffix("\n")
                if line.startswith(":"):
                    self.comments += 1
                elif line.startswith("retry: "):
                    self.retry = int(line.removeprefix("retry: "))
                elif line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif fields:
                    return Event(fields["event"], fields.get("id", ""), json.loads(fields["data"]))
        return None

    async def until(self, **progress: int) -> Event:
        """Return the first event with this progress."""
        while (event := await self.next()) is not None:
            if progress.items() <= event.data["progress"].items():
                return event
        raise AssertionError("it ended before")


@asynccontextmanager
async def followed(proxy: Proxy, url: str, **options: Any) -> AsyncIterator[Stream]:
    async with proxy.client.get("/events", params={"url": url}, **options) as response:
        yield Stream(response)


async def test_progress_is_told_while_a_walk_goes_on_and_then_that_it_has_ended(
    proxy: Proxy, origin: Origin
) -> None:
    """The last event has the state and an id."""
    publish_chain(origin, archives=3)
    url = origin.url("/feed")
    with origin.held("/archive/1") as gate:
        await proxy.begun(url)
        async with followed(proxy, url) as stream:
            assert stream.response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
            assert stream.response.headers["Cache-Control"] == "no-store"
            assert stream.response.headers["X-Accel-Buffering"] == "no"
            assert "Content-Encoding" not in stream.response.headers
            event = await stream.until(documents=3)
            assert (event.name, event.id, stream.retry) == ("status", "", 5000)
            assert event.data["walking"]
            assert event.data["state"] == "loading"
            assert event.data["progress"]["left"] == 1
            assert event.data["progress"]["entries"] == 6
            assert "chain" not in event.data
            gate.release()
            event = await stream.until(documents=4)
            while event.name != "end":
                found = await stream.next()
                assert found is not None
                event = found
            assert (event.id, event.data["state"], event.data["refreshing"]) == ("end", "complete", False)
            assert event.data["progress"]["left"] is None
            assert await stream.next() is None


async def test_where_nothing_is_under_way_it_ends_at_once_and_is_not_asked_again(
    proxy: Proxy, origin: Origin
) -> None:
    """A browser that reconnects after the end gets 204."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a"), complete=True))
    await proxy.whole(url)
    async with followed(proxy, url) as stream:
        event = await stream.next()
        assert event is not None
        assert (event.name, event.data["state"]) == ("end", "complete")
        assert await stream.next() is None
    async with followed(proxy, url, headers={"Last-Event-ID": "end"}) as stream:
        assert stream.response.status == 204
    async with followed(proxy, url, headers={"Last-Event-ID": "other"}) as stream:
        assert stream.response.status == 200


async def test_many_who_follow_a_feed_cost_what_one_costs(
    start: StartProxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is asked once for all followers."""
    monkeypatch.setattr(watching, "TICK_SECONDS", 0.01)
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    proxy = await start()
    with origin.held("/archive/1") as gate:
        await proxy.begun(url)
        await gate.reached()
        streams = [await proxy.client.get("/events", params={"url": url}) for _ in range(8)]
        for each in streams:
            assert await Stream(each).next() is not None
        assert proxy.service.watching.followers == 8
        await proxy.status(url)  # the statements that come with a request are over
        reads = 0
        read = proxy.store.read

        async def counted(work: Any) -> Any:
            nonlocal reads
            reads += 1
            return await read(work)

        monkeypatch.setattr(proxy.store.store, "read", counted)
        await asyncio.sleep(0.5)
        assert reads <= 1
        for each in streams:
            each.close()


@pytest.mark.fault("65a")
async def test_who_has_left_is_forgotten(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work for a reader ends when its connection closes."""
    monkeypatch.setattr(api, "LOOK_SECONDS", 0.02)
    publish_chain(origin, archives=1)
    with origin.held("/archive/1"):
        await proxy.begun(origin.url("/feed"))
        async with followed(proxy, origin.url("/feed")) as stream:
            assert await stream.next() is not None
            assert proxy.service.watching.followers == 1
            assert len(watchers()) == 1
            stream.response.close()
        async with asyncio.timeout(300):
            while proxy.service.watching.followers or watchers():
                await asyncio.sleep(0.01)


def watchers() -> list[str]:
    """Tasks that watch feeds for followers."""
    names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
    return [name for name in names if name.startswith(watching.Watching.__name__)]


async def test_silence_is_broken_from_time_to_time(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An idle stream sends comments, since intermediaries close idle connections."""
    monkeypatch.setattr(api, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(api, "KEEP_ALIVE_SECONDS", 0.05)
    publish_chain(origin, archives=1)
    with origin.held("/archive/1") as gate:
        await proxy.begun(origin.url("/feed"))
        async with followed(proxy, origin.url("/feed")) as stream:
            assert await stream.next() is not None
            await asyncio.sleep(0.3)
            gate.release()
            while await stream.next() is not None:
                pass
            assert stream.comments > 0


@pytest.mark.fault("65a")
async def test_too_many_are_refused(proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each follower holds a connection: the answer is 503 beyond a limit."""
    monkeypatch.setattr(watching, "MAX_FOLLOWERS", 1)
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    with origin.held("/archive/1"):
        await proxy.begun(url)
        async with followed(proxy, url) as stream:
            assert await stream.next() is not None
            async with followed(proxy, url) as refused:
                assert refused.response.status == 503
                assert int(refused.response.headers["Retry-After"]) > 0


@pytest.mark.fault("99")
async def test_one_signed_url_does_not_take_all_places(start: StartProxy, origin: Origin) -> None:
    """docs/faults.md row 99: one feed has only a share of the places."""
    publish_chain(origin, archives=1)
    origin.publish("/other", atom(an_item("a"), prev_archive="/other/1"))
    url, other = origin.url("/feed"), origin.url("/other")
    proxy = await start(server={"signing_keys": (KEY,)})
    marks = {each: sign(each, (KEY,)) for each in (url, other)}

    async def follow(feed: str) -> ClientResponse:
        return await proxy.client.get("/events", params={"url": feed, "signed": marks[feed]})

    with origin.held("/archive/1"), origin.held("/other/1"):
        for each, mark in marks.items():
            while (await proxy.get(each, signed=mark, wait="0.1")).status == 504:
                pass
        first = [await follow(url) for _ in range(40)]
        assert [each.status for each in first] == [200] * 32 + [503] * 8
        assert int(first[-1].headers["Retry-After"]) > 0
        elsewhere = await follow(other)
        assert elsewhere.status == 200
        assert await Stream(elsewhere).next() is not None
        first[0].close()
        async with asyncio.timeout(300):
            while (again := await follow(url)).status == 503:
                await asyncio.sleep(0.05)
        for stream in (*first, elsewhere, again):
            stream.close()


@pytest.mark.fault("65a")
async def test_a_feed_that_is_forgotten_meanwhile_ends_it(proxy: Proxy, origin: Origin) -> None:
    """Nobody waits for a feed that was forgotten."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    with origin.held("/archive/1"):
        await proxy.begun(url)
        async with followed(proxy, url) as stream:
            assert await stream.next() is not None
            await proxy.ask("DELETE", "/feed", params={"url": url})
            while (event := await stream.next()) is not None:
                assert event.name == "status"
