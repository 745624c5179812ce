"""Sitemaps and search indexes of small sites, in the forms that real software writes them.

Each model is a site for `look_in`: its files by their paths. Posts are those of `tests.core.listing.web`;
beside them stand pages, lists and tags, which are no posts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tests.core.listing.web import HOST, an_entry, day_of, name_of, path_of, title_of
from wholefeed.core.listing.lists import FeedEntry

POSTS: Final = 40
SHOWN: Final = 6
"""Posts of the feed."""
URLSET: Final = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'


@dataclass(frozen=True)
class Model:
    pages: Mapping[str, str | int]
    path: Callable[[int], str] = path_of
    """The path of a post."""
    sitemaps: tuple[str, ...] = ()
    """Those that robots.txt names."""
    has_titles: bool = False
    has_days: bool = True
    generator: str = ""

    @property
    def feed(self) -> tuple[FeedEntry, ...]:
        return tuple(an_entry(number, link=HOST + self.path(number)) for number in range(SHOWN))


def at_root(number: int) -> str:
    return f"/{name_of(number)}/"


def in_blog(number: int) -> str:
    return f"/blog/{name_of(number)}"


def dated(number: int) -> str:
    return f"/{day_of(number):%Y/%m/%d}/{name_of(number)}/"


def url(path: str, at: datetime | None = None, more: str = "") -> str:
    modified = f"<lastmod>{at:%Y-%m-%dT%H:%M:%S+00:00}</lastmod>" if at else ""
    return f"<url><loc>{HOST}{path}</loc>{modified}{more}</url>\n"


def urlset(urls: Iterable[str], attributes: str = "") -> str:
    return f"{HEAD}{URLSET}{attributes}>\n{''.join(urls)}</urlset>\n"


def index(*paths: str) -> str:
    items = "".join(f"<sitemap><loc>{HOST}{path}</loc></sitemap>" for path in paths)
    return f'{HEAD}<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{items}</sitemapindex>'


PAGES: Final = ("/about/", "/contact/", "/my-setup/", "/colophon/")
"""At the root, where some sites have posts, too."""
EDITED: Final = day_of(-3)
"""Later than each post: when all of them were changed."""


def wordpress() -> Model:
    """WordPress (`class-wp-sitemaps-posts.php`): by type and id, the day of the last change or none."""
    posts = [url(at_root(number)) for number in reversed(range(POSTS))]
    return Model(
        {
            "/": "<p>Hello",
            "/wp-sitemap.xml": index(
                "/wp-sitemap-posts-post-1.xml",
                "/wp-sitemap-posts-page-1.xml",
                "/wp-sitemap-taxonomies-category-1.xml",
                "/wp-sitemap-users-1.xml",
            ),
            "/wp-sitemap-posts-post-1.xml": urlset(posts),
            "/wp-sitemap-posts-page-1.xml": urlset(map(url, PAGES)),
        },
        at_root,
        sitemaps=(f"{HOST}/wp-sitemap.xml",),
        has_days=False,
    )


def yoast() -> Model:
    """Yoast SEO: the page of posts in front, pictures within, changes as dates."""
    image = "<image:image><image:loc>https://a.example/wp-content/x.jpg</image:loc></image:image>"
    posts = [url(at_root(number), EDITED, image) for number in range(POSTS)]
    extension = ' xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'
    return Model(
        {
            "/": "<p>Hello",
            "/sitemap_index.xml": index("/post-sitemap.xml", "/page-sitemap.xml", "/category-sitemap.xml"),
            "/post-sitemap.xml": urlset([url("/blog/", EDITED), *posts], extension),
            "/page-sitemap.xml": urlset(url(path, EDITED) for path in PAGES),
        },
        at_root,
        sitemaps=(f"{HOST}/sitemap_index.xml",),
        has_days=False,
    )


def ghost() -> Model:
    """Ghost (`sitemap/`): an index by type, the newest change first."""
    posts = [url(at_root(number), day_of(number)) for number in range(POSTS)]
    return Model(
        {
            "/": "<p>Hello",
            "/sitemap.xml": index(
                "/sitemap-pages.xml", "/sitemap-posts.xml", "/sitemap-authors.xml", "/sitemap-tags.xml"
            ),
            "/sitemap-posts.xml": urlset(posts),
            "/sitemap-pages.xml": urlset(url(path, EDITED) for path in ("/", *PAGES)),
        },
        at_root,
        sitemaps=(f"{HOST}/sitemap.xml",),
    )


def hugo() -> Model:
    """Hugo's own template: all pages by date; lists and tags have the date of their newest post."""
    newest = day_of(0)
    lists = [url("/posts/", newest), url("/", newest), url("/tags/", newest), url("/tags/home/", newest)]
    posts = [url(path_of(number), day_of(number)) for number in range(POSTS)]
    return Model({"/": "<p>Hello", "/sitemap.xml": urlset([*posts, *lists, *map(url, PAGES)])})


def jekyll() -> Model:
    """jekyll-sitemap: posts, the oldest first, then pages without dates, then files."""
    posts = [url(dated(number), day_of(number)) for number in reversed(range(POSTS))]
    pages = [url(path) for path in (*PAGES, "/", "/page2/", "/assets/paper.pdf")]
    return Model({"/": "<p>Hello", "/sitemap.xml": urlset([*posts, *pages])}, dated)


def eleventy() -> Model:
    """Eleventy's usual template: posts and pages in any order, the day of the build as date."""
    numbers = sorted(range(POSTS), key=name_of)
    paths = [*PAGES, "/blog/", "/tags/", *map(in_blog, numbers), "/blog/page/2/"]
    return Model(
        {"/": "<p>Hello", "/sitemap.xml": urlset(url(path, EDITED) for path in paths)},
        in_blog,
        has_days=False,
    )


def docusaurus() -> Model:
    """@docusaurus/plugin-sitemap: the archive, tags and authors stand below the blog, too."""
    more = "<changefreq>weekly</changefreq><priority>0.5</priority>"
    lists = ("/blog", "/blog/archive", "/blog/authors", "/blog/tags", "/blog/tags/home", "/blog/page/2")
    paths = (*lists, *map(in_blog, sorted(range(POSTS), key=name_of)), "/docs/intro", "/docs/guide", "/")
    return Model(
        {"/blog": "<p>Hello", "/sitemap.xml": urlset(url(path, None, more) for path in paths)},
        in_blog,
        has_days=False,
    )


SITEMAPS: Final = {
    each.__name__: each() for each in (wordpress, yoast, ghost, hugo, jekyll, eleventy, docusaurus)
}


def naming(text: str) -> str:
    return f"<html><head>{text}</head><body><p>Hello"


def hexo_xml() -> Model:
    """hexo-generator-search, as the theme NexT names it."""
    entries = "".join(
        f'<entry><title>{title_of(number)}</title><link href="{dated(number)}"/><url>{dated(number)}</url>'
        f'<content type="html"><![CDATA[<p>Text & more]]></content><tags><tag>Home</tag></tags></entry>'
        for number in range(POSTS)
    )
    config = '<script class="next-config" type="application/json">{"path":"/search.xml"}</script>'
    return Model(
        {
            "/": naming(config),
            "/search.xml": f'<?xml version="1.0" encoding="utf-8"?>\n<search>{entries}</search>',
        },
        dated,
        has_titles=True,
    )


def hexo_json() -> Model:
    """hexo-generator-json-content: posts and pages stand apart."""
    posts = [
        {
            "title": title_of(number),
            "slug": name_of(number),
            "date": f"{day_of(number):%Y-%m-%dT%H:%M:%S.000Z}",
            "path": at_root(number).lstrip("/"),
            "permalink": HOST + at_root(number),
            "text": "Text",
            "tags": [{"name": "Home", "permalink": f"{HOST}/tags/Home/"}],
        }
        for number in range(POSTS)
    ]
    pages = [{"title": path, "date": "2020-01-01T00:00:00.000Z", "permalink": HOST + path} for path in PAGES]
    script = '<script>window.insight = loadInsight({"contentUrl":"/content.json"})</script>'
    content = json.dumps({"meta": {"title": "A site", "url": HOST}, "pages": pages, "posts": posts})
    return Model({"/": naming(script), "/content.json": content}, at_root, has_titles=True)


def hugo_json() -> Model:
    """Hugo for fuse.js, with sections and days as people write them."""
    posts = [
        {
            "title": title_of(number).replace("&", "&amp;"),
            "permalink": HOST + path_of(number),
            "section": "posts",
            "date": f"{day_of(number):%B %-d, %Y}",
            "contents": "Text",
        }
        for number in range(POSTS)
    ]
    pages = [
        {"title": "About", "permalink": f"{HOST}/posts/my-cv/", "section": "", "date": "January 1, 2020"}
    ]
    link = '<link rel="preload" href="/index.json" as="fetch" crossorigin="anonymous">'
    return Model({"/": naming(link), "/index.json": json.dumps([*posts, *pages])}, has_titles=True)


def jekyll_json() -> Model:
    """Simple-Jekyll-Search's template."""
    posts = [
        {
            "title": title_of(number),
            "category": "",
            "tags": "Home, Tools",
            "url": dated(number),
            "date": f"{day_of(number):%Y-%m-%d %H:%M:%S +0000}",
        }
        for number in range(POSTS)
    ]
    script = "<script>SimpleJekyllSearch({ json: '/search.json', searchInput: x })</script>"
    return Model({"/": naming(script), "/search.json": json.dumps(posts)}, dated, has_titles=True)


def lunr_store() -> Model:
    """Minimal Mistakes: JavaScript that assigns an array."""
    posts = [
        {"title": title_of(n), "excerpt": "Text", "url": HOST + dated(n), "teaser": None}
        for n in range(POSTS)
    ]
    script = '<script src="/assets/js/lunr/lunr-store.js"></script>'
    return Model(
        {"/": naming(script), "/assets/js/lunr/lunr-store.js": f"var store = {json.dumps(posts)}"},
        dated,
        has_titles=True,
    )


def elasticlunr() -> Model:
    """Zola: documents by their URLs."""
    docs = {
        HOST + dated(n): {"body": "Text", "id": HOST + dated(n), "title": title_of(n)} for n in range(POSTS)
    }
    index_ = {
        "fields": ["title", "body"],
        "ref": "id",
        "index": {},
        "documentStore": {"save": True, "docs": docs},
    }
    script = '<script defer src="/search_index.en.js"></script>'
    return Model(
        {"/": naming(script), "/search_index.en.js": f"window.searchIndex = {json.dumps(index_)};"},
        dated,
        has_titles=True,
    )


INDEXES: Final = {
    each.__name__: each() for each in (hexo_xml, hexo_json, hugo_json, jekyll_json, lunr_store, elasticlunr)
}
