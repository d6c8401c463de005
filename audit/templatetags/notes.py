"""Notes on the page of what they are about: {% notes "trace" trace_id=trace.trace_id %}."""

from typing import Any

from django import template
from django.template import RequestContext

from audit.models import About
from audit.pages.notes.subjects import version_subject
from audit.pages.notes.views import EDITS, new_address
from audit.queries.notes import Subject, notes_about
from tenants.access import has_role

register = template.Library()


@register.inclusion_tag("notes/_notes.html", takes_context=True)
def notes(context: RequestContext, about: str, **named: Any) -> dict[str, Any]:
    """The notes about this, and for editors a link to write one. One or two statements.

    A shared page shows no notes: its readers may not be members.
    """
    if hasattr(context["request"], "share"):
        return {}
    version = named.pop("tool_version", None)
    if version is not None:
        subject = version_subject(named["tool_name"], str(version))
    else:
        subject = Subject(About(about), **named)
    return {
        "is_card": subject.about is not About.CALL,  # that of a call is within its panel
        "notes": notes_about(subject),
        "new_address": new_address(subject),
        "may_edit": has_role(context["request"].membership, EDITS),
    }
