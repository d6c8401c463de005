"""The page of the first steps, and the first key, made there."""

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from audit.pages.first_steps.guide import guide
from config.http.htmx import render_page
from tenants.access import TenantRequest, tenant_page
from tenants.admin_acts import WantedKey, make_key
from tenants.models import Role, Scope

_PAGE = "first_steps/first_steps.html"
WANTED = WantedKey("First program", [Scope.INGEST, Scope.REGISTRY])
"""The key that the guide makes."""


@require_safe
@tenant_page()
def first_steps(request: TenantRequest) -> HttpResponse:
    """Show what is done and what is next; to htmx, only the list of steps."""
    return render_page(request, _PAGE, "progress", guide(request, timezone.now()))


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(role=Role.ADMIN)
def first_key(request: TenantRequest) -> HttpResponseBase:
    """Create a key that may send events and register tools; only this response shows it."""
    if request.method != "POST":  # the address of that response, opened again
        return redirect("first_steps")
    _, text = make_key(request.tenant, request.user, WANTED)
    return render(request, _PAGE, guide(request, timezone.now()) | {"api_key": text})
