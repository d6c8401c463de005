"""Forms of a draft: replay and publish."""

from datetime import datetime, tzinfo
from typing import Any

from django import forms

from audit.queries.call_query import MAX_LENGTH, Query, Reader, parse
from audit.queries.time_range import LENGTHS, TimeRange
from audit.queries.time_range import read as read_range
from audit.work.replay.job import CALLS_MAX
from tools_registry.changes import REASON_MAX_LENGTH


class ReplayForm(forms.Form):
    """Which calls are replayed: the newest `limit` calls of a range."""

    limit = forms.IntegerField(
        label="Newest calls (max.)",
        min_value=1,
        max_value=CALLS_MAX,
        initial=10_000,
        widget=forms.NumberInput(attrs={"class": "form-control"}),
    )
    range = forms.ChoiceField(
        label="Range",
        choices=[*((name, label) for name, (label, _) in LENGTHS.items()), ("own", "Custom range")],
        initial="7d",
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    since = forms.CharField(
        label="From",
        required=False,
        widget=forms.DateTimeInput(attrs={"class": "form-control", "type": "datetime-local"}),
    )
    until = forms.CharField(
        label="To",
        required=False,
        widget=forms.DateTimeInput(attrs={"class": "form-control", "type": "datetime-local"}),
    )

    wanted: TimeRange

    def __init__(self, data: Any = None, *, now: datetime, zone: tzinfo) -> None:
        super().__init__(data)
        self._now, self._zone = now, zone

    def clean(self) -> dict[str, Any]:
        """Read the range in the user's time zone."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("range") == "own":
            params = {"from": cleaned.get("since", ""), "to": cleaned.get("until", "")}
            if not params["from"]:
                raise forms.ValidationError("Enter the start of the range.")
        else:
            params = {"range": cleaned.get("range", "")}
        requested = read_range(params, now=self._now, zone=self._zone)
        if requested.problem:
            raise forms.ValidationError(requested.problem)
        self.wanted = requested.range
        return cleaned


class DriftForm(ReplayForm):
    """Which calls are analyzed for drift: all of the tool, or those that match a query."""

    q = forms.CharField(
        label="Query",
        required=False,
        max_length=MAX_LENGTH,
        help_text="Only calls that match, such as agent:planner environment:live.",
        widget=forms.TextInput(
            attrs={"class": "form-control mono", "autocomplete": "off", "spellcheck": "false"}
        ),
    )

    query: Query

    def __init__(self, data: Any = None, *, now: datetime, reader: Reader) -> None:
        super().__init__(data, now=now, zone=reader.zone)
        self._reader = reader

    def clean_q(self) -> str:
        """Read the query. Terms on payloads are refused, as in all figures."""
        text: str = self.cleaned_data["q"]
        self.query = parse(text, self._reader).of_index()
        if self.query.problems:
            raise forms.ValidationError(self.query.problems[0].message)
        return text


class PublishForm(forms.Form):
    """Why a draft is published. `tools_registry.drafts` decides when a reason is needed."""

    revision = forms.IntegerField(widget=forms.HiddenInput, min_value=1)
    reason = forms.CharField(
        max_length=REASON_MAX_LENGTH,
        required=False,
        help_text="Recorded in the tool's history.",
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 3}),
    )

    def __init__(self, data: Any = None, *, revision: int) -> None:
        super().__init__(data, initial={"revision": revision})
