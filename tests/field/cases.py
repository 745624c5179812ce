"""A case from the field: a publisher's answers at each look, and the expected feed at the end.

    CASE = Case("slash", "Atom's namespace", [feed(rss())], titles("Night 3", "Night 2", "Night 1"))
    judged = await judge(CASE, proxy, origin)        # "" where it came out right, else what came

The documents are all of one made-up log, so that a case names only its oddity.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime

import feedparser

from tests.answers import Answer, Document
from tests.origin import Origin
from tests.running import Proxy, Reply
from wholefeed.core.model import ATOM_NS

PATH = "/feed.xml"
DAY_SECONDS = 86_400
XML = "application/xml"
NIGHTS = (3, 2, 1)
ALL = tuple(f"Night {night}" for night in NIGHTS)


# ---- The documents of the log


def _at(night: int) -> datetime:
    return datetime(2026, 6, night, 22, tzinfo=UTC)


def _date(night: int) -> str:
    return format_datetime(_at(night), usegmt=True)


def item(night: int, *, title: str = "", more: str = "") -> str:
    return (
        f"<item><title>{title or f'Night {night}'}</title><link>http://sky.example/{night}</link>"
        f'<guid isPermaLink="false">night-{night}</guid><pubDate>{_date(night)}</pubDate>'
        f"<description>Seeing {night} of 5</description>{more}</item>"
    )


def rss(
    *nights: int, items: str = "", head: str = "", declaration: str = '<?xml version="1.0" encoding="UTF-8"?>'
) -> str:
    """Return the log in RSS 2.0: the items of these nights, or the given ones."""
    entries = items or "\n".join(item(night) for night in nights or NIGHTS)
    return (
        f'{declaration}\n<rss version="2.0">\n<channel><title>A sky log</title><link>http://sky.example/</link>'
        f"<description>Seeing</description>{head}\n{entries}\n</channel>\n</rss>\n"
    )


def entry(night: int, *, content: str = "") -> str:
    at = _at(night).isoformat()
    return (
        f"<entry><id>tag:sky.example,2026:{night}</id><title>Night {night}</title>"
        f'<link href="http://sky.example/{night}"/><updated>{at}</updated>'
        + (content or f'<content type="html">&lt;p&gt;Seeing {night}&lt;/p&gt;</content>')
        + "</entry>"
    )


def atom(*nights: int, items: str = "", namespace: str = f' xmlns="{ATOM_NS}"') -> str:
    """Return the log in Atom; `namespace` is the root's declaration."""
    entries = items or "\n".join(entry(night) for night in nights or NIGHTS)
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<feed{namespace}>\n<title>A sky log</title>'
        f"<id>tag:sky.example,2026:log</id><updated>{_at(3).isoformat()}</updated>"
        f'<link href="http://sky.example/"/><author><name>Vera</name></author>\n{entries}\n</feed>\n'
    )


def rdf(*nights: int) -> str:
    entries = "\n".join(
        f'<item rdf:about="http://sky.example/{night}"><title>Night {night}</title>'
        f"<link>http://sky.example/{night}</link><description>Seeing {night}</description></item>"
        for night in nights or NIGHTS
    )
    return (
        '<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns="http://purl.org/rss/1.0/">\n<channel rdf:about="http://sky.example/"><title>A sky log</title>'
        f"<link>http://sky.example/</link><description>d</description></channel>\n{entries}\n</rdf:RDF>\n"
    )


# ---- A case

Look = dict[str, Answer]
"""Answers by path, from this look on."""
Expected = Callable[[Reply], str]
"""Returns the wrong result, or an empty text."""


@dataclass(frozen=True)
class Case:
    """A feed fetched once or several times, a day apart."""

    name: str
    kind: str
    looks: Sequence[Look]
    expected: Expected
    path: str = PATH
    is_refreshed: bool = False
    """Whether a person asks for a refresh before the last look."""


def feed(body: str | bytes, content_type: str = XML, *headers: tuple[str, str], path: str = PATH) -> Look:
    """Return a look at a publisher that sends this document."""
    content = body if isinstance(body, bytes) else body.encode()
    return {path: Document(body=content, headers=(("Content-Type", content_type), *headers))}


def titles(*expected: str) -> Expected:
    """Expect these titles, as feedparser reads the answer."""

    def judge_titles(reply: Reply) -> str:
        if reply.status != 200:
            return f"{reply.status} {reply.slug}"
        found = tuple(_titles(reply))
        return "" if found == expected else f"{reply.reconstruction}: {found}"

    return judge_titles


def _titles(reply: Reply) -> Iterator[str]:
    """Yield the titles seen by a reader, without the proxy's own entry (R16)."""
    if reply.headers["Content-Type"].startswith("application/feed+json"):
        entries = json.loads(reply.body)["items"]
    else:
        entries = feedparser.parse(reply.body).entries
    for each in entries:
        if not str(each.get("id", "")).startswith("urn:uuid:"):
            yield each.get("title", "")


def holds(*expected: str) -> Expected:
    """Expect an answer with these texts, each as written."""

    def judge_texts(reply: Reply) -> str:
        if reply.status != 200:
            return f"{reply.status} {reply.slug}"
        missing = [each for each in expected if each.encode() not in reply.body]
        return f"without {missing}" if missing else ""

    return judge_texts


def in_state(state: str, *expected: str) -> Expected:
    """Expect this state, and these titles."""
    judge_titles = titles(*expected)

    def judge_state(reply: Reply) -> str:
        return judge_titles(reply) or ("" if reply.state == state else reply.reconstruction)

    return judge_state


def refused(*slugs: str) -> Expected:
    """Expect a problem with one of these slugs."""

    def judge_refusal(reply: Reply) -> str:
        if reply.status == 200:
            return f"200 {reply.reconstruction}"
        return "" if reply.slug in slugs else reply.slug

    return judge_refusal


async def judge(case: Case, proxy: Proxy, origin: Origin) -> str:
    """Play a case on a publisher of its own; return the wrong result, or an empty text."""
    reply = None
    for number, look in enumerate(case.looks):
        for path, answer in look.items():
            origin.answer(path, answer)
        if reply is not None:
            proxy.clock.advance(DAY_SECONDS)
        if case.is_refreshed and number == len(case.looks) - 1:
            await proxy.refreshed(origin.url(case.path))
        reply = await proxy.whole(origin.url(case.path))
        await proxy.settled()
    assert reply is not None, "a case has a look"
    return case.expected(reply)
