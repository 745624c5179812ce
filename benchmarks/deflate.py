"""Cost of compression: `python -m benchmarks.deflate`.

For one segment of generated Atom text, prints the speed and size of each way to make a block, the cost of
joining, and how much worse small blocks compress.
"""

from __future__ import annotations

import random
import sys
import time
import zlib
from collections.abc import Callable

from isal import isal_zlib

from wholefeed.core.compose.segments import combine, crc_shift, inflate, seal

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXT_BYTES = 1 << 20
ROUNDS = 7


def atom_text(length: int, *, seed: int = 1) -> bytes:
    """Entries of about 3 KB, with words as unevenly frequent as in prose."""
    chance = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 10))) for _ in range(4000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    out: list[str] = []
    size = 0
    while size < length:
        title, content = chance.choices(words, weights, k=6), chance.choices(words, weights, k=450)
        number = chance.randrange(10**9)
        out.append(
            f"<entry><id>tag:example.org,2020:{number}</id><title>{' '.join(title)}</title>"
            f'<updated>2020-01-{number % 28 + 1:02}T00:00:00Z</updated><content type="html">'
            f"&lt;p&gt;{' '.join(content)}&lt;/p&gt;</content></entry>\n"
        )
        size += len(out[-1])
    return "".join(out).encode()[:length]


def fastest(work: Callable[[], object]) -> float:
    """Return the duration of the shortest run in seconds."""
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


def _isal(text: bytes, level: int) -> bytes:
    deflater = isal_zlib.compressobj(level, isal_zlib.DEFLATED, -15)
    return deflater.compress(text) + deflater.flush(isal_zlib.Z_FULL_FLUSH)


def _zlib(text: bytes, level: int) -> bytes:
    deflater = zlib.compressobj(level, zlib.DEFLATED, -15)
    return deflater.compress(text) + deflater.flush(zlib.Z_FULL_FLUSH)


def main() -> None:
    text = atom_text(TEXT_BYTES)
    ways: list[tuple[str, Callable[[bytes, int], bytes], int]] = [
        *((f"isal level {level}", _isal, level) for level in (0, 1, 2, 3)),
        *((f"zlib level {level}", _zlib, level) for level in (1, 6)),
        *((f"zstd level {level} (bodies)", zstd.compress, level) for level in (1, 3)),
    ]
    for name, way, level in ways:
        seconds = fastest(lambda way=way, level=level: way(text, level))  # type: ignore[misc]
        share = len(way(text, level)) / len(text)
        print(f"{name:22} {len(text) / seconds / 1e6:7.0f} MB/s {share:7.1%}")

    sealed = seal(text)
    print(f"{'seal':22} {len(text) / fastest(lambda: seal(text)) / 1e6:7.0f} MB/s")
    seconds = fastest(lambda: inflate(sealed.block, sealed.length, sealed.crc32))
    print(f"{'inflate':22} {len(text) / seconds / 1e6:7.0f} MB/s")
    seconds = fastest(lambda: combine(sealed.crc32, sealed.crc32, sealed.length))
    print(f"{'combine':22} {seconds * 1e6:7.1f} us")
    print(f"{'crc_shift':22} {fastest(lambda: crc_shift(sealed.length)) * 1e6:7.1f} us")
    for size in (5_000, 120_000, 500_000):
        parts = [text[at : at + size] for at in range(0, len(text) - size + 1, size)]
        blocks = sum(len(seal(part).block) for part in parts) / sum(map(len, parts))
        whole = len(sealed.block) / len(text)
        print(f"blocks of {size:7} bytes  {blocks / whole - 1:+7.1%} size")


if __name__ == "__main__":
    main()
