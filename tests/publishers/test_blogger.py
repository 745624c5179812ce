"""The simulator of Blogger."""

from __future__ import annotations

import pytest

from tests.origin import Origin
from tests.publishers.blogger import Blogger
from tests.publishers.reading import read


@pytest.mark.parametrize(("query", "pages"), [("", [25, 25, 10]), ("?max-results=500", [50, 10])])
async def test_links_lead_through_all_pages(query: str, pages: list[int], origin: Origin) -> None:
    """`next` keeps the size of the page, which has a limit; the last page has none."""
    blogger = Blogger(origin, posts=60, most=50)
    found = [await read(blogger.feed_url() + query)]
    while (url := found[-1].link("next")) and len(found) < 10:
        found.append(await read(url))
    assert [len(page.identities) for page in found] == pages
    shown = [each for page in found for each in page.identities]
    assert shown == [*map(blogger.identity, reversed(blogger.posts))]
    assert found[-1].link("previous") is not None


async def test_an_edited_post_stays_where_it_is_unless_asked_otherwise(origin: Origin) -> None:
    """By date of publication at first; `orderby=updated` has it on top."""
    blogger = Blogger(origin, posts=60)
    before = (await read(blogger.feed_url())).identities
    blogger.edit(blogger.posts[0])
    assert (await read(blogger.feed_url())).identities == before
    assert (await read(f"{blogger.feed_url()}?orderby=updated")).identities[0] == blogger.identity(
        blogger.posts[0]
    )
