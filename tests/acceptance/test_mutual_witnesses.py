"""End to end: two installations are the witnesses of each other.

Each has its own database, web servers, worker and signing key, and beside it a `tooltrail witness`
that signs the ledger of the other one. This process is the auditor of both.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.request import Request, build_opener

import pytest
from tooltrail.ledger import Checkpoint, SigningKey, VerifierKey, open_checkpoint, parse_note
from tooltrail.ledger.add_checkpoint import AddCheckpoint
from tooltrail.ledger.cosignature import cosigned_by
from tooltrail.ledger.lines import from_base64

from config.instance import BASE_DIR
from sdk.tests.support.witnesses import WitnessProcess, running_witness
from tests.support.factories import make_call
from tests.support.installation import (
    Installation,
    announcement,
    clean_environment,
    prepared_installation,
    until,
)
from tests.support.installation_requests import post_events

pytestmark = [pytest.mark.slow, pytest.mark.sampled("running installation", 1)]


@dataclass(frozen=True)
class Side:
    """A running installation as its admin and its auditor know it."""

    name: str
    installation: Installation
    facts: dict[str, str]
    key: str

    def request(self, path: str, body: dict[str, Any] | None = None) -> bytes:
        """The answer of the API; with a body it is a PUT."""
        request = Request(
            f"{self.facts['url']}/api/v1/{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
            method="GET" if body is None else "PUT",
        )
        with build_opener().open(request) as answer:
            data: bytes = answer.read()
            return data

    def ledger(self) -> dict[str, Any]:
        """How the ledger and its witnesses stand."""
        document: dict[str, Any] = json.loads(self.request("ledger"))
        return document

    def is_signed(self) -> bool:
        """Whether a checkpoint covers the two events of the call."""
        return bool(self.ledger()["signed"] >= 2)

    def is_witnessed(self) -> bool:
        """Whether enough witnesses have signed some checkpoint."""
        return self.ledger()["witnessed"] is not None

    def verifier(self) -> VerifierKey:
        """The public key of its ledger."""
        (item,) = json.loads(self.request("ledger/keys"))["items"]
        return VerifierKey.parse(item["vkey"])

    def signing_key(self) -> SigningKey:
        """The private key, as who has the machine could use it."""
        stored = json.loads((self.installation.var / "ledger" / "signing-keys.json").read_text())
        return SigningKey(self.verifier().name, from_base64(stored[-1]["private"], "the key"))


def started(installations: list[Installation]) -> Iterator[Side]:
    """Start them at once, and let one call arrive at each."""
    names = [f"{letter}.example" for letter in "ab"]
    processes = [
        installation.up(
            *("--json", "--dev-tenant", "acme"),
            TOOLTRAIL_LEDGER_HOST=name,
            TOOLTRAIL_WITNESS_ALLOW="127.0.0.1",
        )
        for installation, name in zip(installations, names, strict=True)
    ]
    for installation, name, process in zip(installations, names, processes, strict=True):
        facts = announcement(process)
        assert post_events(facts, make_call()) == HTTPStatus.OK
        scopes = [each for scope in ("read", "payloads", "admin") for each in ("--scope", scope)]
        printed = subprocess.run(
            [
                *(sys.executable, "manage.py", "key", "create", "acme", "--name", "auditor"),
                *(*scopes, "--owner", facts["user"], "--json"),
            ],
            cwd=BASE_DIR,
            env=clean_environment(TOOLTRAIL_VAR=str(installation.var)),
            capture_output=True,
            text=True,
            check=True,
        )
        yield Side(name, installation, facts, json.loads(printed.stdout)["key"])


def verify(bundle: Path, log: VerifierKey, witness: WitnessProcess) -> tuple[int, str]:
    """Exit code and output of the auditor's command."""
    verified = subprocess.run(
        [
            *(sys.executable, "-m", "tooltrail", "verify", str(bundle), "--key", str(log)),
            *("--witness", str(witness.key), "--policy", "1of1"),
        ],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    return verified.returncode, verified.stdout + verified.stderr


def test_two_installations_witness_each_other(tmp_path: Path) -> None:
    with ExitStack() as stack:
        installations = [stack.enter_context(prepared_installation()) for _ in range(2)]
        sides = list(started(installations))
        for side in sides:
            until(side.is_signed)
        logs = [side.verifier() for side in sides]
        assert [log.name.partition("/")[0] for log in logs] == [side.name for side in sides]
        assert logs[0].public != logs[1].public
        witnesses = [  # beside each side, for the log of the other one
            stack.enter_context(
                running_witness(tmp_path / side.name, [log], f"{side.name}/witness")
            )
            for side, log in zip(sides, reversed(logs), strict=True)
        ]
        of = list(zip(sides, logs, reversed(witnesses), strict=True))
        for side, _, witness in of:
            named = {"url": witness.url, "key": str(witness.key)}
            side.request("settings/witnesses", {"needed": 1, "witnesses": [named]})
        for side, log, witness in of:
            until(side.is_witnessed)
            stands = side.ledger()
            assert [one["outcome"] for one in stands["witnesses"]] == ["signed"]
            notes = json.loads(side.request("ledger/checkpoints"))["items"]
            (note,) = [one["note"] for one in notes if one["size"] == stands["witnessed"]]
            assert open_checkpoint(note.encode(), log.name, [log]).size == stands["witnessed"]
            text, signatures = parse_note(note.encode())
            assert set(cosigned_by(text, signatures, [witness.key])) == {witness.key}
            bundle = tmp_path / f"{side.name}.zip"
            bundle.write_bytes(side.request("evidence?range=24h"))
            code, output = verify(bundle, log, witness)
            assert code == 0, output
            (other,) = [one for one in witnesses if one is not witness]
            assert verify(bundle, log, other)[0] == 2, "the witness of the other log signed nothing"
        side, log, witness = of[0]
        # Who has the key of one side cannot make the other side sign another history.
        size = json.loads(side.request("ledger/checkpoints"))["items"][0]["size"]
        rewritten = Checkpoint(log.name, size + 5, bytes(32)).sign([side.signing_key()])
        known = int(witness.post(AddCheckpoint(1, (), rewritten).to_bytes())[2])
        request = AddCheckpoint(known, (bytes(32),), rewritten)
        status, _, answer = witness.post(request.to_bytes())
        assert (status, "—" in answer) == (HTTPStatus.UNPROCESSABLE_ENTITY, False)
        kept = list((tmp_path / sides[1].name / "refused").iterdir())
        assert [path.read_bytes() for path in kept] == [rewritten]
