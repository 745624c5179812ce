"""The part of WordPress's REST interface that counts posts: `wp/v2/posts`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from tests.answers import Answer, Document, Headers
from tests.publishers.blog import Blog, Post, page_of
from tests.publishers.wordpress_query import Query, absint

_JSON: Final = (("Content-Type", "application/json; charset=UTF-8"), ("X-Robots-Tag", "noindex"))
_ALLOWED: Final = (
    ("X-Content-Type-Options", "nosniff"),
    ("Access-Control-Expose-Headers", "X-WP-Total, X-WP-TotalPages, Link"),
    (
        "Access-Control-Allow-Headers",
        "Authorization, X-WP-Nonce, Content-Disposition, Content-MD5, Content-Type",
    ),
)
_LAST: Final = (("Allow", "GET"), ("Vary", "Origin"))
"""A request with HEAD ends before the second."""
_MOST: Final = 100
_KEYS: Final = {"date": "published", "modified": "modified", "id": "id"}


def refusal(status: int, api: str) -> Answer:
    """Answer as a members-only, blocked or absent interface."""
    codes = {401: "rest_not_logged_in", 403: "rest_forbidden", 404: "rest_no_route"}
    return _error(api, status, codes.get(status, "rest_error"))


def answer(query: Query, blog: Blog, api: str, *, method: str = "GET") -> Answer:
    """Answer a request below the interface's address, `api`."""
    route = query.fields["route"].rstrip("/")
    if route == "":
        return _document({"name": blog.title, "namespaces": ["wp/v2"]})
    if route != "/wp/v2/posts":
        return _error(api, 404, "rest_no_route")
    per_page, page = (
        absint(query.fields.get(name, default)) for name, default in (("per_page", "10"), ("page", "1"))
    )
    if not 1 <= per_page <= _MOST or page < 1:
        return _error(api, 400, "rest_invalid_param")
    posts = [post for post in blog.posts if _wants(query, post)]
    pages = -(-len(posts) // per_page)
    if page > max(1, pages):
        return _error(api, 400, "rest_post_invalid_page_number")
    found = page_of(
        posts,
        key=_KEYS.get(query.fields.get("orderby", ""), "published"),
        ascending=query.fields.get("order") == "asc",
        start=(page - 1) * per_page,
        count=per_page,
    )
    wanted = {name for name in query.fields.get("_fields", "").split(",") if name}
    listed = [
        {name: value for name, value in _shown(post).items() if not wanted or name in wanted}
        for post in found
    ]
    numbers = (("X-WP-Total", str(len(posts))), ("X-WP-TotalPages", str(pages)))
    last = _LAST[:1] if method == "HEAD" else _LAST
    return _document(listed, *numbers, *_neighbours(query, api, page, pages), last=last)


def _wants(query: Query, post: Post) -> bool:
    ids = {"uncategorized": "1", "news": "2", "admin": "1", "guest": "2"}
    word = query.fields.get("search", "").lower()
    return (
        query.fields.get("categories", ids[post.category]) == ids[post.category]
        and query.fields.get("author", post.author) in (post.author, ids[post.author])
        and (word in post.title.lower() or word in post.content.lower())
    )


def _shown(post: Post) -> dict[str, object]:
    date, modified = (
        datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        for at in (post.published, post.modified)
    )
    return {
        "id": post.id,
        "date": date,
        "date_gmt": date,
        "modified": modified,
        "modified_gmt": modified,
        "slug": post.slug,
        "title": {"rendered": post.title},
    }


def _neighbours(query: Query, api: str, page: int, pages: int) -> list[tuple[str, str]]:
    given = {name: value for name, value in query.fields.items() if name not in ("route", "page")}
    if "categories" in given:
        given["categories[0]"] = given.pop("categories")
    base = api + "wp/v2/posts"
    if "?" in base:  # a site without permalinks
        base = base.partition("?")[0]
    links = [
        f'<{base}?{urlencode({**given, "page": number})}>; rel="{relation}"'
        for relation, number in (("prev", page - 1), ("next", page + 1))
        if 1 <= number <= pages
    ]
    return [("Link", ", ".join(links))] if links else []


def _document(value: object, *headers: tuple[str, str], last: Headers = _LAST) -> Answer:
    return Document(body=json.dumps(value).encode(), headers=(*_JSON, *_ALLOWED, *headers, *last))


def _error(api: str, status: int, code: str) -> Answer:
    body = {"code": code, "message": "No.", "data": {"status": status}}
    link = ("Link", f'<{api}>; rel="https://api.w.org/"')
    return Document(body=json.dumps(body).encode(), status=status, headers=(*_JSON, link, *_ALLOWED, *_LAST))
