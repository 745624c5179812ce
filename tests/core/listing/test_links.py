"""wholefeed.core.listing.page_links: one link, however it is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.listing.page_links import clean_link, link_key, link_variants

SPELLINGS = (
    "https://a.example/2009/03/post",
    "http://a.example/2009/03/post/",
    "https://A.example:443/2009/03/post/index.html",
    "https://a.example/2009/03/post/index.htm#comments",
    "https://a.example/2009/03/post/index.php?utm_source=feed&UTM_medium=rss",
    "https://a.example/2009/03/p%6Fst/",
)


def urls() -> st.SearchStrategy[str]:
    """Links of entries, with all that may be spelt in several ways."""
    return st.builds(
        "{}://{}{}{}{}{}".format,
        st.sampled_from(["http", "https", "HTTP"]),
        st.sampled_from(["a.example", "A.example:80", "a.example:443", "ä.example"]),
        st.lists(st.sampled_from(["a", "b.html", "ü", "%C3%BC", "index.html", "", "."])).map(
            lambda parts: "".join(f"/{part}" for part in parts)
        ),
        st.sampled_from(["", "/", "/index.html", "/index.php"]),
        st.sampled_from(["", "?", "?p=1", "?utm_source=x", "?p=1&utm_source=x"]),
        st.sampled_from(["", "#top", "#"]),
    )


@pytest.mark.parametrize("url", SPELLINGS)
def test_spellings_of_one_link_have_one_key(url: str) -> None:
    """H6: index.html, a trailing slash, http and https, the fragment and utm parameters are no difference."""
    assert link_key(url) == "//a.example/2009/03/post"


def test_other_links_have_other_keys() -> None:
    """H6: a query, a host or a path that differs is another entry."""
    others = [
        "https://a.example/post?p=1",
        "https://b.example/post",
        "https://a.example/post.html",
        *SPELLINGS,
    ]
    assert len({link_key(url) for url in others}) == 4


def test_a_link_is_cleaned_of_nothing_else() -> None:
    """H5: no fragment, no utm parameters; all else is as it is written."""
    assert clean_link("http://A.example/%7Eme/?p=1&utm_source=x&q=#top") == "http://A.example/%7Eme/?p=1&q="
    assert clean_link("http://a.example/?utm_source=x") == "http://a.example/"


@given(urls())
def test_variants_have_the_key(url: str) -> None:
    """H6: whatever is looked up has the same key, the cleaned link is among it, and nothing stands twice."""
    variants = link_variants(url)
    assert {link_key(variant) for variant in variants} == {link_key(url)}
    assert clean_link(url) in variants
    assert len(set(variants)) == len(variants)
    assert link_key(clean_link(url)) == link_key(url)


@given(st.text(max_size=60))
def test_whatever_is_no_link_is_its_own_key(text: str) -> None:
    """H9: an identity that is no URL raises nothing."""
    assert link_key(text) in {link_key(variant) for variant in link_variants(text)}
