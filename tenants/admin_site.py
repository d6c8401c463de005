"""Django's admin, limited to the session's tenant.

Decides access and opens the tenant scope. Each app's `admin.py` defines which models can be
edited, and how. Users cannot be edited here, because they belong to several tenants.
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
    """The admin site for staff who are editor or admin of the session's tenant; shows only it."""

    site_header = "Tooltrail"
    site_title = "Tooltrail"
    index_title = "Edit"
    enable_nav_sidebar = False
    final_catch_all_view = False

    def admin_view(  # type: ignore[override]  # the stubs use their own type for views
        self, view: Callable[..., HttpResponseBase], cacheable: bool = False
    ) -> Callable[..., HttpResponseBase]:
        """Wrap an admin view in the checks of sign-in and role, and in the tenant scope."""
        page = tenant_page(role=Role.EDITOR)(super().admin_view(view, cacheable))
        return require_http_methods(["GET", "HEAD", "POST"])(page)

    def has_permission(self, request: HttpRequest) -> bool:
        """True for staff; raises PermissionDenied for others. The role was checked before."""
        if not super().has_permission(request):
            raise PermissionDenied(
                "The admin site is for staff. Your account is not marked as staff."
            )
        return True

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """URLs of the index and the models; sign-in, passwords etc. have pages of their own."""
        urls = super().get_urls()
        return [
            one
            for one in urls
            if isinstance(one, URLResolver) or one.name in {"index", "app_list", "jsi18n"}
        ]


class TenantModelAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Base of every model's admin: list, add and change, but no delete.

    The site has checked the role, so no permission of Django's is needed. Changes are recorded in
    the tenant's `action` table, not in Django's own log, which has no tenants.
    """

    def get_urls(self) -> list[URLPattern]:
        """URLs of list, add and change, without Django's history and delete pages."""
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
        """Record the addition in the tenant's audit log."""
        self._record(request, "create", obj, message)

    def log_change(  # type: ignore[override]  # nothing reads the returned log entry
        self, request: HttpRequest, obj: models.Model, message: Any
    ) -> None:
        """Record the change in the tenant's audit log."""
        self._record(request, "change", obj, message)

    def _record(self, request: HttpRequest, verb: str, obj: models.Model, message: Any) -> None:
        request = cast(TenantRequest, request)
        verb = f"{self.opts.model_name}.{verb}"
        rows = [obj] if hasattr(obj, "in_ledger") else []
        record_action(request.tenant, request.user, verb, str(obj), changes=message, rows=rows)

    def _get_obj_does_not_exist_redirect(self, *args: Any) -> NoReturn:
        # Django redirects to the list with a message; here it is 404, as on all other pages.
        raise Http404("no such object")


site = TenantAdminSite(name="admin")
