"""The sample publisher: a small web server on loopback, in a thread of its own.

with Publisher(latency_seconds=0.02) as publisher:
    urllib.request.urlopen(publisher.url(publisher.feeds[0].path))
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final

from demo.feeds import SampleFeed, home_page, log_feed, workshop_feed
from demo.journal import journal_feed

_IDLE_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class _Resource:
    media_type: str
    body: bytes

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()[:16]}"'


class Publisher:
    """Serves two archived feeds, a blog without history links, and a page for every entry.

    Each answer is `latency_seconds` late.
    """

    def __init__(self, *, latency_seconds: float = 0.0) -> None:
        self._latency_seconds = latency_seconds
        self._server = _Server(("127.0.0.1", 0), self)
        self._thread = threading.Thread(target=self._server.serve_forever, name="publisher", daemon=True)
        base = self.url("")
        self.feeds: tuple[SampleFeed, ...] = (log_feed(base), workshop_feed(base), journal_feed(base))
        self._resources = _resources(self.feeds)
        self._requests: list[str] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    @property
    def request_count(self) -> int:
        return len(self._requests)

    def __enter__(self) -> Publisher:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def find(self, path: str) -> _Resource | None:
        """Return the document at `path` after a network's delay."""
        self._requests.append(path)
        time.sleep(self._latency_seconds)
        return self._resources.get(path)


def _resources(feeds: tuple[SampleFeed, ...]) -> Mapping[str, _Resource]:
    html = "text/html; charset=utf-8"
    found = {"/": _Resource(html, home_page(feeds).encode())}
    for feed in feeds:
        found |= {path: _Resource(feed.media_type, body) for path, body in feed.documents.items()}
        found |= {path: _Resource(html, page.encode()) for path, page in feed.pages.items()}
    return found


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # connections that are kept alive must not hold up the end

    def __init__(self, address: tuple[str, int], publisher: Publisher) -> None:
        super().__init__(address, _Handler)
        self.publisher = publisher

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that hangs up is no event."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "sample-publisher"
    sys_version = ""
    timeout = _IDLE_SECONDS
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one packet
    server: _Server

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        resource = self.server.publisher.find(self.path)
        if resource is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        is_known = self.headers.get("If-None-Match") == resource.etag
        self.send_response(HTTPStatus.NOT_MODIFIED if is_known else HTTPStatus.OK)
        self.send_header("ETag", resource.etag)
        if not is_known:
            self.send_header("Content-Type", resource.media_type)
            self.send_header("Content-Length", str(len(resource.body)))
        self.end_headers()
        if with_body and not is_known:
            self.wfile.write(resource.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
        """Log nothing: the demonstration prints its own story."""
