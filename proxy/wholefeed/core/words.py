"""Words for people about a feed: its state, advice, reasons and the next step.

The feed's page and `wholefeed explain` use one status object.

Promises must hold: only `next_step` makes them. Without a reader, only these continue: a refresh
(`refreshing`), polls (`next_refresh`), looks at listings (H8, `listing.next_look`) and web archives (R33).
All else waits for the next refresh.
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
    stale = _stale(status, now)
    state = state_words(status)
    if stale is not None and status["state"] != State.PARTIAL:  # the state's advice does not help then
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
    state: Words
    stale: Words | None
    """The last attempt, why it failed, and the last response; None: it succeeded."""
    pause: str
    """How long the publisher's site is left alone; empty: not at all."""
    heard: str
    """When the publisher last responded; empty if `stale` says so."""
    next: str
    ending: str
    """Why nothing older was found; empty during a walk."""
    remarks: tuple[str, ...]
    """The way to an unlinked history, and other remarks."""


# The state: meaning and advice


class Words(NamedTuple):
    title: str
    meaning: str
    advice: str
    """One sentence without promises, unlike `next_step`."""


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
        "Nothing needs to be done; only the publisher could say whether entries were ever"
        " dropped from its pages.",
    ),
    State.COLLECTED: Words(
        "Collected",
        "The publisher's feed links to nothing older, but the site answers when older pages are asked for,"
        " and they were read to the last.",
        "Nothing needs to be done: these are all entries that the site gives, though there may"
        " once have been more.",
    ),
    State.LISTED: Words(
        "Listed",
        "The publisher's feed has only its newest entries; the older ones were found in lists on the site,"
        " and are here as they stand there, mostly by title, date and link.",
        "Nothing needs to be done: each of them links to its text on the site, though the lists"
        " may not name every entry.",
    ),
    State.REMEMBERED: Words(
        "Remembered",
        "The publisher offers only its newest entries, and no way to ask for older ones: this"
        " proxy has the entries that it has seen since its first request.",
        "Stay subscribed and the history grows from now on; older entries can only come from the publisher,"
        " if it links its archive (RFC 5005) or lists it on the site's pages.",
    ),
}

# A publisher that fails may have changed since: nothing is said of the present.
_LAST_SENT: Final = {
    State.COMPLETE: "Every entry that the publisher had in this feed when it last sent it is here, the oldest"
    " included.",
    State.PAGED: "The publisher offered this feed page by page, and every page was read to the last.",
    State.COLLECTED: "The publisher's feed linked to nothing older, but the site answered when older pages"
    " were asked for, and they were read to the last.",
    State.LISTED: "The publisher's feed had only its newest entries; the older ones were found in lists on"
    " the site, and are here as they stood there, mostly by title, date and link.",
    State.REMEMBERED: "The publisher offered only its newest entries, and no way to ask for older ones: this"
    " proxy has the entries that it has seen since its first request.",
}
_READ_IN_VAIN: Final = "The publisher's feed was read to its end, and no entry of it is here."
_EMPTY: Final = {
    State.COMPLETE: _READ_IN_VAIN,
    State.LOADING: "No entry has come yet; documents of this feed are still to be fetched.",
    State.PARTIAL: "No entry of this feed is here, because not every document that they stand in could be"
    " read.",
    State.PAGED: _READ_IN_VAIN,
    State.COLLECTED: _READ_IN_VAIN,
    State.LISTED: _READ_IN_VAIN,
    State.REMEMBERED: "No entry of this feed is here: this proxy keeps those that it sees.",
}

STALE: Final = Words(
    "Not refreshed",
    "The publisher did not send the feed at the last request, or not in time; this is the stored feed.",
    _MEANWHILE,
)
"""For an unknown failure."""

_BROKE_OFF: Final = (
    "Nothing says that whole documents are missing, but one broke off: entries at its end may not be here."
)
_NOTHING_WHOLE: Final = "The publisher's document broke off before the end of its first entry: none is here."

_ONLY_COPIES: Final = Words(
    "Partial",
    "The publisher no longer gives some of this feed's documents; copies in a web archive stand in for them.",
    "The publisher's own documents replace the copies if they come back.",
)

_LIMITED: Final = (
    "The operator of this proxy can raise the limits in its configuration, and refresh the feed."
)
_LASTING: Final = "Trying again may not help: tell the publisher which document it is."
_DELAYED: Final = f"The publisher's site allows no more requests for now. {_WITH_THE_NEXT}"


def state_words(status: Mapping[str, Any]) -> Words:
    state = State(status["state"])
    found = STATES[state]
    if not status["entries"]:
        found = found._replace(meaning=_EMPTY[state])
    elif status["stale"] or status["failure"] is not None:
        found = found._replace(meaning=_LAST_SENT.get(state, found.meaning))
    if state is State.REMEMBERED:
        return _remembered(status, found)
    return _partial(status, found) if state is State.PARTIAL else found


def _partial(status: Mapping[str, Any], found: Words) -> Words:
    missing = status["missing"]
    reasons = [each["reason"] for each in missing]
    if reasons and all(reason == "truncated" for reason in reasons):
        found = found._replace(meaning=_BROKE_OFF if status["entries"] else _NOTHING_WHOLE)
    if reasons and all(reason == "memento" for reason in reasons):
        return _ONLY_COPIES
    if reasons and not any(may_pass(each["reason"], each["status"]) for each in missing):
        found = found._replace(advice=_LASTING)
    return found._replace(advice=_advice(reasons, found.advice))


def _remembered(status: Mapping[str, Any], found: Words) -> Words:
    known = status.get("collection")
    if known is None or not known["reason"] or not status["entries"]:
        return found
    # The publisher is known to have more, and its failure may pass.
    meaning = (
        f"The site looks like one of {_publisher(known)}, which has older entries,"
        f" but {slug_in_words(known['reason'])}: this proxy has the entries that it has seen"
        " since its first request."
    )
    advice = (
        "Stay subscribed and the history grows from now on; later refreshes try again whether the site gives"
        " more."
    )
    return found._replace(meaning=meaning, advice=advice)


def _advice(reasons: Sequence[str], otherwise: str) -> str:
    # A limit first: a proxy's owner can raise it, but not repair a publisher.
    if "limit" in reasons:
        return _LIMITED
    if any(reason in ("host-backoff", "history-unfinished") for reason in reasons):
        return _DELAYED
    return otherwise


# Reasons: failures, endings, and the origins of histories


def _ending(status: Mapping[str, Any]) -> str:
    ending, listing = status["ending"], status.get("listing")
    if ending is None:
        return ""
    if ending["code"] == "unavailable" and listing is not None and listing["url"]:
        return "a page of the publisher's list could not be fetched"
    return ending_in_words(ending)


def ending_in_words(ending: Mapping[str, str]) -> str:
    code = ending["code"]
    found = _AT_END.get(code) or slug_in_words(code)
    return ending["text"] if found == code else found


# Ending codes that are no true end, and whose slug has other words.
_AT_END: Final = {
    "unavailable": "one document could not be fetched, and only that document leads to the older ones",
    "pages-repeat": "several pages in a row brought nothing new",
    "page-gone": "the last page links to a page that does not exist",
}


def describe_attempt(failure: Mapping[str, Any], now: float) -> str:
    """Return the times of the past and the next attempts at a missing document."""
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
            "Each new entry pushes older ones from one archive document of this feed into the"
            " next. So this proxy reads all of them once a week, and remembers the entries that"
            " leave one of them in between."
        )
    if (renamed := notes.get(IdsChanged.code)) is not None:
        posts = count_noun(int(renamed["posts"]), "post has", "posts have")
        more = " Every refresh brings new ids." if IdsUnstable.code in notes else ""
        day = day_of(renamed["since"])
        yield f"Since {day}, {posts} come again under other ids; each is here once.{more}"
    if ValidatorsDoubted.code in notes:
        yield (
            "The publisher's server does not tell when this feed changes (by ETag and"
            " Last-Modified), so the whole feed is fetched each time."
        )


def _collected(known: Mapping[str, Any] | None) -> Iterable[str]:
    if known is None:
        return
    publisher = _publisher(known)
    if known["walked"] is None and known["reason"]:
        at = known["next_attempt"]
        again_on = f"; tried again with the first refresh from {day_of(at)} on" if at else ""
        why = slug_in_words(known["reason"])
        yield f"Older pages were requested in the way of {publisher}: {why}{again_on}."
        return
    if known["walked"] is None:
        yield f"Older pages are requested in the way of {publisher}, and not all have been read yet."
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
        yield f"{entries} in {_place(known)}, looked at on {looked_on}{then}."
        yield from _differences(known.get("sources", ()))
    else:
        yield f"{_passed_over(known['passed_over'], looked_on)}{then}."
        if known["entries"]:
            entries = count_noun(known["entries"], "entry", "entries")
            yield f"{entries} of a list that was found earlier are still served."
    if known["guessed"]:
        entries = count_noun(known["guessed"], "entry stands", "entries stand")
        yield f"{entries} there without an exact date: with a month or a year alone, or with none."
    if known["limit"]:
        yield f"The list goes on: no more than {known['limit']:,} of its pages are asked for."


def _place(known: Mapping[str, Any]) -> str:
    sources = known.get("sources")
    kind = sources[0]["kind"] if sources else "list"
    return _FILES.get(kind) or f"a list on {count_noun(known['pages'], 'page', 'pages')} of the site"


_FILES: Final = {
    "sitemap": "the site's sitemap, which has no titles",
    "index": "the site's index for search",
    "archive": "the site's archive",
}
_SOURCES: Final = {kind: f"its {kind}" for kind in ("list", "sitemap", "index", "archive")}


def _differences(sources: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """Say how the sources of listed entries differ (H10)."""
    if len(sources) < 2:  # noqa: PLR2004 - one differs from nothing
        return
    counts = (f"{_SOURCES[each['kind']]} names {each['entries']:,}" for each in sources)
    alone = [
        f"{each['alone']:,} only in {_SOURCES[each['kind']]}{'' if each['served'] else ', not taken'}"
        for each in sources
        if each["alone"]
    ]
    yield f"Of the site's entries {', '.join(counts)}: {'; '.join(alone) or 'the same ones'}."


def _passed_over(pages: Sequence[Mapping[str, Any]], on: str) -> str:
    if not pages:
        return f"No page of the site could be searched for a list of older entries on {on}"
    reasons = Counter(each["text"] for each in pages)
    said = (f"{text} ({number})" if len(reasons) > 1 else text for text, number in reasons.most_common())
    looked = count_noun(len(pages), "page of the site was", "pages of the site were")
    return f"On {on} {looked} looked at, and none lists the feed's entries: {'; '.join(said)}"


def passed_over_in_words(page: Mapping[str, Any]) -> str:
    """Return why a page is not part of a list."""
    return f"{page['text']} (status {page['status']})" if page["status"] else str(page["text"])


def _next_look(at: str | None, now: float) -> str:
    if at is None:
        return ""
    return f"on {day_of(at)}" if instant_of(at) - now >= DAY_SECONDS else "soon"


def _imported(known: Mapping[str, Any] | None) -> Iterable[str]:
    if known is None:
        return
    documents = count_noun(known["documents"], "imported document", "imported documents")
    entries = count_noun(known["entries"], "entry", "entries")
    if known["served"]:
        yield f"{documents}: {entries} that no other document of this feed has."
    else:
        yield (
            f"{documents}: stored but not served, since the publisher says that the feed is"
            f" complete without them; {entries} that it does not have."
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
"""Names of publishing systems, by adapter (R26)."""


# Past and next requests


def _heard(status: Mapping[str, Any], now: float) -> str:
    at = status["last_refresh"]
    if at is None:
        return "The publisher has not been asked yet."
    return f"The publisher was asked {ago(instant_of(at), now)}, and responded."


def _stale(status: Mapping[str, Any], now: float) -> Words | None:
    failure, heard = status["failure"], status["last_refresh"]
    if failure is None:
        return STALE if status["stale"] else None
    number = failure["attempts"]
    said = (
        f"When the feed was last asked for, {ago(instant_of(failure['last_attempt']), now)},"
        f" {failure_in_words(failure['reason'], failure['status'])}"
    )
    said += f" ({number} times in a row by now)" if number > 1 else ""
    said += (
        f"; this is the feed as the publisher sent it {ago(instant_of(heard), now)}."
        if heard is not None
        else "."
    )
    return Words(STALE.title, said, _MEANWHILE if may_pass(failure["reason"], failure["status"]) else _NO_USE)


_NO_USE: Final = "Trying again may not help: look whether the site has another address for its feed."


def _pause(status: Mapping[str, Any], now: float) -> str:
    left = _left(status["paused_until"], now)
    if left < 1:
        return ""
    return (
        f"The publisher's site gets no requests for another {duration(left)}, not even for a refresh"
        " by hand: it asked for a pause, or failed again and again."
    )


def next_step(status: Mapping[str, Any], now: float) -> str:
    """Return when the publisher is asked next, and whether somebody must act."""
    if status["refreshing"]:
        what = "Older documents are being fetched" if status["walking"] else "The publisher is being asked"
        return f"{what} now, whether anybody waits for it or not."
    at_once = "" if _left(status["paused_until"], now) >= 1 else "; a refresh by hand asks at once"
    return f"The publisher is asked next {asked_next(status, now)}{at_once}."


def asked_next(status: Mapping[str, Any], now: float) -> str:
    """Return when the publisher is asked next, if no refresh runs.

    `status` is an answer of GET /status, or an object of GET /feeds.
    """
    fresh = max(_left(status["fresh_until"], now), _left(status.get("paused_until"), now))
    if status["next_refresh"] is None:
        return f"when a reader asks{_or_later(fresh)}"
    polled = max(_left(status["next_refresh"], now), fresh)
    by_itself = f"in {duration(polled)}" if polled >= 1 else "soon"
    return f"{by_itself}, or sooner when a reader asks" if fresh < polled else by_itself


def describe_polling(poll_seconds: float) -> str:
    """Return when publishers are asked; `poll_seconds` is the interval of polls, 0 without them."""
    by_readers = "when a reader asks for its feed, and what is here is no longer fresh"
    if poll_seconds:
        by_itself = f"{duration(poll_seconds)} after its last response"
        return f"Each publisher is asked {by_itself}, or sooner {by_readers}."
    return f"Each publisher is asked {by_readers}."


def outcome_in_words(change: int, failure: str) -> str:
    """Return the outcome of a refresh: a change in entries, or the reason of its failure (empty: none)."""
    if failure:
        return f"failed: {failure}"
    if not change:
        return "no new entries"
    return f"{count_noun(abs(change), 'entry', 'entries')} {'more' if change > 0 else 'fewer'}"


def _or_later(seconds: float) -> str:
    return f", in {duration(seconds)} or later" if seconds >= 1 else ""


def _left(at: str | None, now: float) -> float:
    return 0.0 if at is None else instant_of(at) - now


# Times


def time_left(progress: Mapping[str, Any]) -> str:
    """Estimate the rest of a walk from its progress in a status object; empty: unknown."""
    left, seconds, fetched = progress["left"], progress["seconds"], progress["fetched"]
    if not left or not seconds or fetched < _SEEN:
        return ""
    return duration(max(1.0, left * seconds / fetched))


# Documents to fetch before an estimate.
_SEEN: Final = 3


# Replays (the page's `replay.js` says the same while a pace is chosen)

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# A later end is given by its month.
_LONG_SECONDS: Final = 60 * DAY_SECONDS


def pace_in_words(pace: ReplayPace) -> str:
    """Return a pace in words: `one a day`, `2 each Monday and Friday`."""
    count = "one" if pace.count == 1 else str(pace.count)
    if pace.weekdays:
        *days, last = (_DAYS[day] for day in sorted(pace.weekdays))
        listed = f"{', '.join(days)} and {last}" if days else last
        return f"{count} each {listed}"
    return f"{count} a {'day' if pace.period_seconds == DAY_SECONDS else 'week'}"


def replay_in_words(entries: int, pace: ReplayPace) -> str:
    """Return how long entries take: `302 entries, one a day: until September 2027`.

    Raises:
        PaceError: After the year 9999.
    """
    said = f"{count_noun(entries, 'entry', 'entries')}, {pace_in_words(pace)}"
    if not entries:
        return said
    until = pace.slot(entries - 1)
    day = pace.clock(until)
    is_long = until - pace.from_at >= _LONG_SECONDS
    return f"{said}: until {f'{day:%B} {day.year}' if is_long else f'{day.day} {day:%B} {day.year}'}"


def instant_of(text: str) -> float:
    """Convert an instant of a status object to epoch seconds."""
    return datetime.fromisoformat(text).timestamp()


def day_of(text: str) -> str:
    at = datetime.fromisoformat(text)
    return f"{at.day} {at:%B} {at.year}"


# Standings of documents

STANDINGS: Final = {
    "kept": "stored, and asked for again when it is due",
    "settled": "stored for good, and not asked for again",
    "truncated": "stored up to the place where it broke off",
    "missing": "linked to, but could not be fetched",
    "detached": "stored, and no longer part of the feed",
}


# Text of strangers


def printable(text: str, stand_in: str = "?") -> str:
    """Replace characters that break lines, move a cursor or turn text around."""
    return _UNPRINTABLE.sub(stand_in, text)


def escape_lines(text: str) -> str:
    """Escape as JSON does the characters that `printable` replaces, but not line breaks and tabs."""
    return _UNPRINTABLE.sub(
        lambda found: found[0] if found[0] in "\n\t" else json.dumps(found[0])[1:-1], text
    )


# Controls, separators of lines, surrogates, tags, and changes of text direction (Unicode TR 36, 3.3).
_UNPRINTABLE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)


# Numbers with their nouns, and spans of time


def count_noun(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def sums_in_words(entries: int, documents: int) -> str:
    return (
        f"{count_noun(entries, 'entry', 'entries')} out of {count_noun(documents, 'document', 'documents')}"
    )


def duration(seconds: float) -> str:
    """Return a duration in its largest unit, rounded down; negative ones as 0."""
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


def texts_in_words(told: Mapping[str, Any] | None) -> str:
    """Return how many entries have the text of their page, from `texts` of `/status`; empty: unknown."""
    if told is None:
        return ""
    taken, wanted = told["taken"], told["wanted"]
    if not wanted:
        return "No entry wants the text of its page."
    return f"{taken:,} of {count_noun(wanted, 'text', 'texts')} from pages so far."
