"""Fetch and parse feed documents, and find the subscription document behind a URL (R3).

A large document is read, composed and rendered in one job (docs/design.md#worker-processes). All work on
documents goes through `Workers`, to keep the event loop free.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Final

from wholefeed.core.jobs import ReadDocument, Sender, Style, compose, describe, read_document
from wholefeed.core.links import FH_INCREMENTAL, Navigation, classify, recall
from wholefeed.core.memento import Capture
from wholefeed.core.model import Family, FeedDocument, Kind
from wholefeed.core.notes import DocumentTruncated
from wholefeed.core.origins import Origin
from wholefeed.core.parse.discovery import Alternate, discover, in_order, is_html
from wholefeed.core.parse.documents import EarlyHead, parse
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.refresh.arrivals import Failure, FoundSubscription
from wholefeed.core.refresh.subscription import search
from wholefeed.core.slugs import lasts, may_pass
from wholefeed.errors import (
    DocumentError,
    PublisherError,
    QueueFullError,
    UnreadableError,
    WorkError,
    WorkTooLargeError,
)
from wholefeed.fetch.base import USUAL, Fetched, Manner, Validators
from wholefeed.fetch.budget import BudgetSizes
from wholefeed.fetch.fetcher import Fetcher
from wholefeed.fetch.web_archive import Archive
from wholefeed.workers.pool import INLINE_BYTES, START_BYTES, THREAD_BYTES, Workers

# From a URL to the subscription document


async def find_subscription(
    source: Source, url: str, *, is_choosing: bool = False, is_polled: bool = False
) -> FoundSubscription[Obtained]:
    """Fetch a URL and find the subscription document behind it.

    An HTML page leads to the best available feed that it announces; an archive document leads to its
    `current`. Secrets go only to the publisher of `url` (A2).

    Raises:
        DocumentError: Nothing usable as a feed was found.
        SeveralFeedsError: A person is choosing, and a page announces several feeds.
    """
    fetched = partial(_fetch, source, manner=Manner(is_new=True, feed_url=url, is_polled=is_polled))
    try:
        return await follow_to_subscription(source, url, await fetched(url), feed_url=url)
    except PageError as exc:
        page = exc.fetched
    found = discover(page.body, page.final_url, page.media_type)
    if is_choosing and len(found) > 1:
        raise SeveralFeedsError(page.final_url, tuple(found))
    if not found:
        message = "expected a feed, got an HTML page that announces no feed"
        raise UnreadableError(message, url=page.final_url, slug="not-a-feed")
    announced, obtained = await _best_announced(found, fetched)
    return await follow_to_subscription(source, announced, obtained, feed_url=url)


async def _best_announced(
    found: Sequence[Alternate], fetch: Callable[[str], Awaitable[Obtained]]
) -> tuple[str, Obtained]:
    """Fetch feeds until one has entries (docs/faults.md row 155).

    Raises:
        DocumentError: The first failure, if no feed can be fetched.
    """
    posts, comments = in_order(found)
    empty: tuple[str, Obtained] | None = None
    failure: DocumentError | None = None
    may_be_back = False
    for number, each in enumerate([*posts, *comments][:MAX_ANNOUNCED]):
        # A comment feed never replaces a post feed that exists or may return.
        if number >= len(posts) and (empty or may_be_back):
            break
        try:
            obtained = await fetch(each.url)
        except DocumentError as exc:
            failure = failure or exc
            # The choice is permanent, so a failure that may not be the feed's own ends the search.
            if not lasts(exc.slug) or exc.publisher_status == HTTPStatus.TOO_MANY_REQUESTS:
                break
            may_be_back = may_be_back or may_pass(exc.slug, exc.publisher_status)
            continue
        if len(obtained.read.facts.entries) or obtained.read.navigation.kind is not Kind.PLAIN:
            return each.url, obtained
        empty = empty or (each.url, obtained)
    if empty is not None:
        return empty
    assert failure is not None, "at least one is announced"
    raise failure


MAX_ANNOUNCED: Final = 4  # feeds of one page to fetch, until one has entries


async def follow_to_subscription(
    source: Source, url: str, obtained: Obtained, *, feed_url: str
) -> FoundSubscription[Obtained]:
    """Find the subscription document from a fetched document (R3).

    If a fetch on the way fails, the document itself serves, with a note.
    """

    async def fetch(newer_url: str) -> Obtained | Failure:
        try:
            return await _fetch(source, newer_url, manner=Manner(feed_url=feed_url))
        except DocumentError as exc:
            return as_failure(exc)

    return await search(url, obtained, fetch)


async def _fetch(source: Source, url: str, *, manner: Manner) -> Obtained:
    obtained = await source.obtain(url, manner=manner)
    assert not isinstance(obtained, Fetched), "no validators were sent"
    return obtained


class SeveralFeedsError(UnreadableError):
    """An HTML page announces several feeds; a person is to choose."""

    def __init__(self, url: str, feeds: tuple[Alternate, ...]) -> None:
        super().__init__("expected a feed, got an HTML page that announces several", url=url)
        self.feeds = feeds

    def fresh_copy(self, *, retry_after_seconds: float = 0.0) -> DocumentError:
        copy = SeveralFeedsError(self.url, self.feeds)
        copy.retry_after_seconds = retry_after_seconds or None
        return copy


# One document


class Source:
    """Fetches, parses and reads documents by their URLs.

    The head gives the older link, so its fetch can begin before the entries arrive (docs/design.md#the-walk).
    """

    def __init__(self, fetcher: Fetcher, work: Workers, *, xml_depth: int) -> None:
        self.fetcher = fetcher
        self.work = work
        self._xml_depth = xml_depth

    async def obtain(
        self,
        url: str,
        *,
        validators: Validators | None = None,
        early: EarlyReader | None = None,
        is_ahead: Callable[[], bool] = lambda: False,
        sizes: BudgetSizes | None = None,
        is_met: Callable[[str], bool] | None = None,
        style: Style | None = None,
        manner: Manner = USUAL,
    ) -> Obtained | Fetched:
        """Fetch and parse one document, or return a `Fetched` with nothing to read.

        A `Fetched` means a 304, a redirect to a URL that `is_met` knows, or a HEAD request. `is_ahead` and
        `sizes` delay a fetch ahead of need until memory has room. `style` None: perhaps a subscription
        document.

        Raises:
            DocumentError: The document cannot be fetched, or is not readable as a feed.
        """
        fetching = self.fetcher.fetching(
            url,
            validators=validators,
            on_chunk=early,
            is_ahead=is_ahead,
            sizes=sizes,
            is_met=is_met,
            manner=manner,
        )
        try:
            async with fetching as fetched:
                is_unread = fetched.not_modified or manner.is_head
                obtained = None if is_unread else await self.read(fetched, style)
        finally:
            if early is not None:
                early.close()
        return obtained or fetched

    async def obtain_copy(self, archive: Archive, capture: Capture, url: str) -> Obtained:
        """Fetch and parse a memento, without flags and tombstones (R33); raise as `obtain`."""
        async with archive.fetching(capture, url) as (fetched, copy_url):
            return _as_copy(await self.read(fetched, None), Origin.MEMENTO, copy_url)

    async def read_kept(
        self, body: bytes, origin: Origin, name: str, *, url: str, media_type: str = "", at: float
    ) -> Obtained:
        """Parse a document from no publisher; its links stay, its flags and tombstones go (I1, H7).

        `name` becomes `Obtained.memento`; `url` is the base of relative URLs. `at` is the assumed time of
        fetching, in epoch seconds. An empty `media_type` means unknown. Raise as `read`.
        """
        kept = Fetched(
            url=url,
            final_url=url,
            hops=(),
            permanent_url=None,
            not_modified=False,
            body=body,
            media_type=media_type,
            # `_whole` then accepts a document that breaks off: there is no more of it
            headers={"content-length": str(len(body))},
            links=(),
            wire_bytes=0,
            fetched_at=at,
            status=HTTPStatus.OK,
        )
        return _as_copy(await self.read(kept, None), origin, name)

    async def read(self, fetched: Fetched, style: Style | None) -> Obtained:
        """Parse a fetched document.

        Raises:
            DocumentError: The document is not readable as a feed.
        """
        size_bytes = work_bytes(fetched.body)
        sender = Sender(
            url=fetched.final_url,
            media_type=fetched.media_type,
            links=tuple(fetched.links),
            route=fetched.headers.get("x-discourse-route", ""),
            fetched_at=fetched.fetched_at,
            repairs=fetched.repairs,
        )
        try:
            if size_bytes <= HELD_BYTES:
                await self.work.on_the_spot()
                document = parse(fetched.body, sender.url, sender.media_type, max_depth=self._xml_depth)
                return _whole(Obtained(fetched, describe(document, fetched.body, sender), document))
            async with self.work.large.turn(size_bytes):
                read = await self.work.run(
                    size_bytes,
                    read_document,
                    fetched.body,
                    sender,
                    max_depth=self._xml_depth,
                    style=style,
                    is_subscription=style is None,
                )
        except ParseError as exc:
            if exc.slug == "not-a-feed" and is_html(fetched.body, fetched.media_type):
                raise PageError(exc, fetched) from exc
            raise UnreadableError(str(exc), url=fetched.final_url, slug=exc.slug) from exc
        except WorkError as exc:
            again_seconds = exc.retry_after_seconds if isinstance(exc, WorkTooLargeError) else None
            raise UnreadableError(
                str(exc), url=fetched.final_url, slug=exc.slug, retry_after_seconds=again_seconds
            ) from exc
        return _whole(Obtained(fetched, read, style=style if read.composed is None else read.composed.style))


def _whole(obtained: Obtained) -> Obtained:
    """Refuse a body that breaks off, if only its end delimits it (docs/faults.md row 32; RFC 9112 §6.3)."""
    fetched, notes = obtained.fetched, obtained.read.facts.notes
    is_cut = any(note.kind is DocumentTruncated and note.facts["breaks_off"] for note in notes)
    if is_cut and not fetched.headers.keys() & {"content-length", "transfer-encoding"}:
        raise PublisherError(
            "expected a whole document, got one that breaks off", url=fetched.final_url, slug="incomplete"
        )
    return obtained


def _as_copy(obtained: Obtained, origin: Origin, name: str) -> Obtained:
    """Drop the flags and tombstones that do not count for a document's origin."""
    read, policy = obtained.read, origin.policy
    if not policy.has_flags:
        read = replace(read, navigation=_without_flags(read.navigation))
    if not policy.buries:
        read = replace(read, facts=replace(read.facts, tombstones=()))
    return replace(obtained, read=read, origin=origin, memento=name)


def _without_flags(navigation: Navigation) -> Navigation:
    links = {name: target for name, target in navigation.links.items() if name != FH_INCREMENTAL}
    finding = recall(links, is_archive=False)
    return replace(
        navigation,
        kind=finding.kind,
        links=links,
        is_archive=False,
        older_relation=finding.relation,
        is_tentative=finding.is_tentative,
    )


def drop_links(obtained: Obtained) -> Obtained:
    """Drop links that do not count for a document's origin."""
    if obtained.origin.policy.has_links:
        return obtained
    navigation = obtained.read.navigation
    plain = replace(navigation, kind=Kind.PLAIN, links={}, older_relation="", is_tentative=False, notes=())
    return replace(obtained, read=replace(obtained.read, navigation=plain))


class EarlyReader:
    """Reads heads while documents arrive.

    `on_older` receives the predicted URL of the older document. If `is_foreseen` when a document begins to
    arrive, that URL is already being fetched, and the head is not read.
    """

    def __init__(
        self, on_older: Callable[[str], None], is_foreseen: Callable[[], bool], relation: str
    ) -> None:
        self._on_older = on_older
        self._is_foreseen = is_foreseen
        self._relation = relation
        # by URL: an HTML page that refreshes to another URL may come first
        self._heads: dict[str, EarlyHead | None] = {}

    def __call__(self, url: str, chunk: bytes) -> None:
        heads = self._heads
        if url not in heads:
            heads[url] = None if self._is_foreseen() else EarlyHead(url, "")
        head = heads[url]
        document = None if head is None else head.feed(chunk)
        if document is not None:
            target = classify(document).links.get(self._relation)
            if target:
                self._on_older(target)

    def close(self) -> None:
        """Stop: a document may end before its first entry."""
        for head in self._heads.values():
            if head is not None:
                head.close()


@dataclass(frozen=True, slots=True)
class Obtained:
    fetched: Fetched
    read: ReadDocument
    document: FeedDocument | None = None
    """None for a large document."""
    style: Style | None = None
    """The style that a large document was rendered in."""
    origin: Origin = Origin.PUBLISHER
    memento: str = ""
    """`StoredDocument.memento`."""
    failure: DocumentError | None = None
    """The publisher's failure, if this memento stands in for a subscription document (R33)."""

    @property
    def url(self) -> str:
        return self.fetched.url

    @property
    def final_url(self) -> str:
        return self.fetched.final_url

    @property
    def family(self) -> Family:
        return self.read.facts.family

    @property
    def navigation(self) -> Navigation:
        """The links and the kind that the document claims."""
        return self.read.navigation

    def style_of(self) -> Callable[[], Style | None]:
        """Return a function for the feed's style; it holds nothing large."""
        document, composed = self.document, self.read.composed
        if document is not None:
            return lambda: compose(document).style
        return lambda: None if composed is None else composed.style


class PageError(UnreadableError):
    """An HTML page in place of a feed. A fresh copy omits the page."""

    def __init__(self, cause: ParseError, fetched: Fetched) -> None:
        super().__init__(str(cause), url=fetched.final_url, slug=cause.slug)
        self.fetched = fetched

    def fresh_copy(self, *, retry_after_seconds: float = 0.0) -> DocumentError:
        plain = UnreadableError(self.args[0], url=self.url, slug=self.slug)
        return plain.fresh_copy(retry_after_seconds=retry_after_seconds)


def as_failure(error: DocumentError) -> Failure:
    return Failure(
        slug=error.slug,
        publisher_status=error.publisher_status,
        retry_after_seconds=error.retry_after_seconds,
        is_unasked=isinstance(error, QueueFullError),
    )


# The work that a document needs

HELD_BYTES: Final = 1 << 16
"""Smaller documents stay in memory parsed, to be rendered with their neighbours; larger ones, rendered."""


def work_bytes(body: bytes) -> int:
    """Return the body's size, or that of a plain document with the same reading time.

    Markup is the cost: repairing a small document of nothing else blocks the event loop for half a second.
    """
    size_bytes = len(body)
    if size_bytes >= START_BYTES:
        return size_bytes
    is_xml = body[:_SNIFFED_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    values = 0 if is_xml else sum(map(body.count, (b",", b"[", b"{")))
    # A thread parses JSON in one go and blocks all others, so a process does it (docs/faults.md row 87).
    if values > _THREAD_VALUES:
        return START_BYTES
    if size_bytes >= THREAD_BYTES:
        return size_bytes
    marks = max(values, body.count(b"<") + body.count(b"&"))
    if marks > 2 * _INLINE_MARKS:
        return THREAD_BYTES
    return max(size_bytes, INLINE_BYTES + 1) if marks > _INLINE_MARKS else size_bytes


# Tags and references, or JSON values, in a document parsed on the event loop; feeds have half. The one
# thread takes a document of twice the size with twice as many.
_INLINE_MARKS: Final = 4096
_SNIFFED_BYTES: Final = 64
# JSON values that a thread may parse, in 10 ms. Text has a comma every 80 bytes.
_THREAD_VALUES: Final = 50_000
