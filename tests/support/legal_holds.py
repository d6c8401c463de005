"""Legal holds set on their page, and which events are still there."""

from typing import Any

from django.urls import reverse
from django.utils import timezone

from audit.ledger import checks
from audit.log.payload import read_events
from audit.models import Batch, LegalHold
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.ledger_log import sign as sign_ledger
from tests.support.pages import signed_in


def set_hold(cast: Cast, **covers: Any) -> LegalHold:
    """Set a legal hold on its page."""
    data = {"name": "Case 7", "reason": "court order", **covers}
    answer = signed_in(cast.auditor).post(reverse("hold_list"), data)
    assert answer.status_code == 302, answer.content.decode()
    with tenant_scope(cast.tenant.id):
        hold = LegalHold.objects.for_tenant(cast.tenant.id).order_by("-id").first()
    assert hold is not None
    return hold


def event_texts(cast: Cast) -> list[bytes]:
    """The remaining bytes of executors' events, in the order of the log; empty where erased."""
    with tenant_scope(cast.tenant.id):
        batches = Batch.objects.for_tenant(cast.tenant.id).filter(is_own=False)
        texts = []
        for batch in batches.order_by("first_index"):
            places = [(batch.batch_id, position) for position in range(batch.event_count)]
            events = read_events(cast.tenant.id, places)
            texts += [events[place].raw or b"" for place in places]
    return texts


def missing_in_ledger(cast: Cast) -> list[str]:
    """The findings of a check of the whole ledger that report missing data."""
    sign_ledger(cast.tenant)
    with tenant_scope(cast.tenant.id):
        one = checks.start_check("auditor", timezone.now())
    assert one is not None
    while checks.run_slice(cast.tenant.id, one.id):
        pass
    with tenant_scope(cast.tenant.id):
        check = checks.find_check(one.id)
    assert check is not None
    return [each for each in check.findings if "missing" in each]
