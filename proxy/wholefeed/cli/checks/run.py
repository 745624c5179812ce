"""All checks of `wholefeed doctor`, at once, each for some seconds at most."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from pathlib import Path
from typing import Final

from wholefeed.cli.checks.beside import beside
from wholefeed.cli.checks.database import Newest, check_clock, check_database
from wholefeed.cli.checks.findings import Finding, skipped, warning, wrong
from wholefeed.cli.checks.installation import Machine, check_machine, check_versions
from wholefeed.cli.checks.network import EXAMPLE_HOST, check_fetch, check_names, host_of
from wholefeed.cli.checks.reach import check_server
from wholefeed.cli.checks.secrets import check_secrets, secret_files
from wholefeed.cli.checks.settings import judge_settings
from wholefeed.cli.checks.shared import check_shared
from wholefeed.config.tables import Config, StoreConfig

CHECK_SECONDS: Final = 9.5
"""For one check; they run at once."""


async def examined(config: Config, url: str, machine: Machine, *, is_offline: bool) -> list[Finding]:
    """Run all checks; return what they found, in an order that does not depend on them.

    Args:
        config: What is in force.
        url: A document to fetch; empty: none.
        machine: What this process may use.
        is_offline: Whether nothing may be asked that is not on this machine.
    """

    async def installation() -> list[Finding]:
        versions = await beside(check_versions)
        return [*versions, *check_machine(machine, asyncio.get_running_loop())]

    async def settings() -> list[Finding]:
        def secrets() -> list[Finding]:
            files = secret_files(config.store.path, os.environ)
            return list(check_secrets(files, is_container=machine.is_container))

        return [*judge_settings(config, machine), *await beside(secrets)]

    async def database() -> list[Finding]:
        found, content = await beside(lambda: _check_store(config.store))
        known_url = "" if content is None else content.url
        return [*found, *check_clock(content), *await names(known_url)]

    async def names(known_url: str) -> list[Finding]:
        if is_offline:
            return [skipped("dns", "not asked: --offline")]
        asked = url or known_url
        return await check_names(host_of(asked) if asked else EXAMPLE_HOST, config)

    async def fetch() -> list[Finding]:
        if is_offline or not url:
            return [skipped("fetch", "nothing was fetched", "wholefeed doctor https://example.org/feed.atom")]
        return await check_fetch(url, config)

    async def server() -> list[Finding]:
        return await check_server(config, is_container=machine.is_container, is_offline=is_offline)

    checks = (installation, settings, database, fetch, server)
    results = await asyncio.gather(*(_bounded(check.__name__, check()) for check in checks))
    return [finding for result in results for finding in result]


def _check_store(store: StoreConfig) -> tuple[list[Finding], Newest | None]:
    if store.url:
        return check_shared(store.url, store.connections)
    return check_database(Path(store.path), store.max_bytes)


async def _bounded(name: str, check: Awaitable[list[Finding]]) -> list[Finding]:
    """Let no check take longer than it may, nor stop the others."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await check
    except TimeoutError:
        text = f"it took longer than {CHECK_SECONDS:g} s"
        return [warning(name, text, "try again; a disk or a network that does not answer may be behind it")]
    except Exception as exc:  # noqa: BLE001 - the others are worth having above all
        text = f"it could not be looked at: {type(exc).__name__}: {exc}"
        return [wrong(name, text, "tell the project of this line")]
