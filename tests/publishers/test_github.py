"""The simulator of GitHub."""

from __future__ import annotations

from tests.origin import Origin
from tests.publishers.github import GitHub
from tests.publishers.reading import read


async def test_releases_by_ten_behind_a_tag(origin: Origin) -> None:
    """Each page begins behind the tag that its URL names, and behind the oldest there is nothing."""
    github = GitHub(origin, releases=25)
    pages = [await read(github.feed_url())]
    while pages[-1].identities and len(pages) < 10:
        tag = pages[-1].identities[-1].rpartition("/")[2]
        pages.append(await read(f"{github.feed_url()}?after={tag}"))
    assert [len(page.identities) for page in pages] == [10, 10, 5, 0]
    assert [each for page in pages for each in page.identities] == [*map(github.identity, github.releases)]
    assert pages[0].link("next") is None


async def test_a_new_release_shifts_no_page_behind_a_tag(origin: Origin) -> None:
    """A page depends on its tag; a deleted tag is as unknown as any, and other parameters mean nothing."""
    github = GitHub(origin, releases=25)
    url = f"{github.feed_url('tags')}?after={github.tag(github.releases[9])}"
    before = await read(url)
    github.add()
    assert (await read(url)).identities == before.identities
    github.delete(github.releases[10])
    newest = (await read(github.feed_url("tags"))).identities
    assert (await read(url)).identities == newest
    assert (await read(f"{github.feed_url('tags')}?page=2")).identities == newest
