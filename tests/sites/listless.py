"""Sites on which nothing may be listed. Hugo builds the blogs, this module writes the others by itself."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final

from tests.sites.by_hand import anchor, by_hand, framed, newest
from tests.sites.hugo import FOOTER, LANDING, OLDER, RECENT, base, config, hugo
from tests.sites.posts import Post, posts
from tests.sites.site import Layout

# Blogs


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
NEWEST: Final = hugo(
    "a front page of what the feed has, and no way further down",
    posts(70, 27),
    {
        "hugo.toml": config("Surface", feed_entries=10, menu={"About": "/about/"}),
        "layouts/index.html": SAME_AGAIN.partition("<nav")[0] + "{{ end }}",
        "layouts/_default/list.html": LANDING,
    },
)
LINKS_ELSEWHERE: Final = """\
{{ define "main" }}
{{ $pages := .Paginate (where site.RegularPages "Section" "posts") 12 }}
{{ range $pages.Pages }}<dl class="linkedlist">
<dt><a href="https://{{ .Params.category | lower }}.example/{{ .Params.slug }}">{{ .Title }}</a>
<a class="permalink" title="Permanent link" href="{{ .RelPermalink }}">★</a></dt>
<dd>{{ .Summary }}</dd></dl>
{{ end }}
{{ with $pages.Next }}<a rel="next" href="{{ .URL }}">Older</a>{{ end }}
{{ end }}
"""
FEED: Final = """\
{{ printf "<?xml version=\\"1.0\\" encoding=\\"utf-8\\"?>" | safeHTML }}
<rss version="2.0"><channel>
<title>{{ site.Title }}</title><link>{{ site.Home.Permalink }}</link><description>What is new</description>
{{ ITEMS }}
</channel></rss>
"""
LINK_FEED: Final = FEED.replace(
    "{{ ITEMS }}",
    """\
{{ range first 12 (where site.RegularPages "Section" "posts") }}<item>
<title>{{ .Title }}</title><link>https://{{ .Params.category | lower }}.example/{{ .Params.slug }}</link>
<guid>{{ .Permalink }}</guid><pubDate>{{ .Date.Format "Mon, 02 Jan 2006 15:04:05 -0700" }}</pubDate>
</item>{{ end }}""",
)
COMMENT_FEED: Final = FEED.replace(
    "{{ ITEMS }}",
    """\
{{ range $index, $page := first 5 (where site.RegularPages "Section" "posts") }}
{{ range slice "Bo" "Cy" }}<item>
<title>Comment on {{ $page.Title }} by {{ . }}</title>
<link>{{ $page.Permalink }}#comment-{{ . }}{{ $index }}</link>
<guid isPermaLink="false">{{ $page.Permalink }}#comment-{{ . }}{{ $index }}</guid>
<pubDate>{{ $page.Date.Format "Mon, 02 Jan 2006 15:04:05 -0700" }}</pubDate>
<description>I think so, too.</description>
</item>{{ end }}{{ end }}""",
)
TAG_FEED: Final = FEED.replace(
    "{{ ITEMS }}",
    """\
{{ $tagged := where site.RegularPages "Params.tags" "intersect" (slice "Books") }}
{{ range first 10 $tagged }}<item>
<title>{{ .Title }}</title><link>{{ .Permalink }}</link><guid>{{ .Permalink }}</guid>
<pubDate>{{ .Date.Format "Mon, 02 Jan 2006 15:04:05 -0700" }}</pubDate>
</item>{{ end }}""",
)

LINK_BLOG: Final = hugo(
    "a link blog: entries and their titles lead to other hosts, a star to the blog's own page",
    posts(60, 24),
    {
        "hugo.toml": config("Elsewhere", feed_entries=12, menu={"About": "/about/"}),
        "layouts/index.html": LINKS_ELSEWHERE,
        "layouts/index.rss.xml": LINK_FEED,
        "layouts/_default/list.html": LANDING,
    },
)
COMMENTS: Final = hugo(
    "the feed of a blog's comments, beside a list of the blog's posts",
    posts(60, 25),
    {
        "hugo.toml": config("Voices", feed_entries=10, menu={"Posts": "/posts/"}),
        "layouts/index.html": RECENT,
        "layouts/index.rss.xml": COMMENT_FEED,
        "layouts/_default/list.html": OLDER,
    },
)
WHOLE_BLOG: Final = hugo(
    "the feed of a tag that has no page of its own; what is listed is the whole blog",
    posts(80, 26),
    {
        "hugo.toml": config(
            "Wholes", feed_entries=10, menu={"Posts": "/posts/"}, more='disableKinds = ["taxonomy", "term"]'
        ),
        "layouts/index.html": RECENT,
        "layouts/index.rss.xml": TAG_FEED,
        "layouts/_default/list.html": OLDER,
    },
    tag="Books",
)

# What is no blog


def in_order(by_path: dict[str, Post], seed: int) -> list[tuple[str, Post]]:
    """All of them, in the order of somebody's choice."""
    return Random(seed).sample(sorted(by_path.items()), len(by_path))


def teasers(found: Iterable[tuple[str, Post]]) -> str:
    return "".join(
        f'<article class="teaser"><h3>{anchor(path, post.title)}</h3><p>{post.text[0]}</p></article>\n'
        for path, post in found
    )


def news() -> Layout:
    """A front of sections, whose stories stand in an editor's order, and fronts of sections like it."""
    stories = {
        f"/{post.tags[0].lower()}/{post.date:%Y/%m/%d}/{post.slug}/": post for post in posts(120, 30, days=1)
    }
    chosen = in_order(dict(newest(stories, 40)), 1)
    by_section = {
        name: [each for each in chosen if each[1].tags[0] == name]
        for name in ("Home", "Travel", "Tools", "Books")
    }
    menu = "".join(f"<li>{anchor(f'/{name.lower()}/', name)}</li>" for name in by_section)
    read = "".join(f"<li>{anchor(path, post.title)}</li>" for path, post in chosen[:5])
    header, aside = (
        f"<header><nav><ul>{menu}</ul></nav></header>\n",
        f"<aside><h2>Most read</h2><ol>{read}</ol></aside>",
    )
    blocks = "".join(
        f"<section><h2>{anchor(f'/{name.lower()}/', name)}</h2>\n{teasers(found)}</section>\n"
        for name, found in by_section.items()
    )
    fronts = {
        f"/{name.lower()}/": framed(header + teasers(found) + aside) for name, found in by_section.items()
    }
    return by_hand(
        "a news front page: sections in an editor's order, with pages of their own, and nothing further down",
        newest(stories, 15),
        {"/": framed(header + blocks + aside), **fronts},
        stories,
    )


def shop() -> Layout:
    """Cards of products, those that sell best first, on three pages."""
    products = {f"/products/{post.slug}/": post for post in posts(66, 31, odd=0)}
    ranked = in_order(products, 2)
    cards = [
        f'<div class="product-card"><a href="{path}"><img src="/pictures/{post.slug}.jpg" alt=""></a>\n'
        f"{anchor(path, post.title)}"
        f'<span class="price">{5 + len(post.title)}.00</span><button>Add to cart</button></div>\n'
        for path, post in ranked
    ]
    pages = {
        "/collections/all/" if number == 1 else f"/collections/all/page/{number}/": framed(
            f"<main><h1>All products</h1>\n{''.join(cards[start : start + 24])}</main>\n"
            + (
                f'<nav><a rel="next" href="/collections/all/page/{number + 1}/">Next</a></nav>'
                if number < 3
                else ""
            )
        )
        for number, start in enumerate(range(0, 66, 24), 1)
    }
    front = framed(
        f"<nav>{anchor('/collections/all/', 'All products')}</nav>\n<main>{''.join(cards[:12])}</main>"
    )
    return by_hand(
        "a shop: product cards by rank, on numbered pages",
        newest(products, 10),
        {"/": front, **pages},
        products,
    )


def forum() -> Layout:
    """Boards with tables of topics, those with the newest replies first."""
    topics = {f"/topic/{number}-{post.slug}/": post for number, post in enumerate(posts(90, 32, days=2), 100)}
    active = in_order(topics, 3)
    by_board = {
        name: [each for each in active if each[1].tags[0] == name]
        for name in ("Home", "Travel", "Tools", "Books")
    }
    boards = {
        f"/board/{name.lower()}/": framed(f"<h1>{name}</h1>\n{table(found)}")
        for name, found in by_board.items()
    }
    index = "".join(
        f"<h2>{anchor(f'/board/{name.lower()}/', name)}</h2>\n{table(found[:12])}"
        for name, found in by_board.items()
    )
    return by_hand(
        "a forum: boards of topics by their newest replies, and an index of the boards",
        newest(topics, 12),
        {"/": framed(f"<main>{index}</main>"), **boards},
        topics,
    )


def table(topics: Iterable[tuple[str, Post]]) -> str:
    rows = "".join(
        f'<tr><td class="topic">{anchor(path, post.title)}</td>'
        f"<td>{len(post.text[0]) % 40}</td><td>today</td></tr>\n"
        for path, post in topics
    )
    return f"<table><tr><th>Topic</th><th>Replies</th><th>Last</th></tr>\n{rows}</table>\n"


def script() -> Layout:
    """Pages without content, which a program in them would fetch."""
    written = {f"/p/{post.slug}/": post for post in posts(40, 33)}
    empty = '<div id="root"></div><script src="/app.js"></script><noscript>Enable JavaScript.</noscript>'
    return by_hand(
        "pages under JavaScript: an empty body with a script",
        newest(written, 10),
        {path: framed(empty) for path in ("/", "/blog/", "/archive/")},
        written,
    )


LAYOUTS: Final = {
    "no list: sidebars": SIDEBARS,
    "no list: documentation": MANUAL,
    "no list: forbidden": FORBIDDEN,
    "no list: every path answers": EVERY_PATH,
    "no list: newest alone": NEWEST,
    "no list: link blog": LINK_BLOG,
    "no list: comments": COMMENTS,
    "no list: tag of a blog": WHOLE_BLOG,
    "no list: news": news(),
    "no list: shop": shop(),
    "no list: forum": forum(),
    "no list: JavaScript": script(),
}
