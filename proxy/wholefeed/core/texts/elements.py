"""Learn which element of a site's pages holds the text of a post (T3).

    learned = learn_element(samples)         # three pages of entries with a known text, and two to check
    found = find_element(page, learned.element)

A theme writes each post into the same element, with the same tag, id, classes and place among its kind,
except for classes that name the post.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice, product
from typing import Any, Final, NamedTuple

from wholefeed.core.listing.page_reading import HtmlTree, read_tree, walk_tree
from wholefeed.core.texts.plain import PIECE_CHARACTERS, pieces_of, squeeze

LEARNED_FROM: Final = 3
CHECKED_ON: Final = 2
MAX_ELEMENTS: Final = 100_000
"""Limit for a page; the rest is not read."""
LEAST_SHARE: Final = 0.8
"""Share of a text's pieces that its element holds: feeds leave out captions and add remarks."""
_MOST_LONGER: Final = 2.0
_FREE_CHARACTERS: Final = 400
"""An element may have this many letters more than the text, or twice as many: a title, a date, tags."""
_MOST_AROUND: Final = 6
"""Elements around a text, as candidates."""
WHOLE_SHARE: Final = 0.8
"""Least share of an element's letters that a feed's text has, to be called whole."""

UNREAD: Final = frozenset({"script", "style", "noscript", "template", "textarea", "select", "title", "svg"})
"""Elements without text of the post."""
_CONTAINERS: Final = frozenset({"article", "body", "div", "main", "section", "td"})


class LearnedElement(NamedTuple):
    tag: str
    id: str
    """Empty: none, or another on each page."""
    classes: tuple[str, ...]
    """Common to all pages."""
    position: int
    """Number of like elements before it."""
    added: tuple[str, ...] = ()
    """Names of elements inside it that are the page's (T4)."""

    def __str__(self) -> str:
        """Return it as a CSS selector, with its place, from 1, among several."""
        named = f"#{self.id}" if self.id else ""
        place = f" ({self.position + 1})" if self.position else ""
        return f"{self.tag}{named}{''.join(f'.{each}' for each in self.classes)}{place}"


class Learned(NamedTuple):
    element: LearnedElement | None
    """None: no element fits."""
    is_whole: bool
    """Whether the feed gives the texts whole, as far as the pages show."""


class LearningSample(NamedTuple):
    body: bytes
    content_type: str
    text: str
    """Squeezed."""


@dataclass(slots=True)
class Container:
    node: Any
    tag: str
    id: str
    classes: frozenset[str]
    start: int
    """Offset in the page's squeezed text."""
    end: int = 0

    @property
    def length(self) -> int:
        return self.end - self.start

    def is_like(self, element: LearnedElement) -> bool:
        is_named = not element.id or self.id == element.id
        return self.tag == element.tag and is_named and self.classes.issuperset(element.classes)


@dataclass(slots=True)
class TextPage:
    text: str
    """Squeezed."""
    containers: list[Container] = field(default_factory=list)
    elements: int = 0
    depth: int = 0

    @classmethod
    def read(cls, tree: HtmlTree) -> TextPage:
        page, parts, length = cls(""), list[str](), 0
        open_ = list[Container | None]()
        unread = 0
        for event, node in walk_tree(tree.root) if tree.root is not None else ():
            tag = node.tag if isinstance(node.tag, str) else ""
            is_start = event == "start"
            said = node.text if is_start else node.tail
            if is_start:
                page.elements += 1
                page.depth = max(page.depth, len(open_) + 1)
                unread += tag in UNREAD
                container = None
                if tag in _CONTAINERS and not unread:
                    names = frozenset((node.get("class") or "").split()[:_MOST_CLASSES])
                    container = Container(node, tag, node.get("id") or "", names, length)
                    page.containers.append(container)
                open_.append(container)
            else:
                unread -= tag in UNREAD
                if (container := open_.pop()) is not None:
                    container.end = length
            if said and not (unread or said.isspace()) and (squeezed := squeeze(said)):
                parts.append(squeezed)
                length += len(squeezed)
            if page.elements >= MAX_ELEMENTS:
                break
        for container in open_:
            if container is not None:
                container.end = length
        page.text = "".join(parts)
        return page

    def text_of(self, container: Container) -> str:
        return self.text[container.start : container.end]

    def find_holders(self, text: str) -> list[Container]:
        """Return the containers of a squeezed text, from the smallest, and no much longer ones."""
        pieces = pieces_of(text)
        if not pieces:
            return []
        places = [list(self._find_all(piece)) for piece in pieces]
        least = LEAST_SHARE * len(pieces)
        most = max(_MOST_LONGER * len(text), len(text) + _FREE_CHARACTERS)
        held = []
        for each in self.containers:
            if LEAST_SHARE * len(text) <= each.length <= most:
                last = each.end - len(pieces[0])
                found = sum(any(each.start <= at <= last for at in found) for found in places)
                if found >= least:
                    held.append(each)
        # of equally long ones the inner first: it comes later in the document
        held.reverse()
        held.sort(key=lambda each: each.length)
        return held[:_MOST_AROUND]

    def _find_all(self, piece: str) -> Iterator[int]:
        at = self.text.find(piece)
        for _ in range(_MOST_PLACES):
            if at < 0:
                return
            yield at
            at = self.text.find(piece, at + 1)


_MOST_CLASSES: Final = 60
_MOST_PLACES: Final = 4
"""Places of a piece on a page: also in its description, or a list of posts."""


def read_text_page(body: bytes, content_type: str) -> TextPage:
    return TextPage.read(read_tree(body, content_type))


def find_element(page: TextPage, element: LearnedElement) -> Container | None:
    alike = [each for each in page.containers if each.is_like(element)]
    return alike[element.position] if element.position < len(alike) else None


def learn_element(samples: Sequence[LearningSample]) -> Learned:
    """Return the element that holds the texts of all samples, if any.

    Short texts show nothing; the caller leaves them out.
    """
    pages = [read_text_page(each.body, each.content_type) for each in samples]
    if len(pages) < LEARNED_FROM:
        return Learned(None, is_whole=False)
    held = [page.find_holders(each.text) for page, each in zip(pages, samples, strict=True)]
    for chosen in _combinations(held[:LEARNED_FROM]):
        element = _common(pages, chosen)
        if element is not None and all(_fits(*each, element) for each in zip(pages, held, strict=True)):
            lengths = [
                (_length(page, element), len(each.text)) for page, each in zip(pages, samples, strict=True)
            ]
            element = element._replace(added=_find_added(pages, samples, element))
            return Learned(element, is_whole=all(own >= WHOLE_SHARE * all_ for all_, own in lengths))
    return Learned(None, is_whole=False)


def find_common(pages: Sequence[TextPage], held: Sequence[Sequence[Container]]) -> LearnedElement | None:
    """Return the element that holds the texts of three pages, inside the holders of the others but one.

    Of several, it is the smallest with an id or classes, else the first. Elements in it with the same words
    on three pages are no part of a text. None: none fits.
    """
    found = list(islice(_list_common(pages, held), _MOST_COMMON))
    named = [each for each in found if each.id or each.classes]
    sizes = {each: sum(_length(page, each) for page in pages) for each in named}
    element = min(named, key=lambda each: sizes[each], default=next(iter(found), None))
    return None if element is None else element._replace(added=_find_repeated(pages, element))


_MOST_COMMON: Final = 20
_MOST_TRIED: Final = 3
"""Holders of a page, the smallest ones."""


def _list_common(pages: Sequence[TextPage], held: Sequence[Sequence[Container]]) -> Iterator[LearnedElement]:
    least = max(LEARNED_FROM, len(pages) - 1)
    for numbers in combinations(range(len(pages)), LEARNED_FROM):
        some = [pages[number] for number in numbers]
        for chosen in _combinations([held[number][:_MOST_TRIED] for number in numbers]):
            element = _common(some, chosen)
            if element is None:
                continue
            if sum(_is_inside(*each, element) for each in zip(pages, held, strict=True)) >= least:
                yield element


def _is_inside(page: TextPage, held: Sequence[Container], element: LearnedElement) -> bool:
    """Return whether an element is a holder, or part of one: short texts are taken with more of the page."""
    found = find_element(page, element)
    return found is not None and any(each.start <= found.start and found.end <= each.end for each in held)


def _find_repeated(pages: Sequence[TextPage], element: LearnedElement) -> tuple[str, ...]:
    """Return names of elements that are, or begin, alike on three pages."""
    same, starts = Counter[tuple[str, str]](), dict[str, Counter[str]]()
    for page in pages:
        if (found := find_element(page, element)) is None:
            continue
        parts = {(name, text) for name, text in _named_parts(found.node) if not _NOTES.search(name)}
        same.update(parts)
        for name, start in {(name, text[:_START]) for name, text in parts}:
            starts.setdefault(name, Counter())[start] += 1
    names = {name for (name, _), count in same.items() if count >= LEARNED_FROM}
    names |= {name for name, found in starts.items() if len(found) == 1 and found.total() >= LEARNED_FROM}
    return tuple(sorted(names))


_START: Final = 12
"""Letters of a label, such as "Read also"."""


def _named_parts(element: Any) -> Iterator[tuple[str, str]]:
    """Yield name and squeezed text of elements with classes and words, but not of figures."""
    figures = 0
    for event, node in islice(walk_tree(element), 1, _MOST_INSIDE):
        is_start = event == "start"
        if node.tag == "figure":
            figures += 1 if is_start else -1
        if is_start and not figures and node.tag in _NAMED_TAGS and (name := name_of(node)):
            text = squeeze("".join(islice(node.itertext(), _MOST_TEXTS)))
            if len(text) >= _LEAST_WORDS:
                yield name, text[:_COMPARED]


def is_named(node: Any, names: Collection[str]) -> bool:
    return node.tag in _NAMED_TAGS and name_of(node) in names


def name_of(node: Any) -> str:
    """Return an element's tag and classes without final numbers, as a selector; empty without classes."""
    classes = sorted({_NUMBER.sub("", each) for each in (node.get("class") or "").split()[:_MOST_CLASSES]})
    return f"{node.tag}.{'.'.join(classes)}" if classes else ""


_NAMED_TAGS: Final = frozenset(
    {"div", "section", "aside", "ul", "ol", "p", "ins", "header", "footer", "details", "dl", "a", "span"}
)
_NUMBER: Final = re.compile(r"[-_]?[0-9]+\Z", re.ASCII)


def _find_added(
    pages: Sequence[TextPage], samples: Sequence[LearningSample], element: LearnedElement
) -> tuple[str, ...]:
    """Return the names of elements that the pages have and the feed's texts never.

    They are on two pages at least. Notes and captions do not count: feeds leave them out.
    """
    lacking, having = Counter[str](), set[str]()
    for page, sample in zip(pages, samples, strict=True):
        if (found := find_element(page, element)) is None:
            continue
        parts = [(name, text in sample.text) for name, text in _named_parts(found.node)]
        having |= {name for name, is_own in parts if is_own}
        lacking.update({name for name, is_own in parts if not (is_own or _NOTES.search(name))})
    return tuple(
        sorted(name for name, times in lacking.items() if times >= _LEAST_PAGES and name not in having)
    )


_MOST_INSIDE: Final = 4000
_MOST_TEXTS: Final = 50
_LEAST_WORDS: Final = 3
_LEAST_PAGES: Final = 2
_COMPARED: Final = 200
_NOTES: Final = re.compile(r"note|caption|math|katex|code|highlight|line|gutter|copy", re.IGNORECASE)


def _combinations(held: Sequence[Sequence[Container]]) -> Iterator[tuple[Container, ...]]:
    ranked = product(*(range(len(each)) for each in held))
    for ranks in sorted(ranked, key=sum):
        chosen = tuple(each[rank] for each, rank in zip(held, ranks, strict=True))
        if len({each.tag for each in chosen}) == 1:
            yield chosen


def _common(pages: Sequence[TextPage], chosen: Sequence[Container]) -> LearnedElement | None:
    """Return the element that these containers are; None: they stand in different places."""
    ids = {each.id for each in chosen}
    classes = frozenset.intersection(*(each.classes for each in chosen))
    element = LearnedElement(chosen[0].tag, ids.pop() if len(ids) == 1 else "", tuple(sorted(classes)), 0)
    places = set()
    for page, own in zip(pages, chosen, strict=False):
        alike = [each for each in page.containers if each.is_like(element)]
        places.add(next(place for place, each in enumerate(alike) if each is own))
    return element._replace(position=places.pop()) if len(places) == 1 else None


def _fits(page: TextPage, held: Sequence[Container], element: LearnedElement) -> bool:
    found = find_element(page, element)
    return any(each is found for each in held)


def _length(page: TextPage, element: LearnedElement) -> int:
    found = find_element(page, element)
    return 0 if found is None else found.length


LEAST_CHARACTERS: Final = 4 * PIECE_CHARACTERS
"""Squeezed characters of a text that shows where it stands."""
