"""Draws samples: the seed needs a checkpoint that nobody knew when the nonce was committed."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tooltrail.evidence.sample.acts import DRAWN, FIXED
from tooltrail.evidence.sample.selection import (
    NONCE,
    commitment_of,
    draw,
    population_digest,
    seed_of,
    selection_digest,
)

from audit.ledger.witnesses.states import policy_of
from audit.models import (
    LedgerCheckpoint,
    Sample,
    SampledCall,
    SampleState,
    WitnessAnswer,
    WitnessOutcome,
)
from audit.sampling.collecting import (
    CLOCKS_DIFFER,
    find_sample,
    index_of,
    listed,
    population_of,
    proved_bytes,
)
from tenants.actions import Actor, name_of, record_action
from tenants.models import Action, Tenant


class CannotDrawError(Exception):
    """Nothing was drawn. The message says why."""


@dataclass(frozen=True, slots=True)
class Seeding:
    """What is known for the seed of a sample before it is drawn, and of it afterwards."""

    checkpoint: LedgerCheckpoint | None
    """The first one with the entry of the population; None: there is none yet."""
    has_witnesses: bool
    """Whether the tenant has any."""
    is_witnessed: bool
    """Whether enough of them signed the ledger with that entry, before the draw."""

    def why_steerable(self, sample: Sample) -> list[str]:
        """Why the operator of the server could have chosen which calls are drawn."""
        reasons = []
        if not sample.commitment:
            reasons.append("no auditor committed to a nonce")
        if not self.has_witnesses:
            reasons.append("the ledger has no witnesses")
        elif not self.is_witnessed:
            reasons.append("too few witnesses signed between the population and the draw")
        return reasons


def seeding_of(sample: Sample) -> Seeding:
    """What is known for the seed. Up to four queries; needs the scope."""
    policy = policy_of(sample.tenant_id)
    fixed = _entry_of(sample, FIXED, sample.fixed_at)
    drawn = _entry_of(sample, DRAWN, sample.drawn_at)
    checkpoint = None if fixed is None else _checkpoint_after(sample.tenant_id, fixed)
    if checkpoint is None:
        return Seeding(None, bool(policy.witnesses), False)
    answers = WitnessAnswer.objects.for_tenant(sample.tenant_id).filter(
        epoch=checkpoint.epoch,
        size__gte=checkpoint.size,
        outcome=WitnessOutcome.SIGNED,
        witness__in=[str(each.key) for each in policy.witnesses],
    )
    if drawn is not None:
        answers = answers.filter(size__lte=drawn)
    elif sample.drawn_at is not None:
        answers = answers.filter(at__lte=sample.drawn_at)
    count = len(set(answers.values_list("witness", flat=True)))
    return Seeding(checkpoint, bool(policy.witnesses), 0 < policy.needed <= count)


def witnessed_sizes(sample: Sample) -> list[int]:
    """The checkpoint in the seed, and those that witnesses signed from it up to the draw."""
    drawn = _entry_of(sample, DRAWN, sample.drawn_at)
    if sample.checkpoint_size is None or drawn is None:
        return []
    answers = WitnessAnswer.objects.for_tenant(sample.tenant_id).filter(
        size__gte=sample.checkpoint_size, size__lte=drawn, outcome=WitnessOutcome.SIGNED
    )
    return sorted({sample.checkpoint_size, *answers.values_list("size", flat=True)})


def draw_sample(tenant: Tenant, actor: Actor, pk: UUID, nonce: str, now: datetime) -> Sample:
    """Draw the calls of a sample whose population is fixed. Needs the scope.

    `nonce` is the one that was committed to; '' without a commitment. Raises CannotDrawError.
    """
    sample = find_sample(pk, for_update=True)
    if sample is None or sample.state != SampleState.FIXED or sample.size is None:
        raise CannotDrawError("Calls are drawn once, after the population is fixed.")
    _check_nonce(sample, nonce)
    checkpoint = seeding_of(sample).checkpoint
    if checkpoint is None:
        raise CannotDrawError(
            "No checkpoint has the entry of the population yet. The worker signs within a minute."
        )
    population = population_of(sample)
    digest = population_digest(proved_bytes(population))
    if digest.hex() != sample.population:
        raise CannotDrawError("The population is not the one that was fixed. Start a new sample.")
    root = bytes(checkpoint.root)
    seed = seed_of(digest, nonce, root)
    records = {index_of(record): record for record in population}
    drawn = draw(seed, list(records), sample.size)
    calls = {index: listed(records[index]) for index in drawn}
    rows = [
        SampledCall(
            tenant_id=tenant.pk,
            sample_id=sample.id,
            position=position,
            ledger_index=index,
            started_on=calls[index].started_on,
            invocation_id=calls[index].invocation_id,
        )
        for position, index in enumerate(drawn, 1)
    ]
    # A new sample: no conflict is possible. Without that clause Citus refuses several rows.
    SampledCall.objects.bulk_create(rows, ignore_conflicts=True)
    sample.nonce, sample.seed = nonce, seed.hex()
    sample.checkpoint_size, sample.checkpoint_root = checkpoint.size, root.hex()
    sample.drawn_at, sample.drawn_by = now, name_of(actor)
    sample.state = SampleState.DRAWN
    sample.save()
    record_action(
        tenant,
        actor,
        DRAWN,
        str(sample.id),
        rows=[sample, *rows],
        nonce=nonce,
        checkpoint_size=checkpoint.size,
        checkpoint_root=root.hex(),
        seed=seed.hex(),
        selection=selection_digest(drawn),
    )
    return sample


def _check_nonce(sample: Sample, nonce: str) -> None:
    if not sample.commitment:
        if nonce:
            raise CannotDrawError("Nobody committed to a nonce for this sample: leave it empty.")
        return
    if not NONCE.fullmatch(nonce):
        raise CannotDrawError("A nonce has 64 hexadecimal digits, in lower case.")
    if commitment_of(nonce) != sample.commitment:
        raise CannotDrawError("This is not the nonce whose SHA-256 was committed to.")


def _entry_of(sample: Sample, verb: str, at: datetime | None) -> int | None:
    """The ledger index of the sample's action; None: it is not an entry yet, or there is none."""
    if at is None:
        return None
    actions = Action.objects.filter(
        tenant_id=sample.tenant_id,
        at__range=(at - CLOCKS_DIFFER, at + CLOCKS_DIFFER),
        verb=verb,
        subject=str(sample.id),
    )
    indexes = actions.order_by("at", "id").values_list("ledger_index", flat=True)
    return indexes.first()


def _checkpoint_after(tenant_id: UUID, index: int) -> LedgerCheckpoint | None:
    """The first checkpoint of the ledger as it is now that has this entry."""
    checkpoints = LedgerCheckpoint.objects.for_tenant(tenant_id)
    newest = checkpoints.order_by("-epoch").values_list("epoch", flat=True)[:1]
    return checkpoints.filter(epoch__in=newest, size__gt=index).order_by("size").first()
