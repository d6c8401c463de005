"""Forms of a tenant's settings, with their validation."""

import json
from typing import Any

from django import forms
from tooltrail.redact_text import MARK

from audit.events.limits import MAX_LINE_BYTES
from audit.events.redaction import MAX_LENGTH, MAX_RULES, Redaction
from audit.retention.retention import (
    DAYS_MAX,
    INDEX_DAYS_MIN,
    PAYLOAD_DAYS_MIN,
    WARN_UNDER_DAYS,
)
from tenants.models import Tenant, TenantSetting
from tenants.zones import zone_names

_DIGITS_MAX = len(str(DAYS_MAX))
_FOR_EVER = "Empty: for ever."


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
        "UTC", help_text="For whoever has none: a browser without scripts, a scheduled report."
    )
    payload_days = forms.IntegerField(
        required=False,
        min_value=PAYLOAD_DAYS_MIN,
        max_value=DAYS_MAX,
        label="Keep payloads, days",
        help_text=f"Arguments, outputs, refused lines. {_FOR_EVER} Their hashes stay.",
        widget=forms.NumberInput(attrs={"class": "form-control", "inputmode": "numeric"}),
    )
    index_days = forms.IntegerField(
        required=False,
        min_value=INDEX_DAYS_MIN,
        max_value=DAYS_MAX,
        label="Keep the index, days",
        help_text=f"Calls, traces and figures on the pages. {_FOR_EVER} {INDEX_DAYS_MIN} at least:"
        " calls may arrive as late.",
        widget=forms.NumberInput(attrs={"class": "form-control", "inputmode": "numeric"}),
    )
    is_sure = forms.BooleanField(
        required=False, label="What is older is erased within the hour, and cannot be brought back."
    )

    def __init__(self, *args: Any, setting: TenantSetting, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._setting = setting
        self.shortens = False
        """Whether retention becomes shorter, which must be confirmed."""

    def clean(self) -> dict[str, Any]:
        """Require a confirmation before anything is erased."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        for name in ("payload_days", "index_days"):
            now, then = getattr(self._setting, name), cleaned.get(name)
            self.shortens |= then is not None and (now is None or then < now)
        if self.shortens and not cleaned.get("is_sure"):
            self.add_error("is_sure", "Confirm that older records are to be erased.")
        return cleaned

    @property
    def short_kinds(self) -> list[str]:
        """What the form's current values keep for less than half a year."""
        found = []
        for name, words in (("payload_days", "payloads"), ("index_days", "the index")):
            value = str(self[name].value() or "").strip()
            # The length is limited because int() raises ValueError for very long numbers.
            if len(value) <= _DIGITS_MAX and value.isdecimal() and int(value) < WARN_UNDER_DAYS:
                found.append(words)
        return found


class RedactionForm(forms.Form):
    """What is removed from events before they are stored, and a sample for a test."""

    names = forms.CharField(
        required=False,
        strip=False,
        max_length=MAX_RULES * (MAX_LENGTH + 2),
        label="Members, by name",
        help_text="One a line. <code>iban</code> removes the value of <code>customerIban</code>,"
        " <code>iban_number</code> and <code>IBAN</code>, too.",
        widget=forms.Textarea(
            attrs={"class": "form-control mono", "rows": 5, "spellcheck": "false"}
        ),
    )
    patterns = forms.CharField(
        required=False,
        strip=False,
        max_length=MAX_RULES * (MAX_LENGTH + 2),
        label="Texts, by pattern",
        help_text="One regular expression a line. A text in which one is found is removed whole."
        " Without look-around and back-references, so that none can take long.",
        widget=forms.Textarea(
            attrs={"class": "form-control mono", "rows": 5, "spellcheck": "false"}
        ),
    )
    otlp = forms.BooleanField(
        required=False,
        label="Remove from OpenTelemetry spans what the SDK removes by default",
        help_text="Passwords, tokens, keys, cookies and authorization headers: by name and form.",
    )
    sample = forms.CharField(
        required=False,
        strip=False,
        max_length=MAX_LINE_BYTES,
        label="Try it on a sample",
        help_text="Arguments or an output as JSON, or any text. It is not stored. The SDK's"
        " default rules are applied to it if the box above is ticked.",
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
    found = (line for line in text.replace("\r\n", "\n").split("\n") if line.strip())
    return list(dict.fromkeys(found))


def try_rules(redaction: Redaction, sample: str) -> tuple[str, int]:
    """Return a sample as it would be stored, and the number of values that were removed."""
    raw = b'{"args":' + sample.encode() + b"}"
    cleaned = redaction.clean(raw)
    if cleaned == MARK.encode():  # not JSON: use it as a text
        raw = b'{"args":' + json.dumps(sample).encode() + b"}"
        cleaned = redaction.clean(raw)
    removed = cleaned.count(MARK.encode()) - raw.count(MARK.encode())
    return cleaned[len(b'{"args":') : -1].decode(), removed
