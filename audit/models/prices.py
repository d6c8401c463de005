"""Price lists, and the places where results say how many units a call took."""

from typing import ClassVar

from django.db import models

from audit.models.base import TenantQuerySet


class PriceList(models.Model):
    """The prices that hold from a UTC day until the next list. `in_use` are those of the figures:
    the prices of before until the worker has counted the units of new ones; None until it has.
    """

    pk = models.CompositePrimaryKey("tenant_id", "holds_from")
    tenant_id = models.UUIDField()
    holds_from = models.DateField()
    currency = models.TextField()
    prices = models.JSONField()
    in_use = models.JSONField(null=True)
    changed_at = models.DateTimeField()
    changed_by = models.TextField()

    in_ledger: ClassVar = ("currency", "prices", "changed_at", "changed_by")
    ledger_id: ClassVar = "holds_from"

    objects = TenantQuerySet["PriceList"].as_manager()

    class Meta:
        managed = False
        db_table = "price_list"

    def __str__(self) -> str:
        return f"prices from {self.holds_from}"


class UnitPath(models.Model):
    """Where the results of a tool have their units, and how far the log was read for it."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    tool_name = models.TextField()
    path = models.TextField()
    from_index = models.BigIntegerField()
    next_index = models.BigIntegerField()
    goal_index = models.BigIntegerField()
    erased_count = models.BigIntegerField()

    objects = TenantQuerySet["UnitPath"].as_manager()

    class Meta:
        managed = False
        db_table = "unit_path"

    def __str__(self) -> str:
        return f"{self.path} of {self.tool_name}"
