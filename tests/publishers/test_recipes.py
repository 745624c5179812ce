"""The recipes of docs/publishing.md on the real generators: `wholefeed check` reports nothing."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo.proxy_process import free_port
from tests.feeds import own_ids
from tests.generators import HUGO, JEKYLL, PELICAN, RAN, Generator, write
from tests.origin import Origin
from tests.repository import DOCS
from tests.running import a_config, running
from wholefeed.cli.main import main

RECIPES = DOCS / "publishing"
SLICE = 10
"""Entries of an archive document in the recipes."""


@dataclass(frozen=True)
class Recipe:
    """A generator's files for a site with archives."""

    generator: Generator
    posts: str
    """Folder of posts in a site."""
    post: Callable[[int], tuple[str, str]]
    """Makes the name and the text of a post by its number."""
    site: dict[str, str]
    """A site's files beside the recipe: texts by name. They precede the recipe's own."""

    def make(self, folder: Path) -> None:
        """Make a site without posts."""
        shutil.copytree(RECIPES / self.generator.name, folder)
        (folder / self.posts).mkdir(parents=True)
        paths = {name: folder / name for name in self.site}
        own = {name: path.read_text("utf-8") if path.exists() else "" for name, path in paths.items()}
        write(folder, {name: text + own[name] for name, text in self.site.items()})

    def build(self, folder: Path, posts: range, url: str) -> dict[str, bytes]:
        """Add posts, build the site, and return its published files by path."""
        write(folder / self.posts, dict(map(self.post, posts)))
        output = folder.parent / f"{folder.name}-output"
        self.generator.build(folder, output, url)
        files = (path for path in output.rglob("*") if path.is_file())
        return {f"/{path.relative_to(output).as_posix()}": path.read_bytes() for path in files}


def day(number: int) -> str:
    """The day of a post: two of each month."""
    return f"{2020 + number // 24}-{number % 24 // 2 + 1:02}-{number % 2 * 14 + 1:02}"


TEXT = 'A <em>post</em> & "more" <https://example.org/>, number {}.\n'


def with_front_matter(number: int) -> str:
    return f'---\ntitle: "Post {number} & <co>"\ndate: {day(number)}T10:00:00Z\n---\n{TEXT.format(number)}'


HUGO_RECIPE = Recipe(
    generator=HUGO,
    posts="content/posts",
    post=lambda number: (f"post-{number}.md", with_front_matter(number)),
    site={
        "hugo.toml": 'title = "A site & more"\ntimeZone = "UTC"\n',
        "layouts/_default/single.html": "<h1>{{ .Title }}</h1>{{ .Content }}",
        "layouts/_default/list.html": "<h1>{{ .Title }}</h1>",
    },
)
JEKYLL_RECIPE = Recipe(
    generator=JEKYLL,
    posts="_posts",
    post=lambda number: (f"{day(number)}-post-{number}.md", with_front_matter(number)),
    site={
        "_config.yml": 'title: "A site & more"\ntimezone: UTC\n',
    },
)
PELICAN_RECIPE = Recipe(
    generator=PELICAN,
    posts="content",
    post=lambda number: (
        f"post-{number}.rst",
        f"Post {number} & <co>\n{'#' * 20}\n\n:date: {day(number)}T10:00:00Z\n\n{TEXT.format(number)}",
    ),
    site={
        "pelicanconf.py": 'SITENAME = "A site & more"\nAUTHOR = "Ann"\nTIMEZONE = "UTC"\nPATH = "content"\n',
    },
)


@pytest.fixture(
    params=[HUGO_RECIPE, JEKYLL_RECIPE, PELICAN_RECIPE], ids=lambda recipe: str(recipe.generator.name)
)
def recipe(request: pytest.FixtureRequest) -> Recipe:
    """Each recipe with an installed generator."""
    found: Recipe = request.param
    found.generator.require()
    request.node.user_properties.append(RAN)
    return found


def serve(origin: Origin, files: dict[str, bytes]) -> None:
    """Publish a site as a server of files does."""
    for path, body in files.items():
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        origin.publish(path, body, content_type="application/xml", etag=etag)


def archives(files: dict[str, bytes]) -> dict[str, bytes]:
    """The archive documents, full ones all."""
    return {path: body for path, body in files.items() if path.startswith("/feed/archive-")}


async def checked(url: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run the command; return its exit code and its output, except the all-clear sentence."""
    capsys.readouterr()
    code = await asyncio.to_thread(main, ["check", url])
    return code, capsys.readouterr().out.partition("\nAll is well")[0]


async def test_what_a_recipe_publishes_is_whole_and_its_archives_stay(
    recipe: Recipe,
    origin: Origin,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """RFC 5005, section 4: `check` reports nothing for a site of 45 posts, and the proxy gives all as
    `complete`. Further posts appear too, and change no byte of a linked archive document."""
    monkeypatch.setenv("WHOLEFEED_FETCH_ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("WHOLEFEED_SERVER_PORT", str(free_port()))
    folder, url, feed = tmp_path / "site", origin.url(""), origin.url("/feed.xml")
    recipe.make(folder)
    first = await asyncio.to_thread(recipe.build, folder, range(45), url)
    serve(origin, first)
    assert len(archives(first)) == 45 // SLICE
    assert await checked(feed, capsys) == (0, "4 documents, 45 entries (archived): 0 errors, 0 warnings")
    async with running(a_config(tmp_path)) as proxy:
        reply = await proxy.whole(feed)
        assert (reply.state, len(own_ids(reply.body))) == ("complete", 45)

        again = await asyncio.to_thread(recipe.build, folder, range(45, 48), url)
        assert archives(again) == archives(first)

        third = await asyncio.to_thread(recipe.build, folder, range(48, 58), url)
        linked = re.findall(rb'rel="prev-archive" href="[^"]*(/feed/[^"]+)"', b"".join(first.values()))
        assert sorted({each.decode() for each in linked}) == [f"/feed/archive-{n}.xml" for n in (1, 2, 3)]
        assert {path: third[path.decode()] for path in linked} == {
            path: first[path.decode()] for path in linked
        }
        gained = set(third["/feed/archive-4.xml"].splitlines()) ^ set(
            first["/feed/archive-4.xml"].splitlines()
        )
        assert [b"next-archive" in line for line in gained] == [True]

        serve(origin, third)
        assert (await checked(feed, capsys))[0] == 0
        proxy.clock.advance(86_400)
        reply = await proxy.refreshed(feed)
        assert (reply.state, len(set(own_ids(reply.body)))) == ("complete", 58)
