"""What people are told of a feed: what its state means, what can be done, and why.

    STATES[State.REMEMBERED].meaning        # one sentence
    said = words_of(status, now)            # all that is to be said of one feed
    said.state.advice, said.next, said.remarks

The feed's page and `wholefeed explain` say the same, from the same status object. The words of reasons
stand in `core/slugs.py`, those of how walks end in `core/notes.py`.

What is promised has to come. These go on by themselves once somebody has asked for a feed:

    a refresh that is under way, its walk included      `refreshing`; a restart takes it up again
    polls, where history.poll_seconds is set            `next_refresh`
    looks at the publisher's pages (H8)                 `listing.next_look`
    copies of a web archive (R33)                       nobody is told when

All else waits until somebody asks: the publisher is asked when a reader asks for the feed, from `fresh_until`
on, or at once by a refresh that somebody wants. What is missing, and the pages that an adapter asks for, are
tried again with that, each in its time. `next_step` alone says which it is.

    counted(12_000, "entry", "entries")     # "12,000 entries"
    duration(90)                            # "1 minute"
    ago(then, now)                          # "2 hours ago"
    replay_in_words(302, pace)              # "302 entries, one a day: until September 2027"
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from wholefeed.core.model import State
from wholefeed.core.notes import ArchivesShift, IdsChanged, IdsUnstable, ValidatorsDoubted
from wholefeed.core.replay import ReplayPace
from wholefeed.core.slugs import failure_in_words, may_pass, slug_in_words
from wholefeed.core.text.dates import DAY_SECONDS


def words_of(status: Mapping[str, Any], now: float) -> StatedText:
    """Return what is said of a feed.

    Args:
        status: As GET /status answers, with or without its chain.
        now: Epoch seconds.
    """
    stale = _stale(status, now)
    state = state_words(status)
    if stale is not None and status["state"] != State.PARTIAL:  # what is to be done is another thing now
        state = state._replace(advice="")
    return StatedText(
        state=state,
        stale=stale,
        pause=_pause(status, now),
        heard=_heard(status, now) if stale is None else "",
        next=next_step(status, now),
        ending=_ending(status),
        remarks=tuple(_remarks(status, now)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedText:
    """All that is said of a feed beside its numbers."""

    state: Words
    stale: Words | None
    """When it was tried last, why in vain, and when it was heard of; None: it has answered since."""
    pause: str
    """For how long its publisher's site is left alone; empty where it is not."""
    heard: str
    """When the publisher was heard of; empty where `stale` says so."""
    next: str
    """When the publisher is asked next."""
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
    """One sentence: what can be done. It promises nothing: that is for `next_step`."""


_WITH_THE_NEXT: Final = "What is missing is tried again when the publisher is asked the next time."
_MEANWHILE: Final = "Readers get what is here meanwhile."

STATES: Final = {
    State.COMPLETE: Words(
        "Complete",
        "Every entry that the publisher has in this feed is here, the oldest included.",
        "Nothing needs to be done: new entries are added when your reader asks for them.",
    ),
    State.LOADING: Words(
        "Loading",
        "Not all older entries have been fetched yet; what has come so far can be read already.",
        "You can subscribe now: your reader gets the rest when it asks later on.",
    ),
    State.PARTIAL: Words(
        "Partial",
        "Some of this feed's older entries are not here, because not every document that they stand in could"
        " be read.",
        _WITH_THE_NEXT,
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
    "Not refreshed",
    "The publisher did not give the feed when it was asked last, or not in time; this is what is stored.",
    _MEANWHILE,
)
"""What is said where nobody knows why."""

_BROKE_OFF: Final = Words(
    "Partial",
    "Nothing says that whole documents are missing, but one broke off: entries at its end may not be here.",
    _WITH_THE_NEXT,
)

_ONLY_COPIES: Final = Words(
    "Partial",
    "The publisher no longer gives some of this feed's documents; copies in a web archive stand in for them.",
    "The publisher's own documents replace the copies if they come back.",
)

_LIMITED: Final = "Whoever runs this proxy can raise the limits in its configuration, and refresh the feed."
_LASTING: Final = "Trying again may not help: tell the publisher which document it is."
_DELAYED: Final = f"The publisher's site allows no more requests for now. {_WITH_THE_NEXT}"


def state_words(status: Mapping[str, Any]) -> Words:
    """Return what the state of a feed means and what can be done, by what is missing of it."""
    state = State(status["state"])
    if state is State.REMEMBERED:
        return _remembered(status)
    if state is not State.PARTIAL:
        return STATES[state]
    missing = status["missing"]
    reasons = [each["reason"] for each in missing]
    found = STATES[state]
    if reasons and all(reason == "truncated" for reason in reasons):
        found = _BROKE_OFF
    if reasons and all(reason == "memento" for reason in reasons):
        return _ONLY_COPIES
    if reasons and not any(may_pass(each["reason"], each["status"]) for each in missing):
        found = found._replace(advice=_LASTING)
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
    advice = (
        "Stay subscribed and the history grows from now on; later refreshes try again whether the site gives"
        " more."
    )
    return found._replace(meaning=meaning, advice=advice)


def _advice(reasons: Sequence[str], otherwise: str) -> str:
    """Return what helps against most of what is missing: a limit before what the publisher must repair."""
    if "limit" in reasons:
        return _LIMITED
    if any(reason in ("host-backoff", "history-unfinished") for reason in reasons):
        return _DELAYED
    return otherwise


# Why: what went wrong, how the walk ended, how its history was found


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


def describe_attempt(failure: Mapping[str, Any], now: float) -> str:
    """Return when a document that is missing was tried, and when it may be again.

    Args:
        failure: As /status lists it.
        now: Epoch seconds.
    """
    number, last = failure["attempts"], ago(instant_of(failure["last_attempt"]), now)
    tried = f"tried {last}" if number == 1 else f"tried {number} times, last {last}"
    return f"{tried}; again with the next refresh{_or_later(_left(failure['next_attempt'], now))}"


def _remarks(status: Mapping[str, Any], now: float) -> Iterable[str]:
    if status["state"] == State.REMEMBERED and status["since"]:
        yield f"Seen by this proxy, in this format, since {day_of(status['since'])}."
    yield from _collected(status.get("collection"))
    yield from _listed(status.get("listing"), now)
    yield from _imported(status.get("imported"))
    notes = {note["code"]: note for note in status.get("notes", ())}
    if ArchivesShift.code in notes:
        yield (
            "Each new entry pushes older ones from one archive document of this feed into the next. So these"
            " are all read once a week, and what leaves one of them in between is remembered."
        )
    if (renamed := notes.get(IdsChanged.code)) is not None:
        posts = count_noun(int(renamed["posts"]), "post has", "posts have")
        more = " Every look brings new ones." if IdsUnstable.code in notes else ""
        day = day_of(renamed["since"])
        yield f"Since {day}, {posts} come again under other ids; each is here once.{more}"
    if ValidatorsDoubted.code in notes:
        yield (
            "The publisher's server does not tell when this feed changes (by ETag and Last-Modified), so it"
            " is asked for whole each time."
        )


def _collected(known: Mapping[str, Any] | None) -> Iterable[str]:
    """Say how a history was found that the publisher does not link (R31)."""
    if known is None:
        return
    publisher = _publisher(known)
    if known["walked"] is None and known["reason"]:
        at = known["next_attempt"]
        again_on = f"; tried again with the first refresh from {day_of(at)} on" if at else ""
        why = slug_in_words(known["reason"])
        yield f"Older pages were asked for as those of {publisher}: {why}{again_on}."
        return
    if known["walked"] is None:
        yield f"Older pages are asked for as those of {publisher}, and not all have been read yet."
        return
    claim = f" of {known['claimed']:,} that the site claims to have" if known["claimed"] is not None else ""
    pages = count_noun(known["pages"], "page", "pages")
    way = f" ({known['way']})" if known["way"] else ""
    yield (
        f"Found as pages of {publisher}{way}, which nothing links:"
        f" {count_noun(known['collected'], 'entry', 'entries')}{claim} on {pages},"
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
        entries = count_noun(known["entries"], "older entry stands", "older entries stand")
        pages = count_noun(known["pages"], "page", "pages")
        yield f"{entries} in a list on {pages} of the site, looked at on {looked_on}{then}."
    else:
        yield f"{_passed_over(known['passed_over'], looked_on)}{then}."
        if known["entries"]:
            entries = count_noun(known["entries"], "entry", "entries")
            yield f"{entries} of a list that was found before are kept."
    if known["guessed"]:
        entries = count_noun(known["guessed"], "entry stands", "entries stand")
        yield f"{entries} there without an exact date: with a month or a year alone, or with none."
    if known["limit"]:
        yield f"The list goes on: no more than {known['limit']:,} of its pages are asked for."


def _passed_over(pages: Sequence[Mapping[str, Any]], on: str) -> str:
    if not pages:
        return f"No page of the site could be searched for a list of older entries on {on}"
    reasons = Counter(each["text"] for each in pages)
    said = (f"{text} ({number})" if len(reasons) > 1 else text for text, number in reasons.most_common())
    looked = count_noun(len(pages), "page of the site was", "pages of the site were")
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
    documents = count_noun(known["documents"], "imported document", "imported documents")
    entries = count_noun(known["entries"], "entry", "entries")
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


# What was asked, and what comes next


def _heard(status: Mapping[str, Any], now: float) -> str:
    at = status["last_refresh"]
    if at is None:
        return "The publisher has not been asked yet."
    return f"The publisher was asked {ago(instant_of(at), now)}, and answered."


def _stale(status: Mapping[str, Any], now: float) -> Words | None:
    """Say when the feed was tried in vain and why, and beside it of when it is."""
    failure, heard = status["failure"], status["last_refresh"]
    if failure is None:
        return STALE if status["stale"] else None
    number = failure["attempts"]
    said = (
        f"When the feed was last asked for, {ago(instant_of(failure['last_attempt']), now)},"
        f" {failure_in_words(failure['reason'], failure['status'])}"
    )
    said += f" ({number} times in a row by now)" if number > 1 else ""
    said += f"; this is what the publisher gave {ago(instant_of(heard), now)}." if heard is not None else "."
    return Words(STALE.title, said, _MEANWHILE if may_pass(failure["reason"], failure["status"]) else _NO_USE)


_NO_USE: Final = "Trying again may not help: look whether the site has another address for its feed."


def _pause(status: Mapping[str, Any], now: float) -> str:
    left = _left(status["paused_until"], now)
    if left < 1:
        return ""
    return (
        f"The publisher's site is left alone for another {duration(left)}, by a refresh by hand too: it asked"
        " for that, or kept failing."
    )


def next_step(status: Mapping[str, Any], now: float) -> str:
    """Return when the publisher is asked next, and whether that takes anybody's doing."""
    if status["refreshing"]:
        what = "Older documents are being fetched" if status["walking"] else "The publisher is being asked"
        return f"{what} now, whether anybody waits for it or not."
    at_once = "" if _left(status["paused_until"], now) >= 1 else "; a refresh by hand asks at once"
    return f"The publisher is asked next {asked_next(status, now)}{at_once}."


def asked_next(status: Mapping[str, Any], now: float) -> str:
    """Return when the publisher of a feed that is not being refreshed is asked next.

    Args:
        status: As GET /status answers, or an object of GET /feeds.
        now: Epoch seconds.
    """
    fresh = max(_left(status["fresh_until"], now), _left(status.get("paused_until"), now))
    if status["next_refresh"] is None:
        return f"when a reader asks{_or_later(fresh)}"
    polled = max(_left(status["next_refresh"], now), fresh)
    by_itself = f"in {duration(polled)}" if polled >= 1 else "soon"
    return f"{by_itself}, or sooner when a reader asks" if fresh < polled else by_itself


def _or_later(seconds: float) -> str:
    return f", in {duration(seconds)} or later" if seconds >= 1 else ""


def _left(at: str | None, now: float) -> float:
    """Return the seconds until an instant of a status object; 0 or less: it has passed, or there is none."""
    return 0.0 if at is None else instant_of(at) - now


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


def pace_in_words(pace: ReplayPace) -> str:
    """Return a pace: `one a day`, `3 a week`, `2 each Monday and Friday`."""
    count = "one" if pace.count == 1 else str(pace.count)
    if pace.weekdays:
        *days, last = (_DAYS[day] for day in sorted(pace.weekdays))
        listed = f"{', '.join(days)} and {last}" if days else last
        return f"{count} each {listed}"
    return f"{count} a {'day' if pace.period_seconds == DAY_SECONDS else 'week'}"


def replay_in_words(entries: int, pace: ReplayPace) -> str:
    """Return how long so many entries take: `302 entries, one a day: until September 2027`.

    Raises:
        PaceError: Longer than there are years of four digits.
    """
    said = f"{count_noun(entries, 'entry', 'entries')}, {pace_in_words(pace)}"
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
    """Return a stranger's text without what breaks a line, moves a cursor or turns text around."""
    return _UNPRINTABLE.sub(stand_in, text)


def escape_lines(text: str) -> str:
    """Return what is to be printed, in lines, with escapes of JSON for what `printable` leaves out."""
    return _UNPRINTABLE.sub(
        lambda found: found[0] if found[0] in "\n\t" else json.dumps(found[0])[1:-1], text
    )


# Controls, separators of lines, surrogates, tags, and what turns the direction of text (Unicode TR 36, 3.3).
_UNPRINTABLE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)


# Numbers with their nouns, and spans of time


def count_noun(number: int, one: str, many: str) -> str:
    """Return a number with its noun, its thousands apart: `1 entry`, `12,000 entries`."""
    return f"{number:,} {one if number == 1 else many}"


def duration(seconds: float) -> str:
    """Return a duration in its largest unit, rounded down; one below zero as none."""
    left = max(int(seconds), 0)
    found = next((each for each in _SPAN_UNITS if left >= each[2]), _SPAN_UNITS[-1])
    return count_noun(left // found[2], found[0], found[1])


_SPAN_UNITS: Final = (
    ("year", "years", 365 * DAY_SECONDS),
    ("day", "days", DAY_SECONDS),
    ("hour", "hours", 3600),
    ("minute", "minutes", 60),
    ("second", "seconds", 1),
)


def ago(then: float, now: float) -> str:
    return f"{duration(now - then)} ago" if now - then >= 1 else "just now"
