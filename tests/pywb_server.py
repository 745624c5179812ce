"""A real web archive on loopback: pywb, over WARC files that are made for it.

    with pywb(tmp_path, [Saved("http://127.0.0.1:8000/feed", 2019, body)]) as base:
        ...                                             # base: http://127.0.0.1:PORT/feeds

It stands in an environment of its own, which `make setup` makes: it needs other versions of what is in .venv.
"""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

PROGRAMS = Path(sys.prefix) / "pywb" / "bin"
COLLECTION = "feeds"
START_SECONDS = 300.0

_WRITE = """
import base64, io, json, sys
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter
with open(sys.argv[1], "wb") as file:
    writer = WARCWriter(file, gzip=True)
    for each in json.load(sys.stdin):
        head = StatusAndHeaders(each["status"], each["headers"], protocol="HTTP/1.1")
        payload = io.BytesIO(base64.b64decode(each["body"]))
        when = {"WARC-Date": each["when"]}
        writer.write_record(writer.create_warc_record(
            each["url"], "response", payload=payload, http_headers=head, warc_headers_dict=when))
"""


@dataclass(frozen=True)
class Saved:
    """A crawler's copy of an answer, on the first of May of a year."""

    url: str
    year: int
    body: bytes
    status: str = "200 OK"
    content_type: str = "application/atom+xml"
    location: str = ""


needs_pywb = pytest.mark.skipif(
    not (PROGRAMS / "wayback").exists(), reason="needs pywb in an environment of its own: make setup"
)


@contextmanager
def pywb(folder: Path, saved: Sequence[Saved]) -> Iterator[str]:
    """Serve a collection of these, and stop at the end; give its URL."""
    _run(folder, PROGRAMS / "wb-manager", "init", COLLECTION)
    warc = folder / "saved.warc.gz"
    _run(folder, PROGRAMS / "python", "-c", _WRITE, warc, given=json.dumps([_record(each) for each in saved]))
    _run(folder, PROGRAMS / "wb-manager", "add", COLLECTION, warc)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "pywb.log").open("wb") as log:
        server = subprocess.Popen(
            [PROGRAMS / "wayback", "-b", "127.0.0.1", "-p", str(port), "-d", folder],
            cwd=folder, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        _wait(server, port)
        yield f"http://127.0.0.1:{port}/{COLLECTION}"
    finally:
        server.terminate()
        server.wait(10)


def asked(folder: Path) -> list[str]:
    """The requested targets in order, from its log."""
    lines = (folder / "pywb.log").read_text("utf-8", "replace").splitlines()
    found = [line.split('"GET ')[1].split(" HTTP/")[0] for line in lines if f'"GET /{COLLECTION}/' in line]
    return [target for target in found if not target.startswith(f"/{COLLECTION}/index")]  # it asks itself


def _record(saved: Saved) -> dict[str, object]:
    headers = [("Content-Type", saved.content_type), ("Link", '</never>; rel="prev-archive"')]
    if saved.location:
        headers.append(("Location", saved.location))
    return asdict(saved) | {
        "body": base64.b64encode(saved.body).decode(),
        "when": f"{saved.year}-05-01T12:00:00Z",
        "headers": headers,
    }


def _run(folder: Path, *command: str | Path, given: str = "") -> None:
    done = subprocess.run(
        command, cwd=folder, input=given, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        assert server.poll() is None, "it has ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "it does not listen"
            time.sleep(0.05)
