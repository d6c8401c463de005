"""Saving what a page lists under a name, and what one does with such a view."""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from audit.models import SavedView
from audit.pages.show.columns import COLUMNS
from audit.pages.show.requested_query import invalid, read_query
from audit.pages.show.saved_views import plain_address, view_address
from audit.pages.views.forms import ChangedViewForm, SavedViewForm
from audit.queries.saved_views import (
    CALLS,
    MAX_VIEWS,
    NAME_LENGTH,
    TooManyViewsError,
    ViewNameTakenError,
    change_view,
    choose_columns,
    choose_default,
    delete_view,
    find_view,
    offered_views,
    save_view,
)
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.models import Role

_NAME = f"Nothing was saved. Enter a name of at most {NAME_LENGTH} characters."
_TAKEN = "Nothing was saved. You have another view of this name."


@require_POST
@tenant_page()
def view_save(request: TenantRequest) -> HttpResponseBase:
    """Save the query `q` of a page under `name`. Only the signed-in user is offered it."""
    form = SavedViewForm(request.POST)
    is_valid = form.is_valid()
    page = form.cleaned_data.get("page") or CALLS
    text = request.POST.get("q", "")
    query = read_query(request, text) if page == CALLS else None
    if query is not None and query.problems:
        messages.error(request, invalid(query, "saved"))
    elif "page" in form.errors or "q" in form.errors:
        messages.error(request, "Nothing was saved. This page has no views.")
        return redirect(plain_address(CALLS))
    elif not (query.terms if query is not None else text):
        messages.error(request, "Nothing was saved. Enter a query first.")
    elif not is_valid:
        messages.error(request, _NAME)
    else:
        name = form.cleaned_data["name"]
        kept = str(query) if query is not None else form.cleaned_data["q"]
        try:
            save_view(request.user, name, kept, page)
            messages.success(request, f"View “{name}” saved. Only you can see it.")
        except ViewNameTakenError:
            messages.error(request, _TAKEN)
        except TooManyViewsError:
            full = f"You already have {MAX_VIEWS} views. Delete one first."
            messages.error(request, f"Nothing was saved. {full}")
    return redirect(view_address(page, query.text if query is not None else text))


@require_POST
@tenant_page()
def view_change(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Rename a view, share it with all members, or take it back. Editors may share."""
    view = _own(request, pk)
    form = ChangedViewForm(request.POST)
    if not form.is_valid():
        messages.error(request, _NAME)
        return redirect(view_address(view.page, view.query))
    name, is_shared = form.cleaned_data["name"], form.cleaned_data["is_shared"]
    if is_shared and not view.is_shared and not has_role(request.membership, Role.EDITOR):
        messages.error(request, "Nothing was saved. Editors and admins can share views.")
        return redirect(view_address(view.page, view.query))
    try:
        change_view(view, name=name, is_shared=is_shared)
    except ViewNameTakenError:
        messages.error(request, _TAKEN)
    else:
        who = "All members of the tenant are offered it" if is_shared else "Only you can see it"
        messages.success(request, f"View “{name}” saved. {who}.")
    return redirect(view_address(view.page, view.query))


@require_POST
@tenant_page()
def view_delete(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Delete one of the user's own views; admins delete shared ones of others, too."""
    view = delete_view(request.user, pk, manages_shared=_manages_shared(request))
    if view is None:
        raise Http404("no such view")
    messages.success(request, f"View “{view.name}” deleted.")
    return redirect(plain_address(view.page))


@require_POST
@tenant_page()
def view_default(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Open the page with this view, or with `off` without one. For the signed-in user alone."""
    view = next((each for each in offered_views(request.user) if each.id == pk), None)
    if view is None:
        raise Http404("no such view")
    is_off = "off" in request.POST
    choose_default(request.user, view.page, None if is_off else view.id)
    how = "without a view" if is_off else f"with the view “{view.name}”"
    messages.success(request, f"The page now opens {how} for you.")
    return redirect(view_address(view.page, view.query))


@require_POST
@tenant_page()
def columns_save(request: TenantRequest) -> HttpResponseBase:
    """Choose the columns of the page `page` for the signed-in user; none sent: all left out."""
    page = request.POST.get("page", "")
    if page not in COLUMNS:
        raise Http404("no such list")
    wanted = set(request.POST.getlist("column"))
    is_usual = "usual" in request.POST
    columns = None if is_usual else [name for name in COLUMNS[page] if name in wanted]
    choose_columns(request.user, page, columns)
    return redirect(view_address(page, request.POST.get("q", "")))


def _manages_shared(request: TenantRequest) -> bool:
    return has_role(request.membership, Role.ADMIN)


def _own(request: TenantRequest, pk: UUID) -> SavedView:
    view = find_view(request.user, pk, manages_shared=_manages_shared(request))
    if view is None:
        raise Http404("no such view")
    return view
