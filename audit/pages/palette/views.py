"""The palette as a page, and its entries as a part of any page."""

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.pages.palette.entries import TEXT_MAX, entries
from config.http.htmx import render_page
from tenants.access import TenantRequest, tenant_page
from tenants.actions import storable_text
from tenants.models import Role


@require_safe
@tenant_page()
def palette(request: TenantRequest) -> HttpResponse:
    """List what the text `q` leads to."""
    text = storable_text(request.GET.get("q", "").strip()[:TEXT_MAX])
    role = Role(request.membership.role)
    context: dict[str, object] = {
        "text": text,
        "entries": entries(text, role, request.user, timezone.now()),
    }
    return render_page(request, "palette/palette.html", "entries", context)
