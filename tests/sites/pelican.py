"""Layouts that Pelican builds: its two themes as they are, and with other URLs, archives and sidebars."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Final

from tests.generators import PELICAN, write
from tests.sites.posts import Post, posts
from tests.sites.site import Layout

ARTICLE: Final = """\
{% extends "!theme/article.html" %}
{% block head %}{{ super() }}
<meta property="og:type" content="article">
<meta property="og:title" content="{{ article.title|striptags|e }}">
<meta property="article:published_time" content="{{ article.date.isoformat() }}">
{% endblock %}
"""


def config(title: str, *, feed_entries: int, page_posts: int | None, **more: object) -> str:
    settings = {
        "SITENAME": title,
        "AUTHOR": "Ann",
        "TIMEZONE": "UTC",
        "PATH": "content",
        "THEME": "simple",
        "THEME_TEMPLATES_OVERRIDES": ["templates"],
        "FEED_ALL_ATOM": "feeds/all.atom.xml",
        "CATEGORY_FEED_ATOM": None,
        "FEED_MAX_ITEMS": feed_entries,
        "DEFAULT_PAGINATION": page_posts,
        "DIRECT_TEMPLATES": ["index"],
        "SLUGIFY_SOURCE": "basename",
        **more,
    }
    return "".join(f"{name} = {value!r}\n" for name, value in settings.items())


def article(post: Post) -> str:
    """Make a post's source."""
    said = {"date": f"{post.date:%Y-%m-%d %H:%M}", "slug": post.slug, "category": post.tags[0]}
    metas = "".join(f'<meta name="{name}" content="{escape(text)}">' for name, text in said.items())
    body = "".join(f"<p>{text}</p>\n" for text in post.text)
    return f"<html><head><title>{escape(post.title)}</title>{metas}</head><body>\n{body}</body></html>\n"


def pelican(
    kind: str,
    written: list[Post],
    files: dict[str, str],
    *,
    lists: tuple[str, ...],
    feed_path: str = "/feeds/all.atom.xml",
) -> Layout:
    """Make a layout: `files` are its configuration and what it changes in the theme."""

    def make(folder: Path) -> None:
        write(folder, {f"content/{number}.html": article(post) for number, post in enumerate(written)})
        write(folder, {"templates/article.html": ARTICLE, **files})

    return Layout(kind=kind, feed_path=feed_path, lists=lists, make=make, generator=PELICAN)


MONTHS_ASIDE: Final = """\
<div id="sidebar"><h4>Archives</h4>
<ul>{% for each in period_archives.month|sort(attribute="period_num", reverse=true) %}
<li><a href="{{ SITEURL }}/{{ each.url }}">{{ each.period[1] }} {{ each.period[0] }}</a>
<span>{{ each.articles|length }}</span></li>
{% endfor %}</ul></div>
"""
EXCERPT: Final = """\
<article><h2><a href="{{ SITEURL }}/{{ article.url }}">{{ article.title }}</a></h2>
<time datetime="{{ article.date.isoformat() }}">{{ article.date.strftime("%d.%m.%Y") }}</time>
{{ article.summary }}</article>
"""
FIRST_FIVE: Final = f"""\
{{% extends "base.html" %}}
{{% block content %}}
{{% for article in articles[:5] %}}{EXCERPT}{{% endfor %}}
{MONTHS_ASIDE}
{{% endblock %}}
"""
A_MONTH: Final = f"""\
{{% extends "base.html" %}}
{{% block content %}}<h1>{{{{ period|reverse|join(" ") }}}}</h1>
{{% for article in dates %}}{EXCERPT}{{% endfor %}}
{MONTHS_ASIDE}
{{% endblock %}}
"""
YEARS: Final = """\
{% extends "base.html" %}
{% block content %}<h1>Archives</h1>
<ul>{% for each in period_archives.year|sort(attribute="period_num", reverse=true) %}
<li><a href="{{ SITEURL }}/{{ each.url }}">{{ each.period[0] }}</a></li>
{% endfor %}</ul>
{% endblock %}
"""
A_YEAR: Final = """\
{% extends "base.html" %}
{% block content %}<h1>{{ period|reverse|join(" ") }}</h1>
{% if period|length == 1 %}<p>{% for month, found in dates|groupby("date.month") %}
<a href="{{ SITEURL }}/{{ found[0].date.strftime("%Y/%m/") }}">{{ found[0].date.strftime("%b") }}</a>
{% endfor %}</p>{% endif %}
<ul class="listing">{% for article in dates %}
<li>{{ article.date.strftime("%B %d") }}:
<a href="{{ SITEURL }}/{{ article.url }}">{{ article.title }}</a></li>
{% endfor %}</ul>
{% endblock %}
"""
OLDER_OR_NEWER: Final = """\
<div class="paginator">
{% if articles_page.has_previous() -%}
<a href="{{ SITEURL }}/{{ articles_previous_page.url }}">Newer</a>{% endif %}
{% if articles_page.has_next() -%}
<a href="{{ SITEURL }}/{{ articles_next_page.url }}">Older</a>{% endif %}
</div>
"""
DATED: Final = {
    "ARTICLE_URL": "{date:%Y}/{date:%m}/{slug}/",
    "ARTICLE_SAVE_AS": "{date:%Y}/{date:%m}/{slug}/index.html",
    "MONTH_ARCHIVE_URL": "{date:%Y}/{date:%m}/",
    "MONTH_ARCHIVE_SAVE_AS": "{date:%Y}/{date:%m}/index.html",
}


def pages(url: str, file: str) -> list[tuple[int, str, str]]:
    """Make the setting that says where the pages of a list are, but the first."""
    return [(1, "{url}", "{save_as}"), (2, url, file)]


SIMPLE: Final = pelican(
    "the theme simple as it is: index2.html, relative links, signs as links to the pages",
    posts(70, 50),
    {"pelicanconf.py": config("Simple", feed_entries=10, page_posts=10, RELATIVE_URLS=True)},
    lists=("index.html", "index[0-9]*.html"),
)
NOT_MY_IDEA: Final = pelican(
    "the theme notmyidea as it is, with archives.html in its menu; the newest post stands in an aside",
    posts(60, 51),
    {
        "pelicanconf.py": config(
            "Idea",
            feed_entries=15,
            page_posts=10,
            THEME="notmyidea",
            DIRECT_TEMPLATES=["index", "archives"],
            MENUITEMS=[("Archives", "/archives.html")],
            FEED_ALL_ATOM=None,
            FEED_RSS="feeds/rss.xml",
            FEED_ALL_RSS="feeds/all.rss.xml",
        ),
    },
    feed_path="/feeds/all.rss.xml",
    lists=("archives.html",),
)
MONTHS: Final = pelican(
    "months in a sidebar, /2019/05/, and nothing else that leads further down (Hexo)",
    posts(80, 52, days=8),
    {
        "pelicanconf.py": config("Months", feed_entries=10, page_posts=None, **DATED),
        "templates/index.html": FIRST_FIVE,
        "templates/period_archives.html": A_MONTH,
    },
    lists=("[12]???/[01]?/index.html",),
)
YEARS_AND_MONTHS: Final = pelican(
    "an archive of years, whose pages list their posts and link their months",
    posts(90, 53, days=12),
    {
        "pelicanconf.py": config(
            "Seasons",
            feed_entries=12,
            page_posts=None,
            **DATED,
            YEAR_ARCHIVE_URL="{date:%Y}/",
            YEAR_ARCHIVE_SAVE_AS="{date:%Y}/index.html",
            DIRECT_TEMPLATES=["index", "archives"],
            ARCHIVES_SAVE_AS="archives/index.html",
            MENUITEMS=[("Archives", "/archives/")],
        ),
        "templates/index.html": FIRST_FIVE.replace(MONTHS_ASIDE, ""),
        "templates/period_archives.html": A_YEAR,
        "templates/archives.html": YEARS,
    },
    lists=("archives/index.html", "[12]???/index.html"),
)
QUERIES: Final = pelican(
    "pages by query, /?page=2, beside months in a sidebar",
    posts(100, 54),
    {
        "pelicanconf.py": config(
            "Questions",
            feed_entries=10,
            page_posts=12,
            **DATED,
            PAGINATION_PATTERNS=pages("{base_name}/?page={number}", "{base_name}/index.html?page={number}"),
        ),
        "templates/period_archives.html": A_MONTH,
        "templates/pagination.html": OLDER_OR_NEWER + MONTHS_ASIDE,
    },
    lists=("index.html", "index.html[?]page=*"),
)
COLONS: Final = pelican(
    "pages by number behind a colon, /page:2",
    posts(64, 55),
    {
        "pelicanconf.py": config(
            "Colons",
            feed_entries=7,
            page_posts=9,
            ARTICLE_URL="posts/{slug}.html",
            ARTICLE_SAVE_AS="posts/{slug}.html",
            PAGINATION_PATTERNS=pages("{base_name}/page:{number}", "{base_name}/page:{number}"),
        ),
    },
    lists=("index.html", "page:*"),
)

LAYOUTS: Final = {
    "pelican simple": SIMPLE,
    "pelican notmyidea": NOT_MY_IDEA,
    "pelican months": MONTHS,
    "pelican years and months": YEARS_AND_MONTHS,
    "pelican queries": QUERIES,
    "pelican colons": COLONS,
}
