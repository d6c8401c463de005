"""How a tenant's witnesses stand: what each signed last, and who is missing. Needs the scope."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit
from uuid import UUID

from django.db.models import Q

from audit.ledger.witnesses.policy import WitnessError, WitnessPolicy, read_policy
from audit.models import LedgerCheckpoint, WitnessAnswer, WitnessOutcome
from tenants.models import TenantSetting

LINES_MAX = 50
"""Signatures of witnesses below a checkpoint: a note has up to 100."""


@dataclass(frozen=True, slots=True)
class WitnessState:
    """A witness or the time authority, what it signed last, and its last answer."""

    name: str
    key: str
    """Its public key, as a vkey; of the time authority its URL."""
    epoch: int | None
    """Of the largest checkpoint that it signed, as the next two; None if it has signed none."""
    size: int | None
    signed_at: datetime | None
    answered: WitnessAnswer | None
    """Its last answer, or that there was none; None if it was not asked yet."""

    @property
    def is_missing(self) -> bool:
        """Whether it did not sign when it was asked last."""
        return self.answered is not None and self.answered.outcome != WitnessOutcome.SIGNED

    @property
    def tone(self) -> str:
        """How the page shows its last answer."""
        refused = self.answered is not None and self.answered.outcome == WitnessOutcome.REFUSED
        return "failed" if refused else "violation" if self.is_missing else "ok"


@dataclass(frozen=True, slots=True)
class WitnessStates:
    """All witnesses of a tenant, what they vouch for together, and the time authority."""

    policy: WitnessPolicy
    each: list[WitnessState]
    size: int | None
    """Entries of the current epoch that enough witnesses vouch for; None if too few have signed."""
    authority: WitnessState | None
    """The time authority, if the tenant has one."""

    @property
    def all(self) -> list[WitnessState]:
        """The witnesses and the time authority."""
        return [*self.each, *([self.authority] if self.authority else [])]

    @property
    def missing(self) -> list[WitnessState]:
        """Those that did not sign when they were asked last."""
        return [one for one in self.all if one.is_missing]


def policy_of(tenant_id: UUID) -> WitnessPolicy:
    """The witnesses of a tenant. A policy that cannot be read counts as none."""
    setting = TenantSetting.objects.filter(tenant_id=tenant_id).first()
    if setting is None:
        return WitnessPolicy()
    try:
        return read_policy(setting.witnesses_needed, setting.witnesses, setting.timestamp_url)
    except (WitnessError, KeyError, TypeError):  # only who writes to the database can store it
        return WitnessPolicy()


def witness_states(tenant_id: UUID) -> WitnessStates:
    """How the witnesses stand. Two queries for each."""
    policy = policy_of(tenant_id)
    each = [_state_of(tenant_id, one.name, str(one.key)) for one in policy.witnesses]
    url = policy.timestamp_url
    authority = _state_of(tenant_id, urlsplit(url).hostname or "", url) if url else None
    epoch = (
        LedgerCheckpoint.objects.for_tenant(tenant_id)
        .order_by("-epoch")
        .values_list("epoch", flat=True)
        .first()
    )
    sizes = sorted((one.size for one in each if one.size and one.epoch == epoch), reverse=True)
    is_enough = 0 < policy.needed <= len(sizes)
    size = sizes[policy.needed - 1] if is_enough else None
    return WitnessStates(policy, each, size, authority)


def cosigned_notes(
    tenant_id: UUID, checkpoints: Iterable[tuple[int, int, str]]
) -> dict[tuple[int, int], str]:
    """Notes with the signatures of witnesses below, by epoch and size. One query.

    `checkpoints` are epochs, sizes and the notes as they were signed here.
    """
    notes = {(epoch, size): note for epoch, size, note in checkpoints}
    wanted = Q(pk__in=[])
    for epoch in {epoch for epoch, _ in notes}:
        wanted |= Q(epoch=epoch, size__in=[size for of, size in notes if of == epoch])
    signed = WitnessAnswer.objects.for_tenant(tenant_id).filter(
        wanted, outcome=WitnessOutcome.SIGNED
    )
    lines: dict[tuple[int, int], dict[str, str]] = {}
    for epoch, size, witness, line in signed.order_by("id").values_list(
        "epoch", "size", "witness", "line"
    ):
        lines.setdefault((epoch, size), {}).setdefault(witness, line)
    return {
        place: note + "".join(list(lines.get(place, {}).values())[:LINES_MAX])
        for place, note in notes.items()
    }


def signed_sizes(tenant_id: UUID, epoch: int, size: int) -> set[int]:
    """The largest sizes up to `size` that each witness signed in an epoch, and some with tokens."""
    answers = WitnessAnswer.objects.for_tenant(tenant_id).filter(
        epoch=epoch, size__lte=size, outcome=WitnessOutcome.SIGNED
    )
    largest = answers.order_by("witness", "-size").distinct("witness")
    tokens = answers.filter(witness__startswith="http").order_by("-size")
    sizes = largest.values_list("size", flat=True)[:LINES_MAX]
    return {*sizes, *tokens.values_list("size", flat=True)[:LINES_MAX]}


def waits_for(tenant_id: UUID, epoch: int, size: int) -> bool:
    """Whether some witness has not answered yet when it was asked to sign this checkpoint."""
    answers = WitnessAnswer.objects.for_tenant(tenant_id).filter(epoch=epoch, size__gte=size)
    answered = set(answers.values_list("witness", flat=True))
    return any(str(each.key) not in answered for each in policy_of(tenant_id).witnesses)


def _state_of(tenant_id: UUID, name: str, key: str) -> WitnessState:
    answers = WitnessAnswer.objects.for_tenant(tenant_id).filter(witness=key)
    signed = answers.filter(outcome=WitnessOutcome.SIGNED).order_by("-epoch", "-size").first()
    return WitnessState(
        name,
        key,
        None if signed is None else signed.epoch,
        None if signed is None else signed.size,
        None if signed is None else signed.at,
        answers.order_by("-id").first(),
    )
