"""Layouts that Hugo builds, in the manner of themes that many people use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from tests.generators import HUGO, write
from tests.sites.posts import Post, posts
from tests.sites.site import URL, Layout

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
{{ range .Params.tags }}<meta property="article:tag" content="{{ . }}">
{{ end }}{{ else -}}
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
    language = '<html lang="{{ site.Language.Lang }}">'
    return f"<!DOCTYPE html>\n{language}\n<head>\n{HEAD}</head>\n<body>\n{body}</body>\n</html>\n"


MINIFIED: Final = "[minify]\nminifyOutput = true\n"
"""Written without the quotes and end tags that HTML does not need."""


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
    """Make the sources of posts; two of them are pinned, where a theme looks for that."""
    return {
        f"content/posts/{number}.md": page(
            post.title,
            text="\n\n".join(post.text),
            date=post.date.isoformat(),
            slug=post.slug,
            tags=post.tags,
            category=post.tags[0],
            years=[f"{post.date:%Y}"],
            pinned=number in (7, 11),
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
    tag: str = "",
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
        path=path,
        url=URL + path,
        tag=tag,
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

LANDING: Final = """\
{{ define "main" }}<section class="hero">
<h1>{{ site.Title }}</h1><p>A place for words.</p>
</section>{{ end }}
"""

PAPERMOD: Final = hugo(
    "an archive page by year and month, beside a front page of cards whose links have no text (PaperMod)",
    posts(110, 1),
    {
        "hugo.toml": config(
            "Paper",
            feed_entries=10,
            menu={"Archive": "/archives/", "Tags": "/tags/", "About": "/about/"},
            more=MINIFIED,
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
        "layouts/index.html": RECENT,
        "layouts/_default/list.html": YEAR,
        "layouts/_default/terms.html": YEARS_INDEX,
        "content/years/_index.md": page("Archive", url="/archive/"),
    },
    lists=("archive/index.html", "[12]???/index.html"),
)

# Pinned, shuffled, from the beginning


SUMMARY: Final = """\
{{ define "summary" }}<article class="post">
<h2 class="post-title"><a href="{{ .RelPermalink }}">{{ .Title }}</a></h2>
<a class="post-date" href="{{ .RelPermalink }}">{{ .Date.Format "Monday, 2 January 2006" }}</a>
<div class="excerpt">{{ .Summary }}</div>
</article>
{{ end }}
"""
PINNED_FIRST: Final = (
    SUMMARY
    + """\
{{ define "main" }}
{{ $all := where site.RegularPages "Section" "posts" }}
{{ $pinned := where $all "Params.pinned" true }}
{{ $pages := .Paginate (union $pinned ($all | complement $pinned)) 8 }}
{{ range $pages.Pages }}{{ template "summary" . }}{{ end }}
<ul class="pagination">
{{ with $pages.Prev }}<li><a href="{{ .URL }}">Newer</a></li>{{ end }}
<li>Page {{ $pages.PageNumber }} of {{ $pages.TotalPages }}</li>
{{ with $pages.Next }}<li><a href="{{ .URL }}">Older</a></li>{{ end }}
</ul>
{{ end }}
"""
)
PINNED_ALWAYS: Final = (
    SUMMARY
    + """\
{{ define "main" }}
{{ $pages := .Paginate (where site.RegularPages "Section" "posts") 15 }}
<div class="posts">
{{ range where site.RegularPages "Params.pinned" true }}{{ template "summary" . }}{{ end }}
{{ range $pages.Pages }}{{ template "summary" . }}{{ end }}
</div>
{{ with $pages.Prev }}<a class="newer" href="{{ .URL }}">« Newer entries</a>{{ end }}
{{ with $pages.Next }}<a class="older" href="{{ .URL }}">Older entries »</a>{{ end }}
{{ end }}
"""
)
CATEGORIES: Final = """\
{{ define "main" }}
<h1>{{ .Title }}</h1>
{{ range .Pages.GroupByParam "category" }}
<section><h2 id="{{ .Key | urlize }}">{{ .Key }}</h2>
<ul>
{{ range .Pages.ByDate.Reverse }}<li><a href="{{ .RelPermalink }}">{{ .Title }}</a>
<time datetime="{{ .Date.Format "2006-01-02" }}">{{ .Date.Format "2006-01-02" }}</time></li>
{{ end }}</ul></section>
{{ end }}
{{ end }}
"""
OLDEST_FIRST: Final = """\
{{ define "main" }}
<h1>{{ .Title }}</h1>
<ol>
{{ range .Pages.ByDate -}}
<li><a href="writing/{{ .Params.slug }}/">{{ .Title }}</a> ({{ .Date.Format "January 2006" }})</li>
{{ end }}</ol>
{{ end }}
"""

ONCE_PINNED: Final = hugo(
    "numbered front pages, the pinned posts on top of the first and nowhere else",
    posts(75, 6),
    {
        "hugo.toml": config("Pins", feed_entries=10, menu={"About": "/about/"}),
        "layouts/index.html": PINNED_FIRST,
        "layouts/_default/list.html": RECENT,
    },
    lists=("index.html", "page/*/index.html"),
)
ALWAYS_PINNED: Final = hugo(
    "numbered front pages, the pinned posts on top of each and in their place, too",
    posts(100, 7),
    {
        "hugo.toml": config("Needles", feed_entries=12, menu={"About": "/about/"}),
        "layouts/index.html": PINNED_ALWAYS,
        "layouts/_default/list.html": RECENT,
    },
    lists=("index.html", "page/*/index.html"),
)
BY_CATEGORY: Final = hugo(
    "one page of all posts in groups by category, newest first in each",
    posts(55, 8),
    {
        "hugo.toml": config(
            "Drawers",
            feed_entries=12,
            menu={"All posts": "/notes/", "About": "/about/"},
            more='disableKinds = ["taxonomy", "term"]\n[permalinks]\nposts = "/notes/:slug/"',
        ),
        "layouts/index.html": RECENT,
        "layouts/_default/list.html": CATEGORIES,
        "content/posts/_index.md": page("All posts", url="/notes/"),
    },
    lists=("notes/index.html",),
)
FROM_THE_BEGINNING: Final = hugo(
    "a numbered list, oldest first, with months as dates; links are relative to a base element",
    posts(40, 9),
    {
        "hugo.toml": config(
            "Beginnings",
            feed_entries=6,
            menu={"Writing": "/writing/", "About": "/about/"},
            more='[permalinks]\nposts = "/writing/:slug/"',
        ),
        "layouts/_default/baseof.html": base().replace("<head>", '<head><base href="{{ site.BaseURL }}">'),
        "layouts/index.html": RECENT,
        "layouts/_default/list.html": OLDEST_FIRST,
        "content/posts/_index.md": page("Writing", url="/writing/"),
    },
    lists=("writing/index.html",),
)

# Much beside the list


DATES_IN_URLS: Final = """\
{{ define "main" }}
<div class="content"><h1>{{ .Title }}</h1>
<p>{{ range where site.RegularPages "Section" "posts" }}<a href="{{ .Permalink }}">{{ .Title }}</a><br>
{{ end }}</p></div>
{{ end }}
"""
WIDGETS: Final = """\
<div id="sidebar">
<div class="widget"><h3>Recent</h3>
<ul>{{ range first 6 (where site.RegularPages "Section" "posts") -}}
<li><a href="{{ .RelPermalink }}">{{ .Title }}</a></li>
{{ end }}</ul></div>
<div class="widget"><h3>Popular</h3>
<ul>{{ range first 6 (sort (where site.RegularPages "Section" "posts") "Title") -}}
<li><a href="{{ .RelPermalink }}">{{ .Title }}</a></li>
{{ end }}</ul></div>
<div class="widget tagcloud">{{ range site.Taxonomies.tags.Alphabetical -}}
<a href="{{ .Page.RelPermalink }}" style="font-size: {{ .Count }}px">{{ .Page.Title }}</a>
{{ end }}</div>
</div>
"""
RELATED: Final = """\
<section class="related"><h3>Related posts</h3>
<ul>{{ range first 4 (where site.RegularPages "Params.category" .Params.category) -}}
<li><a href="{{ .RelPermalink }}">{{ .Title }}</a></li>
{{ end }}</ul></section>
"""
EXCERPTS: Final = """\
{{ define "main" }}
{{ $pages := .Paginate (where site.RegularPages "Section" "posts") 10 }}
{{ range $index, $page := $pages.Pages }}
<article class="hentry">
<h2 class="entry-title"><a href="{{ .RelPermalink }}" rel="bookmark">{{ .Title }}</a></h2>
<p class="meta">Posted on <a href="{{ .RelPermalink }}">{{ .Date.Format "January 2, 2006" }}</a>
in {{ range .GetTerms "tags" }}<a href="{{ .RelPermalink }}">{{ .Title }}</a> {{ end }}</p>
<div class="entry"><p>{{ .Summary }}
See <a href="{{ (index site.RegularPages $index).RelPermalink }}">what I said of that</a>,
and <a href="https://elsewhere.example/{{ .Params.slug }}/">what others did</a>.</p></div>
<p><a class="more" href="{{ .RelPermalink }}#more">Read more</a></p></article>
{{ end }}
<div class="nav-links">
{{ if $pages.HasPrev }}<a href="{{ substr $pages.Prev.URL 0 -1 | default "/" }}">&larr; Newer</a>{{ end }}
{{ if $pages.HasNext }}<a href="{{ substr $pages.Next.URL 0 -1 }}">Older &rarr;</a>{{ end }}
</div>
{{ end }}
"""
PICTURES: Final = """\
{{ define "main" }}
<h1>{{ .Title }}</h1>
{{ $pages := .Paginate .Pages 12 }}
<div class="grid">
{{ range $pages.Pages }}<div class="card">
<a class="card-image" href="{{ .RelPermalink }}"><img src="/pictures/{{ .Params.slug }}.jpg" alt=""></a>
<div class="card-body"><span class="badge">{{ .Params.category }}</span>
<h3><a href="{{ .RelPermalink }}">{{ .Title }}</a></h3>
<p>{{ .Summary | plainify | truncate 90 }}</p>
<span class="date">{{ .Date.Format "02/01/2006" }}</span>
<a class="button" href="{{ .RelPermalink }}">Read more</a></div>
</div>
{{ end }}</div>
<ul class="pagination">
{{ $now := $pages.PageNumber }}{{ range $pages.Pagers }}
{{ if in (slice 1 (sub $now 1) $now (add $now 1) $pages.TotalPages) .PageNumber -}}
<li{{ if eq .PageNumber $now }} class="active"{{ end }}><a href="{{ .URL }}">{{ .PageNumber }}</a></li>
{{ end }}{{ end }}</ul>
{{ end }}
"""
BESIDE: Final = ("about", "projects", "now", "contact", "tags", "page", "posts")

URLS_ALONE: Final = hugo(
    "a list without dates, which stand in the URLs of posts: /2009/03/14/slug/",
    posts(80, 10, days=60),
    {
        "hugo.toml": config(
            "Days",
            feed_entries=5,
            menu={"Archives": "/archives/", "About": "/about/"},
            more='[permalinks]\nposts = "/:year/:month/:day/:slug/"',
        ),
        "layouts/index.html": RECENT,
        "layouts/_default/list.html": RECENT,
        "layouts/_default/archives.html": DATES_IN_URLS,
        "content/archives.md": page("Archives", layout="archives"),
    },
    lists=("archives/index.html",),
)
AT_THE_ROOT: Final = hugo(
    "numbered front pages, whose links lack a slash, among widgets; paths of posts are like that of About",
    posts(90, 11, avoiding=BESIDE),
    {
        "hugo.toml": config(
            "Roots",
            feed_entries=10,
            menu={"About": "/about/", "Projects": "/projects/", "Now": "/now/", "Contact": "/contact/"},
            more='[permalinks]\nposts = "/:slug/"',
        ),
        **{f"content/{name}.md": page(name.title()) for name in ("projects", "now", "contact")},
        "layouts/_default/baseof.html": base(
            main='<div id="wrap"><div id="content">{}</div>' + WIDGETS + "</div>"
        ),
        "layouts/_default/single.html": SINGLE.replace("</article>", RELATED + "</article>"),
        "layouts/index.html": EXCERPTS,
        "layouts/_default/list.html": RECENT,
    },
    lists=("index.html", "page/*/index.html"),
)
CARDS_WITH_PICTURES: Final = hugo(
    "300 cards in numbered pages; picture, title and button link the post, the dates have their day first",
    posts(300, 12, days=9),
    {
        "hugo.toml": config(
            "Pictures",
            feed_entries=15,
            menu={"Articles": "/articles/", "About": "/about/"},
            more='[permalinks]\nposts = "/articles/:slug/"',
        ),
        "layouts/index.html": RECENT,
        "layouts/_default/list.html": PICTURES,
        "content/posts/_index.md": page("Articles", url="/articles/"),
    },
    lists=("articles/index.html", "articles/page/*/index.html"),
)

# Other feeds


JSON_FEED: Final = """\
{ "version": "https://jsonfeed.org/version/1.1",
  "title": {{ site.Title | jsonify }}, "home_page_url": {{ .Permalink | jsonify }},
  "feed_url": {{ (.OutputFormats.Get "jsonfeed").Permalink | jsonify }},
  "items": [{{ range $index, $page := first 9 (where site.RegularPages "Section" "posts") }}
  {{ if $index }},{{ end }}
    { "id": {{ .Permalink | jsonify }}, "url": {{ .Permalink | jsonify }}, "title": {{ .Title | jsonify }},
      "date_published": {{ .Date.Format "2006-01-02T15:04:05Z07:00" | jsonify }},
      "content_html": {{ .Content | jsonify }} }{{ end }}
  ] }
"""
ALL_ON_THE_FRONT: Final = """\
{{ define "main" }}
<p>I write here now and then.</p>
<ul class="blog-posts">
{{ range where site.RegularPages "Section" "posts" }}<li>
<span><i><time datetime="{{ .Date.Format "2006-01-02" }}">{{ .Date.Format "02 Jan, 2006" }}</time></i></span>
<a href="{{ .RelPermalink }}">{{ .Title }}</a></li>
{{ end }}</ul>
{{ end }}
"""
GERMAN: Final = """\
{{ define "main" }}
<h1>{{ .Title }}</h1>
{{ $pages := .Paginate .Pages 10 }}
{{ range $pages.Pages }}<article><header><p>{{ .Date | time.Format "2. January 2006" }}</p>
<h2><a href="{{ .RelPermalink }}">{{ .Title }}</a></h2></header>
{{ .Summary }} <a href="{{ .RelPermalink }}">Weiterlesen</a></article>
{{ end }}
<nav>
{{ with $pages.Next }}<a href="{{ .URL }}">Ältere Beiträge</a>{{ end }}
{{ with $pages.Prev }}<a href="{{ .URL }}">Neuere Beiträge</a>{{ end }}
</nav>
{{ end }}
"""

JSON: Final = hugo(
    "JSON Feed; all posts on the front page, as files (Bear)",
    posts(65, 13),
    {
        "hugo.toml": config(
            "Bears",
            feed_entries=9,
            menu={"About": "/about.html"},
            more='uglyURLs = true\n[outputs]\nhome = ["html", "jsonfeed"]\n[outputFormats.jsonfeed]\n'
            'mediaType = "application/json"\nbaseName = "feed"\nisPlainText = true\n' + MINIFIED,
        ),
        "layouts/index.html": ALL_ON_THE_FRONT,
        "layouts/index.jsonfeed.json": JSON_FEED,
        "layouts/_default/list.html": RECENT,
    },
    feed_path="/feed.json",
    lists=("index.html",),
)
IN_GERMAN: Final = hugo(
    "a section in pages and in German: dates, and the links to older and newer posts",
    posts(45, 14),
    {
        "hugo.toml": config(
            "Blätter", feed_entries=10, menu={"Blog": "/blog/", "Über mich": "/about/"}
        ).replace('languageCode = "en"', 'languageCode = "de"\ndefaultContentLanguage = "de"')
        + '[permalinks]\nposts = "/blog/:slug/"\n',
        "layouts/index.html": LANDING,
        "layouts/_default/list.html": GERMAN,
        "content/posts/_index.md": page("Blog", url="/blog/"),
    },
    lists=("blog/index.html", "blog/page/*/index.html"),
)
ONE_TAG: Final = hugo(
    "the feed of a tag, whose page lists what belongs to it; an archive of the whole blog beside it",
    posts(100, 15),
    {
        "hugo.toml": config("Pieces", feed_entries=10, menu={"Archive": "/archive/", "Tags": "/tags/"}),
        "layouts/index.html": RECENT,
        "layouts/_default/list.html": OLDER,
        "layouts/_default/archive.html": YEARS_ON_ONE_PAGE,
        "content/archive.md": page("Archive", layout="archive"),
    },
    feed_path="/tags/tools/index.xml",
    lists=("tags/tools/index.html", "tags/tools/page/*/index.html"),
    tag="Tools",
)

LAYOUTS: Final = {
    "hugo archive by month": PAPERMOD,
    "hugo archive by year": BY_YEAR,
    "hugo table": IN_A_TABLE,
    "hugo older posts": OLDER_POSTS,
    "hugo years": YEARS,
    "hugo pinned once": ONCE_PINNED,
    "hugo pinned always": ALWAYS_PINNED,
    "hugo categories": BY_CATEGORY,
    "hugo oldest first": FROM_THE_BEGINNING,
    "hugo dates in URLs": URLS_ALONE,
    "hugo beside other pages": AT_THE_ROOT,
    "hugo cards": CARDS_WITH_PICTURES,
    "hugo JSON Feed": JSON,
    "hugo in German": IN_GERMAN,
    "hugo one tag": ONE_TAG,
}
