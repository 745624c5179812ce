"""The errors that stop an answer, each with its HTTP status and slug (RFC 9457).

WholefeedError
|-- ConfigError                          start-up only
|-- StoreError                500 store
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
|   |-- ImportRefusedError    422 another-feed, format, limit; those of UnreadableError, too
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

Raise the most precise class. A `DocumentError` of an archive document becomes a note (its `slug` is the
reason); of a subscription document it becomes the answer where nothing is stored.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from wholefeed.core.slugs import SLUGS

REMEMBERED_SECONDS: Final = 60.0
"""For so long at most a failure counts for those who ask next (docs/faults.md row 21)."""


class WholefeedError(Exception):
    """The message is for people, `slug` for programs. A class without a slug has that of its base."""

    default_slug: ClassVar[str] = "internal"
    status: ClassVar[int] = SLUGS["internal"].status
    """That of the class's own slug; `answer_status` is what is answered."""

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
    """The configuration cannot be used; the message names the key, the value and what is allowed."""


class StoreError(WholefeedError, slug="store"):
    """The database cannot do what was asked."""


class StoreUnusableError(StoreError, slug="store-unusable"):
    """The database file is foreign, corrupt or newer than this program. Nothing was changed in it."""


class StorageFullError(StoreError, slug="storage-full"):
    """The volume of the database is full or cannot be written."""


class StoreDamagedError(StoreError, slug="store-damaged"):
    """SQLite found the database file malformed while it was in use. What can be read is still served."""


class RequestError(WholefeedError, slug="bad-request"):
    """Something is wrong with the request itself; the message says what was expected."""


class InvalidUrlError(RequestError, slug="invalid-url"):
    """The URL of a feed is not one that can be fetched."""


class UnauthorizedError(RequestError, slug="unauthorized"):
    """The token is missing or wrong."""


class AccessDeniedError(RequestError, slug="signature-required"):
    """The client may not do that, and no token that is set could help."""


class TooManyRequestsError(RequestError, slug="too-many-requests"):
    """The client asks more often than `server.client_requests_per_minute`; again in `retry_after_seconds`."""

    def __init__(self, message: str, *, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class UsageError(RequestError, RuntimeError):
    """The library was called where that cannot work: after a session's end, or in the wrong event loop."""


class MisdirectedError(RequestError, slug="misdirected"):
    """The Host of the request is not one that links may be made from (RFC 9110, 7.4)."""


class UnknownFeedError(RequestError, slug="unknown-feed"):
    """Nothing is stored for that URL."""


class NoSuchEntryError(RequestError, slug="no-such-entry"):
    """The feed has no entry of that id."""


class NoSuchPageError(RequestError, slug="no-such-page"):
    """The feed has no page of that number: at all, or until `retry_after_seconds` have passed."""

    def __init__(self, message: str, *, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class UploadError(RequestError, slug="not-opml"):
    """What was sent is no subscription list, or not readable as one."""


class ImportRefusedError(RequestError, slug="another-feed"):
    """A document that was sent is not taken into the feed (I1), or none was taken by that name."""


class OverloadedError(WholefeedError, slug="overloaded"):
    """No capacity now, or shutting down; try again after `retry_after_seconds`."""

    def __init__(self, message: str, *, slug: str = "", retry_after_seconds: int = 10) -> None:
        super().__init__(message, slug=slug)
        self.retry_after_seconds = retry_after_seconds


class LeaseLostError(OverloadedError):
    """Another replica may have taken over this work: nothing more of it is written here."""


class WorkError(WholefeedError, slug="work-failed"):
    """The process that worked on a document ended in the middle of it. The next document gets a new one."""


class WorkTooLongError(WorkError, slug="too-costly"):
    """A document takes more work than one may."""


class WorkTooLargeError(WorkError, slug="memory-short"):
    """There is not enough memory now to work on a document."""

    retry_after_seconds: ClassVar[int] = 10
    """When there may be."""


class DocumentError(WholefeedError, slug="publisher-failed"):
    """One document could not be had, or could not be used.

    Args:
        message: What was expected and what came.
        url: The document concerned, without credentials.
        slug: The public reason; the class's own when empty.
        publisher_status: The HTTP status that the publisher sent, where there was one.
        retry_after_seconds: When to ask again, where that is known: the publisher said so (RFC 9110, 10.2.3;
            clamped), or its host is left alone for so long.
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
        """For so long what could not be opened is not tried again, by what was said of when to ask again."""
        return min(self.retry_after_seconds or REMEMBERED_SECONDS, REMEMBERED_SECONDS)

    def fresh_copy(self, *, retry_after_seconds: float = 0.0) -> DocumentError:
        """Return the same error to be raised once more, without traceback, cause and the objects they hold.

        It says to ask again after `retry_after_seconds` at the earliest.
        """
        return type(self)(
            self.args[0],
            url=self.url,
            slug=self.slug,
            publisher_status=self.publisher_status,
            retry_after_seconds=max(self.retry_after_seconds or 0.0, retry_after_seconds) or None,
        )


class ForbiddenTargetError(DocumentError, slug="destination-forbidden"):
    """The target's address or port is refused, and the message never says which rule refused it.

    So is a URL that leads to the feed of a private publisher, and is not that publisher's (A3).
    """


class LoopDetectedError(DocumentError, slug="loop-detected"):
    """The target is this proxy."""


class QueueFullError(DocumentError, slug="overloaded"):
    """Too many requests wait already, for the publisher's host or in all; nothing was asked of it."""


class PublisherError(DocumentError):
    """The publisher's answer could not be had or is broken as HTTP."""


class PublisherStatusError(PublisherError, slug="publisher-status"):
    """The publisher answered with a status that is no document."""

    @property
    def answer_status(self) -> int:
        """404 and 410 are passed on; everything else is a failure of the publisher's."""
        status = self.publisher_status
        if status is not None and status in SLUGS[self.slug].answers:
            return status
        return super().answer_status


class PublisherTimeoutError(PublisherError, slug="timeout"):
    """The publisher did not answer in the time allowed."""


class NothingYetError(PublisherTimeoutError):
    """The publisher is still being asked, and the caller did not wait for the end."""

    def __init__(self, message: str, *, retry_after_seconds: float | None = None, **facts: Any) -> None:
        super().__init__(message, retry_after_seconds=retry_after_seconds or _NOTHING_YET_SECONDS, **facts)


_NOTHING_YET_SECONDS: Final = 5.0
"""After that, who did not wait long enough may ask again."""


class UnreadableError(DocumentError, slug="not-a-feed"):
    """The publisher's answer is no feed, or not readable as one."""
