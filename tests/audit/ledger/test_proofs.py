"""Proofs over the API and as files: the SDK alone verifies each of them."""

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from tooltrail.ledger import (
    ProofFile,
    Tile,
    VerifierKey,
    commit_of,
    leaf_of,
    open_checkpoint,
    root_of,
    tiles_between,
    verify_consistency,
    verify_inclusion,
)

from audit.ledger.entry_view import entry_at, stored_batch
from audit.ledger.recompute import remake
from audit.models import Batch
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support import otlp_requests
from tests.support.event_requests import post
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.ledger_log import (
    append,
    as_owner,
    keep,
    leaves,
    own_folder,
    restore_backup,
)
from tests.support.recorded_executions import ROWS, emitted

NOW = datetime(2026, 11, 20, tzinfo=UTC)
LATER = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The signer's folder of this test's worker."""
    yield own_folder(tmp_path, monkeypatch)


def api_client(cast: Cast, *scopes: Scope) -> Client:
    """A client with an API key of the tenant."""
    key = create_key(cast.tenant, "auditor", [Scope.READ, *scopes])[1]
    return Client(headers={"Authorization": f"Bearer {key}"})


def read_ledger(client: Client, address: str, status: int = 200) -> dict[str, Any]:
    answer = client.get(f"/api/v1/ledger{address}")
    assert answer.status_code == status, answer.content
    document: dict[str, Any] = answer.json()
    return document


def public_keys(client: Client) -> list[VerifierKey]:
    """The keys that the API names. Other tests left more than a page of them."""
    keys = read_ledger(client, "/keys?limit=1000")["keys"]
    return [VerifierKey.parse(key["vkey"]) for key in keys]


def hashes(texts: list[str]) -> list[bytes]:
    return [base64.b64decode(text) for text in texts]


def checked(client: Client, document: dict[str, Any]) -> bytes:
    """The root of a checkpoint after checking its signature with the API's keys."""
    keys = public_keys(client)
    checkpoint = open_checkpoint(document["note"].encode(), document["origin"], keys)
    assert checkpoint.size == document["size"]
    assert checkpoint.root == base64.b64decode(document["root"])
    return checkpoint.root


@pytest.mark.slow
def test_event_of_a_call_is_proved_down_to_its_bytes(acme: Cast) -> None:
    calls = [make_call() for _ in range(4)]
    for call in calls:
        send_events(acme.tenant, call)
    keep(acme.tenant, NOW)
    client = api_client(acme, Scope.PAYLOADS)
    for call in calls:
        for kind, sent in zip(("start", "end"), call, strict=True):
            path = f"/inclusion?invocation_id={sent['invocation_id']}&kind={kind}"
            proof = read_ledger(client, path)
            root = checked(client, proof["checkpoint"])
            raw, salt = base64.b64decode(proof["raw"]), base64.b64decode(proof["salt"])
            entry = base64.b64decode(proof["entry"])
            assert json.loads(raw) == sent
            assert entry[-32:] == commit_of(salt, raw)
            verify_inclusion(
                leaf_of(entry),
                proof["index"],
                proof["checkpoint"]["size"],
                hashes(proof["hashes"]),
                root,
            )


def test_proof_file_verifies_without_the_server(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    keep(acme.tenant, NOW)
    client = api_client(acme)
    answer = client.get("/api/v1/ledger/entries/1.tlog-proof")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="entry-1.tlog-proof"'
    file = ProofFile.parse(answer.content)
    keys = public_keys(client)
    assert file.extra is not None
    checkpoint = file.verify(leaf_of(file.extra), f"localhost/log/{acme.tenant.id}", keys)
    assert (file.index, checkpoint.size) == (1, 2)


def test_key_without_payloads_scope_gets_neither_bytes_nor_salt(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    keep(acme.tenant, NOW)
    proof = read_ledger(api_client(acme), "/inclusion?index=0")
    assert (proof["raw"], proof["salt"]) == (None, None)
    assert proof["entry"] is not None


@pytest.mark.parametrize("row", ROWS[:40:3], ids=lambda row: str(row.get("name", ""))[:30])
def test_entries_of_events_without_ids_are_recomputed(acme: Cast, row: dict[str, Any]) -> None:
    """ADK events, some of them twice in a request, between rejected lines."""
    lines = emitted(row, datetime.now(UTC)) if row["events"] else []
    body = [b'{"type": "neither"}', *lines, b"no json", *lines, *lines]
    post(make_ingest_key(acme.tenant), b"\n".join(body))
    with tenant_scope(acme.tenant.id):
        for index in range(3 * len(lines)):
            proved = entry_at(index)
            assert proved is not None
            assert proved.entry is not None
            assert (proved.raw, proved.fault) == (proved.raw or None, "")
            assert leaf_of(proved.entry.to_bytes()) == proved.leaf


def adk_end(call: str, started_at: datetime, days: int = 0, **more: str) -> bytes:
    """An end as the ADK sends it, that many days after its start; all are equal otherwise."""
    event = {
        "type": "toolExecutionEnd",
        "turnId": "turn",
        "callId": call,
        "toolName": "echo",
        "startedAt": started_at.isoformat(),
        "endedAt": (started_at + timedelta(days)).isoformat(),
        "durationMs": 1,
        "isError": False,
    }
    return json.dumps(event | more).encode()


def test_entries_are_recomputed_among_many_rejected_lines(acme: Cast) -> None:
    """Many equal rejected lines, or empty ones, before the entry are no alteration."""
    now = datetime.now(UTC)
    body = [
        *(adk_end("same", now, -5) for _ in range(40)),
        *(adk_end("same", now) for _ in range(3)),
        *(b"no json" for _ in range(100)),
        *(part for n in range(300) for part in (adk_end(f"call-{n}", now), b"")),
        *(part for n in range(300) for part in (adk_end(f"call-{n}", now), b"")),
        *(adk_end("named", now, -5) for _ in range(40)),
        adk_end("named", now, eventId=str(uuid4())),
    ]
    answer = post(make_ingest_key(acme.tenant), b"\n".join(body)).json()
    assert (len(answer["rejected"]), answer["accepted"]) == (180, 604)
    with tenant_scope(acme.tenant.id):
        (row,) = Batch.objects.for_tenant(acme.tenant.id)
    remade = remake(stored_batch(row))
    assert [n for n, one in enumerate(remade) if one.entry is None] == []


def test_recomputation_searches_from_the_last_match(acme: Cast) -> None:
    """Half of the request is rejected: the search for an event continues after the last match."""
    now = datetime.now(UTC)
    body = [b"no json"] * 500 + [adk_end(f"call-{n}", now) for n in range(500)]
    post(make_ingest_key(acme.tenant), b"\n".join(body))
    with tenant_scope(acme.tenant.id):
        (row,) = Batch.objects.for_tenant(acme.tenant.id)
    with patch("audit.ledger.recompute.leaf_of", wraps=leaf_of) as hashing:
        assert all(one.entry is not None for one in remake(stored_batch(row)))
    assert hashing.call_count < 2_000


def test_entries_of_spans_are_recomputed(acme: Cast) -> None:
    spans = [otlp_requests.span() for _ in range(5)]
    answer = otlp_requests.post(
        make_ingest_key(acme.tenant), otlp_requests.request(*spans), otlp_requests.JSON
    )
    assert answer.status_code == 200
    with tenant_scope(acme.tenant.id):
        entries = [entry_at(index) for index in range(10)]
    assert all(one is not None and one.entry is not None and one.raw for one in entries)


@pytest.mark.slow
def test_consistency_is_proved_between_any_two_checkpoints(acme: Cast) -> None:
    known: list[bytes] = []
    for part in range(12):
        new = leaves(part * 41 + 1, bytes([part]))
        append(acme.tenant, new)
        known += new
        keep(acme.tenant, NOW + part * LATER)
    client = api_client(acme)
    page = read_ledger(client, "/checkpoints?limit=5")
    sizes = [one["size"] for one in page["checkpoints"]]
    while page["next"]:
        page = read_ledger(client, f"/checkpoints?limit=5&cursor={page['next']}")
        sizes += [one["size"] for one in page["checkpoints"]]
    assert len(sizes) == 12
    assert sizes[0] == len(known)
    assert sizes == sorted(sizes, reverse=True)
    for old in sizes:
        for new_size in (size for size in sizes if size >= old):
            proof = read_ledger(client, f"/consistency?old={old}&new={new_size}")
            verify_consistency(
                old,
                checked(client, proof["old"]),
                new_size,
                checked(client, proof["new"]),
                hashes(proof["hashes"]),
            )
            assert base64.b64decode(proof["new"]["root"]) == root_of(known[:new_size])
    newest = read_ledger(client, f"/consistency?old={sizes[-1]}")
    assert newest["new"]["size"] == sizes[0]
    assert (
        read_ledger(client, f"/consistency?old={sizes[0]}&new={sizes[1]}", 409)["code"]
        == "unsigned"
    )
    assert read_ledger(client, "/consistency?old=5", 409)["code"] == "unsigned"


def test_tile_client_reads_the_whole_tree(acme: Cast) -> None:
    known = leaves(1_000)
    append(acme.tenant, known)
    keep(acme.tenant, NOW)
    client = api_client(acme)
    note = client.get("/api/v1/ledger/checkpoint").content
    keys = public_keys(client)
    checkpoint = open_checkpoint(note, f"localhost/log/{acme.tenant.id}", keys)
    read = []
    for tile in tiles_between(0, checkpoint.size):
        answer = client.get(f"/api/v1/ledger/{tile.path}")
        assert answer.headers["Content-Type"] == "application/octet-stream"
        if tile.level == 0:
            read += tile.hashes(answer.content)
    assert read == known
    assert client.get(f"/api/v1/ledger/{Tile(0, 3, 17).path}").content == b"".join(known[768:785])
    for path in ("tile/0/003", "tile/0/004.p/1", "tile/2/000.p/1", "tile/0/3", "tile/0/../x"):
        assert client.get(f"/api/v1/ledger/{path}").status_code == 404


def test_unsigned_entries_are_not_proved(acme: Cast) -> None:
    client = api_client(acme)
    assert read_ledger(client, "/inclusion?index=0", 409)["code"] == "unsigned"
    assert client.get("/api/v1/ledger/checkpoint").status_code == 409
    assert read_ledger(client, "")["signed"] == 0
    assert read_ledger(client, "/checkpoints")["checkpoints"] == []
    append(acme.tenant, leaves(3))
    keep(acme.tenant, NOW)
    assert read_ledger(client, "/inclusion?index=3", 409)["code"] == "unsigned"
    assert read_ledger(client, "/inclusion?index=0&size=2", 409)["code"] == "unsigned"
    assert read_ledger(client, f"/inclusion?invocation_id={uuid4()}", 404)["code"] == "not_found"
    assert read_ledger(client, "/inclusion", 422)["code"] == "parameter"
    assert read_ledger(client, "/inclusion?index=-1", 422)["code"] == "parameter"


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE ledger_tile SET hashes = sha256('x') || substring(hashes FROM 33)\
 WHERE tenant_id = %s AND level = 0 AND tile_index = 0",
        "DELETE FROM ledger_tile WHERE tenant_id = %s AND level = 0 AND tile_index = 0",
        "UPDATE ledger_checkpoint SET root = sha256('x') WHERE tenant_id = %s",
    ],
)
def test_altered_entries_are_not_proved(acme: Cast, tampering: str) -> None:
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    client = api_client(acme)
    read_ledger(client, "/inclusion?index=7")
    assert as_owner(tampering, [acme.tenant.id]) == 1
    assert read_ledger(client, "/inclusion?index=7", 409)["code"] == "altered"


@pytest.mark.one_node  # the payload of another tenant is on another node
def test_edited_payload_has_no_entry(acme: Cast, globex: Cast) -> None:
    for cast in (acme, globex):
        send_events(cast.tenant, make_call())
        keep(cast.tenant, NOW)
    as_owner(
        "UPDATE batch SET payload = (SELECT payload FROM batch WHERE tenant_id = %s)"
        " WHERE tenant_id = %s",
        [globex.tenant.id, acme.tenant.id],
    )
    assert read_ledger(api_client(acme, Scope.PAYLOADS), "/inclusion?index=0")["entry"] is None
    with tenant_scope(acme.tenant.id):
        proved = entry_at(0)
    assert proved is not None
    assert proved.fault == "the stored bytes do not match the hash computed on arrival"


def test_new_epoch_has_its_own_key_and_checkpoints(acme: Cast) -> None:
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    append(acme.tenant, leaves(10, b"lost"))
    keep(acme.tenant, NOW + LATER)
    restore_backup(acme.tenant, 300)
    call_command("ledger", "new-epoch", acme.tenant.slug, "--reason", "restored")
    client = api_client(acme)
    origins = {key.name for key in public_keys(client)}
    first = f"{settings.LEDGER_HOST}/log/{acme.tenant.id}"
    assert origins == {first, f"{first}/1"}
    sizes = [
        (one["epoch"], one["size"]) for one in read_ledger(client, "/checkpoints")["checkpoints"]
    ]
    assert sizes == [(1, 301), (0, 300)]
    # The proof connects the signed part that still exists with the new epoch.
    proof = read_ledger(client, "/consistency?old=300&new=301")
    verify_consistency(
        300,
        checked(client, proof["old"]),
        301,
        checked(client, proof["new"]),
        hashes(proof["hashes"]),
    )
    entry = read_ledger(client, "/inclusion?index=300")
    assert base64.b64decode(entry["entry"])[1] == 9


def test_ledger_of_another_tenant_is_not_accessible(acme: Cast, globex: Cast) -> None:
    call = make_call()
    send_events(acme.tenant, call)
    keep(acme.tenant, NOW)
    other = api_client(globex, Scope.PAYLOADS)
    path = f"/inclusion?invocation_id={call[0]['invocation_id']}"
    assert read_ledger(other, path, 404)["code"] == "not_found"
    assert read_ledger(other, "/inclusion?index=0", 409)["code"] == "unsigned"
    assert other.get("/api/v1/ledger/tile/0/000.p/2").status_code == 404
    assert read_ledger(other, "/checkpoints")["checkpoints"] == []
    assert str(acme.tenant.id) not in json.dumps(read_ledger(other, "/keys"))
