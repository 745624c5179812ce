"""A real nginx or Caddy in front, with the example configuration and substituted ports and paths.

async with in_front("nginx", folder, port=8080, socket=path) as front:
    status, body = await front.get("kept", "/feeds/feed")
"""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import trustme
from yarl import URL

from demo.proxy_process import free_port
from tests.processes import ROOT

START_SECONDS = 300
PROGRAMS = {
    "nginx": shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin"),
    "caddy": shutil.which("caddy"),
}


class Front:
    """The reverse proxy, asked as a browser asks it."""

    def __init__(self, port: int, tls: ssl.SSLContext | None) -> None:
        self.port = port
        self.scheme = "https" if tls else "http"
        self._tls = tls

    @asynccontextmanager
    async def asked(
        self,
        variant: str,
        target: str,
        *,
        client: str = "127.0.0.1",
        form: str = "",
        **headers: str,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """GET a target of one server block from loopback; POST with a form."""
        name = f"{variant}.example.org"
        connector = aiohttp.TCPConnector(local_addr=(client, 0))
        url = URL(f"{self.scheme}://127.0.0.1:{self.port}{target}", encoded=True)
        sent = {"Host": name, "Accept-Encoding": "identity", **headers}
        if form:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.request(
                "POST" if form else "GET",
                url,
                data=form or None,
                headers=sent,
                ssl=self._tls or False,
                server_hostname=name,
                allow_redirects=False,
            ) as answer,
        ):
            yield answer

    async def get(self, variant: str, target: str, **options: str) -> tuple[int, bytes]:
        """GET a target and read it to its end."""
        async with self.asked(variant, target, **options) as answer:
            return answer.status, await answer.read()


@asynccontextmanager
async def in_front(kind: str, folder: Path, *, port: int, socket: Path) -> AsyncIterator[Front]:
    """Start the reverse proxy in front of an upstream; stop it at the end."""
    listening, tls = free_port(0), None
    if kind == "nginx":
        tls = _certificates(folder)
        command = _nginx(folder, listening, port, socket)
    else:
        command = _caddy(folder, listening, port, socket)
    log = (folder / f"{kind}.log").open("wb")
    homes = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env={**os.environ, **homes}, stdout=log, stderr=subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(START_SECONDS):
            while not await _listens(listening):
                assert process.returncode is None, (folder / f"{kind}.log").read_text()
                await asyncio.sleep(0.05)
        yield Front(listening, tls)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        log.close()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def _certificates(folder: Path) -> ssl.SSLContext:
    authority = trustme.CA()
    made = authority.issue_cert("*.example.org")
    made.private_key_pem.write_to_path(str(folder / "privkey.pem"))
    for pem in made.cert_chain_pems:
        pem.write_to_path(str(folder / "fullchain.pem"), append=True)
    tls = ssl.create_default_context()
    authority.configure_trust(tls)
    return tls


def _nginx(folder: Path, listening: int, port: int, socket: Path) -> list[str]:
    text = (ROOT / "deploy/nginx.conf").read_text("utf-8")
    text = text.replace("listen 443 ", f"listen 127.0.0.1:{listening} ")
    text = text.replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    text = text.replace("/etc/letsencrypt/live/example.org", str(folder))
    text = text.replace("/run/wholefeed/wholefeed.sock", str(socket))
    (folder / "wholefeed.conf").write_text(text)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    user = "user root;" if os.geteuid() == 0 else ""  # the test's socket belongs to its user
    (folder / "nginx.conf").write_text(
        f"{user} daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log stderr warn;\n"
        "events { worker_connections 64; }\n"
        f"http {{ access_log off; {temporary} include {folder}/wholefeed.conf; }}\n"
    )
    return [str(PROGRAMS["nginx"]), "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]


def _caddy(folder: Path, listening: int, port: int, socket: Path) -> list[str]:
    text = (ROOT / "deploy/Caddyfile").read_text("utf-8")
    text = text.replace(".example.org {", f".example.org:{listening} {{").replace(
        "\nfeeds.", "\nhttp://feeds."
    )
    for variant in ("kept", "stripped", "socket"):
        text = text.replace(f"\n{variant}.", f"\nhttp://{variant}.")
    text = text.replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    text = text.replace("/run/wholefeed/wholefeed.sock", str(socket))
    alone = "{\n\tadmin off\n\tauto_https off\n\tdefault_bind 127.0.0.1\n}\n"
    (folder / "Caddyfile").write_text(alone + text)
    return [str(PROGRAMS["caddy"]), "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
