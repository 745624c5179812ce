"""Layouts that Hugo builds, in the manner of themes that many people use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from tests.generators import HUGO, write
from tests.sites.posts import Post, posts
from tests.sites.site import Layout

HEAD: Final = """\
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ if .IsHome }}{{ site.Title }}{{ else }}{{ .Title }} | {{ site.Title }}{{ end }}</title>
<link rel="canonical" href="{{ .Permalink }}">
{{ with site.Home.OutputFormats.Get "rss" -}}
<link rel="alternate" type="application/rss+xml" href="{{ .Permalink }}" title="{{ site.Title }}">
{{ end -}}
<meta property="og:title" content="{{ .Title }}">
{{ if and .IsPage (eq .Section "posts") -}}
<meta property="og:type" content="article">
<meta property="article:published_time" content="{{ .Date.Format "2006-01-02T15:04:05Z07:00" }}">
{{ else -}}
<meta property="og:type" content="website">
{{ end -}}
"""
MENU: Final = """\
<header class="header"><nav class="nav">
<div class="logo"><a href="{{ "/" | relURL }}" accesskey="h">{{ site.Title }}</a></div>
<ul id="menu">
{{ range site.Menus.main }}<li><a href="{{ .URL | relURL }}"><span>{{ .Name }}</span></a></li>
{{ end }}</ul>
</nav></header>
"""
FOOTER: Final = """\
<footer class="footer"><span>&copy; 2024 <a href="{{ "/" | relURL }}">{{ site.Title }}</a></span>
<span>Powered by <a href="https://gohugo.io/">Hugo</a></span></footer>
"""
SINGLE: Final = """\
{{ define "main" }}
<article class="post-single">
<header class="post-header"><h1 class="post-title">{{ .Title }}</h1>
<div class="post-meta">
<time datetime="{{ .Date.Format "2006-01-02" }}">{{ .Date.Format "January 2, 2006" }}</time>
</div></header>
<div class="post-content">{{ .Content }}</div>
<footer class="post-footer">
<ul class="post-tags">
{{ range .GetTerms "tags" }}<li><a href="{{ .RelPermalink }}">{{ .Title }}</a></li>{{ end }}
</ul>
<nav class="paginav">
{{ with .NextInSection -}}
<a class="prev" href="{{ .Permalink }}"><span class="title">« Prev</span><br><span>{{ .Title }}</span></a>
{{ end }}{{ with .PrevInSection -}}
<a class="next" href="{{ .Permalink }}"><span class="title">Next »</span><br><span>{{ .Title }}</span></a>
{{ end }}</nav>
</footer>
</article>
{{ end }}
"""
NAMES: Final = """\
{{ define "main" }}
<h1>{{ .Title }}</h1>
<ul class="terms">{{ range .Data.Terms.ByCount }}
<li><a href="{{ .Page.RelPermalink }}">{{ .Page.Title }} <sup>{{ .Count }}</sup></a></li>
{{ end }}</ul>
{{ end }}
"""


def base(before: str = MENU, behind: str = FOOTER, main: str = '<main class="main">{}</main>') -> str:
    """Make the frame of all pages of a theme."""
    body = before + main.format('{{ block "main" . }}{{ end }}') + behind
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{HEAD}</head>\n<body>\n{body}</body>\n</html>\n'


def config(title: str, *, feed_entries: int, menu: dict[str, str], more: str = "") -> str:
    """Make hugo.toml; `more` begins with plain settings."""
    entries = "".join(
        f'[[menu.main]]\nname = "{name}"\nurl = "{url}"\nweight = {weight}\n'
        for weight, (name, url) in enumerate(menu.items(), 1)
    )
    return (
        f'title = "{title}"\nlanguageCode = "en"\ntimeZone = "UTC"\n{more}\n'
        f"[services.rss]\nlimit = {feed_entries}\n{entries}"
    )


def page(title: str, *, layout: str = "", text: str = "", **more: object) -> str:
    """Make a page that is no post."""
    return (
        f"{json.dumps({'title': title, 'layout': layout, **more}, ensure_ascii=False, indent=1)}\n\n{text}\n"
    )


def post_files(written: list[Post]) -> dict[str, str]:
    """Make the sources of posts."""
    return {
        f"content/posts/{number}.md": page(
            post.title,
            text="\n\n".join(post.text),
            date=post.date.isoformat(),
            slug=post.slug,
            tags=post.tags,
        )
        for number, post in enumerate(written)
    }


def hugo(
    kind: str,
    written: list[Post],
    files: dict[str, str],
    *,
    feed_path: str = "/index.xml",
    lists: tuple[str, ...] = (),
    path: str = "",
    answers_all: bool = False,
) -> Layout:
    """Make a layout: `files` are its theme, its configuration and what else it publishes."""

    def make(folder: Path) -> None:
        common = {
            "layouts/_default/baseof.html": base(),
            "layouts/_default/single.html": SINGLE,
            "layouts/_default/terms.html": NAMES,
            "content/about.md": page("About", text="Somebody who writes."),
        }
        write(folder, {**common, **post_files(written), **files})

    return Layout(
        kind=kind,
        feed_path=path + feed_path,
        lists=lists,
        make=make,
        generator=HUGO,
        base=path,
        answers_all=answers_all,
    )


# One page that has all


CARDS: Final = """\
{{ define "main" }}
{{ range (.Paginate (where site.RegularPages "Section" "posts") 5).Pages }}
<article class="post-entry">
<header class="entry-header"><h2 class="entry-hint-parent">{{ .Title }}</h2></header>
<div class="entry-content"><p>{{ .Summary | plainify }}...</p></div>
<footer class="entry-footer"><span title="{{ .Date }}">{{ .Date.Format "January 2, 2006" }}</span></footer>
<a class="entry-link" aria-label="post link to {{ .Title | plainify }}" href="{{ .Permalink }}"></a>
</article>
{{ end }}
{{ if gt .Paginator.TotalPages 1 }}<footer class="page-footer"><nav class="pagination">
{{ with .Paginator.Prev }}<a class="prev" href="{{ .URL | absURL }}">«&nbsp;Prev&nbsp;</a>{{ end }}
{{ with .Paginator.Next }}<a class="next" href="{{ .URL | absURL }}">Next&nbsp;&nbsp;»</a>{{ end }}
</nav></footer>{{ end }}
{{ end }}
"""
PAPERMOD_ARCHIVES: Final = """\
{{ define "main" }}
<header class="page-header"><h1>{{ .Title }}</h1></header>
{{ range (where site.RegularPages "Section" "posts").GroupByPublishDate "2006" }}
<div class="archive-year">
<h2 class="archive-year-header" id="{{ .Key }}">
<a class="archive-header-link" href="#{{ .Key }}">{{ .Key }}</a>
<sup class="archive-count">&nbsp;{{ len .Pages }}</sup></h2>
{{ range .Pages.GroupByDate "January" }}
<div class="archive-month">
<h3 class="archive-month-header">{{ .Key }}<sup class="archive-count">&nbsp;{{ len .Pages }}</sup></h3>
<div class="archive-posts">
{{ range .Pages }}<div class="archive-entry">
<h3 class="archive-entry-title entry-hint-parent">{{ .Title }}</h3>
<div class="archive-meta"><span title="{{ .Date }}">{{ .Date.Format "January 2, 2006" }}</span></div>
<a class="entry-link" aria-label="post link to {{ .Title | plainify }}" href="{{ .Permalink }}"></a>
</div>
{{ end }}</div>
</div>
{{ end }}
</div>
{{ end }}
{{ end }}
"""
YEARS_ON_ONE_PAGE: Final = """\
{{ define "main" }}
<h1>{{ .Title }}</h1>
<p>Everything since the beginning. There is <a href="{{ "/index.xml" | relURL }}">a feed</a>, too.</p>
{{ range (where site.RegularPages "Section" "posts").GroupByDate "2006" }}
<h2>{{ .Key }}</h2>
<ul class="archive-list">
{{ range .Pages -}}
<li><span class="day">{{ .Date.Format "Jan 02" }}</span> <a href="{{ .RelPermalink }}">{{ .Title }}</a></li>
{{ end }}</ul>
{{ end }}
{{ end }}
"""
TABLE: Final = """\
{{ define "main" }}
<h1>{{ .Title }}</h1>
<table>
<thead><tr><th>Date</th><th>Title</th><th>Topics</th></tr></thead>
<tbody>
{{ range .Pages }}<tr>
<td>{{ .Date.Format "2006-01-02" }}</td>
<td><a href="{{ .RelPermalink }}">{{ .Title }}</a></td>
<td>{{ range .GetTerms "tags" }}<a href="{{ .RelPermalink }}">{{ .Title }}</a> {{ end }}</td>
</tr>
{{ end }}</tbody>
</table>
{{ end }}
"""
RECENT: Final = """\
{{ define "main" }}
<section class="intro"><h1>Hello</h1>
<p>I write and mend things. Read more <a href="{{ "/about/" | relURL }}">about me</a>.</p></section>
<section class="recent"><h2>Recent posts</h2>
<ul>{{ range first 5 (where site.RegularPages "Section" "posts") -}}
<li><a href="{{ .RelPermalink }}">{{ .Title }}</a></li>
{{ end }}</ul>
</section>
{{ end }}
"""

PAPERMOD: Final = hugo(
    "an archive page by year and month, beside a front page of cards whose links have no text (PaperMod)",
    posts(110, 1),
    {
        "hugo.toml": config(
            "Paper", feed_entries=10, menu={"Archive": "/archives/", "Tags": "/tags/", "About": "/about/"}
        ),
        "layouts/index.html": CARDS,
        "layouts/_default/list.html": CARDS.replace('where site.RegularPages "Section" "posts"', ".Pages"),
        "layouts/_default/archives.html": PAPERMOD_ARCHIVES,
        "content/archives.md": page("Archive", layout="archives"),
    },
    lists=("archives/index.html",),
)
BY_YEAR: Final = hugo(
    "an archive page with days under headings of years, beside posts at the site's root",
    posts(90, 2, avoiding=("about", "everything", "archive", "tags")),
    {
        "hugo.toml": config(
            "Long shelf",
            feed_entries=12,
            menu={"Archive": "/everything/", "About": "/about/"},
            more='[permalinks]\nposts = "/:slug/"',
        ),
        "layouts/index.html": RECENT,
        "layouts/_default/list.html": RECENT,
        "layouts/_default/everything.html": YEARS_ON_ONE_PAGE,
        "content/everything.md": page("Archive", layout="everything"),
    },
    lists=("everything/index.html",),
)
IN_A_TABLE: Final = hugo(
    "a table of all posts at /blog/, the site in a folder of its host",
    posts(60, 3),
    {
        "hugo.toml": config(
            "Tables",
            feed_entries=8,
            menu={"Blog": "/blog/", "About": "/about/"},
            more='[permalinks]\nposts = "/blog/:slug/"',
        ),
        "layouts/index.html": RECENT,
        "layouts/_default/list.html": RECENT,
        "layouts/posts/list.html": TABLE,
        "content/posts/_index.md": page("Blog", url="/blog/"),
    },
    path="/~ann",
    lists=("~ann/blog/index.html",),
)

# Numbered pages


OLDER: Final = """\
{{ define "main" }}
<h1>{{ .Title }}</h1>
{{ $pages := .Paginate .Pages 20 }}
<div class="posts">
{{ range $pages.Pages }}<section class="summary"><h2><a href="{{ .RelPermalink }}">{{ .Title }}</a></h2>
<time datetime="{{ .Date.Format "2006-01-02T15:04:05Z07:00" }}">{{ .Date.Format "2 Jan 2006" }}</time>
<div>{{ .Summary }}</div>
{{ if .Truncated }}<a href="{{ .RelPermalink }}">Continue reading →</a>{{ end }}</section>
{{ end }}</div>
<nav class="pages">
{{ if $pages.HasPrev }}<a rel="prev" href="{{ $pages.Prev.URL }}">← Newer posts</a>{{ end }}
{{ if $pages.HasNext }}<a rel="next" href="{{ $pages.Next.URL }}">Older posts →</a>{{ end }}
</nav>
{{ end }}
"""

OLDER_POSTS: Final = hugo(
    'a section /posts/ in pages, linked with rel=next and "Older posts"',
    posts(130, 4),
    {
        "hugo.toml": config(
            "Older coats", feed_entries=10, menu={"Posts": "/posts/", "Tags": "/tags/", "About": "/about/"}
        ),
        "layouts/index.html": RECENT,
        "layouts/_default/list.html": OLDER,
    },
    lists=("posts/index.html", "posts/page/*/index.html"),
)

# Two levels


YEAR: Final = """\
{{ define "main" }}
<h1>{{ .Title }}</h1>
<ul class="year">
{{ range .Pages -}}
<li><a href="{{ .RelPermalink }}">{{ .Title }}</a> <small>{{ .Date.Format "2 January" }}</small></li>
{{ end }}</ul>
{{ end }}
"""
YEARS_INDEX: Final = """\
{{ define "main" }}
<h1>{{ .Title }}</h1>
<ul class="years">{{ range .Pages.ByTitle.Reverse -}}
<li><a href="{{ .RelPermalink }}">{{ .Title }}</a> ({{ len .Pages }})</li>
{{ end }}</ul>
{{ end }}
"""


def with_years(written: list[Post]) -> dict[str, str]:
    """Make the sources of posts that belong to their years."""
    return {
        f"content/posts/{number}.md": page(
            post.title,
            text="\n\n".join(post.text),
            date=post.date.isoformat(),
            slug=post.slug,
            years=[f"{post.date:%Y}"],
        )
        for number, post in enumerate(written)
    }


YEARS: Final = hugo(
    "pages of years, /2019/, linked from an archive, posts below them with month and day",
    posts(140, 5),
    {
        "hugo.toml": config(
            "Years",
            feed_entries=15,
            menu={"Archive": "/archive/", "About": "/about/"},
            more='[taxonomies]\nyear = "years"\n[permalinks]\nyears = "/:slug/"\n'
            'posts = "/:year/:month/:day/:slug/"',
        ),
        **with_years(posts(140, 5)),
        "layouts/index.html": RECENT,
        "layouts/_default/list.html": YEAR,
        "layouts/_default/terms.html": YEARS_INDEX,
        "content/years/_index.md": page("Archive", url="/archive/"),
    },
    lists=("archive/index.html", "[12]???/index.html"),
)

# Without a list


DOCUMENTATION: Final = """\
{{ define "main" }}
<article class="markdown"><h1>{{ .Title }}</h1>{{ .Content }}</article>
<footer class="md-footer"><nav>
{{ with .PrevInSection -}}
<a href="{{ .RelPermalink }}" class="md-footer__link" rel="prev"><span>Previous</span> {{ .Title }}</a>
{{ end }}{{ with .NextInSection -}}
<a href="{{ .RelPermalink }}" class="md-footer__link" rel="next"><span>Next</span> {{ .Title }}</a>
{{ end }}</nav></footer>
{{ end }}
"""
BOOK_MENU: Final = """\
<nav class="md-nav md-nav--primary"><a href="{{ "/" | relURL }}">{{ site.Title }}</a>
<ul>{{ range (where site.RegularPages "Section" "posts").ByTitle -}}
<li class="md-nav__item"><a href="{{ .RelPermalink }}" class="md-nav__link">{{ .Title }}</a></li>
{{ end }}</ul></nav>
"""
SIDEBAR: Final = """\
<aside class="sidebar">
<section class="widget"><h3>Recent</h3>
<ul>{{ range first 8 (where site.RegularPages "Section" "posts") -}}
<li><a href="{{ .RelPermalink }}">{{ .Title }}</a></li>
{{ end }}</ul></section>
<section class="widget"><h3>Popular</h3>
<ul>{{ range first 5 (sort (where site.RegularPages "Section" "posts") "Title") -}}
<li><a href="{{ .RelPermalink }}">{{ .Title }}</a></li>
{{ end }}</ul></section>
</aside>
"""
LANDING: Final = """\
{{ define "main" }}<section class="hero">
<h1>{{ site.Title }}</h1><p>A place for words.</p>
</section>{{ end }}
"""
SAME_AGAIN: Final = """\
{{ define "main" }}
{{ range first 10 (where site.RegularPages "Section" "posts") }}
<article><h2><a href="{{ .RelPermalink }}">{{ .Title }}</a></h2>{{ .Summary }}</article>
{{ end }}
<nav class="pages"><a rel="next" href="{{ "/page/2/" | relURL }}">Older posts →</a></nav>
{{ end }}
"""

SIDEBARS: Final = hugo(
    "sidebars alone: Recent and Popular beside each page, and a front page that lists nothing",
    posts(50, 20, avoiding=("about",)),
    {
        "hugo.toml": config(
            "Aside", feed_entries=10, menu={"About": "/about/"}, more='[permalinks]\nposts = "/:slug/"'
        ),
        "layouts/_default/baseof.html": base(behind=SIDEBAR + FOOTER),
        "layouts/index.html": LANDING,
        "layouts/_default/list.html": LANDING,
    },
)
MANUAL: Final = hugo(
    "documentation: a menu of all pages in its own order, rel=next to the next page of the menu (mkdocs)",
    posts(45, 21, odd=0),
    {
        "hugo.toml": config("Manual", feed_entries=10, menu={}, more='[permalinks]\nposts = "/guide/:slug/"'),
        "layouts/_default/baseof.html": base(before=BOOK_MENU),
        "layouts/index.html": LANDING,
        "layouts/_default/list.html": LANDING,
        "layouts/posts/single.html": DOCUMENTATION,
    },
)
FORBIDDEN: Final = hugo(
    "a list in pages that robots.txt forbids",
    posts(60, 22),
    {
        "hugo.toml": config("Keep out", feed_entries=10, menu={"Posts": "/posts/"}),
        "static/robots.txt": "User-agent: *\nDisallow: /\n",
        "layouts/index.html": RECENT,
        "layouts/_default/list.html": OLDER,
    },
)
EVERY_PATH: Final = hugo(
    "a front page of the newest posts that each path answers with, /page/2/ and /archive/ too, by status 200",
    posts(40, 23),
    {
        "hugo.toml": config("Soft", feed_entries=10, menu={"Archive": "/archive/", "Blog": "/blog/"}),
        "layouts/index.html": SAME_AGAIN,
        "layouts/_default/list.html": LANDING,
    },
    answers_all=True,
)

LAYOUTS: Final = {
    "hugo archive by month": PAPERMOD,
    "hugo archive by year": BY_YEAR,
    "hugo table": IN_A_TABLE,
    "hugo older posts": OLDER_POSTS,
    "hugo years": YEARS,
    "no list: sidebars": SIDEBARS,
    "no list: documentation": MANUAL,
    "no list: forbidden": FORBIDDEN,
    "no list: every path answers": EVERY_PATH,
}
