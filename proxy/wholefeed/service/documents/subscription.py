"""From the URL that was asked for to the subscription document (rule R3; discovery)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wholefeed.core.notes import Note
from wholefeed.core.parse.discovery import Alternate, discover, preferred
from wholefeed.core.refresh.search import Found, Seen, search
from wholefeed.errors import DocumentError, UnreadableError
from wholefeed.fetch.fetched import Fetched
from wholefeed.fetch.transfer import Manner
from wholefeed.service.documents.facts import failure_of
from wholefeed.service.documents.source import Obtained, PageError, Source


@dataclass(frozen=True, slots=True)
class Subscription:
    """The subscription document of a feed, and how sure that is."""

    url: str
    """What it is looked for by from now on."""
    obtained: Obtained
    notes: tuple[Note, ...] = ()
    failure: DocumentError | None = None
    """How its publisher failed, where a web archive's copy stands in for it (R33)."""

    @property
    def document_url(self) -> str:
        """What the document itself was asked for by."""
        return self.obtained.fetched.url


class SeveralFeedsError(UnreadableError):
    """The answer is an HTML page that announces several feeds, and a person is to choose.

    Args:
        url: The page's.
        feeds: What it announces, each URL once.
    """

    def __init__(self, url: str, feeds: tuple[Alternate, ...]) -> None:
        super().__init__("expected a feed, got an HTML page that announces several", url=url)
        self.feeds = feeds

    def fresh_copy(self, *, retry_after_seconds: float = 0.0) -> DocumentError:
        """Return it with its feeds."""
        copy = SeveralFeedsError(self.url, self.feeds)
        copy.retry_after_seconds = retry_after_seconds or None
        return copy


async def find_subscription(source: Source, url: str, *, is_choosing: bool = False) -> Subscription:
    """Fetch a URL and find the subscription document behind it.

    An HTML page leads to the feed that it announces, an archive document to its `current`.

    Args:
        source: Where documents come from.
        url: What was asked for.
        is_choosing: Whether a person chooses where a page announces several feeds; else it is the preferred.

    Raises:
        DocumentError: Nothing usable as a feed was found.
        SeveralFeedsError: There is a choice.
    """
    try:
        return await settle_subscription(source, url, await _fetched(source, url, is_new=True))
    except PageError as exc:
        page = exc.fetched
    found = discover(page.body, page.final_url, page.media_type)
    by_url: dict[str, Alternate] = {}
    for each in found:
        by_url.setdefault(each.url, each)
    if is_choosing and len(by_url) > 1:
        raise SeveralFeedsError(page.final_url, tuple(by_url.values()))
    url = _announced_feed(page, found)
    return await settle_subscription(source, url, await _fetched(source, url, is_new=True))


async def settle_subscription(source: Source, url: str, obtained: Obtained) -> Subscription:
    """Apply R3 to a fetched document: go where `wholefeed.core.refresh.search` says.

    Never raises for what cannot be had: then the document itself serves, and a note says so.
    """
    steps = search(url, _seen(obtained))
    came: tuple[Obtained, ...] = (obtained,)  # of all that is passed on the way, one of the last two serves
    try:
        wanted = next(steps)
        while True:
            try:
                newer = await _fetched(source, wanted)
            except DocumentError as exc:
                wanted = steps.send(failure_of(exc))
                continue
            came = (came[-1], newer)
            wanted = steps.send(_seen(newer))
    except StopIteration as end:
        found: Found = end.value
        serving = next(each for each in came if each.fetched.url == found.document.url)
        return Subscription(found.url, serving, found.notes)


def _seen(obtained: Obtained) -> Seen:
    fetched = obtained.fetched
    return Seen(fetched.url, fetched.final_url, obtained.read.facts.family, obtained.navigation)


async def _fetched(source: Source, url: str, *, is_new: bool = False) -> Obtained:
    obtained = await source.obtain(url, manner=Manner(is_new=is_new))
    assert not isinstance(obtained, Fetched), "no validators were sent"
    return obtained


def _announced_feed(fetched: Fetched, found: Sequence[Alternate]) -> str:
    best = preferred(found)
    if best is not None:
        return best.url
    what = "an HTML page that announces no feed"
    raise UnreadableError(f"expected a feed, got {what}", url=fetched.final_url, slug="not-a-feed")
