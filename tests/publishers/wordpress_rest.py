"""The part of WordPress's REST interface that counts posts: `wp/v2/posts`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Final

from tests.answers import Answer, Document
from tests.publishers.blog import Blog, Post, page_of
from tests.publishers.wordpress_query import Query, absint

_JSON: Final = (
    ("Content-Type", "application/json; charset=UTF-8"),
    ("X-Robots-Tag", "noindex"),
    ("X-Content-Type-Options", "nosniff"),
)
_ALLOWED: Final = (
    ("Access-Control-Expose-Headers", "X-WP-Total, X-WP-TotalPages, Link"),
    (
        "Access-Control-Allow-Headers",
        "Authorization, X-WP-Nonce, Content-Disposition, Content-MD5, Content-Type",
    ),
)
_MOST: Final = 100
_KEYS: Final = {"date": "published", "modified": "modified", "id": "id"}


def refusal(status: int) -> Answer:
    """Answer as where the interface is for members only, blocked or not there."""
    codes = {401: "rest_not_logged_in", 403: "rest_forbidden", 404: "rest_no_route"}
    return _error(status, codes.get(status, "rest_error"))


def answer(query: Query, blog: Blog, url: str) -> Answer:
    """Answer a request below `wp-json/`."""
    route = query.fields["route"].rstrip("/")
    if route == "":
        return _document({"name": blog.title, "url": url, "namespaces": ["wp/v2"]})
    if route != "/wp/v2/posts":
        return _error(404, "rest_no_route")
    per_page, page = (
        absint(query.fields.get(name, default)) for name, default in (("per_page", "10"), ("page", "1"))
    )
    if not 1 <= per_page <= _MOST or page < 1:
        return _error(400, "rest_invalid_param")
    posts = [post for post in blog.posts if _wants(query, post)]
    pages = -(-len(posts) // per_page)
    if page > max(1, pages):
        return _error(400, "rest_post_invalid_page_number")
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
    return _document(
        listed,
        ("X-WP-Total", str(len(posts))),
        ("X-WP-TotalPages", str(pages)),
        *_neighbours(query, url, page, pages),
    )


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


def _neighbours(query: Query, url: str, page: int, pages: int) -> list[tuple[str, str]]:
    given = "&".join(
        f"{name}={value}" for name, value in query.fields.items() if name not in ("route", "page")
    )
    base = f"{url}/wp-json/wp/v2/posts?{given}&page=" if given else f"{url}/wp-json/wp/v2/posts?page="
    return [
        ("Link", f'<{base}{number}>; rel="{relation}"')
        for relation, number in (("prev", page - 1), ("next", page + 1))
        if 1 <= number <= pages
    ]


def _document(value: object, *headers: tuple[str, str]) -> Answer:
    return Document(
        body=json.dumps(value).encode(),
        headers=(*_JSON, *_ALLOWED, *headers, ("Allow", "GET"), ("Vary", "Origin")),
    )


def _error(status: int, code: str) -> Answer:
    body = {"code": code, "message": "No.", "data": {"status": status}}
    return Document(body=json.dumps(body).encode(), status=status, headers=_JSON)
