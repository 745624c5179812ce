"""Layouts that Jekyll builds: its theme minima as it is, and in two ways that people change it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from tests.generators import JEKYLL, write
from tests.sites.posts import Post, posts
from tests.sites.site import Layout

PACKAGES: Final = ("minima", "jekyll-feed", "jekyll-seo-tag", "jekyll-paginate")


@cache
def lacks() -> str:
    """Say what is not installed."""
    if lacking := JEKYLL.lacks():
        return lacking
    wanted = "; ".join(f"gem '{name}'" for name in PACKAGES)
    asked = subprocess.run(["ruby", "-e", wanted], capture_output=True, check=False)
    return "" if asked.returncode == 0 else f"one of {', '.join(PACKAGES)}"


WITH_MINIMA: Final = replace(JEKYLL, lacks=lacks)


def config(title: str, *, feed_entries: int, more: str) -> str:
    return (
        f"title: {title}\ntimezone: UTC\ntheme: minima\n"
        "plugins: [jekyll-feed, jekyll-seo-tag, jekyll-paginate]\n"
        f"feed:\n  posts_limit: {feed_entries}\n{more}\n"
    )


def post_file(post: Post, *, category: bool) -> tuple[str, str]:
    """Make the name and the text of a post's source."""
    head = {
        "layout": "post",
        "title": post.title,
        "date": f"{post.date:%Y-%m-%d %H:%M:%S %z}",
        "tags": [tag.lower() for tag in post.tags],
        **({"categories": [post.tags[0].lower()]} if category else {}),
    }
    lines = "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items())
    return f"_posts/{post.date:%Y-%m-%d}-{post.slug}.md", f"---\n{lines}\n---\n" + "\n\n".join(
        post.text
    ) + "\n"


def jekyll(
    kind: str,
    written: list[Post],
    files: dict[str, str],
    *,
    lists: tuple[str, ...],
    path: str = "",
    category: bool = False,
) -> Layout:
    """Make a layout: `files` are its configuration, its pages and what it changes in the theme."""

    def make(folder: Path) -> None:
        write(folder, dict(post_file(post, category=category) for post in written))
        write(
            folder, {"about.md": "---\nlayout: page\ntitle: About\npermalink: /about/\n---\nMe.\n", **files}
        )

    return Layout(
        kind=kind, feed_path=f"{path}/feed.xml", lists=lists, make=make, generator=WITH_MINIMA, path=path
    )


PAGINATED: Final = """\
---
layout: default
---
<div class="home">
<ul class="post-list">{% for post in paginator.posts %}
<li><a class="post-meta" href="{{ post.url | relative_url }}">{{ post.date | date: "%b %-d, %Y" }}</a>
<h3><a class="post-link" href="{{ post.url | relative_url }}">{{ post.title | escape }}</a></h3>
{{ post.excerpt }}
<p><a href="{{ post.url | relative_url }}">Continue reading</a></p></li>{% endfor %}
</ul>
<div class="pager"><ul class="pagination">
{% if paginator.previous_page %}<li><a href="{{ paginator.previous_page_path | relative_url }}"
 class="previous-page">{{ paginator.previous_page }}</a></li>{% endif %}
<li><div class="current-page">{{ paginator.page }}</div></li>
{% if paginator.next_page %}<li><a href="{{ paginator.next_page_path | relative_url }}"
 class="next-page">{{ paginator.next_page }}</a></li>{% else %}<li>•</li>{% endif %}
</ul></div>
</div>
"""
ARCHIVE: Final = """\
---
layout: page
title: Archive
permalink: /archive/
---
{% assign years = site.posts | group_by_exp: "post", "post.date | date: '%Y'" %}
{% for year in years %}
<h3>{{ year.name }}</h3>
<table>{% for post in year.items %}
<tr><td>{{ post.date | date: "%d %b" }}</td>
<td><a href="{{ post.url | relative_url }}">{{ post.title | escape }}</a></td></tr>
{% endfor %}</table>
{% endfor %}
"""
LATEST: Final = """\
---
layout: default
---
{% for post in site.posts limit: 3 %}
<article><h2><a href="{{ post.url | relative_url }}">{{ post.title | escape }}</a></h2>
{{ post.content }}</article>
{% endfor %}
<p>More in <a href="{{ "/archive/" | relative_url }}">the archive</a>.</p>
"""

ON_THE_FRONT: Final = jekyll(
    "minima as it is: all posts on the front page, their categories in their paths",
    posts(45, 40),
    {
        "_config.yml": config("Mini", feed_entries=10, more=""),
        "index.md": "---\nlayout: home\n---\n",
    },
    lists=("index.html",),
    category=True,
)
NUMBERED: Final = jekyll(
    "numbered front pages, /page2/, with excerpts; date, title and a link at the end lead to a post",
    posts(50, 41),
    {
        "_config.yml": config("Leaves", feed_entries=8, more="paginate: 6\npermalink: pretty"),
        "_layouts/home.html": PAGINATED,
        "index.html": "---\nlayout: home\n---\n",
    },
    lists=("index.html", "page[0-9]*/index.html"),
)
ARCHIVED: Final = jekyll(
    "an archive of tables under years, the site in a folder of its host",
    posts(40, 42, avoiding=("about", "archive")),
    {
        "_config.yml": config("Attic", feed_entries=5, more="baseurl: /blog\npermalink: /:title/"),
        "_layouts/latest.html": LATEST,
        "index.md": "---\nlayout: latest\n---\n",
        "archive.md": ARCHIVE,
    },
    lists=("blog/archive/index.html",),
    path="/blog",
)

LAYOUTS: Final = {
    "jekyll front page": ON_THE_FRONT,
    "jekyll numbered pages": NUMBERED,
    "jekyll archive by year": ARCHIVED,
}
