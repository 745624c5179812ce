"""Posts to publish: titles, slugs and days as irregular as people's are, the same at each run."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final, NamedTuple

ODD: Final = (
    "2011",
    "Archive",
    "Über das Warten, oder: Café «Größe»",
    "C & C++ < Rust > Go?",
    "Где растёт мята",
    "庭のこと",
    "“Quoted”—and dashed…",
    "What I learned from reading one book a week, losing two on trains, and keeping a list of them",
    "100%",
    "May 2019",
    "#5: it\u2019s done",
    "About",
    "Older posts, newer coats",
)
"""Titles that somebody has to tell from headings, menus, years and links to other pages."""
SUBJECTS: Final = (
    "bread bicycles gardens maps letters kettles trains lamps rivers windows radios shelves pencils stairs "
    "owls clocks bridges soups gloves kites"
)
FORMS: Final = (
    "On {0}",
    "Why I gave up {0}",
    "{0} and {1}",
    "Notes on {0}, part {n}",
    "How to mend {0} with {1}",
    "A week without {0}",
    "{n} things about {0}",
    "Weekly notes",
    "The trouble with {0}",
    "{0}: a short history",
    "Is this the end of {0}?",
    "Hello, {0}!",
)
WORDS: Final = (
    "the a morning slow paper quiet under light we found walked because almost every table blue window rain "
    "letter small road later again nobody said it would and then a month passed"
)
TAGS: Final = ("Home", "Travel", "Tools", "Books")


class Post(NamedTuple):
    """What somebody wrote."""

    title: str
    slug: str
    date: datetime
    tags: tuple[str, ...]
    """The first one is its category."""
    text: tuple[str, ...]
    """Paragraphs."""


def posts(
    count: int, seed: int, *, days: int = 20, odd: int = len(ODD), avoiding: tuple[str, ...] = ()
) -> list[Post]:
    """Make posts, oldest first, so many days apart on average, some of one day; `odd` titles are among them.

    No slug is one of those to avoid: where posts stand beside other pages, these are the pages' names.
    """
    chance = Random(seed)
    titles = _titles(chance, count)
    odd = min(odd, len(ODD), count // 3)
    for place, title in zip(chance.sample(range(count), odd), chance.sample(ODD, odd), strict=True):
        titles[place] = title
    used = set(avoiding)
    made = []
    for title, date in zip(titles, _dates(chance, count, days), strict=True):
        slug = next(each for each in _slugs(title) if each not in used)
        used.add(slug)
        tags = tuple(chance.sample(TAGS, chance.choice((1, 1, 2))))
        text = tuple(_paragraph(chance) for _ in range(chance.randint(1, 3)))
        made.append(Post(title, slug, date, tags, text))
    return made


def slugified(title: str) -> str:
    """Return a title as most software writes it in URLs, letters of all alphabets kept."""
    plain = unicodedata.normalize("NFC", title).lower()
    return re.sub(r"[\W_]+", "-", plain.replace("\u2019", "")).strip("-")[:70].strip("-")


def _slugs(title: str) -> Iterator[str]:
    slug = slugified(title)
    yield slug
    yield from (f"{slug}-{number}" for number in range(2, 1000))


def _titles(chance: Random, count: int) -> list[str]:
    """Make titles, of which "Weekly notes" alone comes more than once."""
    made: list[str] = []
    while len(made) < count:
        first, second = chance.sample(SUBJECTS.split(), 2)
        title = chance.choice(FORMS).format(first, second, n=chance.randint(2, 12))
        title = title[0].upper() + title[1:]
        if title not in made or title in FORMS:
            made.append(title)
    return made


def _paragraph(chance: Random) -> str:
    words = " ".join(chance.choices(WORDS.split(), k=chance.randint(12, 40)))
    return words[0].upper() + words[1:] + "."


def _dates(chance: Random, count: int, days: int) -> list[datetime]:
    """Make dates up to the autumn of 2024: bursts, long gaps, days with several."""
    date = datetime(2024, 10, 21, 9, 30, tzinfo=UTC)
    made = []
    for _ in range(count):
        made.append(date)
        if chance.random() < 0.07:
            date -= timedelta(minutes=chance.randint(7, 90))
        else:
            date -= timedelta(days=1 + int(chance.expovariate(1 / days)))
            date = date.replace(hour=chance.randint(6, 21), minute=chance.randint(0, 59))
    return made[::-1]
