"""Shell completion: the printed script, and its effect in a real bash."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from wholefeed.cli.main import COMMANDS, main

BASH = shutil.which("bash")


def printed(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as end:
        main(["--print-completion", shell])
    assert end.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_every_command_is_in_it(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown shell gets the list of known ones."""
    text = printed(shell, capsys)
    assert [command.name for command in COMMANDS if command.name not in text] == []
    with pytest.raises(SystemExit) as end:
        main(["--print-completion", "cmd"])
    assert end.value.code == 2
    assert shell in capsys.readouterr().err


@pytest.mark.skipif(BASH is None, reason="no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["wholefeed", "op"], {"opml"}),
        (["wholefeed", "re"], {"refresh"}),
        (["wholefeed", "url", "--ans"], {"--answer-bytes"}),
        (["wholefeed", "opml", "--un"], {"--undo"}),
        (["wholefeed", "url", "--rep"], {"--replay"}),
        (["wholefeed", "opml", "--fr"], {"--from"}),
        (["wholefeed", "opml", "subs"], {"subscriptions.opml"}),
        (["wholefeed", "fetch", "-o", "subs"], {"subscriptions.opml"}),
    ],
)
def test_a_real_bash_completes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: set[str]
) -> None:
    """bash completes commands, flags and file names without complaint."""
    (tmp_path / "subscriptions.opml").touch()
    script = tmp_path / "completion.bash"
    script.write_text(printed("bash", capsys))
    assert BASH is not None
    assert subprocess.run([BASH, "-n", script], capture_output=True, check=True).stderr == b""
    ask = (
        f"source {script}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
        "function=$(complete -p wholefeed | sed -n 's/.*-F \\([^ ]*\\).*/\\1/p'); "
        '$function wholefeed "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run([BASH, "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (set(done.stdout.split()), done.stderr) == (expected, "")
