"""Regression sets: copies of calls by which changes of a tool are judged."""

from django.db import models

from audit.models.base import TenantQuerySet


class RegressionSet(models.Model):
    """A version of a tool's set: who made it, when, of which label and why."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    tool_id = models.UUIDField()
    number = models.IntegerField()
    label = models.TextField()
    judged_by = models.IntegerField()
    case_count = models.IntegerField()
    created_at = models.DateTimeField()
    created_by = models.TextField()
    reason = models.TextField()

    objects = TenantQuerySet["RegressionSet"].as_manager()

    class Meta:
        managed = False
        db_table = "tool_regression"

    def __str__(self) -> str:
        return f"version {self.number}"


class RegressionCase(models.Model):
    """A copy of a call's arguments and output, and the violations that it is expected to have."""

    pk = models.CompositePrimaryKey("tenant_id", "set_id", "invocation_id")
    tenant_id = models.UUIDField()
    set_id = models.UUIDField()
    started_on = models.DateField()
    invocation_id = models.UUIDField()
    args = models.TextField()
    output = models.TextField()
    expected = models.TextField()
    is_erased = models.BooleanField()

    objects = TenantQuerySet["RegressionCase"].as_manager()

    class Meta:
        managed = False
        db_table = "tool_regression_case"

    def __str__(self) -> str:
        return str(self.invocation_id)
