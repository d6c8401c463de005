"""What an evidence bundle has of a sample: its file, its population, and which entries."""

from typing import NamedTuple

import msgspec
from tooltrail.evidence.sample.layout import SampledCall as Line
from tooltrail.evidence.sample.layout import SampleFile

from audit.models import Batch, Sample, SampledCall
from audit.queries.call_list import calls_by_day
from audit.sampling.collecting import (
    CLOCKS_DIFFER,
    definition_of,
    index_of,
    population_of,
    proved_bytes,
)
from audit.sampling.drawing import witnessed_sizes
from audit.sampling.working import sampled_calls
from tenants.models import Action


class Bundled(NamedTuple):
    """The parts of a bundle that are about a sample."""

    file: bytes
    population: bytes
    first_index: int
    """The ledger index of the first entry: the population, and all entries of the drawn calls."""
    end_index: int
    signed_size: int
    """Entries that a checkpoint must have: with the last action about the sample."""
    sizes: list[int]
    """Checkpoints that must be in the bundle."""


def bundled(sample: Sample) -> Bundled | None:
    """The parts of a sample that is drawn; None while its last action is no entry yet.

    Needs the scope. Reads the whole population.
    """
    acts = Action.objects.filter(
        tenant_id=sample.tenant_id,
        at__gte=sample.created_at - CLOCKS_DIFFER,
        verb__startswith="sample.",
        subject=str(sample.id),
    )
    indexes = list(acts.values_list("ledger_index", flat=True))
    if sample.checkpoint_size is None or not indexes or None in indexes:
        return None
    calls, population = sampled_calls(sample), population_of(sample)
    own = _indexes_of(sample, calls)
    return Bundled(
        file=msgspec.json.encode(_file(sample, calls)) + b"\n",
        population=proved_bytes(population),
        first_index=min(index_of(population[0]), *own),
        end_index=max(index_of(population[-1]), *own) + 1,
        signed_size=1 + max(index for index in indexes if index is not None),
        sizes=witnessed_sizes(sample),
    )


def _file(sample: Sample, calls: list[SampledCall]) -> SampleFile:
    assert sample.checkpoint_size is not None
    return SampleFile(
        id=sample.id,
        definition=definition_of(sample),
        nonce=sample.nonce,
        checkpoint_size=sample.checkpoint_size,
        checkpoint_root=bytes.fromhex(sample.checkpoint_root),
        calls=[
            Line(
                index=call.ledger_index,
                conclusion=call.conclusion,  # type: ignore[arg-type]  # the table has a check
                texts=call.texts,
                note=None if call.is_erased else call.note,
                exception=None if call.is_erased else call.exception,
                salt=None if call.is_erased else call.salt,
            )
            for call in calls
        ],
    )


def _indexes_of(sample: Sample, calls: list[SampledCall]) -> list[int]:
    """The ledger indexes of the drawn calls' entries, as far as the index still has the calls."""
    listed = calls_by_day((call.started_on, call.invocation_id) for call in calls)
    places = [each for call in listed for each in (call.start_place, call.end_place) if each]
    batches = dict(
        Batch.objects.for_tenant(sample.tenant_id)
        .filter(batch_id__in={batch_id for batch_id, _ in places})
        .values_list("batch_id", "first_index")
    )
    own = [batches[batch] + position for batch, position in places if batch in batches]
    return [*own, *(call.ledger_index for call in calls)]
