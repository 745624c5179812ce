"""Extract the text of a post from its page (T3, T5), as a job for a worker.

found = extract_text(body, url, media_type, wish)
found.html if not found.why else words_for(found.why)
"""

from __future__ import annotations

import re
from collections.abc import Collection
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
    LEARNED_FROM,
    Container,
    Learned,
    LearnedElement,
    LearningSample,
    TextPage,
    find_common,
    find_element,
    learn_element,
)
from wholefeed.core.texts.plain import (
    EXCERPT_SHARE,
    digest_text,
    pieces_of,
    share_held,
    squeeze,
    strip,
    without_mark,
)

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
    url: str
    """Its page."""
    excerpt: str
    """The feed's own text, squeezed; may be empty."""
    element: LearnedElement | None
    """Learned from its site; None: the page alone tells."""


class PageText(NamedTuple):
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
    described = _description_of(tree.root)
    judge = _TextJudge(_base_of(tree.root, url), wish.excerpt, is_described=_is_of(wish.excerpt, described))
    found = PageText("no-text")
    if wish.element is not None and (held := find_element(page, wish.element)) is not None:
        found = judge.judge(held.node, page.text_of(held), LEARNED_WAY, added=wish.element.added)
        if found.why == "not-longer":  # the element holds all: the feed has it already
            return found
    excerpt = "" if judge.is_described else wish.excerpt
    if found.why in _OPEN and (held := find_named_text(page, excerpt)) is not None:
        found = _prefer(found, judge.judge(held.node, page.text_of(held), NAMED_WAY))
        if found.why == "not-longer":
            return found
    if found.why in _OPEN and (element := _ask_readability(body, content_type, page)) is not None:
        found = _prefer(found, judge.judge_readable(element, page, described))
    return found


def _is_of(excerpt: str, described: str) -> bool:
    """Return whether a feed's text is the page's description, which its author wrote beside the text."""
    return (
        len(described) >= _LEAST_GUESSED
        and share_held(pieces_of(without_mark(excerpt)), described) >= EXCERPT_SHARE
    )


def _prefer(found: PageText, other: PageText) -> PageText:
    is_nearer = found.why == "no-text" or other.why == "not-longer"
    return other if not other.why or is_nearer else found


def _description_of(root: Any) -> str:
    """Return the squeezed description that a page gives of itself; empty: none that says much."""
    for meta in root.iter("meta"):
        if (meta.get("property") or meta.get("name") or "").lower() in ("og:description", "description"):
            said = squeeze(meta.get("content") or "")
            if len(said) >= _LEAST_GUESSED:
                return said
    return ""


_DESCRIBED_CHARACTERS: Final = 72
"""Letters of a description to look for; the rest may be cut."""


_OPEN: Final = frozenset({"no-text", "lacks-excerpt", "not-longer"})
"""After these another element of the page may be the text."""
_LEAST_GUESSED: Final = 40
"""Letters of a text that neither an element nor an excerpt vouches for."""


class _TextJudge(NamedTuple):
    """Judges elements that may be an entry's text (T3)."""

    base: str
    excerpt: str
    is_described: bool
    """Whether the excerpt describes the page; then the text need not hold it."""

    def judge(self, element: Any, text: str, way: str, *, added: Collection[str] = ()) -> PageText:
        """Return the text of an element if it may be the entry's."""
        if why := self._find_objection(element, text):
            return PageText(why)
        excerpt = "" if self.is_described else self.excerpt
        made = clean_text(prepare(element, self.base, excerpt, added), self.base)
        if made is None:
            return PageText("text-too-large")
        left = squeeze(strip(made))
        if not left and not _MEDIA.search(made):
            return PageText("no-text")
        if self.excerpt and len(left) <= len(self.excerpt):
            return PageText("not-longer")
        return PageText("", made, len(left), digest_text(left, made), way)

    def judge_readable(self, element: Any, page: TextPage, described: str) -> PageText:
        """Return the text around an element that readability-lxml found."""
        text = squeeze("".join(element.itertext()))
        if held := page.find_holders(
            text
        ):  # with footnotes and lists of links, which readability-lxml leaves out
            element, text = held[0].node, page.text_of(held[0])
        found = self.judge(element, text, READABILITY_WAY)
        if found.why or (self.excerpt and not self.is_described):
            return found
        # the page's own description stands in for an excerpt
        pieces = pieces_of(described[:_DESCRIBED_CHARACTERS])
        is_other = share_held(pieces, page.text) >= EXCERPT_SHARE > share_held(pieces, text)
        return PageText("no-text") if found.length < _LEAST_GUESSED or is_other else found

    def _find_objection(self, element: Any, text: str) -> str:
        if element.xpath("boolean(.//input[@type='password'])"):
            return "login"
        if not text and element.find(".//img") is None and element.find(".//video") is None:
            return "no-text"
        is_held = share_held(pieces_of(without_mark(self.excerpt)), text) >= EXCERPT_SHARE
        if not (is_held or self.is_described):
            return "consent" if _is_consent(text) else "lacks-excerpt"
        if not self.excerpt or not is_held:
            return "consent" if _is_consent(text) else ""
        return "" if len(text) > len(self.excerpt) else "not-longer"


_MEDIA: Final = re.compile("<(?:img|video|audio)[ >]")
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


def guess_text_element(samples: list[LearningSample]) -> LearnedElement | None:
    """Return the element that readability-lxml finds on several pages of a site (T3).

    None: there is none, or names tell it. The samples' texts are the feed's excerpts.
    """
    pages, held = list[TextPage](), list[list[Container]]()
    for each in samples:
        tree = read_tree(each.body, each.content_type)
        page = TextPage.read(tree)
        is_described = tree.root is not None and _is_of(each.text, _description_of(tree.root))
        excerpt = "" if is_described else each.text
        if find_named_text(page, excerpt) is not None:
            continue
        element = _ask_readability(each.body, each.content_type, page)
        holders = [] if element is None else page.find_holders(squeeze("".join(element.itertext())))
        pieces = pieces_of(without_mark(excerpt))
        if not holders:  # hardly any words
            continue
        pages.append(page)
        held.append(
            [it for it in holders if share_held(pieces, page.text_of(it)) >= EXCERPT_SHARE] or holders
        )
    return find_common(pages, held) if len(pages) >= LEARNED_FROM else None


_MUCH_LONGER: Final = 1.5
