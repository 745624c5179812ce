"""Properties of any chain through the whole core: parse, walk, merge, compose, parse again.

Chains are random: Atom or RSS, in several encodings and spellings. Entries repeat in other documents, with
dates and without; the end may be missing or lead back.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.parse.makers import slices
from tests.core.refresh.walking import a_walk
from wholefeed.core.compose.compose import EPILOGUE, Address, compose_prologue, newest_first
from wholefeed.core.jobs import compose
from wholefeed.core.links import classify
from wholefeed.core.merge import Copy, choose
from wholefeed.core.model import ATOM_NS, DCTERMS_NS, EntryId, Family, FeedDocument, Role
from wholefeed.core.parse.documents import parse
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.verbatim.fragments import Fragments, prefixes_in
from wholefeed.core.walk.chain import Arrival

SITE: Final = "http://site.test"
FETCHED_AT: Final = 1_800_000_000
ADDRESS: Final = Address("http://proxy.test/feed?url=x", f"{SITE}/0/feed")

many = settings(max_examples=2 * settings().max_examples)


@dataclass(frozen=True)
class Written:
    name: str
    has_id: bool
    updated_at: int | None
    mark: str
    """Distinguishes its copies."""
    inside: str


@dataclass(frozen=True)
class Chain:
    family: Family
    bodies: dict[str, bytes]
    written: tuple[tuple[Written, ...], ...]
    is_whole: bool

    @property
    def urls(self) -> list[str]:
        return list(self.bodies)


# ---- Chains at random

INSIDES: Final = {
    Family.ATOM: (
        "",
        "<link href='rel'/>",
        "<content type='html'><![CDATA[<a href='x'>y</a>]]></content>",
        "<p:thing q='1'>&#x2014;</p:thing>",
        "<summary xml:lang='fr' xml:base='b/'>é &amp; <!-- c --></summary>",
        "<author><name>N</name></author>",
    ),
    Family.RSS: (
        "",
        "<description>&lt;a href='x'&gt;</description>",
        "<description><![CDATA[<item>é</item>]]></description>",
        "<p:thing q='1'>&#x2014;</p:thing>",
        "<enclosure url='a.mp3'/><?pi <x?>",
    ),
}
ATTRIBUTES: Final = (
    "",
    ' xmlns:p="urn:one"',
    " xmlns:p='urn:two' xml:lang='de'",
    ' xml:base="deep/er/"',
    " xmlns:p='http://purl.org/dc/elements/1.1/' xml:base='http://base.test/'",
)
FUTURE_AT: Final = FETCHED_AT + 2 * int(DAY_SECONDS)
INSTANTS: Final[tuple[int | None, ...]] = (None, 0, 1_000, 1_000_000_000, FETCHED_AT, FUTURE_AT)


@st.composite
def entries(draw: st.DrawFn, family: Family, place: int, prefixes: bool) -> tuple[Written, ...]:
    """Names repeat in other documents, and those with ids in the same one too."""
    held: list[Written] = []
    for number, name in enumerate(draw(st.lists(st.sampled_from("abcdefgh"), max_size=6))):
        has_id = name < "f"
        if not has_id and any(each.name == name for each in held):
            continue
        inside = draw(st.sampled_from(INSIDES[family]))
        held.append(
            Written(
                name,
                has_id,
                draw(st.sampled_from(INSTANTS)),
                f"copy {place}.{number}",
                inside if prefixes or "p:" not in inside else "",
            )
        )
    return tuple(held)


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    family = draw(st.sampled_from([Family.ATOM, Family.RSS]))
    length = draw(st.integers(1, 5))
    urls = [f"{SITE}/{n}/feed" for n in draw(st.permutations(range(length)))]
    end = draw(st.sampled_from(["none", "itself", "missing", "back"]))
    tail = {"none": None, "itself": urls[-1], "missing": f"{SITE}/gone", "back": urls[0]}[end]
    bodies, written = {}, []
    for place, (url, older) in enumerate(zip(urls, [*urls[1:], tail], strict=True)):
        attributes = draw(st.sampled_from(ATTRIBUTES))
        held = draw(entries(family, place, "xmlns:p" in attributes))
        write = write_atom if family is Family.ATOM else write_rss
        text = write(held, attributes, older, draw(st.sampled_from(INSTANTS[:4])), draw(st.booleans()))
        # A number in each: the same body with the same link would be the same document (R17).
        codec = draw(st.sampled_from(["utf-8", "utf-16", "iso-8859-1"]))
        bodies[url] = f'<?xml version="1.0" encoding="{codec}"?><!-- {place} -->{text}'.encode(codec)
        written.append(held)
    is_whole = end in ("none", "itself") or (end == "back" and length == 1)
    return Chain(family, bodies, tuple(written), is_whole)


def stamp(instant: float) -> str:
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def link(relation: str, url: str | None) -> str:
    return f'<link xmlns="{ATOM_NS}" rel="{relation}" href="{url}"/>' if url else ""


def write_atom(
    held: Sequence[Written], attributes: str, older: str | None, updated: int | None, prefixed: bool
) -> str:
    """An Atom document, with or without a prefix for its own elements."""
    inside = "".join(
        "<entry>"
        + (f"<id>urn:{each.name}</id>" if each.has_id else f"<link href='{SITE}/{each.name}'/>")
        + (f"<updated>{stamp(each.updated_at)}</updated>" if each.updated_at is not None else "")
        + f"<title>{each.mark}</title>{each.inside}</entry>"
        for each in held
    )
    built = "" if updated is None else f"<updated>{stamp(updated)}</updated>"
    head = f"<id>urn:feed</id><title>Feed</title>{built}"
    author = "<author><name>A</name></author>" if attributes else ""
    text = f'<feed xmlns="{ATOM_NS}"{attributes}>{head}{author}{inside}{link("prev-archive", older)}</feed>'
    if not prefixed:
        return text
    own = "feed|entry|id|link|updated|title|content|summary|author|name"
    text = re.sub(rf"<!\[CDATA\[.*?\]\]>|(</?)(?=(?:{own})\b)", lambda m: f"{m[1]}a:" if m[1] else m[0], text)
    return text.replace(f'<a:feed xmlns="{ATOM_NS}"', f'<a:feed xmlns:a="{ATOM_NS}"').replace(
        f'<a:link xmlns="{ATOM_NS}"', "<a:link"
    )


def write_rss(
    held: Sequence[Written], attributes: str, older: str | None, updated: int | None, dated_by_atom: bool
) -> str:
    """An RSS document, with update instants in either of two vocabularies."""
    name, namespace = ("u:updated", ATOM_NS) if dated_by_atom else ("dcterms:modified", DCTERMS_NS)
    prefix = name.partition(":")[0]
    inside = "".join(
        "<item>"
        + (
            f"<guid isPermaLink='false'>urn:{each.name}</guid>"
            if each.has_id
            else f"<link>{SITE}/{each.name}</link>"
        )
        + (f"<{name}>{stamp(each.updated_at)}</{name}>" if each.updated_at is not None else "")
        + f"<title>{each.mark}</title>{each.inside}</item>"
        for each in held
    )
    built = "" if updated is None else f"<lastBuildDate>{stamp(updated)}</lastBuildDate>"
    head = f"<title>Feed</title><link>{SITE}/</link><description/>{built}{link('prev-archive', older)}"
    root = f'<rss version="2.0" xmlns:{prefix}="{namespace}">'
    return f"{root}<channel{attributes}>{head}{inside}</channel></rss>"


# ---- The way through the core


def arrival(url: str, document: FeedDocument) -> Arrival:
    return Arrival(
        url=url,
        final_url=url,
        family=document.family,
        site_id=document.head.site_id,
        links=classify(document).links,
        digest=hashlib.sha256(document.text).digest(),
        body_bytes=len(document.text),
        entries=len(document.entries),
        keys=[(entry.identity, entry.updated_at) for entry in document.entries],
    )


def walked(
    chain: Chain, choice: Callable[[int], int] = lambda _count: 0, *, look_ahead: bool = True
) -> tuple[list[FeedDocument], bool]:
    """Walk the chain with fetches in any order; return its documents and whether it is whole."""
    documents = {url: parse(body, url) for url, body in chain.bodies.items()}
    first = chain.urls[0]
    walk = a_walk(arrival(first, documents[first]), looks_ahead=look_ahead)
    while walk.ending is None:
        url = walk.fetching[choice(len(walk.fetching))]
        if url in documents:
            walk.came(arrival(url, documents[url]))
        else:
            walk.failed(url)
    return [documents[step.url] for step in walk.path], walk.ending.is_true_end


def copies_of(documents: Sequence[FeedDocument]) -> dict[EntryId, list[Copy]]:
    """Copies by identity; a copy's key tells document and place."""
    copies: dict[EntryId, list[Copy]] = {}
    for place, document in enumerate(documents):
        for ordinal, entry in enumerate(document.entries):
            copy = Copy(
                key=place * 1000 + ordinal,
                updated_at=entry.updated_at,
                role=Role.ARCHIVE if place else Role.SUBSCRIPTION,
                position=place,
                ordinal=ordinal,
                document_updated_at=document.head.updated_at,
                fetched_at=FETCHED_AT,
            )
            copies.setdefault(entry.identity, []).append(copy)
    return copies


def live_keys(documents: Sequence[FeedDocument], copies: dict[EntryId, list[Copy]]) -> set[int]:
    updated_at = documents[0].head.updated_at
    chosen = [choose(each, subscription_updated_at=updated_at, settled=True) for each in copies.values()]
    return {copy.key for copy in chosen if copy is not None}


def composed(documents: Sequence[FeedDocument], live: set[int], *, is_complete: bool) -> bytes:
    subscription = Fragments(documents[0])
    context, pieces = subscription.context, []
    for place, document in enumerate(documents):
        made = Fragments(document)
        kept = [n for n in range(len(document.entries)) if place * 1000 + n in live]
        order = newest_first([document.entries[n].order_at for n in kept])
        pieces += [made.entry(kept[n], context) for n in order]
    text, head = b"\n".join(pieces), compose(documents[0]).head
    prologue = compose_prologue(
        documents[0].family,
        head.text,
        prefixes=head.prefixes | prefixes_in(text),
        address=ADDRESS,
        is_complete=is_complete,
    )
    return prologue + text + EPILOGUE[documents[0].family]


def reconstructed(chain: Chain) -> bytes:
    documents, is_whole = walked(chain)
    return composed(documents, live_keys(documents, copies_of(documents)), is_complete=is_whole)


def marks(document: FeedDocument) -> list[str]:
    return [found for each in slices(document) for found in re.findall(r"copy \d+\.\d+", each.decode())]


# ---- Properties


@many
@given(chains())
def test_a_walk_takes_the_whole_chain_and_knows_whether_it_is_whole(chain: Chain) -> None:
    """R2, R17."""
    documents, is_whole = walked(chain)
    assert [document.url for document in documents] == chain.urls
    assert is_whole is chain.is_whole


@many
@given(chains(), st.data())
def test_nothing_depends_on_the_order_of_arrival(chain: Chain, data: st.DataObject) -> None:
    """R2, R8 to R10: for documents on the walk, and copies in the merge."""
    documents, is_whole = walked(chain, lambda count: data.draw(st.integers(0, count - 1)))
    assert ([document.url for document in documents], is_whole) == (chain.urls, chain.is_whole)
    assert walked(chain, look_ahead=False)[1] is is_whole
    copies = {identity: data.draw(st.permutations(each)) for identity, each in copies_of(documents).items()}
    made = composed(documents, live_keys(documents, copies), is_complete=is_whole)
    assert made == reconstructed(chain)


def instant_of(each: Written) -> float:
    is_known = each.updated_at is not None and each.updated_at <= FETCHED_AT + DAY_SECONDS
    return each.updated_at if is_known and each.updated_at is not None else -1


@many
@given(chains())
def test_entries_come_out_newest_document_first(chain: Chain) -> None:
    """R9, R10, R20: each identity once, in the copy with the latest instant; a future one counts as undated,
    and dated copies beat undated ones. Within a document dated entries stand newest first.
    """
    result = parse(reconstructed(chain), ADDRESS.self_url)
    documents = [parse(body, url) for url, body in chain.bodies.items()]
    identities = [entry.identity for entry in result.entries]
    assert len(identities) == len(set(identities))
    assert set(identities) == {entry.identity for document in documents for entry in document.entries}

    written = {each.mark: each for held in chain.written for each in held}
    best: dict[str, float] = {}
    for each in written.values():
        best[each.name] = max(best.get(each.name, -1), instant_of(each))
    assert len(identities) == len(best)
    places = []
    for mark in marks(result):
        assert instant_of(written[mark]) == best[written[mark].name]
        places.append(int(mark.split()[1].partition(".")[0]))
    assert places == sorted(places)
    for place in set(places):
        dates = [entry.order_at for entry, own in zip(result.entries, places, strict=True) if own == place]
        known = [date for date in dates if date is not None]
        assert known == sorted(known, reverse=True)


@many
@given(chains())
def test_entries_come_out_as_they_were_written(chain: Chain) -> None:
    """R21, R22: all between an entry's tags, with equal instants; fh:complete exactly for a whole chain; a
    second pass changes nothing.
    """
    body = reconstructed(chain)
    result = parse(body, ADDRESS.self_url)
    instants = {each.mark: each.updated_at for part in chain.written for each in part}
    stayed = marks(result)
    assert [entry.updated_at for entry in result.entries] == [instants[mark] for mark in stayed]
    assert [element.name for element in result.head.history] == (["complete"] if chain.is_whole else [])
    assert {each.relation for each in result.head.links} == {"self", "via"}
    again = Fragments(result)
    assert [again.entry(n, again.context) for n in range(len(result.entries))] == slices(result)
    for url, written in chain.bodies.items():
        for slice_ in slices(parse(written, url)):
            inside = slice_[slice_.index(b">") + 1 : slice_.rindex(b"</")]
            (mark,) = re.findall(r"copy \d+\.\d+", slice_.decode())
            assert body.count(inside) == (mark in stayed)
