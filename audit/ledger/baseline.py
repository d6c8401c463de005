"""The baseline: one entry per tenant with the digests of all rows that actions name from then on.

Actions name the rows that they change (`tenants.row_digests`). Rows that are older than that, or
that a release begins to prove, are in the baseline as they were when the worker first saw them.
What happened to them before is not covered: only the server vouches for it.
"""

from datetime import datetime
from uuid import UUID

from tooltrail.ledger import Kind
from tooltrail.ledger.lines import to_base64

from audit.ledger.entries import append_entry
from audit.models import LedgerKey
from audit.sql.run import run
from config.instants import iso
from tenants.models import TenantSetting
from tenants.row_digests import proved_models, stored_digests
from tenants.scope import tenant_scope
from tools_registry.models import ToolVersion


def enter_baseline(tenant_id: UUID, now: datetime) -> bool:
    """Append the tenant's baseline unless it has one. Returns whether it was appended.

    One query if there is one. Of two workers, the second waits and then finds it.
    """
    with tenant_scope(tenant_id):
        if run("baseline_is_entered", tenant_id=tenant_id):
            return False
        rows = {
            name: digest
            for model in proved_models()
            for name, digest in stored_digests(tenant_id, model)
        }
        versions = [
            [name, number, digest, iso(created_at), user or key]
            for name, number, digest, created_at, user, key in ToolVersion.objects.filter(
                tenant_id=tenant_id, tool__tenant_id=tenant_id
            )
            .order_by("created_at", "id")
            .values_list(
                *("tool__name", "number", "digest"),
                *("created_at", "created_by", "created_by_key"),
            )
        ]
        setting = TenantSetting.objects.filter(tenant_id=tenant_id).first()
        keys = list(LedgerKey.objects.values_list("public_key", flat=True))
        if not run("claim_baseline", tenant_id=tenant_id):
            return False
        members = {
            "rows": rows,
            "versions": versions,
            "payload_days": setting and setting.payload_days,
            "ledger_keys": [to_base64(bytes(key)) for key in keys],
        }
        append_entry(tenant_id, Kind.BASELINE, members, now)
        return True
