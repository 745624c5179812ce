"""What an answer may bring beside its body: heads without end, chunks with next to nothing in them.

aiohttp limits each header field and their number. It skips interim answers (`103 Early Hints`) and what
stands beside the size of a chunk without counting them, so that an answer can go on for as long as it has
time, and nobody who reads its body gets to know (docs/faults.md row 88).
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.streams import EMPTY_PAYLOAD

HEADER_BYTES: Final = 256 << 10
"""All heads of an exchange, and what frames its body; for the latter as much besides as the body has.

What frames a chunk takes five bytes at least: chunks may be of five bytes each, or few.
"""

_READ_BYTES: Final = 256 << 10
"""What asyncio reads at once: it may wait in the parser while the body is not taken."""

_SLICE_BYTES: Final = 16 << 10
"""Of heads, what is parsed between two looks at the count."""


class HeaderLimitError(aiohttp.ClientError):
    """An answer has more beside its body than any needs."""


class CountingHandler(ResponseHandler):
    """The client's end of a connection, which ends when an answer brings too much that is no body."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._received_bytes = 0
        self._former: aiohttp.StreamReader | None = None

    def set_response_params(self, **parameters: Any) -> None:
        """Count from nothing: a request is about to be sent."""
        self._received_bytes = 0
        self._former = self._payload
        super().set_response_params(**parameters)

    def data_received(self, data: bytes) -> None:
        """Count what comes, and end the connection at the limit."""
        if len(data) <= _SLICE_BYTES:
            self._take(data)
            return
        rest = data
        while rest and self._body() is None:
            part, rest = rest[:_SLICE_BYTES], rest[_SLICE_BYTES:]
            self._take(part)
            if self.exception() is not None:
                return
        if rest:
            self._take(rest)

    def _take(self, data: bytes) -> None:
        """Take what comes at once; nothing: the parser is to go on with what it has."""
        self._received_bytes += len(data)
        super().data_received(data)
        body = self._body()
        most_bytes = HEADER_BYTES if body is None else HEADER_BYTES + _READ_BYTES + 2 * body.total_bytes
        if self._received_bytes > most_bytes:
            self._end(body)

    def _body(self) -> aiohttp.StreamReader | None:
        """Return the body that the request got, once it has begun."""
        return None if self._payload in (self._former, EMPTY_PAYLOAD) else self._payload

    def _end(self, body: aiohttp.StreamReader | None) -> None:
        error = HeaderLimitError("header fields or chunks without end")
        if self.transport is not None:
            self.transport.abort()
        self.set_exception(error)
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(error)


class CountingConnector(aiohttp.TCPConnector):
    """Makes connections whose answers are counted."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        make: Callable[..., ResponseHandler] = CountingHandler
        self._factory = functools.partial(make, loop=self._loop)
