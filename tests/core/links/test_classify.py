from __future__ import annotations

import pytest

from tests.makers import FEED, a_document, a_link
from wholefeed.core.links import (
    MAX_LINK_NOTES,
    Navigation,
    classify,
    current_elsewhere,
    dead_link,
)
from wholefeed.core.model import Family, Kind
from wholefeed.core.notes import BadLink, DeadChainLink, DocumentUnavailable, ExtraLink, Note

ARCHIVE = "http://o.test/2003/11"


def older_url(navigation: Navigation) -> str | None:
    return navigation.links.get(navigation.older_relation)


def dead(navigation: Navigation) -> Note | None:
    return dead_link(navigation.links, navigation.older_relation, navigation.url)


@pytest.mark.parametrize(
    ("relations", "history", "kind"),
    [
        pytest.param([], [], Kind.PLAIN, id="R7 nothing"),
        pytest.param(["self", "alternate", "hub"], [], Kind.PLAIN, id="R7 other links"),
        pytest.param([], ["complete"], Kind.COMPLETE, id="R1 complete"),
        pytest.param(["prev-archive"], ["complete"], Kind.COMPLETE, id="R1 before R2"),
        pytest.param(["prev-archive"], [], Kind.ARCHIVED, id="R2 prev-archive"),
        pytest.param(["next", "prev-archive", "last"], [], Kind.ARCHIVED, id="R6 prev-archive beside paging"),
        pytest.param(["prev-archive"], ["archive"], Kind.ARCHIVED, id="R2 on an archive"),
        pytest.param(["prev-archive"], ["archive", "complete"], Kind.ARCHIVED, id="R1 not on an archive"),
        pytest.param(["current"], ["archive"], Kind.PLAIN, id="R2 the oldest archive"),
    ],
)
def test_says_what_kind_of_feed_it_is(relations: list[str], history: list[str], kind: Kind) -> None:
    """R0, R1, R2; RFC 5005, 2 and 4."""
    links = [a_link(relation, f"/{relation}") for relation in relations]
    navigation = classify(a_document(*links, history=history))
    assert navigation.kind is kind
    assert navigation.older_relation == ("prev-archive" if kind is Kind.ARCHIVED else "")
    assert navigation.is_archive is ("archive" in history)


def test_does_not_call_a_document_complete_that_came_in_part() -> None:
    """R1: received whole."""
    document = a_document(history=["complete"], notes=[DocumentUnavailable(FEED, reason="truncated")])
    assert classify(document).kind is Kind.PLAIN


def test_names_the_neighbours_of_a_document() -> None:
    """R2, R3: self, current, prev-archive and next-archive of one head give the four URLs, without a note."""
    relations = ("self", "current", "prev-archive", "next-archive")
    navigation = classify(a_document(*(a_link(relation, f"/{relation}") for relation in relations)))
    assert navigation.links.get("self") == "http://o.test/self"
    assert navigation.current_url == "http://o.test/current"
    assert older_url(navigation) == "http://o.test/prev-archive"
    assert navigation.newer_url == "http://o.test/next-archive"
    assert navigation.notes == ()
    assert dead(navigation) is None


def test_names_nothing_where_nothing_is_linked() -> None:
    """R7: a head without links names no neighbour, so that nothing is followed."""
    navigation = classify(a_document())
    assert (navigation.links.get("self"), navigation.current_url) == (None, None)
    assert (older_url(navigation), navigation.newer_url) == (None, None)


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
    """R12; where none fits, the first one: the type is advisory (RFC 4287, 4.2.7.3)."""
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


def test_the_header_alone_makes_an_archived_feed() -> None:
    """R12; RFC 8288."""
    navigation = classify(a_document(), ["</2003/11>; rel=prev-archive"])
    assert (navigation.kind, older_url(navigation)) == (Kind.ARCHIVED, ARCHIVE)


@pytest.mark.parametrize("href", ["", "ftp://o.test/x"])
def test_the_header_helps_where_the_documents_link_cannot_be_followed(href: str) -> None:
    """R11, R12; row 61: behind an empty or non-http prev-archive the one of the Link header is followed."""
    navigation = classify(a_document(a_link("prev-archive", href)), ["</2003/11>; rel=prev-archive"])
    assert older_url(navigation) == ARCHIVE
    assert navigation.notes == (BadLink(FEED, relation="prev-archive", href=href),)
    assert dead(navigation) is None


@pytest.mark.parametrize(
    "href",
    [
        "file:///etc/passwd",
        "ftp://o.test/x",
        "gopher://o.test/",
        "data:text/xml,x",
        "javascript:x",
        "unix:/x",
    ],
)
def test_a_chain_whose_only_older_link_is_no_http_url_ends_there_unfinished(href: str) -> None:
    """R2; docs/faults.md row 16."""
    navigation = classify(a_document(a_link("prev-archive", href)))
    assert navigation.kind is Kind.ARCHIVED
    assert older_url(navigation) is None
    assert dead(navigation) == DeadChainLink(FEED, href=href)
    assert navigation.notes == (BadLink(FEED, relation="prev-archive", href=href),)
    assert DeadChainLink.slug == "bad-link"


@pytest.mark.parametrize("href", ["http://[x", "http://127.1/x", "http://o.test/" + "x" * 2100])
def test_a_link_to_a_url_that_no_document_can_have_is_dead(href: str) -> None:
    """R11; docs/faults.md rows 8 and 20."""
    navigation = classify(a_document(a_link("prev-archive", href)))
    assert older_url(navigation) is None
    assert dead(navigation) is not None


def test_an_empty_href_is_no_link() -> None:
    """R11."""
    navigation = classify(a_document(a_link("prev-archive", "")))
    assert navigation.kind is Kind.PLAIN
    assert dead(navigation) is None
    assert navigation.notes == (BadLink(FEED, relation="prev-archive", href=""),)


def test_what_was_stored_still_tells_a_dead_link() -> None:
    """R14: a stored document is walked through without network."""
    stored = dict(classify(a_document(a_link("prev-archive", "ftp://o.test/x"))).links)
    assert dead_link(stored, "prev-archive", ARCHIVE) == DeadChainLink(ARCHIVE, href="ftp://o.test/x")
    assert dead_link({}, "prev-archive", ARCHIVE) is None


def test_notes_show_no_credentials() -> None:
    """docs/design.md#fetching: never credentials."""
    navigation = classify(a_document(a_link("prev-archive", "http://user:secret@o.test/x")))
    assert "secret" not in repr(navigation)
    assert older_url(navigation) is None


def test_notes_are_few_whatever_the_head_holds() -> None:
    """Thirty thousand links in one head make a bounded number of notes, in memory and in /status."""
    links = [a_link(relation, f"/{n}") for relation in ("next", "last", "first") for n in range(10_000)]
    assert len(classify(a_document(*links)).notes) == MAX_LINK_NOTES


def test_several_self_links_are_nothing_to_note() -> None:
    """Two self links, which many generators write, put no note into /status."""
    assert classify(a_document(a_link("self", "/a"), a_link("self", "/b"))).notes == ()


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
    """R3; -05, 6.1: by `current` alone, whether the document is marked as an archive or not."""
    links = [] if current is None else [a_link("current", current)]
    navigation = classify(a_document(*links, a_link("next-archive", "/12"), history=history))
    assert current_elsewhere(navigation, FEED, "http://o.test/moved") == elsewhere
