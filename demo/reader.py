"""A feed reader: asks with gzip and the last ETag, and counts the entries."""

from __future__ import annotations

import gzip
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final
from xml.etree import ElementTree as ET

_TIMEOUT_SECONDS: Final = 30
_ENTRY_NAMES: Final = ("{http://www.w3.org/2005/Atom}entry", "item")
_PATIENCE_SECONDS: Final = 60
_PAUSE_SECONDS: Final = 0.5

_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no system proxy


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer at a reader: `wire_bytes` as received, `entries` counted in the document."""

    status: int
    etag: str
    reconstruction: dict[str, str] = field(default_factory=dict)
    wire_bytes: int
    body_bytes: int
    entries: int
    seconds: float

    @property
    def state(self) -> str:
        """The feed's state in the proxy's answer; empty without the proxy."""
        return self.reconstruction.get("state", "")


def proxied(base: str, feed_url: str) -> str:
    return f"{base}/feed?url={urllib.parse.quote(feed_url, safe='')}"


def ask(url: str, *, etag: str = "") -> Answer:
    """Ask once.

    Raises:
        OSError: No answer, or one that is an error.
    """
    request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip", "User-Agent": "demo-reader"})
    if etag:
        request.add_header("If-None-Match", etag)
    started = time.perf_counter()
    try:
        with _OPENER.open(request, timeout=_TIMEOUT_SECONDS) as response:
            wire, headers, status = response.read(), response.headers, response.status
    except urllib.error.HTTPError as exc:
        if exc.code != HTTPStatus.NOT_MODIFIED:
            raise
        wire, headers, status = b"", exc.headers, exc.code
        exc.close()
    seconds = time.perf_counter() - started
    body = gzip.decompress(wire) if headers.get("Content-Encoding") == "gzip" else wire
    return Answer(
        status=status,
        etag=headers.get("ETag", ""),
        reconstruction=_reconstruction(headers.get("Feed-Reconstruction", "")),
        wire_bytes=len(wire),
        body_bytes=len(body),
        entries=_count_entries(body),
        seconds=seconds,
    )


def ask_until_settled(url: str) -> Iterator[Answer]:
    """Ask again while the proxy still walks, as a reader does at its next poll."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        answer = ask(url)
        yield answer
        if answer.state != "loading" or time.monotonic() > until:
            return
        time.sleep(_PAUSE_SECONDS)


def _reconstruction(value: str) -> dict[str, str]:
    """`complete;documents=3;entries=9` as a mapping; the state stands under `state`."""
    state, *parameters = (part.strip() for part in value.split(";"))
    pairs = (parameter.partition("=") for parameter in parameters)
    return {"state": state, **{name: text for name, _, text in pairs}}


def _count_entries(body: bytes) -> int:
    if not body:
        return 0
    root = ET.fromstring(body)
    return sum(1 for element in root.iter() if element.tag in _ENTRY_NAMES)
