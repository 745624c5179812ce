"""Known readers, and the additions to their URLs."""

from __future__ import annotations

from urllib.parse import unquote, urlencode

import pytest

from wholefeed.core.readers import READERS, Reach, ReaderLimits, adding_url, reach_of, reader_named
from wholefeed.web.request import VIEW_OPTIONS, read_query, read_view

NOW = 1_700_000_000.0


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_what_a_row_adds_is_taken_by_the_proxy_and_stays_below_the_reader_s_cap(reader: ReaderLimits) -> None:
    """Every parameter exists in the interface, and asks for less than the reader's cap."""
    added = reader.parameters(NOW)
    assert set(added) <= set(VIEW_OPTIONS)
    view = read_view(read_query(urlencode(added)).options, 0)
    assert (view.max_bytes is None) == (reader.max_bytes is None)
    if reader.max_bytes is not None:
        assert 0.9 * reader.max_bytes < (view.max_bytes or 0) < reader.max_bytes
    assert (view.limit is None) == (reader.max_entries is None)
    if reader.max_entries is not None:
        assert 0.8 * reader.max_entries < (view.limit or 0) < reader.max_entries
    assert view.since == (NOW if reader.starts_now else None)


def test_the_table_is_in_order_and_each_row_has_a_sentence() -> None:
    """The page lists the rows in this order."""
    names = [reader.name.casefold() for reader in READERS]
    assert names == sorted(set(names))
    assert all(reader.hint.endswith(".") for reader in READERS)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_reader_of_xml_gets_a_json_feed_as_atom(reader: ReaderLimits) -> None:
    """F1: `as=atom` is added for a JSON Feed alone, and for those alone that do not read it."""
    assert "as" not in reader.parameters(NOW)
    assert ("as" in reader.parameters(NOW, is_json=True)) is not reader.reads_json


def test_the_url_that_adds_a_feed_ends_in_the_feeds_url() -> None:
    """A feed's URL is one value, whatever it consists of; people's own readers have a path."""
    feed = "https://feeds.example.org/feed?url=https%3A%2F%2Fa.test%2Ff&token=x y"
    adding = {each.name: adding_url(each, feed) for each in READERS if each.adds_at}
    assert sorted(adding) == [
        *(
            "Feedbin",
            "Feedly",
            "FreshRSS",
            "Inoreader",
            "Miniflux",
            "NewsBlur",
            "Nextcloud News",
            "The Old Reader",
        ),
    ]
    assert all(unquote(url).endswith(feed) and "&token" not in url for url in adding.values())
    assert {each.name for each in READERS if each.is_self_hosted} == {
        "FreshRSS",
        "Miniflux",
        "Nextcloud News",
    }


@pytest.mark.parametrize(
    ("base", "reach"),
    [
        ("http://127.0.0.1:8080", Reach.MACHINE),
        ("http://localhost:8080", Reach.MACHINE),
        ("http://[::1]:8080", Reach.MACHINE),
        ("http://feeds.localhost", Reach.MACHINE),
        ("http://0.0.0.0:8080", Reach.MACHINE),
        ("http://192.168.1.5:8080", Reach.NETWORK),
        ("http://100.64.0.1", Reach.NETWORK),
        ("http://[fd00::1]:8080", Reach.NETWORK),
        ("http://[fe80::1]", Reach.NETWORK),
        ("http://nas:8080", Reach.NETWORK),
        ("http://nas.local.", Reach.NETWORK),
        ("https://feeds.home.arpa/w", Reach.NETWORK),
        ("https://feeds.example.org", Reach.INTERNET),
        ("https://local.example.org", Reach.INTERNET),
        ("http://93.184.216.34", Reach.INTERNET),
        ("http://[2606:2800:220:1::1]", Reach.INTERNET),
        ("nonsense", Reach.NETWORK),
    ],
)
def test_from_where_a_proxy_is_reached(base: str, reach: Reach) -> None:
    """Services on the internet reach no private address, and no name of a local network."""
    assert reach_of(base) is reach


def test_a_reader_is_found_however_it_is_written() -> None:
    """A command accepts any capitals."""
    found = reader_named(" tiny  tiny RSS")
    assert found is not None
    assert found.name == "Tiny Tiny RSS"
    assert reader_named("no-such-reader") is None
