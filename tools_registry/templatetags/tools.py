"""Template tags for versions and changes: {% load tools %} {% version_state state %} …"""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from tools_registry.annotations import declared_hints
from tools_registry.contract_diff import Verdict
from tools_registry.models import ChangeKind, State, ToolChange, ToolVersion

register = template.Library()

_TONES = {
    State.PUBLISHED: "state is-ok",
    State.DEPRECATED: "state is-violation",
    State.RETIRED: "is-plain",
}
_STATES = {
    Verdict.COMPATIBLE: "ok",
    Verdict.BREAKING: "failed",
    Verdict.UNKNOWN: "violation",
}
_WORDS = {
    Verdict.COMPATIBLE: "compatible for {}",
    Verdict.BREAKING: "breaks {}",
    Verdict.UNKNOWN: "may break {}",
}


@register.simple_tag
def version_state(state: State) -> SafeString:
    """A version's state as a badge."""
    return format_html('<span class="mark {}">{}</span>', _TONES[state], state.label)


@register.filter
def hints(version: ToolVersion) -> list[str]:
    """How the MCP definition of a version says that the tool behaves."""
    return declared_hints(version.meta)


@register.simple_tag
def change_line(change: ToolChange) -> SafeString:
    """The kind of change in bold, and details beyond version and reason."""
    return format_html("<b>{}</b> {}", ChangeKind(change.kind).label, _details(change))


@register.filter
def verdict_state(verdict: Verdict) -> str:
    """The name of the state whose colour and shape a verdict has."""
    return _STATES[verdict]


@register.filter
def verdict_for(verdict: Verdict, concerned: str) -> str:
    """A verdict as text, such as "breaks callers"."""
    return _WORDS[verdict].format(concerned)


def _details(change: ToolChange) -> str:
    details: dict[str, Any] = change.details
    if change.kind == ChangeKind.DESCRIBED:
        return ", ".join(details.get("after", ()))
    if change.kind == ChangeKind.DRAFT_SAVED:
        return f"revision {details.get('revision', '?')}"
    if change.kind == ChangeKind.DRAFT_MADE and details.get("base"):
        return f"from version {details['base']}"
    if change.is_unusable:
        return "an unusable contract"
    if change.attempted_on:
        return "a different contract; kept"
    return ""
