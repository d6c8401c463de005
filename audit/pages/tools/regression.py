"""The regression set of a tool: its cases, made of a label, and removed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from audit.events.judgement import Kind
from audit.events.outputs import Side
from audit.models import RegressionCase
from audit.pages.tools.acts import make_regression_set
from audit.queries.call_list import calls_by_day
from audit.queries.listed_call import ListedCall
from audit.work.notes import LABEL_MAX
from audit.work.regression import Expected, NoSetError, cases_of, remove_set, sets_of
from config.http.ordering import Key, sorted_table
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.models import Role
from tools_registry.models import Tool

LABEL: Final = r"^[a-z0-9._-]+$"
REASON_MAX: Final = 500
MAKES: Final = Role.EDITOR
"""Who may make a set: editors may also see payloads."""


class SetForm(forms.Form):
    """Of which calls a set is made, and why."""

    label = forms.RegexField(
        LABEL,
        max_length=LABEL_MAX,
        initial="regression",
        help_text="Of notes about calls of this tool.",
        widget=forms.TextInput(attrs={"class": "form-control mono"}),
    )
    reason = forms.CharField(
        min_length=3,
        max_length=REASON_MAX,
        help_text="Recorded: arguments and outputs are copied.",
        widget=forms.TextInput(attrs={"class": "form-control"}),
    )


class RemovalForm(forms.Form):
    """Why a set is removed."""

    reason = forms.CharField(min_length=3, max_length=REASON_MAX)


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A case as it is listed."""

    case: RegressionCase
    call: ListedCall | None
    """None: it is no longer in the index."""
    sides: Mapping[Side, frozenset[Kind]]

    @property
    def violations(self) -> list[tuple[str, Kind]]:
        """The expected violations; the words of pages for the sides."""
        names: dict[Side, str] = {"args": "arguments", "output": "output"}
        return [(names[side], kind) for side, kinds in self.sides.items() for kind in sorted(kinds)]


_COLUMNS: Mapping[str, Key[CaseRow]] = {
    "call": lambda row: row.call and row.call.started_at,
    "expected": lambda row: len(row.violations),
    "copy": lambda row: "erased" if row.case.is_erased else "stored",
}
"""The columns by which cases are sorted."""


@require_safe
@tenant_page()
def regression_set(request: TenantRequest, pk: UUID) -> HttpResponse:
    """Show the cases of a tool's regression set, without payloads."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    return _page(request, tool, SetForm())


@require_POST
@tenant_page(role=MAKES, needs_payloads=True)
def regression_set_make(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Make the next version of the set, of the calls with a label."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    form = SetForm(request.POST)
    if not form.is_valid():
        return _page(request, tool, form)
    label, reason = form.cleaned_data["label"], form.cleaned_data["reason"]
    try:
        made = make_regression_set(request.tenant, tool, label, request.user, reason)
    except NoSetError as error:
        form.add_error(None, str(error))
        return _page(request, tool, form)
    messages.success(request, f"Version {made.number} of the set has {made.case_count} cases.")
    return redirect("regression_set", tool.pk)


@require_POST
@tenant_page(role=MAKES)
def regression_set_remove(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Delete the copies of the set."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    form = RemovalForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Nothing was removed: enter a reason.")
    elif remove_set(
        request.tenant, tool, request.user, form.cleaned_data["reason"], timezone.now()
    ):
        messages.success(request, "The regression set was removed.")
    return redirect("regression_set", tool.pk)


def _page(request: TenantRequest, tool: Tool, form: SetForm) -> HttpResponse:
    sets = sets_of(tool)
    newest = sets[0] if sets and sets[0].label else None
    cases = cases_of(newest)
    calls = {
        call.invocation_id: call
        for call in calls_by_day((one.started_on, one.invocation_id) for one in cases)
    }
    context: dict[str, Any] = {
        "tool": tool,
        "newest": newest,
        "sets": sets,
        "cases": sorted_table(
            request,
            [CaseRow(one, calls.get(one.invocation_id), Expected.of(one).sides) for one in cases],
            _COLUMNS,
            "",
            page=reverse("regression_set", args=[tool.pk]),
        ),
        "form": form,
        "may_make": has_role(request.membership, MAKES) and bool(tool.current_number),
        "may_remove": has_role(request.membership, MAKES) and newest is not None,
    }
    status = 422 if form.is_bound else 200
    return render(request, "tools/regression_set.html", context, status=status)
