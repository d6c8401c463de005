"""The bytes of events as the database keeps them."""

from audit.log.payload import unpack
from audit.models import Batch
from tenants.scope import tenant_scope
from tests.support.factories import Cast


def stored_lines(cast: Cast) -> list[bytes]:
    """The stored bytes of every event of the tenant, in the order of the log."""
    with tenant_scope(cast.tenant.id):
        batches = Batch.objects.for_tenant(cast.tenant.id).order_by("first_index")
        return [raw for batch in batches for _, raw in unpack(bytes(batch.payload or b""))]
