"""Joins `audit` to what the apps below it announce."""

from typing import Any

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """The log, its index and the pages over them."""

    name = "audit"

    def ready(self) -> None:
        """A tenant that is deleted leaves its archive first."""
        from tenants.deletion import tenant_leaves

        tenant_leaves.connect(_leave_archive)


def _leave_archive(tenant: Any, operator: str, **_: Any) -> None:
    from audit.archive.leaving import leave  # few commands need it

    leave(tenant, operator)
