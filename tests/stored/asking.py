"""Requests to a proxy on a stored database, and the compared parts of its answers.

    unpacked("schema-14", tmp_path)
    async with opened(tmp_path, at=recorded["opened_at"]) as (proxy, publishers):
        answers, bodies = await everything(proxy, recorded["aliases"])
    assert publishers.requests == []

Time stands still, and publishers are asked through an HTTP proxy that answers nothing, so that URLs need no
host and what is asked shows. Left out, since it does not come from what is stored or can differ where nothing
is wrong: the fields Date, Server, Vary and those that say what a browser may do; the length of what is
compressed, which is the compressor's; `bytes` of `/status`, the size of compressed bodies; and what stands
around the entries on the pages for people.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from tests.answers import Status
from tests.origin import Origin
from tests.running import Clock, Proxy, Reply, a_config, running

FOLDER: Final = Path(__file__).parents[1] / "data" / "stored"
PUBLIC_URL: Final = "https://reader.example"
"""Public URL of the proxy, in links to itself."""

HEADERS: Final = (
    "Content-Type", "Content-Encoding", "Content-Length", "Feed-Reconstruction", "ETag", "Last-Modified",
    "Cache-Control", "Link", "Location", "Content-Disposition",
)  # fmt: skip

VIEWS: Final[tuple[Mapping[str, str], ...]] = (
    {"limit": "1"},
    {"limit": "3"},
    {"since": "2023-11-15T01:00:00Z"},
    {"since": "2019-01-20T00:00:00Z"},
    {"answer_bytes": "1500"},
    {"limit": "2", "since": "2023-11-15T01:00:00Z"},
    {"limit": "3", "since": "2019-01-20T00:00:00Z", "answer_bytes": "1800"},
)
"""Parts of a feed; some hold all of a short one."""

IDENTITY: Final = {"Accept-Encoding": "identity"}
GZIP: Final = {"Accept-Encoding": "gzip"}

Answer = dict[str, Any]

_SUFFIXES: Final = {"application/feed+json": ".json"}
_LINE: Final = 500
_ARTICLE: Final = re.compile(r"<article\b.*?</article>", re.DOTALL)


class StoppedClock(Clock):
    def __init__(self, at: float) -> None:
        super().__init__()
        self.at = at

    def __call__(self) -> float:
        return self.at


def unpacked(name: str, folder: Path) -> Path:
    """Put a copy of a database where `opened` looks for it."""
    copy = folder / "wholefeed.db"
    copy.write_bytes(gzip.decompress((FOLDER / f"{name}.db.gz").read_bytes()))
    return copy


@asynccontextmanager
async def opened(folder: Path, *, at: float) -> AsyncIterator[tuple[Proxy, Origin]]:
    """Start a proxy on a folder's database at a stopped instant.

    Yields the proxy and a recorder of its requests, which answers 502 by default.
    """
    async with Origin() as publishers:
        publishers.answer_below("", Status(502))
        config = a_config(
            folder,
            fetch={"proxy": publishers.url("")},
            server={"public_url": PUBLIC_URL},
            limits={"workers": 0},
        )
        async with running(config, StoppedClock(at)) as proxy:
            yield proxy, publishers


async def everything(proxy: Proxy, aliases: Iterable[str] = ()) -> tuple[dict[str, Answer], dict[str, bytes]]:
    """Return the compared parts of each answer by request, and the whole feeds by file name.

    Args:
        proxy: It is asked for all the feeds that it lists.
        aliases: Other URLs by which they are known.
    """
    answers: dict[str, Answer] = {}
    bodies: dict[str, bytes] = {}
    listed = await proxy.ask("GET", "/feeds", headers=IDENTITY)
    answers["GET /feeds"] = _told(listed, json.loads(listed.body))
    opml = await proxy.ask("GET", "/opml", headers=IDENTITY)
    answers["GET /opml"] = _told(opml, opml.body.decode().splitlines())
    for url in sorted(feed["url"] for feed in json.loads(listed.body)):
        await proxy.whole(url)
        await proxy.settled()
        whole = await _ask(proxy, answers, "GET", url)
        name = file_name(url, whole.headers.get("Content-Type", ""))
        assert name not in bodies
        bodies[name] = whole.body
        await _ask_otherwise(proxy, answers, url, whole)
        for view in VIEWS:
            await _ask(proxy, answers, "GET", url, view)
        await _ask(proxy, answers, "GET", url, VIEWS[1], coding=GZIP)
        await _ask_about(proxy, answers, url)
    for url in aliases:
        await _ask(proxy, answers, "GET", url)
    return answers, bodies


def written(value: object, indent: str = "") -> str:
    """Return JSON with short values on one line, for readable differences."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(flat) <= _LINE:
        return flat
    inner = f"{indent} "
    if isinstance(value, list):
        return "[\n" + ",\n".join(f"{inner}{written(each, inner)}" for each in value) + f"\n{indent}]"
    members = (f"{inner}{json.dumps(name)}: {written(each, inner)}" for name, each in value.items())
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"


def file_name(url: str, content_type: str) -> str:
    parts = urlsplit(url)
    place = re.sub(r"\W+", "-", f"{parts.hostname} {parts.path} {parts.query}").strip("-")
    return place + _SUFFIXES.get(content_type, ".xml")


def requested(publishers: Origin) -> list[str]:
    """Return the requests to publishers, and whether they offered validators; unordered."""
    return sorted(
        f"{request.method} {request.target}{' if changed' if 'if-none-match' in request.headers else ''}"
        for request in publishers.requests
    )


async def refreshed(proxy: Proxy) -> tuple[dict[str, Answer], dict[str, bytes]]:
    """Refresh each feed; return the answers then, as `everything` does.

    The machine's own clock sets a document's receipt, so `/status` and freshness fields are not compared.
    """
    answers: dict[str, Answer] = {}
    bodies: dict[str, bytes] = {}
    for url in sorted(feed["url"] for feed in json.loads((await proxy.ask("GET", "/feeds")).body)):
        whole = await proxy.refreshed(url)
        bodies[file_name(url, whole.headers.get("Content-Type", ""))] = whole.body
        answer = answers[url] = _told(whole)
        answer["headers"].pop("Cache-Control")
    return answers, bodies


def differences(recorded: Mapping[str, Answer], answers: Mapping[str, Answer]) -> list[str]:
    """Return the differences in words: request, place in the answer, recorded and new value."""
    found = [f"{asked}: not asked any more" for asked in recorded.keys() - answers.keys()]
    for asked, answer in answers.items():
        if asked not in recorded:
            found.append(f"{asked}: not recorded")
        else:
            found += [f"{asked}: {each}" for each in _differing("", recorded[asked], answer)]
    return found


async def _ask(
    proxy: Proxy,
    answers: dict[str, Answer],
    method: str,
    url: str,
    view: Mapping[str, str] | None = None,
    *,
    coding: Mapping[str, str] = IDENTITY,
    fields: Mapping[str, str] | None = None,
) -> Reply:
    """Ask for a feed and note the answer, its body by digest."""
    target = f"/feed?{urlencode({'url': url, **(view or {})})}"
    reply = await proxy.ask(method, target, headers={**coding, **(fields or {})})
    noted = "".join(f" {name}" for name in (*(["gzip"] if coding is GZIP else []), *(fields or {})))
    answers[f"{method} {target}{noted}"] = _told(reply)
    return reply


async def _ask_otherwise(proxy: Proxy, answers: dict[str, Answer], url: str, whole: Reply) -> None:
    """Ask for the same again: compressed, by other forms of the URL, with the ETag."""
    packed = await _ask(proxy, answers, "GET", url, coding=GZIP)
    if packed.headers.get("Content-Encoding") == "gzip":
        assert gzip.decompress(packed.body) == whole.body, url
    await _ask(proxy, answers, "HEAD", url)
    prefixed = await proxy.ask("GET", f"/{url}", headers=IDENTITY)
    answers[f"GET /{url}"] = _told(prefixed)
    if "ETag" in whole.headers:
        await _ask(proxy, answers, "GET", url, fields={"If-None-Match": whole.headers["ETag"]})
        await _ask(proxy, answers, "GET", url, fields={"If-Modified-Since": whole.headers["Last-Modified"]})


async def _ask_about(proxy: Proxy, answers: dict[str, Answer], url: str) -> None:
    """Ask for a feed's status, and its entries as people see them."""
    status = await proxy.ask("GET", f"/status?url={quote(url, safe='')}", headers=IDENTITY)
    told = json.loads(status.body)
    told.pop("bytes", None)
    answers[f"GET /status {url}"] = _told(status, told)
    page = await proxy.ask("GET", f"/view?url={quote(url, safe='')}", headers=IDENTITY)
    articles = [line for each in _ARTICLE.findall(page.body.decode()) for line in each.splitlines() if line]
    answers[f"GET /view {url}"] = _told(page, articles)


def _told(reply: Reply, body: object = None) -> Answer:
    """Return the compared parts of an answer; other bodies by digest."""
    headers = {name: reply.headers[name] for name in HEADERS if name in reply.headers}
    content = reply.body
    if headers.get("Content-Encoding") == "gzip":
        headers.pop("Content-Length", None)
        content = gzip.decompress(content) if content else b""
    if body is not None:
        headers.pop("Content-Length", None)
        return {"status": reply.status, "headers": headers, "body": body}
    digest = hashlib.sha256(content).hexdigest() if content else None
    return {"status": reply.status, "headers": headers, "sha256": digest}


def _differing(place: str, before: object, after: object) -> list[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        names = [*before, *(name for name in after if name not in before)]
        return [
            each
            for name in names
            for each in _differing(f"{place}/{name}", before.get(name), after.get(name))
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [each for n, (one, other) in pairs for each in _differing(f"{place}/{n}", one, other)]
    return [] if before == after else [f"{place}: {before!r} has become {after!r}"]
