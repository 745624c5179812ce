"""Names of texts, and of parts inside them that belong to the page (T3, T4)."""

from __future__ import annotations

from typing import Any, Final

from wholefeed.core.texts.elements import Container, TextPage
from wholefeed.core.texts.plain import squeeze

_TEXT_NAMES: Final = (
    *("e-content", "articleBody", "entry-content", "post-content"),
    *("gh-content", "post-body", "article-entry"),
    *("field--name-body", "available-content", "article-body"),
    *("article-content", "entry-body", "post-full-content"),
    *("post__content", "post-text"),
)
# microformats2, schema.org and hAtom; then Jekyll, Ghost, Blogger, Hexo, Drupal, Substack, and others

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


def find_named_text(page: TextPage) -> Container | None:
    """Return the only one of its name."""
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
    return next((found[name][0] for name in _TEXT_NAMES if len(found.get(name, ())) == 1), None)


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
    """Return whether it is the page's."""
    if node.get("role") in _ADDED_ROLES or not _ADDED_CLASSES.isdisjoint((node.get("class") or "").split()):
        return True
    parent = node.getparent()
    if node.tag in _OF_ARTICLE and parent is not None and parent.tag == "article":
        return "note" not in (node.get("class") or "")  # footnotes are the text's
    return node.tag in _TAG_LISTS and _is_tag_list(node)


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
