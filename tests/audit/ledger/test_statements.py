"""Entries as COSE: what libraries that nobody here wrote make of statements and receipts."""

import base64
import json
import random
import re
import shutil
import subprocess
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from scitt_cose import ReceiptResult, extract_receipts, parse_signed_statement, verify_receipt

from audit.ledger import checks, keys, signer, signer_state
from audit.ledger.statements import KEY_VERB
from audit.models import LedgerCheck
from tenants.keys import create_key
from tenants.models import Action, Scope
from tenants.scope import tenant_scope
from tests.support.documents import ROOT
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import append, as_owner, keep, leaves, own_folder
from tests.support.node_packages import installed
from tests.support.pages import signed_in

NOW = datetime(2026, 11, 20, tzinfo=UTC)
LATER = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The signer's folder of this test's worker, and the keys that encrypt, of this test only."""
    monkeypatch.setattr(settings, "ENCRYPTION_KEYS", tmp_path / "encryption-keys")
    yield own_folder(tmp_path, monkeypatch)


def api_client(cast: Cast) -> Client:
    """A client with an API key of the tenant that may read."""
    key = create_key(cast.tenant, "auditor", [Scope.READ])[1]
    return Client(headers={"Authorization": f"Bearer {key}"})


def statement_at(client: Client, index: int) -> bytes:
    answer = client.get(f"/api/v1/ledger/entries/{index}.cose")
    assert answer.status_code == 200, answer.content
    return bytes(answer.content)


def refused(client: Client, index: int | str) -> tuple[int, str, str]:
    """Status, code and text of the problem."""
    answer = client.get(f"/api/v1/ledger/entries/{index}.cose")
    document = answer.json()
    return answer.status_code, document["code"], document["detail"]


def pem(public: bytes) -> bytes:
    key = Ed25519PublicKey.from_public_bytes(public)
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def public_keys(client: Client, signs: str) -> list[bytes]:
    """The keys that sign receipts or statements, in PEM. Other tests left keys of receipts."""
    answer = client.get("/api/v1/ledger/keys.jwks")
    return [
        pem(urlsafe_b64decode(key["x"] + "="))
        for key in answer.json()["keys"]
        if key["signs"] == signs
    ]


def read_statement(statement: bytes, pems: Sequence[bytes]) -> dict[str, Any] | None:
    """What scitt-cose reads in it, if one of these keys signed it."""
    parsed = (parse_signed_statement(statement, public_key_pem=each) for each in pems)
    return next((one for one in parsed if one["signature_verified"]), None)


def read_receipts(
    statement: bytes, entry: bytes, pems: Sequence[bytes]
) -> list[ReceiptResult | None]:
    """What scitt-cose reads in each receipt, if one of these keys signed it for this entry."""
    results = []
    for receipt in extract_receipts(statement):
        tries = [
            verify_receipt(receipt, leaf_entry_hex=entry.hex(), log_public_key_pem=each)
            for each in pems
        ]
        results.append(next((one for one in tries if one.ok), None))
    return results


def fill(cast: Cast, calls: int = 4) -> None:
    """Entries of calls, and a checkpoint of them."""
    for _ in range(calls):
        send_events(cast.tenant, make_call())
    keep(cast.tenant, NOW)


@pytest.mark.slow
def test_independent_library_verifies_each_entry(acme: Cast) -> None:
    fill(acme)
    client = api_client(acme)
    log = f"localhost/log/{acme.tenant.id}"
    for index in range(8):
        statement = statement_at(client, index)
        proof = client.get(f"/api/v1/ledger/inclusion?index={index}").json()
        entry = base64.b64decode(proof["entry"])
        parsed = read_statement(statement, public_keys(client, "statements"))
        assert parsed is not None
        assert (parsed["payload"], len(entry)) == (entry, 78)
        assert (parsed["issuer"], parsed["subject"]) == (f"localhost/tenant/{acme.tenant.id}", log)
        assert parsed["content_type"] == "application/x.tooltrail.ledger-entry;version=1"
        (receipt,) = read_receipts(statement, entry, public_keys(client, "receipts"))
        assert receipt is not None
        assert (receipt.leaf_index, receipt.tree_size) == (index, proof["checkpoint"]["size"])
        assert receipt.root == base64.b64decode(proof["checkpoint"]["root"]).hex()
        assert (receipt.issuer, receipt.subject, receipt.iat) == (log, log, NOW.timestamp())
        assert receipt.protected_header_ext[16] == "application/x.tooltrail.receipt+cose;profile=1"


def test_altered_file_is_refused_by_it(acme: Cast) -> None:
    fill(acme)
    client = api_client(acme)
    statement = statement_at(client, 5)
    of_statements = public_keys(client, "statements")
    of_receipts = [pem(key.public()) for key in keys.load()]

    def is_valid(file: bytes) -> bool:
        try:
            parsed = read_statement(file, of_statements)
            receipts = parsed and read_receipts(file, parsed["payload"], of_receipts)
        except ValueError:  # CoseError
            return False
        return bool(receipts) and None not in (receipts or [None])

    assert is_valid(statement)
    chosen = random.Random(7).sample(range(len(statement) * 8), 200)
    for bit in chosen:
        altered = bytearray(statement)
        altered[bit // 8] ^= 1 << bit % 8
        assert not is_valid(bytes(altered)), bit
    other = statement_at(client, 4)
    parsed = read_statement(statement, of_statements)
    assert parsed is not None
    assert read_receipts(other, parsed["payload"], of_receipts) == [None]


@pytest.mark.slow
def test_libraries_of_node_verify_it(acme: Cast, tmp_path: Path) -> None:
    node_folder = installed(ROOT / "tests" / "support" / "cose")
    fill(acme)
    client = api_client(acme)
    (tmp_path / "statement").write_bytes(statement_at(client, 6))
    (tmp_path / "keys").write_bytes(client.get("/api/v1/ledger/keys.jwks").content)
    root = client.get("/api/v1/ledger/inclusion?index=6").json()["checkpoint"]["root"]
    node = shutil.which("node")
    assert node is not None

    def verified() -> dict[str, Any]:
        completed = subprocess.run(
            [node, "verify.mjs", str(tmp_path / "statement"), str(tmp_path / "keys")],
            cwd=node_folder,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert completed.returncode == 0, completed.stderr
        document: dict[str, Any] = json.loads(completed.stdout)
        return document

    receipt = {"root": base64.b64decode(root).hex(), "signs": "receipts", "isValid": True}
    assert verified() == {"tag": 18, "isValid": True, "signs": "statements", "receipts": [receipt]}
    file = bytearray((tmp_path / "statement").read_bytes())
    file[-70] ^= 1  # in the payload
    (tmp_path / "statement").write_bytes(file)
    answer = verified()
    assert not answer["isValid"]
    assert not answer["receipts"][0]["isValid"]


def test_documented_example_verifies_a_file(
    acme: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs" / "ledger.md").read_text()
    (example,) = [one for one in re.findall(r"```python\n(.*?)```", text, re.S) if "scitt" in one]
    fill(acme, calls=11)
    client = api_client(acme)
    (tmp_path / "entry-20.cose").write_bytes(statement_at(client, 20))
    (tmp_path / "keys.jwks").write_bytes(client.get("/api/v1/ledger/keys.jwks").content)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(example, names)
    assert (len(names["entry"]), len(names["tries"]) > 0) == (78, True)
    file = bytearray((tmp_path / "entry-20.cose").read_bytes())
    file[-1] ^= 1
    (tmp_path / "entry-20.cose").write_bytes(file)
    with pytest.raises(ValueError, match="not enough values"):
        exec(example, {})


def test_first_entry_has_no_hashes_and_the_file_is_always_the_same(acme: Cast) -> None:
    append(acme.tenant, [])
    send_events(acme.tenant, make_call()[:1])
    keep(acme.tenant, NOW)
    client = api_client(acme)
    statement = statement_at(client, 0)
    assert statement == statement_at(client, 0)
    (receipt,) = read_receipts(
        statement, statement[-78 - 66 : -66], public_keys(client, "receipts")
    )
    assert receipt is not None
    assert (receipt.leaf_index, receipt.tree_size) == (0, 1)


def test_file_is_named_and_head_says_the_same(acme: Cast) -> None:
    fill(acme)
    client = api_client(acme)
    address = "/api/v1/ledger/entries/3.cose"
    answer, head = client.get(address), client.head(address)
    assert answer.headers["Content-Type"] == 'application/cose; cose-type="cose-sign1"'
    assert answer.headers["Content-Disposition"] == 'attachment; filename="entry-3.cose"'
    assert head.content == b""
    assert {name: head.headers[name] for name in ("Content-Type", "Content-Length")} == {
        name: answer.headers[name] for name in ("Content-Type", "Content-Length")
    }


@pytest.mark.slow
def test_both_keys_sign_receipts_during_a_rotation(acme: Cast) -> None:
    fill(acme)
    client = api_client(acme)
    call_command("ledger", "rotate-key", "--overlap-days", "30")
    send_events(acme.tenant, make_call())
    keep(acme.tenant, NOW + LATER)
    statement = statement_at(client, 1)
    parsed = read_statement(statement, public_keys(client, "statements"))
    assert parsed is not None
    assert len(keys.load()) == 2
    for key in keys.load():
        receipts = read_receipts(statement, parsed["payload"], [pem(key.public())])
        assert len(receipts) == 2
        assert len([one for one in receipts if one is not None]) == 1


class Killed(BaseException):
    """Not caught by the product: as if the process was killed at that point."""


def test_receipts_outlive_a_worker_that_is_killed_before_it_publishes(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(acme)
    send_events(acme.tenant, make_call())

    def killed(*args: Any, **kwargs: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(signer, "_publish", killed)
        with pytest.raises(Killed):
            signer.keep(acme.tenant.id, NOW + LATER, seconds=5.0)
    state = signer_state.load(acme.tenant.id)
    assert state is not None
    assert (state.size, len(state.receipts)) == (10, 1)
    assert refused(api_client(acme), 9)[1] == "unsigned"
    keep(acme.tenant, NOW + LATER + timedelta(seconds=1))
    assert extract_receipts(statement_at(api_client(acme), 9))


def test_checkpoint_of_an_earlier_release_has_no_receipts_until_the_next_one(acme: Cast) -> None:
    fill(acme)
    of_tenant = [acme.tenant.id]
    as_owner("UPDATE ledger_checkpoint SET receipts = '{}' WHERE tenant_id = %s", of_tenant)
    client = api_client(acme)
    status, code, text = refused(client, 1)
    assert (status, code) == (409, "unsigned")
    assert text == (
        "The checkpoint of 8 entries was signed by a release without receipts. The next one has"
        " them, within a minute of the next entry."
    )
    send_events(acme.tenant, make_call())
    keep(acme.tenant, NOW + LATER)
    assert statement_at(client, 1)


def test_memory_of_an_earlier_release_is_read(acme: Cast, folder: Path) -> None:
    fill(acme)
    path = folder / f"{acme.tenant.id}.json"
    document = json.loads(path.read_text())
    assert document.pop("receipts")
    path.write_text(json.dumps(document))
    send_events(acme.tenant, make_call())
    assert keep(acme.tenant, NOW + LATER).refusal is None
    assert statement_at(api_client(acme), 9)


def test_unsigned_and_erased_entries_have_no_statement(acme: Cast) -> None:
    client = api_client(acme)
    assert refused(client, 0) == (409, "unsigned", "The ledger is not signed yet.")
    append(acme.tenant, leaves(3))  # without payloads
    keep(acme.tenant, NOW)
    assert refused(client, 1) == (404, "not_found", "The event of entry 1 was erased.")
    assert refused(client, 3)[:2] == (409, "unsigned")


HOSTILE = {
    "99999999999999999999999999": 409,
    str((1 << 63) - 1): 409,
    str(1 << 63): 409,
    "8": 409,
    "-1": 404,
    "1.5": 404,
    "0x1": 404,
    "1e3": 404,
    "%00": 404,
    "1%2f..%2f2": 404,
    "٣": 404,
    "1" * 5_000: 404,
    "": 404,
    "1.cose": 404,
}
"""Indexes as somebody may write them, with the status; the log has eight entries."""


def test_hostile_index_is_a_problem(acme: Cast) -> None:
    fill(acme)
    client = api_client(acme)
    for index, status in HOSTILE.items():
        answer = client.get(f"/api/v1/ledger/entries/{index}.cose")
        assert answer.status_code == status, index[:40]
        assert answer.headers["Content-Type"] == "application/problem+json"
    assert client.get("/api/v1/ledger/entries/1.cose?size=2").status_code == 422


LAST = "receipts[1], length(receipts[1]) - 1"
# The last byte of a signature is one of sixteen: it is changed, not set to one of them.
ONE_BIT = f"ARRAY[]::bytea[] || set_byte({LAST}, get_byte({LAST}) # 1)"


@pytest.mark.parametrize(
    ("receipts", "why"),
    [
        ("ARRAY['\\x00'::bytea]", "no COSE_Sign1"),
        ("ARRAY['\\xff'::bytea]", "no CBOR"),
        (ONE_BIT, "is wrong"),
        ("(SELECT receipts FROM ledger_checkpoint WHERE size = 10 LIMIT 1)", "is wrong"),
    ],
)
def test_altered_receipt_is_not_given_out_and_a_check_finds_it(
    acme: Cast, receipts: str, why: str
) -> None:
    fill(acme)
    send_events(acme.tenant, make_call())
    keep(acme.tenant, NOW + LATER)
    if "size = 10" in receipts:
        receipts = receipts.replace("size = 10", f"tenant_id = '{acme.tenant.id}' AND size = 8")
    as_owner(
        f"UPDATE ledger_checkpoint SET receipts = {receipts} WHERE tenant_id = %s AND size = 10",
        [acme.tenant.id],
    )
    status, code, text = refused(api_client(acme), 1)
    assert (status, code) == (409, "altered")
    assert why in text
    with tenant_scope(acme.tenant.id):
        check = checks.start_check("auditor", NOW)
    assert check is not None
    while checks.run_slice(acme.tenant.id, check.id):
        pass
    with tenant_scope(acme.tenant.id):
        findings = LedgerCheck.objects.for_tenant(acme.tenant.id).get(id=check.id).findings
    assert [each for each in findings if why in each]


@pytest.mark.slow
def test_key_of_statements_is_announced_once_before_it_signs(acme: Cast, globex: Cast) -> None:
    for cast in (acme, globex):
        fill(cast)
    client, other = api_client(acme), api_client(globex)
    assert len(public_keys(client, "statements")) == 1, "the set of keys announces it, too"
    for index in range(3):
        statement_at(client, index)
    statement_at(other, 0)
    with tenant_scope(acme.tenant.id):
        (action,) = Action.objects.filter(tenant_id=acme.tenant.id, verb=KEY_VERB)
    assert action.user_name == "Tooltrail"
    (key,) = public_keys(client, "statements")
    assert base64.b64decode(action.subject) in base64.b64decode(key.split(b"\n")[1])
    assert public_keys(other, "statements") != [key]


def test_another_first_key_is_another_key_of_statements(acme: Cast) -> None:
    fill(acme)
    client = api_client(acme)
    before = statement_at(client, 1)
    path: Path = settings.ENCRYPTION_KEYS
    path.write_text(f"{base64.b64encode(bytes(32)).decode()}\n{path.read_text()}")
    after = statement_at(client, 1)
    newest, oldest = public_keys(client, "statements")
    assert read_statement(after, [newest]) and not read_statement(after, [oldest])
    assert read_statement(before, [oldest]) and not read_statement(before, [newest])


def test_unreadable_keys_that_encrypt_are_a_problem(acme: Cast) -> None:
    fill(acme)
    settings.ENCRYPTION_KEYS.write_text("no keys")
    client = api_client(acme)
    status, code, text = refused(client, 1)
    assert (status, code) == (409, "conflict")
    assert "can be read by others" in text or "is not a file of keys" in text
    assert client.get("/api/v1/ledger/keys.jwks").json()["code"] == "conflict"
    viewer = signed_in(acme.viewer)
    for address in ("entries/1.cose", "keys.jwks"):
        assert viewer.get(f"/ledger/{address}").status_code == 404
