"""Joins `audit` to what the apps below it announce."""

from typing import Any

from django.apps import AppConfig

from tenants.announcements import tenant_leaves


class AuditConfig(AppConfig):
    """The log, its index and the pages over them."""

    name = "audit"

    def ready(self) -> None:
        """A tenant that is deleted leaves its archive first."""
        tenant_leaves.connect(_leave_archive)


def _leave_archive(tenant: Any, operator: str, **_: Any) -> None:
    from audit.archive.leaving import leave  # few commands need it

    leave(tenant, operator)
