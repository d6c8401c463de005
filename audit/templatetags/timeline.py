"""The timeline in templates: {{ tick.x|svg_share }}, {{ waterfall|timeline_rows:kept }}.

Functions render the rows. A template took ten times as long: for sixty rows, a quarter of the time
of the page of a trace.
"""

from html import escape

from django import template
from django.utils.safestring import SafeString

from audit.pages.traces.timeline import ROW_HEIGHT, Node
from audit.pages.traces.waterfall import Row, Waterfall, svg_share
from audit.show.addresses import call_address
from audit.show.figures import count, counted, duration
from audit.show.text import plain, visible
from audit.templatetags.states import shape

register = template.Library()
register.filter("svg_share", svg_share)


@register.filter
def timeline_rows(waterfall: Waterfall, kept: str) -> SafeString:
    """The rows of a window.

    `kept` is the part of the page's query that the addresses of the rows keep, ending in `&`.
    """
    return SafeString(
        "".join(
            _row(row, f"?{escape(kept)}", "" if n else f' value="{waterfall.first_row + 1}"')
            for n, row in enumerate(waterfall.rows)
        )
    )


def _row(row: Row, page: str, number: str) -> str:
    """A row: its number in the list, the name as read out, the bar, the duration and the reason."""
    call, tone, identity = row.call, row.call.tone, row.call.invocation_id
    content = (
        f' data-content="{escape(plain(call.tool_name))} {escape(plain(call.call_id))}"'
        if row.repeat
        else ""
    )
    classes = [
        *(["is-context"] if row.is_context else []),
        *(["is-alike"] if row.is_alike else []),
        *(["has-calls"] if row.inside_count else []),
    ]
    reason = (
        f'<span class="reason is-{tone} free">{visible(row.reason)}</span>\n' if row.reason else ""
    )
    return (
        f'<li id="c-{identity}"{number} data-depth="{row.node.depth}"{content}'
        f' class="{" ".join(classes)}">'
        f'<a href="{page}call={identity}" hx-get="{escape(call_address(call))}"'
        f' hx-push-url="{page}call={identity}"'
        f"{' aria-current="true"' if row.is_selected else ''}>\n"
        f"{_name(row, tone)}\n"
        f'<svg class="lane" aria-hidden="true">{row.lane}</svg>\n'
        f'<span class="took num">{duration(call.duration_us)}</span>\n'
        f"{reason}</a>{_fold(row)}</li>\n"
    )


def _name(row: Row, tone: str) -> str:
    """The tool's name with its depth and state, a missing parent, and its number among repeats."""
    call, node = row.call, row.node
    loud = "" if tone == "ok" else " is-loud"
    violation = (
        f'<span class="state is-violation">{shape("violation")}</span>'
        if call.violation_count and tone == "failed"
        else ""
    )
    orphan = (
        '<span class="dim orphan" title="The parent call is not in this trace">↥</span>'
        if node.is_orphan
        else ""
    )
    repeat = ""
    if row.repeat:
        which, total = row.repeat
        repeat = (
            f'<span class="repeat" title="Call {which} of {total} with the same tool and'
            f' arguments">{count(which)}/{count(total)}</span>'
        )
    return (
        f'<span class="name{loud}">{_guide(node)}'
        f'<span class="state is-{tone}">{shape(tone)}</span>'
        f'<span class="sr-only">{tone}, level {node.level}: </span>'
        f'<span class="free tool" title="{escape(plain(call.tool_name))}">'
        f"{visible(call.tool_name)}</span>{violation}{orphan}{repeat}</span>"
    )


def _guide(node: Node) -> str:
    """The lines to the enclosing call, and the level of a call that is deeper than they reach."""
    if not node.depth:
        return ""
    level = (
        f'<span class="level num" aria-hidden="true" title="Level {node.level}">{node.level}</span>'
        if node.is_deeper_than_drawn
        else ""
    )
    return (
        f'<svg class="guide" width="{node.indent}" height="{ROW_HEIGHT}" aria-hidden="true">'
        f'<path d="{node.guide_path}"/></svg>{level}'
    )


def _fold(row: Row) -> str:
    """The button that hides the calls inside. It needs scripts."""
    if not row.inside_count:
        return ""
    return (
        '<button class="fold-calls" type="button" hidden aria-expanded="true" tabindex="-1"'
        f' aria-label="Collapse {counted(row.inside_count, "call")} inside'
        f' {escape(plain(row.call.tool_name))}">{count(row.inside_count)}</button>'
    )
