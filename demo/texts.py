"""The sample publisher's texts: two invented blogs, the same at every start.

A seeded generator combines small word lists, so that entries are readable, differ, and never change.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

_MONTHS: Final = 48
_FIRST_YEAR: Final = 2022
_FIRST_MONTH: Final = 11
_LESSONS: Final = 150
_FIRST_LESSON: Final = datetime(2024, 1, 6, 8, 0, tzinfo=UTC)

_WEATHER: Final = (
    "a soft south-westerly and a sea like hammered tin",
    "fog so thick that the gulls walked",
    "the clearest night since the lamp was electrified",
    "a gale that took the lid off the rain barrel and returned it a day later",
    "drizzle, then a rainbow with one foot in the harbour",
    "frost on the gallery rail and stars down to the horizon",
    "a long blue evening without a breath of wind",
    "hail the size of peas, loud on the lantern glass",
)
_VISITORS: Final = (
    "a school class that counted all 199 steps and got 201",
    "the piano tuner, who swears the foghorn is a B flat",
    "two cyclists in search of the ferry and, it turned out, of each other",
    "the postwoman with a parcel for a keeper who retired in 1961",
    "a heron, who stayed for lunch",
    "the baker's apprentice with a crate of yesterday's rolls",
    "an inspector who found nothing and wrote four pages about it",
    "a family of eiders, in single file",
)
_WORK: Final = (
    "polished the third ring of the lens until the ships could read by it",
    "oiled the clockwork, which no longer turns anything but likes the attention",
    "painted the north side white and, by accident, part of the dog",
    "carried coal up and ashes down, which comes to the same number of steps",
    "mended the weathervane so that it tells the truth again",
    "sorted the log books by year, then by handwriting",
    "repaired the window on the second landing with glass from a bottle",
    "wound the barometer's thread anew; it now falls before it rains",
)
_THOUGHTS: Final = (
    "A light is a promise that is kept every seven seconds.",
    "Nobody thanks a lighthouse, but everybody waves.",
    "The sea is never finished, and so the log is never finished either.",
    "One learns to tell the hour by the colour of the stairs.",
    "Old entries are the best company in a storm.",
    "If a day leaves nothing to write down, look again.",
)
_LOG_TITLES: Final = (
    "The night of {thing}",
    "Notes on {thing}",
    "{Thing}, and other business",
    "What {thing} taught me",
    "A day with {thing}",
)
_LOG_THINGS: Final = (
    "the borrowed ladder",
    "the silent foghorn",
    "a very small earthquake",
    "the visiting seal",
    "the new rope",
    "seven white horses",
    "the lost thermos",
    "the spring tide",
    "the blue oil can",
    "the long shadow",
    "the crooked candle",
    "the first swallow",
    "the second-best kettle",
    "the wandering buoy",
    "the brass polish",
    "the upside-down map",
)
_JOINTS: Final = (
    "dovetail",
    "finger joint",
    "mortise and tenon",
    "half-lap",
    "mitre",
    "bridle joint",
    "dowel",
)
_WOODS: Final = ("ash", "cherry", "oak", "pear", "walnut", "larch", "lime", "elm")
_PIECES: Final = (
    "a stool for tall children",
    "a box for letters",
    "a bird table",
    "a shelf that forgives",
    "a bread board",
    "a chair for reading",
    "a drawer that whispers",
    "a garden gate",
    "a music stand",
    "a toy lighthouse",
)
_ADVICE: Final = (
    "Cut on the waste side of the line; the line is the piece.",
    "A sharp chisel is a polite chisel.",
    "Glue is not a joint, it is an apology.",
    "Measure against the thing, not against the number.",
    "Let the board rest overnight, and yourself too.",
    "The shavings tell you more than the ruler does.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One entry of a sample blog. `slug` is unique within its blog; `body` is HTML."""

    slug: str
    title: str
    body: str
    topic: str
    published: datetime
    updated: datetime


def keepers_log() -> list[list[Text]]:
    chance = random.Random(1852)
    months = []
    for number in range(_FIRST_MONTH - 1, _FIRST_MONTH - 1 + _MONTHS):
        year, month = _FIRST_YEAR + number // 12, number % 12 + 1
        days = sorted(chance.sample(range(1, 29), chance.randint(5, 8)))
        months.append([_log_entry(chance, datetime(year, month, day, 21, tzinfo=UTC)) for day in days])
    return months


def _log_entry(chance: random.Random, day: datetime) -> Text:
    thing = chance.choice(_LOG_THINGS)
    title = chance.choice(_LOG_TITLES).format(thing=thing, Thing=thing[0].upper() + thing[1:])
    published = day + timedelta(minutes=chance.randint(0, 150))
    morning, night = chance.sample(_WEATHER, 2)
    noon, evening = chance.sample(_WORK, 2)
    body = (
        f"<p>In the morning {morning}. We had {chance.choice(_VISITORS)}. "
        f"After noon I {noon}, and in the evening I {evening}.</p>"
        f"<p>Towards midnight: {night}. <em>{chance.choice(_THOUGHTS)}</em></p>"
    )
    slug = f"{day:%Y/%m/%d}"
    return Text(slug=slug, title=title, body=body, topic="log", published=published, updated=published)


def workshop_lessons() -> list[Text]:
    chance = random.Random(1907)
    lessons = []
    for number in range(1, _LESSONS + 1):
        joint, wood, piece = chance.choice(_JOINTS), chance.choice(_WOODS), chance.choice(_PIECES)
        published = _FIRST_LESSON + timedelta(weeks=number - 1)
        body = (
            f"<p>This week: {piece}, in {wood}, held together by a {joint}. {chance.choice(_ADVICE)}</p>"
            f"<ol><li>Choose the {wood} with your thumb, not with your eyes.</li>"
            f"<li>Mark the {joint}, then mark it again &amp; compare.</li>"
            f"<li>Assemble without glue. Drink tea. Assemble with glue.</li></ol>"
            f"<p>{chance.choice(_ADVICE)}</p>"
        )
        title = f"Lesson {number}: {piece}"
        lessons.append(
            Text(
                slug=f"lesson-{number}",
                title=title,
                body=body,
                topic=joint,
                published=published,
                updated=published,
            )
        )
    return lessons
