"""Forms of a tenant's settings, with their validation."""

import json
from typing import Any

from django import forms
from tooltrail.events import ID_MAX_LENGTH
from tooltrail.redact_text import MARK

from audit.events.limits import MAX_LINE_BYTES
from audit.events.redaction import MAX_LENGTH, MAX_RULES, Redaction
from audit.retention.floor import is_below
from audit.retention.retention import (
    DAYS_MAX,
    INDEX_DAYS_MIN,
    PAYLOAD_DAYS_MIN,
    WARN_UNDER_DAYS,
)
from tenants.models import Tenant, TenantSetting
from tenants.zones import zone_names

_DIGITS_MAX = len(str(DAYS_MAX))
_FOR_EVER = "Leave empty to keep them forever."


class ZoneField(forms.ChoiceField):
    """An IANA time zone, or none."""

    def __init__(self, none: str, **options: Any) -> None:
        choices = [("", none), *((name, name.replace("_", " ")) for name in sorted(zone_names()))]
        widget = forms.Select(attrs={"class": "form-select"})
        super().__init__(choices=choices, required=False, widget=widget, **options)


class TenantForm(forms.Form):
    """A tenant's name, time zone and retention."""

    name = forms.CharField(
        max_length=Tenant._meta.get_field("name").max_length,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    time_zone = ZoneField(
        "UTC", help_text="Default for browsers without scripts and for scheduled reports."
    )
    payload_days = forms.IntegerField(
        required=False,
        min_value=PAYLOAD_DAYS_MIN,
        max_value=DAYS_MAX,
        label="Keep payloads (days)",
        help_text=f"Arguments, outputs, rejected events. {_FOR_EVER} Their hashes are kept.",
        widget=forms.NumberInput(attrs={"class": "form-control", "inputmode": "numeric"}),
    )
    index_days = forms.IntegerField(
        required=False,
        min_value=INDEX_DAYS_MIN,
        max_value=DAYS_MAX,
        label="Keep the index (days)",
        help_text="Calls, traces and figures on the pages, and the copies in regression sets."
        f" {_FOR_EVER}"
        f" Minimum {INDEX_DAYS_MIN} (late events).",
        widget=forms.NumberInput(attrs={"class": "form-control", "inputmode": "numeric"}),
    )
    is_sure = forms.BooleanField(
        required=False, label="Erase older data within an hour. This cannot be undone."
    )

    def __init__(self, *args: Any, setting: TenantSetting, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._setting = setting
        self.shortens = False
        """Whether retention becomes shorter, which must be confirmed."""

    def clean(self) -> dict[str, Any]:
        """Keep to the floor, and require a confirmation before anything is erased."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        floor_days = self._setting.floor_days
        for name in ("payload_days", "index_days"):
            now, then = getattr(self._setting, name), cleaned.get(name)
            if is_below(then, floor_days):
                self.add_error(name, f"The retention floor of this tenant is {floor_days:,} days.")
                continue
            self.shortens |= then is not None and (now is None or then < now)
        if self.shortens and not cleaned.get("is_sure"):
            self.add_error("is_sure", "Confirm that older data is erased.")
        return cleaned

    @property
    def short_kinds(self) -> list[str]:
        """What the form's current values keep for less than half a year."""
        kinds = []
        for name, words in (("payload_days", "payloads"), ("index_days", "the index")):
            value = str(self[name].value() or "").strip()
            # The length is limited because int() raises ValueError for very long numbers.
            if len(value) <= _DIGITS_MAX and value.isdecimal() and int(value) < WARN_UNDER_DAYS:
                kinds.append(words)
        return kinds


class RedactionForm(forms.Form):
    """What is removed from events before they are stored, and a sample for a test."""

    names = forms.CharField(
        required=False,
        strip=False,
        max_length=MAX_RULES * (MAX_LENGTH + 2),
        label="Member names",
        help_text="One per line. <code>iban</code> also removes the values of"
        " <code>customerIban</code>, <code>iban_number</code> and <code>IBAN</code>.",
        widget=forms.Textarea(
            attrs={"class": "form-control mono", "rows": 5, "spellcheck": "false"}
        ),
    )
    patterns = forms.CharField(
        required=False,
        strip=False,
        max_length=MAX_RULES * (MAX_LENGTH + 2),
        label="Text patterns",
        help_text="One regular expression per line. A text with a match is removed entirely."
        " Look-around and back-references are not supported (for performance).",
        widget=forms.Textarea(
            attrs={"class": "form-control mono", "rows": 5, "spellcheck": "false"}
        ),
    )
    otlp = forms.BooleanField(
        required=False,
        label="Apply the SDK's default rules to OpenTelemetry spans",
        help_text="They remove passwords, tokens, keys, cookies and authorization headers, by name"
        " and by form.",
    )
    clear_principals = forms.BooleanField(
        required=False,
        label="Store principals in clear text",
        help_text="Otherwise the persons on whose behalf calls are made, and those who approve"
        " them, are stored as pseudonyms: the same person has the same one. This applies to new"
        " events.",
    )
    sample = forms.CharField(
        required=False,
        strip=False,
        max_length=MAX_LINE_BYTES,
        label="Sample",
        help_text="Arguments or an output as JSON, or any text. It is not stored. The SDK's"
        " default rules apply if the box above is checked.",
        widget=forms.Textarea(
            attrs={"class": "form-control mono", "rows": 6, "spellcheck": "false"}
        ),
    )

    def clean_names(self) -> list[str]:
        """Return the names. Raises ValidationError for an invalid one."""
        return self._checked(_lines(self.cleaned_data["names"]), [])

    def clean_patterns(self) -> list[str]:
        """Return the patterns. Raises ValidationError for one that the engine does not support."""
        return self._checked([], _lines(self.cleaned_data["patterns"]))

    def _checked(self, names: list[str], patterns: list[str]) -> list[str]:
        try:
            Redaction(names, patterns)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None
        return names or patterns


def _lines(text: str) -> list[str]:
    # A pattern may begin or end with a space, but a line of only spaces is no pattern.
    lines = (line for line in text.replace("\r\n", "\n").split("\n") if line.strip())
    return list(dict.fromkeys(lines))


class PersonForm(forms.Form):
    """Somebody to look up: the text that executors send for them."""

    person = forms.CharField(
        label="Person",
        max_length=ID_MAX_LENGTH,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
        help_text="Exactly as executors send it, for example an id or an address.",
    )


def try_rules(redaction: Redaction, sample: str) -> tuple[str, int]:
    """Return a sample as it would be stored, and the number of values that were removed."""
    raw = b'{"args":' + sample.encode() + b"}"
    cleaned = redaction.clean(raw)
    if cleaned == MARK.encode():  # not JSON: use it as a text
        raw = b'{"args":' + json.dumps(sample).encode() + b"}"
        cleaned = redaction.clean(raw)
    removed = cleaned.count(MARK.encode()) - raw.count(MARK.encode())
    return cleaned[len(b'{"args":') : -1].decode(), removed
