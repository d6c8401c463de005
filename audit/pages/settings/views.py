"""The admin's settings of a tenant: name, time zone, retention and redaction."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from audit.events.redaction import Redaction
from audit.pages.settings.acts import (
    Settings,
    current_settings,
    look_up,
    query_for,
    save_redaction,
    save_settings,
    setting_of,
)
from audit.pages.settings.forms import PersonForm, RedactionForm, TenantForm, try_rules
from audit.queries.archives import archive_status
from audit.retention.floor import locked_setting
from audit.retention.retention import WARN_UNDER_DAYS, limits
from tenants.access import TenantRequest, tenant_page
from tenants.models import Role

_form_methods = require_http_methods(["GET", "HEAD", "POST"])


@_form_methods
@tenant_page(role=Role.ADMIN)
def tenant_settings(request: TenantRequest) -> HttpResponseBase:
    """Show and save name, time zone and retention. A shorter retention must be confirmed."""
    tenant = request.tenant
    setting = locked_setting(tenant) if request.method == "POST" else setting_of(tenant)
    current = current_settings(tenant, setting)
    form = TenantForm(request.POST or None, setting=setting, initial=current._asdict())
    if form.is_valid():
        wanted = Settings(*(form.cleaned_data[name] for name in Settings._fields))
        save_settings(tenant, request.user, current, wanted)
        messages.success(request, "Saved.")
        return redirect("tenant_settings")
    context = {
        "form": form,
        "setting": setting,
        "limits": limits(setting, timezone.now()),
        "warn_under_days": WARN_UNDER_DAYS,
        "archive": archive_status(timezone.now()),
    }
    return render(request, "settings/tenant_settings.html", context)


@_form_methods
@tenant_page(role=Role.ADMIN)
def redaction_settings(request: TenantRequest) -> HttpResponseBase:
    """Show, test and save what is removed from events before they are stored."""
    setting = setting_of(request.tenant)
    current = {
        "names": "\n".join(setting.redact_names),
        "patterns": "\n".join(setting.redact_patterns),
        "otlp": setting.redact_otlp,
        "clear_principals": setting.clear_principals,
    }
    is_look_up = "look_up" in request.POST
    person = PersonForm(request.POST if is_look_up else None)
    form = RedactionForm(None if is_look_up else request.POST or None, initial=current)
    result: str | None = None
    removed = 0
    if form.is_valid():
        if "try" in request.POST:
            read = form.cleaned_data
            rules = Redaction(read["names"], read["patterns"], defaults=read["otlp"])
            result, removed = try_rules(rules, read["sample"])
        else:
            save_redaction(request.tenant, request.user, form.cleaned_data)
            messages.success(request, "Saved. All servers apply the rules within 5 seconds.")
            return redirect("redaction_settings")
    context = {
        "form": form,
        "result": result,
        "removed": removed,
        "person": person,
        "query": query_for(look_up(request.tenant, request.user, person.cleaned_data["person"]))
        if person.is_valid()
        else "",
    }
    return render(request, "settings/redaction_settings.html", context)
