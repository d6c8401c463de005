"""Violations by tool and code, and by kind, in templates: {% load violations %} {% kind_rows %}.

Functions render the rows. In a template, fifty rows took a quarter of the time of the page.
"""

from html import escape

from django import template
from django.template import Context
from django.urls import reverse
from django.utils.safestring import SafeString

from audit.models import Note
from audit.pages.violations.views import Cell, HeatMap, KindRow
from audit.queries.violations import ViolationKind
from audit.show.charts import sparkline
from audit.show.figures import count, counted, share, short_count, short_version
from audit.show.text import plain, visible
from audit.templatetags.charts import violation_addresses
from audit.templatetags.states import shape
from config.templatetags.instants import short_instant

register = template.Library()

_NOTES_SHOWN = 3


@register.filter
def heat_rows(heat: HeatMap) -> SafeString:
    """The rows of violations by tool and code."""
    return SafeString(
        "".join(
            f'<tr><th scope="row"><a class="free" {_opens(row.address)}'
            f' title="{escape(plain(row.tool))}">{visible(row.tool)}</a></th>'
            f"{''.join(map(_cell, row.cells))}</tr>\n"
            for row in heat.rows
        )
    )


def _cell(cell: Cell) -> str:
    link = ""
    if cell.count:
        title = f"{counted(cell.count, 'violation')}: {plain(cell.tool)}, {plain(cell.code)}"
        link = f'<a {_opens(cell.address)} title="{escape(title)}">{short_count(cell.count)}</a>'
    return f'<td class="shade-{cell.shade}">{link}</td>'


def _opens(address: str) -> str:
    """The attributes of a link within the page."""
    address = escape(address)
    return f'href="{address}" hx-get="{address}"'


@register.simple_tag(takes_context=True)
def kind_rows(context: Context) -> SafeString:
    """The rows of kinds of violations; with the side if the page shows both.

    A shared page shows no notes: its readers may not be members.
    """
    request, with_side = context["request"], context["both_sides"]
    with_notes, address = not hasattr(request, "share"), violation_addresses(request.GET)
    return SafeString(
        "".join(
            _row(row, _opens(address(row.kind)), with_side, with_notes) for row in context["rows"]
        )
    )


def _row(row: KindRow, opens: str, with_side: bool, with_notes: bool) -> str:
    kind, trend = row.kind, sparkline(row.kind.course)
    side = f'<td class="side" data-label="Side">{kind.side}</td>\n' if with_side else ""
    notes = "".join(map(_note, row.notes[:_NOTES_SHOWN])) if with_notes else ""
    apart = (
        f' <a class="dim small apart-link" href="{escape(row.apart)}"'
        ' title="What sets these calls apart">compare</a>'
        if row.apart
        else ""
    )
    spark = (
        '<svg class="spark tone-violation" viewBox="0 0 96 22" preserveAspectRatio="none"'
        f' aria-hidden="true"><polyline points="{trend}"/></svg>'
        if trend
        else ""
    )
    return (
        f'<tr>\n<td class="lead">{_titled("free", kind.tool_name)}</td>\n'
        f'<td class="aside">{_version(kind)}</td>\n{side}'
        f'<td class="where"><a class="mono free" {opens}'
        f' title="{escape(plain(kind.path_pattern))}">{visible(kind.path_pattern)}</a>'
        f"{notes}</td>\n"
        f'<td class="code"><span class="state is-violation">{shape("violation")}'
        f'<span class="mono free">{visible(kind.code)}</span></span></td>\n'
        f'<td class="r num links" data-label="Calls">'
        f'<a href="{escape(row.calls)}">{count(kind.calls)}</a>{apart}</td>\n'
        f'<td class="r num" data-label="Share">{escape(share(kind.share))}</td>\n'
        f'<td class="r num" data-label="Violations">{count(kind.violations)}</td>\n'
        f'<td class="trend">{spark}</td>\n'
        f'<td class="when" data-label="First seen">{short_instant(kind.first_ever_at)}</td>\n'
        f'<td class="when" data-label="Last seen">{short_instant(kind.last_at)}</td>\n</tr>\n'
    )


def _version(kind: ViolationKind) -> str:
    """The version, and whether or since when the kind is new."""
    version = kind.tool_version
    shown = (
        _titled("mono free", version, short_version(version))
        if version
        else '<span class="dim">—</span>'
    )
    if kind.new_since is not None and kind.new_since == version:
        shown += (
            ' <span class="mark state is-violation"'
            ' title="Not seen in any earlier known version">new</span>'
        )
    elif kind.new_since:
        shown += (
            ' <span class="dim small" title="First seen with this version">'
            f"since {visible(short_version(kind.new_since))}</span>"
        )
    return shown


def _titled(classes: str, text: str, shown: str | None = None) -> str:
    """A text from an agent, in full as its title."""
    content = visible(text if shown is None else shown)
    return f'<span class="{classes}" title="{escape(plain(text))}">{content}</span>'


def _note(note: Note) -> str:
    state = escape(str(note.get_state_display()).lower())
    return (
        f' <a class="mark is-plain" href="{reverse("note_detail", args=[note.id])}"'
        f' title="Note: {state}">{escape(note.label or note.state)}</a>'
    )
