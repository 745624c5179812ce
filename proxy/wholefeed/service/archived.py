"""The copies of a document in a web archive that can be used (R33).

    copies = ArchivedCopies(source, archive, now)
    obtained = await copies.newest(url, like=row)       # None where none is of use

A copy must be readable as a feed and say that it belongs to the one that it is for: an archive is another
site, and the publisher's domain may have changed hands.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

from wholefeed.core.memento.captures import Capture
from wholefeed.core.memento.choice import for_gone, for_missing, is_confirmed
from wholefeed.core.slugs import lasts
from wholefeed.errors import DocumentError
from wholefeed.fetch.memento import Archive
from wholefeed.loggers import get_logger
from wholefeed.service.documents.source import Obtained, Source
from wholefeed.store.rows import DocumentRow

log = get_logger()

_STRAINED: Final = frozenset({408, 425, 429, *range(500, 600)})
_BROKEN: Final = frozenset({"incomplete", "protocol-error", "header-limit"})
"""The copy, as it was archived, more likely than the archive."""


class ArchiveError(Exception):
    """The archive itself fails: nothing else is asked of it for a while."""

    def __init__(self, cause: DocumentError) -> None:
        super().__init__(cause.slug)
        self.slug = cause.slug
        self.rest_seconds = cause.retry_after_seconds or 0.0


class ArchivedCopies:
    """All of it raises `ArchiveError`.

    Args:
        source: Reads them.
        archive: Has them.
        now: Epoch seconds.
    """

    def __init__(self, source: Source, archive: Archive, now: Callable[[], float]) -> None:
        self._source = source
        self._archive = archive
        self._now = now

    @property
    def waiting(self) -> int:
        """How many requests to the archive wait for their turn."""
        return self._archive.waiting

    async def newest(self, url: str, like: DocumentRow | None) -> Obtained | None:
        """Return the newest copy that is of use; None where none is.

        Args:
            url: Of the document.
            like: The subscription document of its feed; None: nothing is stored of it.
        """
        try:
            page = await self._archive.newest(url)
        except DocumentError as exc:
            _raise_if_archive(exc)
            return None
        for capture in for_missing(page.captures, url, now=self._now()):
            obtained = await self._obtained(capture, url, like)
            if obtained is not None:
                return obtained
        return None

    async def oldest(
        self, url: str, position: str, *, behind: float | None, like: DocumentRow
    ) -> tuple[AsyncIterator[tuple[float, Obtained | None]], str]:
        """Return the copies that a page of the index lists, the oldest first, and where the next page begins.

        They are asked for one by one as they are taken: when each was made, and None where it is of no use.

        Args:
            url: Of the subscription document.
            position: Where the page begins; empty: the first one.
            behind: Those made up to this instant were taken before.
            like: The subscription document as it is stored.
        """
        try:
            page, following = await self._archive.oldest(url, position)
        except DocumentError as exc:
            _raise_if_archive(exc)
            return self._taken([], url, like), ""
        captures = for_gone(page.captures, url, now=self._now())
        wanted = [each for each in captures if behind is None or each.captured_at > behind]
        return self._taken(wanted, url, like), following

    async def _taken(
        self, captures: list[Capture], url: str, like: DocumentRow
    ) -> AsyncIterator[tuple[float, Obtained | None]]:
        for capture in captures:
            yield capture.captured_at, await self._obtained(capture, url, like)

    async def _obtained(self, capture: Capture, url: str, like: DocumentRow | None) -> Obtained | None:
        try:
            obtained = await self._source.obtain_copy(self._archive, capture, url)
        except DocumentError as exc:
            _raise_if_archive(exc)
            log.info("memento.unusable", slug=exc.slug)
            return None
        if like is not None and not _belongs(obtained, like):
            log.info("memento.unusable", slug="cross-origin-unconfirmed")
            return None
        return obtained


def _belongs(obtained: Obtained, like: DocumentRow) -> bool:
    """R23, R24: whether a copy is of the feed of a subscription document."""
    facts, links, names = obtained.read.facts, obtained.navigation.links, (like.url, like.final_url)
    is_of_family = facts.family is like.family
    return is_of_family and is_confirmed(facts.site_id, links, feed_site_id=like.site_id, feed_urls=names)


def _raise_if_archive(error: DocumentError) -> None:
    """Tell a copy that is not there, or is no feed, from an archive that fails.

    Raises:
        ArchiveError: It fails.
    """
    status = error.publisher_status
    is_unheard = status is None and not lasts(error.slug) and error.slug not in _BROKEN
    if is_unheard or status in _STRAINED:
        raise ArchiveError(error) from error
