"""One document: fetched, parsed, and its links read.

A large one is read, composed and rendered in one go (docs/design.md#worker-processes).
While the entries still arrive, the link to the older document is taken from the head, so that its fetch can
begin (docs/design.md#the-walk).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from wholefeed.core.jobs.reading import ReadDocument, Sender, describe, read_document
from wholefeed.core.jobs.rendering import Style, compose_parsed
from wholefeed.core.links.classify import Navigation, classify, older_target, recall
from wholefeed.core.links.dialects import FH_INCREMENTAL
from wholefeed.core.memento.captures import Capture
from wholefeed.core.model import FeedDocument
from wholefeed.core.parse.discovery import is_html
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.early import EarlyHead
from wholefeed.core.parse.errors import ParseError
from wholefeed.core.reading_notes import DocumentTruncated
from wholefeed.errors import DocumentError, PublisherError, UnreadableError, WorkError
from wholefeed.fetch.fetched import Fetched, Validators
from wholefeed.fetch.fetcher import Fetcher
from wholefeed.fetch.memento import Archive
from wholefeed.fetch.transfer import USUAL, Manner
from wholefeed.service.documents.work import HELD_BYTES, Work, work_bytes


@dataclass(frozen=True, slots=True)
class Obtained:
    """A document as it came from its publisher."""

    fetched: Fetched
    read: ReadDocument
    document: FeedDocument | None = None
    """As parsed; of a large one there is no more than what was read of it."""
    style: Style | None = None
    """What a large one was rendered for."""
    memento: str = ""
    """Where the web archive's copy stands that it is (R33); empty: it came from its publisher."""

    @property
    def navigation(self) -> Navigation:
        """What its links say."""
        return self.read.navigation

    def style_of(self) -> Callable[[], Style | None]:
        """Return what finds out what segments are rendered for where this is the subscription document.

        It holds nothing of a large one.
        """
        document, composed = self.document, self.read.composed
        if document is not None:
            return lambda: compose_parsed(document).style
        return lambda: None if composed is None else composed.style


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

    def __init__(self, fetcher: Fetcher, work: Work, *, xml_depth: int) -> None:
        self._fetcher = fetcher
        self._xml_depth = xml_depth
        self.work = work
        """For whoever works on documents."""

    def blocked_seconds(self, host: str, port: int = 0) -> float:
        """Return for how long a host, or a port of it, is left alone; 0 when it is not."""
        return self._fetcher.blocked_seconds(host, port)

    @property
    def queue(self) -> tuple[int, int]:
        """How many requests to publishers are under way, and how many wait for a place."""
        return self._fetcher.queue

    async def obtain(
        self,
        url: str,
        *,
        validators: Validators | None = None,
        on_older: Callable[[str], None] | None = None,
        is_foreseen: Callable[[], bool] = lambda: False,
        relation: str = "prev-archive",
        is_ahead: bool = False,
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
            on_older: Told the older document's URL as soon as the head gives it; a prediction.
            is_foreseen: Whether that is of no use, asked when the document begins to arrive: its head is not
                read then before its end.
            relation: The relation that leads to the older document.
            is_ahead: Whether the document is fetched before it is needed.
            is_met: Whether the document of a URL was had before.
            style: Of the feed that it is an older document of; None: it may be a subscription document.
            manner: What is asked for, and how; of a head nothing is read.

        Raises:
            DocumentError: The document cannot be had, or is not readable as a feed.
        """
        early = _EarlyReader(on_older, is_foreseen, relation) if on_older else None
        fetching = self._fetcher.fetching(
            url,
            validators=validators,
            on_chunk=early,
            is_ahead=is_ahead,
            is_met=is_met,
            manner=manner,
        )
        try:
            async with fetching as fetched:
                is_unread = fetched.not_modified or manner.is_head
                obtained = None if is_unread else await self._read(fetched, style)
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
            return _as_copy(await self._read(fetched, None), copy_url)

    async def _read(self, fetched: Fetched, style: Style | None) -> Obtained:
        size_bytes = work_bytes(fetched.body)
        sender = Sender(
            url=fetched.final_url,
            media_type=fetched.media_type,
            links=tuple(fetched.links),
            route=fetched.headers.get("x-discourse-route", ""),
            fetched_at=fetched.fetched_at,
        )
        try:
            if size_bytes <= HELD_BYTES:
                await self.work.on_the_spot()
                document = parse(fetched.body, sender.url, sender.media_type, max_depth=self._xml_depth)
                return _whole(Obtained(fetched, describe(document, fetched.body, sender), document))
            async with self.work.turn(size_bytes):
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
            raise UnreadableError(str(exc), url=fetched.final_url, slug=exc.slug) from exc
        return _whole(Obtained(fetched, read, style=style if read.composed is None else read.composed.style))


def _whole(obtained: Obtained) -> Obtained:
    """Refuse a body that only its end delimits and that lacks it (docs/faults.md row 32; RFC 9112, 6.3)."""
    fetched, notes = obtained.fetched, obtained.read.facts.notes
    is_cut = any(isinstance(note, DocumentTruncated) and note.breaks_off for note in notes)
    if is_cut and not fetched.headers.keys() & {"content-length", "transfer-encoding"}:
        raise PublisherError(
            "expected a whole document, got one that breaks off", url=fetched.final_url, slug="incomplete"
        )
    return obtained


def _as_copy(obtained: Obtained, copy_url: str) -> Obtained:
    """Return an archived document without its flags and tombstones: they were of its time."""
    read, navigation = obtained.read, obtained.navigation
    links = {name: target for name, target in navigation.links.items() if name != FH_INCREMENTAL}
    finding = recall(links, is_archive=False)
    plain = replace(
        navigation,
        kind=finding.kind,
        links=links,
        is_archive=False,
        older_relation=finding.relation,
        is_tentative=finding.is_tentative,
    )
    facts = replace(read.facts, tombstones=())
    return replace(obtained, read=replace(read, facts=facts, navigation=plain), memento=copy_url)


class _EarlyReader:
    """Reads the heads of a document, and of those that it is a redirect from, while they arrive."""

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
            target = older_target(classify(document).links, self._relation)
            if target:
                self._on_older(target)

    def close(self) -> None:
        """Look for nothing any more: a document may end before its first entry."""
        for head in self._heads.values():
            if head is not None:
                head.close()
