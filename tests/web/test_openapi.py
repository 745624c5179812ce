"""wholefeed/web/openapi.json: results of allowed and of disallowed requests."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode, Response
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.answers import Status
from tests.feeds import publish_chain
from tests.fetchers import Names, opening
from tests.origin import Origin
from tests.running import Proxy, a_config, running
from wholefeed.web.api import description

DOCUMENT = description()
CHECKS: Any = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 20
"""Number of allowed requests of each operation, and of disallowed ones."""
NEVER_ACCEPTED = {
    *(
        ("POST", "/import"),
        ("DELETE", "/import"),
        ("POST", "/opml"),
        ("POST", "/login"),
        ("POST", "/continue"),
    ),
    ("DELETE", "/intake"),
    *((method, path) for method in ("GET", "HEAD") for path in ("/{url}", "/static/{name}")),
}
"""Made-up values never name an existing feed, document, name, list, token, host or file; a form forgets the
list that was brought in."""


async def test_every_operation_answers_as_it_is_described(origin: Origin, tmp_path: Path) -> None:
    """Schemathesis: status, media type, fields and body are described, and never 500."""
    publish_chain(origin, archives=1)
    origin.publish("/page", b"<html><link rel=alternate type='application/atom+xml' href='/feed'></html>")
    origin.fault("/gone", Status(410))
    document: Any = copy.deepcopy(DOCUMENT)
    urls = [origin.url(path) for path in ("/feed", "/page", "/gone")]
    document["components"]["parameters"]["url"]["schema"] = {"enum": urls}
    nowhere = opening(resolver=Names())  # made-up names have no address
    async with running(a_config(tmp_path), open_fetcher=nowhere) as proxy:
        await proxy.whole(urls[0])
        begun = await proxy.ask("POST", "/opml?ask=1", data=b'<opml><outline xmlUrl="urn:x"/></opml>')
        for operation in [
            *document["paths"]["/intake"].values(),
            *document["paths"]["/intake/events"].values(),
        ]:
            operation["parameters"][0]["schema"] = {"enum": [json.loads(begun.body)["id"]]}
        base_url = f"http://{proxy.client.host}:{proxy.client.port}"
        accepted = await asyncio.to_thread(tried, document, base_url)
    operations = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert operations - accepted <= NEVER_ACCEPTED


def tried(document: dict[str, Any], base_url: str) -> set[tuple[str, str]]:
    """Ask for everything; return the operations that succeeded at least once."""
    accepted = set()
    found: Any = schemathesis.openapi.from_dict(document).get_all_operations()
    # HEAD before what forgets the feed; a GET after that fetches it again.
    for operation in sorted((each.ok() for each in found), key=lambda each: each.method != "head"):
        for mode in GenerationMode:
            if mode is GenerationMode.NEGATIVE and (operation.method == "head" or not parameters(operation)):
                continue

            @settings(
                max_examples=EXAMPLES, derandomize=True, database=None, deadline=None,
                suppress_health_check=list(HealthCheck), phases=[Phase.generate],
            )  # fmt: skip
            @given(operation.as_strategy(generation_mode=mode))
            def ask(case: Case[Any]) -> None:
                response: Response = case.call(base_url=base_url, timeout=300, allow_redirects=False)
                case.validate_response(response, checks=CHECKS)
                assert response.status_code != 500, case.as_curl_command()
                if response.status_code < 400:
                    accepted.add((operation.method.upper(), operation.path))  # noqa: B023 - called at once

            ask()
    return accepted


def parameters(operation: Any) -> list[Any]:
    """Yield the parts of an operation that can be wrong: a header field allows any text."""
    return [*operation.query, *operation.path_parameters, *operation.body]


@pytest.mark.parametrize("name", ["limit", "answer_bytes", "page"])
async def test_numbers_are_allowed_up_to_what_is_described(proxy: Proxy, origin: Origin, name: str) -> None:
    """The largest number works; a larger one is refused with both bounds."""
    publish_chain(origin, archives=1)
    schema = DOCUMENT["components"]["parameters"][name]["schema"]
    assert schema["type"] == "integer"
    asked: dict[str, Any] = {"pages": "10"} if name == "page" else {}
    await proxy.whole(origin.url("/feed"))
    for number in (schema["minimum"], schema["maximum"]):
        reply = await proxy.get(origin.url("/feed"), **{**asked, name: str(number)})
        assert reply.status in ((200, 404) if name == "page" else (200,))
    reply = await proxy.get(origin.url("/feed"), **{**asked, name: str(schema["maximum"] + 1)})
    assert reply.status == 400
    assert f"{schema['minimum']} to {schema['maximum']}" in json.loads(reply.body)["detail"]


async def test_pages_for_people_are_counted_in_numbers(proxy: Proxy, origin: Origin) -> None:
    """Too large a number is behind the last page; anything but a number is the first page."""
    publish_chain(origin, archives=1)
    await proxy.whole(origin.url("/feed"))
    most = described("/view", "page")["maximum"]
    assert described("/view", "page")["type"] == described("/", "page")["type"] == "integer"
    for number in (most, most + 1):
        reply = await proxy.ask("GET", "/view", params={"url": origin.url("/feed"), "page": str(number)})
        assert (reply.status, "page 1, which is all, got" in json.loads(reply.body)["detail"]) == (404, True)
    assert (await proxy.ask("GET", "/", params={"page": "none"})).status == 200


def described(path: str, name: str) -> dict[str, Any]:
    """Return the schema of a parameter of one operation."""
    parameters: Any = DOCUMENT["paths"][path]["get"]["parameters"]
    (schema,) = [each["schema"] for each in parameters if each.get("name") == name]
    return dict(schema)


async def test_the_description_is_sent_once(proxy: Proxy) -> None:
    """RFC 9110, 13.1.2: another installation has another tag."""
    first = await proxy.ask("GET", "/openapi.json")
    etag = first.headers["ETag"]
    assert (first.status, first.headers["Content-Type"]) == (200, "application/json; charset=utf-8")
    assert json.loads(first.body) == DOCUMENT
    for method, tags, status in (
        ("GET", etag, 304), ("HEAD", f'"other", W/{etag}', 304), ("GET", "*", 304), ("GET", '"other"', 200),
    ):  # fmt: skip
        again = await proxy.ask(method, "/openapi.json", headers={"If-None-Match": tags})
        assert (again.status, again.headers["ETag"]) == (status, etag)
        assert again.body == (first.body if status == 200 else b"")
