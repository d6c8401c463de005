"""What an evidence bundle has of an incident."""

from datetime import UTC, datetime

from audit.evidence.bundling import Timelined, Wanted
from audit.evidence.ledger_range import NotSignedError, ledger_range_of, newest_checkpoint
from audit.incidents.making import TIMELINE
from audit.models import Incident
from audit.queries.time_range import TimeRange
from tenants.models import Action, Tenant
from tenants.slices import JobState

_NOT_YET = "The entry of the timeline is not signed yet. The worker signs within a minute."
_ERASED = "The timeline was erased with calls of its traces."


def is_signed(incident: Incident) -> bool:
    """Whether the entry with the timeline's digest is signed. Two queries; needs the scope."""
    index = (
        Action.objects.filter(tenant_id=incident.tenant_id, verb=TIMELINE, subject=str(incident.id))
        .values_list("ledger_index", flat=True)
        .first()
    )
    try:
        return index is not None and index < newest_checkpoint()[2]
    except NotSignedError:
        return False


def evidence_of(tenant: Tenant, incident: Incident, made_by: str, now: datetime) -> Wanted:
    """The evidence bundle of a finished incident: its traces' time, with the timeline.

    Raises NotSignedError, also if there is no timeline any more.
    """
    if incident.state != JobState.DONE or incident.since is None or incident.until is None:
        raise NotSignedError("The timeline is not made yet.")
    if incident.is_erased:
        raise NotSignedError(_ERASED)
    if not is_signed(incident):
        raise NotSignedError(_NOT_YET)
    of = TimeRange(incident.since, incident.until, UTC)
    return Wanted(
        tenant=tenant,
        ledger_range=ledger_range_of(of),
        of=of,
        made_by=made_by,
        now=now,
        incident=Timelined(
            incident.id,
            incident.timeline.encode(),
            incident.page.encode(),
            tuple(incident.hold_ids),
        ),
    )
