"""Trials of rules that the worker goes on with: progress, cancel, and what the rule would say."""

from uuid import UUID

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from audit.alerts.trial import BACK
from audit.alerts.trying import (
    cancel_trial,
    find_trial,
    percent_read,
    rule_of_trial,
    trial_of,
)
from audit.models import AlertTrial
from audit.pages.alerts.alert_list import EDITS
from audit.pages.alerts.forms import WindowForm, initial_of
from audit.pages.alerts.rule_list import shown_trial
from config.http.htmx import render_page
from tenants.access import TenantRequest, tenant_page
from tenants.slices import UNDER_WAY, JobState


@require_safe
@tenant_page(role=EDITS)
def trial_detail(request: TenantRequest, pk: UUID) -> HttpResponse:
    """Show how far a trial is; when it has ended, what the rule would have said, and its form."""
    one = _existing(pk)
    rule, _ = rule_of_trial(one)
    is_under_way = one.state in UNDER_WAY
    route = reverse("alert_rule_new")
    if one.rule_id is not None:
        route = reverse("alert_rule_edit", args=[one.rule_id])
    context: dict[str, object] = {
        "form": WindowForm(initial=initial_of(rule)),
        "stored": one.rule_id,
        "action": route,
        "job": one,
        "is_under_way": is_under_way,
        "state": JobState(one.state).label,
        "percent": percent_read(one),
        "tried": None if is_under_way else shown_trial(rule, trial_of(one)),
        "days": BACK.days,
        "is_window": True,
    }
    return render_page(request, "alerts/rule_form.html", "trial", context)


@require_POST
@tenant_page(role=EDITS)
def trial_cancel(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Cancel a trial. What was read is shown."""
    cancel_trial(_existing(pk).id, timezone.now())
    return redirect("alert_trial", pk)


def _existing(pk: UUID) -> AlertTrial:
    one = find_trial(pk)
    if one is None:
        raise Http404("no such trial")
    return one
