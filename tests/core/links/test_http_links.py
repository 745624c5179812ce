from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.links import MAX_HEADER_LINKS, header_links, parse_link_field

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


def test_resolves_targets_against_the_url_of_the_document() -> None:
    """R12."""
    (link,) = header_links(['<../11>; rel=prev-archive; type="Application/Atom+XML; charset=x"'], DOCUMENT)
    assert (link.target, link.href) == ("http://o.test/11", "../11")
    assert link.media_type == "application/atom+xml"


@pytest.mark.parametrize("href", ["", "http://[x"])
def test_leaves_a_target_empty_that_is_none(href: str) -> None:
    """R11."""
    (link,) = header_links([f"<{href}>; rel=next"], DOCUMENT)
    assert (link.target, link.href) == ("", href)


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


def test_reads_a_bounded_number_of_links() -> None:
    """R12: of 1,500 links in HTTP fields only the first MAX_HEADER_LINKS are read."""
    assert len(header_links([", ".join(["<a>; rel=next"] * 500)] * 3, DOCUMENT)) == MAX_HEADER_LINKS


@pytest.mark.parametrize("unit", [", ", "<", "<,", "<a>;", '<a>; x="', "<a>; x=\\"])
def test_takes_linear_time_for_hostile_fields(unit: str) -> None:
    """R12: a Link field of 64 KB that is built to be read over and over is parsed within a second."""
    started = time.perf_counter()
    list(parse_link_field(unit * (64_000 // len(unit))))
    assert time.perf_counter() - started < 1


@given(st.text(st.sampled_from('<>;,="\\ arel*'), max_size=60))
def test_never_raises(field: str) -> None:
    """R12: no Link field of any content makes the reading of a feed fail."""
    header_links([field], DOCUMENT)
