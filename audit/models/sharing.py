"""Links by which members share what a page shows (`audit.work.sharing`)."""

from typing import ClassVar

from django.db import models

from audit.models.base import TenantQuerySet


class ShareLink(models.Model):
    """A link to a call, a trace, a page with figures of a range, or a report."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    kind = models.TextField()
    address = models.TextField()
    is_anonymous = models.BooleanField()
    created_at = models.DateTimeField()
    created_by = models.TextField()
    expires_at = models.DateTimeField()
    payloads_by = models.TextField(null=True)
    payloads_reason = models.TextField(null=True)
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.TextField(null=True)
    opened_count = models.BigIntegerField()
    opened_at = models.DateTimeField(null=True)

    in_ledger: ClassVar = (
        *("kind", "address", "is_anonymous", "created_at", "created_by", "expires_at"),
        *("payloads_by", "payloads_reason", "revoked_at", "revoked_by"),
    )

    objects = TenantQuerySet["ShareLink"].as_manager()

    class Meta:
        managed = False
        db_table = "share_link"

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"
