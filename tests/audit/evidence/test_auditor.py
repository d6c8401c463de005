"""An auditor with only a key and the command line, against a running server."""

import json
import subprocess
import sys
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tenants.keys import create_key
from tenants.models import Scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.installation import clean_environment
from tests.support.ledger_log import give_key, keep, restore_backup
from tests.support.server import LiveServer


def tooltrail(*words: str, key: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run(
        [sys.executable, "-m", "tooltrail", *words],
        env=clean_environment(TOOLTRAIL_API_KEY=key),
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.slow
def test_auditor_watches_the_ledger_and_verifies_the_evidence(
    acme: Cast, live_server: LiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_key(monkeypatch, tmp_path)
    key = create_key(acme.tenant, "auditor", [Scope.READ, Scope.PAYLOADS])[1]
    folder, now = tmp_path / "watched", datetime.now(UTC)

    def watch() -> tuple[int, str, str]:
        words = ["watch", live_server.url, "--once", "--json", "--folder", str(folder)]
        completed = tooltrail(*words, key=key)
        document = json.loads(completed.stdout)
        return completed.returncode, document["outcome"], document["message"]

    assert watch()[:2] == (3, "no answer")
    sizes = []
    for minute, outcome in enumerate(("first", "grown")):
        send_events(acme.tenant, [event for _ in range(200) for event in make_call()])
        sizes.append(keep(acme.tenant, now + timedelta(minutes=minute)).size)
        assert watch()[:2] == (0, outcome)
    assert watch()[:2] == (0, "unchanged")

    evidence = tmp_path / "evidence.zip"
    evidence_request = urllib.request.Request(
        f"{live_server.url}/api/v1/evidence?range=1h&previous={sizes[0]}",
        headers={"Authorization": f"Bearer {key}"},
    )
    with urllib.request.urlopen(evidence_request) as answer:
        evidence.write_bytes(answer.read())
    kept = [str(folder / "checkpoints" / f"{size:012d}.txt") for size in sizes]
    words = ["verify", str(evidence), "--key", str(folder / "keys.txt"), "--json"]
    verified = tooltrail(*words, "--previous", kept[0], "--previous", kept[1])
    assert verified.returncode == 0, verified.stdout
    assert json.loads(verified.stdout)["events"] == 800

    restore_backup(acme.tenant, sizes[0])
    code, outcome, message = watch()
    assert (code, outcome) == (1, "altered")
    assert f"it had {sizes[1]:,} entries and now has {sizes[0]:,}" in message
    assert len(list((folder / "refused").iterdir())) == 2
