"""Who gets a page, and who gets what programs get."""

from __future__ import annotations

import pytest

from wholefeed.web.pages_base import wants_page

CHROME = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
FIREFOX = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
LYNX = "text/html, text/plain, text/sgml, text/css, application/xhtml+xml, */*;q=0.01"
W3M = "text/html, text/*;q=0.5, image/*, application/*"


@pytest.mark.parametrize(
    ("accept", "destination"),
    [
        (CHROME, "document"),
        (FIREFOX, None),
        (LYNX, None),
        (W3M, None),
        ("application/json;q=0.5, text/html;q=0.6", None),
    ],
)
def test_browsers_get_a_page(accept: str, destination: str | None) -> None:
    """Those that people read with, graphical and textual, with fetch metadata and without."""
    assert wants_page(accept, destination)


@pytest.mark.parametrize(
    ("accept", "destination"),
    [
        ("*/*", None),
        ("", None),
        ("application/json, text/plain, */*", None),
        ("application/json, text/html", None),
        ("text/plain;q=0.9, text/html;q=0.8", None),
        ("text/html;q=0", None),
        ("text/html;q=nothing", None),
        ("application/rss+xml, application/atom+xml, */*;q=0.1", None),
        (CHROME, "empty"),
        (CHROME, "image"),
        (CHROME, "iframe"),
    ],
)
def test_programs_scripts_and_pictures_get_none(accept: str, destination: str | None) -> None:
    """curl, readers, what prefers JSON or plain text, and what a page of any site includes."""
    assert not wants_page(accept, destination)
