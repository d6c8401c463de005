"""Beginning an incident, for pages and the API. Needs the tenant's scope."""

from django.utils import timezone

from audit.incidents import making
from audit.models import Incident
from audit.tasks.requested import make_incident
from tenants.actions import Actor
from tenants.models import Tenant


def begin_incident(tenant: Tenant, actor: Actor, wanted: making.Wanted) -> Incident:
    """Hold the calls, and let the worker make the timeline. Raises CannotBeginError."""
    incident = making.begin_incident(tenant, actor, wanted, timezone.now())
    make_incident.defer(tenant_id=str(tenant.pk), incident_id=str(incident.id))
    return incident
