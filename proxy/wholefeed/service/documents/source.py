"""One document: fetched, parsed, and its links read.

Parsing more than 256 KiB runs in a thread. While the entries still arrive, the link to the older
document is taken from the head, so that its fetch can begin (docs/design.md#the-walk).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from wholefeed.core.links.classify import Navigation, classify, older_target
from wholefeed.core.model import FeedDocument
from wholefeed.core.parse.discovery import is_html
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.early import EarlyHead
from wholefeed.core.parse.errors import ParseError
from wholefeed.core.reading_notes import DocumentTruncated
from wholefeed.errors import DocumentError, PublisherError, UnreadableError
from wholefeed.fetch.budget import LargeWork
from wholefeed.fetch.fetched import Fetched, Validators
from wholefeed.fetch.fetcher import Fetcher

INLINE_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Obtained:
    """A document as it came from its publisher."""

    fetched: Fetched
    document: FeedDocument
    navigation: Navigation
    digest: bytes
    """SHA-256 of the body."""


class PageError(UnreadableError):
    """The answer is an HTML page; it may announce a feed."""

    def __init__(self, cause: ParseError, fetched: Fetched) -> None:
        super().__init__(str(cause), url=fetched.final_url, slug=cause.slug)
        self.fetched = fetched

    def fresh_copy(self, *, retry_after_seconds: float = 0.0) -> DocumentError:
        """Return it without the page."""
        plain = UnreadableError(self.args[0], url=self.url, slug=self.slug)
        return plain.fresh_copy(retry_after_seconds=retry_after_seconds)


class Source:
    """Where feed documents come from."""

    def __init__(self, fetcher: Fetcher, *, xml_depth: int) -> None:
        self._fetcher = fetcher
        self._xml_depth = xml_depth
        self.large = LargeWork()
        """For whoever works on documents."""

    def blocked_seconds(self, host: str) -> float:
        """Return for how long a host wants to be left alone; 0 when it does not."""
        return self._fetcher.blocked_seconds(host)

    async def obtain(
        self,
        url: str,
        *,
        validators: Validators | None = None,
        on_older: Callable[[str], None] | None = None,
        relation: str = "prev-archive",
        is_ahead: bool = False,
    ) -> Obtained | Fetched:
        """Fetch and parse one document; a `Fetched` when the publisher says that it has not changed.

        Args:
            url: Absolute http(s) URL.
            validators: Make the request conditional.
            on_older: Told the older document's URL as soon as the head gives it; a prediction.
            relation: The relation that leads to the older document.
            is_ahead: Whether the document is fetched before it is needed.

        Raises:
            DocumentError: The document cannot be had, or is not readable as a feed.
        """
        early = _early_reader(on_older, relation) if on_older else None
        fetching = self._fetcher.fetching(url, validators=validators, on_chunk=early, is_ahead=is_ahead)
        async with fetching as fetched:
            obtained = None if fetched.not_modified else await self._read(fetched)
        return obtained or fetched

    async def _read(self, fetched: Fetched) -> Obtained:
        async with self.large.turn(len(fetched.body)):
            if len(fetched.body) > INLINE_BYTES:
                return await asyncio.to_thread(_parse, fetched, self._xml_depth)
            return _parse(fetched, self._xml_depth)


def _parse(fetched: Fetched, xml_depth: int) -> Obtained:
    try:
        document = parse(fetched.body, fetched.final_url, fetched.media_type, max_depth=xml_depth)
    except ParseError as exc:
        if exc.slug == "not-a-feed" and is_html(fetched.body, fetched.media_type):
            raise PageError(exc, fetched) from exc
        raise UnreadableError(str(exc), url=fetched.final_url, slug=exc.slug) from exc
    if _broke_off_on_the_way(document, fetched):
        raise PublisherError(
            "expected a whole document, got one that breaks off", url=fetched.final_url, slug="incomplete"
        )
    navigation = classify(document, fetched.links)
    return Obtained(fetched, document, navigation, hashlib.sha256(fetched.body).digest())


def _broke_off_on_the_way(document: FeedDocument, fetched: Fetched) -> bool:
    """Whether a body that only its end delimits lacks it (docs/faults.md row 32; RFC 9112, 6.3)."""
    is_cut = any(isinstance(note, DocumentTruncated) and note.breaks_off for note in document.notes)
    return is_cut and not fetched.headers.keys() & {"content-length", "transfer-encoding"}


def _early_reader(on_older: Callable[[str], None], relation: str) -> Callable[[str, bytes], None]:
    heads: dict[str, EarlyHead] = {}

    def read(url: str, chunk: bytes) -> None:
        document = heads.setdefault(url, EarlyHead(url, "")).feed(chunk)
        if document is not None:
            target = older_target(classify(document).links, relation)
            if target:
                on_older(target)

    return read
