"""Discourse: the posts of a forum, fifty a page.

    posts.rss?before=1234    the fifty posts with the highest numbers below that

Facts, by its source (`app/controllers/posts_controller.rb`, `app/queries/latest_posts_query.rb`): posts
are ordered by number, and `before` is a number; an item's guid is `HOST-post-NUMBER`, in older versions
`post-NUMBER`; posts of users who are gone are left out of a page, so that a short one is not the last. Until
pull request 27098 (May 2024) `before` meant a span of fifty numbers, which may all be of private messages: an
empty page need not be the end. Each answer names its route in the field X-Discourse-Route.

The feeds of a category (25 topics), a tag, a user (50 posts) and the top topics read no parameter for more
(`list_controller.rb`, `tags_controller.rb`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from wholefeed.core.adapters.asking import Asking, Job, Outcome, Sight
from wholefeed.core.adapters.keyset import Keyset, collect_by_key, look_by_key
from wholefeed.core.adapters.urls import has_parameter
from wholefeed.core.terms import Family

_ROUTE: Final = "posts/latest"
_GUID: Final = re.compile(r"(?:.+-)?post-([1-9]\d{0,18})")
_PARAMETER: Final = "before"
_SPAN: Final = 50
"""Numbers of one page, before May 2024."""
_SPANS: Final = 3
"""So many without an entry in a row are taken for the end."""


def number_of(guid: str) -> str | None:
    """Return the number of the post that a guid names."""
    found = _GUID.fullmatch(guid)
    return found.group(1) if found else None


def _behind(key: str) -> Sequence[str]:
    numbers = (int(key) - _SPAN * span for span in range(1, _SPANS + 1))
    return [str(number) for number in numbers if number > 1]


_KEYSET: Final = Keyset(parameter=_PARAMETER, key_of=number_of, is_lasting=True, behind=_behind)


class Discourse:
    """A forum's latest posts."""

    name: Final = "discourse"

    def fits(self, sight: Sight) -> bool:
        """Return whether the answer names the route, and the last post's number."""
        is_one = sight.marks.route == _ROUTE and number_of(sight.marks.last_id) is not None
        return (
            is_one
            and sight.family is Family.RSS
            and not has_parameter(_PARAMETER, sight.url, sight.asked_url)
        )

    def collect(self, job: Job) -> Asking[Outcome]:
        """Ask from the last post down."""
        return collect_by_key(job, _KEYSET)

    def look(self, job: Job) -> Asking[Outcome]:
        """Ask for the posts that the subscription document does not reach."""
        return look_by_key(job, _KEYSET)
