"""Checks one record of a stream: that the server made it, and that its entry is in the ledger.

Pure. A record is a JSON object in the format of a SIEM. Its member `tooltrail` says which entry of
the ledger it is about, and proves it; docs/siem.md describes it. The server signs the records in
groups of up to 16:

    leaf      = SHA256(0x00 ‖ JCS of the record without tooltrail.signed)
    root      = the tree of RFC 6962 over the leaves of the group
    signature = Ed25519("tooltrail records 1\\n" ‖ number of leaves, u8 ‖ root)

JCS is RFC 8785. Records have no fractions, so integers are the only numbers. `tooltrail.signed` has
the place in the group (`at`), its size (`of`), the inclusion proof, the key's id and the signature.
"""

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from tooltrail.ledger import (
    HASH_LENGTH,
    SALT_LENGTH,
    FormatError,
    Kind,
    LedgerError,
    ProofFile,
    SignatureError,
    VerifierKey,
    commit_of,
    leaf_of,
)
from tooltrail.ledger.keys import check_signature
from tooltrail.ledger.lines import from_base64, shown
from tooltrail.ledger.tree import root_of_inclusion

MEMBER: Final = "tooltrail"
GROUP: Final = 16
"""Records that are signed together at most."""
_CONTEXT: Final = b"tooltrail records 1\n"
"""What the signed bytes begin with, so that no other signature of the key can be taken for one."""
SCHEMA: Final = 1
_ENTRY_LENGTH = 78
_WRAPPERS = ("_source", "_raw", "result", "event", "message", "msg", "MESSAGE")
"""Members in which SIEMs and collectors keep a record that they received."""
_DEPTH = 4
_BEGIN = re.compile(r"\{\s*\"")

type State = Literal["ok", "failed", "not checked"]


@dataclass(frozen=True, slots=True)
class RecordKeys:
    """The public keys that are trusted (32 bytes each)."""

    ledger: tuple[bytes, ...] = ()
    """Of checkpoints."""
    statements: tuple[tuple[str, bytes], ...] = ()
    """Of records, by their ids (RFC 7638)."""

    @classmethod
    def parse(cls, text: bytes) -> "RecordKeys":
        """Read a JWK Set as the server gives it out (`/ledger/keys.jwks`). Raises FormatError."""
        ledger: list[bytes] = []
        statements: list[tuple[str, bytes]] = []
        try:
            for key in json.loads(text)["keys"]:
                public = urlsafe_b64decode(key["x"] + "=")
                if key["signs"] == "statements":
                    statements.append((str(key["kid"]), public))
                else:
                    ledger.append(public)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise FormatError("this is not a JWK Set of a ledger") from error
        return cls(tuple(ledger), tuple(statements))


@dataclass(slots=True)
class RecordVerdict:
    """What was found about a record."""

    index: int | None = None
    checks: dict[str, tuple[State, str]] = field(default_factory=dict)
    """For each check how it ended, and what it says to people."""

    @property
    def is_genuine(self) -> bool:
        """Whether no check failed."""
        return all(state != "failed" for state, _ in self.checks.values())

    @property
    def is_undecided(self) -> bool:
        """Whether a check could not be made that a proof needs."""
        return any(state == "not checked" for state, _ in self.checks.values())

    def document(self) -> dict[str, Any]:
        """The verdict as JSON values."""
        return {
            "genuine": None if self.is_genuine and self.is_undecided else self.is_genuine,
            "index": self.index,
            "checks": {
                name: {"state": state, "message": text}
                for name, (state, text) in self.checks.items()
            },
        }

    def lines(self) -> list[str]:
        """The verdict for people."""
        head = "NOT PROVED" if self.is_undecided else "GENUINE"
        if not self.is_genuine:
            head = "ALTERED"
        where = "" if self.index is None else f"  entry {self.index:,}"
        return [
            f"{head}{where}",
            *(f"  {name:<9} {state:<12} {text}" for name, (state, text) in self.checks.items()),
        ]


def read_record(text: str) -> dict[str, Any]:
    """The record in a text: JSON, a line of syslog, or what a SIEM wraps around it.

    Raises FormatError.
    """
    begin = _BEGIN.search(text)
    if begin is None:
        raise FormatError("there is no JSON object")
    try:
        value = json.loads(text[begin.start() :], object_pairs_hook=_object)
    except RecursionError:
        raise FormatError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise FormatError(f"it is not JSON ({error})") from error
    record = _unwrapped(value, _DEPTH)
    if record is None:
        raise FormatError(f"no object in it has the member {MEMBER!r}")
    return record


def signed_text(size: int, root: bytes) -> bytes:
    """What the signature of a group of records is over."""
    return b"%b%c%b" % (_CONTEXT, size, root)


def canonical(record: Mapping[str, Any]) -> bytes:
    """The bytes of a record that make its leaf. Raises FormatError."""
    own = {name: value for name, value in record[MEMBER].items() if name != "signed"}
    try:
        text = json.dumps(
            _plain({**record, MEMBER: own}),
            ensure_ascii=False,
            sort_keys=True,
            separators=(",", ":"),
            allow_nan=False,
        )
        return text.encode()
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the record cannot be written as JSON ({error})") from error


def verify_record(
    record: Mapping[str, Any],
    keys: RecordKeys,
    *,
    fetch: Callable[[int], ProofFile] | None = None,
    raw_at: Callable[[int], tuple[bytes, bytes] | None] | None = None,
) -> RecordVerdict:
    """Check a record with trusted keys.

    `fetch` gets the proof of an entry elsewhere, if the record has none. `raw_at` reads leaf and
    bytes of an entry from a bundle that was verified; None if the bundle does not have it. Then the
    record needs no proof of its own.
    Raises FormatError if it is no record, and what `fetch` and `raw_at` raise.
    """
    own = _Own.read(record)
    verdict = RecordVerdict(own.index)
    verdict.checks["signed"] = _checked(lambda: _check_signature(record, own, keys))
    verdict.checks["entry"] = _checked(lambda: _check_entry(own))
    raw = _raw_in(record)
    proof = own.proof_file() or (None if fetch is None else fetch(own.index))
    if proof is not None or raw_at is None:
        verdict.checks["included"] = _checked(lambda: _check_inclusion(own, keys, proof))
    if raw is not None or own.salt is not None:
        verdict.checks["payload"] = _checked(lambda: _check_payload(own, raw))
    if raw_at is not None:
        verdict.checks["bundle"] = _checked(lambda: _check_bundle(own, raw, raw_at))
    return verdict


@dataclass(frozen=True, slots=True)
class _Signed:
    """The member `tooltrail.signed`, read."""

    at: int
    of: int
    proof: tuple[bytes, ...]
    key: str
    signature: bytes

    @classmethod
    def read(cls, signed: Any) -> "_Signed":
        if not isinstance(signed, dict):
            raise FormatError(f"{MEMBER}.signed is missing")
        at, of = _number(signed.get("at")), _number(signed.get("of"))
        if at is None or of is None or not 0 <= at < of <= GROUP:
            raise FormatError("the place in the group of signed records is wrong")
        return cls(
            at=at,
            of=of,
            proof=tuple(_hashes(signed.get("proof"))),
            key=_text(signed, "key"),
            signature=from_base64(_text(signed, "signature"), "the signature", 64),
        )


@dataclass(frozen=True, slots=True)
class _Own:
    """The member `tooltrail`, read."""

    index: int
    origin: str
    kind: str
    leaf: bytes
    entry: bytes | None
    salt: bytes | None
    note: bytes | None
    proof: tuple[bytes, ...] | None
    signed: "_Signed"

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> "_Own":
        own = record.get(MEMBER)
        if not isinstance(own, dict):
            raise FormatError(f"the record has no object {MEMBER!r}")
        if _number(own.get("schema")) != SCHEMA:
            raise FormatError(f"this verifier knows records of schema {SCHEMA} only")
        index = _number(own.get("index"))
        if index is None or index < 0:
            raise FormatError("the record has no index")
        checkpoint = own.get("checkpoint")
        note = checkpoint.get("note") if isinstance(checkpoint, dict) else None
        proof = own.get("proof")
        return cls(
            index=index,
            origin=_text(own, "origin"),
            kind=_text(own, "kind"),
            leaf=from_base64(_text(own, "leaf"), "the leaf", HASH_LENGTH),
            entry=_optional(own, "entry", _ENTRY_LENGTH),
            salt=_optional(own, "salt", SALT_LENGTH),
            note=note.encode() if isinstance(note, str) else None,
            proof=None if proof is None else tuple(_hashes(proof)),
            signed=_Signed.read(own.get("signed")),
        )

    def proof_file(self) -> ProofFile | None:
        """The proof in the record, if it has one."""
        if self.note is None or self.proof is None:
            return None
        return ProofFile(self.index, self.proof, self.note)


def _check_signature(record: Mapping[str, Any], own: _Own, keys: RecordKeys) -> str:
    signed, leaf = own.signed, leaf_of(canonical(record))
    for key_id, public in keys.statements:
        if key_id == signed.key:
            root = root_of_inclusion(leaf, signed.at, signed.of, signed.proof)
            text = signed_text(signed.of, root)
            check_signature("the server", public, text, signed.signature)
            return "every member is as the server sent it"
    raise SignatureError(f"no trusted key has the id {shown(signed.key)}")


def _check_entry(own: _Own) -> str:
    if own.entry is None:
        return "the event was erased or altered before it was sent: only its leaf is known"
    if leaf_of(own.entry) != own.leaf:
        raise FormatError("the entry does not give the leaf")
    try:
        name = Kind(own.entry[1]).name.lower()
    except ValueError:
        return "it gives the leaf; its kind is newer than this verifier"
    if name != own.kind:
        raise FormatError(f"the entry is of the kind {name}, not {shown(own.kind)}")
    return "it gives the leaf"


def _check_inclusion(own: _Own, keys: RecordKeys, file: ProofFile | None) -> str | None:
    if file is None:
        return None
    if file.index != own.index:
        raise FormatError(f"the proof is about entry {file.index:,}")
    trusted = [VerifierKey(own.origin, public) for public in keys.ledger]
    checkpoint = file.verify(own.leaf, own.origin, trusted)
    return f"{own.origin} signed {checkpoint.size:,} entries, with this one at its place"


def _check_payload(own: _Own, raw: bytes | None) -> str:
    if raw is None or own.salt is None or own.entry is None:
        raise FormatError("the event's bytes, their salt or the entry is missing")
    if commit_of(own.salt, raw) != own.entry[-HASH_LENGTH:]:
        raise FormatError("the event's bytes are not those of the entry")
    return "the event's bytes are those of the entry"


def _check_bundle(
    own: _Own, raw: bytes | None, raw_at: Callable[[int], tuple[bytes, bytes] | None]
) -> str | None:
    in_bundle = raw_at(own.index)
    if in_bundle is None:
        return None
    leaf, stored = in_bundle
    if leaf != own.leaf:
        raise FormatError("the bundle has another entry at this index")
    if raw is not None and stored and raw != stored:
        raise FormatError("the bundle has other bytes of the event")
    return "the bundle, which is genuine, has the same entry at this index"


def _checked(check: Callable[[], str | None]) -> tuple[State, str]:
    try:
        text = check()
    except LedgerError as error:
        return "failed", f"{error}"
    if text is None:
        return "not checked", "it needs a proof: from a server (--server) or a bundle (--bundle)"
    return "ok", text


def _raw_in(record: Mapping[str, Any]) -> bytes | None:
    """The event's bytes, where OCSF and ECS have them."""
    event = record.get("event")
    texts = [record.get("raw_data"), event.get("original") if isinstance(event, dict) else None]
    for text in texts:
        if isinstance(text, str):
            return text.encode(errors="surrogatepass")
    return None


def _unwrapped(value: Any, depth: int) -> dict[str, Any] | None:
    if isinstance(value, str) and (begin := _BEGIN.search(value)):
        try:
            value = json.loads(value[begin.start() :], object_pairs_hook=_object)
        except (json.JSONDecodeError, RecursionError):
            return None
    if not isinstance(value, dict):
        return None
    if isinstance(value.get(MEMBER), dict):
        return value
    for name in _WRAPPERS if depth else ():
        if (inner := _unwrapped(value.get(name), depth - 1)) is not None:
            return inner
    return None


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise FormatError(f"the member {shown(name)} is there twice")
        members[name] = value
    return members


def _plain(value: Any) -> Any:
    """Whole numbers as integers: some stores write 1 as 1.0."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {name: _plain(member) for name, member in value.items()}
        case list():
            return [_plain(each) for each in value]
        case _:
            return value


def _number(value: Any) -> int | None:
    plain = _plain(value)
    return plain if isinstance(plain, int) and not isinstance(plain, bool) else None


def _text(own: Mapping[str, Any], name: str) -> str:
    value = own.get(name)
    if not isinstance(value, str):
        raise FormatError(f"{MEMBER}.{name} is missing")
    return value


def _optional(own: Mapping[str, Any], name: str, length: int) -> bytes | None:
    if own.get(name) is None:
        return None
    return from_base64(_text(own, name), f"{MEMBER}.{name}", length)


def _hashes(proof: Any) -> Sequence[bytes]:
    if not isinstance(proof, list) or not all(isinstance(each, str) for each in proof):
        raise FormatError("the proof is not a list of texts")
    return [from_base64(each, "a hash of the proof", HASH_LENGTH) for each in proof]
