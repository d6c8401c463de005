"""The evidence bundle of an auditor's sample, for pages and the API."""

from datetime import UTC, datetime

from audit.evidence.bundling import Sampled, Wanted
from audit.evidence.ledger_range import LedgerRange, NotSignedError, newest_checkpoint
from audit.models import Sample
from audit.queries.time_range import TimeRange
from audit.sampling.bundled import bundled
from tenants.models import Tenant

_NOT_YET = (
    "The last entries about this sample are not signed yet. The worker signs within a minute."
)


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
