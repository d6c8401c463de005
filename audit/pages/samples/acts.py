"""What auditors do with samples, for pages and the API. All need the tenant's scope."""

from datetime import UTC, datetime

from django.utils import timezone

from audit.evidence.bundling import Sampled, Wanted
from audit.evidence.ledger_range import LedgerRange, NotSignedError, newest_checkpoint
from audit.ledger.witnesses.bringing import bring_soon
from audit.models import Sample
from audit.queries.time_range import TimeRange
from audit.sampling import collecting
from audit.sampling.bundled import bundled
from audit.tasks import collect_sample
from tenants.actions import Actor, record_action
from tenants.models import Tenant

_NOT_YET = (
    "The last entries about this sample are not signed yet. The worker signs within a minute."
)


def begin_sample(tenant: Tenant, actor: Actor, wanted: collecting.Wanted) -> Sample:
    """Put a sample on record, and let the worker list its population."""
    sample = collecting.start_sample(tenant, actor, wanted, timezone.now())
    collect_sample.defer(tenant_id=str(tenant.pk), sample_id=str(sample.id))
    return sample


def ask_witnesses(tenant: Tenant, actor: Actor, sample: Sample) -> None:
    """Let the worker bring the newest checkpoint to the witnesses. Raises NotSignedError."""
    _, _, size = newest_checkpoint()
    record_action(tenant, actor, "sample.witness", f"{sample.id} at {size} entries")
    bring_soon(tenant.pk, size)


def evidence_of(tenant: Tenant, sample: Sample, made_by: str, now: datetime) -> Wanted:
    """The evidence bundle of a sample. Raises NotSignedError."""
    parts = bundled(sample)
    epoch, origin, size = newest_checkpoint()
    if parts is None or parts.signed_size > size:
        raise NotSignedError(_NOT_YET)
    ledger_range = LedgerRange(epoch, origin, size, parts.first_index, min(parts.end_index, size))
    return Wanted(
        tenant=tenant,
        ledger_range=ledger_range,
        of=TimeRange(sample.created_at, now, UTC),
        made_by=made_by,
        now=now,
        sample=Sampled(sample.id, parts.file, parts.population, parts.sizes),
    )
