"""Where feed documents come from, and which one is the subscription document of a feed.

    found = await find_subscription(source, url)                    # whatever somebody asks for
    obtained = await source.obtain(url, validators=validators)      # one document
    facts = await work.run(work_bytes(body), read_again, stored)

`find_subscription` and `follow_to_subscription` go from a URL to the subscription document behind it (rule
R3). `Source` fetches one document, parses it and reads its links; a large one is read, composed and rendered
in one go (docs/design.md#worker-processes). All work on documents goes through `Workers`: on small ones at
once, on larger ones beside the event loop.
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
    source: Source, url: str, *, is_choosing: bool = False
) -> FoundSubscription[Obtained]:
    """Fetch a URL and find the subscription document behind it.

    An HTML page leads to the feed that it announces; where these are several, to the best that can be had,
    unless a person is choosing. An archive document leads to its `current`. On the whole way secrets go to
    the publisher of this URL alone (A2).

    Raises:
        DocumentError: Nothing usable as a feed was found.
        SeveralFeedsError: There is a choice.
    """
    fetched = partial(_fetch, source, manner=Manner(is_new=True, feed_url=url))
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
    """Fetch announced feeds until one has entries (docs/faults.md row 155).

    What a URL leads to once is kept for good. So a failure that may have other reasons than the feed ends the
    search, and a feed of comments takes the place of no feed of posts that is there, or may be back soon.

    Raises:
        DocumentError: None can be had; it is the first one's.
    """
    posts, comments = in_order(found)
    empty: tuple[str, Obtained] | None = None
    failure: DocumentError | None = None
    may_be_back = False
    for number, each in enumerate([*posts, *comments][:MAX_ANNOUNCED]):
        if number >= len(posts) and (empty or may_be_back):
            break
        try:
            obtained = await fetch(each.url)
        except DocumentError as exc:
            failure = failure or exc
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


MAX_ANNOUNCED: Final = 4
"""Feeds of one page that are asked for, until one has entries."""


async def follow_to_subscription(
    source: Source, url: str, obtained: Obtained, *, feed_url: str
) -> FoundSubscription[Obtained]:
    """Apply R3 to a fetched document: go where `wholefeed.core.refresh.subscription` says.

    `feed_url` is as `Manner` has it. Never raises for what cannot be had: then the document itself serves,
    and a note says so.
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
    """The answer is an HTML page that announces several feeds, each URL once, and a person is to choose."""

    def __init__(self, url: str, feeds: tuple[Alternate, ...]) -> None:
        super().__init__("expected a feed, got an HTML page that announces several", url=url)
        self.feeds = feeds

    def fresh_copy(self, *, retry_after_seconds: float = 0.0) -> DocumentError:
        copy = SeveralFeedsError(self.url, self.feeds)
        copy.retry_after_seconds = retry_after_seconds or None
        return copy


# One document


class Source:
    """Documents by their URLs: fetched, parsed, their links read.

    While the entries still arrive, the link to the older document is taken from the head, so that its fetch
    can begin (docs/design.md#the-walk).
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
        """Fetch and parse one document; a `Fetched` when there is nothing to read.

        That is when the publisher says that it has not changed, or redirects to what was had before, or when
        the head alone was asked for.

        Args:
            url: Absolute http(s) URL.
            validators: Make the request conditional.
            early: Reads its head while it arrives.
            is_ahead: Whether the document is still fetched before it is needed.
            sizes: Of the documents of its walk, so that one fetched ahead is asked for when there is room.
            is_met: Whether the document of a URL was had before.
            style: Of the feed that it is an older document of; None: it may be a subscription document.
            manner: What is asked for, and how; of a head nothing is read.

        Raises:
            DocumentError: The document cannot be had, or is not readable as a feed.
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
        """Fetch and parse what a web archive has of a URL; what it says of its feed is left out (R33).

        Raises:
            DocumentError: The archive does not give it, or it is not readable as a feed.
        """
        async with archive.fetching(capture, url) as (fetched, copy_url):
            return _as_copy(await self.read(fetched, None), Origin.MEMENTO, copy_url)

    async def read_kept(
        self, body: bytes, origin: Origin, name: str, *, url: str, media_type: str = "", at: float
    ) -> Obtained:
        """Parse what came from no publisher; what it says of its feed is left out but its links (I1, H7).

        Args:
            body: Of the document, whole: of one that breaks off there is no more.
            origin: Where it comes from.
            name: As `Obtained.memento`.
            url: Where it stands as far as its relative URLs are concerned.
            media_type: Empty: it says itself what it is.
            at: When it counts as fetched, epoch seconds.

        Raises:
            DocumentError: It is not readable as a feed.
        """
        kept = Fetched(
            url=url,
            final_url=url,
            hops=(),
            permanent_url=None,
            not_modified=False,
            body=body,
            media_type=media_type,
            headers={"content-length": str(len(body))},
            links=(),
            wire_bytes=0,
            fetched_at=at,
            status=HTTPStatus.OK,
        )
        return _as_copy(await self.read(kept, None), origin, name)

    async def read(self, fetched: Fetched, style: Style | None) -> Obtained:
        """Parse what was fetched; `style` as for `obtain`.

        Raises:
            DocumentError: It is not readable as a feed.
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
    """Refuse a body that only its end delimits and that lacks it (docs/faults.md row 32; RFC 9112 §6.3)."""
    fetched, notes = obtained.fetched, obtained.read.facts.notes
    is_cut = any(note.kind is DocumentTruncated and note.facts["breaks_off"] for note in notes)
    if is_cut and not fetched.headers.keys() & {"content-length", "transfer-encoding"}:
        raise PublisherError(
            "expected a whole document, got one that breaks off", url=fetched.final_url, slug="incomplete"
        )
    return obtained


def _as_copy(obtained: Obtained, origin: Origin, name: str) -> Obtained:
    """Return a document without the flags and tombstones that do not count for its origin."""
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
    """Return a document without its links, if those of its origin lead to no other document of the feed."""
    if obtained.origin.policy.has_links:
        return obtained
    navigation = obtained.read.navigation
    plain = replace(navigation, kind=Kind.PLAIN, links={}, older_relation="", is_tentative=False, notes=())
    return replace(obtained, read=replace(obtained.read, navigation=plain))


class EarlyReader:
    """Reads the heads of a document, and of those that it is a redirect from, while they arrive.

    Args:
        on_older: Told the older document's URL as soon as the head gives it; a prediction.
        is_foreseen: Whether that is of no use, asked when the document begins to arrive: its head is not read
            then before its end.
        relation: The relation that leads to the older document.
    """

    def __init__(
        self, on_older: Callable[[str], None], is_foreseen: Callable[[], bool], relation: str
    ) -> None:
        self._on_older = on_older
        self._is_foreseen = is_foreseen
        self._relation = relation
        self._heads: dict[str, EarlyHead | None] = {}

    def __call__(self, url: str, chunk: bytes) -> None:
        """Take the next piece of the document of a URL."""
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
        """Look for nothing any more: a document may end before its first entry."""
        for head in self._heads.values():
            if head is not None:
                head.close()


@dataclass(frozen=True, slots=True)
class Obtained:
    """A document as it came from its publisher."""

    fetched: Fetched
    read: ReadDocument
    document: FeedDocument | None = None
    """As parsed; of a large one there is no more than what was read of it."""
    style: Style | None = None
    """What a large one was rendered for."""
    origin: Origin = Origin.PUBLISHER
    memento: str = ""
    """As `StoredDocument.memento`."""
    failure: DocumentError | None = None
    """The publisher's failure, if this memento stands in for a subscription document (R33)."""

    @property
    def url(self) -> str:
        """The requested URL, before redirects."""
        return self.fetched.url

    @property
    def final_url(self) -> str:
        """The URL after redirects."""
        return self.fetched.final_url

    @property
    def family(self) -> Family:
        return self.read.facts.family

    @property
    def navigation(self) -> Navigation:
        """The links and the kind that the document claims."""
        return self.read.navigation

    def style_of(self) -> Callable[[], Style | None]:
        """Return what finds out what segments are rendered for where this is the subscription document.

        It holds nothing of a large one.
        """
        document, composed = self.document, self.read.composed
        if document is not None:
            return lambda: compose(document).style
        return lambda: None if composed is None else composed.style


class PageError(UnreadableError):
    """The answer is an HTML page; it may announce a feed. A fresh copy does not hold the page."""

    def __init__(self, cause: ParseError, fetched: Fetched) -> None:
        super().__init__(str(cause), url=fetched.final_url, slug=cause.slug)
        self.fetched = fetched

    def fresh_copy(self, *, retry_after_seconds: float = 0.0) -> DocumentError:
        plain = UnreadableError(self.args[0], url=self.url, slug=self.slug)
        return plain.fresh_copy(retry_after_seconds=retry_after_seconds)


def as_failure(error: DocumentError) -> Failure:
    """Describe why a document could not be had; without the body, which the error may hold."""
    return Failure(
        slug=error.slug,
        publisher_status=error.publisher_status,
        retry_after_seconds=error.retry_after_seconds,
        is_unasked=isinstance(error, QueueFullError),
    )


# What it takes to work on one

HELD_BYTES: Final = 1 << 16
"""Up to here a document is held as it was parsed, to be rendered together with its neighbours; a larger one
as it was rendered when it came."""


def work_bytes(body: bytes) -> int:
    """Return the size of the body, or of a large one that takes as long to read.

    What costs is markup: a small document of nothing else keeps the event loop for half a second, to repair
    or to make its entries. JSON is read in one go, in which a thread holds everybody up (docs/faults.md
    row 87): a process reads much of it.
    """
    size_bytes = len(body)
    if size_bytes >= START_BYTES:
        return size_bytes
    is_xml = body[:_SNIFFED_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    values = 0 if is_xml else sum(map(body.count, (b",", b"[", b"{")))
    if values > _THREAD_VALUES:
        return START_BYTES
    if size_bytes >= THREAD_BYTES:
        return size_bytes
    marks = max(values, body.count(b"<") + body.count(b"&"))
    if marks > 2 * _INLINE_MARKS:
        return THREAD_BYTES
    return max(size_bytes, INLINE_BYTES + 1) if marks > _INLINE_MARKS else size_bytes


_INLINE_MARKS: Final = 4096
"""Of tags and references, or values of JSON, in a document that is read where it is: feeds have half. In one
of twice the size, for which there is one thread, twice as many."""
_SNIFFED_BYTES: Final = 64
_THREAD_VALUES: Final = 50_000
"""Of JSON, in a document that a thread may read: it takes 10 ms for them. Text has a comma every 80 bytes."""
