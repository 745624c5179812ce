from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.store.tables.documents import encode_body

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SMALL = b"<entry><title>a</title></entry>" * 100
LARGE = bytes(range(256)) * 2048


@given(st.lists(st.binary(max_size=300), max_size=8))
def test_each_body_is_a_frame_of_its_own(texts: list[bytes]) -> None:
    """A compressor that is used again and again makes of a body what it made before: nothing of others."""
    alone = [encode_body(text) for text in texts]
    assert [zstd.decompress(each) for each in alone] == texts
    assert [encode_body(text) for text in reversed(texts)] == alone[::-1]


@pytest.mark.parametrize("body", [b"", SMALL, LARGE], ids=["empty", "small", "large"])
def test_a_body_tells_its_length_and_is_checked(body: bytes) -> None:
    """The frame names how long the text is, so that it is decompressed at once, and ends with a checksum."""
    coded = encode_body(body)
    assert zstd.get_frame_info(coded).decompressed_size == len(body)
    assert zstd.decompress(coded) == body
    assert coded[4] & 0b100, "RFC 8878, section 3.1.1.1.1: Content_Checksum_flag"


def test_threads_do_not_share_a_compressor() -> None:
    """Bodies that are compressed at the same moment do not mix."""
    texts = [bytes([number]) * (1000 + number) for number in range(200)]
    with ThreadPoolExecutor(8) as threads:
        coded = list(threads.map(encode_body, texts * 10))
    assert [zstd.decompress(each) for each in coded] == texts * 10
