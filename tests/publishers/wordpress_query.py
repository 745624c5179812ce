"""A request to a WordPress: the feed, its posts, the page and the order.

The names and their meaning are those of `WP::$public_query_vars` and `WP_Query::parse_query`. Numbers are
read as in PHP (`absint`), which matters beyond 64 bits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qsl, unquote

from tests.publishers.blog import Blog, Post, page_of

FORMATS: Final = ("rss2", "atom", "rdf")
LARGEST: Final = 2**63 - 1
_KEYS: Final = {"date": "published", "modified": "modified", "ID": "id", "post_date": "published"}
_NARROWING: Final = {"category", "author", "tag", "s"}
FEED_PATH: Final = re.compile(r"(?P<under>.*/)?feed(/(?P<format>feed|rss|rss2|atom|rdf))?/?")
_OLD_FEEDS: Final = re.compile(r"wp-(?P<format>atom|rdf|rss2?|feed)\.php")
ARCHIVE: Final = re.compile(
    r"(category/(?P<category>[^/]+)|tag/(?P<tag>[^/]+)|author/(?P<author>[^/]+)|search/(?P<s>[^/]+)"
    r"|(?P<year>\d{4})(/(?P<monthnum>\d{1,2})(/(?P<day>\d{1,2}))?)?)/"
)


@dataclass(frozen=True, kw_only=True)
class Query:
    kind: str
    """`feed`, `comments`, `old feed`, `home`, `rest` or `nothing`."""
    format: str = "rss2"
    by_path: bool = False
    """Whether the path says so, which takes a site with permalinks."""
    fields: dict[str, str] = field(default_factory=dict)
    """Query variables, from the path and from the query string."""

    @property
    def paged(self) -> int:
        """The page's number, as PHP has it; 0 for none."""
        return min(absint(self.fields.get("paged", "")), LARGEST)

    @property
    def ascending(self) -> bool:
        return self.fields.get("order", "").upper() == "ASC"

    @property
    def key(self) -> str:
        """The field of `Post` that orders; the date for an unknown `orderby`."""
        return _KEYS.get(self.fields.get("orderby", ""), "published")

    @property
    def day(self) -> tuple[str, str, str]:
        """Year, month and day of an archive, empty for a longer period."""
        digits = self.fields.get("m", "")
        year, month = self.fields.get("year", digits[:4]), self.fields.get("monthnum", digits[4:6])
        return year, month, self.fields.get("day", digits[6:8])

    def select(self, blog: Blog, per_page: int) -> list[Post]:
        """Return the posts of the requested page."""
        posts = blog.posts
        if any(day := self.day):
            posts = [post for post in posts if _is_of(post, day)]
        if self.fields.keys() & _NARROWING:
            posts = [post for post in posts if self._wants(post)]
        start = _wrapped((max(1, self.paged) - 1) * per_page)
        return page_of(posts, key=self.key, ascending=self.ascending, start=start, count=per_page)

    def title(self, site: str, *, found: bool, beyond: bool) -> str:
        """Return the feed's title: the site's name behind the name of the part."""
        if self.kind == "comments" and not beyond:
            return "Comments on:" if "of" in self.fields else f"Comments for {site}"
        parts = ["Page not found"] if beyond else []
        if not beyond and (found or "s" in self.fields):
            parts = [name for name in (self._archive_title(),) if name]
            parts += [f"Page {self.paged}"] if self.paged > 1 else []
        return " – ".join([*parts, site])  # noqa: RUF001 - as WordPress writes it

    def _archive_title(self) -> str:
        year, month, day = self.day
        if year:
            shape = "%B %-d, %Y" if day else "%B %Y" if month else "%Y"
            return datetime(int(year), int(month or 1), int(day or 1), tzinfo=UTC).strftime(shape)
        if word := self.fields.get("s"):
            return f"Search Results for “{word}”"
        name = self.fields.get("category") or self.fields.get("tag", "")
        return name.capitalize() or self.fields.get("author", "")

    def _wants(self, post: Post) -> bool:
        word = self.fields.get("s", "").lower()
        return (
            self.fields.get("category", post.category) == post.category
            and self.fields.get("author", post.author) == post.author
            and ("tag" not in self.fields or self.fields["tag"] in post.tags)
            and (word in post.title.lower() or word in post.content.lower())
        )


def _is_of(post: Post, day: tuple[str, str, str]) -> bool:
    date = datetime.fromtimestamp(post.published, UTC).timetuple()
    return all(not asked or int(asked) == has for asked, has in zip(day, date, strict=False))


def parse_target(target: str) -> Query:
    """Read the path and query string of a request, below the site's own folder."""
    path, _, query = target.partition("?")
    path = "" if path == "/index.php" else unquote(path).removeprefix("/")
    fields = dict(parse_qsl(query, keep_blank_values=True))
    if path.startswith("wp-json/") or "rest_route" in fields:
        route = fields.get("rest_route", path.removeprefix("wp-json"))
        return Query(kind="rest", fields=fields | {"route": route}, by_path="rest_route" not in fields)
    if old := _OLD_FEEDS.fullmatch(path):
        found = old["format"]
        return Query(kind="old feed", format=found if found in FORMATS else "rss2", fields=fields)
    fields = _named(fields)
    if feed := FEED_PATH.fullmatch(path):
        return replace(_feed(feed["under"] or "", feed["format"] or "feed", fields), by_path=True)
    if path == "" and "feed" in fields:
        comments = fields["feed"].startswith("comments-")
        return _feed("comments/" if comments else "", fields["feed"].removeprefix("comments-"), fields)
    return Query(kind="home" if path == "" else "nothing", fields=fields)


def _feed(under: str, name: str, fields: dict[str, str]) -> Query:
    found = name if name in FORMATS else "rss2"
    if re.fullmatch(r"page/\d+/", under):
        return Query(kind="comments", format=found, fields={"of": "nothing"})
    if under == "comments/":
        return Query(kind="comments", format=found, fields=fields)
    archive = ARCHIVE.fullmatch(under)
    if under and archive is None:
        return Query(kind="nothing", format=found)
    named = {key: value for key, value in archive.groupdict().items() if value} if archive else {}
    kind = "comments" if fields.get("withcomments") else "feed"
    return Query(kind=kind, format=found, fields=fields | named)


def _named(fields: dict[str, str]) -> dict[str, str]:
    """Replace numbers and other words by names."""
    renamed = {"category_name": "category", "author_name": "author"}
    fields = {renamed.get(name, name): value for name, value in fields.items()}
    if "cat" in fields:
        fields["category"] = {"1": "uncategorized", "2": "news"}.get(fields.pop("cat"), "")
    if fields.get("author", "").isdigit():
        fields["author"] = {"1": "admin", "2": "guest"}.get(fields["author"], "")
    return fields


def absint(text: str) -> int:
    """Read a number as PHP's `absint` does: the digits at the front, without sign."""
    found = re.match(r"\s*[+-]?(\d+)", text)
    return int(found[1]) if found else 0


def _wrapped(start: int) -> int:
    """Return PHP's product: a float beyond 64 bits, which wraps when it becomes an integer."""
    if start <= LARGEST:
        return start
    wrapped = int(float(start)) % 2**64
    return abs(wrapped - 2**64 if wrapped > LARGEST else wrapped)
