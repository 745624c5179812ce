"""WordPress: by far the most feeds that people read, and none of them links its history (rules R26 to R30).

What decides here was found by running it (docs/adapters.md): `paged=N` is honoured on every feed of posts,
404 stands behind the last page, a new post moves all pages; by `orderby=ID&order=ASC` they move only where a
post goes live that was written earlier. So pages are asked for by ID, from the last to the first: what a
deletion moves comes later. What a post that goes live moves shows in the validators, which are one pair for
the whole site.
"""

from __future__ import annotations

import re
from typing import Final

from wholefeed.core.adapters.asking import Asking, Job, Outcome, Sight
from wholefeed.core.adapters.wordpress_all import collect_all
from wholefeed.core.adapters.wordpress_dates import BY_DATE, collect_by_date, look_by_date
from wholefeed.core.adapters.wordpress_news import look_for_news
from wholefeed.core.adapters.wordpress_pages import BY_ID, Pages
from wholefeed.core.adapters.wordpress_urls import is_left_alone
from wholefeed.core.terms import Family

_GENERATOR: Final = re.compile(r"^https?://(?:www\.)?wordpress\.(?:org|com)\b", re.IGNORECASE)
_FAMILIES: Final = frozenset({Family.ATOM, Family.RSS, Family.RDF})


class WordPress:
    """A site of WordPress's own making, or of wordpress.com."""

    name: Final = "wordpress"

    def fits(self, sight: Sight) -> bool:
        """Return whether the generator or the link to the REST API says so; comments are left alone."""
        marks = sight.marks
        is_one = bool(_GENERATOR.match(marks.generator) or marks.api_url) and sight.family in _FAMILIES
        if not is_one or marks.has_comments:
            return False
        return not (is_left_alone(sight.url) or is_left_alone(sight.asked_url))

    def collect(self, job: Job) -> Asking[Outcome]:
        """Ask for pages, by ID if that is honoured; where pages are not, by date."""
        pages = Pages(job)
        outcome = yield from collect_all(pages)
        return outcome or (yield from collect_by_date(pages))

    def look(self, job: Job) -> Asking[Outcome]:
        """Ask for what is new: front pages, what was changed, what was added under a new ID."""
        if job.known.way == BY_DATE:
            return (yield from look_by_date(job))
        return (yield from look_for_news(job, has_order=job.known.way == BY_ID))
