"""Violations over time, by what breaks its schema. Pure."""

from collections.abc import Sequence

from audit.queries.call_query import quoted
from audit.queries.published import Published
from audit.queries.violations import SIDES, Side, ViolationFilter, Violations
from audit.show.charts import Chart, Series, day_slots, time_slots, version_marks

_SIDES: dict[Side, tuple[str, str, str]] = {
    "arguments": ("Of arguments", "refused", "decision:rejected-arguments"),
    "results": ("Of results", "violation", ""),
}


def violations_chart(
    range_violations: Violations, wanted: ViolationFilter, published: Sequence[Published]
) -> Chart:
    """Return the violations by side; a longer range is shown by UTC days, as they are summed up.

    Those of the range before, if they are known, are a line.
    """
    of, bounds = range_violations.of, range_violations.bounds
    is_by_part = len(bounds) == len(of.bounds) and list(of.bounds) == bounds
    by_side = {side: [0.0] * (len(bounds) - 1) for side in SIDES}
    for kind in range_violations.kinds:
        for part, number in enumerate(kind.course):
            by_side[kind.side][part] += number or 0
    terms = [("tool", wanted.tool), ("version", wanted.version)]
    terms += [("violation", wanted.code), ("path", wanted.path)]
    named = [f"{name}:{quoted(value)}" for name, value in terms if value]
    if not wanted.code:
        named.append("violation:*")
    series = [
        Series(name, tone, by_side[side], " ".join(filter(None, [decided, *named])))
        for side, (name, tone, decided) in _SIDES.items()
        if any(by_side[side])
    ]
    return Chart(
        id="violations",
        title="Violations",
        kind="bars",
        unit="count",
        slots=time_slots(of) if is_by_part else day_slots(of, bounds),
        series=[*series, *Series.earlier(of, range_violations.before)],
        note=f"per {of.step_name if is_by_part else 'UTC day'}",
        query=" ".join(named),
        marks=version_marks(of, published) if is_by_part else (),
    )
