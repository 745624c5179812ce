"""The errors that stop an answer, each with its HTTP status and slug (RFC 9457).

WholefeedError
|-- ConfigError                          start-up only
|-- StoreError                500 store
|   |-- DiskError             500 store
|   |-- StoreUnusableError               start-up only: foreign, corrupt or newer file
|   |-- StorageFullError      503 storage-full
|   `-- StoreDamagedError     503 store-damaged
|-- RequestError              400 bad-request
|   |-- InvalidUrlError       400 invalid-url, ambiguous-host, userinfo-not-allowed
|   |-- UnauthorizedError     401 unauthorized
|   |-- AccessDeniedError     403 signature-required, bad-signature, expired-signature, token-required,
|   |                             cross-origin
|   |-- TooManyRequestsError  429 too-many-requests
|   |-- MisdirectedError      421 misdirected
|   |-- UnknownFeedError      404 unknown-feed
|   |-- NoSuchEntryError      404 no-such-entry
|   |-- NoSuchPageError       404 no-such-page
|   |-- NoSuchIntakeError     404 no-such-intake
|   |-- ImportRefusedError    422 another-feed, format, limit, too-costly; those of UnreadableError
|   |-- UploadError           422 not-opml, malformed-xml, dtd-forbidden, xml-limit,
|   |                             unsupported-format, unsupported-encoding
|   `-- UsageError                       the library alone
|-- OverloadedError           503 overloaded, shutting-down
|   `-- LeaseLostError        503 overloaded
|-- WorkError                 500 work-failed
|   |-- WorkTooLongError      422 too-costly
|   `-- WorkTooLargeError     503 memory-short
`-- DocumentError                        one document could not be had or used
    |-- ForbiddenTargetError  403 destination-forbidden
    |-- LoopDetectedError     508 loop-detected
    |-- QueueFullError        503 overloaded
    |-- PublisherError        502 publisher-failed and finer slugs
    |   |-- PublisherStatusError         404/410 as the publisher says, else 502
    |   `-- PublisherTimeoutError  504 timeout, dns-timeout
    |       `-- NothingYetError         504 timeout: the caller did not wait long enough
    `-- UnreadableError       422 malformed-xml, malformed-json, dtd-forbidden, xml-limit,
                              not-a-feed, unsupported-format, unsupported-encoding

A `DocumentError` of an archive document becomes a note; of a subscription document, it becomes the answer
where nothing is stored.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from wholefeed.core.slugs import SLUGS

REMEMBERED_SECONDS: Final = 60.0
"""The most that a failure counts for later requests (docs/faults.md row 21)."""


class WholefeedError(Exception):
    """An error with a message for people and a slug for programs."""

    default_slug: ClassVar[str] = "internal"
    status: ClassVar[int] = SLUGS["internal"].status
    """By the class's own slug; answers use `answer_status`."""

    def __init_subclass__(cls, *, slug: str = "") -> None:
        cls.default_slug = slug or cls.default_slug
        cls.status = SLUGS[cls.default_slug].status

    def __init__(self, message: str, *, slug: str = "") -> None:
        super().__init__(message)
        self.slug = slug or self.default_slug

    @property
    def answer_status(self) -> int:
        return SLUGS[self.slug].status


class ConfigError(WholefeedError, slug="config"):
    """An unusable configuration; the message names key, value and allowed values."""


class StoreError(WholefeedError, slug="store"):
    """A failed database operation."""


class StoreUnusableError(StoreError, slug="store-unusable"):
    """A foreign, corrupt or newer database file, left unchanged."""


class DiskError(StoreError):
    """A failed read of the disk, or an unknown failure of it."""


class StorageFullError(StoreError, slug="storage-full"):
    """A full, read-only or failing volume."""


class StoreDamagedError(StoreError, slug="store-damaged"):
    """A database file found malformed in use; readable parts are still served."""


class RequestError(WholefeedError, slug="bad-request"):
    """A faulty request; the message states the requirement."""


class InvalidUrlError(RequestError, slug="invalid-url"):
    """A feed URL that no fetch can use."""


class UnauthorizedError(RequestError, slug="unauthorized"):
    """A missing or wrong token."""


class AccessDeniedError(RequestError, slug="signature-required"):
    """An action that no configured token permits."""


class TooManyRequestsError(RequestError, slug="too-many-requests"):
    """More requests than `server.client_requests_per_minute`."""

    def __init__(self, message: str, *, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class UsageError(RequestError, RuntimeError):
    """A library call after the session's end, or in the wrong event loop."""


class MisdirectedError(RequestError, slug="misdirected"):
    """A Host field that links must not use (RFC 9110, 7.4)."""


class UnknownFeedError(RequestError, slug="unknown-feed"):
    """A URL without a stored feed."""


class NoSuchEntryError(RequestError, slug="no-such-entry"):
    """An identity without an entry."""


class NoSuchPageError(RequestError, slug="no-such-page"):
    """A page number without a page, at all or for `retry_after_seconds`."""

    def __init__(self, message: str, *, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class NoSuchIntakeError(RequestError, slug="no-such-intake"):
    """No such intake (B1)."""


class UploadError(RequestError, slug="not-opml"):
    """An upload that is no readable subscription list."""


class ImportRefusedError(RequestError, slug="another-feed"):
    """A document refused for import (I1), or an unknown name."""


class OverloadedError(WholefeedError, slug="overloaded"):
    """No capacity now, or shutting down."""

    def __init__(self, message: str, *, slug: str = "", retry_after_seconds: int = 10) -> None:
        super().__init__(message, slug=slug)
        self.retry_after_seconds = retry_after_seconds


class LeaseLostError(OverloadedError):
    """Another replica may own this work, so nothing more is written."""


class WorkError(WholefeedError, slug="work-failed"):
    """A worker process that ended in the middle of a document."""


class WorkTooLongError(WorkError, slug="too-costly"):
    """A document that needs too much work."""


class WorkTooLargeError(WorkError, slug="memory-short"):
    """Too little memory for a document now."""

    retry_after_seconds: ClassVar[int] = 10


class DocumentError(WholefeedError, slug="publisher-failed"):
    """A failure to get or use one document.

    Args:
        url: Without credentials.
        slug: The class's own when empty.
        publisher_status: None without a response.
        retry_after_seconds: Of the publisher (RFC 9110, 10.2.3; clamped) or its host's rest; None: unknown.
    """

    def __init__(
        self,
        message: str,
        *,
        url: str,
        slug: str = "",
        publisher_status: int | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message, slug=slug)
        self.url = url
        self.publisher_status = publisher_status
        self.retry_after_seconds = retry_after_seconds

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.url}"

    @property
    def remembered_seconds(self) -> float:
        return min(self.retry_after_seconds or REMEMBERED_SECONDS, REMEMBERED_SECONDS)

    def fresh_copy(self, *, retry_after_seconds: float = 0.0) -> DocumentError:
        """Return the error without traceback, cause and the objects they hold.

        Its `retry_after_seconds` is at least the argument.
        """
        return type(self)(
            self.args[0],
            url=self.url,
            slug=self.slug,
            publisher_status=self.publisher_status,
            retry_after_seconds=max(self.retry_after_seconds or 0.0, retry_after_seconds) or None,
        )


class ForbiddenTargetError(DocumentError, slug="destination-forbidden"):
    """A refused address or port, or a foreign URL that leads to a private feed (A3)."""


class LoopDetectedError(DocumentError, slug="loop-detected"):
    """The proxy itself as target."""


class QueueFullError(DocumentError, slug="overloaded"):
    """Too many waiting requests; the publisher was not asked."""


class PublisherError(DocumentError):
    """A missing response, or one broken as HTTP."""


class PublisherStatusError(PublisherError, slug="publisher-status"):
    """A response without a document, by its status."""

    @property
    def answer_status(self) -> int:
        """The publisher's 404 or 410; for others the slug's status."""
        status = self.publisher_status
        if status is not None and status in SLUGS[self.slug].answers:
            return status
        return super().answer_status


class PublisherTimeoutError(PublisherError, slug="timeout"):
    """No response in time."""


class NothingYetError(PublisherTimeoutError):
    """A fetch still under way when the caller's wait ended."""

    def __init__(self, message: str, *, retry_after_seconds: float | None = None, **facts: Any) -> None:
        super().__init__(message, retry_after_seconds=retry_after_seconds or _NOTHING_YET_SECONDS, **facts)


_NOTHING_YET_SECONDS: Final = 5.0


class UnreadableError(DocumentError, slug="not-a-feed"):
    """A response that is no readable feed."""
