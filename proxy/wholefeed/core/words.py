"""What people are told of a feed: what its state means, what can be done, and why.

    STATES[State.REMEMBERED].meaning        # one sentence
    said = words_of(status, now)            # all that is to be said of one feed
    said.state.advice, said.remarks

The feed's page and `wholefeed explain` say the same, from the same status object. The words of reasons
stand in `core/slugs.py`, those of how walks end in `core/notes.py`.

    counted(12_000, "entry", "entries")     # "12,000 entries"
    duration(90)                            # "1 minute"
    ago(then, now), ahead(then, now)        # "2 hours ago", "in 1 minute"
    replay_in_words(302, pace)              # "302 entries, one a day: until September 2027"
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from wholefeed.core.model import State
from wholefeed.core.replay import Pace
from wholefeed.core.slugs import lasts, slug_in_words
from wholefeed.core.text.dates import DAY_SECONDS


def words_of(status: Mapping[str, Any], now: float) -> Said:
    """Return what is said of a feed.

    Args:
        status: As GET /status answers, with or without its chain.
        now: Epoch seconds.
    """
    failure = status["failure"]
    return Said(
        state=state_words(status),
        stale=STALE if status["stale"] or failure is not None else None,
        troubles=tuple(_troubles(status, now)),
        ending=_ending(status),
        remarks=tuple(_remarks(status, now)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """All that is said of a feed beside its numbers."""

    state: Words
    stale: Words | None
    """None: the publisher answered when it was asked last."""
    troubles: tuple[str, ...]
    """Why it is stale, and until when its publisher is left alone."""
    ending: str
    """Why nothing older was looked for, or could be; empty while that goes on."""
    remarks: tuple[str, ...]
    """How a history was found that nothing links, and what else is to be known."""


# The state: what it is, and what can be done


class Words(NamedTuple):
    """What people are told of one state."""

    title: str
    meaning: str
    """One sentence: what it is."""
    advice: str
    """One sentence: what can be done."""


STATES: Final = {
    State.COMPLETE: Words(
        "Complete",
        "Every entry that the publisher has in this feed is here, the oldest included.",
        "Nothing needs to be done: new entries are added when your reader asks for them.",
    ),
    State.LOADING: Words(
        "Loading",
        "Older entries are still being fetched; what has come so far can be read already.",
        "You can subscribe now: your reader gets the rest the next times that it asks.",
    ),
    State.PARTIAL: Words(
        "Partial",
        "Some of this feed's older entries are not here, because not every document that they stand in could"
        " be read.",
        "It is tried again by itself; “Refresh” tries at once.",
    ),
    State.PAGED: Words(
        "Paged",
        "The publisher offers this feed page by page, and every page was read to the last.",
        "Nothing needs to be done; only the publisher could say whether anything was ever dropped from them.",
    ),
    State.COLLECTED: Words(
        "Collected",
        "The publisher's feed links to nothing older, but the site answers when older pages are asked for,"
        " and they were read to the last.",
        "Nothing needs to be done; it is all that the site gives, though nobody promises that it is all there"
        " ever was.",
    ),
    State.LISTED: Words(
        "Listed",
        "The publisher's feed has only its newest entries; the older ones were found in lists on the site's"
        " pages, and are here by title, date and link.",
        "Nothing needs to be done: each of them leads to its text on the site, though nobody promises that"
        " the lists have all there ever was.",
    ),
    State.REMEMBERED: Words(
        "Remembered",
        "The publisher offers only its newest entries, and no way to ask for older ones: here is what this"
        " proxy has seen since it first asked.",
        "Stay subscribed and the history grows from now on; older entries can only come from the publisher,"
        " if it links its archive (RFC 5005) or lists it on the site's pages.",
    ),
}

STALE: Final = Words(
    "Not reached",
    "The publisher could not be reached when it was asked last, so this is what was stored before.",
    "It is asked again by itself; “Refresh” asks at once.",
)

_BROKE_OFF: Final = Words(
    "Partial",
    "Nothing says that whole documents are missing, but one broke off: entries at its end may not be here.",
    "It is tried again by itself; “Refresh” tries at once.",
)

_ONLY_COPIES: Final = Words(
    "Partial",
    "The publisher no longer gives some of this feed's documents; copies in a web archive stand in for them.",
    "Nothing needs to be done: the publisher's own documents replace the copies if they come back.",
)

_LIMITED: Final = "Whoever runs this proxy can raise the limits in its configuration, and refresh the feed."
_LASTING: Final = "It is tried again, but may not pass by itself: tell the publisher which document it is."
_DELAYED: Final = "The publisher's site allows no more requests for now; it is tried again by itself."


def state_words(status: Mapping[str, Any]) -> Words:
    """Return what the state of a feed means and what can be done, by what is missing of it."""
    state = State(status["state"])
    if state is State.REMEMBERED:
        return _remembered(status)
    if state is not State.PARTIAL:
        return STATES[state]
    reasons = [each["reason"] for each in status["missing"]]
    found = STATES[state]
    if reasons and all(reason == "truncated" for reason in reasons):
        found = _BROKE_OFF
    if reasons and all(reason == "memento" for reason in reasons):
        return _ONLY_COPIES
    return found._replace(advice=_advice(reasons, found.advice))


def _remembered(status: Mapping[str, Any]) -> Words:
    """Name the publisher if it is known to have more: that it does not answer may pass."""
    known, found = status.get("collection"), STATES[State.REMEMBERED]
    if known is None or not known["reason"]:
        return found
    meaning = (
        f"The site looks like one of {_publisher(known)}, which has older entries,"
        f" but {slug_in_words(known['reason'])}: here is what this proxy has seen since it first asked."
    )
    advice = "Stay subscribed and the history grows from now on; whether the site gives more is tried again."
    return found._replace(meaning=meaning, advice=advice)


def _advice(reasons: Sequence[str], otherwise: str) -> str:
    """Return what helps against most of what is missing: a limit before what the publisher must repair."""
    if "limit" in reasons:
        return _LIMITED
    if any(reason in ("host-backoff", "history-unfinished") for reason in reasons):
        return _DELAYED
    return _LASTING if reasons and all(lasts(reason) for reason in reasons) else otherwise


# Why: what went wrong, how the walk ended, how its history was found


def _troubles(status: Mapping[str, Any], now: float) -> Iterable[str]:
    if status["failure"] is not None:
        yield f"The publisher could not be asked: {failure_in_words(status['failure'], now)}."
    if status.get("paused_until") is not None:
        left = duration(instant_of(status["paused_until"]) - now)
        yield f"The publisher's site is left alone for another {left}: it asked for that, or kept failing."


def _ending(status: Mapping[str, Any]) -> str:
    ending, listing = status["ending"], status.get("listing")
    if ending is None:
        return ""
    if ending["code"] == "unavailable" and listing is not None and listing["url"]:
        return "a page of the publisher's list could not be had"
    return ending_in_words(ending)


def ending_in_words(ending: Mapping[str, str]) -> str:
    """Return why a walk ended: the ending's own text where there are no other words for its code."""
    code = ending["code"]
    found = _AT_END.get(code) or slug_in_words(code)
    return ending["text"] if found == code else found


_AT_END: Final = {
    "unavailable": "one document could not be had, and what is older can only be found through it",
    "pages-repeat": "several pages in a row brought nothing new",
    "page-gone": "the last page links to one that is not there",
}
"""Why a walk ended, by the ending's code, where that is no true end nor a reason with words of its own."""


def failure_in_words(failure: Mapping[str, Any], now: float) -> str:
    """Return why a document could not be had, and when it is tried again.

    Args:
        failure: A document that is missing, or the failure of the subscription document, as /status lists it.
        now: Epoch seconds.
    """
    slug = failure["reason"]
    status = f", status {failure['status']}" if failure["status"] else ""
    return (
        f"{slug_in_words(slug)} ({slug}{status}); tried {times(failure['attempts'])}, {again(failure, now)}"
    )


def again(failure: Mapping[str, Any], now: float) -> str:
    at = failure["next_attempt"]
    left = instant_of(at) - now if at else 0.0
    return f"again in {duration(left)}" if left > 0 else "again when the feed is asked for"


def times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _remarks(status: Mapping[str, Any], now: float) -> Iterable[str]:
    if status["state"] == State.REMEMBERED and status["since"]:
        yield f"Seen by this proxy, in this format, since {day_of(status['since'])}."
    yield from _collected(status.get("collection"))
    yield from _listed(status.get("listing"), now)
    yield from _imported(status.get("imported"))


def _collected(known: Mapping[str, Any] | None) -> Iterable[str]:
    """Say how a history was found that the publisher does not link (R31)."""
    if known is None:
        return
    publisher = _publisher(known)
    if known["walked"] is None and known["reason"]:
        again_on = f"; tried again on {day_of(known['next_attempt'])}" if known["next_attempt"] else ""
        why = slug_in_words(known["reason"])
        yield f"Older pages were asked for as those of {publisher}: {why}{again_on}."
        return
    if known["walked"] is None:
        yield f"Older pages are asked for as those of {publisher}, and not all have been read yet."
        return
    claim = f" of {known['claimed']:,} that the site claims to have" if known["claimed"] is not None else ""
    pages = counted(known["pages"], "page", "pages")
    way = f" ({known['way']})" if known["way"] else ""
    yield (
        f"Found as pages of {publisher}{way}, which nothing links:"
        f" {counted(known['collected'], 'entry', 'entries')}{claim} on {pages},"
        f" read to the end on {day_of(known['walked'])}."
    )


def _listed(known: Mapping[str, Any] | None, now: float) -> Iterable[str]:
    """Say what was found in the publisher's pages (H7), or where it was looked for."""
    if known is None:
        return
    looked_next = _next_look(known["next_look"], now)
    if known["looked"] is None:
        yield f"The site's pages are searched for older entries {looked_next}, for the first time."
        return
    looked_on = day_of(known["looked"])
    then = f"; the site is looked at again {looked_next}" if looked_next else ""
    if known["url"]:
        entries = counted(known["entries"], "older entry stands", "older entries stand")
        pages = counted(known["pages"], "page", "pages")
        yield f"{entries} in a list on {pages} of the site, looked at on {looked_on}{then}."
    else:
        yield f"{_passed_over(known['passed_over'], looked_on)}{then}."
        if known["entries"]:
            yield f"{counted(known['entries'], 'entry', 'entries')} of a list that was found before are kept."
    if known["guessed"]:
        entries = counted(known["guessed"], "entry stands", "entries stand")
        yield f"{entries} there without an exact date: with a month or a year alone, or with none."
    if known["limit"]:
        yield f"The list goes on: no more than {known['limit']:,} of its pages are asked for."


def _passed_over(pages: Sequence[Mapping[str, Any]], on: str) -> str:
    if not pages:
        return f"No page of the site could be searched for a list of older entries on {on}"
    reasons = Counter(each["text"] for each in pages)
    said = (f"{text} ({number})" if len(reasons) > 1 else text for text, number in reasons.most_common())
    looked = counted(len(pages), "page of the site was", "pages of the site were")
    return f"On {on} {looked} looked at, and none lists the feed's entries: {'; '.join(said)}"


def passed_over_in_words(page: Mapping[str, Any]) -> str:
    """Return why a page that was looked at is none of a list."""
    return f"{page['text']} (status {page['status']})" if page["status"] else str(page["text"])


def _next_look(at: str | None, now: float) -> str:
    """Return when the pages are looked at next; empty: never."""
    if at is None:
        return ""
    return f"on {day_of(at)}" if instant_of(at) - now >= DAY_SECONDS else "soon"


def _imported(known: Mapping[str, Any] | None) -> Iterable[str]:
    """Say what people have put into the feed (I1)."""
    if known is None:
        return
    documents = counted(known["documents"], "imported document", "imported documents")
    entries = counted(known["entries"], "entry", "entries")
    if known["served"]:
        yield f"{documents}: {entries} that nothing else of this feed has."
    else:
        yield (
            f"{documents}: kept, and not served, since the publisher says that the feed is complete without"
            f" them; {entries} that it does not have."
        )


def _publisher(known: Mapping[str, Any]) -> str:
    name: str = known["adapter"]
    return PUBLISHERS.get(name, name)


PUBLISHERS: Final = {
    "blogger": "Blogger",
    "feedburner-wordpress": "WordPress, copied by FeedBurner",
    "feedburner-blogger": "Blogger, copied by FeedBurner",
    "wordpress": "WordPress",
    "github": "GitHub",
    "discourse": "Discourse",
    "discourse-topics": "Discourse",
    "reddit": "Reddit",
    "mastodon": "Mastodon",
    "lemmy": "Lemmy",
    "gitlab": "GitLab",
    "joomla": "Joomla",
    "squarespace": "Squarespace",
    "redmine": "Redmine",
}
"""What publishers are called whose history is asked for though they do not link it (R26), by adapter."""


# When


def time_left(progress: Mapping[str, Any]) -> str:
    """Return how long a walk will probably go on; empty where nobody knows, or has seen too little of it.

    Args:
        progress: That of a status object.
    """
    left, seconds, fetched = progress["left"], progress["seconds"], progress["fetched"]
    if not left or not seconds or fetched < _SEEN:
        return ""
    return duration(max(1.0, left * seconds / fetched))


_SEEN: Final = 3
"""Documents that must have been fetched before it is said how long the others will take."""


# A replay: at which pace, and until when (the page's `replay.js` says the same while it is chosen)

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LONG_SECONDS: Final = 60 * DAY_SECONDS
"""What ends later is told by its month."""


def pace_in_words(pace: Pace) -> str:
    """Return a pace: `one a day`, `3 a week`, `2 each Monday and Friday`."""
    count = "one" if pace.count == 1 else str(pace.count)
    if pace.weekdays:
        *days, last = (_DAYS[day] for day in sorted(pace.weekdays))
        listed = f"{', '.join(days)} and {last}" if days else last
        return f"{count} each {listed}"
    return f"{count} a {'day' if pace.period_seconds == DAY_SECONDS else 'week'}"


def replay_in_words(entries: int, pace: Pace) -> str:
    """Return how long so many entries take: `302 entries, one a day: until September 2027`.

    Raises:
        PaceError: Longer than there are years of four digits.
    """
    said = f"{counted(entries, 'entry', 'entries')}, {pace_in_words(pace)}"
    if not entries:
        return said
    until = pace.slot(entries - 1)
    day = pace.clock(until)
    is_long = until - pace.from_at >= _LONG_SECONDS
    return f"{said}: until {f'{day:%B} {day.year}' if is_long else f'{day.day} {day:%B} {day.year}'}"


def instant_of(text: str) -> float:
    """Return an instant of a status object as epoch seconds."""
    return datetime.fromisoformat(text).timestamp()


def day_of(text: str) -> str:
    """Return an instant of a status object as a day: `3 March 2019`."""
    at = datetime.fromisoformat(text)
    return f"{at.day} {at:%B} {at.year}"


# How a document of a feed stands

STANDINGS: Final = {
    "kept": "stored, and asked for again when it is due",
    "settled": "stored for good, and not asked for again",
    "truncated": "stored as far as it came: it broke off",
    "missing": "linked to, and could not be had",
    "detached": "stored, and no longer part of the feed",
}
"""By the word in the status object."""


# What others wrote


def printable(text: str, stand_in: str = "?") -> str:
    """Return a text that somebody else wrote without what would break a line or move a cursor."""
    return "".join(each if each.isprintable() else stand_in for each in text)


# Numbers with their nouns, and spans of time


def counted(number: int, one: str, many: str) -> str:
    """Return a number with its noun, its thousands apart: `1 entry`, `12,000 entries`."""
    return f"{number:,} {one if number == 1 else many}"


def duration(seconds: float) -> str:
    """Return a duration in its largest unit, rounded down; one below zero as none."""
    left = max(int(seconds), 0)
    found = next((each for each in _SPAN_UNITS if left >= each[2]), _SPAN_UNITS[-1])
    return counted(left // found[2], found[0], found[1])


_SPAN_UNITS: Final = (
    ("year", "years", 365 * DAY_SECONDS),
    ("day", "days", DAY_SECONDS),
    ("hour", "hours", 3600),
    ("minute", "minutes", 60),
    ("second", "seconds", 1),
)


def ago(then: float, now: float) -> str:
    return f"{duration(now - then)} ago" if now - then >= 1 else "just now"


def ahead(then: float, now: float) -> str:
    return f"in {duration(then - now)}" if then - now >= 1 else "when a reader asks"
