"""A document's kind of feed, and the targets of its links (rules R0 to R7, R11, R12)."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.feeds import json_feed, rss
from tests.makers import FEED, a_document, a_link
from wholefeed.core.links import (
    MAX_HEADER_LINKS,
    MAX_LINK_NOTES,
    LinkFinding,
    Navigation,
    classify,
    current_elsewhere,
    dead_link,
    header_links,
    incremental_flag,
    parse_link_field,
    recall,
    recognise,
    says_incremental,
)
from wholefeed.core.model import Family, HistoryElement, Kind, Link, Relation
from wholefeed.core.notes import BadLink, DeadChainLink, DocumentUnavailable, ExtraLink, NewAddress, Note
from wholefeed.core.parse.documents import parse

ARCHIVE = "http://o.test/2003/11"


def older_url(navigation: Navigation) -> str | None:
    return navigation.links.get(navigation.older_relation)


def dead(navigation: Navigation) -> Note | None:
    return dead_link(navigation.links, navigation.older_relation, navigation.url)


@pytest.mark.parametrize("history", [{"complete": ""}, {"stateful": "0"}])
def test_does_not_call_a_document_complete_that_came_in_part(history: dict[str, str]) -> None:
    """R1, R5: completeness needs the whole document."""
    document = a_document(history=history, notes=[DocumentUnavailable(FEED, reason="truncated")])
    assert classify(document).kind is Kind.PLAIN


ITUNES = 'xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"'


@pytest.mark.parametrize(
    ("written", "href"),
    [
        (" https://p.test/feed?a=1&amp;b=2 ", "https://p.test/feed?a=1&b=2"),
        ("<![CDATA[https://p.test/feed]]>", "https://p.test/feed"),
        ("/feed<!-- since May -->", "http://o.test/feed"),
        ("http://me:hidden@p.test/feed", "http://p.test/feed"),
        ("HTTP://O.test:80/podcast#top", None),
        ("", None),
        ("http://[", None),
        (f"http://p.test/{'x' * 9_000}", None),
    ],
)
def test_an_address_that_the_publisher_names_is_noted(written: str, href: str | None) -> None:
    """R25: itunes:new-feed-url, without credentials. At the new address, documents name themselves for years,
    without a note.
    """
    element = f"<itunes:new-feed-url {ITUNES}>{written}</itunes:new-feed-url>"
    navigation = classify(parse(rss(extra=element), "http://o.test/podcast"))
    assert [(note.kind, note.facts["href"]) for note in navigation.notes] == (
        [(NewAddress, href)] if href else []
    )


def test_an_empty_element_names_no_address() -> None:
    """R25: nor does a member of JSON."""
    assert classify(parse(rss(extra=f"<itunes:new-feed-url {ITUNES}/>"), FEED)).notes == ()
    assert classify(parse(json_feed(**{"new-feed-url": "http://p.test/"}), FEED)).notes == ()


def test_names_the_neighbours_of_a_document() -> None:
    """R2, R3: self, current, prev-archive and next-archive give four URLs, without a note."""
    relations = ("self", "current", "prev-archive", "next-archive")
    links = [a_link(relation, f"/{relation}") for relation in relations]
    navigation = classify(a_document(*links, a_link("self", "/another")))
    assert navigation.links.get("self") == "http://o.test/self"
    assert navigation.current_url == "http://o.test/current"
    assert older_url(navigation) == "http://o.test/prev-archive"
    assert navigation.newer_url == "http://o.test/next-archive"
    assert navigation.notes == ()
    assert dead(navigation) is None
    nothing = classify(a_document())
    assert (nothing.links, nothing.current_url, nothing.newer_url) == ({}, None, None)


def test_of_several_links_the_first_http_one_counts() -> None:
    """R12; docs/faults.md row 61."""
    navigation = classify(
        a_document(
            a_link("prev-archive", ""),
            a_link("prev-archive", "ftp://o.test/x"),
            a_link("prev-archive", "/2003/11"),
            a_link("prev-archive", "/2003/10"),
            a_link("prev-archive", "http://O.test/2003/11#again"),
        )
    )
    assert older_url(navigation) == ARCHIVE
    assert navigation.notes == (
        BadLink(FEED, relation="prev-archive", href=""),
        BadLink(FEED, relation="prev-archive", href="ftp://o.test/x"),
        ExtraLink(FEED, relation="prev-archive", href="/2003/10"),
    )


@pytest.mark.parametrize(
    ("family", "types", "chosen"),
    [
        (Family.ATOM, ["text/html", "application/atom+xml"], 1),
        (Family.ATOM, ["application/rss+xml", "application/xml"], 1),
        (Family.RSS, ["application/atom+xml", "application/rss+xml"], 1),
        (Family.RSS, ["", "application/rss+xml"], 0),
        (Family.RDF, ["text/html", "application/rdf+xml"], 1),
        (Family.JSON, ["text/xml", "application/feed+json"], 1),
        (Family.ATOM, ["text/html", "application/rss+xml"], 0),
        (Family.ATOM, ["text/html"], 0),
    ],
)
def test_of_several_links_the_one_of_the_chains_format_counts(
    family: Family, types: list[str], chosen: int
) -> None:
    """R12; if none fits, the first one: the type is advisory (RFC 4287, 4.2.7.3)."""
    links = [a_link("prev-archive", f"/{place}", kind) for place, kind in enumerate(types)]
    navigation = classify(a_document(*links, family=family))
    assert older_url(navigation) == f"http://o.test/{chosen}"


def test_the_document_wins_over_its_header() -> None:
    """R12: per relation."""
    navigation = classify(
        a_document(a_link("prev-archive", "/inside")),
        ["</beside>; rel=prev-archive, </current>; rel=current"],
    )
    assert older_url(navigation) == "http://o.test/inside"
    assert navigation.current_url == "http://o.test/current"
    assert navigation.notes == ()


@pytest.mark.parametrize("href", ["", "ftp://o.test/x"])
def test_the_header_helps_where_the_documents_link_cannot_be_followed(href: str) -> None:
    """R11, R12; row 61: after an empty or non-http prev-archive, the Link header's is followed."""
    navigation = classify(a_document(a_link("prev-archive", href)), ["</2003/11>; rel=prev-archive"])
    assert older_url(navigation) == ARCHIVE
    assert navigation.notes == (BadLink(FEED, relation="prev-archive", href=href),)
    assert dead(navigation) is None


@pytest.mark.parametrize(
    ("href", "is_dead"),
    [
        ("", False),
        ("file:///etc/passwd", True),
        ("ftp://o.test/x", True),
        ("javascript:x", True),
        ("http://[x", True),
        ("http://127.1/x", True),
    ],
)
@pytest.mark.parametrize("relation", ["prev-archive", "fh:prev"])
def test_a_chain_whose_only_older_link_cannot_be_followed_ends_there_unfinished(
    relation: str, href: str, is_dead: bool
) -> None:
    """R2, R11, R14; docs/faults.md rows 8, 16 and 20; also from the store. An empty link does not count."""
    is_element = relation == "fh:prev"
    links = [] if is_element else [a_link(relation, href)]
    navigation = classify(a_document(*links, history={"prev": href} if is_element else {}))
    assert (navigation.older_relation, older_url(navigation)) == (relation if is_dead else "", None)
    assert dead(navigation) == (DeadChainLink(FEED, href=href) if is_dead else None)
    assert dead_link(dict(navigation.links), relation, ARCHIVE) == (
        DeadChainLink(ARCHIVE, href=href) if is_dead else None
    )
    assert navigation.notes == (BadLink(FEED, relation=relation, href=href),)
    assert DeadChainLink.slug == "bad-link"


def test_notes_show_no_credentials() -> None:
    """docs/design.md#fetching: never credentials."""
    navigation = classify(a_document(a_link("prev-archive", "http://user:secret@o.test/x")))
    assert "secret" not in repr(navigation)
    assert older_url(navigation) is None


def test_notes_are_few_whatever_the_head_holds() -> None:
    """Thirty thousand links make few notes, in memory and in /status."""
    links = [a_link(relation, f"/{n}") for relation in ("next", "last", "first") for n in range(10_000)]
    assert len(classify(a_document(*links)).notes) == MAX_LINK_NOTES


@pytest.mark.parametrize(
    ("current", "elsewhere"),
    [
        pytest.param(None, None, id="nothing says otherwise"),
        pytest.param("/feed", None, id="it names itself"),
        pytest.param("/moved", None, id="it names itself after redirects"),
        pytest.param("/other", "http://o.test/other", id="an archive"),
        pytest.param("ftp://o.test/", None, id="unusable current"),
    ],
)
@pytest.mark.parametrize("history", [[], ["archive"]])
def test_leads_to_the_subscription_document(
    current: str | None, elsewhere: str | None, history: list[str]
) -> None:
    """R3; -05, 6.1: by `current` alone, for a marked archive or not."""
    links = [] if current is None else [a_link("current", current)]
    navigation = classify(a_document(*links, a_link("next-archive", "/12"), history=history))
    assert current_elsewhere(navigation, FEED, "http://o.test/moved") == elsewhere


PLAIN = LinkFinding(Kind.PLAIN)
ARCHIVED = LinkFinding(Kind.ARCHIVED, "prev-archive")


def chain(relation: str, *, tentative: bool = False) -> LinkFinding:
    return LinkFinding(Kind.LEGACY, relation, tentative)


@pytest.mark.parametrize(
    ("relations", "history", "finding"),
    [
        ([], {}, PLAIN),
        (["self", "alternate", "hub"], {}, PLAIN),
        ([], {"complete": ""}, LinkFinding(Kind.COMPLETE)),
        (["prev-archive"], {"complete": ""}, LinkFinding(Kind.COMPLETE)),
        (["prev-archive"], {}, ARCHIVED),
        (["next", "prev-archive", "last"], {}, ARCHIVED),
        (["prev-archive"], {"archive": "", "complete": ""}, ARCHIVED),
        (["current"], {"archive": ""}, PLAIN),
        ([], {"stateful": "0", "archive": ""}, PLAIN),
        ([], {"stateful": "0"}, LinkFinding(Kind.COMPLETE)),
        (["prev-archive"], {"incremental": "false"}, LinkFinding(Kind.COMPLETE)),
        (["prev-archive", "prev", "this"], {"prev": "/1"}, ARCHIVED),
        (["prev", "this"], {"prev": "/1"}, chain("fh:prev")),
        (["next"], {"prev": "/1", "incremental": "true"}, chain("fh:prev")),
        ([], {"prev": ""}, PLAIN),
        ([], {"prev": "mailto:x"}, chain("fh:prev")),
        (["prev"], {"stateful": "1"}, chain("prev")),
        (["prev", "previous", "current"], {"incremental": "true"}, chain("prev")),
        (["prev", "this", "next"], {}, chain("prev")),
        (["previous", "current"], {}, chain("previous")),
        (["previous"], {"archive": ""}, chain("previous")),
        (["previous", "current", "next"], {}, chain("previous", tentative=True)),
        (["prev"], {}, chain("prev", tentative=True)),
        (["previous"], {"stateful": "1"}, chain("previous", tentative=True)),
        (["prev", "previous"], {}, chain("prev", tentative=True)),
        (["prev", "next"], {}, LinkFinding(Kind.PAGED)),
        (["previous", "first"], {}, LinkFinding(Kind.PAGED)),
        (["last"], {}, LinkFinding(Kind.PAGED)),
        (["current", "this"], {"stateful": "1"}, PLAIN),
    ],
)
def test_the_first_dialect_that_fits_counts(
    relations: list[str], history: dict[str, str], finding: LinkFinding
) -> None:
    """R0 to R2, R4 to R7; RFC 5005, 2 to 4; -00, 3 to 5; -03; -04; -05, 4; PaceFeedState."""
    document = a_document(*(a_link(name, f"/{name}") for name in relations), history=history)
    navigation = classify(document)
    assert (navigation.kind, navigation.older_relation, navigation.is_tentative) == finding
    assert navigation.is_archive is ("archive" in history)


def flags(*values: tuple[str, str]) -> bool | None:
    return incremental_flag([HistoryElement(*value) for value in values])


@pytest.mark.parametrize("name", ["stateful", "incremental"])
@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("1", True), ("true", True), ("TRUE", True), (" \n1\t", True),
        ("0", False), ("false", False), (" False ", False),
        ("", None), ("yes", None), ("2", None), ("truefalse", None),
    ],
)  # fmt: skip
def test_a_flag_says_yes_no_or_nothing(name: str, text: str, meaning: bool | None) -> None:
    """R4, R5; -00, 3: white space MUST be ignored; invalid values count as absent."""
    assert flags((name, text)) is meaning


def test_flags_that_contradict_each_other_take_nothing_away() -> None:
    """R5, R25: repeated, or from two drafts, in any order."""
    assert flags(("stateful", "0"), ("incremental", "true")) is True
    assert flags(("incremental", "true"), ("incremental", "false")) is True
    assert flags(("stateful", "0"), ("stateful", "junk")) is False
    assert flags(("complete", "1")) is None


names = st.sampled_from([*Relation, "fh:prev"])
evidence = st.dictionaries(
    st.one_of(names, names.map(lambda name: f"dead:{name}")), st.just("http://o.test/1")
)


@given(evidence, st.sampled_from([None, "true", "false"]), st.booleans())
def test_a_stored_document_is_recognised_as_it_was(
    links: dict[str, str], flag: str | None, is_archive: bool
) -> None:
    """R14: for any kind but complete, which the feed remembers."""
    held = links if flag is None else links | {"fh:incremental": flag}
    fresh = recognise(held, is_archive=is_archive)
    if fresh.kind is not Kind.COMPLETE:
        assert recall(held, is_archive=is_archive) == fresh
    assert says_incremental(held) is (flag == "true")


DOCUMENT = "http://o.test/feed/index.atom"


@pytest.mark.parametrize(
    ("field", "links"),
    [
        ('<a>; rel="next"', [("a", {"rel": "next"})]),
        ("<a>;rel=next", [("a", {"rel": "next"})]),
        ('<a> ; REL = "next" ; type=text/xml', [("a", {"rel": "next", "type": "text/xml"})]),
        ('<a>; rel="x", <b>; rel="y"', [("a", {"rel": "x"}), ("b", {"rel": "y"})]),
        ('<a,b;c>; rel="x"', [("a,b;c", {"rel": "x"})]),
        (r'<a>; title="a \"b\", <c>; rel=x"; rel=y', [("a", {"title": 'a "b", <c>; rel=x', "rel": "y"})]),
        ("<a>; flag; rel=x", [("a", {"flag": "", "rel": "x"})]),
        ("<a>;; rel=x;", [("a", {"rel": "x"})]),
        ("<a>, <b>", [("a", {}), ("b", {})]),
        (" , ,<a>; rel=x,, ", [("a", {"rel": "x"})]),
        ('junk, "more; junk", <a>; rel=x', [("a", {"rel": "x"})]),
        ("<>; rel=x", [("", {"rel": "x"})]),
        ('<a>; rel="never closed', [("a", {"rel": "never closed"})]),
        ("<a; rel=x", []),
        ("", []),
    ],
)
def test_reads_link_fields(field: str, links: list[tuple[str, dict[str, str]]]) -> None:
    """RFC 8288, 3 and appendix B."""
    assert list(parse_link_field(field)) == links


@pytest.mark.parametrize(
    ("field", "relations"),
    [
        ('<a>; rel="prev-archive"', ["prev-archive"]),
        ('<a>; rel="Prev-Archive  CURRENT"', ["prev-archive", "current"]),
        ('<a>; rel="next"; rel="last"', ["next"]),
        ('<a>; rel="http://www.iana.org/assignments/relation/Prev-Archive"', ["prev-archive"]),
        ('<a>; rel=" HTTP://www.iana.org/assignments/relation/Next "', ["next"]),
        ('<a>; rel="http://o.test/next"', []),
        ("<a>; rel*=UTF-8'en'prev%2darchive", ["prev-archive"]),
        ("<a>; rel=next; rel*=UTF-8''last", ["next"]),
        ('<a>; rel="alternate hub self stylesheet"', []),
        ('<a>; rel="prev prev"', ["prev"]),
        ("<a>", []),
    ],
)
def test_takes_the_relations_of_rfc_5005_alone(field: str, relations: list[str]) -> None:
    """R12; RFC 8288, 3.3."""
    assert [link.relation for link in header_links([field], DOCUMENT)] == relations


@pytest.mark.parametrize(
    ("anchor", "is_taken"),
    [
        ("", True),
        ("index.atom", True),
        (DOCUMENT, True),
        ("HTTP://O.TEST:80/feed/index.atom", True),
        ("http://o.test/other", False),
        ("#part", False),
        ("http://[x", False),
    ],
)
def test_skips_links_of_another_context(anchor: str, is_taken: bool) -> None:
    """R12; RFC 8288, 3.2."""
    links = header_links([f'<a>; rel=next; anchor="{anchor}"'], DOCUMENT)
    assert bool(links) is is_taken


def test_targets_count_from_the_url_of_the_document_and_are_bounded() -> None:
    """R11, R12: invalid hrefs have none; only the first of 1,500 links are read."""
    fields = ['<../11>; rel=prev-archive; type="Application/Atom+XML; charset=x"', "<http://[x>; rel=next"]
    assert header_links(fields, DOCUMENT) == [
        Link("prev-archive", "http://o.test/11", "application/atom+xml", "../11"),
        Link("next", "", "", "http://[x"),
    ]
    assert len(header_links([", ".join(["<a>; rel=next"] * 500)] * 3, DOCUMENT)) == MAX_HEADER_LINKS


@pytest.mark.parametrize("unit", [", ", "<", "<,", "<a>;", '<a>; x="', "<a>; x=\\"])
def test_takes_linear_time_for_hostile_fields(unit: str) -> None:
    """R12: a hostile field of 64 KB is parsed within a second."""
    started = time.perf_counter()
    list(parse_link_field(unit * (64_000 // len(unit))))
    assert time.perf_counter() - started < 1


@given(st.text(st.sampled_from('<>;,="\\ arel*'), max_size=60))
def test_never_raises(field: str) -> None:
    """R12: no Link field breaks the reading of a feed."""
    header_links([field], DOCUMENT)
