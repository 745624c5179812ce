"""Layouts of software that runs on a server, after the pages that it writes, and what people add to them.

WordPress' default themes, Ghost's Casper, Hexo's Icarus, Tumblr, micro.blog, Drupal, Django's dated archives.
"""

# ruff: noqa: E501, RUF001 - HTML as software writes it, in long lines, with its arrows
from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from html import escape
from typing import Final

from tests.sites.by_hand import anchor, article, by_hand, framed, newest
from tests.sites.posts import Post, posts
from tests.sites.site import URL, Layout

Listed = list[tuple[str, Post]]
PAGE: Final = 8


def page_of(body: str, *, html: str = "", classes: str = "", head: str = "") -> str:
    """Make a page whose `html` and `body` have classes of their own."""
    framed_page = framed(body, head).replace("<body>", f'<body class="{classes}">')
    return framed_page.replace('<html lang="en">', f'<html lang="en" class="{html}">')


def in_pages(
    found: Listed,
    make: Callable[[int, int, Listed], str],
    target: Callable[[int], str] = lambda number: f"/page/{number}/",
    page_posts: int = PAGE,
    first: str = "/",
) -> dict[str, str]:
    """Make the pages of a list by their paths: `make` gets the number of a page, of all, and its posts."""
    starts = range(0, len(found), page_posts)
    return {
        first if number == 1 else target(number): make(number, len(starts), found[start : start + page_posts])
        for number, start in enumerate(starts, 1)
    }


def by_day(written: Iterable[Post], above: str = "") -> dict[str, Post]:
    return {f"{above}/{post.date:%Y/%m/%d}/{post.slug}/": post for post in written}


# WordPress


def wordpress(kind: str, seed: int, item: Callable[[str, Post], str], frame: str, paging: str) -> Layout:
    """Make a blog whose pages have the classes of WordPress' `body_class`, two posts being sticky."""
    written = by_day(posts(44, seed))
    found = newest(written, 44)
    sticky = [found[30], found[17]]

    def make(number: int, last: int, part: Listed) -> str:
        listed = part if number > 1 else [*sticky, *part]
        further = paging.format(number=number + 1, last=last) if number < last else ""
        classes = "home blog" if number == 1 else f"home blog paged paged-{number}"
        body = frame.format("".join(item(*each) for each in listed) + further)
        return page_of(
            body,
            classes=f"{classes} wp-embed-responsive hfeed has-sidebar",
            html="no-js no-svg"[: 5 + number],
        )

    return by_hand(
        kind, found[:10], in_pages(found, make), written, lists=("index.html", "page/*/index.html")
    )


def entry_2017(path: str, post: Post) -> str:
    return (
        f'<article id="post-{len(path)}" class="post-{len(path)} post type-post format-standard hentry">\n'
        f'<header class="entry-header"><div class="entry-meta"><span class="screen-reader-text">Posted on</span>'
        f' <a href="{path}" rel="bookmark"><time class="entry-date published" datetime="{post.date.isoformat()}">'
        f"{post.date:%B %d, %Y}</time></a></div>\n"
        f'<h3 class="entry-title"><a href="{path}" rel="bookmark">{escape(post.title)}</a></h3></header>\n'
        f'<div class="entry-content"><p>{post.text[0]}</p></div></article>\n'
    )


def entry_2021(path: str, post: Post) -> str:
    return (
        f'<article id="post-{len(path)}" class="post-{len(path)} post type-post hentry entry">\n'
        f'<header class="entry-header"><h2 class="entry-title default-max-width">{anchor(path, post.title)}</h2>'
        f'</header><div class="entry-content"><p>{post.text[0]} <a class="more-link" href="{path}">'
        f'Continue reading <span class="screen-reader-text">{escape(post.title)}</span></a></p></div>\n'
        f'<footer class="entry-footer default-max-width"><span class="posted-on">Published '
        f'<time class="entry-date" datetime="{post.date.isoformat()}">{post.date:%B %d, %Y}</time></span>'
        f"</footer></article>\n"
    )


def entry_2024(path: str, post: Post) -> str:
    return (
        f'<li class="wp-block-post post-{len(path)} post type-post hentry">\n'
        f'<h2 class="wp-block-post-title has-x-large-font-size"><a href="{path}" target="_self">'
        f'{escape(post.title)}</a></h2><div class="wp-block-post-date"><time datetime="{post.date.isoformat()}">'
        f'<a href="{path}">{post.date:%b %d, %Y}</a></time></div></li>\n'
    )


TWENTY_SEVENTEEN: Final = wordpress(
    "WordPress, Twenty Seventeen: pages by number, a link at the date and one at the title, sticky posts",
    70,
    entry_2017,
    '<div id="page" class="site"><div class="wrap"><main id="main" class="site-main">{}</main></div></div>',
    '<nav class="navigation pagination"><div class="nav-links"><span class="page-numbers current">1</span>'
    '<a class="page-numbers" href="/page/{number}/"><span class="meta-nav">Page </span>{number}</a>'
    '<a class="page-numbers" href="/page/{last}/">{last}</a></div></nav>',
)
TWENTY_TWENTY_ONE: Final = wordpress(
    "WordPress, Twenty Twenty-One: older posts, a link behind each text",
    71,
    entry_2021,
    '<div id="page" class="site"><div id="content" class="site-content"><main id="main">{}</main></div></div>',
    '<nav class="navigation pagination"><div class="nav-links"><a class="next page-numbers" '
    'href="/page/{number}/"><span class="nav-next-text">Older <span>posts</span></span></a></div></nav>',
)
TWENTY_TWENTY_FOUR: Final = wordpress(
    "WordPress, Twenty Twenty-Four: a list of blocks",
    72,
    entry_2024,
    '<div class="wp-site-blocks"><main class="wp-block-group"><div class="wp-block-query">'
    '<ul class="wp-block-post-template wp-container-core-post-template-is-layout-1">{}</ul></div></main></div>',
    '</ul><nav class="wp-block-query-pagination"><a href="/page/{number}/" '
    'class="wp-block-query-pagination-next">Next Page<span class="arrow">→</span></a></nav><ul>',
)

# Ghost, Hexo


def ghost() -> Layout:
    """Casper: cards, the first of which are larger; posts beside pages; rel=next in the head."""
    written = {f"/{post.slug}/": post for post in posts(50, 73, avoiding=("about", "page", "news"))}
    found = newest(written, 50)
    menu = '<header id="gh-head" class="gh-head"><nav><a href="/">Home</a><a href="/about/">About</a></nav></header>'

    def card(place: int, path: str, post: Post) -> str:
        size = " post-card-large" if place == 0 else ""
        picture = f'<a class="post-card-image-link" href="{path}"><img src="/x.jpg" alt=""></a>' * (place % 2)
        return (
            f'<article class="post-card post tag-{post.tags[0].lower()}{size}">{picture}<div '
            f'class="post-card-content"><a class="post-card-content-link" href="{path}"><header '
            f'class="post-card-header"><h2 class="post-card-title">{escape(post.title)}</h2></header><div '
            f'class="post-card-excerpt">{post.text[0]}</div></a><footer class="post-card-meta"><time '
            f'class="post-card-meta-date" datetime="{post.date:%Y-%m-%d}">{post.date:%d %b %Y}</time>'
            f'<span class="post-card-meta-length">3 min read</span></footer></div></article>\n'
        )

    def make(number: int, last: int, part: Listed) -> str:
        cards = "".join(card(place if number == 1 else 1, *each) for place, each in enumerate(part))
        head = f'<link rel="next" href="{URL}/page/{number + 1}/">' if number < last else ""
        body = f'{menu}<div class="site-content"><main id="site-main"><div class="post-feed">{cards}</div></main></div>'
        classes = "home-template is-head-left-logo has-cover" if number == 1 else "paged is-head-left-logo"
        return page_of(f'<div class="viewport">{body}</div>', classes=classes, head=head)

    return by_hand(
        "Ghost, Casper: cards whose page is another from the second on, posts beside pages, rel=next",
        found[:15],
        {"/about/": framed(menu + "<h1>About</h1>"), **in_pages(found, make, page_posts=12)},
        written,
        lists=("index.html", "page/*/index.html"),
    )


def icarus() -> Layout:
    """Its last page links one more, which is not there."""
    written = by_day(posts(36, 74))
    found = newest(written, 36)

    def make(number: int, last: int, part: Listed) -> str:
        cards = "".join(
            f'<div class="card"><article class="card-content article"><div class="article-meta level"><span '
            f'class="level-item">Posted <time dateTime="{post.date.isoformat()}">{post.date:%Y-%m-%d}</time>'
            f'</span><span class="level-item">Updated <time dateTime="2024-11-02T09:00:00.000Z">2024-11-02</time>'
            f'</span></div><h1 class="title is-3"><a class="link-muted" href="{path}">{escape(post.title)}</a>'
            f'</h1><div class="content"><p>{post.text[0]}</p></div><a class="article-more" href="{path}#more">'
            f"Read more</a></article></div>\n"
            for path, post in part
        )
        numbers = "".join(f'<li><a href="/page/{n}/">{n}</a></li>' for n in range(2, last + 1))
        paging = (
            f'<div class="pagination-next"><a href="/page/{number + 1}/">Next</a></div><ul>{numbers}</ul>'
        )
        return framed(
            f'<section class="section"><div class="column-main">{cards}'
            f'<nav class="pagination">{paging}</nav></div></section>'
        )

    return by_hand(
        "Hexo, Icarus: numbered pages, the last of which links one that is not there",
        found[:10],
        in_pages(found, make),
        written,
        lists=("index.html", "page/*/index.html"),
    )


# Tumblr, micro.blog


def untitled(written: list[Post], every: int) -> list[Post]:
    """Take the titles away but from a few posts."""
    return [post if number % every == 0 else post._replace(title="") for number, post in enumerate(written)]


def tumblr() -> Layout:
    """Posts of several types, few with a title; links at the notes and the date of each."""
    written = {
        f"/post/{170000000000 + 7919 * number}/{post.slug[:20].strip('-')}/": post
        for number, post in enumerate(untitled(posts(48, 75, odd=0), 4))
    }
    found = newest(written, 48)
    types = ("photo", "quote", "text", "link", "video")

    def make(number: int, last: int, part: Listed) -> str:
        items = "".join(
            f'<article id="post-{len(path)}" class="{types[len(path) % 5]}">'
            + (f"<h2>{anchor(path, post.title)}</h2>" if post.title else "")
            + f'<div class="{types[len(path) % 5]}"><p>{post.text[0]}</p></div><footer class="post-footer">'
            f'<a class="post-notes" href="{path}#notes">{len(post.text[0])} notes</a> <a class="post-date" '
            f'href="{path}">{post.date:%B %d, %Y}</a></footer></article>\n'
            for path, post in part
        )
        older = f'<a href="/page/{number + 1}" class="next">Older ›</a>' if number < last else ""
        return framed(f'<section id="posts">{items}</section><nav class="pagination">{older}</nav>')

    return by_hand(
        "Tumblr: posts of several types, few with titles, links at notes and dates",
        found[:12],
        in_pages(found, make, target=lambda number: f"/page/{number}"),
        written,
        lists=("index.html", "page/*"),
    )


def micro_blog() -> Layout:
    """An archive whose links are dates; a title, where there is one, stands behind."""
    written = {f"/{post.date:%Y/%m/%d}/{post.slug}.html": post for post in untitled(posts(50, 76, odd=0), 5)}
    found = newest(written, 50)
    menu = '<header><nav><a href="/archive/">Archive</a><a href="/about/">About</a></nav></header>'
    lines = "".join(
        f'<p class="h-entry"><a href="{path}" class="u-url"><time class="dt-published" '
        f'datetime="{post.date:%Y-%m-%dT%H:%M:%S%z}">{post.date:%Y-%m-%d}</time></a>: '
        + (f'<span class="p-name"><b>{escape(post.title)}</b></span> ' if post.title else "")
        + f'<span class="p-summary">{post.text[0][:100]}</span></p>\n'
        for path, post in found
    )
    front = "".join(
        '<div class="h-entry post">'
        + (f'<h1 class="p-name">{anchor(path, post.title)}</h1>' if post.title else "")
        + f'<div class="e-content"><p>{post.text[0]}</p></div><a href="{path}" class="u-url"><time '
        f'class="dt-published" datetime="{post.date:%Y-%m-%d %H:%M:%S %z}">{post.date:%b %d, %Y}</time></a></div>\n'
        for path, post in found[:10]
    )
    return by_hand(
        "micro.blog: an archive of one page whose links are dates; few posts have titles",
        found[:12],
        {
            "/": framed(f"{menu}<main>{front}</main>"),
            "/archive/": framed(f'{menu}<main><div class="h-feed">{lines}</div></main>'),
            "/about/": framed(f"{menu}<main><p>Me</p></main>"),
        },
        written,
        lists=("archive/index.html",),
    )


# Drupal, Django


def drupal() -> Layout:
    """Olivero: a view in pages that are counted from 0 on, in queries."""
    written = {f"/node/{900 + 3 * number}/": post for number, post in enumerate(posts(46, 77, odd=4))}
    found = newest(written, 46)

    def make(number: int, last: int, part: Listed) -> str:
        rows = "".join(
            f'<div class="views-row"><article class="node node--type-article node--view-mode-teaser"><header>'
            f'<h2 class="node__title"><a href="{path}" rel="bookmark"><span>{escape(post.title)}</span></a></h2>'
            f'<div class="node__meta">By <span>Ann</span>, <span>{post.date.day} {post.date:%B, %Y}</span></div>'
            f"</header><p>{post.text[0]}</p></article></div>\n"
            for path, post in part
        )
        pages = "".join(f'<li class="pager__item"><a href="?page={n}">{n + 1}</a></li>' for n in range(last))
        further = f'<li class="pager__item--next"><a href="?page={number}" rel="next">Next ›</a></li>'
        pager = f'<nav class="pager"><ul>{pages}{further if number < last else ""}</ul></nav>'
        return page_of(
            f'<div class="dialog-off-canvas-main-canvas"><main><div class="view">{rows}{pager}</div></main></div>',
            html="js" * (number == 1),
            classes="path-frontpage" if number == 1 else "path-node",
        )

    return by_hand(
        "Drupal, Olivero: pages by query, counted from 0 on",
        found[:10],
        in_pages(found, make, target=lambda number: f"/?page={number - 1}"),
        written,
        lists=("index.html*",),
    )


def django() -> Layout:
    """Archives by date, whose months have names in their paths, and a list of them beside the newest posts."""
    written = {
        f"/weblog/{post.date:%Y}/{post.date:%b}/{post.date:%d}/{post.slug}/".lower(): post
        for post in posts(48, 78, days=11)
    }
    found = newest(written, 48)
    months: dict[str, Listed] = {}
    for path, post in found:
        months.setdefault(f"/weblog/{post.date:%Y/%b}/".lower(), []).append((path, post))
    menu = "".join(f"<li>{anchor(path, f'{part[0][1].date:%B %Y}')}</li>" for path, part in months.items())

    def listed(part: Listed) -> str:
        items = "".join(
            f'<li><h2>{anchor(path, post.title)}</h2><span class="meta">Posted by <strong>Ann</strong> on '
            f"{post.date:%B %d, %Y}</span><p>{post.text[0]}</p></li>\n"
            for path, post in part
        )
        aside = f'<div role="complementary"><h3>Archives</h3><ul>{menu}</ul></div>'
        return framed(f'<div role="main"><ul class="list-news">{items}</ul></div>{aside}')

    return by_hand(
        "Django: archives by month, /weblog/2024/oct/, below the newest posts",
        found[:10],
        {
            "/": framed('<nav><a href="/weblog/">News &amp; weblog</a></nav><p>Hello</p>'),
            "/weblog/": listed(found[:10]),
            **{path: listed(part) for path, part in months.items()},
        },
        written,
        lists=("weblog/????/???/index.html",),
    )


# Months


def month_pages(
    written: dict[str, Post], menu: Callable[[str, dict[str, Listed]], str], front: int = 8
) -> dict[str, str]:
    """Make a front page and one for each month, all with a menu of months or a part of one."""
    months: dict[str, Listed] = {}
    for path, post in newest(written, len(written)):
        months.setdefault(f"/{post.date:%Y/%m}/", []).append((path, post))

    def make(own: str, part: Listed) -> str:
        items = "".join(
            f'<article><h2>{anchor(path, post.title)}</h2><p class="date">{post.date:%A, %d %B %Y}</p>'
            f"<p>{post.text[0]}</p></article>\n"
            for path, post in part
        )
        return framed(f'<main>{items}</main><aside id="secondary">{menu(own, months)}</aside>')

    pages = {own: make(own, part) for own, part in months.items()}
    return {"/": make(next(iter(months)), newest(written, front)), **pages}


def month_select(_: str, months: dict[str, Listed]) -> str:
    options = "".join(
        f"<option value='{URL}{path}'> {part[0][1].date:%B %Y} &nbsp;({len(part)})</option>"
        for path, part in months.items()
    )
    return f'<h2>Archives</h2><select name="archive-dropdown"><option value="">Select Month</option>{options}</select>'


def calendar(own: str, months: dict[str, Listed]) -> str:
    """WordPress' widget: the days of a month, and the month before that has posts."""
    known = list(months)
    place = known.index(own)
    month = months[own][0][1].date
    days = {post.date.day for _, post in months[own]}
    cells = "".join(
        f'<td><a href="{own}{day:02}/" aria-label="Posts published on {day}">{day}</a></td>'
        if day in days
        else f"<td>{day}</td>"
        for day in range(1, 29)
    )
    near = []
    for step, text in ((1, "« {}"), (-1, "{} »")):
        if 0 <= place + step < len(known):
            other = known[place + step]
            near.append(anchor(other, text.format(f"{months[other][0][1].date:%b}")))
    return (
        f'<table id="wp-calendar"><caption>{month:%B %Y}</caption><tbody><tr>{cells}</tr></tbody></table>'
        f'<nav class="wp-calendar-nav"><span class="wp-calendar-nav-prev">{"</span><span>".join(near)}</span></nav>'
    )


MONTHS_TO_CHOOSE: Final = by_day(posts(48, 79, days=9))
MONTHS_IN_A_ROW: Final = by_day(posts(48, 80, days=9))
SELECT: Final = by_hand(
    "months to choose from in a form, and nothing else that leads further down",
    newest(MONTHS_TO_CHOOSE, 8),
    month_pages(MONTHS_TO_CHOOSE, month_select),
    MONTHS_TO_CHOOSE,
    lists=("[12]???/[01]?/index.html",),
)
CALENDAR: Final = by_hand(
    "a calendar that links the days of a month and the month before",
    newest(MONTHS_IN_A_ROW, 8),
    month_pages(MONTHS_IN_A_ROW, calendar),
    MONTHS_IN_A_ROW,
    lists=("[12]???/[01]?/index.html",),
)

# Buttons for more


def card(path: str, post: Post) -> str:
    return (
        f'<article class="card"><div class="card-body"><h3 class="card-title">{anchor(path, post.title)}</h3>'
        f'<time datetime="{post.date:%Y-%m-%d}">{post.date:%d.%m.%Y}</time><p>{post.text[0]}</p></div></article>\n'
    )


def with_button(kind: str, seed: int, button: str, *, whole: bool = False) -> Layout:
    """Make a list that a button continues, with a part of a page unless that is whole."""
    written = {f"/stories/{post.slug}/": post for post in posts(46, seed)}
    found = newest(written, 46)

    def make(number: int, last: int, part: Listed) -> str:
        more = button.format(f"/stories/?page={number + 1}") if number < last else ""
        cards = "".join(card(*each) for each in part) + more
        if number > 1 and not whole:
            return cards
        return framed(f'<div id="app"><section><div id="stories" class="grid">{cards}</div></section></div>')

    pages = in_pages(found, make, target=lambda number: f"/stories/?page={number}", first="/stories/")
    front = framed('<nav><a href="/stories/">Stories</a></nav><p>Hello</p>')
    return by_hand(kind, found[:8], {"/": front, **pages}, written, lists=("stories/index.html*",))


DATA_URL: Final = with_button(
    "a button that names the URL for more in data-url, where a part of a page is",
    81,
    '<div class="more"><button type="button" class="btn js-load-more" data-url="{}">Show more</button></div>',
)
HX_GET: Final = with_button(
    "an element that fetches more when it is seen (htmx), a part of a page",
    82,
    '<div hx-get="{}" hx-trigger="revealed" hx-swap="outerHTML"><img src="/wait.svg" alt=""></div>',
)
LOAD_MORE: Final = with_button(
    "a link to load more, which is a page of its own",
    83,
    '<p class="more"><a class="load-more" href="{}">Load more stories</a></p>',
    whole=True,
)

# From post to post


def chain() -> Layout:
    """Indieweb: the front page has the newest post, each post links the one before and the one behind."""
    written = by_day(posts(30, 84, odd=6))
    found = newest(written, 30)

    def h_entry(place: int) -> str:
        path, post = found[place]
        older = f'<a rel="prev" href="{found[place + 1][0]}">← Previous</a>' if place + 1 < len(found) else ""
        newer = f'<a rel="next" href="{found[place - 1][0]}">Next →</a>' if place else ""
        return (
            f'<article class="h-entry"><h1 class="p-name"><a class="u-url" href="{path}">{escape(post.title)}</a></h1>'
            f'<time class="dt-published" datetime="{post.date.isoformat()}">{post.date:%d %B %Y}</time>'
            f'<div class="e-content"><p>{post.text[0]}</p></div></article><nav>{older} {newer}</nav>'
        )

    def own_page(place: int) -> str:
        page = article(found[place][1])
        start, end = page.index("<article>"), page.index("</article>") + len("</article>")
        return page[:start] + h_entry(place) + page[end:]

    return by_hand(
        "posts that nothing lists: each links the one before it (indieweb)",
        found[:8],
        {"/": framed(h_entry(0)), **{path: own_page(place) for place, (path, _) in enumerate(found)}},
        written,
        lists=("[12]???/*/*/*/index.html",),
    )


# Names, pins, dates


def tags() -> Layout:
    """Tags whose names are those of lists, each with pages, before the pages of the blog."""
    written = by_day(posts(44, 85))
    found = newest(written, 44)
    names = ("notes", "blog", "history", "essays", "journal", "writing", "articles", "diary")
    menu = "".join(f"<li>{anchor(f'/tag/{name}/', name.title())}</li>" for name in names)
    topics = "".join(f"<li>{anchor(f'/category/{name}/', name.title())}</li>" for name in names)

    def listed(part: Listed, below: str, more: str) -> str:
        items = "".join(
            f'<div class="entry"><h2>{anchor(path, post.title)}</h2><small>{post.date:%d/%m/%Y}</small></div>\n'
            for path, post in part
        )
        return framed(
            f'<div id="main">{items}<p class="pages">{more}</p>{below}</div><ul class="tags">{menu}</ul>'
            f'<ul class="topics">{topics}</ul>'
        )

    def make(number: int, last: int, part: Listed) -> str:
        return listed(part, "", anchor(f"/page/{number + 1}/", "»") if number < last else "")

    of_tags = {
        f"/{kind}/{name}/{page}": listed(
            found[place::9], "", anchor(f"/{kind}/{name}/page/2/", "Older posts")
        )
        for kind in ("tag", "category")
        for place, name in enumerate(names)
        for page in ("", "page/2/")
    }
    return by_hand(
        "tags and categories that are named as lists are",
        found[:10],
        {**in_pages(found, make, page_posts=7), **of_tags},
        written,
        lists=("index.html", "page/*/index.html"),
    )


def pinned() -> Layout:
    """Six posts on top of every page, without dates."""
    written = {f"/p/{post.slug}/": post for post in posts(48, 86)}
    found = newest(written, 48)
    pins = found[40:46]

    def make(number: int, last: int, part: Listed) -> str:
        lines = "".join(f"<li>{anchor(path, post.title)}</li>" for path, post in [*pins, *part])
        older = anchor(f"/page/{number + 1}", "Older") if number < last else ""
        return framed(f"<main><ul>{lines}</ul></main><p>{older}</p>")

    return by_hand(
        "six posts that are pinned on top of every page, without dates",
        found[:10],
        in_pages(found, make, target=lambda number: f"/page/{number}", page_posts=14),
        written,
        lists=("index.html", "page/*"),
    )


def in_rows(
    kind: str, seed: int, row: Callable[[str, Post], str], *, by_year: bool, days: int = 30
) -> Layout:
    """Make an archive of one page, of such rows, perhaps under years."""
    written = {f"/posts/{post.slug}.html": post for post in posts(45, seed, days=days)}
    found = newest(written, 45)
    return archive_of(kind, written, found, row, by_year=by_year)


def archive_of(
    kind: str,
    written: dict[str, Post],
    found: Listed,
    row: Callable[[str, Post], str],
    *,
    by_year: bool,
    more: dict[str, str] | None = None,
) -> Layout:
    lines, year = "", 0
    for path, post in found:
        if by_year and post.date.year != year:
            year = post.date.year
            lines += f"</ul><h2>{year}</h2><ul>\n"
        lines += row(path, post)
    front = framed('<nav><a href="/archive.html">Archive</a></nav><p>Hello</p>')
    pages = {"/": front, "/archive.html": framed(f"<main><ul>{lines}</ul></main>"), **(more or {})}
    return by_hand(kind, found[:10], pages, written, lists=("archive.html",))


SPLIT_DATES: Final = in_rows(
    "days and months in elements of their own, under years",
    87,
    lambda path, post: (
        f'<li><span class="day">{post.date.day}</span> <span class="month">{post.date:%b}</span> '
        f"{anchor(path, post.title)}</li>\n"
    ),
    by_year=True,
)
SPLIT_DATES_BEHIND: Final = in_rows(
    "months and days in elements of their own, behind the titles, under years",
    88,
    lambda path, post: (
        f'<li>{anchor(path, post.title)} <span class="date"><b>{post.date:%B}</b> <i>{post.date.day}</i></span>\n'
    ),
    by_year=True,
)
C_DATES: Final = in_rows(
    "dates as C writes them (blosxom): Sat Oct 25 08:48:12 2025",
    89,
    lambda path, post: f"<li>{anchor(path, post.title)} <small>{post.date:%c}</small></li>\n",
    by_year=False,
)


def dates_in_titles() -> Layout:
    """Posts that are named after a week, some with nothing else in their title, published some days later."""
    written = {}
    for number, post in enumerate(posts(45, 90, odd=0)):
        day = post.date - timedelta(days=9)
        name = f"{day.day} {day:%B %Y}"
        title = (name, f"Notes of {name}", post.title)[number % 3]
        written[f"/posts/{number}-x.html"] = post._replace(title=title)
    return archive_of(
        "titles that are dates or have some, beside the dates of publication",
        written,
        newest(written, 45),
        lambda path, post: (
            f'<li><article><h3>{anchor(path, post.title)}</h3><span class="when">{post.date:%Y-%m-%d}</span>'
            "</article></li>\n"
        ),
        by_year=False,
    )


def undated() -> Layout:
    """An archive without dates in one page, beside the pages of the blog, which have them."""
    written = {f"/posts/{post.slug}.html": post for post in posts(45, 91)}
    found = newest(written, 45)

    def make(number: int, last: int, part: Listed) -> str:
        more = anchor(f"/page/{number + 1}/", "Older posts") if number < last else ""
        pages = anchor(f"/page/{last}/", "Last")
        return framed(
            f'<nav><a href="/archive.html">Archive</a></nav><main>{"".join(card(*each) for each in part)}</main>'
            f"<p>{more} {pages}</p>"
        )

    return archive_of(
        "an archive without dates, beside pages that have some",
        written,
        found,
        lambda path, post: f"<li>{anchor(path, post.title)}</li>\n",
        by_year=False,
        more=in_pages(found, make, page_posts=12),
    )


def with_sitemap() -> Layout:
    """An archive without dates, and a sitemap that has them."""
    written = {f"/posts/{post.slug}.html": post for post in posts(45, 92)}
    found = newest(written, 45)
    urls = "".join(
        f"<url><loc>{URL}{path}</loc><lastmod>{post.date.isoformat()}</lastmod></url>\n"
        for path, post in found
    )
    sitemap = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'
    return archive_of(
        "an archive without dates, and a sitemap that has them",
        written,
        found,
        lambda path, post: f"<li>{anchor(path, post.title)}</li>\n",
        by_year=False,
        more={"/sitemap.xml": f'<?xml version="1.0" encoding="UTF-8"?>\n{sitemap}\n'},
    )


def menu_words() -> Layout:
    """A list whose name is nobody else's, in the menu."""
    written = {f"/{post.slug}/": post for post in posts(45, 93, avoiding=("words", "about", "uses", "now"))}
    found = newest(written, 45)
    names = ("About", "Uses", "Words", "Now")
    menu = "".join(f"<li>{anchor(f'/{name.lower()}/', name)}</li>" for name in names)
    header = f"<header><nav><ul>{menu}</ul></nav></header>"
    lines = "".join(
        f"<li><span>{post.date:%d %b %Y}</span> {anchor(path, post.title)}</li>\n" for path, post in found
    )
    pages = {f"/{name.lower()}/": framed(f"{header}<main><p>{name}</p></main>") for name in names}
    pages["/words/"] = framed(f"{header}<main><ul>{lines}</ul></main>")
    return by_hand(
        "a list in the menu under a name of its own, /words/",
        found[:10],
        {"/": framed(f"{header}<main><p>Hello</p></main>"), **pages},
        written,
        lists=("words/index.html",),
    )


# What is no list, or no part of one


def jobs() -> Layout:
    """The jobs of a feed with their dates, and more jobs in the same list without any."""
    offered = {f"/jobs/{post.slug}/": post for post in posts(40, 94, days=2, odd=0)}
    others = {f"/jobs/{post.slug}/": post for post in posts(20, 95, days=2, odd=0)}
    found = newest(offered, 12)
    rows = "".join(
        f"<li>{anchor(path, post.title)} <span>{post.date:%d %b %Y}</span></li>\n" for path, post in found
    )
    more = "".join(
        f"<li>{anchor(path, post.title)}</li>\n" for path, post in others.items() if path not in offered
    )
    return by_hand(
        "jobs with their dates, and more jobs without in the same list",
        found,
        {"/": framed(f"<main><ul>{rows}</ul><p>More jobs</p><ul>{more}</ul></main>")},
        offered,
    )


def upgrade_notes() -> Layout:
    """The releases of a feed, and four pages of the same shape below."""
    released = {f"/releases/{post.slug}/": post for post in posts(40, 96, odd=0)}
    found = newest(released, 10)
    rows = "".join(f"<li>{anchor(path, post.title)}</li>\n" for path, post in found)
    more = "".join(
        f"<li>{anchor(f'/releases/upgrade-to-{n}/', f'Upgrading to {n}')}</li>" for n in range(4, 0, -1)
    )
    return by_hand(
        "releases, and pages about upgrades in a list of the same shape",
        found,
        {"/": framed(f"<main><ul>{rows}</ul><p>Upgrade notes</p><ul>{more}</ul></main>")},
        released,
    )


def popular() -> Layout:
    """All posts with their dates; below them, in the same list, five pages that are none."""
    written = {f"/writing/{post.slug}/": post for post in posts(40, 97)}
    found = newest(written, 40)
    rows = "".join(f"<li>{anchor(path, post.title)}, {post.date:%d %B %Y}</li>\n" for path, post in found)
    more = "".join(f"<li>{anchor(f'/writing/{name}/', name)}</li>" for name in ("colophon", "books", "feeds"))
    return by_hand(
        "all posts with their dates; in the same list, below them, pages that are none",
        found[:10],
        {"/": framed(f"<main><ul>{rows}{more}</ul></main>")},
        written,
        lists=("index.html",),
    )


LAYOUTS: Final = {
    "wordpress twenty seventeen": TWENTY_SEVENTEEN,
    "wordpress twenty twenty-one": TWENTY_TWENTY_ONE,
    "wordpress twenty twenty-four": TWENTY_TWENTY_FOUR,
    "ghost casper": ghost(),
    "hexo icarus": icarus(),
    "tumblr": tumblr(),
    "micro.blog": micro_blog(),
    "drupal olivero": drupal(),
    "django months": django(),
    "months in a form": SELECT,
    "months of a calendar": CALENDAR,
    "more by data-url": DATA_URL,
    "more by hx-get": HX_GET,
    "more by a link": LOAD_MORE,
    "post to post": chain(),
    "tags named as lists": tags(),
    "pinned on every page": pinned(),
    "split dates": SPLIT_DATES,
    "split dates behind": SPLIT_DATES_BEHIND,
    "dates of C": C_DATES,
    "dates in titles": dates_in_titles(),
    "undated archive": undated(),
    "undated with a sitemap": with_sitemap(),
    "menu of words": menu_words(),
    "dated list with others": popular(),
    "no list: more jobs": jobs(),
    "no list: upgrade notes": upgrade_notes(),
}
