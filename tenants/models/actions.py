"""Actions: what people and programs did."""

from django.db import models

from tenants.models.ids import new_id
from tenants.models.tenant import Tenant


class Action(models.Model):
    """An entry of the audit log. Names are copied, so it outlives its subjects."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+")
    at = models.DateTimeField(auto_now_add=True)
    user_id = models.BigIntegerField(null=True)
    user_name = models.CharField(max_length=150)
    verb = models.CharField(max_length=64)
    subject = models.CharField(max_length=300)
    details = models.JSONField(default=dict)
    rows = models.JSONField(default=dict)
    """Digests of the rows it changed, by `table/id` (`tenants.row_digests`)."""
    ledger_index = models.BigIntegerField(null=True)
    """Index of its entry in the ledger; None until the worker has entered it."""

    class Meta:
        db_table = "action"

    def __str__(self) -> str:
        return f"{self.user_name} {self.verb} {self.subject}"
