from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.note_classes import NOTE_CLASSES
from wholefeed import errors
from wholefeed.core.reasons import in_words

PACKAGE = Path(errors.__file__).parent
PARTIAL = sorted({note.slug for note in NOTE_CLASSES if note.partial} - {"unavailable"})
"""All but the one that stands for the error that the fetch ended with."""

FETCH_MODULES = (
    "errors", "fetch/guard/addresses", "fetch/decode", "fetch/exchange", "fetch/failures", "fetch/fetcher",
    "fetch/hosts/gate", "fetch/hosts/host", "fetch/targets", "service/documents/source",
    "core/parse/documents", "core/parse/xml/guard", "core/parse/encodings", "core/parse/json/jsonfeed",
)  # fmt: skip


def slugs(module: str) -> set[str]:
    """The slugs that a module gives to documents that could not be had."""
    text = (PACKAGE / f"{module}.py").read_text("utf-8")
    return set(re.findall(r'slug ?= ?"([a-z-]+)"', text))


@pytest.mark.parametrize("slug", PARTIAL)
def test_what_makes_a_feed_partial_has_words(slug: str) -> None:
    """R16: a person reads them."""
    assert " " in in_words(slug)


@pytest.mark.parametrize("module", FETCH_MODULES)
def test_what_a_fetch_can_end_with_has_words(module: str) -> None:
    """R16: each reason that a fetch can give is told in words in the pseudo-entry, not as a bare slug."""
    own = {"shutting-down", "config", "store", "internal"}
    assert [slug for slug in slugs(module) - own if " " not in in_words(slug)] == []


def test_a_reason_without_words_is_told_as_it_is() -> None:
    """R16: a reason that has no words yet is shown by its slug instead of failing the answer."""
    assert in_words("something-new") == "something-new"
