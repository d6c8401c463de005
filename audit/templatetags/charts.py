"""Charts and their calls in templates: {% load charts %} <a href="{{ query|calls_address }}">."""

from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from urllib.parse import quote_plus, urlencode

from django import template
from django.urls import get_script_prefix, reverse
from django.utils.safestring import SafeString, mark_safe

from audit.pages.latency.page import Span
from audit.pages.show.range_bar import OF_THE_RANGE
from audit.queries.call_query import quoted
from audit.queries.violations import NewViolation, ViolationKind
from audit.show.charts import Chart, Series, Slot, sparkline, value_text
from audit.show.text import visible

register = template.Library()
register.filter("sparkline", sparkline)

type Breach = ViolationKind | NewViolation
_SIGNS = {"triangle": "▼", "diamond": "◆"}


@register.filter
def calls_address(query: str) -> str:
    """The address of the list of calls that match a query."""
    return f"{_folder(get_script_prefix(), 'call_list')}?q={quote_plus(query)}"


@register.filter
def compare_address(a: str, b: str) -> str:
    """The address of the calls of two queries side by side."""
    return f"{_folder(get_script_prefix(), 'compare_page')}?{urlencode({'a': a, 'b': b})}"


@register.filter
def table_rows(chart: Chart) -> SafeString:
    """The rows of the table behind a chart.

    Loops in a template took five times as long: a fifth of the time of a page of figures.
    """
    calls, traces = calls_address(""), f"{_folder(get_script_prefix(), 'trace_list')}?"

    # The address of a value is that of its slot, then that of its series: each is quoted once.
    def beginning(slot: Slot) -> str:
        if chart.leads_to == "calls":
            return calls + quote_plus(slot.query)
        since, until = (each.partition(":")[2] for each in slot.query.split(" "))
        return escape(f"{traces}{urlencode({'from': since, 'to': until})}&")

    def ending(one: Series) -> str:
        if chart.leads_to == "calls":
            return quote_plus(f" {one.query}") if one.query else ""
        return escape(one.query)

    marked: dict[int, str] = {}
    for mark in chart.marks:
        sign = f'<i class="tone-{mark.tone}" aria-hidden="true">{_SIGNS[mark.symbol]}</i>'
        link = f' <a class="alert-mark" href="{mark.address}">{sign} {visible(mark.title)}</a>'
        marked[mark.slot] = marked.get(mark.slot, "") + link
    columns = [
        (one.values, texts, None if one.role else ending(one))
        for one, texts in zip(chart.series, chart.texts, strict=True)
        if one.role != "threshold"
    ]
    rows = []
    for n, slot in enumerate(chart.slots):
        begun = beginning(slot)
        cells = [
            f'<td class="r"><a href="{begun}{ended}">{escape(texts[n])}</a></td>'
            if values[n] and ended is not None
            else f'<td class="r">{escape(texts[n])}</td>'
            for values, texts, ended in columns
        ]
        name = escape(slot.name) + marked.get(n, "")
        rows.append(f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>\n')
    return mark_safe("".join(rows))  # noqa: S308  # addresses are quoted, all else escaped


@register.filter
def swatch(one: Series, kind: str) -> str:
    """The class of a series' sign in the legend: as it is drawn."""
    return {"before": "is-before", "threshold": "is-threshold"}.get(one.role, f"is-{kind}")


@register.filter
def span_bar(span: Span) -> SafeString:
    """A bar from the median to the 99th percentile, on a scale that is 120 wide."""
    return mark_safe(  # noqa: S308  # only numbers
        '<svg viewBox="0 0 120 14" width="120" height="14" aria-hidden="true">'
        f'<rect class="span-line" x="{span.p50:.1f}" y="6" width="{span.length:.1f}" height="2"/>'
        f'<circle class="span-p50" cx="{span.p50:.1f}" cy="7" r="3"/>'
        f'<circle class="span-p95" cx="{span.p95:.1f}" cy="7" r="3"/>'
        f'<rect class="span-p99" x="{span.p99:.1f}" y="3" width="1.5" height="8"/></svg>'
    )


@register.filter
def with_term(address: str, of: Mapping[str, str]) -> str:
    """An address that ends in its query, with more parameters: `?range=24h&tool=search`."""
    return f"{address}{'' if address.endswith('?') else '&'}{urlencode(of)}"


@register.filter
def tool_term(name: str, query: str) -> str:
    """A query narrowed down to a tool's calls."""
    return f"{query} tool:{quoted(name)}"


@register.filter
def quoted_term(value: str, name: str) -> str:
    """A term of a query: `agent:"the value"`."""
    return f"{name}:{quoted(value)}"


@register.filter
def ms(milliseconds: float | None) -> str:
    """A duration: `301 ms`; — for none."""
    return value_text(milliseconds, "duration")


@register.filter
def violation_address(kind: Breach, params: Mapping[str, str]) -> str:
    """The address of the violations of a kind's side, tool, path and code, in the range of
    `params`."""
    return violation_addresses(params)(kind)


def violation_addresses(params: Mapping[str, str]) -> Callable[[Breach], str]:
    """The same for many kinds: what their addresses share is quoted once."""
    of_range = urlencode({name: params[name] for name in OF_THE_RANGE if name in params})
    page = f"{_folder(get_script_prefix(), 'violation_list')}?{of_range}{'&' if of_range else ''}"
    quoted_once = cache(quote_plus)

    def address(kind: Breach) -> str:
        tool, path = quoted_once(kind.tool_name), quoted_once(kind.path_pattern)
        return f"{page}side={kind.side}&tool={tool}&path={path}&code={quoted_once(kind.code)}"

    return address


@cache
def _folder(_prefix: str, name: str) -> str:
    """The address of a list, cached, as `reverse()` takes as long as the rest of a link."""
    return reverse(name)
