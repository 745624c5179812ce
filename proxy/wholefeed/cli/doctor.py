"""`wholefeed doctor`: whether everything that it needs is there, and what to type where it is not.

Nothing is changed: no database is made or migrated, no token is made.
"""

from __future__ import annotations

import argparse
import json
from typing import Final

from wholefeed.cli.base import EXIT_DONE, EXIT_ERROR, Command, load, run, show


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "url", metavar="URL", nargs="?", default="", help="a document to fetch as the proxy does"
    )
    parser.add_argument("--offline", action="store_true", help="ask nothing that is not on this machine")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")


def _doctor(options: argparse.Namespace) -> int:
    config = load(options)
    from wholefeed.cli.doctor_probes import Verdict, as_object, as_text, examined, this_machine, worst

    url = ""
    if options.url:
        from wholefeed.web.request import feed_url

        url = feed_url(options.url)
    found = run(examined(config, url, this_machine(), is_offline=options.offline))
    if options.json:
        show(json.dumps(as_object(found), indent=2, ensure_ascii=False) + "\n")
    else:
        show(as_text(found))
    return EXIT_ERROR if worst(found) is Verdict.WRONG else EXIT_DONE


DOCTOR: Final = Command(
    name="doctor",
    summary="tell whether all that wholefeed needs is there, and what to do where it is not (exit 0 or 1)",
    examples="  wholefeed doctor\n"
    "  wholefeed doctor https://example.org/feed.atom\n"
    "  wholefeed doctor --offline --json",
    run=_doctor,
    add_arguments=_add_doctor,
)
