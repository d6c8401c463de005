"""The admin's settings of a tenant: name, time zone, retention and redaction."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from audit.events.redaction import Redaction, forget_rules
from audit.pages.settings.forms import RedactionForm, TenantForm, try_rules
from audit.retention.retention import WARN_UNDER_DAYS, limits
from tenants.access import TenantRequest, tenant_page
from tenants.actions import record_action
from tenants.models import Role, Tenant, TenantSetting

_form_methods = require_http_methods(["GET", "HEAD", "POST"])


@_form_methods
@tenant_page(role=Role.ADMIN)
def tenant_settings(request: TenantRequest) -> HttpResponseBase:
    """Show and save name, time zone and retention. A shorter retention must be confirmed."""
    tenant, setting = request.tenant, _setting(request)
    current = {
        "name": tenant.name,
        "time_zone": tenant.time_zone,
        "payload_days": setting.payload_days,
        "index_days": setting.index_days,
    }
    form = TenantForm(request.POST or None, setting=setting, initial=current)
    if form.is_valid():
        wanted = {name: form.cleaned_data[name] for name in current}
        changed = [name for name in current if wanted[name] != current[name]]
        Tenant.objects.filter(pk=tenant.pk).update(
            name=wanted["name"], time_zone=wanted["time_zone"]
        )
        TenantSetting.objects.update_or_create(
            tenant=tenant,
            defaults={name: wanted[name] for name in ("payload_days", "index_days")},
        )
        if changed:
            record_action(
                tenant,
                request.user,
                "tenant.settings",
                wanted["name"],
                before={name: current[name] for name in changed},
                after={name: wanted[name] for name in changed},
                rows=[tenant, TenantSetting(tenant_id=tenant.pk)],
            )
        messages.success(request, "Saved.")
        return redirect("tenant_settings")
    context = {
        "form": form,
        "setting": setting,
        "limits": limits(setting, timezone.now()),
        "warn_under_days": WARN_UNDER_DAYS,
    }
    return render(request, "settings/tenant_settings.html", context)


@_form_methods
@tenant_page(role=Role.ADMIN)
def redaction_settings(request: TenantRequest) -> HttpResponseBase:
    """Show, test and save what is removed from events before they are stored."""
    setting = _setting(request)
    current = {
        "names": "\n".join(setting.redact_names),
        "patterns": "\n".join(setting.redact_patterns),
        "otlp": setting.redact_otlp,
    }
    form = RedactionForm(request.POST or None, initial=current)
    result: str | None = None
    removed = 0
    if form.is_valid():
        names, patterns = form.cleaned_data["names"], form.cleaned_data["patterns"]
        otlp = form.cleaned_data["otlp"]
        if "try" in request.POST:
            rules = Redaction(names, patterns, defaults=otlp)
            result, removed = try_rules(rules, form.cleaned_data["sample"])
        else:
            TenantSetting.objects.update_or_create(
                tenant=request.tenant,
                defaults={
                    "redact_names": names,
                    "redact_patterns": patterns,
                    "redact_otlp": otlp,
                },
            )
            forget_rules(request.tenant.id)
            record_action(
                request.tenant,
                request.user,
                "tenant.redaction",
                f"{len(names)} names, {len(patterns)} patterns",
                names=names,
                patterns=patterns,
                otlp_defaults=otlp,
                rows=[TenantSetting(tenant_id=request.tenant.pk)],
            )
            messages.success(request, "Saved. All servers apply the rules within 5 seconds.")
            return redirect("redaction_settings")
    context = {"form": form, "result": result, "removed": removed}
    return render(request, "settings/redaction_settings.html", context)


def _setting(request: TenantRequest) -> TenantSetting:
    settings = TenantSetting.objects.filter(tenant=request.tenant)
    return settings.first() or TenantSetting(tenant=request.tenant)
