"""The body of an answer as it arrives: what aiohttp does not tell of how one ends (docs/faults.md row 32).

with WholeBody(response):
    while chunk := await response.content.readany():
        ...
"""

from __future__ import annotations

import aiohttp

from wholefeed.futures import retrieve_failure


class WholeBody:
    """The time in which a body is read up to its true end, before decoding; leave it when enough has come.

    Raises:
        aiohttp.ClientError: It broke off. What reads it raises so, too, and HttpProcessingError where it is
            not framed as HTTP has it.
    """

    __slots__ = ("_closed", "_content", "_protocol")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        connection = response.connection
        self._content = response.content
        self._protocol = connection.protocol if connection is not None else None
        self._closed = self._protocol.closed if self._protocol is not None else None

    def __enter__(self) -> None:
        if self._closed is None:  # the connection is gone already, or has been given back
            self._end(None)
            return
        # A future whose exception nobody asks for is logged; it is the connection's, not this answer's.
        self._closed.remove_done_callback(retrieve_failure)
        self._closed.add_done_callback(retrieve_failure)
        self._closed.add_done_callback(self._end)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._closed is not None:
            self._closed.remove_done_callback(self._end)
        failure = self._protocol.exception() if kind is None and self._protocol is not None else None
        if isinstance(failure, aiohttp.ClientOSError):
            # aiohttp takes a reset for the end where no length was given.
            raise aiohttp.ClientPayloadError("reset")

    def _end(self, _: object) -> None:
        """Have the body end with its connection: behind a broken chunk aiohttp leaves its reader waiting."""
        if not self._content.is_eof() and self._content.exception() is None:
            self._content.set_exception(aiohttp.ClientPayloadError("closed"))
