"""The forms of rules and alerts. A rule is checked where it is made (`audit.alerts.rules`)."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.utils import timezone
from pydantic import ValidationError

from audit.alerts.life import NOTE_MAX
from audit.alerts.maintenance import Maintenance
from audit.alerts.quiet import rule_names
from audit.alerts.rules import (
    NAME_MAX,
    QUERY_MAX,
    Comparison,
    EventKind,
    Measure,
    NoData,
    Rule,
    Severity,
)
from audit.alerts.shown import length
from audit.alerts.stored import channel_names

_WINDOWS = (5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 10_080, 43_200)
_MAINTAINED = (15, 30, 60, 120, 240, 480, 720, 1440, 2880, 10_080)
_WAITS = (0, 1, 2, 5, 10, 15, 30, 60, 120)
MUTES = {60: "1 hour", 240: "4 hours", 1440: "1 day", 10_080: "7 days"}
_COMPARED = {
    Comparison.NUMBER: "a number",
    Comparison.DAY_BEFORE: "the same window a day before, in %",
    Comparison.WEEK_BEFORE: "the same window a week before, in %",
}
_NO_DATA = {
    NoData.NOTHING: "does not hold",
    NoData.FIRES: "holds",
    NoData.KEEPS: "stays as it was",
}
_SELECT = {"class": "form-select"}
_CONTROL = {"class": "form-control", "autocomplete": "off"}


_OF_ALL = ("name", "is_enabled", "channels", "repeat_minutes")
_REPEATS = (0, 15, 30, 60, 240, 720, 1440)


class RuleForm(forms.Form):
    """What all rules have. Numbers that the lists do not have, of the API, are kept.

    Needs the tenant's scope.
    """

    name = forms.CharField(max_length=NAME_MAX, widget=forms.TextInput(attrs=_CONTROL))
    channels = forms.MultipleChoiceField(
        label="Channels",
        required=False,
        help_text="Where its alerts are sent. None chosen: all channels.",
        widget=forms.CheckboxSelectMultiple,
    )
    repeat_minutes = forms.TypedChoiceField(
        label="Notify again",
        coerce=int,
        required=False,
        empty_value=0,  # type: ignore[arg-type]  # any value: the stubs are too narrow
        help_text="While an alert is open and nobody has acknowledged it.",
        widget=forms.Select(attrs=_SELECT),
    )
    is_enabled = forms.BooleanField(label="Enabled", required=False, initial=True)

    rule: Rule | None = None
    """The rule, if the form is valid."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        names = channel_names().values()
        self.fields["channels"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]  # a ChoiceField
        self._offer("repeat_minutes", _REPEATS, lambda n: f"every {length(n)}" if n else "never")

    def _offer(self, name: str, offered: tuple[int, ...], label: Callable[[int], str]) -> None:
        kept = self.initial.get(name)
        numbers = sorted({*offered, *([kept] if isinstance(kept, int) else [])})
        self.fields[name].choices = [(n, label(n)) for n in numbers]  # type: ignore[attr-defined]  # a ChoiceField

    def condition(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        """The members of the condition."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any]:
        """Make the rule, or show beside each field why there is none."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        members = {name: cleaned[name] for name in _OF_ALL}
        try:
            self.rule = Rule.model_validate(members | {"condition": self.condition(cleaned)})
        except ValidationError as error:
            for one in error.errors():
                place = str(one["loc"][-1])
                message = one["msg"].removeprefix("Value error, ")
                self.add_error(place if place in self.fields else None, message)
        return cleaned


class WindowForm(RuleForm):
    """A rule of a window."""

    query = forms.CharField(
        label="Calls",
        required=False,
        max_length=QUERY_MAX,
        help_text="A query as in the list of calls, without since and until. Empty: all calls.",
        widget=forms.TextInput(
            attrs={
                "class": "form-control mono",
                "autocomplete": "off",
                "autocapitalize": "none",
                "spellcheck": "false",
                "placeholder": "tool:search",
            }
        ),
    )
    measure = forms.ChoiceField(
        choices=[(one.value, one.label) for one in Measure], widget=forms.Select(attrs=_SELECT)
    )
    window_minutes = forms.TypedChoiceField(
        label="Window", coerce=int, widget=forms.Select(attrs=_SELECT)
    )
    compare_with = forms.ChoiceField(
        label="Compared with",
        choices=[(one.value, label) for one, label in _COMPARED.items()],
        widget=forms.Select(attrs=_SELECT),
    )
    direction = forms.ChoiceField(
        label="Holds when it is",
        choices=[("above", "above the threshold"), ("below", "below the threshold")],
        widget=forms.Select(attrs=_SELECT),
    )
    warning = forms.FloatField(
        label="Warning threshold",
        required=False,
        widget=forms.NumberInput(attrs={**_CONTROL, "step": "any"}),
    )
    alert = forms.FloatField(
        label="Alert threshold",
        required=False,
        help_text="Shares and comparisons in %, durations in ms, costs in the lists' currency.",
        widget=forms.NumberInput(attrs={**_CONTROL, "step": "any"}),
    )
    for_minutes = forms.TypedChoiceField(
        label="Fires when it has held for", coerce=int, widget=forms.Select(attrs=_SELECT)
    )
    no_data = forms.ChoiceField(
        label="Without calls it",
        choices=[(one.value, label) for one, label in _NO_DATA.items()],
        widget=forms.Select(attrs=_SELECT),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._offer("window_minutes", _WINDOWS, length)
        self._offer("for_minutes", _WAITS, lambda n: length(n) if n else "an instant")

    def condition(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in cleaned.items() if name not in _OF_ALL}


class EventForm(RuleForm):
    """A rule of events."""

    event = forms.ChoiceField(
        label="Fires for",
        choices=[(one.value, one.label) for one in EventKind],
        widget=forms.Select(attrs=_SELECT),
    )
    severity = forms.ChoiceField(
        choices=[(one.value, one.value) for one in Severity], widget=forms.Select(attrs=_SELECT)
    )

    def condition(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        return {"on": "event", "event": cleaned["event"], "severity": cleaned["severity"]}


def initial_of(rule: Rule) -> dict[str, Any]:
    """The values of a rule for the form."""
    values = {
        **{name: getattr(rule, name) for name in _OF_ALL},
        **rule.condition.model_dump(mode="json"),
    }
    # A threshold of 3.0 reads 3.
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in values.items()
    }


class NoteForm(forms.Form):
    """What a person says about an alert."""

    note = forms.CharField(
        max_length=NOTE_MAX,
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 2}),
    )


class MuteForm(forms.Form):
    """For how long nobody is notified, and why. 0 minutes end it."""

    minutes = forms.TypedChoiceField(
        coerce=int,
        choices=[(0, "not"), *MUTES.items()],
        widget=forms.Select(attrs=_SELECT),
    )
    reason = forms.CharField(
        required=False,
        max_length=NOTE_MAX,
        widget=forms.TextInput(attrs=_CONTROL),
    )

    def clean(self) -> dict[str, Any]:
        """A mute needs a reason; its end does not."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("minutes") and not cleaned.get("reason", "").strip():
            self.add_error("reason", "Enter a reason.")
        return cleaned


class MaintenanceForm(forms.Form):
    """A maintenance window. Its time is in the user's time zone, by whose clock it repeats.

    Needs the tenant's scope.
    """

    name = forms.CharField(max_length=NAME_MAX, widget=forms.TextInput(attrs=_CONTROL))
    reason = forms.CharField(
        max_length=NOTE_MAX,
        help_text="It stays in the ledger.",
        widget=forms.TextInput(attrs=_CONTROL),
    )
    starts_at = forms.DateTimeField(
        label="From",
        widget=forms.DateTimeInput(
            attrs={"class": "form-control", "type": "datetime-local"}, format="%Y-%m-%dT%H:%M"
        ),
    )
    minutes = forms.TypedChoiceField(
        label="For",
        coerce=int,
        initial=60,
        choices=[(n, length(n)) for n in _MAINTAINED],
        widget=forms.Select(attrs=_SELECT),
    )
    repeats = forms.ChoiceField(
        choices=[("once", "once"), ("daily", "every day"), ("weekly", "every week")],
        widget=forms.Select(attrs=_SELECT),
    )
    rules = forms.MultipleChoiceField(
        required=False,
        help_text="Rules whose alerts are muted. None chosen: all rules.",
        widget=forms.CheckboxSelectMultiple,
    )

    window: Maintenance | None = None
    """The window, if the form is valid."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["rules"].choices = [(name, name) for name in rule_names().values()]  # type: ignore[attr-defined]  # a ChoiceField

    def clean(self) -> dict[str, Any]:
        """Make the window, or show beside each field why there is none."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        zone = str(timezone.get_current_timezone())
        try:
            self.window = Maintenance.model_validate(cleaned | {"time_zone": zone})
        except ValidationError as error:
            for one in error.errors():
                place = str(one["loc"][0]) if one["loc"] else None
                message = one["msg"].removeprefix("Value error, ")
                self.add_error(place if place in self.fields else None, message)
        return cleaned
