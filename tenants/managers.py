"""The manager of models whose database key is (tenant_id, id)."""

from django.db import models

from tenants.scope import current_tenant_id


class TenantManager[M: models.Model](models.Manager[M]):
    """Filters every query by the open scope's tenant, in addition to row-level security.

    Make it the model's base manager, too (`base_manager_name = "objects"`): then `save()` and the
    admin find a row by (tenant_id, id). Django's own `WHERE id = …` does not use that key.
    Raises TenantScopeError outside a scope, where no row is visible.
    """

    def get_queryset(self) -> models.QuerySet[M]:
        """The rows of the open scope's tenant."""
        return super().get_queryset().filter(tenant_id=current_tenant_id())
