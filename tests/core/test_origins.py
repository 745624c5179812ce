"""The table of sources: every origin has its row, and every column of a row is used."""

from __future__ import annotations

import ast
import re
from dataclasses import fields, replace
from itertools import combinations

import pytest

from tests.core.refresh.world import Page, Publisher, World
from tests.makers import FEED
from tests.repository import PACKAGE, nodes, python_files
from wholefeed.core.model import Role
from wholefeed.core.origins import POLICIES, Origin, OriginPolicy, find_origins
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.text.dates import DAY_SECONDS

COPY = "http://archive.test/2020/"
MAKERS_OF_URLS = {"core/model.py", "core/origins.py", "service/imports.py", "service/listing.py"}
"""Modules that may name the prefixes of URLs of imports and lists."""


def a_row(origin: Origin, **changes: object) -> StoredDocument:
    world = World(Publisher({}))
    row = world.documents[world.put(f"{FEED}/1", Page(), Role.ARCHIVE, 0)]
    return replace(row, origin=origin, **changes)  # type: ignore[arg-type]


def test_every_origin_has_its_row() -> None:
    """A source without a row would have no rules."""
    assert [*POLICIES] == [*Origin]


def test_people_are_told_of_every_source_but_the_publisher_s_feed() -> None:
    """A page says nothing of entries of the feed itself; each other source has its own words."""
    words = {origin: policy.words for origin, policy in POLICIES.items()}
    assert {origin for origin, said in words.items() if not said} == {Origin.PUBLISHER, Origin.ADAPTER}
    assert len(set(words.values())) == len(Origin) - 1


def test_documents_of_two_origins_are_told_apart_by_their_urls_where_these_have_prefixes() -> None:
    """Ranges in the index of URLs select origins."""
    prefixes = [policy.url_prefix for policy in POLICIES.values() if policy.url_prefix]
    assert all(re.fullmatch(r"urn:wholefeed:\w+:", each) for each in prefixes)
    assert not [pair for pair in combinations(prefixes, 2) if pair[0] == pair[1]]


def test_every_answer_is_asked_for() -> None:
    """An unused column would be trusted without effect."""
    asked = {
        node.attr
        for path in python_files(PACKAGE)
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith("policy")
    }
    assert {each.name for each in fields(OriginPolicy)} <= asked


def test_nothing_but_the_table_tells_origins_by_urls() -> None:
    """Prefixes of imports and lists are named where URLs are made."""
    naming = {
        path.relative_to(PACKAGE).as_posix()
        for path in python_files(PACKAGE)
        for node in nodes(path)
        if isinstance(node, ast.Name) and node.id in ("IMPORT_URL", "LIST_URL")
    }
    assert naming <= MAKERS_OF_URLS


@pytest.mark.parametrize("origin", Origin)
def test_a_stored_document_is_what_its_row_says(origin: Origin) -> None:
    """R13, R33, I1, H7: whether it is fetched again, its place, and its departure."""
    policy, row = origin.policy, a_row(origin, is_settled=False)
    now = row.checked_at + DAY_SECONDS
    assert row.is_due(now, is_newest=True, now=now) is policy.is_asked_again
    assert a_row(origin, is_settled=True).is_final is not policy.is_replaced
    assert row.is_added is policy.leaves_complete
    assert row.is_capture is policy.stands_behind
    assert a_row(origin, url=COPY, memento=COPY).is_capture


@pytest.mark.parametrize("origin", find_origins(lambda policy: policy.note is not None))
def test_a_document_that_is_noted_makes_the_note_of_its_row(origin: Origin) -> None:
    """R33: one that makes the feed partial prevents complete."""
    note = a_row(origin, memento=COPY).as_memento()
    assert note.kind is origin.policy.note
    assert note.facts["copy_url"] == COPY


def test_what_is_no_word_of_the_publisher_changes_nothing_of_the_feed() -> None:
    """R33, I1, H7: such a document settles and buries nothing, has no flags, and never counts as complete."""
    for origin in find_origins(lambda policy: not policy.settles):
        policy = origin.policy
        is_without = not (policy.buries or policy.has_flags)
        is_partial = policy.note is not None and policy.note.partial
        assert is_without, origin
        assert is_partial or policy.leaves_complete or not policy.holds, origin
