"""Rules of alerts: the list, the form with its trial, mute and delete."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from audit.alerts.rules import EventCondition, Measure, Rule, WindowCondition
from audit.alerts.shown import notification, sentence, title
from audit.alerts.starter import add_starter_rules
from audit.alerts.stored import (
    NameTakenError,
    TooManyRulesError,
    UnknownChannelError,
    all_rules,
    channel_names,
    delete_rule,
    find_rule,
    mute_rule,
    rule_of,
    save_rule,
)
from audit.alerts.trial import BACK, Read, Trial, try_rule
from audit.alerts.trying import start_trial
from audit.models import AlertRule
from audit.pages.alerts.alert_list import EDITS
from audit.pages.alerts.chart import trial_chart
from audit.pages.alerts.forms import EventForm, MuteForm, RuleForm, WindowForm, initial_of
from audit.pages.show.choice import choice
from audit.queries.alerts import unresolved_by_rule
from audit.queries.call_query import parse
from audit.queries.price_lists import currency_used
from audit.show.charts import Chart, range_query
from audit.show.figures import counted
from audit.tasks.requested import try_alert_rule
from config.http.ordering import Key, sorted_table
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.actions import name_of
from tenants.models import User

_form_methods = require_http_methods(["GET", "HEAD", "POST"])
FIRED_SHOWN = 20


class ListedRule(NamedTuple):
    """A rule with its condition in words."""

    rule: AlertRule
    sentence: str
    notification: str
    query: str
    unresolved: int
    is_muted: bool


_COLUMNS: Mapping[str, Key[ListedRule]] = {
    "rule": lambda one: one.rule.name.casefold(),
    "unresolved": lambda one: one.unresolved,
    "judged": lambda one: one.rule.judged_to,
}
"""The columns by which rules are sorted."""


class Firing(NamedTuple):
    """A time at which a tried rule would have fired."""

    at: datetime
    until: datetime | None
    title: str
    severity: str
    query: str


class Tried(NamedTuple):
    """A trial as the page shows it."""

    trial: Trial
    chart: Chart
    fired: list[Firing]
    more: int
    summary: str


@require_safe
@tenant_page()
def rule_list(request: TenantRequest) -> HttpResponseBase:
    """Show all rules."""
    now, unresolved, channels = timezone.now(), unresolved_by_rule(), channel_names()
    currency = currency_used()
    listed = []
    for stored in all_rules():
        rule = rule_of(stored, channels)
        condition = rule.condition
        listed.append(
            ListedRule(
                stored,
                sentence(condition, currency),
                notification(rule),
                condition.query if isinstance(condition, WindowCondition) else "",
                unresolved.get(stored.id, 0),
                stored.muted_until is not None and stored.muted_until > now,
            )
        )
    context = {
        "rules": sorted_table(request, listed, _COLUMNS, ""),
        "may_edit": has_role(request.membership, EDITS),
        "mute": MuteForm(),
    }
    return render(request, "alerts/rule_list.html", context)


@_form_methods
@tenant_page(role=EDITS)
def rule_new(request: TenantRequest) -> HttpResponseBase:
    """Make a rule; `?q=` is the query of its calls, without its range."""
    text = parse(request.GET.get("q", "")).having("since", "")
    wanted = {"query": parse(text).having("until", "")}
    if measure := choice(request, "measure", list(Measure)):
        wanted["measure"] = measure
    return _edit(request, None, WindowForm, _defaults() | wanted)


@_form_methods
@tenant_page(role=EDITS)
def rule_event(request: TenantRequest) -> HttpResponseBase:
    """Make a rule of events."""
    return _edit(request, None, EventForm, {"is_enabled": True, "severity": "alert"})


@require_POST
@tenant_page(role=EDITS)
def rule_starter(request: TenantRequest) -> HttpResponseBase:
    """Make the rules of the starter set that there are not yet."""
    number = add_starter_rules(request.tenant, request.user, timezone.now())
    messages.success(request, f"Starter set: {counted(number, 'rule')} added.")
    return redirect("alert_rule_list")


@_form_methods
@tenant_page(role=EDITS)
def rule_edit(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Change a rule."""
    stored = _stored(request, pk)
    rule = rule_of(stored, channel_names())
    form = EventForm if isinstance(rule.condition, EventCondition) else WindowForm
    return _edit(request, stored, form, initial_of(rule))


@require_POST
@tenant_page(role=EDITS)
def rule_delete(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Delete a rule."""
    stored = _stored(request, pk)
    delete_rule(request.tenant, request.user, stored, timezone.now())
    messages.success(request, f"Rule “{stored.name}” deleted. Its alerts stay.")
    return redirect("alert_rule_list")


@require_POST
@tenant_page(role=EDITS)
def rule_mute(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Tell nobody about alerts of a rule for a while, or end that."""
    stored = _stored(request, pk)
    form = MuteForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Not muted. Choose how long, and enter a reason.")
        return redirect("alert_rule_list")
    minutes, reason = form.cleaned_data["minutes"], form.cleaned_data["reason"]
    mute_rule(request.tenant, request.user, stored, minutes, reason, timezone.now())
    done = "muted: alerts are recorded, and nobody is notified" if minutes else "no longer muted"
    messages.success(request, f"Rule “{stored.name}” is {done}.")
    return redirect("alert_rule_list")


def _stored(request: TenantRequest, pk: UUID) -> AlertRule:
    rules = AlertRule.objects.for_tenant(request.tenant.id)
    stored = rules.select_for_update().filter(id=pk).first()
    if stored is None:
        raise Http404("no such rule")
    return stored


def _edit(
    request: TenantRequest,
    stored: AlertRule | None,
    form_class: type[RuleForm],
    initial: dict[str, Any],
) -> HttpResponseBase:
    form = form_class(request.POST or None, initial=initial)
    tried = None
    if request.method == "POST" and form.is_valid() and form.rule is not None:
        if request.POST.get("act") == "try" and isinstance(form, WindowForm):
            condition, now = form.rule.condition, timezone.now()
            assert isinstance(condition, WindowCondition), "the form makes no other"
            trial = try_rule(condition, now)
            if not trial.is_whole:
                return _go_on(request, form.rule, stored, trial.read, now)
            tried = shown_trial(form.rule, trial)
        elif _save(request, form, form.rule, stored):
            return redirect("alert_rule_list")
    context = {
        "form": form,
        "stored": stored,
        "tried": tried,
        "days": BACK.days,
        "is_window": isinstance(form, WindowForm),
    }
    status = 422 if request.method == "POST" and form.errors else 200
    return render(request, "alerts/rule_form.html", context, status=status)


def _save(request: TenantRequest, form: RuleForm, rule: Rule, stored: AlertRule | None) -> bool:
    """Save the rule; if it cannot be saved, the form says why."""
    user: User = request.user
    former = "" if stored is None else stored.name
    if stored is None and find_rule(rule.name) is not None:
        form.add_error("name", "Another rule has this name.")
        return False
    try:
        save_rule(request.tenant, user, rule, timezone.now(), former_name=former)
    except NameTakenError:
        form.add_error("name", "Another rule has this name.")
        return False
    except (TooManyRulesError, UnknownChannelError) as error:
        form.add_error(None, str(error))
        return False
    messages.success(request, f"Rule “{rule.name}” saved. It is judged from now on.")
    return True


def _defaults() -> dict[str, object]:
    return {
        "measure": "failed_share",
        "window_minutes": 60,
        "compare_with": "number",
        "direction": "above",
        "for_minutes": 0,
        "no_data": "nothing",
        "is_enabled": True,
    }


def _go_on(
    request: TenantRequest, rule: Rule, stored: AlertRule | None, read: Read, now: datetime
) -> HttpResponseBase:
    """Let the worker read the rest."""
    rule_id = None if stored is None else stored.id
    one = start_trial(rule, rule_id, read, now, now, name_of(request.user))
    try_alert_rule.defer(tenant_id=str(request.tenant.id), trial_id=str(one.id))
    return redirect("alert_trial", one.id)


def shown_trial(rule: Rule, trial: Trial) -> Tried:
    """A trial as a page shows it."""
    condition, currency = trial.condition, currency_used()
    fired = []
    for one in reversed(trial.episodes[-FIRED_SHOWN:]):
        at = trial.at(one.value.at)
        query = f"{parse(condition.query)} {range_query(at - condition.window, at)}".strip()
        fired.append(
            Firing(
                trial.at(one.start),
                None if one.end is None else trial.at(one.end),
                title(rule.name, condition, one.severity, one.value, currency),
                one.severity.value,
                query,
            )
        )
    days = (trial.end - trial.start).total_seconds() / 86_400
    back = f"{BACK.days} days" if trial.is_whole else f"{round(days, 1):g} days"
    times = counted(len(trial.episodes), "time")
    return Tried(
        trial,
        trial_chart(trial, timezone.get_current_timezone(), currency),
        fired,
        max(0, len(trial.episodes) - FIRED_SHOWN),
        f"In the last {back} this would have fired {times}.",
    )
