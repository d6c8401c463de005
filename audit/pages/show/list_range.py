"""The range filter of the lists of traces, rejected events and actions."""

from datetime import datetime, timedelta
from typing import Any, ClassVar, NamedTuple

from django import forms
from django.http import QueryDict
from django.utils import timezone

from audit.queries import time_range


class ListRange(NamedTuple):
    """A choice of the filter."""

    label: str
    length: timedelta | None
    """How far to go back from now. None: any time."""


LIST_RANGES: dict[str, ListRange] = {
    "": ListRange("Any time", None),
    "1h": ListRange("1 h", timedelta(hours=1)),
    "24h": ListRange("24 h", timedelta(hours=24)),
    "7d": ListRange("7 d", timedelta(days=7)),
}
"""The choices by name in URLs."""
_NOT_KEPT = {"range", "from", "to", "before", "after", "plain"}


class TimeSpan(NamedTuple):
    """From an instant on, and before another; None: without that bound."""

    since: datetime | None
    until: datetime | None


class RangedForm(forms.Form):
    """A filter with a range: one of the choices, or `from` and `to`, shown by
    `components/_list_range.html`."""

    RANGES: ClassVar = LIST_RANGES

    range = forms.ChoiceField(
        choices=[(name, choice.label) for name, choice in RANGES.items()], required=False
    )

    def __init__(self, data: QueryDict, now: datetime) -> None:
        super().__init__(data)
        self._now = now
        self.times, self._problem = TimeSpan(None, None), ""
        self.kept = [(name, str(value)) for name, value in data.items() if name not in _NOT_KEPT]
        """The other members of the address, which another range keeps."""
        if data.get("from") or data.get("to"):
            zone = timezone.get_current_timezone()
            read = time_range.read(
                {"from": data.get("from", ""), "to": data.get("to", "")}, now=now, zone=zone
            )
            self._problem = read.problem
            self.times = TimeSpan(read.range.start, read.range.end)

    def clean(self) -> dict[str, Any]:
        """A range of its own must be one."""
        if self._problem:
            raise forms.ValidationError(self._problem)
        return self.cleaned_data

    def span(self) -> TimeSpan:
        """The times that are wanted. A range of its own is before a choice."""
        length = self.RANGES[self.cleaned_data.get("range", "")].length
        if self.times.since is None and length is not None:
            return TimeSpan(self._now - length, None)
        return self.times
