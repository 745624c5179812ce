from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.model import ATOM_NS, Family, Scope
from wholefeed.core.verbatim.fragments import Bindings, Surroundings, binding

FEW = ["a", "b", "ab", "b.a", "x-a", "é", "éa"]
MANY = [*FEW, *(f"other{n}" for n in range(20))]
SOON_SECONDS = 5.0


def found(prefixes: list[str], text: str) -> list[str]:
    slice_ = f"<item>{text}</item>".encode()
    declared = Bindings(binding(prefix, "urn:x") for prefix in prefixes).wanted(slice_, 0, len(slice_))
    return [each.name.decode().removeprefix("xmlns:") for each in declared]


@pytest.mark.parametrize("prefixes", [FEW, MANY])
def test_prefixes_are_declared_in_their_own_order_where_they_occur(prefixes: list[str]) -> None:
    """R22; docs/design.md#verbatim-entries: found as `prefix:` in the text."""
    assert found(prefixes, "<b:x/><a:y z='é:q'/>") == ["a", "b", "é"]
    assert found(prefixes, "b.a: x-a:") == ["b.a", "x-a"]
    assert found(prefixes, "a b ab; ca: aé: other1 :a") == []


pieces = st.lists(st.sampled_from([*FEW, ":", ":", " ", "<", "-", ".", "c"]), max_size=12).map("".join)


@given(pieces)
def test_one_pass_finds_what_looking_one_by_one_finds(text: str) -> None:
    """R22: the quick search for many prefixes misses none and invents none; a missed one breaks the XML."""
    assert [each for each in found(MANY, text) if each in FEW] == found(FEW, text)


@pytest.mark.parametrize("prefixes", [FEW, MANY])
def test_prefixes_that_occur_nowhere_are_not_looked_for_in_each_entry(prefixes: list[str]) -> None:
    """R22: of all declared prefixes only those that the entries use are declared again in each of them."""
    text = b"<feed><a:id/><entry>b: ab:</entry><entry/></feed>"
    scope = Scope(dict.fromkeys(prefixes, "urn:x"), "", "http://o.test/")
    around = Surroundings(scope, Family.ATOM, ATOM_NS, text, text.index(b"<entry"))

    assert len(around.foreign) == len(prefixes)
    # One by one each is merely looked for as text: "ab:" holds "b:".
    assert [each.name for each in around.used.declarations] == [b"xmlns:b", b"xmlns:ab"]


@pytest.mark.parametrize("text", ["a" * 2_000_000, "a:" * 1_000_000, "a." * 1_000_000, "é" * 1_000_000])
def test_looking_for_many_prefixes_takes_time_that_grows_with_the_text(text: str) -> None:
    """Row 43: two megabytes of text that resembles prefixes do not stall the answer."""
    started = time.perf_counter()
    found(MANY, text)

    assert time.perf_counter() - started < SOON_SECONDS


def test_a_hundred_prefixes_in_scope_cost_little_more_than_ten() -> None:
    """The names are gone through once, however many are wanted."""
    slice_ = b"<entry><id>urn:1</id><updated>2003-12-13T18:30:02Z</updated></entry>"

    def seconds(count: int) -> float:
        bindings = Bindings(binding(f"p{n}", "urn:x") for n in range(count))
        started = time.process_time()
        for _ in range(3000):
            bindings.wanted(slice_, 0, len(slice_))
        return time.process_time() - started

    assert min(seconds(1000) for _ in range(3)) < 5 * min(seconds(17) for _ in range(3))
