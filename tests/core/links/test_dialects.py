from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.makers import FEED, a_document, a_link
from wholefeed.core.links import (
    Finding,
    classify,
    dead_link,
    incremental_flag,
    recall,
    recognise,
    says_incremental,
)
from wholefeed.core.model import HistoryElement, Kind, Relation
from wholefeed.core.notes import BadLink, DocumentUnavailable

NO_CHAIN = Finding(Kind.PLAIN)
PAGED = Finding(Kind.PAGED)


def chain(relation: str, *, tentative: bool = False) -> Finding:
    return Finding(Kind.LEGACY, relation, tentative)


@pytest.mark.parametrize(
    ("relations", "history", "finding"),
    [
        ([], {"stateful": "0"}, Finding(Kind.COMPLETE)),
        (["prev-archive"], {"incremental": "false"}, Finding(Kind.COMPLETE)),
        (["prev-archive", "prev", "this"], {"prev": "/1"}, Finding(Kind.ARCHIVED, "prev-archive")),
        (["prev", "this"], {"prev": "/1"}, chain("fh:prev")),
        (["next"], {"prev": "/1", "incremental": "true"}, chain("fh:prev")),
        ([], {"prev": ""}, NO_CHAIN),
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
        (["prev", "next"], {}, PAGED),
        (["previous", "first"], {}, PAGED),
        (["last"], {}, PAGED),
        (["current", "this"], {"stateful": "1"}, NO_CHAIN),
    ],
)
def test_the_first_dialect_that_fits_counts(
    relations: list[str], history: dict[str, str], finding: Finding
) -> None:
    """R0, R4 to R6; -00, 3 to 5; -03; -04; -05, 4; PaceFeedState."""
    document = a_document(*(a_link(name, f"/{name}") for name in relations), history=history)
    navigation = classify(document)
    assert (navigation.kind, navigation.older_relation, navigation.is_tentative) == finding


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
    """R4, R5; -00, 3: white space MUST be ignored; junk counts as absent."""
    assert flags((name, text)) is meaning


def test_flags_that_contradict_each_other_take_nothing_away() -> None:
    """R5, R25: repeated, or of two drafts, in any order."""
    assert flags(("stateful", "0"), ("incremental", "true")) is True
    assert flags(("incremental", "true"), ("incremental", "false")) is True
    assert flags(("stateful", "0"), ("stateful", "junk")) is False
    assert flags(("complete", "1")) is None


@pytest.mark.parametrize("history", [{"stateful": "0", "archive": ""}])
def test_a_flag_on_an_archive_document_means_nothing(history: dict[str, str]) -> None:
    """R5: like R1."""
    assert classify(a_document(history=history)).kind is Kind.PLAIN


def test_a_document_that_came_in_part_is_not_all_there_is() -> None:
    """R5: like R1, received whole."""
    document = a_document(history={"stateful": "0"}, notes=[DocumentUnavailable(FEED, reason="truncated")])
    assert classify(document).kind is Kind.PLAIN


def test_an_atom_link_cannot_pretend_to_be_the_element() -> None:
    """R4: elements count by their namespace."""
    assert classify(a_document(a_link("fh:prev", "/1"))).kind is Kind.PLAIN


def test_an_element_that_is_no_url_is_noted() -> None:
    """R11."""
    navigation = classify(a_document(history={"prev": "javascript:x"}))
    assert navigation.notes == (BadLink(FEED, relation="fh:prev", href="javascript:x"),)
    assert dead_link(navigation.links, navigation.older_relation, FEED) is not None


names = st.sampled_from([*Relation, "fh:prev"])
evidence = st.dictionaries(
    st.one_of(names, names.map(lambda name: f"dead:{name}")), st.just("http://o.test/1")
)


@given(evidence, st.sampled_from([None, "true", "false"]), st.booleans())
def test_a_stored_document_is_recognised_as_it_was(
    links: dict[str, str], flag: str | None, is_archive: bool
) -> None:
    """R14: whatever it was but complete, which the feed remembers."""
    held = links if flag is None else links | {"fh:incremental": flag}
    fresh = recognise(held, is_archive=is_archive)
    if fresh.kind is not Kind.COMPLETE:
        assert recall(held, is_archive=is_archive) == fresh
    assert says_incremental(held) is (flag == "true")
