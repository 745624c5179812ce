"""What the last answer of a fetch comes to."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Final

from wholefeed.errors import PublisherError
from wholefeed.fetch.exchange import Response
from wholefeed.fetch.failures import status_failure
from wholefeed.fetch.fetched import Fetched
from wholefeed.fetch.transfer import Transfer

_NOT_MODIFIED: Final = HTTPStatus.NOT_MODIFIED


def concluded(transfer: Transfer, response: Response, *, is_conditional: bool) -> Fetched:
    """Return what came.

    Raises:
        PublisherError: An answer 304 to a question without conditions, or no body where one was asked for.
    """
    not_modified, url = response.status == _NOT_MODIFIED, response.target.url
    if not_modified and not is_conditional:
        raise status_failure(response.status, url, None)
    if not (not_modified or response.body or transfer.manner.is_head):
        message = "expected a document, got an empty body"
        raise PublisherError(message, url=url, slug="empty", publisher_status=response.status)
    return fetched_from(transfer, response, not_modified=not_modified)


def fetched_from(transfer: Transfer, response: Response, *, not_modified: bool) -> Fetched:
    """Describe the last answer, and the way to it."""
    url, headers = response.target.url, response.kept_headers()
    return Fetched(
        url=transfer.url,
        final_url=url,
        hops=tuple(transfer.seen[1:-1]),
        permanent_url=url if len(transfer.seen) > 1 and transfer.is_permanent else None,
        not_modified=not_modified,
        body=response.body,
        media_type=headers.get("content-type", ""),
        headers=headers,
        links=response.fields("link"),
        wire_bytes=transfer.traffic.wire_bytes,
        fetched_at=time.time(),
        status=response.status,
    )
