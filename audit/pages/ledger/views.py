"""The ledger: its state, entries, proofs, keys, and the check of the whole ledger."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe
from tooltrail.ledger import NO_INVOCATION, Kind
from tooltrail.ledger.lines import to_base64

from audit.ledger import checks, proofs
from audit.ledger.entry_view import EntryView, entry_at
from audit.ledger.erased import erased_of
from audit.ledger.proof_download import key_set_file, proof_file, statement_file
from audit.ledger.proofs import AlteredError, Inclusion, UnsignedError
from audit.ledger.signer_state import origin_of
from audit.ledger.statements import ErasedError
from audit.ledger.status import LedgerStatus, ledger_status, unsigned_since
from audit.ledger.witnesses.states import WitnessState, cosigned_notes, witness_states
from audit.models import LedgerCheck, LedgerCheckpoint
from audit.pages.ledger.acts import begin_check, stop_check
from audit.queries.call_list import call_day
from config.boxes import BoxError
from config.http.htmx import render_page
from config.http.ordering import (
    SORTED_MAX,
    Key,
    Order,
    page_in_order,
    requested_order,
    sorted_table,
)
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.models import Role
from tenants.slices import UNDER_WAY, JobState, percent

PAGE_SIZE = 25
LATE = timedelta(seconds=60)
"""An entry that is unsigned for longer than this needs an operator."""
_WITNESSES: Mapping[str, Key[WitnessState]] = {
    "witness": lambda one: one.name.casefold(),
    "size": lambda one: one.size,
    "signed": lambda one: one.signed_at,
}
"""The columns by which witnesses are sorted."""
_INDEX_MAX = (1 << 63) - 1
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Signer:
    """The signer as the page shows it: a colour, a word, and a note."""

    tone: str
    word: str
    note: str


@dataclass(frozen=True, slots=True)
class ListedCheckpoint:
    """A checkpoint with the number of entries it added to the one before."""

    checkpoint: LedgerCheckpoint
    root: str
    added: int | None


_CHECKPOINTS: Mapping[str, Key[ListedCheckpoint]] = {
    "entries": lambda one: one.checkpoint.size,
    "added": lambda one: one.added,
    "signed": lambda one: one.checkpoint.signed_at,
}
"""The columns by which checkpoints are sorted."""
_NEWEST = Order("signed", parameter="sort-checkpoints")


@require_safe
@tenant_page()
def ledger_page(request: TenantRequest) -> HttpResponseBase:
    """Show size, last checkpoint, signer, recent checkpoints, keys, and how to check it all."""
    if (wanted := _number(request.GET.get("entry", ""))) is not None:
        return redirect("ledger_entry", wanted)
    now = timezone.now()
    status, newest = ledger_status(request.tenant.id), proofs.newest_checkpoint()
    checkpoint_order = requested_order(request, _CHECKPOINTS, "signed", _NEWEST.parameter)
    origin = origin_of(request.tenant.id, 0) if newest is None else newest.origin
    waiting_since = unsigned_since(request.tenant.id, status)
    witnesses = witness_states(request.tenant.id)
    context: dict[str, Any] = {
        "status": status,
        "newest": newest,
        "newest_root": "" if newest is None else to_base64(bytes(newest.root)),
        "age_us": None if newest is None else _us(now - newest.signed_at),
        "unsigned": max(0, status.size - (0 if newest is None else newest.size)),
        "waiting_us": None if waiting_since is None else _us(now - waiting_since),
        "signer": _signer(status, waiting_since, now),
        "origin": origin,
        "checkpoint_order": checkpoint_order,
        **_checkpoints(request.GET.get("before", ""), checkpoint_order),
        "keys": proofs.public_keys(origin, now),
        "witnesses": witnesses,
        "each_witness": sorted_table(request, witnesses.all, _WITNESSES, ""),
        **_check_context(checks.last_check()),
    }
    return render(request, "ledger/ledger.html", context)


@require_safe
@tenant_page()
def ledger_entry(request: TenantRequest, index: int) -> HttpResponse:
    """Show one entry, its proof against the newest checkpoint, and its call."""
    view = _entry(index)
    proof: Inclusion | None = None
    problem, is_altered = "", False
    try:
        proof = proofs.inclusion(index)
    except UnsignedError as error:
        problem = str(error)
    except AlteredError as error:
        problem, is_altered = str(error), True
    if proof is not None and proof.leaf != view.leaf:
        proof, is_altered = None, True
        problem = "The leaf in the log differs from the signed one."
    may_see_actions = has_role(request.membership, Role.AUDITOR)
    context: dict[str, Any] = {
        "entry": view,
        "action": _action_of(view) if may_see_actions else None,
        "kind": "" if view.entry is None else view.entry.kind.name.lower(),
        "call_day": _call_day(view),
        "leaf": to_base64(view.leaf),
        "commit": "" if view.entry is None else to_base64(view.entry.commit),
        "proof": proof,
        "has_receipts": proof is not None and bool(proof.checkpoint.receipts),
        "hashes": [] if proof is None else [to_base64(each) for each in proof.hashes],
        "problem": problem,
        "is_altered": is_altered or bool(view.fault),
        "erased": None if view.raw or view.fault else erased_of(index),
    }
    return render(request, "ledger/ledger_entry.html", context)


def _action_of(view: EntryView) -> dict[str, Any] | None:
    """Return who did what to what. None if the entry is altered or no action."""
    if view.fault or not view.raw or view.entry is None or view.entry.kind is not Kind.ACTION:
        return None
    action: dict[str, Any] = json.loads(view.raw)
    return action


@require_safe
@tenant_page()
def ledger_proof(request: TenantRequest, index: int) -> HttpResponse:
    """Return the entry's proof as a file: https://c2sp.org/tlog-proof."""
    view = _entry(index)
    try:
        return proof_file(proofs.inclusion(index), view)
    except (UnsignedError, AlteredError) as error:
        raise Http404(str(error)) from error


@require_safe
@tenant_page()
def ledger_statement(request: TenantRequest, index: int) -> HttpResponse:
    """Return the entry as a signed statement with COSE receipts (RFC 9942)."""
    view = _entry(index)
    try:
        return statement_file(proofs.inclusion(index), view)
    except (ErasedError, UnsignedError, AlteredError, BoxError) as error:
        raise Http404(str(error)) from error


@require_safe
@tenant_page()
def ledger_consistency(request: TenantRequest) -> HttpResponse:
    """Prove that a checkpoint's log begins with the log of an older one. Default: the newest."""
    newest = proofs.newest_checkpoint()
    old = _number(request.GET.get("old", ""))
    new = _number(request.GET.get("new", "")) or (0 if newest is None else newest.size)
    proof, problem, is_altered = None, "", False
    if old is not None:
        try:
            proof = proofs.consistency(old, new)
        except UnsignedError as error:
            problem = str(error)
        except AlteredError as error:
            problem, is_altered = str(error), True
    context: dict[str, Any] = {
        "old": old,
        "new": new,
        "proof": proof,
        "checkpoints": [] if proof is None else _listed([proof.new, proof.old]),
        "hashes": [] if proof is None else [to_base64(each) for each in proof.hashes],
        "problem": problem,
        "is_altered": is_altered,
    }
    return render(request, "ledger/ledger_consistency.html", context)


@require_safe
@tenant_page()
def checkpoint_note(request: TenantRequest, epoch: int, size: int) -> HttpResponse:
    """Return a checkpoint's signed note as a file."""
    checkpoints = LedgerCheckpoint.objects.for_tenant(request.tenant.id)
    one = checkpoints.filter(epoch=min(epoch, 1 << 30), size=min(size, _INDEX_MAX)).first()
    if one is None:
        raise Http404("no such checkpoint")
    (note,) = cosigned_notes(request.tenant.id, [(one.epoch, one.size, one.note)]).values()
    return _text_file(note, f"checkpoint-{request.tenant.slug}-{size}.txt")


@require_safe
@tenant_page()
def ledger_keys(request: TenantRequest) -> HttpResponse:
    """Return the public keys of this ledger as signed notes name them, one per line."""
    names = proofs.origins() or [origin_of(request.tenant.id, 0)]
    now = timezone.now()
    vkeys = [key.vkey for name in names for key in proofs.public_keys(name, now)]
    return _text_file("".join(f"{vkey}\n" for vkey in vkeys), f"keys-{request.tenant.slug}.txt")


@require_safe
@tenant_page()
def ledger_key_set(request: TenantRequest) -> HttpResponse:
    """Return the public keys of COSE receipts and statements as a JWK Set (RFC 7517)."""
    try:
        return key_set_file()
    except BoxError as error:
        raise Http404(str(error)) from error


@require_POST
@tenant_page(needs_payloads=True)
def check_start(request: TenantRequest) -> HttpResponseBase:
    """Let the worker check the whole ledger. Not for viewers."""
    if begin_check(request.tenant, request.user) is None:
        messages.info(request, "A verification is already running.")
    return redirect("ledger_page")


@require_safe
@tenant_page()
def check_detail(request: TenantRequest, pk: UUID) -> HttpResponse:
    """Show the progress of a check and its findings."""
    check = checks.find_check(pk)
    if check is None:
        raise Http404("no such check")
    return render_page(request, "ledger/ledger_check.html", "ledger-check", _check_context(check))


@require_POST
@tenant_page(needs_payloads=True)
def check_cancel(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Cancel a check."""
    check = checks.find_check(pk)
    if check is None:
        raise Http404("no such check")
    stop_check(request.tenant, request.user, check)
    return redirect("ledger_page")


def _check_context(check: LedgerCheck | None) -> dict[str, Any]:
    if check is None:
        return {"check": None}
    return {
        "check": check,
        "is_under_way": check.state in UNDER_WAY,
        "state": JobState(check.state).label,
        "percent": percent(check.next_index, check.size),
        "more_findings": check.finding_count - len(check.findings),
    }


def _signer(status: LedgerStatus, waiting_since: datetime | None, now: datetime) -> Signer:
    if status.refusal is not None:
        return Signer("failed", "Stopped", status.refusal)
    if status.size == 0 and status.epoch is None:
        return Signer("open", "Idle", "")
    if waiting_since is not None and now - waiting_since > LATE:
        return Signer("violation", "Late", "No worker with the key has signed recently.")
    return Signer("ok", "Active", "")


def _checkpoints(place: str, order: Order) -> dict[str, Any]:
    """Return a page of checkpoints in an order, and the context of its pager."""
    if order != _NEWEST:
        newest = proofs.checkpoint_page(None, SORTED_MAX + 1)
        page = page_in_order(
            _listed(newest.checkpoints, newest.behind),
            _CHECKPOINTS,
            order,
            identify=lambda one: f"{one.checkpoint.epoch}-{one.checkpoint.size}",
            after=place,
            size=PAGE_SIZE,
        )
        return {"checkpoints": page.rows, **page.pager}
    before = _place(place)
    listed = proofs.checkpoint_page(before, PAGE_SIZE)
    return {
        "checkpoints": _listed(listed.checkpoints, listed.behind),
        "older": listed.older and "{}-{}".format(*listed.older),
        "is_first_page": before is None,
    }


def _listed(
    checkpoints: list[LedgerCheckpoint], behind: LedgerCheckpoint | None = None
) -> list[ListedCheckpoint]:
    return [
        ListedCheckpoint(
            one,
            to_base64(bytes(one.root)),
            one.size - before.size if before and before.epoch == one.epoch else None,
        )
        for one, before in zip(checkpoints, [*checkpoints[1:], behind], strict=False)
    ]


def _entry(index: int) -> EntryView:
    view = entry_at(min(index, _INDEX_MAX))
    if view is None:
        raise Http404("no such entry")
    return view


def _call_day(view: EntryView) -> date | None:
    """Return the day of the event's call, if the index has it."""
    if view.is_own or view.entry is None or view.entry.invocation_id == NO_INVOCATION:
        return None
    return call_day(view.entry.invocation_id, now=timezone.now())


def _text_file(text: str, name: str) -> HttpResponse:
    return HttpResponse(
        text,
        content_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _number(text: str) -> int | None:
    text = text.strip().removeprefix("#").replace(",", "")
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= 18 else None


def _place(text: str) -> tuple[int, int] | None:
    epoch, _, size = text.partition("-")
    one, other = _number(epoch), _number(size)
    return None if one is None or other is None or one >= 1 << 31 else (one, other)


def _us(age: timedelta) -> int:
    return max(0, age // _MICROSECOND)
