"""Django's admin, bound to the session's tenant.

Owns who gets in and the scope everything runs in. Which models are edited, and how, is
said by each app's `admin.py`. Users are not among them: they belong to several tenants.
"""

from collections.abc import Callable
from typing import Any, NoReturn, cast

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import URLPattern, URLResolver
from django.views.decorators.http import require_http_methods

from tenants.access import TenantRequest, tenant_page
from tenants.actions import record_action
from tenants.models import Role


class TenantAdminSite(admin.AdminSite):
    """Open to staff who are editor or admin of the session's tenant; shows that tenant only."""

    site_header = "Tooltrail"
    site_title = "Tooltrail"
    index_title = "Edit"
    enable_nav_sidebar = False
    final_catch_all_view = False

    def admin_view(  # type: ignore[override]  # the stubs name a type of their own for views
        self, view: Callable[..., HttpResponseBase], cacheable: bool = False
    ) -> Callable[..., HttpResponseBase]:
        """Wrap a view of the admin: sign-in, role and tenant scope around all of it."""
        page = tenant_page(role=Role.EDITOR)(super().admin_view(view, cacheable))
        return require_http_methods(["GET", "HEAD", "POST"])(page)

    def has_permission(self, request: HttpRequest) -> bool:
        """True for staff. Raises PermissionDenied: the role, asked for before, was not it."""
        if not super().has_permission(request):
            raise PermissionDenied("The admin is open to staff; your account is not marked so.")
        return True

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """The index and the models: signing in, passwords and the like have their own pages."""
        urls = super().get_urls()
        return [
            one
            for one in urls
            if isinstance(one, URLResolver) or one.name in {"index", "app_list", "jsi18n"}
        ]


class TenantModelAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """What every model's admin has in common: list, add and change; nothing is deleted.

    Permission is the role's, asked for by the site. Deeds are written to the tenant's
    `action`s and not to Django's own log, which knows no tenants.
    """

    def get_urls(self) -> list[URLPattern]:
        """List, add and change, without Django's history and deleting."""
        kept = ("_changelist", "_add", "_change")
        return [one for one in super().get_urls() if one.name and one.name.endswith(kept)]

    def has_module_permission(self, request: HttpRequest) -> bool:
        """True: see the class."""
        return True

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """True: see the class."""
        return True

    def has_add_permission(self, request: HttpRequest) -> bool:
        """True: see the class."""
        return True

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """True: see the class."""
        return True

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """False: see the class."""
        return False

    def log_addition(  # type: ignore[override]  # nothing reads the returned log entry
        self, request: HttpRequest, obj: models.Model, message: Any
    ) -> None:
        """Put the addition on the tenant's record."""
        self._record(request, "create", obj, message)

    def log_change(  # type: ignore[override]  # nothing reads the returned log entry
        self, request: HttpRequest, obj: models.Model, message: Any
    ) -> None:
        """Put the change on the tenant's record."""
        self._record(request, "change", obj, message)

    def _record(self, request: HttpRequest, verb: str, obj: models.Model, message: Any) -> None:
        request = cast(TenantRequest, request)
        verb = f"{self.opts.model_name}.{verb}"
        record_action(request.tenant, request.user, verb, str(obj), changes=message)

    def _get_obj_does_not_exist_redirect(self, *args: Any) -> NoReturn:
        # Django leads back to the list with a message; here it is what it is anywhere else.
        raise Http404("no such object")


site = TenantAdminSite(name="admin")
