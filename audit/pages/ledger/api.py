"""The ledger over the API: checkpoints, keys, proofs, and the tree as C2SP tlog-tiles.

`/ledger/checkpoint` and `/ledger/tile/…` are the URLs that https://c2sp.org/tlog-tiles defines,
with the prefix `/api/v1/ledger`. A client of such logs needs only the key.
"""

import base64
from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field
from tooltrail.ledger import FormatError, Tile
from tooltrail.ledger.lines import to_base64
from tooltrail.ledger.proof_file import SUFFIX

from audit.ledger import proofs
from audit.ledger.entry_view import EntryView, entry_at
from audit.ledger.proof_download import COSE, KEY_SET, key_set_file, proof_file, statement_file
from audit.ledger.proofs import AlteredError, UnsignedError
from audit.ledger.signer_state import origin_of
from audit.ledger.statements import ErasedError
from audit.ledger.status import ledger_status
from audit.ledger.witnesses.states import WitnessState, cosigned_notes, witness_states
from audit.log.payload import LogPayloadError
from audit.models import LedgerCheckpoint
from audit.pages.ledger import schemas
from audit.pages.show.router import router
from audit.queries.call_events import read_call_events
from audit.queries.call_list import call_day
from audit.queries.calls import call_detail
from config.boxes import BoxError
from config.http.problems import ProblemError, problem_responses
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.api_reads import ListParams, Params, paged, reads, record_read, seal, unseal, utc
from tenants.models import Scope
from tenants.scope import current_tenant_id, tenant_scope

_INDEX_MAX = (1 << 63) - 1
_BYTES = "application/octet-stream"


class InclusionParams(Params):
    """Which entry (an index, or a call and one of its events), and which checkpoint."""

    index: int | None = Field(None, ge=0, le=_INDEX_MAX)
    """The entry's index in the ledger."""
    invocation_id: UUID | None = None
    """Instead of `index`: the call of the event."""
    kind: Literal["start", "end"] = "end"
    """Which of the call's events."""
    size: int | None = Field(None, ge=1, le=_INDEX_MAX)
    """Size of the checkpoint. Default: the newest one."""


class ConsistencyParams(Params):
    """Which checkpoints, by their sizes."""

    old: int = Field(ge=1, le=_INDEX_MAX)
    """Size of the older checkpoint, in entries."""
    new: int | None = Field(None, ge=1, le=_INDEX_MAX)
    """Size of the newer checkpoint, in entries. Default: the newest one."""


@reads(router, "/ledger", schemas.Ledger, tag="ledger")
def read_ledger(request: HttpRequest) -> dict[str, Any]:
    """Get the status of the ledger: entries, signed entries, and whether signing is refused."""
    status, newest = ledger_status(current_tenant_id()), proofs.newest_checkpoint()
    witnesses = witness_states(current_tenant_id())
    return {
        "origin": origin_of(current_tenant_id(), 0) if newest is None else newest.origin,
        "entries": status.size,
        "signed": 0 if newest is None else newest.size,
        "signed_at": newest and utc(newest.signed_at),
        "refusal": status.refusal,
        "witnesses": [_witness(one) for one in witnesses.each],
        "witnesses_needed": witnesses.policy.needed,
        "witnessed": witnesses.size,
        "time_authority": witnesses.authority and _witness(witnesses.authority),
    }


@reads(
    router,
    "/ledger/checkpoints",
    schemas.CheckpointPage,
    tag="ledger",
    problems=("cursor", "limit"),
)
def list_checkpoints(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List signed checkpoints, newest first."""
    before = unseal("checkpoints", params.cursor, _read_place)
    page = proofs.checkpoint_page(before, params.limit)
    return {
        "items": _checkpoints(page.checkpoints),
        "next": page.older and seal("checkpoints", *page.older),
    }


@reads(router, "/ledger/keys", schemas.Keys, tag="ledger", problems=("cursor", "limit"))
def list_ledger_keys(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the public keys of this ledger, per log name (one per epoch), newest first."""
    names = proofs.origins() or [origin_of(current_tenant_id(), 0)]
    now = timezone.now()
    keys = {
        f"{epoch:09} {utc(key.created_at).isoformat()} {key.vkey}": key
        for epoch, name in enumerate(reversed(names))
        for key in proofs.public_keys(name, now)
    }
    shown, after = paged("ledger-keys", keys, params, str, is_descending=True)
    return {
        "items": [
            {
                "vkey": keys[place].vkey,
                "created_at": utc(keys[place].created_at),
                "signs_until": (until := keys[place].signs_until) and utc(until),
            }
            for place in shown
        ],
        "next": after,
    }


@reads(
    router,
    "/ledger/inclusion",
    schemas.Inclusion,
    tag="ledger",
    problems=("not_found", "unsigned", "altered"),
)
def prove_inclusion(request: HttpRequest, params: Query[InclusionParams]) -> dict[str, Any]:
    """Prove that the signed log has an entry, given by index or as the start or end of a call."""
    index = params.index
    if params.invocation_id is not None and index is None:
        index = _index_of(params.invocation_id, params.kind)
    if index is None or (params.index is not None and params.invocation_id is not None):
        raise ProblemError(
            "parameter", "Set either index or invocation_id.", parameter="invocation_id"
        )
    proof, view = _proved(index, params.size)
    sees = cast(ApiRequest, request).auth.sees_payloads and view.entry is not None
    if sees:
        record_read(request, "prove_inclusion")
    return {
        "index": proof.index,
        "leaf": to_base64(proof.leaf),
        "entry": None if view.entry is None else to_base64(view.entry.to_bytes()),
        "hashes": [to_base64(each) for each in proof.hashes],
        "checkpoint": _checkpoint(proof.checkpoint),
        "salt": to_base64(view.salt) if sees else None,
        "raw": base64.b64encode(view.raw).decode() if sees else None,
    }


@reads(
    router,
    "/ledger/consistency",
    schemas.Consistency,
    tag="ledger",
    problems=("unsigned", "altered"),
)
def prove_consistency(request: HttpRequest, params: Query[ConsistencyParams]) -> dict[str, Any]:
    """Prove that the log of a checkpoint begins with the log of an older one."""
    newest = proofs.newest_checkpoint()
    new = params.new if params.new is not None else (0 if newest is None else newest.size)
    proof = _or_problem(lambda: proofs.consistency(params.old, new))
    return {
        "old": _checkpoint(proof.old),
        "new": _checkpoint(proof.new),
        "hashes": [to_base64(each) for each in proof.hashes],
    }


def _file(
    path: str, media_type: str, problems: tuple[str, ...]
) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """Make a function the operation GET `path` whose answer is no JSON."""

    def register(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(view)
        def operation(request: HttpRequest, **parameters: Any) -> HttpResponse:
            if unknown := sorted(request.GET):
                raise ProblemError(
                    "parameter",
                    f"Unknown parameter {unknown[0]!r}.",
                    parameter=unknown[0],
                )
            with tenant_scope(cast(ApiRequest, request).auth.tenant_id):
                return view(request, **parameters)

        codes = ("missing_key", "unknown_key", "missing_scope", "method_not_allowed", "parameter")
        answered: dict[str, Any] = problem_responses([*codes, "unavailable", *problems])
        schema = {"type": "string", "format": "binary"}
        if media_type.startswith("text/"):
            schema = {"type": "string"}
        elif media_type.endswith("+json"):
            schema = {}  # what clients generated from it make no class of
        answered["responses"][200] = {
            "description": "OK",
            "content": {media_type: {"schema": schema}},
        }
        router.get(
            path,
            auth=ApiKeyAuth(Scope.READ),
            operation_id=view.__name__,
            summary=view.__name__.replace("_", " ").capitalize(),
            tags=["ledger"],
            openapi_extra=answered,
        )(operation)
        return operation

    return register


@_file("/ledger/checkpoint", "text/plain", ("unsigned",))
def read_checkpoint(request: HttpRequest) -> HttpResponse:
    """Get the newest checkpoint as a signed note."""
    newest = proofs.newest_checkpoint()
    if newest is None:
        raise ProblemError("unsigned", "No checkpoint has been signed yet.")
    (note,) = cosigned_notes(
        current_tenant_id(), [(newest.epoch, newest.size, newest.note)]
    ).values()
    return HttpResponse(note, content_type="text/plain; charset=utf-8")


@_file("/ledger/tile/{path:name}", _BYTES, ("not_found", "altered"))
def read_tile(request: HttpRequest, name: Path[str]) -> HttpResponse:
    """Get a tile: the hashes at `<level>/<index>[.p/<width>]`, as in c2sp.org/tlog-tiles."""
    try:
        wanted = Tile.from_path(f"tile/{name}")
    except FormatError as error:
        raise ProblemError("not_found", f"Tile not found: {error}.") from error
    data = _or_problem(lambda: proofs.tile(wanted))
    if data is None:
        raise ProblemError("not_found", "The signed log has no such tile.")
    return HttpResponse(data, content_type=_BYTES)


@_file(f"/ledger/entries/{{int:index}}{SUFFIX}", "text/plain", ("not_found", "unsigned", "altered"))
def download_proof(request: HttpRequest, index: Path[int]) -> HttpResponse:
    """Download the proof of an entry and its checkpoint as one file: https://c2sp.org/tlog-proof.

    `extra` is the entry that the leaf hash is made of, unless the event was erased.
    """
    return proof_file(*_proved(index, None))


@_file("/ledger/entries/{int:index}.cose", COSE, ("not_found", "unsigned", "altered", "conflict"))
def download_statement(request: HttpRequest, index: Path[int]) -> HttpResponse:
    """Download an entry as a signed statement with COSE receipts (RFC 9942). Experimental.

    The payload is the entry that the leaf hash is made of.
    """
    proof, view = _proved(index, None)
    try:
        return _or_problem(lambda: statement_file(proof, view))
    except ErasedError as error:
        raise ProblemError("not_found", str(error)) from error
    except BoxError as error:
        raise ProblemError("conflict", str(error)) from error


@_file("/ledger/keys.jwks", KEY_SET, ("conflict",))
def download_keys(request: HttpRequest) -> HttpResponse:
    """Download the public keys of COSE receipts and statements as a JWK Set (RFC 7517).

    The member `signs` of a key is `receipts` or `statements`. Experimental.
    """
    try:
        return key_set_file()
    except BoxError as error:
        raise ProblemError("conflict", str(error)) from error


def _proved(index: int, size: int | None) -> tuple[proofs.Inclusion, EntryView]:
    proof = _or_problem(lambda: proofs.inclusion(index, size=size))
    view = entry_at(index)
    if view is None:
        raise ProblemError("altered", f"Entry {index:,} was signed, but is not in the log.")
    return proof, view


def _or_problem[T](ask: Callable[[], T]) -> T:
    try:
        return ask()
    except UnsignedError as error:
        raise ProblemError("unsigned", str(error)) from error
    except AlteredError as error:
        raise ProblemError("altered", str(error)) from error


def _index_of(invocation_id: UUID, kind: Literal["start", "end"]) -> int:
    day = call_day(invocation_id, now=timezone.now())
    call = call_detail(day, invocation_id) if day else None
    try:
        event = None if call is None else read_call_events(call).get(kind)
    except LogPayloadError as error:
        raise ProblemError("altered", f"The log's payload {error}.") from error
    if event is None:
        raise ProblemError("not_found", f"Call not found, or its {kind} event has not arrived.")
    return event.ledger_index


def _checkpoint(one: LedgerCheckpoint) -> dict[str, Any]:
    return {
        "origin": one.origin,
        "epoch": one.epoch,
        "size": one.size,
        "root": to_base64(bytes(one.root)),
        "signed_at": utc(one.signed_at),
        "note": one.note,
    }


def _witness(one: WitnessState) -> dict[str, Any]:
    return {
        "name": one.name,
        "key": one.key,
        "size": one.size,
        "signed_at": one.signed_at and utc(one.signed_at),
        "outcome": one.answered and one.answered.outcome,
        "problem": "" if one.answered is None else one.answered.problem,
    }


def _checkpoints(listed: list[LedgerCheckpoint]) -> list[dict[str, Any]]:
    """Checkpoints with the signatures of witnesses in their notes."""
    notes = cosigned_notes(current_tenant_id(), [(one.epoch, one.size, one.note) for one in listed])
    return [_checkpoint(one) | {"note": notes[one.epoch, one.size]} for one in listed]


def _read_place(place: list[str]) -> tuple[int, int]:
    epoch, size = (int(each) for each in place)
    if not (0 <= epoch < 1 << 31 and 0 <= size <= _INDEX_MAX):
        raise ValueError("no place in the list of checkpoints")
    return epoch, size
