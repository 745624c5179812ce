"""From a document that was asked for to the subscription document of its feed (rule R3).

steps = search(url, seen)
wanted = next(steps)                # a URL to fetch; StopIteration holds what was found
wanted = steps.send(seen or failure)

`current` names another document -> that one serves, dereferenced once; if it fails, the one asked for
an archive without `current`     -> forward by `next-archive`, asking again at each step; the newest serves
else                             -> the document itself serves
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

from wholefeed.core.links.classify import Follow, Forward, Navigation, subscription_hint
from wholefeed.core.notes import CurrentUnavailable, NoSubscriptionDocument, Note
from wholefeed.core.refresh.events import Failure
from wholefeed.core.terms import Family
from wholefeed.core.text.urls import same_document

MAX_FORWARD_STEPS: Final = 100
"""Archive documents passed on the way to the newest one, where none names its subscription document."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A document on the way."""

    url: str
    """As asked for."""
    final_url: str
    family: Family
    navigation: Navigation


@dataclass(frozen=True, slots=True)
class Found:
    """Where the search ended."""

    url: str
    """What the subscription document is looked for by from now on."""
    document: Seen
    notes: tuple[Note, ...] = ()
    """Why it may not be the subscription document."""


Search = Generator[str, Seen | Failure, Found]


def search(url: str, seen: Seen) -> Search:
    """Find the subscription document behind one that was asked for by a URL."""
    hint = subscription_hint(url, seen.final_url, seen.navigation)
    if isinstance(hint, Follow):
        came = yield hint.url
        if isinstance(came, Failure):
            return Found(url, seen, (CurrentUnavailable(hint.url, came.slug),))
        return Found(hint.url, came)
    if isinstance(hint, Forward):
        return (yield from _newest_archive(url, seen))
    return Found(url, seen)


def _newest_archive(url: str, asked: Seen) -> Search:
    newest = asked
    passed = [url, asked.final_url]
    for _ in range(MAX_FORWARD_STEPS):
        newer = newest.navigation.newer_url
        if not newer or any(same_document(newer, known) for known in passed):
            break
        came = yield newer
        if isinstance(came, Failure) or came.family is not asked.family:
            break
        if isinstance(subscription_hint(newer, came.final_url, came.navigation), Follow):
            return (yield from search(newer, came))
        newest = came
        passed += [newer, came.final_url]
    return Found(url, newest, (NoSubscriptionDocument(newest.url),))
