"""The feeds of a WordPress, element for element in the order of its templates (`wp-includes/feed-*.php`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from tests.publishers.blog import Post

EXCERPT_WORDS: Final = 55
CONTENT_TYPES: Final = {
    "rss2": "application/rss+xml",
    "atom": "application/atom+xml",
    "rdf": "application/rdf+xml",
}
_RSS_HEAD: Final = """<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"
	xmlns:content="http://purl.org/rss/1.0/modules/content/"
	xmlns:wfw="http://wellformedweb.org/CommentAPI/"
	xmlns:dc="http://purl.org/dc/elements/1.1/"
	xmlns:atom="http://www.w3.org/2005/Atom"
	xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"
	xmlns:slash="http://purl.org/rss/1.0/modules/slash/"
	>
"""
_ATOM_HEAD: Final = """<?xml version="1.0" encoding="UTF-8"?><feed
	xmlns="http://www.w3.org/2005/Atom"
	xmlns:thr="http://purl.org/syndication/thread/1.0"
	xml:lang="en-US"
	>
"""
_RDF_HEAD: Final = """<?xml version="1.0" encoding="UTF-8"?><rdf:RDF
	xmlns="http://purl.org/rss/1.0/"
	xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	xmlns:dc="http://purl.org/dc/elements/1.1/"
	xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"
	xmlns:admin="http://webns.net/mvcb/"
	xmlns:content="http://purl.org/rss/1.0/modules/content/"
	>
"""


@dataclass(frozen=True, kw_only=True)
class Site:
    """The feeds' description of the site."""

    url: str
    """Without a slash at its end."""
    title: str
    generator: str
    """Generator in rss2 and rdf."""
    atom_generator: str
    """The whole element."""
    extra: str = ""
    """Further elements in an RSS channel."""

    pretty: bool = True
    """Whether it has permalinks."""
    guids: str = "{url}/?p={id}"
    """Form of its guids, which somebody may have replaced."""

    def permalink(self, post: Post) -> str:
        if not self.pretty:
            return self.guid(post)
        return f"{self.url}/{datetime.fromtimestamp(post.published, UTC):%Y/%m}/{post.slug}/"

    def feed_of(self, post: Post, name: str) -> str:
        """Return the address of the feed of a post's comments."""
        if not self.pretty:
            return f"{self.url}/?feed={name}&amp;p={post.id}"
        return f"{self.permalink(post)}feed/" + ("" if name == "rss2" else f"{name}/")

    @property
    def atom_id(self) -> str:
        return f"{self.url}/feed/atom/" if self.pretty else f"{self.url}/?feed=atom"

    def guid(self, post: Post) -> str:
        return self.guids.format(url=self.url, id=post.id, slug=post.slug)


def self_hosted(url: str, title: str, version: str, *, pretty: bool) -> Site:
    """Return the description of a self-hosted site."""
    name = f"https://wordpress.org/?v={version}"
    atom = f'<generator uri="https://wordpress.org/" version="{version}">WordPress</generator>'
    return Site(url=url, title=title, generator=name, atom_generator=atom, pretty=pretty)


def on_wordpress_com(url: str, title: str) -> Site:
    """Return the description of a site of WordPress.com, with a search description and a hub."""
    search = f'rel="search" type="application/opensearchdescription+xml" href="{url}/osd.xml" title="{title}"'
    hub = f"rel='hub' href='{url}/?pushpress=hub'"
    return Site(
        url=url,
        title=title,
        generator="http://wordpress.com/",
        atom_generator='<generator uri="http://wordpress.com/">WordPress.com</generator>',
        extra=f"\t<atom:link {search} />\n\t<atom:link {hub}/>\n",
    )


@dataclass(frozen=True, kw_only=True)
class Channel:
    """A feed without its items."""

    site: Site
    title: str
    self_url: str
    updated: int
    excerpts: bool = False
    """Whether items have excerpts only (its option `rss_use_excerpt`)."""
    dated: bool = True
    """Whether it has a date of update, in the formats with an optional one."""


def _excerpt(post: Post) -> str:
    words = post.content.split()
    return " ".join(words[:EXCERPT_WORDS]) + (" [&#8230;]" if len(words) > EXCERPT_WORDS else "")


def feed(name: str, channel: Channel, posts: Sequence[Post]) -> str:
    """Write a feed of posts in one of the formats."""
    return {"rss2": _rss2, "atom": _atom, "rdf": _rdf}[name](channel, posts)


def comments(channel: Channel, numbers: Sequence[int]) -> str:
    """Write an RSS feed of comments; their number stands for the instant too."""
    url = channel.site.url
    return _rss_channel(channel, language="", indent="\n\t") + _ends(
        f"\t<item>\n\t\t<title>\n\t\tComment on a post by somebody\t\t</title>\n"
        f"\t\t<link>{url}/a-post/#comment-{number}</link>\n\n"
        f"\t\t<dc:creator><![CDATA[somebody]]></dc:creator>\n"
        f"\t\t<pubDate>{_rfc822(1_600_000_000 + number * 1000)}</pubDate>\n"
        f'\t\t<guid isPermaLink="false">{url}/a-post/#comment-{number}</guid>\n\n'
        f"\t\t<description><![CDATA[Comment {number}]]></description>\n"
        f"\t\t<content:encoded><![CDATA[<p>Comment {number}</p>\n]]></content:encoded>\n\t</item>\n"
        for number in numbers
    )


def _rss2(channel: Channel, posts: Sequence[Post]) -> str:
    return _rss_channel(channel) + _ends(_rss_item(channel, post) for post in posts)


def _ends(items: Iterable[str]) -> str:
    return "".join(items) + "</channel>\n</rss>\n"


def _rss_channel(
    channel: Channel, *, language: str = "\t<language>en-US</language>\n", indent: str = ""
) -> str:
    site = channel.site
    built = f"\t<lastBuildDate>{_rfc822(channel.updated)}</lastBuildDate>\n"
    return (
        f"{_RSS_HEAD}\n<channel>\n\t<title>{indent}{escape(channel.title)}</title>\n"
        f'\t<atom:link href={quoteattr(channel.self_url)} rel="self" type="application/rss+xml" />\n'
        f"\t<link>{site.url}</link>\n\t<description></description>\n"
        f"{built if channel.dated else ''}{language}"
        "\t<sy:updatePeriod>\n\thourly\t</sy:updatePeriod>\n\t<sy:updateFrequency>\n\t1\t</sy:updateFrequency>\n"
        f"\t<generator>{site.generator}</generator>\n{site.extra}"
    )


def _rss_item(channel: Channel, post: Post) -> str:
    site = channel.site
    link = site.permalink(post)
    encoded = (
        f"\t\t\t\t\t\t\t\t\t\t<content:encoded><![CDATA[<p>{post.content}</p>\n]]></content:encoded>\n\n"
    )
    categories = "".join(
        f"\t\t<category><![CDATA[{name}]]></category>\n" for name in (post.category, *post.tags)
    )
    return (
        f"\t<item>\n\t\t<title>{escape(post.title)}</title>\n\t\t<link>{link}</link>\n"
        f"\t\t\t\t\t<comments>{link}#respond</comments>\n\n"
        f"\t\t<dc:creator><![CDATA[{post.author}]]></dc:creator>\n\t\t<pubDate>{_rfc822(post.published)}</pubDate>\n"
        f'{categories}\t\t<guid isPermaLink="false">{site.guid(post)}</guid>\n\n'
        f"\t\t\t\t\t<description><![CDATA[{_excerpt(post)}]]></description>\n"
        f"{'' if channel.excerpts else encoded}"
        f"\t\t\t\t\t<wfw:commentRss>{site.feed_of(post, 'rss2')}</wfw:commentRss>\n"
        "\t\t\t<slash:comments>0</slash:comments>\n"
        "\t\t\t</item>\n"
    )


def _atom(channel: Channel, posts: Sequence[Post]) -> str:
    site = channel.site
    return (
        f'{_ATOM_HEAD}\t<title type="text">{escape(channel.title)}</title>\n'
        '\t<subtitle type="text"></subtitle>\n\n'
        f"\t<updated>{_w3c(channel.updated)}</updated>\n\n"
        f'\t<link rel="alternate" type="text/html" href="{site.url}" />\n\t<id>{site.atom_id}</id>\n'
        f'\t<link rel="self" type="application/atom+xml" href={quoteattr(channel.self_url)} />\n\n'
        f"\t{site.atom_generator}\n{''.join(_atom_entry(channel, post) for post in posts)}</feed>\n"
    )


def _atom_entry(channel: Channel, post: Post) -> str:
    site = channel.site
    link = site.permalink(post)
    content = (
        f'\t\t\t\t\t<content type="html" xml:base="{link}"><![CDATA[<p>{post.content}</p>\n]]></content>\n\n'
    )
    categories = "".join(
        f'<category scheme="{site.url}" term="{name}" />' for name in (post.category, *post.tags)
    )
    return (
        f"\t<entry>\n\t\t<author>\n\t\t\t<name>{post.author}</name>\n\t\t\t\t\t</author>\n\n"
        f'\t\t<title type="html"><![CDATA[{post.title}]]></title>\n'
        f'\t\t<link rel="alternate" type="text/html" href="{link}" />\n\n\t\t<id>{site.guid(post)}</id>\n'
        f"\t\t<updated>{_w3c(post.modified)}</updated>\n\t\t<published>{_w3c(post.published)}</published>\n"
        f'\t\t{categories}\n\t\t<summary type="html"><![CDATA[{_excerpt(post)}]]></summary>\n\n'
        f"{'' if channel.excerpts else content}"
        f'\t\t\t\t\t<link rel="replies" type="text/html" href="{link}#comments" thr:count="0" />\n'
        f'\t\t\t<link rel="replies" type="application/atom+xml" href="{site.feed_of(post, "atom")}"'
        ' thr:count="0" />\n'
        "\t\t\t<thr:total>0</thr:total>\n\t\t\t</entry>\n"
    )


def _rdf(channel: Channel, posts: Sequence[Post]) -> str:
    site = channel.site
    listed = "".join(f'\t\t\t\t\t<rdf:li rdf:resource="{site.permalink(post)}"/>\n' for post in posts)
    return (
        f'{_RDF_HEAD}<channel rdf:about="{site.url}">\n\t<title>{escape(channel.title)}</title>\n'
        f"\t<link>{site.url}</link>\n\t<description></description>\n\t<dc:date>{_w3c(channel.updated)}\t</dc:date>\n"
        "\t<sy:updatePeriod>\n\thourly\t</sy:updatePeriod>\n\t<sy:updateFrequency>\n\t1\t</sy:updateFrequency>\n"
        "\t<sy:updateBase>2000-01-01T12:00+00:00</sy:updateBase>\n"
        f'\t<admin:generatorAgent rdf:resource="{site.generator}" />\n'
        f"\t<items>\n\t\t<rdf:Seq>\n{listed}\t\t\t\t</rdf:Seq>\n\t</items>\n</channel>\n"
        f"{''.join(_rdf_item(channel, post) for post in posts)}</rdf:RDF>\n"
    )


def _rdf_item(channel: Channel, post: Post) -> str:
    site = channel.site
    link = site.permalink(post)
    encoded = f"\t\t<content:encoded><![CDATA[<p>{post.content}</p>\n]]></content:encoded>\n\n"
    subjects = "".join(
        f"\t\t\t<dc:subject><![CDATA[{name}]]></dc:subject>\n" for name in (post.category, *post.tags)
    )
    return (
        f'<item rdf:about="{link}">\n\t<title>{escape(post.title)}</title>\n\t<link>{link}</link>\n\n'
        f"\t<dc:creator><![CDATA[{post.author}]]></dc:creator>\n\t<dc:date>{_w3c(post.published)}</dc:date>\n"
        f"{subjects}\n\t\t\t<description><![CDATA[{_excerpt(post)}]]></description>\n"
        f"{'' if channel.excerpts else encoded}\t</item>\n"
    )


def _rfc822(at: int) -> str:
    return formatdate(at, usegmt=True).replace("GMT", "+0000")


def _w3c(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
