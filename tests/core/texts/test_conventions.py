"""T3, T4: parts of a page by their names."""

from __future__ import annotations

import pytest

from tests.core.texts.pages import NAV, a_page, a_text
from wholefeed.core.texts.elements import LearnedElement
from wholefeed.core.texts.extracting import PageText, TextWish, extract_text
from wholefeed.core.texts.plain import squeeze, strip

URL = "https://blog.example/2020/post"
LEARNED = LearnedElement("div", "", ("words",), 0)
COMMENT = "A reader says at length, with commas, and more than once, that this is fine, and thanks. " * 8


def extract(page: str, excerpt: str = "", element: LearnedElement | None = None) -> PageText:
    wish = TextWish(URL, squeeze(strip(excerpt)), element)
    return extract_text(page.encode(), URL, "text/html; charset=utf-8", wish)


def a_theme(text: str, behind: str = "", *, head: str = "", named: str = 'class="entry-content"') -> str:
    return (
        f"<!doctype html><html><head><title>Post</title>{head}</head><body><nav><ul>{NAV}</ul></nav>"
        f"<article><header><h1>Post</h1><p>By Jane, in May</p></header><div {named}>{text}</div></article>"
        f"{behind}</body></html>"
    )


@pytest.mark.parametrize(
    "named",
    ['class="e-content"', 'itemprop="articleBody"', 'class="x gh-content"', 'class="entry-content y"'],
)
def test_a_short_text_is_known_by_the_name_of_its_element(named: str) -> None:
    """T3: comments may be longer."""
    page = a_theme("<p>A short post.</p>", f'<div id="c"><p>{COMMENT}</p></div>', named=named)
    found = extract(page)
    assert (found.why, found.way, found.html) == ("", "named", "<p>A short post.</p>")


def test_names_inside_comments_do_not_count() -> None:
    """T3: answers are microformats, too."""
    answer = f'<div class="h-cite u-comment"><div class="e-content">{COMMENT}</div></div>'
    page = a_theme(a_text(3), answer, named='class="e-content"')
    assert extract(page).html == a_text(3)
    assert extract(a_theme(a_text(3), answer)).html == a_text(3)


def test_a_name_that_several_have_tells_nothing() -> None:
    """T3: whose is it?"""
    several = "".join(f'<div class="entry-content"><p>{COMMENT}</p></div>' for _ in range(2))
    assert extract(a_theme(a_text(3), several)).way != "named"


def test_a_post_that_the_feed_has_whole_stays() -> None:
    """T3: nothing is longer."""
    text = "<p>One sentence is all that this post has, and the feed gives it as its summary.</p>"
    assert extract(a_theme(text, f"<div><p>{COMMENT}</p></div>"), text).why == "not-longer"


@pytest.mark.parametrize(
    "added",
    [
        '<div class="sharedaddy sd-sharing-enabled"><h3>Share this:</h3></div>',
        '<div id="jp-relatedposts" class="jp-relatedposts"><h3>Related</h3></div>',
        '<div class="subscription-widget-wrap-editor"><p>To receive new posts, subscribe.</p></div>',
        '<footer class="post-info"><address>By Jane</address></footer>',
        '<ul class="pa0"><li><a href="/tags/bread/">b</a></li>\n<li><a href="/tags/tea/">t</a></li></ul>',
        '<p><a rel="tag" href="/t/x">x</a>, <a rel="tag" href="/t/y">y</a></p><div class="mt6"></div>',
        '<div class="wp-block-group author-box"><p>Jane writes about bread and tea.</p></div>',
        '<div class="heateor_sss_sharing_container"><div>Share it</div></div>',
        '<div class="crp_related"><h3>Related</h3><ul><li><a href="/o">Another</a></li></ul></div>',
        '<section class="newsletter-inline"><h3>Letters</h3><p>One a week, by mail.</p></section>',
        '<div class="page-links">Pages: <span>1</span> <a href="2/">2</a></div>',
        '<aside class="md-source-file"><span>Last changed in May</span></aside>',
        '<aside><h4>Elsewhere</h4><a href="/o">Another post of this site</a></aside>',
        '<hr><p><a href="/1">Previous page</a> | <a href="/">Home</a></p>',
        '<h2 id="__comments">Comments</h2><div></div>',
    ],
)
def test_parts_of_the_page_inside_the_text_are_left_out(added: str) -> None:
    """T4: plugins put them there."""
    found = extract(a_theme(a_text(4) + added, named='class="words"'), element=LEARNED)
    assert squeeze(strip(found.html)) == squeeze(strip(a_text(4)))


@pytest.mark.parametrize(
    ("own", "excerpt"),
    [
        ('<section id="related-work"><h2>Related</h2><p>What others did.</p></section>', ""),
        ('<div class="market-share-table"><p>Numbers of the year.</p></div>', ""),
        ('<aside class="note"><a href="https://x.example/">A link of the post</a></aside>', ""),
        ("<h2>Comments</h2><p>What I think of them.</p>", ""),
        (f'<div class="newsletter">{a_text(6)}</div>', ""),
        (f'<div class="related">{a_text(6, 3)}</div>', a_text(6, 2)),
    ],
)
def test_words_of_the_text_stay(own: str, excerpt: str) -> None:
    """T4: where a name says little, or the excerpt stands there."""
    lead = "<p>A lead of some words.</p>"
    found = extract(a_theme(lead + own, named='class="words"'), excerpt, element=LEARNED)
    assert squeeze(strip(found.html)) == squeeze(strip(lead + own))


@pytest.mark.parametrize(
    "own",
    [
        '<p>I sort my posts by <a href="/tags/bread/">bread</a>.</p>',
        '<ul><li><a href="/tags/bread/">bread</a></li></ul><p>These were all.</p>',
        '<ul><li><a href="https://x.example/">A link of the post</a></li></ul>',
    ],
)
def test_links_of_the_text_stay(own: str) -> None:
    """T4: tags stand at its end."""
    found = extract(a_theme(a_text(4) + own, named='class="words"'), element=LEARNED)
    assert squeeze(strip(found.html)) == squeeze(strip(a_text(4) + own))


def test_of_several_posts_on_a_page_it_is_the_entry_s() -> None:
    """T3: by its excerpt, else by the page's title."""
    articles = "".join(
        f'<article><h1>Number {n} of all</h1><div class="article__body">{a_text(n)}</div></article>'
        for n in (3, 4)
    )
    page = f"<html><head><title>Number 4 of all - B</title></head><body>{articles}</body></html>"
    assert [extract(page, each).html for each in (a_text(3, 2), "")] == [a_text(3), a_text(4)]
    assert extract(page.replace("<title>Number 4 of all", "<title>B")).way != "named"


def test_an_excerpt_may_be_the_page_s_description() -> None:
    """T3: which its author wrote beside the text; in another page's text it would have to be."""
    said = "How a baker in a small town learned to wait for her dough."
    head = f'<meta name="description" content="{said}">'
    found = extract(a_theme(a_text(4), head=head), said)
    assert (found.why, found.html) == ("", a_text(4))
    assert extract(a_theme(a_text(4)), said).why == "lacks-excerpt"


def test_readability_s_text_comes_with_lists_of_links_and_footnotes() -> None:
    """T3: the element around has them."""
    links = "".join(
        f'<li><a href="https://x.example/{n}">The source of number {n}</a></li>' for n in range(8)
    )
    notes = '<div class="footnotes"><ol><li><p>A note. <a href="#r">back</a></p></li></ol></div>'
    found = extract(a_theme(a_text(5) + f"<ul>{links}</ul>{notes}", named='class="words"'))
    assert (found.why, found.way) == ("", "readability")
    assert "number 7" in found.html
    assert "A note." in found.html


def test_a_text_without_what_the_page_says_of_itself_is_another() -> None:
    """T3: long comments."""
    said = "One sentence is all that this post has, and its page describes it so."
    head = f'<meta name="description" content="{said}">'
    comments = "".join(f"<div><p>{COMMENT}</p><p>{COMMENT}</p></div>" for _ in range(4))
    page = a_theme(f"<p>{said}</p>", f'<div class="q">{comments}</div>', head=head, named='class="words"')
    assert extract(page).why == "no-text"
    assert extract(page.replace(head, "")).why == ""


def test_names_cost_little() -> None:
    """T4: everywhere."""
    page = a_page(9, '<div class="e-content entry-content"><p>' * 20_000)
    assert extract_text(page, URL, "text/html", TextWish(URL, "", None)) is not None


def test_header_and_footer_of_an_article_are_left_out() -> None:
    """T4: where its text has no element; footnotes stay."""
    notes = '<footer class="footnotes"><p>A note.</p></footer>'
    bare = (
        f"<!doctype html><html><body><main><article><header><h2>Post</h2></header>{a_text(6)}{notes}"
        "<footer><p>By Jane, in May</p></footer></article></main></body></html>"
    )
    for element in (LearnedElement("article", "", (), 0), None):
        found = extract(bare, element=element)
        assert squeeze(strip(found.html)) == squeeze(strip(a_text(6) + "A note."))
