"""What auditors do with samples, for pages and the API. All need the tenant's scope."""

from django.utils import timezone

from audit.evidence.ledger_range import newest_checkpoint
from audit.ledger.witnesses.bringing import bring_soon
from audit.models import Sample
from audit.sampling import collecting
from audit.tasks.requested import collect_sample
from tenants.actions import Actor, record_action
from tenants.models import Tenant


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
