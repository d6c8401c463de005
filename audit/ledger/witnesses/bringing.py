"""Bring checkpoints of a tenant's ledger to its witnesses, and keep what they answer.

At most once an hour, and before a bundle. What a witness answers, or that it does not answer, never
stops recording and signing: it is kept, and shown.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.utils import timezone
from procrastinate.contrib.django import app
from tooltrail.ledger import LedgerError
from tooltrail.ledger.add_checkpoint import AddCheckpoint

from audit.ledger.tree import StoredTree
from audit.ledger.witnesses.asking import WitnessReply, ask
from audit.ledger.witnesses.policy import WITNESSES_MAX, Witness
from audit.ledger.witnesses.stamping import stamp
from audit.ledger.witnesses.states import policy_of
from audit.models import LedgerCheckpoint, WitnessAnswer, WitnessOutcome
from tenants.actions import storable_text
from tenants.models import new_id
from tenants.scope import tenant_scope

EVERY = timedelta(hours=1)
AT_LEAST = timedelta(seconds=5)
"""Between two requests to a witness, also for bundles."""


class _Turn(NamedTuple):
    """A witness to ask, about which checkpoint, and the size that it signed last."""

    witness: Witness
    checkpoint: LedgerCheckpoint
    old: int


def is_due(tenant_id: UUID, now: datetime) -> bool:
    """Whether some witness or the time authority is to be asked. Needs the scope."""
    return bool(_due(tenant_id, now, None)) or _due_authority(tenant_id, now) is not None


def bring(tenant_id: UUID, now: datetime, size: int | None = None) -> int:
    """Ask each witness that is due to sign the newest checkpoint, or the one of `size` entries.

    All are asked at once, so that a slow one does not delay the others; with the time authority,
    which is asked once a day about the newest. Returns how many witnesses signed. Opens its own
    scopes, so no scope may be open: no transaction waits for a witness. Takes about half a minute
    at most.
    """
    with tenant_scope(tenant_id):
        turns, authority = _due(tenant_id, now, size), _due_authority(tenant_id, now)
    signed = 0
    with ThreadPoolExecutor(WITNESSES_MAX + 1) as pool:
        token = pool.submit(stamp, authority[0], authority[1].note.encode()) if authority else None
        for is_last in (False, True):
            again: list[_Turn] = []
            for turn, answer in zip(turns, _ask_all(tenant_id, turns, pool), strict=True):
                if answer.known is not None and not is_last:
                    again.append(turn._replace(old=answer.known))
                    continue
                _keep(tenant_id, str(turn.witness.key), turn.checkpoint, answer)
                signed += answer.outcome is WitnessOutcome.SIGNED
            turns = again
        if authority is not None and token is not None:
            _keep(tenant_id, *authority, token.result())
    return signed


def _ask_all(
    tenant_id: UUID, turns: Sequence[_Turn], pool: ThreadPoolExecutor
) -> list[WitnessReply]:
    """Ask all at once; the answers, in the same order."""
    with tenant_scope(tenant_id):
        requests = [_request(tenant_id, turn) for turn in turns]
    return list(pool.map(_reply_to, turns, requests))


def _reply_to(turn: _Turn, request: AddCheckpoint | WitnessReply) -> WitnessReply:
    return request if isinstance(request, WitnessReply) else ask(turn.witness, request)


def _request(tenant_id: UUID, turn: _Turn) -> AddCheckpoint | WitnessReply:
    """The request, with the proof; or why there is no proof: then the tiles were altered."""
    of, old = turn.checkpoint, turn.old
    try:
        proof = StoredTree(tenant_id, of.size).consistency(old) if 0 < old < of.size else []
    except LedgerError as error:
        return WitnessReply(WitnessOutcome.REFUSED, problem=f"No proof for it: {error}.")
    return AddCheckpoint(old, tuple(proof), of.note.encode())


def bring_soon(tenant_id: UUID, size: int | None = None) -> None:
    """Let the worker ask the witnesses that are due, once this transaction is committed."""
    # By name, because tasks are above this module. Without a lock of the queue: a second task finds
    # nothing due, and a lock that is taken would break the caller's transaction.
    task = app.configure_task("audit.tasks.bring_checkpoint", queue="deliveries")
    task.defer(tenant_id=str(tenant_id), size=size)


def _due(tenant_id: UUID, now: datetime, size: int | None) -> list[_Turn]:
    policy = policy_of(tenant_id)
    checkpoints = LedgerCheckpoint.objects.for_tenant(tenant_id).order_by("-epoch", "-size")
    wanted = checkpoints.first() if policy.witnesses else None
    if wanted is not None and size is not None:
        wanted = checkpoints.filter(epoch=wanted.epoch, size=size).first()
    if wanted is None:
        return []
    pause = EVERY if size is None else AT_LEAST
    due = []
    for witness in policy.witnesses:
        answers = WitnessAnswer.objects.for_tenant(tenant_id).filter(witness=str(witness.key))
        last = answers.order_by("-id").first()
        signed = answers.filter(epoch=wanted.epoch, outcome=WitnessOutcome.SIGNED)
        sizes = set(signed.order_by("-id").values_list("size", flat=True)[:1])
        is_late = last is None or not timedelta(0) <= now - last.at < pause
        if is_late and not signed.filter(size=wanted.size).exists():
            due.append(_Turn(witness, wanted, max(sizes, default=0)))
    return due


def _due_authority(tenant_id: UUID, now: datetime) -> tuple[str, LedgerCheckpoint] | None:
    """The time authority and the newest checkpoint, if it has no token of this UTC day yet."""
    url = policy_of(tenant_id).timestamp_url
    checkpoints = LedgerCheckpoint.objects.for_tenant(tenant_id).order_by("-epoch", "-size")
    newest = checkpoints.first() if url else None
    if newest is None:
        return None
    answers = WitnessAnswer.objects.for_tenant(tenant_id).filter(witness=url)
    last = answers.order_by("-id").first()
    signed = answers.filter(outcome=WitnessOutcome.SIGNED)
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    is_done = (
        signed.filter(at__gte=today).exists()
        or signed.filter(epoch=newest.epoch, size=newest.size).exists()
    )
    is_late = last is None or not timedelta(0) <= now - last.at < EVERY
    return (url, newest) if is_late and not is_done else None


def _keep(tenant_id: UUID, witness: str, of: LedgerCheckpoint, answer: WitnessReply) -> None:
    with tenant_scope(tenant_id):
        WitnessAnswer.objects.create(
            tenant_id=tenant_id,
            id=new_id(),
            witness=witness,
            epoch=of.epoch,
            size=of.size,
            at=timezone.now(),
            outcome=answer.outcome,
            line=answer.line,
            problem=storable_text(answer.problem),
        )
