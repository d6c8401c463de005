"""The filters of pages, read from their addresses."""

from datetime import datetime, timedelta, tzinfo
from typing import Any, ClassVar

from django import forms
from tooltrail.events import ID_MAX_LENGTH

from audit import polling
from audit.payload_match import MAX_NEEDLE
from audit.queries.actions import ActionFilter
from audit.queries.inbox import InboxFilter
from audit.replay.job import CALLS_MAX
from audit.reveal import REASON_MAX_LENGTH as REVEAL_REASON_MAX
from audit.saved_views import NAME_LENGTH
from audit.time_range import LENGTHS, TimeRange
from audit.time_range import read as read_range
from audit.waterfall import View
from tools_registry.changes import REASON_MAX_LENGTH


class TraceFilterForm(forms.Form):
    """Which traces are listed. With a value that cannot be read, none."""

    RANGES: ClassVar[dict[str, tuple[str, timedelta | None]]] = {
        "": ("Any time", None),
        "1h": ("1 h", timedelta(hours=1)),
        "24h": ("24 h", timedelta(hours=24)),
        "7d": ("7 d", timedelta(days=7)),
    }
    STATES: ClassVar[dict[str, str]] = {
        "": "All",
        "failed": "Failed",
        "violation": "Violations",
        "open": "Open",
        "ok": "OK",
    }

    range = forms.ChoiceField(choices=[(k, v[0]) for k, v in RANGES.items()], required=False)
    state = forms.ChoiceField(choices=list(STATES.items()), required=False)
    trace = forms.CharField(max_length=ID_MAX_LENGTH, required=False, strip=True)

    @property
    def since(self) -> timedelta | None:
        """How far back from now; None for any time."""
        return self.RANGES[self.cleaned_data.get("range", "")][1]


class InboxFilterForm(forms.Form):
    """Which refused lines are listed. With a value that cannot be read, none."""

    RANGES: ClassVar[dict[str, tuple[str, timedelta | None]]] = TraceFilterForm.RANGES
    STATES: ClassVar[dict[str, str]] = {
        "": "Waiting",
        "sent": "Sent again",
        "discarded": "Discarded",
        "all": "All",
    }

    range = forms.ChoiceField(choices=[(k, v[0]) for k, v in RANGES.items()], required=False)
    state = forms.ChoiceField(choices=list(STATES.items()), required=False)
    code = forms.CharField(max_length=64, required=False, strip=True)
    before = forms.UUIDField(required=False)
    after = forms.UUIDField(required=False)

    def wanted(self, now: datetime) -> InboxFilter:
        """What the address asks for; of a form with errors, to fill it in again."""
        read = self.cleaned_data
        since = self.RANGES[read.get("range", "")][1]
        return InboxFilter(
            state=read.get("state", ""),
            code=read.get("code", ""),
            since=now - since if since else None,
        )


class ActionFilterForm(forms.Form):
    """Which actions are listed. With a value that cannot be read, none."""

    RANGES: ClassVar[dict[str, tuple[str, timedelta | None]]] = {
        "": ("Any time", None),
        "24h": ("24 h", timedelta(hours=24)),
        "7d": ("7 d", timedelta(days=7)),
        "30d": ("30 d", timedelta(days=30)),
    }

    range = forms.ChoiceField(choices=[(k, v[0]) for k, v in RANGES.items()], required=False)
    actor = forms.CharField(max_length=150, required=False, strip=True)
    verb = forms.CharField(max_length=64, required=False, strip=True)
    subject = forms.CharField(max_length=300, required=False, strip=True)

    def wanted(self, now: datetime) -> ActionFilter:
        """What the address asks for; of a form with errors, to fill it in again."""
        read = self.cleaned_data
        since = self.RANGES[read.get("range", "")][1]
        return ActionFilter(
            actor=read.get("actor", ""),
            verb=read.get("verb", ""),
            subject=read.get("subject", ""),
            since=now - since if since else None,
        )


class RevealForm(forms.Form):
    """Why an auditor is shown a payload."""

    reason = forms.CharField(min_length=3, max_length=REVEAL_REASON_MAX, strip=True)


class DiscardForm(forms.Form):
    """Why a refused line needs nothing more."""

    reason = forms.CharField(
        max_length=500,
        error_messages={"required": "Say why, for whoever finds the line later."},
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 2}),
    )


class DiscardAllForm(InboxFilterForm, DiscardForm):
    """Why all waiting lines of one code, up to one that was seen, need nothing more."""

    code = forms.CharField(max_length=64, strip=True)
    until = forms.UUIDField()


class TimelineForm(forms.Form):
    """Which part of a trace is shown. An unreadable value is reported and hides nothing."""

    ONLY: ClassVar[dict[str, str]] = {
        "": "All",
        "failed": "Failed",
        "violation": "Violations",
        "open": "Open",
        "path": "Path",
    }

    call = forms.UUIDField(required=False)
    tool = forms.CharField(max_length=200, required=False, strip=False)
    only = forms.ChoiceField(choices=list(ONLY.items()), required=False)
    find = forms.CharField(max_length=200, required=False, strip=True)
    row = forms.IntegerField(min_value=0, max_value=10**6, required=False)
    zoom_from = forms.IntegerField(min_value=0, max_value=10**17, required=False)
    zoom_to = forms.IntegerField(min_value=1, max_value=10**17, required=False)

    def view(self) -> View:
        """What the address asks for; of a form with errors, to fill it in again."""
        read = self.cleaned_data
        start, end = read.get("zoom_from"), read.get("zoom_to")
        return View(
            only=read.get("only", ""),
            find=read.get("find", ""),
            tool=read.get("tool", ""),
            zoom=(start or 0, end) if end is not None else None,
            first_row=read.get("row"),
            selected=read.get("call"),
        )


class SavedViewForm(forms.Form):
    """The name a query of calls is kept under."""

    name = forms.CharField(max_length=NAME_LENGTH, strip=True)


class PollingToolForm(forms.Form):
    """A tool that polls, exactly as executors name it."""

    tool = forms.CharField(max_length=polling.NAME_LENGTH, strip=False)


class PayloadSearchForm(forms.Form):
    """What is searched for in payloads; an auditor, who is shown what was found, says why."""

    text = forms.CharField(min_length=2, max_length=MAX_NEEDLE, strip=False)
    reason = forms.CharField(min_length=3, max_length=REVEAL_REASON_MAX, strip=True)

    def __init__(self, data: Any = None, *, needs_reason: bool) -> None:
        super().__init__(data)
        self.fields["reason"].required = needs_reason


class ReplayForm(forms.Form):
    """Which calls are replayed: the newest so many of a range."""

    limit = forms.IntegerField(
        label="The newest calls, at most",
        min_value=1,
        max_value=CALLS_MAX,
        initial=10_000,
        widget=forms.NumberInput(attrs={"class": "form-control"}),
    )
    range = forms.ChoiceField(
        label="Started within the last",
        choices=[*((name, label) for name, (label, _) in LENGTHS.items()), ("own", "from … to …")],
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
        """Read the range by the viewer's clock."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("range") == "own":
            asked = {"from": cleaned.get("since", ""), "to": cleaned.get("until", "")}
            if not asked["from"]:
                raise forms.ValidationError("Say from when.")
        else:
            asked = {"range": cleaned.get("range", "")}
        found = read_range(asked, now=self._now, zone=self._zone)
        if found.problem:
            raise forms.ValidationError(found.problem)
        self.wanted = found.range
        return cleaned


class PublishForm(forms.Form):
    """Why a draft is published; a reason is needed where it breaks something."""

    revision = forms.IntegerField(widget=forms.HiddenInput, min_value=1)
    reason = forms.CharField(
        max_length=REASON_MAX_LENGTH,
        required=False,
        help_text="Stays on the tool's record.",
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 3}),
        error_messages={"required": "It breaks something: say why it is published all the same."},
    )

    def __init__(self, data: Any = None, *, revision: int, needs_reason: bool) -> None:
        super().__init__(data, initial={"revision": revision})
        self.fields["reason"].required = needs_reason
