"""T3 to T5: the text of a page, judged and cleaned."""

from __future__ import annotations

import pytest

from tests.core.texts.pages import a_page, a_text
from tests.cpu_time import cpu_limit
from wholefeed.core.texts.elements import LearnedElement
from wholefeed.core.texts.extracting import WHY, PageText, TextWish, extract_text
from wholefeed.core.texts.plain import squeeze, strip

CONTENT = LearnedElement("div", "", ("entry-content",), 0)
URL = "https://blog.example/2020/post"


def extract(
    page: bytes, excerpt: str = "", *, element: LearnedElement | None = CONTENT, url: str = URL
) -> PageText:
    wish = TextWish(URL, squeeze(strip(excerpt)), element)
    found = extract_text(page, url, "text/html; charset=utf-8", wish)
    assert not found.why or found.why in WHY
    return found


def test_the_learned_element_gives_the_text() -> None:
    """T3: all of it, and nothing else of the page."""
    found = extract(a_page(9, a_text(9)))
    assert (found.why, found.way, found.html) == ("", "learned", a_text(9))


def test_where_none_is_learned_readability_gives_it() -> None:
    """T3: the whole text, without menus."""
    found = extract(a_page(9, a_text(9), around="words"), element=None)
    assert (found.why, found.way) == ("", "readability")
    assert squeeze(strip(found.html)) == squeeze(strip(a_text(9)))


def test_a_page_of_an_older_theme_is_read_by_readability() -> None:
    """T3: where the learned element is not there."""
    assert extract(a_page(9, a_text(9), around="old")).way == "readability"


def test_a_text_has_to_hold_the_excerpt() -> None:
    """T3: and to be longer."""
    assert extract(a_page(9, a_text(9)), a_text(9, 2)).why == ""
    assert extract(a_page(9, a_text(9)), a_text(8, 4) + "<p>Of something entirely different.</p>" * 9).why
    assert extract(a_page(9, a_text(9)), "<p>Entirely other words, which stand nowhere on it.</p>").why == (
        "lacks-excerpt"
    )
    assert extract(a_page(9, a_text(9)), a_text(9)).why == "not-longer"


def test_a_text_is_clean() -> None:
    """T4: no scripts, forms and trackers' pixels; URLs are absolute, lazy pictures have theirs."""
    added = (
        '<script>alert(1)</script><form action="/s"><input name="q">Search</form>'
        '<a href="../b" onclick="x()">b</a>'
        '<img src="/1.gif" width="1" height="1"><img src="https://pixel.wp.com/b.gif?x=1">'
        '<img src="data:image/gif;base64,R0" data-src="/a.png" alt="A"><p style="display:none">hidden</p>'
        '<iframe src="https://video.example/v"></iframe><a href="javascript:x()">j</a>'
    )
    html = extract(a_page(9, a_text(9) + added)).html
    left = html.removeprefix(a_text(9))
    assert left == (
        '<a href="https://blog.example/b">b</a><img src="https://blog.example/a.png" alt="A">'
        '<a href="https://video.example/v">https://video.example/v</a><a>j</a>'
    )


def test_a_base_counts() -> None:
    """T4: relative URLs are those of the page's `<base>`."""
    page = a_page(9, a_text(9) + '<a href="b">b</a>', head='<base href="https://other.example/x/">')
    assert '<a href="https://other.example/x/b">' in extract(page).html


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ('<script type="application/ld+json">{"isAccessibleForFree": false}</script>', "paywalled"),
        ('<script type="application/ld+json">{"isAccessibleForFree":"False"}</script>', "paywalled"),
        ('<meta itemprop="isAccessibleForFree" content="false">', "paywalled"),
        ('<meta property="article:content_tier" content="locked">', "paywalled"),
        ('<script type="application/ld+json">{"isAccessibleForFree": true}</script>', ""),
    ],
)
def test_a_page_for_subscribers_gives_no_text(head: str, why: str) -> None:
    """T5: it says so itself."""
    assert extract(a_page(9, a_text(9), head=head)).why == why


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://blog.example/login?next=/2020/post", "login"),
        ("https://blog.example/consent/", "consent"),
        ("https://blog.example/", "elsewhere"),
        ("https://blog.example/2020/", "elsewhere"),
        ("https://blog.example/2020/post/", ""),
        ("https://blog.example/archive/2020/post", ""),
    ],
)
def test_a_redirect_to_another_page_gives_no_text(url: str, why: str) -> None:
    """T5: to a login, a question, the front page or a list of posts; a post may have moved."""
    assert extract(a_page(9, a_text(9)), url=url).why == why


def test_a_form_for_a_password_is_no_text() -> None:
    """T5: a post may be protected alone."""
    page = a_page(9, '<p>This post is protected.</p><form><input type="password"></form>')
    assert extract(page).why == "login"


def test_a_question_for_consent_is_no_text() -> None:
    """T5: also where the page asks under the post's own URL."""
    assert extract(a_page(9, "<p>We use cookies. Please accept all of them to go on.</p>")).why == "consent"


def test_a_text_is_limited() -> None:
    """T4: to 1 MiB, noted."""
    page = a_page(9, "<p>" + "word " * 300_000 + "</p>")
    assert extract(page).why == "text-too-large"


@pytest.mark.parametrize(
    "filler", [b"<div>", b"<p>", b"<b><p>", b"<table><tr><td>", b"&amp;", b"<a href=x>", b"<input>"]
)
def test_a_hostile_page_costs_little(filler: bytes) -> None:
    """T4: at most a second a megabyte, and no exception."""
    page = a_page(9, "").replace(b'content"></div>', b'content">' + filler * (300_000 // len(filler)))
    with cpu_limit(0.5):
        for element in (CONTENT, None):
            extract(page, element=element)


def test_elements_that_go_cost_little() -> None:
    """T4: text between them is not copied for each."""
    page = a_page(9, "<input>x" * 125_000)
    with cpu_limit(0.5):
        assert extract(page).html == "x" * 125_000


@pytest.mark.parametrize("page", [b"", b"\x00\xff", b"<html>", b"<div class='entry-content'>", b"<svg><p>"])
def test_any_bytes_are_read(page: bytes) -> None:
    """T4: what is no page has no text."""
    assert extract(page).why
