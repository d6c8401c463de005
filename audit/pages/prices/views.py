"""The pages of price lists: all, a new one, one to change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from audit.models import PriceList
from audit.pages.prices.forms import (
    ListForm,
    entered,
    entered_models,
    model_rows,
    price_rows,
)
from audit.prices import lists
from audit.queries.call_values import known_values
from audit.queries.price_lists import (
    PriceError,
    all_lists,
    from_document,
    models_from_document,
    percent_counted,
)
from config.http.htmx import render_page
from config.http.ordering import Key, sorted_table
from tenants.access import TenantRequest, tenant_page
from tenants.models import Role

_form_methods = require_http_methods(["GET", "HEAD", "POST"])


@dataclass(frozen=True, slots=True)
class ListedList:
    """A price list as a row: until when it holds, and whether it does now."""

    stored: PriceList
    until: date | None
    state: str
    """now, later, before or counting."""
    names: Sequence[str]
    """Of the tools and models with a price."""


_COLUMNS: Mapping[str, Key[ListedList]] = {
    "from": lambda one: one.stored.holds_from,
    "until": lambda one: one.until,
    "currency": lambda one: one.stored.currency,
    "prices": lambda one: len(one.names),
    "changed": lambda one: one.stored.changed_at,
}
"""The columns by which price lists are sorted."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a list's form."""

    tools: Any
    models: Any

    @classmethod
    def read(cls, request: TenantRequest, document: dict[str, Any]) -> "Rows":
        """The rows that were sent, or else those of a stored list."""
        sent = request.POST or None
        return cls(
            price_rows(sent, from_document(document)),
            model_rows(sent, models_from_document(document)),
        )

    def are_valid(self) -> bool:
        """Whether all rows can be saved. Checks both, so that each shows its errors."""
        return all([self.tools.is_valid(), self.models.is_valid()])


@require_safe
@tenant_page(role=Role.ADMIN)
def price_list_list(request: TenantRequest) -> HttpResponse:
    """Show the price lists, the latest first."""
    today = timezone.now().astimezone(UTC).date()
    stored = all_lists()
    later: list[date | None] = [None, *(one.holds_from for one in stored)]
    listed = [
        ListedList(one, until, _state(one, until, today), _names(one))
        for one, until in zip(stored, later[:-1], strict=True)
    ]
    context: dict[str, object] = {
        "lists": sorted_table(request, listed, _COLUMNS, "from"),
        "percent": percent_counted(),
    }
    return render_page(request, "prices/price_lists.html", "lists", context)


@_form_methods
@tenant_page(role=Role.ADMIN)
def price_list_new(request: TenantRequest) -> HttpResponseBase:
    """Create a price list. The form begins with the prices of the latest one."""
    newest = next(iter(all_lists()), None)
    document = newest.prices if newest else {}
    initial = {
        "holds_from": timezone.now().astimezone(UTC).date(),
        "currency": newest.currency if newest else "",
    }
    form = ListForm(request.POST or None, initial=initial)
    rows = Rows.read(request, document)
    if form.is_valid() and rows.are_valid():
        day = form.cleaned_data["holds_from"]
        if lists.find_list(day) is not None:
            form.add_error("holds_from", "A list already holds from this day. Change that one.")
        elif saved := _save(request, day, form, rows):
            return saved
    return _form_page(request, form, rows, None)


@_form_methods
@tenant_page(role=Role.ADMIN)
def price_list_detail(request: TenantRequest, holds_from: date) -> HttpResponseBase:
    """Show and change a price list. Its day stays."""
    stored = _list_or_404(holds_from)
    initial = {"holds_from": stored.holds_from, "currency": stored.currency}
    form = ListForm(request.POST or None, initial=initial)
    form.fields["holds_from"].disabled = True
    rows = Rows.read(request, stored.prices)
    if form.is_valid() and rows.are_valid() and (saved := _save(request, holds_from, form, rows)):
        return saved
    return _form_page(request, form, rows, stored)


@require_POST
@tenant_page(role=Role.ADMIN)
def price_list_delete(request: TenantRequest, holds_from: date) -> HttpResponseBase:
    """Delete a price list. From its day on, the one before holds."""
    stored = _list_or_404(holds_from)
    lists.delete_list(request.tenant, request.user, stored)
    messages.success(request, f"The list of {stored.holds_from} was deleted.")
    return redirect("price_list_list")


def _save(request: TenantRequest, day: date, form: ListForm, rows: Rows) -> HttpResponseBase | None:
    """Save what was entered; None with the error in the form if it cannot be saved."""
    try:
        stored = lists.save_list(
            request.tenant,
            request.user,
            day,
            form.cleaned_data["currency"],
            entered(rows.tools),
            timezone.now(),
            models=entered_models(rows.models),
        )
    except PriceError as error:
        form.add_error(error.field if error.field in form.fields else None, str(error))
        return None
    if stored.in_use == stored.prices:
        messages.success(request, "Saved. Figures use these prices.")
    else:
        messages.success(request, "Saved. Figures use these prices when the units are counted.")
    return redirect("price_list_list")


def _form_page(
    request: TenantRequest, form: ListForm, rows: Rows, stored: PriceList | None
) -> HttpResponse:
    now = timezone.now()
    context = {
        "form": form,
        "rows": rows,
        "stored": stored,
        "tools": known_values("tool", now=now)["tool"],
        "models": known_values("model", now=now)["model"],
    }
    return render(request, "prices/price_list.html", context)


def _names(stored: PriceList) -> Sequence[str]:
    tools = [one.tool for one in from_document(stored.prices)]
    return [*tools, *(one.model for one in models_from_document(stored.prices))]


def _state(stored: PriceList, until: date | None, today: date) -> str:
    if stored.in_use != stored.prices:
        return "counting"
    if stored.holds_from > today:
        return "later"
    return "now" if until is None or until > today else "before"


def _list_or_404(holds_from: date) -> PriceList:
    stored = lists.find_list(holds_from)
    if stored is None:
        raise Http404("no such price list")
    return stored
