"""Pages of posts as themes write them, for tests of their texts."""

from __future__ import annotations

from wholefeed.core.texts.elements import LearningSample
from wholefeed.core.texts.plain import squeeze, strip

NAV = "".join(f'<li><a href="/p{n}">Another post of the blog</a></li>' for n in range(20))


def a_text(number: int, paragraphs: int = 12) -> str:
    """The text of a post as its feed has it."""
    words = "It goes on for a while, so that it looks like the prose of a blog"
    return "".join(
        f"<p>Paragraph {n} of post {number}: {words}, {n * number} times.</p>" for n in range(paragraphs)
    )


def a_page(number: int, text: str, *, head: str = "", around: str = "entry-content") -> bytes:
    """A page around a text; the classes of its article name the post."""
    return (
        f'<!doctype html><html><head><title>Post {number}</title>{head}</head><body class="postid-{number}">'
        f"<header><nav><ul>{NAV}</ul></nav></header><main>"
        f'<article id="post-{number}" class="post tag-{number}">'
        f'<h1>Post {number}</h1><div class="{around}">{text}</div>'
        '<div class="share">Share this</div></article>'
        f'</main><aside class="sidebar"><ul>{NAV}</ul></aside></body></html>'
    ).encode()


def samples(*numbers: int) -> list[LearningSample]:
    return [
        LearningSample(a_page(each, a_text(each)), "text/html", squeeze(strip(a_text(each))))
        for each in numbers
    ]
