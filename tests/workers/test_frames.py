"""wholefeed.workers.child: what goes through the pipes."""

from __future__ import annotations

import io
import os
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workers.samples import a_sender
from wholefeed.core.model import Family
from wholefeed.workers.child import read_frame, write_frame

LARGE_BYTES = 1 << 16

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def through(*messages: object) -> list[Any]:
    """What comes out at the other end."""
    stream = io.BytesIO()
    for message in messages:
        write_frame(stream, message)
    stream.seek(0)
    return [read_frame(stream) for _ in messages]


@given(st.lists(PLAIN, max_size=3))
def test_objects_come_out_as_they_went_in(messages: list[object]) -> None:
    """One frame after the other, and no frame takes of the next."""
    assert through(*messages) == messages


def test_classes_of_the_core_come_out_as_they_went_in() -> None:
    """Dataclasses, enumerations, named tuples."""
    sender = a_sender()
    assert through((sender, Family.ATOM)) == [(sender, Family.ATOM)]


class Pieces(io.BytesIO):
    """Keeps the pieces that it was written in."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[object] = []

    def write(self, data: Any, /) -> int:
        self.pieces.append(data)
        return super().write(data)


@pytest.mark.parametrize("size", [0, LARGE_BYTES - 1, LARGE_BYTES, 3_000_000])
def test_large_bytes_are_written_as_they_are(size: int) -> None:
    """Nobody copies them, wherever in a message they stand."""
    large = os.urandom(size)
    assert through({"a": [large, (large, b"x")]}) == [{"a": [large, (large, b"x")]}]
    stream = Pieces()
    write_frame(stream, ["x", large])
    assert any(piece is large for piece in stream.pieces) == (size >= LARGE_BYTES)


class Foreign:
    """A class that is none of the core's."""


@pytest.mark.parametrize("message", [os.system, Foreign(), Foreign, print])
def test_nothing_but_the_core_is_made_of_what_comes(message: object) -> None:
    """A worker that was taken over by a document cannot make its server run anything."""
    with pytest.raises(EOFError, match="expected a class of the core"):
        through(message)


def test_functions_of_the_core_are_not_called() -> None:
    """Only classes are, which hold values; and none through what a module has imported."""
    for name in (b"parse\n", b"re.compile\n"):
        with pytest.raises(EOFError, match="expected a"):
            read_frame(io.BytesIO(b"\x80\x02cwholefeed.core.parse.documents\n" + name + b"."))


@pytest.mark.parametrize("pickled", [b"", b"\x80\x05", b"nonsense.", pickle.dumps((1, 2))[:-3], b"K\x09Q."])
def test_what_is_no_frame_ends_the_conversation(pickled: bytes) -> None:
    """Whatever it is: it is told as the end, never as an error of another kind."""
    with pytest.raises(EOFError):
        read_frame(io.BytesIO(pickled))


def test_a_frame_that_breaks_off_is_the_end() -> None:
    """At whichever byte."""
    stream = io.BytesIO()
    write_frame(stream, ("name", b"x" * LARGE_BYTES))
    whole = stream.getvalue()
    for cut in (0, 1, 11, 12, 20, 60, len(whole) - 1):
        with pytest.raises(EOFError):
            read_frame(io.BytesIO(whole[:cut]))
