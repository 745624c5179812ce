"""T3: which element of a site's pages holds the text of a post."""

from __future__ import annotations

import pytest

from tests.core.texts.pages import a_page, a_text, samples
from wholefeed.core.texts.elements import (
    Learned,
    LearnedElement,
    LearningSample,
    find_element,
    learn_element,
    read_text_page,
)
from wholefeed.core.texts.extracting import (
    TextWish,
    extract_text,
    guess_text_element,
    learn_text_element,
)
from wholefeed.core.texts.plain import is_cut_short, pieces_of, share_held, squeeze, strip

CONTENT = LearnedElement("div", "", ("entry-content",), 0)


def test_the_element_of_three_pages_is_learned_and_checked_on_two() -> None:
    """T3: by tag, classes and place; what names a post does not count."""
    assert learn_element(samples(1, 2, 3, 4, 5)) == Learned(CONTENT, is_whole=True)
    assert str(CONTENT) == "div.entry-content"
    found = find_element(read_text_page(a_page(9, a_text(9)), "text/html"), CONTENT)
    assert found is not None
    assert found.length == len(squeeze(strip(a_text(9))))


def test_two_pages_show_nothing() -> None:
    """T3: three are needed."""
    assert learn_element(samples(1, 2)).element is None


@pytest.mark.parametrize("place", range(5))
def test_one_page_of_another_kind_shows_that_nothing_fits(place: int) -> None:
    """T3: three are learned from, and two are checks."""
    known = samples(1, 2, 3, 4, 5)
    other = a_page(place, a_text(place + 1), around="words")
    known[place] = known[place]._replace(body=other)
    assert learn_element(known).element != CONTENT


BOX = '<div class="written-by"><p>Jane writes here on things and others.</p></div>'


def test_elements_that_the_feed_lacks_are_learned_as_the_page_s() -> None:
    """T4: by their classes; notes and captions are the text's, though feeds leave them out."""
    note = '<div class="footnotes"><p>A note that the feed leaves out.</p></div>'
    known = [
        LearningSample(a_page(n, a_text(n) + note + BOX), "text/html", squeeze(strip(a_text(n))))
        for n in range(1, 6)
    ]
    learned = learn_element(known).element
    assert learned == CONTENT._replace(added=("div.written-by",))
    page = a_page(9, a_text(9, 1) + note + BOX)
    found = extract_text(
        page, "https://b.example/9", "text/html", TextWish("https://b.example/9", "", learned)
    )
    assert squeeze(strip(found.html)) == squeeze(strip(a_text(9, 1) + note))


@pytest.mark.parametrize("odd", [None, 0, 4])
def test_an_element_is_guessed_from_pages_alone(odd: int | None) -> None:
    """T3: the one that readability-lxml finds on all pages but one, without what repeats in it."""
    pages = [a_page(n, a_text(n) + BOX, around="words") for n in range(1, 6)]
    if odd is not None:
        pages[odd] = a_page(odd, a_text(odd), around="other")
    element = guess_text_element([LearningSample(each, "text/html", "") for each in pages])
    assert element == LearnedElement("div", "", ("words",), 0, ("div.written-by",))


def test_short_texts_hinder_no_guess() -> None:
    """T3: readability-lxml takes more of the page around them."""
    texts = [a_text(1), "<p>A short post.</p>", a_text(3), "<p>Another.</p>", a_text(5)]
    pages = [a_page(n, text, around="words") for n, text in enumerate(texts)]
    element = guess_text_element([LearningSample(each, "text/html", "") for each in pages])
    assert element == LearnedElement("div", "", ("words",), 0)


def test_where_pages_differ_or_names_tell_nothing_is_guessed() -> None:
    """T3: each is read for itself."""
    pages = [a_page(n, a_text(n), around=f"words{n}") for n in range(1, 6)]
    assert guess_text_element([LearningSample(each, "text/html", "") for each in pages[:2]]) is None
    named = [LearningSample(a_page(n, a_text(n)), "text/html", "") for n in range(1, 6)]
    assert guess_text_element(named) is None


def test_a_feed_whose_texts_are_excerpts_teaches_no_element() -> None:
    """T3: also where the theme shows the excerpt in an element of its own."""
    known = []
    for number in range(1, 6):
        excerpt = a_text(number, 2)
        page = a_page(number, a_text(number, 30), head="").replace(
            b"<h1>", f'<div class="lead">{excerpt}</div><h1>'.encode()
        )
        known.append(LearningSample(page, "text/html", squeeze(strip(excerpt))))
    assert learn_element(known).element is not None
    assert learn_text_element(known, are_full=False) == Learned(None, is_whole=False)


def test_texts_are_compared_by_letters_and_digits() -> None:
    """T3: quotes, dashes, case and markup differ between feed and page."""
    feed = squeeze(strip("<p>&#8220;It&#8217;s&#8221; \u2014 <b>here</b>, 42</p>"))
    page = squeeze(strip('<div>"It\'s" - here; 42</div>'))
    assert feed == page == "itshere42"
    text = squeeze(strip(a_text(1)))
    assert share_held(pieces_of(text), text) == 1.0
    assert share_held(pieces_of(squeeze("entirely other words stand in this text, and more")), text) == 0.0


@pytest.mark.parametrize(
    ("text", "is_cut"),
    [("Hello[\u2026]", True), ("Hello...", True), ("HelloContinuereadingThetitle", True), ("Hello.", False)],
)
def test_a_mark_shows_that_a_text_is_cut(text: str, is_cut: bool) -> None:
    """T1: at its end."""
    assert is_cut_short(text) is is_cut


def test_endless_elements_are_read_in_bounds() -> None:
    """T4: a page of nothing but elements costs little."""
    page = read_text_page(b"<div>" * 200_000 + b"text", "text/html")
    assert len(page.containers) <= 100_000
    assert find_element(page, replace_position(CONTENT, 7)) is None


def replace_position(element: LearnedElement, position: int) -> LearnedElement:
    return element._replace(position=position)
