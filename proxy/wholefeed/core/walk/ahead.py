"""Guesses where a chain leads: ahead of the path, and behind a missing document.

Look-ahead (`Ahead`, docs/design.md#look-ahead) only starts a request early: the document does not count until
the chain links to it. A missing document hides the link to the next one, so `Holes` guesses behind it (R34).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from wholefeed.core.model import Relation
from wholefeed.core.notes import (
    ChainLoop,
    CrossOriginUnconfirmed,
    DocumentUnavailable,
    FormatMismatch,
    JumpedHole,
    Note,
)
from wholefeed.core.text.urls import MAX_URL_CHARACTERS, document_key, join_parts, same_document, split
from wholefeed.core.walk.chain import Arrival, Chain, WalkLimits


class Ahead:
    """The choice of documents that one walk fetches ahead of its path.

    `known` returns whether a URL's document is stored, so that a guess is useless.
    """

    # Candidates are the targets of early links in documents still arriving, then guesses. A URL with a
    # response is never chosen again.

    def __init__(
        self,
        chain: Chain,
        *,
        limits: WalkLimits,
        known: Callable[[str], bool],
        arrival_of: Callable[[str], Arrival | None],
        max_window: int,
        look_ahead: bool,
    ) -> None:
        self._chain = chain
        self._limits = limits
        self._known = known
        self._arrival_of = arrival_of
        self._max_window = max_window
        self._max_guesses = max_window if look_ahead else 0
        # Most guesses now: doubled after each hit, 0 after the first miss.
        self._window = min(_FIRST_WINDOW, self._max_guesses)
        self._followers: dict[str, str] = {}
        self._asked: dict[str, str] = {}
        self._early: dict[str, str] = {}
        self._answered: set[str] = set()
        # The guess that tests whether the chain goes on, if any.
        self._probe = ""
        self._arrived_bytes = chain.path[0].body_bytes

    def is_answered(self, url: str) -> bool:
        return document_key(url) in self._answered

    def foretell(self, url: str, older_url: str) -> None:
        self._early[document_key(url)] = older_url

    def note_response(self, url: str, body_bytes: int | None) -> None:
        """Note the response for a chosen document; `body_bytes` is None if it could not be fetched."""
        key = document_key(url)
        if key in self._answered:
            return
        self._answered.add(key)
        self._early.pop(key, None)
        if body_bytes is None:
            self._window = 0
        else:
            self._arrived_bytes += body_bytes

    def refuse(self, url: str) -> None:
        """Forget a document that does not join: a link may lead there again."""
        self._answered.discard(document_key(url))

    def check(self, url: str, older_url: str) -> None:
        guessed = self._followers.pop(document_key(url), None)
        if guessed is not None and self._window:
            is_hit = guessed == document_key(older_url)
            self._window = min(self._window * 2, self._max_guesses) if is_hit else 0

    def choose_fetches(self, target: str, *, steps: Sequence[str], is_alone: bool) -> tuple[WantedFetch, ...]:
        """Choose the documents to fetch, the most urgent first; if `is_alone`, nothing behind the target."""
        wants = [WantedFetch(self.spelling(target), is_guess=False)]
        listed = {document_key(target)}
        for url in () if is_alone else self._behind(target, steps):
            key = document_key(url)
            if key in listed or key in self._answered or self._known(url):
                continue
            listed.add(key)
            wants.append(WantedFetch(self.spelling(url), is_guess=True))
        return tuple(wants)

    def _behind(self, target: str, steps: Sequence[str]) -> list[str]:
        room = min(self._max_window, self._limits.documents - len(self._chain.path) - 1)
        if self._arrived_bytes >= self._limits.bytes:
            return []
        line = [target]
        while len(line) <= room and (older := self._likely_older(line[-1])) is not None:
            if self._chain.repetition(older) or older in line:
                return line[1:]
            line.append(older)
        is_stored = self._known(line[-1])  # then reading the older link costs no wait
        deep = min(2 * self._max_window, self._limits.documents - len(self._chain.path)) - len(line)
        for guess in () if is_stored else self._worth_asking([*steps[-3:-1], *line], deep):
            if len(line) > room or self._chain.repetition(guess) or not self._allows(line[-1]):
                break
            line.append(guess)
        return line[1:]

    def _worth_asking(self, steps: Sequence[str], deep: int) -> list[str]:
        """Choose the guesses to fetch: nobody knows the end of a chain, and beyond it are only refusals.

        So one guess at the far end of the window is the probe, and those before it follow once it has
        arrived. At most one request goes beyond the end of the chain.
        """
        # Pages are counted up to the `last` one, which they name.
        if self._chain.trail.is_paged:
            return list(self._guessed_after(steps, self._window))
        guesses = self._guessed_after(steps, deep if self._window else 0)
        there = [place for place, url in enumerate(guesses) if self._is_there(url)]
        certain = there[-1] + 1 if there else 0
        if self._probe not in guesses[certain:] or self.is_answered(self._probe):
            self._probe = next(iter(guesses[certain:][: self._window][-1:]), "")
        asked = [url for url in guesses[:certain] if not self._is_there(url)]
        return [*asked, self._probe] if self._probe else asked

    def _is_there(self, url: str) -> bool:
        return self._known(url) or self._find_fetched(url) is not None

    def _find_fetched(self, url: str) -> Arrival | None:
        return self._arrival_of(url) if self.is_answered(url) else None

    def _guessed_after(self, steps: Sequence[str], count: int) -> tuple[str, ...]:
        guessed = next_urls(steps, count, lowest=1) if count > 0 else ()
        for url, follower in zip((steps[-1], *guessed), guessed, strict=False):
            self._followers[document_key(url)] = document_key(follower)
        return guessed

    def _allows(self, url: str) -> bool:
        """Return whether to count on behind a page: only towards `last`."""
        last = self._chain.tip.links.get(Relation.LAST)
        return not self._chain.trail.is_paged or (last is not None and is_counted(url, last))

    def _likely_older(self, url: str) -> str | None:
        arrival = self._find_fetched(url)
        if arrival is None:
            return self._early.get(document_key(url))
        return self._chain.trail.target(arrival.links)

    def spelling(self, url: str) -> str:
        """Return the first spelling of a URL, to fetch a document once."""
        return self._asked.setdefault(document_key(url), url)


def is_foreseen(url: str, needed: str, under_way: Sequence[str], window: int) -> bool:
    """Return whether the walk probably fetches an arriving document's older link already.

    Then nobody reads its head early, except at the end of the path (`needed`), where it shows wrong guesses.
    `under_way` are the running fetches, oldest first.
    """
    # Enough documents are under way, and their URLs count on.
    is_ahead = bool(needed) and url != needed
    return is_ahead and len(under_way) >= window and bool(next_urls(under_way[-3:], 1))


class WantedFetch(NamedTuple):
    url: str
    is_guess: bool
    """Whether the walk can do without the document."""


_FIRST_WINDOW: Final = 2


# Counting on: the URLs that follow, by the one number or date in which earlier ones differ


def next_urls(steps: Sequence[str], count: int, *, lowest: int = 0) -> tuple[str, ...]:
    """Return the URLs that probably follow, the nearest first; empty if there is no pattern.

    The last two of `steps` form a pattern if they differ in one date or number by one. Any other difference
    counts if the URL before them confirms it. Zero padding stays, and no number goes below `lowest`.
    """
    for pattern in (_DATES_AND_NUMBERS, _NUMBERS):
        step = _step(steps, pattern)
        if step is not None:
            return _continue_step(step, count, lowest)
    return ()


def _continue_step(step: _Step, count: int, lowest: int) -> tuple[str, ...]:
    urls: list[str] = []
    value = step.counter.value
    while len(urls) < count:
        value += step.delta
        text = step.counter.write(value) if value >= lowest else None
        if text is None or len(step.before) + len(text) + len(step.after) > MAX_URL_CHARACTERS:
            break
        urls.append(f"{step.before}{text}{step.after}")
    return tuple(urls)


def count_left(steps: Sequence[str], last_url: str = "") -> int | None:
    """Return how many documents probably follow; None if their URLs do not tell.

    Falling numbers end at 1, or at the last step that fits. Rising ones end at the number of `last_url`.
    """
    step, dated = _step(steps, _NUMBERS), _step(steps, _DATES_AND_NUMBERS)
    if step is None or dated is None or dated.before != step.before:
        return None
    written = step.counter.write(step.counter.value) or ""
    if not written.isdecimal() or int(written) != step.counter.value:  # dates end nobody knows where
        return None
    if step.delta < 0:
        return max(0, (step.counter.value - 1) // -step.delta)
    last = _difference(steps[-1], last_url, _NUMBERS) if last_url else None
    if last is None or last[:2] != step[:2]:
        return None
    return max(0, last.delta // step.delta)


def count_from_newest(urls: Sequence[str]) -> bool:
    """Return whether documents are numbered from the newest one, with 0, 1 or 2 as the first number.

    `urls` are newest first. Then a new document changes all numbers, or entries move from one document to the
    next (R35).
    """
    step = _step(urls[:2], _NUMBERS)
    return step is not None and step.delta == 1 and step.counter.value <= _HIGHEST_SECOND


# Highest number of the second document: the first archive behind pages is page 2.
_HIGHEST_SECOND: Final = 3


def is_counted(url: str, other: str) -> bool:
    return any(_difference(url, other, pattern) is not None for pattern in (_DATES_AND_NUMBERS, _NUMBERS))


def _step(steps: Sequence[str], pattern: re.Pattern[str]) -> _Step | None:
    if len(steps) < 2:  # noqa: PLR2004
        return None
    step = _difference(steps[-2], steps[-1], pattern)
    if step is None or abs(step.delta) == 1:
        return step
    earlier = _difference(steps[-3], steps[-2], pattern) if len(steps) > 2 else None  # noqa: PLR2004
    is_confirmed = earlier is not None and earlier[:3] == step[:3]
    return step if is_confirmed else None


class _Step(NamedTuple):
    before: str
    after: str
    delta: int
    counter: _Counter


class _Counter(NamedTuple):
    value: int
    write: Callable[[int], str | None]


_YEAR: Final = "(?:19[7-9][0-9]|2[01][0-9]{2})"
_NUMBER: Final = r"(?<![0-9])[0-9]{1,15}(?![0-9])"
_NUMBERS: Final = re.compile(_NUMBER)

_DATE: Final = (
    rf"(?<![0-9]){_YEAR}"
    r"(?:(?P<sep>[-/_.])[0-9]{1,2}(?:(?P=sep)[0-9]{1,2})?|[0-9]{2}(?:[0-9]{2})?)(?![0-9])"
)

_DATES_AND_NUMBERS: Final = re.compile(f"{_DATE}|{_NUMBER}")
_REMEMBERED: Final = 64


@lru_cache(_REMEMBERED)
def _difference(first: str, second: str, pattern: re.Pattern[str]) -> _Step | None:
    origin, one = _split_origin(first)
    other_origin, two = _split_origin(second)
    ours, theirs = list(pattern.finditer(one)), list(pattern.finditer(two))
    if origin != other_origin or len(ours) != len(theirs):
        return None
    if pattern.sub("\0", one) != pattern.sub("\0", two):
        return None
    differing = [(a, b) for a, b in zip(ours, theirs, strict=True) if a[0] != b[0]]
    if len(differing) != 1:
        return None
    a, b = differing[0]
    return _find_step(a[0], b[0], f"{origin}{two[: b.start()]}", two[b.end() :])


@lru_cache(_REMEMBERED)
def _split_origin(url: str) -> tuple[str, str]:
    parts = split(url)
    origin = join_parts(parts._replace(path="", query=None, fragment=None))
    return origin, join_parts(parts._replace(scheme=None, authority=None, fragment=None))


def _find_step(first: str, second: str, before: str, after: str) -> _Step | None:
    counters = _dates(first, second) or (_number(first, first), _number(second, first))
    if counters[0] is None or counters[1] is None or counters[0].value == counters[1].value:
        return None
    return _Step(before, after, counters[1].value - counters[0].value, counters[1])


def _number(text: str, other: str) -> _Counter | None:
    if not text.isdecimal():
        return None
    is_padded = any(each.startswith("0") and len(each) > 1 for each in (text, other))
    width = len(text) if is_padded else 1
    return _Counter(int(text), lambda value: f"{value:0{width}d}" if 0 <= value < _LARGEST_NUMBER else None)


_LARGEST_NUMBER: Final = 10**15


def _dates(first: str, second: str) -> tuple[_Counter, _Counter] | None:
    # None if one of the two is no date.
    pattern = _DATE_PARTS if re.search("[^0-9]", second) else _COMPACT_DATE_PARTS
    one, two = pattern.fullmatch(first), pattern.fullmatch(second)
    if one is None or two is None or (one[4] is None) != (two[4] is None) or one[2] != two[2]:
        return None
    parts = [part for match in (one, two) for part in match.groups()[2:] if part is not None]
    width = 2 if not two[2] or all(len(part) > 1 for part in parts) else 1
    counter = _months if one[4] is None else _days
    earlier, later = counter(one, width), counter(two, width)
    return None if earlier is None or later is None else (earlier, later)


_DATE_PARTS: Final = re.compile(rf"({_YEAR})([-/_.])([0-9]{{1,2}})(?:\2([0-9]{{1,2}}))?")
_COMPACT_DATE_PARTS: Final = re.compile(rf"({_YEAR})()([0-9]{{2}})([0-9]{{2}})?")


def _months(match: re.Match[str], width: int) -> _Counter | None:
    year, month, separator = int(match[1]), int(match[3]), match[2]
    if not 1 <= month <= _MONTHS:
        return None

    def write(value: int) -> str | None:
        year, month = divmod(value, _MONTHS)
        is_plausible = _FIRST_YEAR <= year <= _LAST_YEAR
        return f"{year}{separator}{month + 1:0{width}d}" if is_plausible else None

    return _Counter(year * _MONTHS + month - 1, write)


_MONTHS: Final = 12
_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 2199


def _days(match: re.Match[str], width: int) -> _Counter | None:
    separator = match[2]
    try:
        day = datetime.date(int(match[1]), int(match[3]), int(match[4]))
    except ValueError:
        return None

    def write(value: int) -> str | None:
        day = datetime.date.fromordinal(value)
        parts = f"{day.year}", f"{day.month:0{width}d}", f"{day.day:0{width}d}"
        return separator.join(parts) if _FIRST_YEAR <= day.year <= _LAST_YEAR else None

    return _Counter(day.toordinal(), write)


# Guesses behind a missing document (R34)


class Holes:
    # A document behind a hole joins if it says itself that it belongs to this feed, and is no repetition.
    def __init__(self, chain: Chain, *, limits: WalkLimits, attached: Sequence[str]) -> None:
        self._chain = chain
        self._limits = limits
        self._attached = attached
        self._refused_bytes = 0
        self._left: list[str] = []
        self._lacking: list[str] = []
        self.note: Note | None = None
        """The reason why the present hole's document is missing; None outside a hole."""
        self.looked_at: list[str] = []
        self.jumps: list[Note] = []

    def open(self, note: Note, steps: Sequence[str]) -> None:
        is_passable = note.kind in _MISSING and not self._chain.trail.is_paged
        self._left = list(guesses_behind(steps, self._attached)) if is_passable else []
        self.note, self._lacking, self.looked_at = note, [note.url], []

    def return_to(self, url: str) -> Note | None:
        """Return a note if a URL leads back into a passed hole, which is a circle (R17)."""
        return ChainLoop(url) if any(same_document(url, note.url) for note in self.jumps) else None

    def next_guess(self) -> str | None:
        """Return the next guess; None without one, or at R18's limit of bytes."""
        if self._chain.body_bytes + self._refused_bytes >= self._limits.bytes:
            return None
        while self._left:
            guess = self._left.pop(0)
            self.looked_at.append(guess)
            if self._chain.repetition(guess) is None:
                return guess
        return None

    def lacks(self, url: str) -> None:
        """Note that a guess is missing too: the document behind it may name it."""
        self._lacking.append(url)

    def admits(self, arrival: Arrival) -> bool:
        """Return whether a document behind the hole says itself that it belongs to this feed.

        No link leads there, so the document must name the feed even at the same site (R24), or link to a
        missing document as the next newer one.
        """
        if self._chain.objection(arrival) is not None:
            return False
        newer = arrival.links.get(Relation.NEXT_ARCHIVE)
        is_neighbour = newer is not None and any(same_document(newer, url) for url in self._lacking)
        return arrival.keys is None or is_neighbour or self._chain.is_named_by(arrival)

    def refuse(self, arrival: Arrival) -> None:
        self._refused_bytes += arrival.body_bytes

    def jump(self, url: str) -> None:
        assert self.note is not None, "there is a hole"
        self.jumps += (self.note, JumpedHole(self.note.url, goes_on_at=url))
        self.note = None


# Reasons for a missing document that say nothing about those behind it.
_MISSING: Final = (DocumentUnavailable, FormatMismatch, CrossOriginUnconfirmed)


def guesses_behind(steps: Sequence[str], attached: Sequence[str]) -> tuple[str, ...]:
    """Return the URLs that may stand behind a missing document, the nearest first.

    `steps` end with the missing document. `attached`, newest first, show how the chain counts if the newest
    one is missing.
    """
    if len(steps) > 1:
        return next_urls(steps, MAX_GUESSES)
    missing = steps[-1]
    older = attached[_place(missing, attached) + 1 :]
    newest = tuple(older[:1])
    newer = next_urls(older[2::-1], MAX_GUESSES)  # counted from the stored ones towards the missing
    place = _place(missing, newer)
    if place >= 0:
        return (*newer[:place][::-1], *newest)
    return newest if newest and next_urls([missing, *newest], 1) else ()


# Documents tried behind a missing one.
MAX_GUESSES: Final = 3


def _place(url: str, urls: Sequence[str]) -> int:
    return next((place for place, other in enumerate(urls) if same_document(url, other)), -1)
