"""Names of texts, and of parts inside them that belong to the page (T3, T4)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from wholefeed.core.texts.elements import Container, TextPage
from wholefeed.core.texts.plain import EXCERPT_SHARE, pieces_of, share_held, squeeze, without_mark

_TEXT_NAMES: Final = (
    *("e-content", "articleBody", "entry-content", "post-content"),
    *("gh-content", "post-body", "article-entry"),
    *("field--name-body", "available-content", "article-body"),
    *("article-content", "entry-body", "post-full-content"),
    *("post__content", "post-text"),
    *("w-richtext", "wp-block-post-content", "elementor-widget-theme-post-content", "et_pb_post_content"),
    *("td-post-content", "theme-doc-markdown", "article__body", "article__content", "story-body"),
    *("blog-post-content", "post_content", "markdown-body", "prose"),
)
# microformats2, schema.org and hAtom; then Jekyll, Ghost, Blogger, Hexo, Drupal, Substack, Webflow,
# Elementor, Divi, Docusaurus, Tailwind, and others

_ADDED_CLASSES: Final = frozenset(
    {
        *("sharedaddy", "jp-relatedposts", "robots-nocontent"),
        *("screen-reader-text", "sr-only", "visually-hidden"),
        *("addtoany_share_save_container", "a2a_kit", "share-buttons"),
        *("social-share", "post-info", "post-tags"),
        *("subscription-widget-wrap", "subscription-widget-wrap-editor"),
        *("subscription-widget", "kg-signup-card"),
        *("instapaper_ignore", "instapaper_ignoref", "related-posts"),
        *("yarpp", "comments-area", "post-navigation"),
    }
)
# Jetpack, AddToAny, Pelican, Substack, Ghost and others put such parts into the text's own element
_ADDED_ROLES: Final = frozenset({"navigation", "search", "dialog", "alertdialog"})
_OF_ARTICLE: Final = frozenset({"header", "footer"})
# HTML, sections 4.3.8 and 4.3.9: what introduces an article, and who wrote it when
_TAG_PATHS: Final = ("/tag/", "/tags/", "/category/", "/categories/", "/topics/")
_TAG_LISTS: Final = frozenset({"ul", "p", "div"})
_MOST_TAGS: Final = 50


def find_named_text(page: TextPage, excerpt: str) -> Container | None:
    """Return the only one, else the one with the excerpt, else with the page's title."""
    found = dict[str, list[Container]]()
    looks = 0
    for each in page.containers:
        for name in {*each.classes, each.node.get("itemprop") or ""}.intersection(_TEXT_NAMES):
            named = found.setdefault(name, [])
            if named and each.start < named[-1].end:  # a part of it
                continue
            looks += 1
            if looks > _MOST_NAMED:
                return None
            if not _is_of_another(each.node):
                named.append(each)
    return next((only for name in _TEXT_NAMES if (only := _only(page, found.get(name, ()), excerpt))), None)


def _only(page: TextPage, named: Sequence[Container], excerpt: str) -> Container | None:
    if len(named) > 1:  # the posts before and behind stand on the page, too
        pieces = pieces_of(without_mark(excerpt))
        named = [
            each
            for each in named
            if (share_held(pieces, page.text_of(each)) >= EXCERPT_SHARE if pieces else _is_titled(each.node))
        ]
    return named[0] if len(named) == 1 else None


def _is_titled(node: Any) -> bool:
    article = next(node.iterancestors("article"), None)
    heading = None if article is None else next(article.iter("h1", "h2"), None)
    title = next(node.getroottree().getroot().iter("title"), None)
    if heading is None or title is None:
        return False
    own = _short_text(heading)
    return len(own) >= _LEAST_TITLE and own in _short_text(title)


_LEAST_TITLE: Final = 6


def _is_of_another(node: Any) -> bool:
    return any(
        each.tag in _BESIDE_TAGS or not _BESIDE_CLASSES.isdisjoint((each.get("class") or "").split())
        for each in node.iterancestors()
    )


_BESIDE_TAGS: Final = frozenset({"aside", "footer", "nav"})
_BESIDE_CLASSES: Final = frozenset({"comment", "comments", "comment-list", "h-cite", "u-comment", "sidebar"})
_MOST_NAMED: Final = 200
# each is looked at with all around it


def is_added(node: Any) -> bool:
    if node.get("role") in _ADDED_ROLES or not _ADDED_CLASSES.isdisjoint((node.get("class") or "").split()):
        return True
    parent = node.getparent()
    if node.tag in _OF_ARTICLE and parent is not None and parent.tag == "article":
        return "note" not in (node.get("class") or "")  # footnotes are the text's
    if node.tag in _HEADINGS:
        return _END_HEADING.fullmatch(_short_text(node)) is not None and _ends(node)
    return node.tag in _TAG_LISTS and (_is_tag_list(node) or _is_page_turn(node))


_HEADINGS: Final = frozenset({"h2", "h3", "h4", "h5", "h6"})
_END_HEADING: Final = re.compile(
    r"(?:[0-9]*comments?|leaveacomment|leaveareply|responses|shar(?:e|ing)(?:this)?(?:post|article|on|it)?"
    r"|related(?:posts?|articles?|stories|entries)?|readnext|upnext|moreposts|youmay(?:also)?like|subscribe"
    r"|youmightalsolike|discussion|webmentions)"
)
"""Squeezed headings of parts by scripts, or of later parts of the page."""


def may_be_added(node: Any) -> bool:
    """Return whether the name of an element says that it is the page's, if the text is whole without it."""
    if node.tag not in _PART_TAGS:
        return False
    names = (node.get("class") or "").lower().split()[:_MOST_NAMES]
    if any(_PART_NAME.search(name) for name in names):
        return True
    return node.tag == "aside" and not any("note" in name for name in names) and _is_linked(node)


_PART_TAGS: Final = frozenset(
    {"div", "section", "aside", "ul", "ol", "p", "ins", "header", "footer", *_HEADINGS}
)
_MOST_NAMES: Final = 60
_PART_NAME: Final = re.compile(
    r"(?:^|[-_])(?:shar(?:ing|edaddy|e-?(?:buttons?|bar|links?|icons?|wrapper|box|this|post))|share$"
    r"|related|relatedposts|recommended|recommendations|crp|yarpp|newsletters?|subscribe|subscriptions?"
    r"|mc4wp|cta|sign-?up|adsbygoogle|advert(?:s|isements?)?|outbrain|taboola|addtoany|addthis|saboxplugin|disqus"
    r"|author-?(?:box|bio|card|profile)|about-?(?:the-)?author|post-author|page-links|post-nav(?:igation)?"
    r"|read-?next|up-?next|more-?posts|source-file|summary-v2|social-?(?:share|icons?|links?|media))(?:$|[-_])"
    r"|^share(?:$|[-_])"
)
"""Classes by Jetpack, YARPP, Contextual Related Posts, AddToAny, Mailchimp, Squarespace, MkDocs and others.

Ids are not looked at: generators make them of headings, such as `related-work`.
"""


def may_be_text(part: Any) -> bool:
    """Return whether a part may also be the text, as some posts are newsletters."""
    return _LARGE_NAME.search((part.get("class") or "").lower()) is not None


_LARGE_NAME: Final = re.compile("newsletter|subscri|sign-?up|share|social")


def _is_linked(node: Any) -> bool:
    """Return whether half of the words of a small element are in links."""
    if (nodes := _list_nodes(node)) is None:
        return False
    words = len(squeeze("".join(_words_of(node, nodes))))
    linked = sum(
        len(squeeze("".join(_words_of(each, list(each.iter()))))) for each in nodes if each.tag == "a"
    )
    return 2 * linked >= words


def _list_nodes(node: Any) -> list[Any] | None:
    """Return an element and those inside it; None: they are many, and no single part of a page."""
    found = list(islice(node.iter(), _MOST_NODES + 1))
    return found if len(found) <= _MOST_NODES else None


def _words_of(node: Any, nodes: Sequence[Any]) -> Iterator[str]:
    for each in nodes:
        yield each.text or ""
        if each is not node:
            yield each.tail or ""


_MOST_NODES: Final = 200


def _short_text(node: Any) -> str:
    nodes = _list_nodes(node)
    return "" if nodes is None else squeeze("".join(_words_of(node, nodes)))


def _ends(node: Any) -> bool:
    """Return whether nothing with words stands behind an element, in the element around it."""
    if (node.tail or "").strip():
        return False
    behind = list(islice(node.itersiblings(), _MOST_BEHIND + 1))
    return len(behind) <= _MOST_BEHIND and all(
        not (each.tail or "").strip() and _is_empty(each) for each in behind
    )


_MOST_BEHIND: Final = 8


def _is_empty(node: Any) -> bool:
    nodes = _list_nodes(node)
    return nodes is not None and not squeeze("".join(_words_of(node, nodes)))


def _is_page_turn(node: Any) -> bool:
    """Return whether it is the last of a text, and only links to the pages before and behind."""
    if not 0 < len(node) <= _MOST_TURNS or _has_own_text(node) or not _ends(node):
        return False
    return all(each.tag == "a" and _TURN.match(_short_text(each)) for each in node)


_MOST_TURNS: Final = 6
_TURN: Final = re.compile(
    r"(?:prev(?:ious)?|next|older|newer|home|back|top|index)(?:posts?|pages?|articles?|entry)?(?![a-z]{4})"
)


def _is_tag_list(node: Any) -> bool:
    # at the end of the text, and nothing but links to tags
    behind = node.getnext()
    is_last = behind is None or (len(behind) == 0 and not _has_own_text(behind))
    if not is_last or (node.tail or "").strip() or not 0 < len(node) <= _MOST_TAGS or _has_own_text(node):
        return False
    links = [
        each[0] if each.tag == "li" and len(each) == 1 and not _has_own_text(each) else each for each in node
    ]
    return all(each.tag == "a" and _is_tag_link(each) for each in links)


def _has_own_text(node: Any) -> bool:
    return bool(squeeze((node.text or "") + "".join(each.tail or "" for each in node)))


def _is_tag_link(link: Any) -> bool:
    return "tag" in (link.get("rel") or "").split() or any(
        each in (link.get("href") or "") for each in _TAG_PATHS
    )
