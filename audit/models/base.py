"""The query set of every table that belongs to a tenant."""

from typing import Self
from uuid import UUID

from django.db import models


class TenantQuerySet[M: models.Model](models.QuerySet[M]):
    """Rows of one tenant."""

    def for_tenant(self, tenant_id: UUID) -> Self:
        """Only this tenant's rows. Every query begins with this call."""
        return self.filter(tenant_id=tenant_id)
