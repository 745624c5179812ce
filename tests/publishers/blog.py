"""The posts of a blog, and an author's actions; knows nothing of feeds and URLs.

Dates follow WordPress 6.1. A post with a given date was modified then (also an imported or back-dated one).
An edit is modified now. A scheduled post that goes live keeps both dates.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType

DAY_SECONDS = 86_400
FIRST_AT = 1_546_333_200
"""2019-01-01 09:00 UTC: four days before the oldest post."""
NOW = 1_717_243_200
"""2024-06-01 12:00 UTC: after 490 posts, and before the tests run, so that no date is in their future."""
CHANGE_SECONDS = 60
"""Between one change and the next."""
FREE_IDS = 10
"""IDs below that of the oldest post, as of pages and drafts."""
# Hundreds of posts are looked through for each page that is asked for.
_ID, _PUBLISHED_AT, _MODIFIED_AT = attrgetter("id"), attrgetter("published"), attrgetter("modified")


@dataclass(slots=True)
class Post:
    """A post. `published` and `modified` are seconds since the epoch."""

    id: int
    title: str
    slug: str
    published: int
    modified: int
    content: str
    category: str = "uncategorized"
    author: str = "admin"
    tags: tuple[str, ...] = ()
    status: str = "publish"
    """`publish`, `future` (scheduled) or `trash`."""


@dataclass
class Blog:
    """A site's database.

    Every third post is filed under `news` (the others under `uncategorized`), every fourth is tagged `long`,
    every fifth is by `guest` (the others by `admin`).
    """

    count: int = 300
    title: str = "Some Blog"
    now: int = NOW
    """The site's clock: it advances only with changes."""
    everything: list[Post] = field(default_factory=list)
    comments: int = 25

    def __post_init__(self) -> None:
        for number in range(1, self.count + 1):
            at = FIRST_AT + number * 4 * DAY_SECONDS + number % 7 * 3600
            post = self._make(f"Post {number}", at=at, post_id=FREE_IDS + number)
            post.category = "news" if number % 3 == 0 else "uncategorized"
            post.tags = ("long",) if number % 4 == 0 else ()
            post.author = "guest" if number % 5 == 0 else "admin"

    # ---- What an author does

    def add(self, title: str | None = None, **fields: object) -> Post:
        """Publish a post now. `fields` are those of `Post`."""
        return self._make(title, at=self._tick(), fields=fields)

    def back_date(self, title: str | None = None, *, days: float = 1000.5, **fields: object) -> Post:
        """Publish a post under a date this long ago; its ID is the highest."""
        return self._make(title, at=int(self._tick() - days * DAY_SECONDS), fields=fields)

    def schedule(self, title: str | None = None, *, post_id: int | None = None, **fields: object) -> Post:
        """Write a post for tomorrow; by default its ID is the lowest free one."""
        taken = {post.id for post in self.everything}
        free = next(number for number in itertools.count(1) if number not in taken)
        post = self._make(title, at=self._tick() + DAY_SECONDS, post_id=post_id or free, fields=fields)
        post.status = "future"
        return post

    def go_live(self, post: Post) -> None:
        """Publish a scheduled post."""
        assert post.status == "future"
        self.now = max(self._tick(), post.published)
        post.status = "publish"

    def edit(self, post: Post, **fields: object) -> None:
        """Change a post now: without `fields` its content alone."""
        post.modified = self._tick()
        for name, value in (fields or {"content": f"{post.content} Edited."}).items():
            setattr(post, name, value)

    def bulk_edit(self, posts: Iterable[Post] | None = None, **fields: object) -> None:
        """Change many posts at one instant; without `posts` two of three."""
        now = self._tick()
        chosen = posts if posts is not None else [post for post in self.posts if post.id % 3]
        for post in chosen:
            for name, value in (fields or {"content": f"{post.content} Edited."}).items():
                setattr(post, name, value)
            post.modified = now

    def delete(self, *posts: Post) -> None:
        """Move posts to the trash."""
        self._tick()
        for post in posts:
            post.status = "trash"

    # ---- What a visitor sees

    @property
    def posts(self) -> list[Post]:
        """The published posts, by ID."""
        live = [post for post in self.everything if post.status == "publish"]
        return sorted(live, key=_ID)

    @property
    def modified(self) -> int:
        """Time of the last change visible to visitors, by WordPress's reckoning.

        The latest date among published posts: neither a deletion nor a post with an old date raises it.
        """
        posts = self.posts
        return max([*map(_PUBLISHED_AT, posts), *map(_MODIFIED_AT, posts)], default=FIRST_AT)

    def _tick(self) -> int:
        self.now += CHANGE_SECONDS
        return self.now

    def _make(
        self,
        title: str | None,
        *,
        at: int,
        post_id: int | None = None,
        fields: Mapping[str, object] = MappingProxyType({}),
    ) -> Post:
        number = post_id or max((post.id for post in self.everything), default=FREE_IDS) + 1
        title = title or f"Later post {number}"
        content = f"Body of {title.lower()}. " + "Lorem ipsum dolor sit amet. " * 4
        post = Post(number, title, title.lower().replace(" ", "-"), at, at, content.strip())
        for name, value in fields.items():
            setattr(post, name, value)
        self.everything.append(post)
        return post


def page_of(posts: Sequence[Post], *, key: str, ascending: bool, start: int, count: int) -> list[Post]:
    """Return a part of the posts in this order, as a database with `LIMIT start, count` does.

    The page of equal posts is undefined, and with MariaDB it depends on the page: some stand on two, others
    on none. So here each page has its own order for them.
    """

    sign, factor = 1 if ascending else -1, 2_654_435_761 * (start // max(1, count) + 1)

    def rank(post: Post) -> tuple[int, int]:
        value: int = getattr(post, key)
        return sign * value, post.id * factor % 1_000_003

    return sorted(posts, key=rank)[start : start + count]
