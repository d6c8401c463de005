"""What a note is about: found from the members of a request, and where it is shown."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.urls import reverse
from django.utils import timezone

from audit.models import About, Trace
from audit.queries.call_list import call_day
from audit.queries.call_query_values import MAX_VALUE
from audit.queries.calls import call_detail, trace_detail
from audit.queries.decisions import decided_day
from audit.queries.notes import Subject
from tenants.scope import current_tenant_id
from tools_registry.versions import versions_named

_NEEDED = {
    About.CALL: ("invocation_id",),
    About.TRACE: ("trace_id",),
    About.VIOLATION: ("tool_name", "code", "path"),
    About.VERSION: ("tool_name", "tool_version"),
}


class UnknownSubjectError(Exception):
    """The tenant has no such call or trace."""


class SubjectForm(forms.Form):
    """The members that name what a note is about."""

    about = forms.ChoiceField(choices=About.choices, widget=forms.HiddenInput)
    invocation_id = forms.UUIDField(required=False, widget=forms.HiddenInput)
    trace_id = forms.CharField(required=False, max_length=MAX_VALUE, widget=forms.HiddenInput)
    tool_name = forms.CharField(required=False, max_length=MAX_VALUE, widget=forms.HiddenInput)
    tool_version = forms.CharField(required=False, max_length=MAX_VALUE, widget=forms.HiddenInput)
    code = forms.CharField(required=False, max_length=MAX_VALUE, widget=forms.HiddenInput)
    path = forms.CharField(required=False, max_length=MAX_VALUE, widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        """Each kind of subject needs its own members."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        for name in _NEEDED.get(cleaned.get("about", ""), ()):
            if not cleaned.get(name) and name not in self.errors:
                self.add_error(name, f"A note about a {cleaned['about']} needs it.")
        return cleaned

    def subject(self) -> Subject:
        """What the valid form names. Raises UnknownSubjectError. Needs the tenant's scope."""
        named = self.cleaned_data
        tool, about = named["tool_name"], About(named["about"])
        match about:
            case About.CALL:
                return _call(named["invocation_id"])
            case About.TRACE:
                traces = Trace.objects.for_tenant(current_tenant_id())
                trace_id = named["trace_id"]
                if not traces.filter(trace_id=trace_id).exists() and trace_detail(trace_id) is None:
                    raise UnknownSubjectError("Trace not found.")
                return Subject(about, trace_id=trace_id)
            case About.VIOLATION:
                return Subject(about, tool_name=tool, code=named["code"], path=named["path"])
            case _:
                return version_subject(tool, named["tool_version"])


def version_subject(tool_name: str, version: str) -> Subject:
    """A version of a tool, by any text by which calls name it. One query."""
    key = tool_name, version
    known = versions_named(current_tenant_id(), [key]).get(key)
    names = (version,) if known is None else (str(known.number), known.digest)
    return Subject(About.VERSION, tool_name=tool_name, tool_versions=names)


def members_of(subject: Subject) -> Mapping[str, str]:
    """The members of a request that name this."""
    named = {
        "about": subject.about.value,
        "invocation_id": str(subject.invocation_id or ""),
        "trace_id": subject.trace_id,
        "tool_name": "" if subject.about is About.CALL else subject.tool_name,
        "tool_version": subject.tool_version,
        "code": subject.code,
        "path": subject.path,
    }
    return {name: value for name, value in named.items() if value}


def address_of(subject: Subject) -> str:
    """The address of the page that shows this."""
    match subject.about:
        case About.CALL:
            return reverse("call_detail", args=[subject.started_on, subject.invocation_id])
        case About.TRACE:
            return reverse("trace_detail", args=[subject.trace_id])
        case About.VIOLATION:
            named = {"tool": subject.tool_name, "code": subject.code, "path": subject.path}
            return f"{reverse('violation_list')}?{urlencode(named)}"
        case _:
            named = {"name": subject.tool_name, "version": subject.tool_version}
            return f"{reverse('tool_find')}?{urlencode(named)}"


def _call(invocation_id: UUID) -> Subject:
    day = call_day(invocation_id, now=timezone.now()) or decided_day(invocation_id)
    call = None if day is None else call_detail(day, invocation_id)
    if call is None:
        raise UnknownSubjectError("Call not found.")
    return Subject(
        About.CALL,
        started_on=call.started_on,
        invocation_id=call.invocation_id,
        tool_name=call.tool_name,
    )
