"""The body of an answer as it arrives: what aiohttp does not tell of how one ends (docs/faults.md row 32)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Iterator

import aiohttp
from aiohttp.client_proto import ResponseHandler

from wholefeed.futures import retrieve_failure


async def chunks(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    """Give the body in pieces, before decoding, up to its true end; close it when enough has come.

    Raises:
        aiohttp.ClientError: It broke off.
        HttpProcessingError: It is not framed as HTTP has it.
    """
    connection = response.connection
    protocol = connection.protocol if connection is not None else None
    with _ending_with(protocol, response.content):
        async for chunk in response.content.iter_any():
            yield chunk
    if protocol is not None and isinstance(protocol.exception(), aiohttp.ClientOSError):
        # aiohttp takes a reset for the end where no length was given.
        raise aiohttp.ClientPayloadError("reset")


@contextlib.contextmanager
def _ending_with(protocol: ResponseHandler | None, content: aiohttp.StreamReader) -> Iterator[None]:
    """Have a body end with its connection: behind a broken chunk aiohttp leaves its reader waiting."""

    def end(_: object) -> None:
        if not content.is_eof() and content.exception() is None:
            content.set_exception(aiohttp.ClientPayloadError("closed"))

    closed = protocol.closed if protocol is not None else None
    if closed is None:  # the connection is gone already, or has been given back
        end(closed)
        yield
        return
    # A future whose exception nobody asks for is logged; it belongs to the connection, not to this answer.
    closed.remove_done_callback(retrieve_failure)
    closed.add_done_callback(retrieve_failure)
    closed.add_done_callback(end)
    try:
        yield
    finally:
        closed.remove_done_callback(end)
