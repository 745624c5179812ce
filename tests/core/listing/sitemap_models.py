"""Sites whose sitemaps name posts beside lists, drafts and pages, with the pages that software makes of each.

`SITES` by name: each is in the manner of one program or theme, with its menu, its language roots and the
elements that its templates write. Front pages show no more than the feed, so nothing but the sitemap has the
older posts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from tests.core.listing.site_models import EDITED, POSTS, SHOWN, index, url, urlset
from tests.core.listing.web import HOST, an_entry, day_of
from wholefeed.core.listing.lists import FeedEntry

NAMES: Final = (
    *(
        "on-bread",
        "a-week-in-the-hills",
        "how-i-keep-notes",
        "the-old-bridge",
        "gardens-in-winter",
        "letters",
    ),
    *("what-a-map-leaves-out", "small-tools", "reading-at-night", "to-the-coast-by-train", "rain"),
)


def slug(number: int) -> str:
    return f"{NAMES[number % len(NAMES)]}-{number}" if number >= len(NAMES) else NAMES[number]


Post = Callable[[int], str]
Page = Callable[[str, str], str]


@dataclass(frozen=True, kw_only=True)
class SiteModel:
    path: Callable[[int], str]
    post: Post
    """The page of a post."""
    page: Page
    """Another page, by its path and title."""
    others: tuple[str, ...]
    """Paths that are no posts, in the sitemap."""
    listed: tuple[str, ...] = ()
    """Those of them that list posts, in their own elements."""
    front: Callable[[Iterable[int]], str]
    """A list of posts, as on the front page."""
    menu: tuple[str, ...] = ()
    lastmod: Callable[[int], datetime | None] = day_of
    page_lastmod: datetime | None = EDITED
    sitemaps: Callable[[list[str], list[str]], Mapping[str, str]] | None = None
    """Makes files of the posts' and the other pages' elements."""
    numbers: tuple[int, ...] = tuple(range(SHOWN + 4))
    """Posts of the feed."""
    wanted: int = POSTS
    """Posts that are to be found."""
    has_days: bool = True
    more: Mapping[str, str] = field(default_factory=dict)
    home: str = "/"

    @property
    def feed(self) -> tuple[FeedEntry, ...]:
        return tuple(an_entry(n, link=HOST + self.path(n), title=title(n)) for n in self.numbers)

    @property
    def truth(self) -> dict[str, int]:
        return {HOST + self.path(number): number for number in range(POSTS)}

    @property
    def pages(self) -> dict[str, str | int]:
        posts = [url(self.path(number), self.lastmod(number)) for number in range(POSTS)]
        others = [url(path, self.page_lastmod) for path in self.others]
        files = self.sitemaps(posts, others) if self.sitemaps else {"/sitemap.xml": urlset([*posts, *others])}
        nav = a_menu(self.menu)
        made: dict[str, str | int] = {self.home: nav + self.front(self.numbers[:3])}
        for path in (*self.others, *self.menu):
            is_list = path in self.listed
            made.setdefault(path, nav + (self.front([]) if is_list else self.page(path, path.strip("/"))))
        made.update({self.path(number): nav + self.post(number) for number in range(POSTS)})
        return {**made, **files, **self.more}


def title(number: int) -> str:
    return slug(number).replace("-", " ").title()


def a_menu(paths: Iterable[str]) -> str:
    rows = "".join(f'<li><a href="{path}">{path.strip("/") or "Home"}</a></li>' for path in paths)
    return (
        f"<!doctype html><body><header><nav><ul>{rows}</ul></nav></header>"
        if rows
        else "<!doctype html><body>"
    )


def anchors(path: Callable[[int], str], row: str) -> Callable[[Iterable[int]], str]:
    """Return a maker of lists: `row` has places for path, title and day."""

    def make(numbers: Iterable[int]) -> str:
        return "".join(row.format(path(n), title(n), f"{day_of(n):%Y-%m-%d}") for n in numbers)

    return make


def below(folder: str, end: str = "/") -> Callable[[int], str]:
    return lambda number: f"{folder}/{slug(number)}{end}"


def written(form: str) -> Post:
    """Return a maker of posts' pages: places for title, day as ISO, and day in words."""
    return lambda n: form.format(title(n), f"{day_of(n):%Y-%m-%d}", f"{day_of(n):%B %-d, %Y}")


def plain(form: str) -> Page:
    return lambda path, name: form.format(name)


def undated(_: int) -> None:
    return None


def built(_: int) -> datetime:
    return EDITED


def in_index(posts: list[str], others: list[str]) -> dict[str, str]:
    return {"/sitemap-index.xml": index("/sitemap-0.xml"), "/sitemap-0.xml": urlset([*others, *posts])}


ROOT: Final = below("")
BLOG: Final = below("/blog", "")
TEXT: Final = "<p>Words of a text that goes on for a while.</p>"


def bear() -> SiteModel:
    """Bear: posts and pages at the root, the same main element; posts alone have a time."""
    return SiteModel(
        path=ROOT,
        post=written(
            f"<main><h1>{{0}}</h1><p><i><time datetime='{{1}}T10:00Z'>{{2}}</time></i></p>{TEXT}</main>"
        ),
        page=plain(f"<main><h1>{{0}}</h1>{TEXT}</main>"),
        others=("/", "/blog/", "/about/", "/my-setup/", "/reading-list-of-mine/", "/now/"),
        listed=("/blog/",),
        front=anchors(ROOT, "<main><a href='{0}'>{1}</a></main>"),
        menu=("/", "/about/", "/my-setup/"),
    )


def ghost_theme() -> SiteModel:
    """Ghost's Casper: classes of the body tell posts from pages; one sitemap by a tool."""
    return SiteModel(
        path=ROOT,
        post=written(
            "<div class='viewport post-template tag-notes'><main><article class='article post tag-notes'>"
            "<header class='article-header gh-canvas'><h1 class='article-title'>{0}</h1>"
            "<div class='article-byline'>"
            "<time class='byline-meta-date' datetime='{1}'>{2}</time></div></header>"
            f"<section class='gh-content gh-canvas'>{TEXT}</section></article></main></div>"
        ),
        page=plain(
            "<div class='viewport page-template'><main><article class='article post page'>"
            "<header class='article-header gh-canvas'><h1 class='article-title'>{0}</h1></header>"
            f"<section class='gh-content gh-canvas'>{TEXT}</section></article></main></div>"
        ),
        others=("/", "/about/", "/our-team-and-office/", "/membership-levels/", "/coming-soon/"),
        front=anchors(
            ROOT,
            "<article class='post-card post'><h2 class='post-card-title'><a href='{0}'>{1}"
            "</a></h2></article>",
        ),
        menu=("/", "/about/", "/membership-levels/"),
    )


def gatsby() -> SiteModel:
    """Gatsby's blog starter: pages of code beside posts at the root; the sitemap has no days."""
    return SiteModel(
        path=ROOT,
        post=written(
            "<div class='global-wrapper'><main><article class='blog-post' itemscope><header>"
            "<h1 itemprop='headline'>"
            f"{{0}}</h1><p>{{2}}</p></header><section>{TEXT}</section></article>"
            "<nav class='blog-post-nav'></nav></main></div>"
        ),
        page=plain(f"<div class='global-wrapper'><main><h1>{{0}}</h1>{TEXT}</main></div>"),
        others=("/", "/using-typescript/", "/using-ssr-and-dsg/", "/404/"),
        front=anchors(
            ROOT,
            "<li><article class='post-list-item'><h2><a href='{0}'>{1}</a></h2><small>{2}"
            "</small></article></li>",
        ),
        lastmod=undated,
        page_lastmod=None,
        sitemaps=in_index,
    )


def hexo_root() -> SiteModel:
    """Hexo with posts at the root (`:title/`): tags and archives in the sitemap, the days of changes."""
    return SiteModel(
        path=ROOT,
        post=written(
            "<div class='post-block'><article class='post-content' lang='en'><header class='post-header'>"
            "<h1 class='post-title'>{0}</h1><div class='post-meta'><time datetime='{1}'>{1}"
            "</time></div></header>"
            f"<div class='post-body'>{TEXT}</div><footer class='post-footer'></footer></article></div>"
        ),
        page=plain(
            "<div class='post-block page'><header class='post-header'><h1 class='post-title'>"
            f"{{0}}</h1></header><div class='post-body'>{TEXT}</div></div>"
        ),
        others=(
            "/",
            "/about/",
            "/friends/",
            "/tags/",
            "/categories/",
            "/tags/home/",
            "/archives/2024/05/",
            "/schedule/",
        ),
        listed=("/tags/", "/categories/"),
        front=anchors(
            ROOT, "<article class='post-card'><h2 class='card-title'><a href='{0}'>{1}</a></h2></article>"
        ),
        menu=("/", "/about/", "/tags/", "/categories/"),
        lastmod=built,
    )


def zola() -> SiteModel:
    """Zola with posts at the root, pages by another template."""
    return SiteModel(
        path=ROOT,
        post=written(
            f"<main><article><h1>{{0}}</h1><div class='meta'><time>{{1}}</time></div>"
            f"<div class='content'>{TEXT}</div></article></main>"
        ),
        page=plain(f"<main><article><h1>{{0}}</h1><div class='content'>{TEXT}</div></article></main>"),
        others=("/", "/about/", "/projects-of-mine/", "/talks/", "/tags/", "/tags/rust/"),
        listed=("/tags/",),
        front=anchors(
            ROOT, "<section class='list-item'><h1><a href='{0}'>{1}</a></h1><time>{2}</time></section>"
        ),
        menu=("/about/", "/projects-of-mine/", "/talks/"),
        page_lastmod=day_of(9),
    )


def minima_root() -> SiteModel:
    """Jekyll's minima with `permalink: /:title/`; a plugin's sitemap that dates pages, too."""
    return SiteModel(
        path=ROOT,
        post=written(
            "<meta property='og:type' content='article'>"
            "<article class='post h-entry' itemscope><header class='post-header'>"
            "<h1 class='post-title p-name'>{0}</h1><p class='post-meta'>"
            "<time class='dt-published' datetime='{1}'>{2}</time>"
            f"</p></header><div class='post-content e-content'>{TEXT}</div></article>"
        ),
        page=plain(
            "<meta property='og:type' content='website'><article class='post'><header class='post-header'>"
            f"<h1 class='post-title'>{{0}}</h1></header><div class='post-content'>{TEXT}</div></article>"
        ),
        others=("/", "/about/", "/a-list-of-books-i-like/", "/page2/"),
        front=anchors(
            ROOT,
            "<ul class='post-list'><li><span class='post-meta'>{2}</span><h3>"
            "<a class='post-link' href='{0}'>{1}</a></h3></li></ul>",
        ),
        menu=("/about/",),
        page_lastmod=day_of(20),
    )


def pelican_root() -> SiteModel:
    """Pelican: posts and lists as .html at the root, pages in a folder; days with times."""
    path = below("", ".html")
    return SiteModel(
        path=path,
        post=written(
            "<section id='content' class='body'><header><h2 class='entry-title'>{0}</h2>"
            "</header><footer class='post-info'>"
            f"<time class='published' datetime='{{1}}T00:00:00+00:00'>{{2}}</time></footer>"
            f"<div class='entry-content'>{TEXT}</div></section>"
        ),
        page=plain(f"<section id='content' class='body'><h1 class='entry-title'>{{0}}</h1>{TEXT}</section>"),
        others=(
            "/index.html",
            "/archives.html",
            "/authors.html",
            "/categories.html",
            "/tags.html",
            "/index2.html",
            "/author/ann.html",
            "/pages/about.html",
        ),
        listed=("/archives.html", "/tags.html", "/categories.html", "/authors.html"),
        front=anchors(
            path,
            "<ol id='post-list'><li><article class='hentry'><h2><a href='{0}'>{1}</a></h2>"
            "</article></li></ol>",
        ),
        menu=("/pages/about.html", "/category/misc.html"),
    )


def astro_tags() -> SiteModel:
    """Astro with a list of tags and a page for each language below the blog; no days."""
    return SiteModel(
        path=BLOG,
        post=written(
            "<main><article class='prose'><div class='title'><div class='date'>"
            f"<time datetime='{{1}}T00:00:00.000Z'>{{2}}</time></div><h1>{{0}}</h1></div>"
            f"{TEXT}</article></main>"
        ),
        page=plain(f"<main class='list'><h1>{{0}}</h1>{TEXT}</main>"),
        others=(
            "/",
            "/about",
            "/blog",
            "/blog/tags-list",
            "/blog/en",
            "/blog/fr",
            "/blog/drafts",
            "/blog/2",
            "/blog/authors-and-editors",
        ),
        listed=("/blog/tags-list", "/blog/en", "/blog/fr"),
        front=anchors(
            BLOG,
            "<main class='list'><li><a href='{0}'>{1}</a><p class='date'><time>{2}</time></p></li></main>",
        ),
        menu=("/", "/about", "/blog", "/blog/authors-and-editors"),
        lastmod=undated,
        page_lastmod=None,
        sitemaps=in_index,
    )


def next_languages() -> SiteModel:
    """Next.js with languages as folders, next-sitemap's days of the build."""
    return SiteModel(
        path=BLOG,
        post=written(
            f"<main class='container'><article class='post-page'><h1 class='title'>{{0}}</h1>"
            f"<time class='when'>{{2}}</time><div class='body'>{TEXT}</div></article></main>"
        ),
        page=plain(
            f"<main class='container'><div class='grid'><h1 class='title'>{{0}}</h1>{TEXT}</div></main>"
        ),
        others=(
            "/",
            "/en",
            "/de",
            "/en/about",
            "/de/about",
            "/blog",
            "/blog/en",
            "/blog/de",
            "/blog/all-the-categories-of-this-site",
        ),
        listed=("/blog/en", "/blog/de", "/blog/all-the-categories-of-this-site"),
        front=anchors(
            BLOG,
            "<main class='container'><div class='grid'><a class='card' href='{0}'><h3>{1}"
            "</h3></a></div></main>",
        ),
        menu=("/en/about", "/blog", "/blog/all-the-categories-of-this-site"),
        lastmod=built,
    )


def quartz() -> SiteModel:
    """Quartz: notes and their folders; every page is an article with a date."""
    path = below("/notes", "")
    return SiteModel(
        path=path,
        post=written(
            "<div id='quartz-root' class='page'><div class='page-header'>"
            f"<h1 class='article-title'>{{0}}</h1><p class='content-meta'>"
            f"<time datetime='{{1}}'>{{2}}</time>, 3 min read</p></div>"
            f"<article class='popover-hint'>{TEXT}</article></div>"
        ),
        page=plain(
            "<div id='quartz-root' class='page'><div class='page-header'>"
            f"<h1 class='article-title'>{{0}}</h1></div><article class='popover-hint'>{TEXT}"
            "</article><div class='page-listing'></div></div>"
        ),
        others=(
            "/",
            "/notes/",
            "/notes/drafts",
            "/notes/inbox",
            "/tags/",
            "/tags/home",
            "/about-this-garden",
        ),
        listed=("/notes/inbox",),
        front=anchors(
            path,
            "<div class='page-listing'><li class='section-li'><a href='{0}'>{1}</a><time>{2}"
            "</time></li></div>",
        ),
        page_lastmod=day_of(14),
    )


def substack_like() -> SiteModel:
    """A newsletter: posts below /p/, a page for what is to come."""
    path = below("/p", "")
    return SiteModel(
        path=path,
        post=written(
            "<div class='single-post'><article class='newsletter-post post'>"
            f"<h1 class='post-title published'>{{0}}</h1><div class='meta'><div class='date'>"
            f"{{2}}</div></div><div class='available-content'>{TEXT}</div></article></div>"
        ),
        page=plain(f"<div class='intro'><h1 class='publication-name'>{{0}}</h1>{TEXT}</div>"),
        others=("/", "/about", "/archive", "/p/coming-soon", "/p/faq", "/recommendations"),
        front=anchors(
            path, "<div class='portable-archive-list'><a class='post-preview-title' href='{0}'>{1}</a></div>"
        ),
        menu=("/archive", "/about"),
        more={"/archive": "<!doctype html><body><div id='entry'></div>"},
        lastmod=built,
    )


def nuxt() -> SiteModel:
    """Nuxt Content: articles, and overviews among them; days of posts alone in most files, here of all."""
    path = below("/articles", "")
    return SiteModel(
        path=path,
        post=written(
            f"<div id='__nuxt'><article class='article-page'><h1>{{0}}</h1>"
            f"<span class='published'>{{2}}</span><div class='nuxt-content'>{TEXT}</div>"
            "</article></div>"
        ),
        page=plain(f"<div id='__nuxt'><section class='overview'><h1>{{0}}</h1>{TEXT}</section></div>"),
        others=("/", "/articles", "/articles/topics", "/articles/start", "/imprint"),
        listed=("/articles/topics",),
        front=anchors(path, "<section class='overview'><a class='teaser' href='{0}'>{1}</a></section>"),
        menu=("/articles", "/articles/start", "/imprint"),
    )


def nikola() -> SiteModel:
    """Nikola: /posts/ with its numbered index and drafts."""
    path = below("/posts")
    return SiteModel(
        path=path,
        post=written(
            "<article class='post-text h-entry hentry postpage'><header>"
            f"<h1 class='p-name entry-title'>{{0}}</h1><div class='metadata'>"
            "<p class='dateline'>"
            f"<time class='published dt-published' datetime='{{1}}T08:00:00Z'>{{1}}</time></p>"
            f"</div></header><div class='e-content entry-content'>{TEXT}</div></article>"
        ),
        page=plain(
            "<article class='post-text storypage'><header><h1 class='p-name entry-title'>"
            f"{{0}}</h1></header><div class='e-content entry-content'>{TEXT}</div></article>"
        ),
        others=(
            "/",
            "/archive.html",
            "/posts/",
            "/posts/index-1.html",
            "/posts/todo/",
            "/pages/about/",
            "/categories/",
        ),
        front=anchors(
            path,
            "<article class='h-entry post-text'><h1 class='p-name entry-title'><a href='{0}'>"
            "{1}</a></h1></article>",
        ),
        menu=("/pages/about/", "/categories/"),
        page_lastmod=day_of(3),
        more={"/archive.html": "<!doctype html><p>By hand"},
    )


def docusaurus_tags() -> SiteModel:
    """Docusaurus: authors and tags below the blog; each page may be a Markdown page."""
    return SiteModel(
        path=BLOG,
        post=written(
            f"<main class='col col--7'><article class=''><header><h1 class='title_f1Hy'>{{0}}"
            "</h1><div class='container_mt6G margin-vert--md'>"
            f"<time datetime='{{1}}T00:00:00.000Z'>{{2}}</time></div></header>"
            f"<div id='__blog-post-container' class='markdown'>{TEXT}</div></article>"
            "<nav class='pagination-nav'></nav></main>"
        ),
        page=plain(f"<main class='margin-vert--lg'><h1 class='hero__title'>{{0}}</h1>{TEXT}</main>"),
        others=(
            "/",
            "/blog",
            "/blog/archive",
            "/blog/tags",
            "/blog/authors",
            "/blog/tags/home",
            "/docs/intro",
            "/blog/rss-and-atom",
        ),
        listed=("/blog/tags",),
        front=anchors(
            BLOG,
            "<article class='margin-bottom--xl'><header><h2 class='title_f1Hy'><a href='{0}'>"
            "{1}</a></h2></header></article>",
        ),
        menu=("/docs/intro", "/blog", "/blog/rss-and-atom"),
        lastmod=undated,
        page_lastmod=None,
        more={"/blog/archive": "<!doctype html><p>Nothing"},
        home="/blog",
    )


def shop() -> SiteModel:
    """A shop with posts at the root beside its goods."""
    goods = tuple(
        f"/{name}-{size}/" for name in ("blue-shirt", "warm-hat", "long-scarf") for size in ("small", "large")
    )
    return SiteModel(
        path=ROOT,
        post=written(
            "<body class='single single-post'><article class='post type-post'>"
            f"<header class='entry-header'><h1 class='entry-title'>{{0}}</h1>"
            "<span class='posted-on'>"
            f"<time class='entry-date published' datetime='{{1}}T09:00:00+00:00'>{{2}}</time>"
            f"</span></header><div class='entry-content'>{TEXT}</div></article>"
        ),
        page=plain(
            "<body class='single single-product'><div class='product type-product'>"
            f"<h1 class='product_title entry-title'>{{0}}</h1><p class='price'>9</p>{TEXT}"
            "</div>"
        ),
        others=("/", "/cart/", "/shop/", *goods),
        front=anchors(
            ROOT, "<li class='wp-block-post'><h2 class='wp-block-post-title'><a href='{0}'>{1}</a></h2></li>"
        ),
        menu=("/shop/", "/cart/"),
    )


def papermod_root() -> SiteModel:
    """Hugo's PaperMod with posts at the root: pages have the template of posts, without tags and meta."""
    return SiteModel(
        path=ROOT,
        post=written(
            "<meta property='og:type' content='article'>"
            "<meta property='article:published_time' content='{1}T00:00:00Z'>"
            "<main class='main'><article class='post-single'><header class='post-header'>"
            "<h1 class='post-title entry-hint-parent'>{0}</h1>"
            f"<div class='post-meta'><span title='{{1}}'>{{2}}</span></div></header>"
            f"<div class='post-content'>{TEXT}</div>"
            "<footer class='post-footer'><ul class='post-tags'></ul></footer></article></main>"
        ),
        page=plain(
            "<meta property='og:type' content='article'><main class='main'>"
            "<article class='post-single'><header class='post-header'>"
            f"<h1 class='post-title entry-hint-parent'>{{0}}</h1></header>"
            f"<div class='post-content'>{TEXT}</div><footer class='post-footer'>"
            "<ul class='post-tags'></ul></footer></article></main>"
        ),
        others=("/", "/about/", "/my-reading-of-the-year/", "/faq/", "/search/"),
        front=anchors(
            ROOT,
            "<article class='post-entry'><header class='entry-header'>"
            "<h2 class='entry-hint-parent'>{1}</h2></header><a class='entry-link' href='{0}'>"
            "</a></article>",
        ),
        menu=("/about/", "/faq/"),
    )


def untold() -> SiteModel:
    """Nothing but the text tells posts from pages at the root: no dates, the same elements."""
    same = f"<main><h1>{{0}}</h1>{TEXT}</main>"
    return SiteModel(
        path=ROOT,
        post=written(same),
        page=plain(same),
        others=("/", "/about/", "/my-setup/"),
        front=anchors(ROOT, "<main><p><a href='{0}'>{1}</a></p></main>"),
        menu=("/about/",),
        wanted=0,
    )


def one_category() -> SiteModel:
    """The feed of one category of a site with all posts at the root."""
    return SiteModel(
        path=ROOT,
        post=minima_root().post,
        page=minima_root().page,
        others=("/", "/about/"),
        front=anchors(ROOT, "<p><a href='{0}'>{1}</a></p>"),
        menu=("/about/",),
        numbers=tuple(range(0, 30, 3)),
        lastmod=built,
        wanted=0,
    )


def manual() -> SiteModel:
    """A manual at the root whose feed tells of releases among its pages."""
    return SiteModel(
        path=below("", ".html"),
        post=written(f"<div class='document'><h1>{{0}}</h1>{TEXT}</div>"),
        page=plain(f"<div class='document'><h1>{{0}}</h1>{TEXT}</div>"),
        others=(
            "/index.html",
            "/install.html",
            "/the-configuration-file.html",
            "/upgrade-notes-for-all.html",
        ),
        front=anchors(below("", ".html"), "<p><a href='{0}'>{1}</a></p>"),
        lastmod=undated,
        page_lastmod=None,
        wanted=0,
    )


SITES: Final = {
    each.__name__: each
    for each in (
        *(bear, ghost_theme, gatsby, hexo_root, zola, minima_root, pelican_root, astro_tags, next_languages),
        *(
            quartz,
            substack_like,
            nuxt,
            nikola,
            docusaurus_tags,
            shop,
            papermod_root,
            untold,
            one_category,
            manual,
        ),
    )
}
