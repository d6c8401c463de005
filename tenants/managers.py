"""The manager of models whose database key is (tenant_id, id)."""

from django.db import models

from tenants.scope import current_tenant_id


class TenantManager[M: models.Model](models.Manager[M]):
    """Begins every query with the open scope's tenant, in words, beside row-level security.

    As a model's base manager, too (`base_manager_name = "objects"`), it makes `save()` and
    the admin find a row by (tenant_id, id), which Django's own `WHERE id = …` would not.
    Raises TenantScopeError outside a scope, where there is nothing to find.
    """

    def get_queryset(self) -> models.QuerySet[M]:
        """The tenant's rows."""
        return super().get_queryset().filter(tenant_id=current_tenant_id())
