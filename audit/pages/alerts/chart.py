"""A trial as a chart: the measure, the thresholds, and where the rule would have fired. Pure."""

from collections.abc import Callable, Iterable
from datetime import tzinfo

from audit.alerts.rules import Comparison, Severity
from audit.alerts.trial import Trial
from audit.queries.call_query import parse
from audit.show.charts import Chart, Series, Slot, Unit, range_query
from config.instants import local, offset, short_day

SLOTS_MAX = 180
_TONES = {Severity.WARNING: "violation", Severity.ALERT: "failed"}


def trial_chart(trial: Trial, zone: tzinfo, currency: str = "") -> Chart:
    """The values of a trial; each point is the worst of its slot. A cost is in this currency."""
    condition = trial.condition
    width = -(-len(trial.values) // SLOTS_MAX)
    groups = [trial.values[n : n + width] for n in range(0, len(trial.values), width)]
    worst: Callable[[Iterable[float]], float] = max if condition.direction == "above" else min
    scale = 0.01 if condition.measure.unit == "share" else 1.0
    unit: Unit = condition.measure.unit
    label = condition.measure.label
    if unit == "money" and currency:
        label += f" in {currency}"

    def points(values: Iterable[Iterable[float | None]]) -> list[float | None]:
        known = ([one for one in group if one is not None] for group in values)
        return [worst(group) * scale if group else None for group in known]

    measured = points([one.value for one in group] for group in groups)
    slots = []
    for group in groups:
        start, end = trial.at(group[0].at), trial.at(group[-1].at)
        there = local(end, zone)
        name = f"{there:%a} {short_day(there)} {there:%H:%M} {offset(there)}"
        query = f"{parse(condition.query)} {range_query(start - condition.window, end)}"
        slots.append(Slot(f"{short_day(there)} {there:%H:%M}", name, query.strip()))
    series = [Series(label, "accent", measured)]
    if condition.compare_with is Comparison.NUMBER:
        for severity, tone in _TONES.items():
            threshold = condition.threshold(severity)
            if threshold is not None:
                level = [threshold * scale] * len(slots)
                series.append(Series(f"{severity.value.capitalize()} threshold", tone, level))
    else:
        before = points([one.before for one in group] for group in groups)
        series.append(Series("Before", "dim", before))
    series.append(Series("Fires", "ink", _firing(trial, measured, width)))
    return Chart("trial", label, "lines", unit, slots, series)


def _firing(trial: Trial, measured: list[float | None], width: int) -> list[float | None]:
    """The values where it fires, and one more, so that a single one is a line."""
    firing: list[float | None] = [None] * len(measured)
    if not trial.values:
        return firing
    first = trial.values[0].at
    for one in trial.episodes:
        end = trial.values[-1].at + 1 if one.end is None else one.end
        last = min((end - first) // width + 1, len(measured) - 1)
        for n in range((one.start - first) // width, last + 1):
            firing[n] = measured[n] if measured[n] is not None else 0.0
    return firing
