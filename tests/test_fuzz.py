"""Properties of the fuzz harnesses, tested on a few inputs: the seeds, earlier finds, random ones.

The search itself is `python -m fuzz` (docs/fuzzing.md).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.harnesses import HARNESSES
from fuzz.seeds import SEEDS, WORDS

FOUND: Final = Path(__file__).parent / "data" / "fuzz"
CASES: Final = sorted(path for path in FOUND.glob("*/*"))

few = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)


def test_every_harness_has_seeds() -> None:
    """Each fuzz harness starts from seeds, and every stored case belongs to a harness."""
    assert SEEDS.keys() == HARNESSES.keys()
    assert {path.parent.name for path in CASES} | WORDS.keys() <= HARNESSES.keys()


@pytest.mark.parametrize("name", sorted(HARNESSES))
def test_the_seeds_hold(name: str) -> None:
    """Each harness's promise holds of its seeds, which are within its size."""
    for seed in SEEDS[name]():
        assert len(seed) <= HARNESSES[name].max_bytes
        HARNESSES[name].check(seed)


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found_stays_mended(path: Path) -> None:
    """No input that once broke a promise breaks it again."""
    HARNESSES[path.parent.name].check(path.read_bytes())


@st.composite
def inputs(draw: st.DrawFn, name: str) -> bytes:
    """A seed, with pieces dropped, doubled or replaced by words of its language or by random bytes."""
    data = draw(st.sampled_from(SEEDS[name]()))
    words = [word.encode() for word in WORDS.get(name, ())]
    anything = st.one_of(st.binary(max_size=8), *([st.sampled_from(words)] if words else []))
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        data = data[:start] + draw(st.one_of(anything, st.just(data[start:end] * 2))) + data[end:]
    return data[: HARNESSES[name].max_bytes]


@pytest.mark.parametrize("name", sorted(HARNESSES))
def test_inputs_at_random_hold(name: str) -> None:
    """Each harness's promise holds of some random inputs too, in every run of the suite."""

    @few
    @given(inputs(name))
    def holds(data: bytes) -> None:
        HARNESSES[name].check(data)

    holds()
