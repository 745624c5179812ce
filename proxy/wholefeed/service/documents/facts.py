"""What a decision is told of a document that was fetched, or of why it was not."""

from __future__ import annotations

from typing import NamedTuple

from wholefeed.core.refresh.events import ArchivedCopy, Failure, FreshDocument, Reply
from wholefeed.core.schedule.freshness import is_uncacheable
from wholefeed.errors import DocumentError, QueueFullError
from wholefeed.fetch.fetched import Fetched
from wholefeed.service.documents.shapes import arrival_of
from wholefeed.service.documents.source import Obtained


class OfferedCopy(NamedTuple):
    """What a web archive has of a document that its publisher does not give."""

    url: str
    """Of the document."""
    obtained: Obtained
    is_subscription: bool
    """Whether it is of the subscription document."""


def fresh_document(url: str, obtained: Obtained, *, is_collected: bool = False) -> FreshDocument:
    """Describe a document that was asked for by a URL; `is_collected`: by an adapter."""
    navigation = obtained.navigation
    return FreshDocument(
        arrival=arrival_of(url, obtained),
        kind=navigation.kind,
        older_relation=navigation.older_relation,
        is_tentative=navigation.is_tentative,
        is_marked=navigation.is_archive,
        is_uncacheable=is_uncacheable(obtained.fetched.headers),
        updated_at=obtained.read.facts.updated_at,
        marks=obtained.read.marks,
        order=tuple(entry.order_at for entry in obtained.read.facts.entries) if is_collected else (),
        validators=validators_of(obtained.fetched),
        reading_notes=obtained.read.facts.notes,
        link_notes=navigation.notes,
    )


def validators_of(fetched: Fetched) -> tuple[str, str]:
    """Return ETag and Last-Modified, empty where there is none."""
    return fetched.headers.get("etag", ""), fetched.headers.get("last-modified", "")


def archived_copy(url: str, obtained: Obtained, *, is_subscription: bool) -> ArchivedCopy:
    """Describe what a web archive has of a document."""
    return ArchivedCopy(
        url=url,
        copy_url=obtained.memento,
        captured_at=obtained.fetched.fetched_at,
        fresh=fresh_document(url, obtained),
        is_subscription=is_subscription,
    )


def reply_of(fetched: Fetched) -> Reply:
    """Describe what a publisher said beside a document."""
    return Reply(url=fetched.url, permanent_url=fetched.permanent_url, headers=fetched.headers)


def failure_of(error: DocumentError) -> Failure:
    """Describe why a document could not be had; without the body, which the error may hold."""
    return Failure(
        slug=error.slug,
        publisher_status=error.publisher_status,
        retry_after_seconds=error.retry_after_seconds,
        is_unasked=isinstance(error, QueueFullError),
    )
