"""Tasks of streams to other systems."""

from uuid import UUID

from django.utils import timezone
from procrastinate.contrib.django import app

from audit.deliveries.outbox import SOON
from audit.stream import sending
from audit.stream.trying import try_stream
from audit.tasks.once import defer_once
from tenants.models import Tenant
from tenants.scope import tenant_scope


# A record leaves within seconds of its signature.
@app.periodic(cron="* * * * * */10")
@app.task(name="audit.tasks.keep_streams", queue="streams", queueing_lock="keep_streams")
def keep_streams(timestamp: int) -> None:
    """Send what each tenant's streams have to send."""
    send_streams()


@app.task(name="audit.tasks.send_streams", queue="streams")
def send_streams() -> None:
    """Send the streams that are due for a few seconds, then let other tasks run."""
    now, due = timezone.now(), []
    for tenant_id in Tenant.objects.filter(suspended_at=None).values_list("id", flat=True):
        with tenant_scope(tenant_id):
            due += [(tenant_id, pk) for pk in sending.due_streams(tenant_id, now)]
    if due and sending.run_slice(due):
        defer_once(send_streams, "send_streams")


@app.task(name="audit.tasks.test_stream", queue="streams", priority=SOON)
def test_stream(tenant_id: str, stream_id: str) -> None:
    """Send a test record to a stream's receiver."""
    try_stream(UUID(tenant_id), UUID(stream_id))
