"""wholefeed.core.slugs: words of the reasons (tests/test_slugs.py: the slugs themselves)."""

from __future__ import annotations

from wholefeed.core.slugs import SLUGS, slug_in_words

OF_NO_DOCUMENT = {
    "another-feed", "bad-request", "bad-signature", "config", "cross-origin", "expired-signature", "internal",
    "method-not-allowed", "misdirected", "no-such-entry", "no-such-intake", "no-such-page", "not-found",
    "not-opml", "shutting-down",
    "signature-required", "storage-full", "store", "store-damaged", "store-unusable", "token-required",
    "too-many-requests", "unauthorized", "unknown-feed",
}  # fmt: skip
STANDS_FOR_ANOTHER = {"unavailable"}
"""Replaced by the fetch's final error."""


def test_whatever_a_document_can_be_missing_for_has_words() -> None:
    """R16: a person reads the words in the feed, never a slug."""
    wordless = {slug for slug in SLUGS if " " not in slug_in_words(slug)}
    assert wordless == OF_NO_DOCUMENT | STANDS_FOR_ANOTHER


def test_words_bear_nothing_that_changes() -> None:
    """R16: text in a feed must not churn."""
    assert not [slug for slug, facts in SLUGS.items() if any(map(str.isdigit, facts.words))]


def test_a_reason_without_words_is_told_as_it_is() -> None:
    """A database may have slugs of another version."""
    assert slug_in_words("something-new") == "something-new"
