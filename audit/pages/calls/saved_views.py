"""Saving a query of calls under a name, and deleting it."""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from audit.pages.calls.forms import SavedViewForm
from audit.pages.show.requested_query import invalid, read_query
from audit.queries.saved_views import (
    MAX_VIEWS,
    NAME_LENGTH,
    TooManyViewsError,
    delete_view,
    save_view,
)
from tenants.access import TenantRequest, tenant_page


@require_POST
@tenant_page()
def view_save(request: TenantRequest) -> HttpResponseBase:
    """Save the query `q` under `name`. Only the signed-in user sees it."""
    form = SavedViewForm(request.POST)
    query = read_query(request, request.POST.get("q", ""))
    if query.problems:
        messages.error(request, invalid(query, "saved"))
    elif not query.terms:
        messages.error(request, "Nothing was saved. Enter a query first.")
    elif not form.is_valid():
        messages.error(
            request, f"Nothing was saved. Enter a name of at most {NAME_LENGTH} characters."
        )
    else:
        name = form.cleaned_data["name"]
        try:
            save_view(request.user, name, str(query))
            messages.success(request, f"View “{name}” saved. Only you can see it.")
        except TooManyViewsError:
            full = f"You already have {MAX_VIEWS} views. Delete one first."
            messages.error(request, f"Nothing was saved. {full}")
    return _to_calls(query.text)


@require_POST
@tenant_page()
def view_delete(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Delete one of the user's own views."""
    view = delete_view(request.user, pk)
    if view is None:
        raise Http404("no such view")
    messages.success(request, f"View “{view.name}” deleted.")
    return redirect("call_list")


def _to_calls(text: str) -> HttpResponseBase:
    return redirect(reverse("call_list") + (f"?{urlencode({'q': text})}" if text else ""))
