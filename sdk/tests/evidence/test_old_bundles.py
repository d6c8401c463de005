"""Bundles of format 1, made by commit 8c0d557, keep the exit codes that its `verify` gave them.

The folder has what that commit made of one tenant: calls of executors with and without ids, a gap,
refused lines, actions, two tools, an erasure, retention and a report. `exit-codes.json` has what
its own `tooltrail verify` said, also of altered copies.
"""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from tooltrail.cli.main import main

MADE: Final = Path(__file__).parent / "made_by_8c0d557"
CODES: Final[dict[str, int]] = json.loads((MADE / "exit-codes.json").read_text())
GIVEN: Final[dict[str, list[str]]] = {
    "": [],
    "key": ["--key", str(MADE / "key.txt")],
    "previous": ["--previous", str(MADE / "previous.txt")],
}
BUNDLES: Final = ("plain", "erased", "undecided", "report", "expired")


def _without_line(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join(lines[:1] + lines[2:])


ALTERED: Final[dict[str, tuple[str, str, Callable[[bytes], bytes]]]] = {
    "event": ("plain", "events/000000.ndjson", lambda data: data.replace(b"London", b"Lonxon", 1)),
    "entry": ("plain", "entries/000000.ndjson", _without_line),
    "registry": ("plain", "registry.ndjson", lambda data: data.replace(b"Looks", b"Books", 1)),
    "erasures": ("erased", "erasures.ndjson", lambda data: b""),
    "expired": ("expired", "erasures.ndjson", lambda data: b""),
    "keys": ("plain", "keys.txt", lambda data: data[:-20]),
    "tree": ("undecided", "tree.json", lambda data: data.replace(b'"before":["r', b'"before":["s')),
    "version-left-out": ("plain", "registry.ndjson", lambda data: data.splitlines(True)[0]),
    "report": ("report", "report.json", lambda data: data.replace(b"ada", b"eve")),
    "readme": ("plain", "README.txt", lambda data: b"GENUINE"),
}
"""Bundle, member, and what somebody makes of it."""


STRICTER: Final = {"altered keys": 2}
"""What was taken then and is unreadable now: keys that are damaged, though `--key` names others."""


def altered(name: str, folder: Path) -> Path:
    """A copy of a bundle with one member altered."""
    bundle, member, alter = ALTERED[name]
    path = folder / "altered.zip"
    with zipfile.ZipFile(MADE / f"{bundle}.zip") as before, zipfile.ZipFile(path, "w") as after:
        for each in before.namelist():
            data = before.read(each)
            new = alter(data) if each == member else data
            assert each != member or new != data, "nothing was altered"
            after.writestr(each, new)
    return path


def exit_codes(folder: Path) -> dict[str, int]:
    """What `tooltrail verify` says of each."""
    codes = {
        f"{bundle} {given}".strip(): main(["verify", str(MADE / f"{bundle}.zip"), *options])
        for bundle in BUNDLES
        for given, options in GIVEN.items()
    }
    for name in ALTERED:
        codes[f"altered {name}"] = main(["verify", str(altered(name, folder)), *GIVEN["key"]])
    return codes


@pytest.mark.slow
def test_old_bundles_keep_their_exit_codes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_codes(tmp_path) == CODES | STRICTER
    assert "Traceback" not in capsys.readouterr().err
    assert set(CODES.values()) == {0, 1, 2}
