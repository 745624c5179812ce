"""Read the text of a post out of its page, and judge it (T3, T5), as a job for a worker.

found = extract_text(body, url, media_type, wish)
found.html if not found.why else words_for(found.why)
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from wholefeed.core.listing.page_links import link_key
from wholefeed.core.listing.page_reading import HtmlTree, read_tree
from wholefeed.core.parse.encodings import html_to_utf8
from wholefeed.core.slugs import slug_in_words
from wholefeed.core.text.urls import resolve_or_empty
from wholefeed.core.texts.cleaning import clean_text, prepare
from wholefeed.core.texts.conventions import find_named_text
from wholefeed.core.texts.elements import (
    Learned,
    LearnedElement,
    LearningSample,
    TextPage,
    find_element,
    learn_element,
)
from wholefeed.core.texts.plain import digest_text, pieces_of, share_held, squeeze, strip

WHY: Final = {
    "no-text": "no part of the page is its text",
    "lacks-excerpt": "the page's text does not hold the excerpt in the feed",
    "not-longer": "the page has no more of it than the feed",
    "no-room": "the feed has no room for it (limits.feed_bytes)",
    "repeated": "several pages have the same text",
    "paywalled": "the page says that its text is for subscribers",
    "login": "the page asks for a login",
    "consent": "the page asks for consent first",
    "elsewhere": "the address leads to another page now",
    "text-too-large": "the text is larger than 1 MiB",
    "not-html": "the address gives no page",
    "page-too-large": "the page is larger than 5 MiB",
    "robots": "robots.txt forbids it",
    "not-own-site": "the address is of another site",
}
"""Reasons that an entry stays as it is, for people."""


def why_no_text(why: str) -> str:
    """Return a reason in words; it is a key of `WHY`, or the slug of a failure."""
    return WHY.get(why) or slug_in_words(why)


class TextWish(NamedTuple):
    """An entry that wants a text."""

    url: str
    """Its page."""
    excerpt: str
    """The feed's own text, squeezed; may be empty."""
    element: LearnedElement | None
    """Learned from its site; None: the page alone tells."""


class PageText(NamedTuple):
    """The text of a page, or the reason that there is none."""

    why: str
    """A key of `WHY`; empty: there is a text."""
    html: str = ""
    """Sanitised, with absolute URLs."""
    length: int = 0
    """Letters and digits."""
    digest: bytes = b""
    """First 8 bytes: digest of the letters, since equal texts are no post's own. The others: of the HTML."""
    way: str = ""
    """`learned`, `named` or `readability`."""


LEARNED_WAY: Final = "learned"
NAMED_WAY: Final = "named"
READABILITY_WAY: Final = "readability"


def extract_text(body: bytes, url: str, content_type: str, wish: TextWish) -> PageText:
    """Return the text of a page. Never raises.

    `body` has no content coding, `url` is the one after redirects.
    """
    tree = read_tree(body, content_type)
    if tree.root is None:
        return PageText("no-text")
    if why := _find_barrier(tree, body, url, wish):
        return PageText(why)
    page = TextPage.read(tree)
    base = _base_of(tree.root, url)
    found = PageText("no-text")
    if wish.element is not None and (held := find_element(page, wish.element)) is not None:
        found = _judge(held.node, page.text_of(held), base, wish.excerpt, LEARNED_WAY)
    if found.why in _OPEN and (held := find_named_text(page)) is not None:
        found = _prefer(found, _judge(held.node, page.text_of(held), base, wish.excerpt, NAMED_WAY))
        if found.why == "not-longer":  # what is named holds all: the feed has it already
            return found
    if found.why in _OPEN and (element := _ask_readability(body, content_type, page)) is not None:
        found = _prefer(found, _judge_readable(tree.root, element, page, base, wish.excerpt))
    return found


def _prefer(found: PageText, other: PageText) -> PageText:
    is_nearer = found.why == "no-text" or other.why == "not-longer"
    return other if not other.why or is_nearer else found


def _judge_readable(root: Any, element: Any, page: TextPage, base: str, excerpt: str) -> PageText:
    text = squeeze("".join(element.itertext()))
    if held := page.find_holders(
        text
    ):  # with footnotes and lists of links, which readability-lxml leaves out
        element, text = held[0].node, page.text_of(held[0])
    found = _judge(element, text, base, excerpt, READABILITY_WAY)
    if found.why or excerpt:
        return found
    # the page's own description stands in for an excerpt
    described = pieces_of(_description_of(root))
    is_other = share_held(described, page.text) >= _LEAST_SHARE > share_held(described, text)
    return PageText("no-text") if found.length < _LEAST_GUESSED or is_other else found


def _description_of(root: Any) -> str:
    for meta in root.iter("meta"):
        if (meta.get("property") or meta.get("name") or "").lower() in ("og:description", "description"):
            said = squeeze(meta.get("content") or "")[:_DESCRIBED_CHARACTERS]  # its end may be cut
            if len(said) >= _LEAST_GUESSED:
                return said
    return ""


_DESCRIBED_CHARACTERS: Final = 72


_OPEN: Final = frozenset({"no-text", "lacks-excerpt", "not-longer"})
"""After these another element of the page may be the text."""
_LEAST_GUESSED: Final = 40
"""Letters of a text that neither an element nor an excerpt vouches for."""


def _judge(element: Any, text: str, base: str, excerpt: str, way: str) -> PageText:
    """Return the text of an element if it may be the entry's (T3)."""
    if why := _find_objection(element, text, excerpt):
        return PageText(why)
    made = clean_text(prepare(element, base), base)
    if made is None:
        return PageText("text-too-large")
    left = squeeze(strip(made))
    if not left and not _MEDIA.search(made):
        return PageText("no-text")
    if excerpt and len(left) <= len(excerpt):
        return PageText("not-longer")
    return PageText("", made, len(left), digest_text(left, made), way)


def _find_objection(element: Any, text: str, excerpt: str) -> str:
    if element.xpath("boolean(.//input[@type='password'])"):
        return "login"
    if not text and element.find(".//img") is None and element.find(".//video") is None:
        return "no-text"
    if share_held(pieces_of(_without_mark(excerpt)), text) < _LEAST_SHARE:
        return "consent" if _is_consent(text) else "lacks-excerpt"
    if not excerpt:
        return "consent" if _is_consent(text) else ""
    return "" if len(text) > len(excerpt) else "not-longer"


_MEDIA: Final = re.compile("<(?:img|video|audio)[ >]")
_LEAST_SHARE: Final = 0.7
"""Share of an excerpt's pieces: generators shorten words and leave out headings."""
_MARK_CHARACTERS: Final = 24


def _without_mark(excerpt: str) -> str:
    """Return an excerpt without its end, which may be "continue reading" and the title."""
    cut = len(excerpt) - _MARK_CHARACTERS
    return excerpt[:cut] if cut >= 2 * _MARK_CHARACTERS else excerpt


# What stands before a page, by rule T5


def _find_barrier(tree: HtmlTree, body: bytes, url: str, wish: TextWish) -> str:
    """Return the reason that a page is not the post; empty: none is seen."""
    if _LOCKED.search(body) or _is_locked(tree.root):
        return "paywalled"
    if link_key(url) == link_key(wish.url):
        return ""
    path, asked = urlsplit(url).path, urlsplit(wish.url).path
    if _LOGIN.search(path) and not _LOGIN.search(asked):
        return "login"
    if _CONSENT.search(path) and not _CONSENT.search(asked):
        return "consent"
    return "elsewhere" if _is_above(path, asked) and not urlsplit(url).query else ""


def _is_above(path: str, asked: str) -> bool:
    """Return whether a path is the front page's, or that of a list of posts around the asked one."""
    above, own = path.rstrip("/") + "/", asked.rstrip("/")
    return own.startswith(above) and own[len(above) :] not in _VARIANTS


_VARIANTS: Final = frozenset({"", "amp", "feed", "print", "1"})
"""Last parts of paths to other forms of the page above."""


_LOCKED: Final = re.compile(
    rb"\"isAccessibleForFree\"\s{0,9}:\s{0,9}\"?(?:https?://schema\.org/)?false\b", re.IGNORECASE
)
"""schema.org, "isAccessibleForFree"; search engines ask publishers for it."""
_LOGIN: Final = re.compile(r"/(?:wp-login|log-?in|sign-?in|sign-?up|register|auth|account)\b", re.IGNORECASE)
_CONSENT: Final = re.compile(r"consent|cookiewall|privacy-gate", re.IGNORECASE)
_CONSENT_WORDS: Final = re.compile(r"acceptall|accept(?:our)?cookies|cookiepolicy|weusecookies|yourconsent")
_CONSENT_CHARACTERS: Final = 1500
"""A text that is longer is more than a question."""


def _is_consent(text: str) -> bool:
    return len(text) <= _CONSENT_CHARACTERS and _CONSENT_WORDS.search(text) is not None


def _is_locked(root: Any) -> bool:
    for meta in root.iter("meta"):
        name = meta.get("itemprop") or meta.get("property") or meta.get("name") or ""
        said = (meta.get("content") or "").strip().lower()
        if (name == "isAccessibleForFree" and said == "false") or (
            name == "article:content_tier" and said == "locked"
        ):
            return True
    return False


def _base_of(root: Any, url: str) -> str:
    for base in root.iter("base"):
        if href := base.get("href"):
            return resolve_or_empty(url, href) or url
    return url


# Pages of which nothing is learned

_READABLE_BYTES: Final = 1 << 20
_READABLE_ELEMENTS: Final = 15_000
_READABLE_DEPTH: Final = 150
"""readability-lxml counts the text of elements again for each element around them."""


def _ask_readability(body: bytes, content_type: str, page: TextPage) -> Any:
    """Return the element that readability-lxml takes for the text.

    Returns:
        None if it finds none, or would take long.
    """
    if page.elements > _READABLE_ELEMENTS or page.depth > _READABLE_DEPTH or len(body) > _READABLE_BYTES:
        return None
    from readability import readability  # noqa: PLC0415 - 10 MB that only workers need

    readability.log.disabled = True  # it would log pages without a text
    text = html_to_utf8(body, content_type).decode("utf-8", "replace")
    try:
        summary = readability.Document(text).summary(html_partial=True)
    except readability.Unparseable:
        return None
    return read_tree(summary.encode("utf-8", "replace"), "text/html; charset=utf-8").root


# Learning, with a second opinion


def learn_text_element(samples: list[LearningSample], *, are_full: bool) -> Learned:
    """Return the element of a site's texts (`core/texts/elements.py`).

    `are_full`: the feed says that the samples' texts are whole.
    """
    learned = learn_element(samples)
    if learned.element is None or are_full:
        return learned
    # some themes show the excerpt on the page, too, in an element of its own
    longer = 0
    for each in samples:
        page = TextPage.read(read_tree(each.body, each.content_type))
        element = _ask_readability(each.body, each.content_type, page)
        text = "" if element is None else squeeze("".join(element.itertext()))
        longer += len(text) > _MUCH_LONGER * len(each.text)
    return Learned(None, is_whole=False) if 2 * longer >= len(samples) else learned


_MUCH_LONGER: Final = 1.5
