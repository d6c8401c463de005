"""Spools that one SDK wrote, with random damage: both SDKs send the same and miss the same."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sdk.tests.support.ingest_key import KEY
from sdk.tests.support.ingest_server import Server, serving

pytestmark = pytest.mark.slow

PYTHON = """
import json, os, signal, sys
from tooltrail import Trail
trail = Trail()
for tool, args, result in json.load(open(sys.argv[1])):
    with trail.record(tool, args) as recorded:
        recorded.output = result
if sys.argv[2] == "die":
    os.kill(os.getpid(), signal.SIGKILL)
"""
JAVASCRIPT = """
const {{ readFileSync }} = require("node:fs");
const {{ Trail }} = require({sdk!r});
const trail = new Trail();
for (const [tool, args, result] of JSON.parse(readFileSync(process.argv[1], "utf8"))) {{
  trail.record(tool, args, () => result);
}}
if (process.argv[2] === "die") process.kill(process.pid, "SIGKILL");
"""
TEXTS = (
    "",
    "plain",
    "tab\tnew\nline\r\x00\x1f\x7f",
    "\u2028\u2029 é 漢 😀",
    '"quoted" \\ back',
    "password=hush sk-abcdefghijklmnopqrstuvwx",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg",
    '{"type":"gap","producer_id":"forged","producer_seq":7}\tdeadbeef\n',
    "x" * 5000,
)
HEIR = "heir"
"""The tool of the process that takes a spool over."""
NAMES = ("a", "", "password", "api_key", "__proto__", "toJSON", "constructor", "é", "0", "10", "9")


def value(rng: random.Random, depth: int = 4) -> Any:
    """Any JSON."""
    match rng.randrange(8 if depth else 5):
        case 0:
            return rng.choice((None, True, False))
        case 1:
            return rng.choice((0, -1, 2**53, -(2**31), rng.randrange(10**6)))
        case 2:
            return rng.choice((0.5, -1e-7, 1e21, 1.5e300, rng.random()))
        case 3 | 4:
            return rng.choice(TEXTS)
        case 5:
            return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
        case _:
            return {rng.choice(NAMES): value(rng, depth - 1) for _ in range(rng.randrange(5))}


def damage(rng: random.Random, spool: Path) -> None:
    """Flip, cut, double or insert bytes in some of the files with events."""
    for path in sorted(spool.glob("*/*/*")):
        if path.suffix not in (".open", ".batch") or rng.random() < 0.2:
            continue
        data = bytearray(path.read_bytes())
        for _ in range(rng.randrange(4)):
            if not data:
                break
            at = rng.randrange(len(data))
            match rng.randrange(5):
                case 0:
                    data[at] ^= 1 << rng.randrange(8)
                case 1:
                    del data[at : at + rng.randrange(1, 200)]
                case 2:
                    data[at:at] = rng.choice((b"\n", b"\t", b"\x00" * 9, rng.randbytes(20)))
                case 3:
                    data[at:at] = data[at : at + 300]
                case _:
                    del data[at:]
        path.write_bytes(data)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def run(server: Server, js_sdk: Path, language: str, spool: Path, values: Path, then: str) -> None:
    javascript = JAVASCRIPT.format(sdk=str(js_sdk / "dist" / "index.js"))
    commands = {"python": [sys.executable, "-c", PYTHON], "node": ["node", "-e", javascript, "--"]}
    ran = subprocess.run(
        [*commands[language], str(values), then],
        env={
            **os.environ,
            "TOOLTRAIL_URL": server.url,
            "TOOLTRAIL_API_KEY": KEY,
            "TOOLTRAIL_SPOOL_DIR": str(spool),
            "TOOLTRAIL_EXIT_TIMEOUT": "60",
        },
        timeout=120,
    )
    assert ran.returncode == (-9 if then == "die" else 0)


def left_by_others(server: Server, heirs: set[str]) -> tuple[dict[Any, Any], set[Any]]:
    """What arrived of others than the heirs: events by producer and number, and declared losses."""
    events = {
        (each["producer_id"], each["producer_seq"]): each
        for each in server.events
        if each["producer_id"] not in heirs
    }
    gaps = {
        (gap["producer_id"], number, gap["reason"])
        for gap in server.gaps.values()
        for number in range(gap["from_seq"], gap["to_seq"] + 1)
    }
    return events, gaps


@pytest.mark.generated(2, kind="writer")
@pytest.mark.parametrize("writer", ["python", "node"])
@pytest.mark.parametrize("seed", range(20))
def test_both_sdks_save_the_same_of_a_damaged_spool(
    server: Server, js_sdk: Path, tmp_path: Path, seed: int, writer: str
) -> None:
    rng = random.Random(f"{seed} {writer}")
    values, one = tmp_path / "values.json", tmp_path / "one.json"
    pairs = [["echo", {"v": value(rng)}, value(rng)] for _ in range(rng.randrange(1, 700))]
    values.write_text(json.dumps(pairs))
    one.write_text(json.dumps([[HEIR, {}, None]]))
    server.plan = lambda request: (503, {}, {})
    run(server, js_sdk, writer, tmp_path / "written", values, "die")
    damage(rng, tmp_path / "written")
    server.plan = lambda request: None

    sent = {}
    for heir in ("python", "node"):
        spool = tmp_path / heir
        shutil.copytree(tmp_path / "written", spool)
        for arrived in (server.slots, server.gaps, server.batches):
            arrived.clear()
        run(server, js_sdk, heir, spool, one, "end")
        heirs = {each["producer_id"] for each in server.events if each["tool_name"] == HEIR}
        sent[heir] = left_by_others(server, heirs)
        left = [path for path in spool.glob("*/*/**/*") if path.suffix in (".open", ".batch")]
        assert left == []

    for mine, other in zip(sent["python"], sent["node"], strict=True):
        assert sorted(mine) == sorted(other)
    events, gaps = sent["node"]
    assert events == sent["python"][0]
    numbers = sorted([number for _, number in events] + [number for _, number, _ in gaps])
    assert numbers == list(range(len(numbers))), "each number once: an event, or declared"
    assert len(numbers) <= 2 * len(pairs)
