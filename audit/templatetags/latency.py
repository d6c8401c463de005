"""Durations and limits in templates: {% load latency %} {{ routed|routed_ms:0.95 }}."""

from typing import NamedTuple

from django import template

from audit.events.end_meta import Routed
from audit.pages.latency.page import LimitRow
from audit.queries.call_query import quoted
from audit.queries.newest import BANDS
from audit.show import figures
from audit.show.charts import value_text

register = template.Library()


@register.filter
def routed_ms(routed: Routed, share: float) -> str:
    """The duration that this share of the calls took at most."""
    return value_text(routed.duration_ms(share), "duration")


@register.filter
def run_query(run_id: str) -> str:
    """The term of a query for a run's calls."""
    return f"run:{quoted(run_id)}"


@register.filter
def within(query: str, interval: str) -> str:
    """A query narrowed down to a period of time."""
    return f"{interval} {query}"


class UsedPart(NamedTuple):
    """A part of a bar. `x` and `width` are percent, `band` is an index of `BANDS`."""

    x: float
    width: float
    band: int


class Used(NamedTuple):
    """How much of a limit calls used, in words and as a bar."""

    words: str
    parts: list[UsedPart]


@register.filter
def used_of_it(row: LimitRow) -> Used:
    """How much of a limit calls used: the share of calls in each of `BANDS`."""
    words = ", ".join(
        f"{figures.share(share)} of calls used {name}"
        for share, name in zip(row.shares, BANDS, strict=True)
        if share
    )
    parts, at = [], 0.0
    for band, share in enumerate(row.shares):
        if share:
            parts.append(UsedPart(at, share * 100, band))
        at += share * 100
    return Used(words, parts)
