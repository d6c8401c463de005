"""A user's preferences, for every tenant: time zone, theme, range of pages with figures."""

from django import forms
from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from audit.pages.settings.forms import ZoneField
from audit.queries.time_range import DEFAULT, LENGTHS
from tenants.access import TenantRequest, tenant_page
from tenants.theme import remember_theme

_RANGES = {name: f"Last {label}" for name, (label, _) in LENGTHS.items()}


class PreferencesForm(forms.Form):
    """A user's preferences. An empty value means the default."""

    time_zone = ZoneField(
        "Browser default", help_text="For displayed times. UTC is shown on hover."
    )
    theme = forms.ChoiceField(
        choices=[("", "System default"), ("light", "Light"), ("dark", "Dark")],
        required=False,
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    default_range = forms.ChoiceField(
        choices=[("", f"Default ({_RANGES[DEFAULT].lower()})"), *_RANGES.items()],
        required=False,
        label="Default time range",
        help_text="Of pages with figures. Used unless the link sets a range.",
        widget=forms.Select(attrs={"class": "form-select"}),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page()
def preferences(request: TenantRequest) -> HttpResponseBase:
    """Show and save the preferences."""
    user = request.user
    current = {name: getattr(user, name) for name in PreferencesForm.base_fields}
    form = PreferencesForm(request.POST or None, initial=current)
    if not form.is_valid():
        return render(request, "settings/preferences.html", {"form": form})
    for name, value in form.cleaned_data.items():
        setattr(user, name, value)
    user.save(update_fields=list(form.cleaned_data))
    messages.success(request, "Saved.")
    response = redirect("preferences")
    remember_theme(response, user.theme)
    return response
